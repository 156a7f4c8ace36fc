"""A real browser, driven through its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """A headless Chromium behind its debugging pipe; `events` are what it told, in order."""

    def __init__(self, profile: Path) -> None:
        child_in, self._out = os.pipe()
        self._in, child_out = os.pipe()
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--remote-debugging-pipe",
        ]  # fmt: skip
        # The pipe's ends must be file descriptors 3 and 4; our own ends are above them.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{child_in} 4>&{child_out}', "bash", str(CHROMIUM), *flags,
             f"--user-data-dir={profile}"],
            pass_fds=(child_in, child_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(child_in)
        os.close(child_out)
        self.events: list[dict[str, Any]] = []
        self._rest, self._number, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._read()
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser is gone"
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(first)
        if "method" in told:
            self.events.append(told)
        return told

    def open(self, url: str, width: int, height: int = 900) -> None:
        """Opens a page and returns once it has loaded; `events` are then those since."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        # Another place on the page that is open loads nothing.
        loads = "loaderId" in self.call("Page.navigate", url=url)
        while loads and not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._read()
        time.sleep(0.2)
        self.evaluate("1")

    def wait_for(self, condition: str, seconds: float = 600) -> None:
        """Returns once the JavaScript condition holds; RuntimeError where it does not in that time."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the page never came to: {condition}")
            time.sleep(0.1)

    def screenshot(self, file: Path) -> None:
        """Writes what the window shows as PNG."""
        shot = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(shot))

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def told(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] in methods]

    def close(self) -> None:
        self.call("Browser.close")
        self.process.wait(120)
        os.close(self._in)
        os.close(self._out)
