"""Headless Chromium through its own debugging pipe: no driver, no port, nothing to install but the browser."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """The browser's path, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page.

    Attributes:
        events: What the page reported since it was opened: console messages, exceptions, requests.
    """

    def __init__(self, path: str, profile: Path):
        low_there, self._out = os.pipe()
        self._in, low_too = os.pipe()
        # out of the way of the two numbers that they get in the end
        read_there, write_there = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (low_there, low_too))
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-extensions", "--disable-background-networking", "--disable-component-update",
                 "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}",
                 "about:blank"]  # fmt: skip
        # Chromium reads commands from descriptor 3 and answers on 4
        script = f'exec 3<&{read_there} 4>&{write_there}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", script, path, *flags],
            pass_fds=(read_there, write_there),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (low_there, low_too, read_there, write_there):
            os.close(end)
        self._buffer, self._number, self._session = b"", 0, None
        self.events: list[dict] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(info["targetId"] for info in targets if info["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _read(self) -> dict:
        while b"\0" not in self._buffer:
            got = os.read(self._in, 1 << 16)
            if not got:
                raise RuntimeError("Chromium went away")
            self._buffer += got
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **params):
        """One command of the DevTools protocol; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self.events.append(found)

    def open(self, url: str, width: int = 1000, height: int = 800, dark: bool = False) -> None:
        """Load a page at a size and in a colour scheme, and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def evaluate(self, code: str):
        """The value of a JavaScript expression in the page (run by the debugger, which the page's policy allows)."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """One key, as a keyboard would send it."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key if key != " " else "Space",
                      windowsVirtualKeyCode=code, **more)  # fmt: skip

    def complaints(self) -> list[str]:
        """Console errors and warnings, violations of the policy and uncaught exceptions since the page was opened."""
        found = []
        for event in self.events:
            match event.get("method"), event.get("params", {}):
                case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                    found.append(details.get("text"))
                case "Runtime.consoleAPICalled", {"type": "error" | "warning" | "assert", "args": said}:
                    found.append(str(said))
                case "Log.entryAdded", {"entry": {"level": "error" | "warning", "text": text}}:
                    found.append(text)
        return found

    def requests(self) -> list[str]:
        """What the page asked for since it was opened, itself included."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def close(self) -> None:
        """End the browser, which goes with its pipe."""
        os.close(self._out)
        os.close(self._in)
        self._process.wait(30)


OVERFLOW = "document.scrollingElement.scrollWidth"
UNFOLD = "document.querySelectorAll('details').forEach(d => { d.open = true; })"
# WCAG 2: the contrast of each text with the first opaque ground behind it, where it is less than it must be
CONTRAST = """(() => {
  const read = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = c => { const [r, g, b] = c.map(v => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) {
    const c = read(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c.slice(0, 3); }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255]; };
  // text in a drawing stands on the last filled shape before it that holds its middle
  const behind = t => { const box = t.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    let found = ground(t.closest('svg'));
    for (const s of t.closest('svg').querySelectorAll('path')) {
      if (s.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_PRECEDING || s.closest('defs')) continue;
      const f = getComputedStyle(s).fill, b = s.getBoundingClientRect();
      if (!f.startsWith('rgb') || x < b.left || x > b.right || y < b.top || y > b.bottom) continue;
      found = read(f).slice(0, 3); }
    return found; };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement, text = node.textContent.trim();
    if (!text || ['SCRIPT', 'STYLE', 'title', 'desc'].includes(e.tagName) || !e.getClientRects().length) continue;
    const drawn = e.closest('svg'), style = getComputedStyle(e);
    const [a, b] = [light(read(drawn ? style.fill : style.color).slice(0, 3)), light(drawn ? behind(e) : ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([text, ratio]);
  }
  return bad;
})()"""


def check_page(browser, url, width, dark):
    """What holds for every page in a browser: nothing loaded or complained of, nothing too wide, no text too pale."""
    browser.open(url, width, dark=dark)
    browser.evaluate(UNFOLD)
    assert browser.complaints() == []
    assert [request for request in browser.requests() if not request.startswith("data:")] == [url]
    assert browser.evaluate(OVERFLOW) == width
    assert browser.evaluate(CONTRAST) == []
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.images.length") == 0
    # what is wider than the page scrolls in a box that the keyboard reaches
    boxes = "[...document.querySelectorAll('.scroll')].every(b => b.tabIndex === 0 && b.ariaLabel)"
    assert browser.evaluate(boxes)
