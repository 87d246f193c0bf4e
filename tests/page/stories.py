# SPDX-License-Identifier: MIT
"""What a person sees on the status page while things happen behind it."""
from __future__ import annotations

import os
import pathlib
import re
import time

from selenium.webdriver.common.keys import Keys

from browser import PHONE, WIDE, Browser, eventually
from service import HOSTILE, Lock, Service, traffic

PROMISE_S = 3.0  # until the page shows that a node is paused
PAUSES = 3       # a busy machine may keep the promise only in one of them
STATE, REASON, VOTES_IN = 1, 2, 4
OWNER, NUMBER, EXPIRES_IN, WAITERS, HELD_ON = 1, 2, 3, 4, 5
LINES = "#charts svg[role=img] .line0"


def is_shown(browser: Browser, line: str, detail: str) -> bool:
    return browser.text("#verdict-line") == line and \
        browser.text("#verdict-detail").startswith(detail)


def all_vote(browser: Browser) -> None:
    eventually(lambda: is_shown(browser, "Locking works.",
                                "5 of 5 nodes vote; 2 more may fail."),
               "all nodes vote")


def names_of(service: Service) -> list[str]:
    return list(service.nodes)


def seconds_of(text: str) -> int:
    """Of 1 min 5 s, or 59 s."""
    match = re.fullmatch(r"(?:(\d+) min )?(\d+) s", text)
    assert match, text
    return int(match[1] or 0) * 60 + int(match[2])


# ---- nodes ------------------------------------------------------------------

def the_quorum_is_the_first_thing_one_sees(browser: Browser,
                                           service: Service) -> None:
    browser.resize(*WIDE)
    browser.open("/")
    all_vote(browser)
    for node in names_of(service):
        assert browser.row(node)[STATE] == "voting", browser.row(node)
    assert browser.find("#pips .votes")[2].get_attribute("class") == \
        "votes last"
    assert browser.run("return document.title") == "Locking works – redlockd"
    size = browser.run("""return parseFloat(getComputedStyle(
        document.querySelector('#verdict-line')).fontSize)""")
    assert size > 24, size


def a_paused_node_is_shown_within_3_s(browser: Browser,
                                      service: Service) -> None:
    node = names_of(service)[1]
    took = []
    for _ in range(PAUSES):
        begin = time.monotonic()
        with service.paused([node]):
            eventually(lambda: browser.row(node)[STATE] != "voting",
                       "the pause")
            took.append(time.monotonic() - begin)
            eventually(lambda: is_shown(
                browser, f"Locking works, but {node} does not vote.",
                "4 of 5 nodes vote; 1 more may fail."), "one node is away")
            assert browser.row(node)[REASON] != ""
            assert f"{node} is" in browser.text("#news")
        all_vote(browser)
        if took[-1] <= PROMISE_S:
            break
    print(f"      a paused node was shown after "
          f"{', '.join(f'{one:.1f} s' for one in took)}")
    assert min(took) <= PROMISE_S, took


def without_a_quorum_it_says_so(browser: Browser, service: Service) -> None:
    nodes = names_of(service)
    with service.paused(nodes[:2]):
        eventually(lambda: is_shown(
            browser, "Locking works, but no other node may fail: "
            f"{nodes[0]} and {nodes[1]} do not vote.",
            "3 of 5 nodes vote, no more than are needed."), "no margin")
        browser.looks_good()
        with service.paused(nodes[2:3]):
            eventually(lambda: is_shown(
                browser, "No quorum: no lock is granted.",
                "2 of 5 nodes vote; 3 are needed."), "no quorum")
            assert browser.run("return document.title") == \
                "No quorum – redlockd"
            for node in nodes[:3]:
                assert browser.row(node)[STATE] != "voting", node
            browser.looks_good()
    all_vote(browser)


# ---- locks ------------------------------------------------------------------

def a_held_lock_and_its_waiters_are_shown(browser: Browser,
                                          service: Service) -> None:
    lock = service.acquire("order:42", owner="web-3")
    clients = [service.wait_for("order:42") for _ in range(2)]
    eventually(lambda: (browser.row("order:42") + [""] * 6)[WAITERS] == "2",
               "two clients wait")
    row = browser.row("order:42")
    assert row[OWNER] == "web-3", row
    assert row[NUMBER] == str(lock.fencing_token), row
    assert 0 < seconds_of(row[EXPIRES_IN]) <= 60, row
    assert row[HELD_ON] in ("at least 3 of 5", "at least 4 of 5", "5 of 5"), row
    eventually(lambda: "2 clients wait" in browser.text("#facts"), "the gauge")
    service.release(lock)
    for client in clients:
        client.join()
    eventually(lambda: not browser.row("order:42"), "it is released")


def readers_are_counted(browser: Browser, service: Service) -> None:
    locks = [service.acquire("catalog", mode="shared", owner=owner)
             for owner in ("web-1", "web-2")]
    eventually(lambda: (browser.row("catalog") + [""] * 2)[OWNER] ==
               "2 readers", "two readers")
    assert browser.row("catalog")[NUMBER] == "", browser.row("catalog")
    service.release(locks[0])
    eventually(lambda: browser.row("catalog")[OWNER] == "1 reader",
               "one of them is left")
    service.release(locks[1])
    eventually(lambda: not browser.row("catalog"), "it is released")


def hostile_names_are_only_text(browser: Browser, service: Service) -> None:
    locks = [service.acquire(name) for name in HOSTILE]
    for name in HOSTILE:
        eventually(lambda name=name: browser.row(name), f"a row of {name!r}")
    assert browser.run("return document.title") != "owned"
    assert not browser.find("td img, td script, td b")
    isolated = browser.run("""
        return [...document.querySelectorAll('td bdi')].every((it) =>
          getComputedStyle(it).unicodeBidi === 'isolate')""")
    assert isolated and browser.find("td bdi")
    browser.looks_good()
    for lock in locks:
        service.release(lock)


def a_prefix_and_show_more_narrow_and_widen(browser: Browser,
                                            service: Service) -> None:
    locks: list[Lock] = []
    for n in range(230):
        locks.append(service.acquire(f"many:{n:03}"))
    locks.append(service.acquire("other"))
    browser.find("#prefix")[0].send_keys("many:2")
    eventually(lambda: len(browser.find("#lock-rows tr")) == 30, "30 locks")
    assert "30 locks with this prefix." in browser.text("#locks-note")
    assert not browser.row("other")
    browser.find("#prefix")[0].send_keys(Keys.BACKSPACE)
    eventually(lambda: len(browser.find("#lock-rows tr")) in range(100, 231) and
               browser.find("#more")[0].is_displayed(), "a part of 230 locks")

    def press_until_all() -> bool:
        more = browser.find("#more")[0]
        if more.is_displayed():
            browser.run("arguments[0].click()", more)
        return len(browser.find("#lock-rows tr")) == 230 and \
            not more.is_displayed()
    eventually(press_until_all, "230 locks")
    browser.find("#prefix")[0].clear()
    browser.find("#prefix")[0].send_keys("none such")
    eventually(lambda: browser.text("#locks-note") ==
               "No locks with this prefix are held.", "no locks")
    browser.find("#prefix")[0].send_keys(Keys.CONTROL + "a", Keys.DELETE)
    eventually(lambda: browser.find("#lock-rows tr"), "all locks again")
    for lock in locks:
        service.release(lock)


# ---- traffic, keys, looks ---------------------------------------------------

def traffic_is_drawn(browser: Browser, service: Service) -> None:
    with traffic(service):
        eventually(lambda: re.search(r"done [1-9]\d*(?:\.\d)?",
                                     browser.text("#charts figure")),
                   "requests that are done")
        eventually(lambda: all("L" in (line.get_attribute("d") or "")
                               for line in browser.find(LINES)), "lines")
        eventually(lambda: re.search(r"median [\d.]+ ms\s+99% [\d.]+ m?s",
                                     browser.text("#charts")), "latency")
        eventually(lambda: re.search(r"409 held (?!0|–)[\d.]+",
                                     browser.text("#charts")), "refusals")
    label = browser.find("#charts svg[role=img]")[0].get_attribute("aria-label")
    assert label and label.startswith("Responses per second: done "), label


def all_of_it_is_reached_by_keyboard(browser: Browser,
                                     service: Service) -> None:
    lock = service.acquire("for the keyboard")
    browser.open("/")
    eventually(lambda: browser.row(lock.resource), "the locks")
    names = []
    for _ in range(5):
        browser.press(Keys.TAB)
        focused = browser.focused()
        assert focused["isSeen"], focused
        names.append(focused["name"])
    assert names == ["Skip to the locks", "API", "Metrics", "Runbook",
                     "prefix"], names
    browser.press("no")
    eventually(lambda: not browser.row(lock.resource), "the prefix narrows")
    browser.press(Keys.BACKSPACE, Keys.BACKSPACE)
    eventually(lambda: browser.row(lock.resource), "all locks again")
    browser.open("/")
    browser.press(Keys.TAB)
    browser.press(Keys.ENTER)
    browser.press(Keys.TAB)
    assert browser.focused()["name"] == "prefix", browser.focused()
    service.release(lock)


def a_quarantine_counts_down(browser: Browser, service: Service) -> None:
    node = names_of(service)[3]
    service.acquire("held:1", ttl_ms=60000)
    service.flush(node)
    eventually(lambda: browser.row(node)[STATE] == "quarantined" and
               seconds_of(browser.row(node)[VOTES_IN] or "0 s") > 20,
               "the quarantine")
    begin = seconds_of(browser.row(node)[VOTES_IN])
    assert begin <= 62, begin
    eventually(lambda: seconds_of(browser.row(node)[VOTES_IN]) <= begin - 3,
               "it counts down")
    assert browser.row(node)[REASON] == "may have lost locksRunbook"


def pictures_are_taken(browser: Browser, service: Service) -> None:
    """For the docs: one node is in quarantine, and clients wait."""
    folder = pathlib.Path(os.environ.get("PICTURES", "build/page"))
    node = names_of(service)[1]
    browser.resize(*WIDE)
    browser.prefer("light")
    browser.open("/")
    with traffic(service):
        time.sleep(float(os.environ.get("PICTURES_S", "5")))  # lines grow
        locks = [service.acquire(name, owner=owner, ttl_ms=ttl_ms)
                 for name, owner, ttl_ms in (
                     ("invoice:2026-11", "billing-1", 60000),
                     ("order:42", "web-3", 30000),
                     ("order:97", "web-1", 45000),
                     ("report/daily", "cron@batch-2", 60000))]
        time.sleep(0.5)  # they get onto all nodes
        service.flush(node)
        clients = [service.wait_for("order:42") for _ in range(3)]
        eventually(lambda: (browser.row("order:42") + [""] * 6)[WAITERS] == "3"
                   and "3 clients wait" in browser.text("#facts")
                   and browser.row(node)[VOTES_IN], "all that is to be shown")
        browser.picture(folder / "page.png", 2000)
        browser.looks_good()
        browser.resize(*PHONE)
        browser.prefer("dark")
        browser.picture(folder / "page-phone.png", 1200)
    browser.prefer("light")
    browser.resize(*WIDE)
    for lock in locks:
        service.release(lock)
    for client in clients:
        client.join()
