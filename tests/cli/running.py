"""Commands as a user runs them."""

import json
from typing import Any

from typer.testing import CliRunner

from strongticket.cli import app


def run(*arguments: object, **options: Any) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments], **options)


def answer(*arguments: object) -> Any:
    """What the command prints with --json."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refusal(*arguments: object) -> str:
    """What it prints on stderr: one error, no traceback."""
    result = run(*arguments)
    assert (result.exit_code, type(result.exception)) == (1, SystemExit), result.exception
    assert result.stderr.count("error: ") == 1
    assert "Traceback" not in result.output
    return result.stderr
