"""Headless Chromium, driven over its DevTools protocol: enough to use a page as a visitor does.

The protocol: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--remote-debugging-port=0",
)
# Long, for machines on which much else runs; nothing waits longer than it has to.
_PATIENCE_S = 30.0
_PAUSE_S = 0.02
# Key: its code, its number, and what it types.
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "Home": ("Home", 36, ""),
    "Backspace": ("Backspace", 8, ""),
    " ": ("Space", 32, " "),
}
_SHIFT = 8


def find_chromium() -> str | None:
    """Find the browser; ``None`` if there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@contextmanager
def visit(program: str) -> Iterator[Page]:
    """Run a browser with a profile of its own, and one page in it."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        command = [program, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                address = _debugger(Path(profile) / "DevToolsActivePort", process)
                with connect(address, max_size=None) as connection:
                    page = Page(connection)
                    page.attach()
                    yield page
                    page.call("Browser.close")
                process.wait(_PATIENCE_S)
            finally:
                process.kill()


def _debugger(port_file: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        lines = port_file.read_text().split() if port_file.is_file() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(_PAUSE_S)
    raise RuntimeError(f"{process.args!r} did not start (exit code {process.returncode})")


@dataclass
class Page:
    """A page that a visitor looks at. It takes in its events whenever a method is called."""

    connection: ClientConnection
    session: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    canned: dict[str, Any] = field(default_factory=dict)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        number = self._send(method, params)
        while True:
            said = json.loads(self.connection.recv(timeout=_PATIENCE_S))
            if said.get("id") == number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']}")
                result: dict[str, Any] = said["result"]
                return result
            self.events.append(said)
            if said.get("method") == "Fetch.requestPaused":
                self._send("Fetch.fulfillRequest", {"requestId": said["params"]["requestId"], **self.canned})

    def _send(self, method: str, params: dict[str, Any]) -> int:
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        # What concerns the browser or its tabs is asked without the session of a tab.
        in_tab = self.session is not None and not method.startswith(("Browser.", "Target."))
        self.connection.send(json.dumps(message | ({"sessionId": self.session} if in_tab else {})))
        return number

    def attach(self) -> None:
        """Attach to the tab that the browser came with."""
        tabs = self.call("Target.getTargets")["targetInfos"]
        tab = next(tab["targetId"] for tab in tabs if tab["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Load an address anew, and forget what was noted before."""
        self.resize(width, height)
        self.prefer(scheme)
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    @contextmanager
    def answering(self, path: str, status: int, body: str, headers: dict[str, str]) -> Iterator[None]:
        """Answer requests to a path in place of the server, inside the block."""
        self.canned = {
            "responseCode": status,
            "responseHeaders": [{"name": name, "value": value} for name, value in headers.items()],
            "body": base64.b64encode(body.encode()).decode(),
        }
        self.call("Fetch.enable", patterns=[{"urlPattern": f"*/{path}"}])
        try:
            yield
        finally:
            self.call("Fetch.disable")

    def js(self, expression: str) -> Any:
        """Evaluate JavaScript; a promise is awaited."""
        said = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in said:
            raise RuntimeError(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def text(self, selector: str) -> str:
        """What an element says, seen or unseen."""
        text: str = self.js(f"document.querySelector({json.dumps(selector)}).textContent")
        return " ".join(text.split())

    def texts(self, selector: str) -> list[str]:
        """What all such elements say."""
        found: list[str] = self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")
        return found

    def count(self, selector: str) -> int:
        """How many such elements there are."""
        return len(self.texts(selector))

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self.js(f"Boolean({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}\n{self.js('document.body.innerText')}")
            time.sleep(_PAUSE_S)

    def wait_text(self, selector: str, text: str) -> None:
        """Wait until an element says something."""
        self.wait(f"document.querySelector({json.dumps(selector)})?.textContent.includes({json.dumps(text)})")

    def click(self, selector: str) -> None:
        """Click with the mouse, in the middle of the element."""
        x, y = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, *, times: int = 1, shift: bool = False) -> None:
        """Press a key."""
        code, number, text = _KEYS[key]
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": _SHIFT if shift else 0}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def tab_to(self, condition: str, *, backwards: bool = False, most: int = 40) -> None:
        """Press Tab until the focused element ``e`` fulfils a condition."""
        for _ in range(most):
            self.press("Tab", shift=backwards)
            if self.js(f"(e => {condition})(document.activeElement)"):
                return
        raise AssertionError(f"Tab never reaches: {condition}")

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def prefer(self, scheme: str, *, motion: str = "reduce") -> None:
        """Set what the visitor prefers."""
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self.call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features.items()]
        )

    def picture(self, path: Path) -> None:
        """Save what is seen, all of it, as PNG."""
        said = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(said["data"]))

    def requested(self) -> list[str]:
        """The addresses that were requested; ``data:``, which the browser's own controls draw with, is none."""
        sent = [event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [address for address in sent if not address.startswith("data:")]

    def complaints(self) -> list[str]:
        """What the console shows as an error: exceptions, failed loads, breaches of the content policy."""
        logged = [event["params"]["entry"] for event in self._events("Log.entryAdded")]
        spoken = [event["params"] for event in self._events("Runtime.consoleAPICalled")]
        return [
            *(json.dumps(event["params"]) for event in self._events("Runtime.exceptionThrown")),
            *(f"{entry['text']} {entry.get('url', '')}" for entry in logged if entry["level"] in ("error", "warning")),
            *(json.dumps(said) for said in spoken if said["type"] in ("error", "warning", "assert")),
        ]

    def _events(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("method") == name]
