import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.browser import browser  # noqa: F401

from strongticket.report.bundle import bundle

HERE = Path(__file__).parent
NODE = shutil.which("node")


def plain(value: Any) -> Any:
    """Bytes become base64, inside lists and dicts as well."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def node():
    """A function: jobs of jobs.js -> their results, in node."""
    if NODE is None:
        pytest.skip("needs node (https://nodejs.org) to run the JavaScript reader")

    with subprocess.Popen(
        [NODE, HERE / "run_jobs.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def run(*jobs: dict[str, Any]) -> list[Any]:
            process.stdin.write(json.dumps(plain(list(jobs))) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, f"node ended with exit code {process.wait()}"
            return json.loads(line)

        yield run


@pytest.fixture(scope="module")
def chromium(browser, tmp_path_factory):  # noqa: F811
    """The same in a page of a real browser, opened from disk."""
    page = tmp_path_factory.mktemp("page") / "jobs.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><script>{bundle(HERE / "jobs.js")}</script>', encoding="utf-8"
    )
    browser.open(page)

    def run(*jobs: dict[str, Any]) -> list[Any]:
        found = browser.evaluate(f"run({json.dumps(plain(list(jobs)))})")
        assert browser.problems == []
        return found

    return run


@pytest.fixture(params=["node", "chromium"], scope="module")
def javascript(request):
    """Each engine in turn."""
    return request.getfixturevalue(request.param)
