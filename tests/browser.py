"""A real chromium, driven over its DevTools pipe with nothing but the standard library."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)


class Browser:
    """One tab. `problems` collects console errors, exceptions and refused requests; `requests` every URL."""

    def __init__(self, profile: Path):
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._buffer = b""
        self._count = 0
        their_in, self._write = os.pipe()
        self._read, their_out = os.pipe()
        # DevTools speak on descriptors 3 and 4: from high copies, so that neither move overwrites the other.
        high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (their_in, their_out))
        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=lambda: (os.dup2(high_in, 3), os.dup2(high_out, 4)),
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
        )
        for fd in (their_in, their_out, high_in, high_out):
            os.close(fd)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a page from disk."""
        self.problems.clear()
        self.requests.clear()
        self.resize(width, height)
        self.scheme(dark)
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.readyState === 'complete'")

    def resize(self, width: int, height: int) -> None:
        mobile = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if mobile else 1,
            mobile=mobile,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def scheme(self, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, script: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"not within {seconds} s: {condition}; problems: {self.problems}"
            time.sleep(0.05)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._note(answer.get("method", ""), answer.get("params", {}))

    def _note(self, event: str, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.problems.append(str(about["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.problems.append(str(about["args"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(about["entry"]))

    def _receive(self) -> dict[str, Any]:
        parts = [self._buffer]
        while b"\0" not in parts[-1]:
            ready, _, _ = select.select([self._read], [], [], 60)
            assert ready, "chromium does not answer"
            parts.append(os.read(self._read, 1 << 20))
            assert parts[-1], "chromium ended"
        message, self._buffer = b"".join(parts).split(b"\0", 1)
        return json.loads(message)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        give_up = pytest.fail if os.environ.get("STRONGTICKET_BROWSER") == "required" else pytest.skip
        give_up("no chromium on this machine: the page is not looked at in a browser (apt install chromium)")
    tab = Browser(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()
