# SPDX-License-Identifier: MIT
"""A lock is released by force: who is asked what, and what comes of it."""
from __future__ import annotations

import os

from selenium.webdriver.common.keys import Keys

from browser import Browser, eventually
from service import Lock, Service
from stories_auth import enter
from stories_details import close_details, facts, open_details


def holder(service: Service, lock: Lock) -> int:
    """The number; 0: none."""
    status, answer = service.call("GET", lock.path)
    assert status == 200, answer
    return int(answer.get("fencing_token", 0))


def press(browser: Browser, name: str) -> None:
    browser.find(f"#{name}")[0].click()


def is_asked(browser: Browser) -> bool:
    return browser.find("#force-dialog")[0].is_displayed()


def force(browser: Browser) -> None:
    press(browser, "force")
    assert is_asked(browser)
    press(browser, "force-do")
    eventually(lambda: not is_asked(browser), "an answer")


def a_lock_is_released_by_force(browser: Browser, service: Service) -> None:
    lock = service.acquire("stuck", owner="web-3")
    browser.open("/")
    open_details(browser, "stuck")
    browser.press(Keys.TAB)
    assert browser.focused() == {"name": "force", "isSeen": True}
    browser.press(Keys.ENTER)
    assert is_asked(browser)
    assert browser.focused() == {"name": "force-cancel", "isSeen": True}
    shown = facts(browser, "force")
    assert shown["Resource"] == "stuck" and shown["Holder"] == "web-3", shown
    assert shown["Fencing token"] == str(lock.fencing_token), shown
    assert shown["Expires in"].endswith(" s"), shown
    assert "It is not notified" in browser.text("#force-means")
    browser.is_accessible()
    browser.looks_good()
    for key in (Keys.ESCAPE, Keys.ENTER):  # Enter: Cancel has the focus
        browser.press(key)
        eventually(lambda: not is_asked(browser), "it is cancelled")
        assert browser.focused()["name"] == "force", browser.focused()
        assert holder(service, lock) == lock.fencing_token
        browser.press(Keys.ENTER)
        assert is_asked(browser)
    browser.press(Keys.TAB)
    focused = browser.focused()
    assert focused["name"] == "force-do", focused
    assert browser.text("#force-do") == \
        f"Release {lock.fencing_token} by force"
    browser.requests()
    browser.press(Keys.ENTER)
    eventually(lambda: facts(browser) == {"Holder": "nobody"}, "it is released")
    assert browser.text("#force-news") == \
        f"The lock with the fencing token {lock.fencing_token} was released by force."
    assert not browser.text("#force-failure")
    assert not is_asked(browser)
    assert browser.focused()["name"] == "details-title", browser.focused()
    assert holder(service, lock) == 0
    sent = [url for url in browser.requests() if "force=" in url]
    assert sent == [f"{service.origin}{lock.path}?force={lock.fencing_token}"]
    status, answer = service.call("PUT", lock.path + "/extend", {},
                                  lock.token)
    assert (status, answer["code"]) == (404, "lock_not_found"), answer
    close_details(browser)


def a_newer_holder_keeps_its_lock(browser: Browser, service: Service) -> None:
    first = service.acquire("passed on", owner="web-1")
    browser.open("/")
    open_details(browser, "passed on")
    press(browser, "force")
    service.release(first)
    second = service.acquire("passed on", owner="web-2")
    eventually(lambda: facts(browser)["Holder"] == "web-2", "the new holder")
    assert facts(browser, "force")["Holder"] == "web-1"
    press(browser, "force-do")
    eventually(lambda: "another client holds" in browser.text("#force-failure"),
               "it is told")
    assert browser.find("#force-failure[role=alert]")
    assert not browser.text("#force-news")
    assert holder(service, second) == second.fencing_token
    assert facts(browser)["Fencing token"] == str(second.fencing_token)
    press(browser, "force")
    service.release(second)
    press(browser, "force-do")
    eventually(lambda: "nobody holds" in browser.text("#force-failure"),
               "it was free")
    close_details(browser)


def all_readers_are_released(browser: Browser, service: Service) -> None:
    readers = [service.acquire("catalog", mode="shared", owner=f"web-{n}")
               for n in range(3)]
    browser.open("/")
    open_details(browser, "catalog")
    eventually(lambda: facts(browser)["Holder"] == "3 readers", "the readers")
    press(browser, "force")
    assert browser.text("#force-do") == "Release 3 readers by force"
    assert "all readers that hold the lock" in browser.text("#force-means")
    press(browser, "force-do")
    eventually(lambda: facts(browser) == {"Holder": "nobody"}, "all are gone")
    assert "All readers" in browser.text("#force-news")
    for reader in readers:
        assert service.call("DELETE", reader.path, token=reader.token)[0] == 404
    close_details(browser)


def a_permit_is_released_by_its_id(browser: Browser, service: Service) -> None:
    permits = [service.acquire("exports", limit=2) for _ in range(2)]
    browser.open("/")
    _, answer = service.call("GET", permits[0].path)
    open_details(browser, f"exports, slot {answer['slots'][0]}")
    force(browser)
    eventually(lambda: facts(browser) == {"Holder": "nobody"}, "it is released")
    assert holder(service, permits[0]) == 0
    assert holder(service, permits[1]) == permits[1].fencing_token
    service.release(permits[1])
    close_details(browser)


def a_foreign_lock_is_not_offered(browser: Browser, service: Service) -> None:
    service.lock_elsewhere("foreign")
    browser.open("/")
    open_details(browser, "foreign")
    assert not browser.find("#force")[0].is_displayed()
    assert "it has no fencing token" in browser.text("#force-why")
    assert facts(browser)["Fencing token"] == "none"
    browser.is_accessible()
    service.unlock_elsewhere("foreign")
    eventually(lambda: facts(browser) == {"Holder": "nobody"}, "it is free")
    assert not browser.text("#force-why")
    close_details(browser)


def force_at(browser: Browser, token: str, lock: Lock) -> None:
    browser.run("sessionStorage.clear()")
    browser.open("/")
    enter(browser, token)
    open_details(browser, lock.resource)
    force(browser)


def who_may_not_force_is_told(browser: Browser, service: Service) -> None:
    """At GUARDED."""
    lock = service.acquire("guarded", owner="web-3")
    with browser.at(os.environ["GUARDED"], 401, 403, 404):
        browser.open("/")
        force_at(browser, "reader-token", lock)
        eventually(lambda: "lacks the scope admin" in
                   browser.text("#force-why"), "it is told")
        assert "Nothing was released." in browser.text("#force-why")
        assert not browser.find("#force")[0].is_displayed()
        assert browser.focused()["name"] == "details-title"
        assert holder(service, lock) == lock.fencing_token
        browser.looks_good()
        force_at(browser, "operator-token", lock)
        eventually(lambda: facts(browser) == {"Holder": "nobody"},
                   "an operator may")
        assert holder(service, lock) == 0
        # without a token, the dialog does not hide the question for one
        lock = service.acquire("guarded")
        eventually(lambda: facts(browser)["Holder"] != "nobody", "it is held")
        press(browser, "force")
        browser.run("sessionStorage.setItem('token', 'no-such-token')")
        eventually(lambda: browser.find("#token")[0].is_displayed(), "it asks")
        assert not is_asked(browser)
        enter(browser, "operator-token")
        eventually(lambda: not browser.find("#token")[0].is_displayed(),
                   "a good token")
        browser.run("sessionStorage.clear()")
    service.release(lock)
