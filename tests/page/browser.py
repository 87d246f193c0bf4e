# SPDX-License-Identifier: MIT
"""A headless Chromium, and what a test asks of the page it shows."""
from __future__ import annotations

import contextlib
import json
import pathlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import axe_core_python
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

# in which a busy machine does anything that does not hang
DEADLINE_S = 60.0
WIDE, PHONE = (1200, 900), (360, 780)
AXE = (pathlib.Path(axe_core_python.__file__).parent /
       "axe.min.js").read_text()
# WCAG 2.1, levels A and AA
RULES = """
const done = arguments[0];
axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})
  .then(({violations, passes}) => done([passes.length, violations.map(
    ({id, nodes}) => `${id}: ${nodes.map((it) => it.html).join(' ')}`)]));
"""
AUDIT = (pathlib.Path(__file__).parent / "audit.js").read_text()


def eventually(found: Callable[[], Any], what: str,
               deadline_s: float = DEADLINE_S) -> Any:
    """The first value that is true; asks ten times a second."""
    end = time.monotonic() + deadline_s
    while not (value := found()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(0.1)
    return value


class Browser:
    def __init__(self, origin: str, *arguments: str) -> None:
        self.origin = origin
        self.elsewhere: set[str] = set()
        self.watches: set[str] = set()
        self.watches_most = 0
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--lang=en",
                         "--disable-dev-shm-usage", "--hide-scrollbars",
                         "--force-device-scale-factor=1", *arguments):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs",
                               {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(
            options, webdriver.ChromeService("/usr/bin/chromedriver"))
        # axe reads a page of 3,600 elements, on a machine that may be busy
        self.driver.set_script_timeout(180)

    def quit(self) -> None:
        self.driver.quit()

    # ---- what it shows ------------------------------------------------------

    def open(self, path: str) -> None:
        self.driver.get(self.origin + path)

    def resize(self, width: int, height: int) -> None:
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": False})

    def prefer(self, scheme: str) -> None:
        """light or dark"""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """What is visible of the first one; "" if there is none."""
        return str(self.run(
            "return document.querySelector(arguments[0])?.innerText ?? ''",
            selector))

    def row(self, name: str) -> list[str]:
        """The texts of the row whose first cell is this; [] if there is none."""
        texts = self.run("""
            for (const row of document.querySelectorAll('tbody tr')) {
              if (row.cells[0].textContent === arguments[0]) {
                return [...row.cells].map((cell) => cell.textContent);
              }
            }
            return [];""", name)
        return list(texts)

    def picture(self, path: pathlib.Path, height_max: int) -> None:
        self.run("scrollTo(0, 0)")
        width, height = self.run("""
            return [innerWidth, document.body.getBoundingClientRect().height]
            """)
        self.resize(width, min(int(height), height_max))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    # ---- keys ---------------------------------------------------------------

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> dict[str, Any]:
        """What has the focus: its text or id, and whether one sees that."""
        return dict(self.run("""
            const it = document.activeElement;
            const style = getComputedStyle(it);
            const box = it.getBoundingClientRect();
            return {
              name: it.id || it.textContent.trim(),
              isSeen: style.outlineStyle !== 'none' &&
                      parseFloat(style.outlineWidth) >= 2 &&
                      box.width > 0 && box.top >= 0 &&
                      box.bottom <= innerHeight,
            };"""))

    # ---- what must not be ---------------------------------------------------

    def errors(self) -> list[str]:
        """What the console got since the last call, network errors included."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]

    def unexpected_errors(self) -> list[str]:
        """Without those of a time without a quorum, when there is no list, and
        of a release that had no effect."""
        return [error for error in self.errors() if not re.search(
            r"/locks\?\S* - .* status of 503 |"
            r"/locks/\S+\?force=\S* - .* status of (404|409) ", error)]

    def requests(self) -> list[str]:
        """The URLs that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"]
                  for entry in self.driver.get_log("performance")]
        for event in events:
            self.count_watches(event["method"], event["params"])
        urls = [event["params"]["request"]["url"] for event in events
                if event["method"] == "Network.requestWillBeSent"]
        self.elsewhere |= {url for url in urls
                           if not url.startswith(self.origin + "/")
                           and url != "about:blank"}
        return urls

    def count_watches(self, method: str, event: Any) -> None:
        """Keeps those that are under way, and how many there were at most."""
        name = event.get("requestId")
        if method == "Network.requestWillBeSent" and \
                "?after=" in event["request"]["url"]:
            self.watches.add(name)
        if method in ("Network.loadingFinished", "Network.loadingFailed"):
            self.watches.discard(name)
        self.watches_most = max(self.watches_most, len(self.watches))

    def leave(self) -> list[str]:
        """The same, when the page asks for nothing any more."""
        self.driver.get("about:blank")
        return self.requests()

    @contextlib.contextmanager
    def at(self, origin: str, *statuses: int) -> Iterator[None]:
        """Another server, until the block ends. Its errors are told by the
        console: these, and no others."""
        errors = self.unexpected_errors()
        assert not errors, errors
        self.leave()
        before, self.origin = self.origin, origin
        try:
            yield
            self.leave()
        finally:
            self.origin = before
        for error in self.errors():
            assert any(f"status of {status}" in error
                       for status in statuses), error

    def looks_good(self) -> None:
        """No text is pale and nothing is cut, in both widths and schemes."""
        for width, height in (PHONE, WIDE):
            self.resize(width, height)
            for scheme in ("dark", "light"):
                self.prefer(scheme)
                for audit in ("findPale", "findWide"):
                    found = self.audit(audit)
                    assert not found, f"{width} px, {scheme}: {found}"

    def is_accessible(self) -> None:
        self.run(f"if (window.axe === undefined) {{ {AXE} }}")
        passed, found = self.driver.execute_async_script(RULES)
        assert passed > 5, passed
        assert not found, found

    def audit(self, name: str) -> list[Any]:
        """Runs one function of audit.js."""
        return list(self.run(f"{AUDIT}; return {name}()"))
