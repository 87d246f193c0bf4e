# SPDX-License-Identifier: MIT
"""What a person sees of a server that has an auth file.

It serves at GUARDED, over the same nodes; there is a token that may read, and
one that may only lock.
"""
from __future__ import annotations

import os

from selenium.webdriver.common.keys import Keys

from browser import Browser, eventually
from service import Service


def enter(browser: Browser, token: str) -> None:
    eventually(lambda: browser.find("#token")[0].is_displayed(),
               "it requires a token")
    assert browser.run("return document.activeElement.id") == "token-text"
    browser.press(token, Keys.ENTER)


def works(browser: Browser) -> bool:
    """Even if a node that was flushed does not vote yet."""
    return browser.text("#verdict-line").startswith("Locking works")


def is_closed(browser: Browser) -> bool:
    return not any(browser.find(f"#{name}")[0].is_displayed()
                   for name in ("verdict", "locks", "charts"))


def looks_refused(browser: Browser) -> None:
    """No outage: it is not red, and leads to no alert."""
    assert browser.run("return document.title") == "Refused – redlockd"
    level = browser.find("#verdict")[0].get_attribute("data-level")
    assert level == "unknown", level
    assert not browser.find("#verdict .to-runbook")
    browser.looks_good()
    browser.is_accessible()


def a_server_with_an_auth_file_asks_for_a_token(browser: Browser,
                                                service: Service) -> None:
    with browser.at(os.environ["GUARDED"], 401, 403):
        browser.open("/")
        eventually(lambda: browser.find("#token")[0].is_displayed(), "it asks")
        assert is_closed(browser)
        assert browser.run("return document.title") == "Token needed – redlockd"
        browser.looks_good()
        enter(browser, "no-such-token")
        eventually(lambda: browser.text("#token-why") ==
                   "The server does not know this access token.", "a wrong token")
        assert is_closed(browser)
        enter(browser, "é")
        eventually(lambda: browser.text("#token-why") == "This is not a valid access token.",
                   "no token at all")
        enter(browser, "locker-token")
        eventually(lambda: "lacks the scope read" in browser.text("#verdict-line"),
                   "who may not read is told")
        assert not browser.find("#token")[0].is_displayed()
        assert "lacks the scope read" in browser.text("#locks-note")
        looks_refused(browser)
        browser.find("#other-token")[0].click()
        enter(browser, "measurer-token")
        eventually(lambda: "lacks the scope metrics" in browser.text("#facts"),
                   "who may not see the metrics is told")
        eventually(lambda: works(browser), "it may read")
        assert not browser.find("#charts")[0].is_displayed()
        browser.run("sessionStorage.clear()")
        enter(browser, "reader-token")
        eventually(lambda: works(browser), "a good token")
        lock = service.acquire("guarded")
        eventually(lambda: browser.row("guarded"), "the locks")
        eventually(lambda: "connection" in browser.text("#facts"), "the metrics")
        service.release(lock)
        assert not browser.find("#token")[0].is_displayed()
        browser.run("location.reload()")
        eventually(lambda: works(browser), "the token is kept in the tab")
        asked = browser.leave()
        assert asked and not any("token" in url for url in asked), asked
    browser.open("/")
    eventually(lambda: works(browser), "the other server asks for none")
    browser.requests()
