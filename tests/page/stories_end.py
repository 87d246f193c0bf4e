# SPDX-License-Identifier: MIT
"""What a person sees when the server hangs, and when it has died: no story can
come after these."""
from __future__ import annotations

import os
import signal
import time

from browser import Browser, eventually
from service import Service
from stories import EXPIRES_IN, all_vote, seconds_of
from stories_details import open_details

NO_ANSWER = "This server does not respond."


def no_error_and_no_request_elsewhere(browser: Browser, _: Service) -> None:
    assert browser.requests()
    assert not browser.elsewhere, browser.elsewhere
    errors = browser.unexpected_errors()
    assert not errors, errors


def a_server_that_hangs_is_told(browser: Browser, service: Service) -> None:
    lock = service.acquire("hung")
    browser.open("/")
    open_details(browser, lock.resource)
    os.kill(service.pid, signal.SIGSTOP)
    try:
        eventually(lambda: browser.text("#verdict-line") == NO_ANSWER,
                   "it hangs")
        assert browser.find("#verdict-line[aria-live=assertive]")
        left_s = seconds_of(browser.row(lock.resource)[EXPIRES_IN])
        eventually(lambda: seconds_of(
            browser.row(lock.resource)[EXPIRES_IN]) < left_s, "time goes on")
        assert browser.text("#updated").startswith("Last response ")
        assert browser.text("#verdict-detail").startswith("Last known: ")
        eventually(lambda: ", as of " in browser.text("#locks-note"),
                   "the list is old")
        assert browser.run("return document.title") == "No response – redlockd"
        eventually(lambda: browser.text("#details-failure").startswith(
            "This server does not respond."), "the details are old")
        browser.looks_good()
    finally:
        os.kill(service.pid, signal.SIGCONT)
    all_vote(browser)
    eventually(lambda: ", as of " not in browser.text("#locks-note"),
               "the list is new again")
    eventually(lambda: not browser.text("#details-failure"),
               "the details are new again")
    eventually(lambda: browser.run("return document.title") ==
               "Locking works – redlockd", "the title of before")
    service.release(lock)


def a_server_that_died_is_told(browser: Browser, service: Service) -> None:
    eventually(lambda: "Locking works" in browser.text("#verdict-line"),
               "the page")
    os.kill(service.pid, signal.SIGKILL)
    eventually(lambda: browser.text("#verdict-line") == NO_ANSWER, "it died")
    eventually(lambda: ", as of " in browser.text("#locks-note"),
               "the list is old")
    asked = []
    browser.requests()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        asked += browser.requests()
        time.sleep(0.5)
    watches = [url for url in asked if "?after=" in url]
    # without a backoff, it would be 50 of the details, and 18 others
    assert 0 < len(watches) <= 5, watches
    assert 0 < len(asked) - len(watches) <= 12, asked
