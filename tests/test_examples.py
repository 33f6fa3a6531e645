"""Every example of the README, the docs and `--help` is run, in a folder of its own and in the order it is read.

Python blocks run as they are, each in a fresh namespace. Of shell blocks the lines that start with `strongticket`
or `python -m` run; they must end with exit code 0. A block that takes hours or the network carries, in the line
above it, `<!-- not run: reason -->`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.starter import Starter

from strongticket import cli

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^ {0,3}```+\s*([\w+-]*)")
NOT_RUN = re.compile(r"^<!-- not run: .+ -->$")
SHELL, PYTHON = ("bash", "sh", "shell", "console", ""), ("python", "py")
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ +)*(?:strongticket|python -m)\b")
NEEDS_SHELL = set("|<>;&$`*~=")
# Of examples whose only fault is that they take minutes: the same command on a smaller scale.
SHORTER = {"strongticket reproduce": " --scale test --workers 1"}


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str
    runs: bool


def blocks(document: str) -> list[Block]:
    """The fenced blocks of a Markdown text."""
    found, above, start = [], "", None
    for number, line in enumerate(document.splitlines(), 1):
        fence = FENCE.match(line)
        if start is None and fence:
            start, inside = (number, fence[1], not NOT_RUN.match(above)), []
        elif start is not None and fence and not fence[1]:
            found.append(Block(start[0], start[1], "\n".join(inside) + "\n", start[2]))
            start = None
        elif start is not None:
            inside.append(line)
        above = line.strip()
    assert start is None, f"the block that begins in line {start} does not end"
    return found


def commands(block: Block) -> list[str]:
    """The lines to run; in a console block those after `$ `, the others are what the program says."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if COMMAND.match(line.strip())]


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = "reference/"  # pages that the site makes; its own test checks links to them


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cache = str(tmp_path_factory.mktemp("cache"))
    return {"PATH": path, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "STRONGTICKET_CACHE": cache}


@pytest.fixture(scope="module")
def starter(environment):
    with Starter(environment) as started:
        yield started


@pytest.fixture(scope="module")
def demo(starter, tmp_path_factory):
    """The demo's results, made once: examples begin with them."""
    folder = tmp_path_factory.mktemp("demo")
    done = starter.run(["demo"], folder)
    assert done.code == 0, done.stderr
    return folder / "demo"


def save_model(folder: Path) -> None:
    """A small Llama with a tokenizer of a few words, as Hugging Face saves it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    story = "<s> </s> <unk> once upon a time there was one little dog who had big red ball"
    words = story.split()
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        LlamaForCausalLM(config).save_pretrained(folder)
    words_only = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    words_only.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words_only, bos_token="<s>", eos_token="</s>")
    tokenizer.save_pretrained(folder)
    (folder.parent / "story.txt").write_text(" ".join(words[3:] * 40))


class Runner:
    """Runs commands in one folder; what the examples speak of appears there when it is first spoken of."""

    def __init__(self, starter, demo, environment, folder):
        self.starter, self.demo, self.environment, self.folder = starter, demo, environment, folder

    def __call__(self, command):
        if "stories260K" in command and not (self.folder / "stories260K").exists():
            save_model(self.folder / "stories260K")
        if re.fullmatch(r"strongticket demo( --out demo)?", command):
            shutil.copytree(self.demo, self.folder / "demo")
            return
        command += next((more for start, more in SHORTER.items() if command.startswith(start)), "")
        words = shlex.split(command, comments=True)
        if words[0] == "strongticket" and not NEEDS_SHELL & set(command):
            done = self.starter.run(words[1:], self.folder)
            assert done.code == 0, f"{command}\nexit code {done.code}\n{done.stdout}{done.stderr}"
            return
        shell = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(
            shell, cwd=self.folder, env=os.environ | self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.fixture
def run(starter, demo, environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("HF_HUB_OFFLINE", "STRONGTICKET_CACHE"):
        monkeypatch.setenv(name, environment[name])
    return Runner(starter, demo, environment, tmp_path)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_document(path, run):
    for block in blocks(path.read_text(encoding="utf-8")):
        if not block.runs:
            continue
        if block.language in PYTHON:
            code = compile(
                "\n" * block.line + block.text, str(path), "exec"
            )  # errors name the document's line
            exec(code, {"__name__": "__main__"})
        elif block.language in SHELL:
            for command in commands(block):
                run(command)


def test_examples_in_help(run):
    examples = [getattr(cli, name).EXAMPLE for name in names()]
    for example in sorted(examples, key=lambda text: not text.startswith("strongticket demo")):
        run(example)


def test_every_command_has_an_example_of_itself(starter, tmp_path):
    for name in names():
        output = starter.run([name, "--help"], tmp_path).stdout
        assert getattr(cli, name).EXAMPLE.startswith(f"strongticket {name} ")
        assert f"Example: strongticket {name} " in output


def names() -> list[str]:
    return [command.name for command in cli.app.registered_commands]


def test_links_between_documents():
    for path in DOCUMENTS:
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert link.startswith(("http", GENERATED)) or (path.parent / link).exists(), (
                f"{path.name}: {link}"
            )


def test_blocks_and_commands_are_found():
    text = """
```bash
make test
strongticket plan \\
    --dim 4   # said
```
<!-- not run: needs the network -->
```bash
strongticket build gpt2
```
```console
$ strongticket show a.ticket
network  relu
```
"""
    first, second, third = blocks(text)
    assert commands(first) == ["strongticket plan      --dim 4   # said"]
    assert shlex.split(commands(first)[0], comments=True) == ["strongticket", "plan", "--dim", "4"]
    assert not second.runs
    assert third.runs
    assert commands(third) == ["strongticket show a.ticket"]


def test_a_broken_example_is_noticed(run):
    with pytest.raises(AssertionError, match="exit code 1"):
        run("strongticket show missing.ticket")
    with pytest.raises(AssertionError, match=r"missing.ticket"):
        run("strongticket show missing.ticket | cat")
