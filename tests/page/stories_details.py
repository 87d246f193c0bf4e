# SPDX-License-Identifier: MIT
"""What a person sees of one lock: who holds it, and who has held it since."""
from __future__ import annotations

import os
import time

from selenium.webdriver.common.keys import Keys

from browser import WIDE, Browser, eventually
from service import HOSTILE, Lock, Service
from stories_auth import enter

TIME, CHANGE, OWNER, NUMBER = range(4)
FREE = "free: released or expired"
FIRST = "held when you opened this"


def open_details(browser: Browser, name: str) -> None:
    """By keyboard, from the list."""
    eventually(lambda: browser.row(name), f"a row of {name!r}")
    eventually(lambda: browser.text("#facts"), "all that moves the list down")
    found = browser.run("""
        const opener = [...document.querySelectorAll('.opener')]
          .find((it) => it.textContent === arguments[0]);
        opener.focus();
        return opener.getAttribute('aria-expanded');""", name)
    assert found == "false", found
    browser.press(Keys.ENTER)
    assert browser.text("#details-name").strip() == name.strip()
    assert browser.focused()["name"] == "details-title"


def close_details(browser: Browser) -> None:
    browser.run("document.getElementById('details-close').focus()")
    browser.press(Keys.ENTER)
    assert not browser.find("#details")[0].is_displayed()


def facts(browser: Browser, of: str = "details") -> dict[str, str]:
    return dict(browser.run("""
        return [...document.querySelectorAll(`#${arguments[0]}-facts dt`)].map(
          (it) => [it.textContent, it.nextElementSibling.textContent]);""", of))


def handovers(browser: Browser) -> list[list[str]]:
    """The newest is first."""
    return list(browser.run("""
        return [...document.querySelectorAll('#handovers tr')].map(
          (row) => [...row.cells].map((cell) => cell.textContent));"""))


def changes(browser: Browser) -> list[tuple[str, str, str]]:
    return [(row[CHANGE], row[OWNER], row[NUMBER])
            for row in handovers(browser)]


def entry(change: str, owner: str, lock: Lock) -> tuple[str, str, str]:
    return change, owner, str(lock.fencing_token)


# ---- hand-overs -------------------------------------------------------------

def hand_overs_are_listed(browser: Browser, service: Service) -> None:
    browser.open("/")
    first = service.acquire("leader", owner="web-1")
    open_details(browser, "leader")
    assert changes(browser) == [entry(FIRST, "web-1", first)]
    shown = facts(browser)
    assert shown["Holder"] == "web-1", shown
    assert shown["Fencing token"] == str(first.fencing_token), shown
    browser.requests()
    service.release(first)
    eventually(lambda: len(changes(browser)) == 2, "it is free")
    assert facts(browser) == {"Holder": "nobody"}, facts(browser)
    assert not browser.find("#force")[0].is_displayed()
    second = service.acquire("leader", owner="web-2")
    eventually(lambda: len(changes(browser)) == 3, "the second holder")
    client = service.wait_for("leader")
    eventually(lambda: service.call("GET", second.path)[1]["waiters"] == 1,
               "a client waits")
    service.release(second)
    eventually(lambda: len(changes(browser)) >= 4, "the third holder")
    client.join()
    eventually(lambda: facts(browser) == {"Holder": "nobody"}, "it is free")
    rows = changes(browser)
    assert [row[0] for row in rows] in (
        [FREE, "acquired", "acquired", FREE, FIRST],  # it was held too shortly:
        [FREE, "acquired", FREE, FIRST]), rows
    assert entry("acquired", "web-2", second) in rows, rows
    assert (FREE, "", "") == rows[0], rows
    now, shown_time = browser.run("""
        return [Date.now(), Date.parse(
          document.querySelector('#handovers time').dateTime)]""")
    assert 0 <= now - shown_time < 60000
    browser.is_accessible()
    browser.looks_good()
    close_details(browser)


def the_watch_is_one_and_ends(browser: Browser, service: Service) -> None:
    locks = [service.acquire(f"watched:{n}") for n in range(2)]
    browser.open("/")
    for lock in locks:
        open_details(browser, lock.resource)
        eventually(lambda lock=lock: any(
            f"{lock.path}?after={lock.fencing_token}" in url
            for url in browser.requests()), "it is watched")
    eventually(lambda: browser.requests() and len(browser.watches) == 1,
               "the other watch ends")
    browser.watches_most = 1
    time.sleep(1.5)
    asked = [url for url in browser.requests() if "?after=" in url]
    assert all("/locks/watched:1?" in url for url in asked), asked
    assert browser.watches_most == 1, browser.watches_most
    assert browser.run("""return [...document.querySelectorAll(
        '.opener[aria-expanded=true]')].map((it) => it.textContent)""") == \
        ["watched:1"]
    close_details(browser)
    assert browser.focused()["name"] == "watched:1", browser.focused()
    browser.requests()
    time.sleep(1.5)
    asked = browser.requests()
    assert not [url for url in asked if "?after=" in url], asked
    assert not browser.watches
    for lock in locks:
        service.release(lock)


def a_hidden_tab_asks_nothing(browser: Browser, service: Service) -> None:
    first = service.acquire("hidden", owner="web-1")
    browser.open("/")
    open_details(browser, "hidden")
    eventually(lambda: browser.requests() and browser.watches, "a watch")
    browser.driver.minimize_window()
    assert browser.run("return document.hidden") is True
    eventually(lambda: browser.requests() is not None and not browser.watches,
               "it is not waited for")
    time.sleep(1)  # what else was under way when it was hidden
    browser.requests()
    service.release(first)
    second = service.acquire("hidden", owner="web-2")
    time.sleep(4)
    asked = browser.requests()
    before = changes(browser)
    browser.driver.set_window_size(*WIDE)
    assert not asked, asked
    assert before == [entry(FIRST, "web-1", first)], before
    eventually(lambda: any(url.endswith("/nodes")
                           for url in browser.requests()), "it asks again")
    eventually(lambda: len(changes(browser)) == 3, "what it is told later")
    rows = changes(browser)
    assert rows[0] == entry("acquired", "web-2", second), rows
    assert rows[1][0].startswith("not watched until "), rows
    service.release(second)
    close_details(browser)


def hand_overs_without_end_are_bounded(browser: Browser,
                                       service: Service) -> None:
    lock = service.acquire("busy")
    browser.open("/")
    open_details(browser, "busy")
    # faster than there are real ones: 0.2 s apart at least
    browser.run("""
        const rows = document.getElementById('handovers');
        for (let n = 1; n < 100; n++) {
          rows.append(rows.firstElementChild.cloneNode(true));
        }""")
    service.release(lock)
    eventually(lambda: changes(browser)[0][0] == FREE, "it is free")
    assert len(changes(browser)) == 100
    close_details(browser)


def hostile_names_are_only_text_there(browser: Browser,
                                      service: Service) -> None:
    locks = [service.acquire(name) for name in HOSTILE]
    browser.open("/")
    for name in HOSTILE:
        open_details(browser, name)
        browser.run("document.getElementById('force').click()")
        assert browser.run("""
            return document.querySelector('#force-facts bdi').textContent
            """) == name
        assert not browser.find("#details img, #details script, #details b, "
                                "dialog img, dialog script, dialog b")
        browser.looks_good()
        browser.run("document.getElementById('force-cancel').click()")
    assert browser.run("return document.title") != "owned"
    for lock in locks:
        service.release(lock)
    close_details(browser)


# ---- no answer --------------------------------------------------------------

# of the next watches, all but the last are refused; when each was asked for
REFUSED = """
const [refusals, retry_after_ms] = arguments;
window.reallyFetch ??= window.fetch;
window.askedAt = [];
window.fetch = (path, options) => {
  if (!path.includes('?after=')) {
    return reallyFetch(path, options);
  }
  askedAt.push(performance.now());
  return askedAt.length > refusals ? reallyFetch(path, options)
    : Promise.resolve(new Response(
        JSON.stringify({detail: 'too many clients wait', retry_after_ms}),
        {status: 429, headers: {'Content-Type': 'application/problem+json'}}));
};"""


def a_refused_watch_waits_before_it_is_repeated(browser: Browser,
                                                service: Service) -> None:
    lock = service.acquire("patient")
    browser.open("/")
    for refusals, retry_ms, least_ms in ((1, 2500, [2500]),
                                         (2, 0, [1000, 2000])):
        open_details(browser, "patient")
        browser.run(REFUSED, refusals, retry_ms)
        asked = eventually(lambda refusals=refusals: browser.run("""
            return askedAt.length > arguments[0] && askedAt""", refusals),
                           "it is repeated")
        gaps = [after - before for before, after in zip(asked, asked[1:])]
        assert all(gap >= least - 5 for gap, least in zip(gaps, least_ms)), gaps
        eventually(lambda: not browser.text("#details-failure"), "an answer")
        close_details(browser)
    service.release(lock)


def a_watch_that_is_refused_is_told(browser: Browser,
                                    service: Service) -> None:
    """At GUARDED, as an identity that may ask less often than the page does."""
    lock = service.acquire("refused")
    # no token, no metrics, too many requests
    with browser.at(os.environ["GUARDED"], 401, 403, 429):
        browser.open("/")
        browser.run("sessionStorage.clear()")
        enter(browser, "reader-token")
        open_details(browser, "refused")
        browser.run("sessionStorage.setItem('token', 'limited-token')")
        eventually(lambda: "rate of requests" in
                   browser.text("#details-failure"), "the limit")
        browser.looks_good()
        browser.run("sessionStorage.setItem('token', 'reader-token')")
        eventually(lambda: not browser.text("#details-failure"),
                   "it is asked again")
        assert any(row[0].startswith("not watched until ")
                   for row in changes(browser)), changes(browser)
        browser.run("sessionStorage.clear()")
    service.release(lock)
