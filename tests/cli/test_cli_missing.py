"""Commands without the Hugging Face extra: a clear error, no traceback."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from typer.testing import CliRunner
from strongticket.cli import app
answers = []
for command in json.loads(sys.argv[2]):
    done = CliRunner().invoke(app, command)
    answers.append([done.exit_code, done.output, repr(done.exception)])
print(json.dumps(answers))
"""
COMMANDS = (
    ["search", "--data", "text.txt", "--out", "a.ticket", "--steps", "1"],
    ["reproduce", "figure7", "--scale", "test", "--out", "results"],
    ["reproduce", "lengths", "--scale", "test", "--out", "results"],
    ["build", ".", "--out", "a.ticket"],
)


@pytest.mark.parametrize("missing", ["transformers", "accelerate"])
def test_what_needs_the_extra_says_so(tmp_path, missing):
    (tmp_path / "text.txt").write_text("a strong lottery ticket " * 60)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}')
    commands = COMMANDS if missing == "transformers" else COMMANDS[:2]  # a build does not train
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([missing]), json.dumps(commands)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for command, (code, output, exception) in zip(commands, json.loads(done.stdout), strict=True):
        assert (code, exception) == (1, "SystemExit(1)"), (command, exception)
        assert f"error: {missing} is not installed" in output
        assert 'pip install "strongticket[huggingface]"' in output
