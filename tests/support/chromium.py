"""Headless Chromium, driven by Selenium."""

from __future__ import annotations

import json
import shutil
import time
from typing import Any

from selenium import webdriver

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found() -> tuple[str, str] | None:
    """The paths of the browser and its driver, if there are both."""
    browser, driver = (
        next(filter(None, map(shutil.which, NAMES)), None),
        shutil.which("chromedriver"),
    )
    return (browser, driver) if browser and driver else None


class Browser:
    """One browser with one page."""

    def __init__(self, browser: str, driver: str):
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars",
                     "disable-background-networking", "disable-component-update"):  # fmt: skip
            options.add_argument(f"--{flag}")
        options.set_capability(
            "goog:loggingPrefs", {"performance": "ALL", "browser": "WARNING"}
        )
        self._driver = webdriver.Chrome(options, webdriver.ChromeService(driver))
        self.close = self._driver.quit

    def call(self, method: str, **params: Any) -> Any:
        """One command of the DevTools protocol."""
        return self._driver.execute_cdp_cmd(method, params)

    def open(
        self, url: str, width: int = 1000, height: int = 800, dark: bool = False
    ) -> None:
        """Load a page at a size and in a colour scheme, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._driver.get("about:blank")  # else another part of a page is no load
        for kind in ("performance", "browser"):
            self._driver.get_log(kind)  # which empties it
        self._driver.get(url)
        for _ in range(100):  # the debugger can still be at the blank page
            at = self.evaluate("document.readyState + location.href.split('#')[0]")
            if at == "complete" + url.partition("#")[0]:
                break
            time.sleep(0.1)

    def evaluate(self, code: str) -> Any:
        """The value of a JavaScript expression in the page (run by the debugger, which the page's policy allows)."""
        found = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """One key, by its name among Selenium's."""
        webdriver.ActionChains(self._driver).send_keys(
            getattr(webdriver.Keys, key)
        ).perform()

    def complaints(self) -> list[str]:
        """Console errors and warnings, violations of the policy and uncaught exceptions since the page was opened."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """What the page asked for since it was opened, itself included."""
        events = [
            json.loads(entry["message"])["message"]
            for entry in self._driver.get_log("performance")
        ]
        sent = [
            event["params"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [params["request"]["url"] for params in sent]


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
    assert [
        request for request in browser.requests() if not request.startswith("data:")
    ] == [url.partition("#")[0]]
    assert browser.evaluate(OVERFLOW) == width
    assert browser.evaluate(CONTRAST) == []
    scripts = "[...document.scripts].filter(s => s.type !== 'application/json').length"
    assert browser.evaluate(scripts) == 1
    assert browser.evaluate("document.images.length") == 0
    # what is wider than the page scrolls in a box that the keyboard reaches
    boxes = "[...document.querySelectorAll('.scroll')].every(b => b.tabIndex === 0 && b.ariaLabel)"
    assert browser.evaluate(boxes)
