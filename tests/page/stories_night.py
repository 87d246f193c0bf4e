# SPDX-License-Identifier: MIT
"""What a person sees who was woken up: most of it from answers that are made up,
since these moments are rare."""
from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import time
from typing import Any

from selenium.webdriver.common.keys import Keys

from browser import WIDE, Browser, eventually
from faking import (AHEAD, REFUSED_CONNECTION, SILENCE, WAKE, ahead, as_json,
                    faked, node, node_list, problem)
from ports import free_ports
from service import Service, traffic
from stories_details import facts, open_details

NO_ANSWER = "This server does not respond."
WORKS = "Locking works"
ROOT = pathlib.Path(__file__).resolve().parents[2]
REASON, CLOCK = 2, 5
WAITERS = 4
NOT_DURABLE = "admitted; not durable: appendonly is no, appendfsync is everysec"
STARTING = {"connecting", "admitting", "first_start"}


def headline(browser: Browser) -> str:
    return browser.text("#verdict-line")


def title(browser: Browser) -> str:
    return str(browser.run("return document.title"))


def level(browser: Browser) -> str:
    return str(browser.find("#verdict")[0].get_attribute("data-level"))


def page_text(browser: Browser) -> str:
    return browser.text("main")


def voters(count: int) -> list[dict[str, Any]]:
    return [node(f"redis{n}") for n in range(count)]


def runbook_of(browser: Browser, selector: str) -> str:
    """Where the link in there leads; "": there is none."""
    return str(browser.run("""
        const it = document.querySelector(`${arguments[0]} .to-runbook`);
        return it === null ? '' : it.getAttribute('href');""", selector))


def row_runbook(browser: Browser, name: str, column: int) -> str:
    return str(browser.run("""
        const row = [...document.querySelectorAll('#nodes tr')].find(
          (it) => it.cells[0].textContent === arguments[0]);
        const link = row?.cells[arguments[1]].querySelector('.to-runbook');
        return link ? link.getAttribute('href') : '';""", name, column))


def leads_somewhere(browser: Browser, href: str) -> bool:
    return bool(browser.run("""
        const it = document.getElementById(arguments[0].slice(1));
        return it !== null && it.textContent.length > 50 &&
          it.closest('#runbook') !== null;""", href))


def is_unfolded(browser: Browser, href: str) -> bool:
    return bool(browser.run("""
        const it = document.getElementById(arguments[0].slice(1));
        const box = it.getBoundingClientRect();
        return it.checkVisibility() && box.height > 0 && box.top >= 0 &&
          box.top < innerHeight;""", href))


# ---- nodes ------------------------------------------------------------------

def who_does_not_vote_is_in_the_headline(browser: Browser,
                                         _: Service) -> None:
    browser.open("/")
    long = "redis-" + "a" * 57 + ".cache.example.internal:6379"
    for nodes, line, name, section in (
            ([*voters(4), node("mute", "silent", "no answer for 3 s")],
             f"{WORKS}, but mute does not vote.", "4 of 5 nodes vote", ""),
            ([node(long, "unreachable", "Connection refused"), *voters(2)],
             f"{WORKS}, but no other node may fail: {long} does not vote.",
             "2 of 3 nodes vote", "#runbook-redlockdnonodetospare"),
            ([*voters(7), node("a", "loading"), node("b", "busy")],
             f"{WORKS}, but a and b do not vote.", "7 of 9 nodes vote", ""),
            ([*voters(6), *(node(it, "unreachable") for it in "abc")],
             f"{WORKS}, but 3 nodes do not vote.", "6 of 9 nodes vote", ""),
            ([*voters(2), *(node(it, "unreachable") for it in "abc")],
             "No quorum: no lock is granted.", "No quorum",
             "#runbook-redlockdnoquorum"),
            ([node("alone")], f"{WORKS}.", WORKS, ""),
            (voters(5), f"{WORKS}.", WORKS, "")):
        with faked(browser, nodes=[node_list(*nodes)]):
            eventually(lambda line=line: headline(browser) == line, line)
            assert title(browser) == f"{name} – redlockd", title(browser)
            found = runbook_of(browser, "#verdict")
            assert found == section, found
            assert browser.find("#verdict-line[aria-live]")
            if len(nodes) == 3:
                browser.looks_good()
                browser.is_accessible()


def states_of_operators() -> list[str]:
    """Each one that the docs know."""
    text = (ROOT / "docs/operations.md").read_text()
    table = text.split("\n## When a node does not vote\n")[1]
    rows = re.findall(r"^\| (`.*?) \|", table.split("\n## ")[0], re.M)
    return re.findall(r"`(\w+)`", " ".join(rows))


def each_bad_state_leads_to_the_runbook(browser: Browser, _: Service) -> None:
    browser.open("/")
    details = {"quarantined": "may have lost locks; votes again in 60 s",
               "no_permission": "its user lacks +del +pexpire"}
    sections = {"quarantined": "redlockdnodelostitsdata",
                "no_permission": "what-a-node-may-lack",
                "clock_stepped": "redlockdnodeclockstepped",
                "skewed": "redlockdnodeclockisoff",
                "clock_unproven": "redlockdnodeclockisoff"}
    states = [it for it in states_of_operators() if it not in STARTING]
    assert len(states) > 20, states
    for begin in range(0, len(states), 4):
        part = states[begin:begin + 4]
        nodes = [node(f"at-{state}", state, details.get(state, "why"))
                 for state in part]
        with faked(browser, nodes=[node_list(*voters(5), *nodes)]):
            eventually(lambda part=part: browser.row(f"at-{part[-1]}"), part)
            for state in part:
                href = row_runbook(browser, f"at-{state}", REASON)
                assert href == "#runbook-" + sections.get(
                    state, "redlockdnodenotvoting"), (state, href)
                assert leads_somewhere(browser, href), href
            assert row_runbook(browser, "redis1", REASON) == ""
    lacking = node("lacking", detail="admitted; its user lacks +scan")
    with faked(browser, nodes=[node_list(lacking, *voters(2))]):
        eventually(lambda: row_runbook(browser, "lacking", REASON) ==
                   "#runbook-what-a-node-may-lack", "what a node lacks")


def the_runbook_unfolds(browser: Browser, _: Service) -> None:
    """By key and pointer, also when nothing answers any more."""
    browser.open("/")
    nodes = node_list(*voters(4), node("mute", "silent", "no answer"))
    with faked(browser, nodes=[nodes, REFUSED_CONNECTION],
               metrics=[REFUSED_CONNECTION], locks=[REFUSED_CONNECTION]):
        eventually(lambda: row_runbook(browser, "mute", REASON), "the link")
        eventually(lambda: headline(browser) == NO_ANSWER, "the outage")
        assert runbook_of(browser, "#verdict") == "#runbook-redlockddown"
        browser.run("document.querySelector('#verdict .to-runbook').focus()")
        browser.press(Keys.ENTER)
        eventually(lambda: is_unfolded(browser, "#runbook-redlockddown"),
                   "what to do about the server")
        assert not is_unfolded(browser, "#runbook-redlockdnoquorum")
        browser.find("#nodes .to-runbook")[0].click()
        eventually(lambda: is_unfolded(browser,
                                       "#runbook-redlockdnodenotvoting"),
                   "what to do about the node")
        browser.find("#runbook-redlockdnodenotvoting a")[0].click()
        eventually(lambda: is_unfolded(browser,
                                       "#runbook-when-a-node-does-not-vote"),
                   "the table of states")
        browser.looks_good()
        browser.is_accessible()
    browser.open("/#runbook-redlockdnoquorum")
    eventually(lambda: is_unfolded(browser, "#runbook-redlockdnoquorum"),
               "from elsewhere")


def a_first_start_is_no_outage(browser: Browser, _: Service) -> None:
    browser.open("/")
    for states, line, expected in (
            (["connecting"] * 5, "No quorum yet", "less"),
            (["first_start"] * 4 + ["unreachable"], "No quorum yet", "less"),
            (["voting", "admitting", "admitting"], "No quorum yet", "less"),
            (["connecting"] + ["unreachable"] * 4, "No quorum", "bad")):
        nodes = [node(f"n{i}", state, "why") for i, state in enumerate(states)]
        with faked(browser, nodes=[node_list(*nodes)]):
            eventually(lambda states=states: [
                (browser.row(f"n{i}") + [""] * 2)[1].replace(" ", "_")
                for i in range(len(states))] == states, states)
            assert headline(browser) == f"{line}: no lock is granted."
            assert title(browser) == f"{line} – redlockd"
            assert level(browser) == expected, states
            for i, state in enumerate(states):
                href = row_runbook(browser, f"n{i}", REASON)
                good = state == "voting" or state in STARTING
                assert (href == "") == good, (state, href)
    waiting = [node(f"n{i}", "quarantined", "is new; votes in 66 s",
                    quarantine_ms=66000) for i in range(5)]
    with faked(browser, nodes=[node_list(*waiting)]):
        eventually(lambda: "A quorum is expected in 1 min" in
                   browser.text("#verdict-detail"), "until when")
        assert "votes in" not in browser.text("#nodes")


def clocks_apart_are_marked(browser: Browser, _: Service) -> None:
    browser.open("/")
    nodes = [node("good", clock_lead_ms=-250), node("late", clock_lead_ms=-251),
             node("early", clock_lead_ms=90000, clock_steps=2), node("new"),
             node("off", "skewed", "its clock is 900 ms ahead of the others; "
                                   "correct it", clock_lead_ms=900)]
    with faked(browser, nodes=[node_list(*nodes)]):
        eventually(lambda: browser.row("late"), "the nodes")
        section = "#runbook-redlockdnodeclockisoff"
        for name, href in (("good", ""), ("late", section), ("new", ""),
                           ("early", section), ("off", "")):
            assert row_runbook(browser, name, CLOCK) == href, name
        assert row_runbook(browser, "off", REASON) == section
        browser.looks_good()


def nothing_is_said_twice(browser: Browser, _: Service) -> None:
    browser.open("/")
    reason = "appendonly is no, appendfsync is everysec"
    other = "CONFIG GET is refused: NOPERM"
    plain = [node(f"plain{i}", detail=NOT_DURABLE) for i in range(3)]
    secret = node("secret", detail=f"admitted; not durable: {other}; "
                                   "its user lacks +scan")
    away = node("away", "quarantined", "may have lost locks; votes again "
                f"in 60 s; not durable: {reason}", quarantine_ms=60000)
    for nodes, notes in (
            (plain, [f"Not durable: all 3 nodes ({reason})."]),
            ([plain[0]], [f"Not durable: the node ({reason})."]),
            ([plain[0], *voters(2)], [f"Not durable: plain0 ({reason})."]),
            ([*plain, secret, away],
             [f"Not durable: plain0, plain1, plain2, away ({reason}).",
              f"Not durable: secret ({other})."])):
        with faked(browser, nodes=[node_list(*nodes)]):
            eventually(lambda notes=notes: browser.run("""
                return [...document.querySelectorAll('#node-notes bdi')].map(
                  (it) => it.textContent)""") == notes, notes)
            for href in browser.run("""
                    return [...document.querySelectorAll('#node-notes a')].map(
                      (it) => it.getAttribute('href'))"""):
                assert href == "#runbook-redlockdnodenotdurable"
                assert leads_somewhere(browser, href)
            text = page_text(browser)
            assert text.count(reason) == 1, text
    with faked(browser, nodes=[node_list(*plain, secret, away),
                               REFUSED_CONNECTION],
               metrics=[REFUSED_CONNECTION], locks=[REFUSED_CONNECTION]):
        eventually(lambda: browser.row("away"), "all of it")
        assert browser.row("away")[REASON] == "may have lost locksRunbook"
        assert browser.row("secret")[REASON] == "its user lacks +scanRunbook"
        text = page_text(browser)
        for once in ("may have lost", other, "its user lacks"):
            assert text.count(once) == 1, (once, text)
        assert "again in 60 s" not in text, text
        eventually(lambda: headline(browser) == NO_ANSWER, "an outage")
        eventually(lambda: ", as of " in browser.text("#locks-note"),
                   "the other parts have no answer either")
        assert page_text(browser).count("does not respond") == 1


# ---- the server -------------------------------------------------------------

def what_does_not_answer_claims_nothing(browser: Browser, _: Service) -> None:
    browser.open("/")
    for answer, line, section in (
            (SILENCE, NO_ANSWER, "#runbook-redlockddown"),
            (REFUSED_CONNECTION, NO_ANSWER, "#runbook-redlockddown"),
            ([502, "text/html", "<h1>Bad gateway</h1>"],
             "This server cannot respond: status 502.",
             "#runbook-redlockdservererrors"),
            (problem(503, "overloaded", "out of memory"),
             "This server cannot respond: out of memory.",
             "#runbook-redlockdservererrors"),
            ([200, "text/html", "<p>Log in</p>"],
             "The server at this address is not redlockd.", ""),
            (as_json({"nodes": {"ready": True}}),
             "The server at this address is not redlockd.", "")):
        with faked(browser, nodes=[node_list(*voters(5))]):
            eventually(lambda: headline(browser) == f"{WORKS}.", "all is well")
        with faked(browser, nodes=[answer]):
            eventually(lambda line=line: headline(browser) == line, line)
            assert WORKS not in page_text(browser)
            assert title(browser) == "No response – redlockd", title(browser)
            assert browser.text("#verdict-detail") == \
                "Last known: 5 of 5 nodes vote; 2 more may fail."
            assert runbook_of(browser, "#verdict") == section
            assert level(browser) == "bad"
            assert browser.find("#verdict-line[aria-live=assertive]")
            was = last_answer(browser)
            if answer is SILENCE:
                eventually(lambda was=was: last_answer(browser) > was + 1,
                           "it gets older")
        eventually(lambda: browser.text("#updated").startswith("Updated "),
                   "it answers again")
    browser.looks_good()


def last_answer(browser: Browser) -> int:
    found = re.fullmatch(r"Last response (\d+) s ago, at .*\d\d:\d\d:\d\d\.",
                         browser.text("#updated"))
    assert found, browser.text("#updated")
    return int(found[1])


def what_never_answered_is_told(browser: Browser, _: Service) -> None:
    errors = browser.unexpected_errors()
    assert not errors, errors
    for blocked in (["*/nodes"], ["*/nodes", "*/metrics", "*/locks*"]):
        browser.driver.execute_cdp_cmd("Network.enable", {})
        browser.driver.execute_cdp_cmd("Network.setBlockedURLs",
                                       {"urls": blocked})
        try:
            browser.open("/")
            eventually(lambda: headline(browser) == NO_ANSWER, "no answer")
            assert browser.text("#updated") == "It has not responded yet."
            assert browser.text("#verdict-detail") == ""
            assert WORKS not in page_text(browser)
            assert len(browser.find("#charts[hidden]")) == len(blocked) // 2
            browser.looks_good()
        finally:
            browser.driver.execute_cdp_cmd("Network.setBlockedURLs",
                                           {"urls": []})
        eventually(lambda: headline(browser).startswith(WORKS), "an answer")
    assert all("ERR_BLOCKED" in error for error in browser.errors())


def its_age_counts_on(browser: Browser, _: Service) -> None:
    """Before anything has failed, too."""
    browser.open("/")
    eventually(lambda: re.fullmatch(r"Updated [012] s ago\.",
                                    browser.text("#updated")), "an answer")
    with faked(browser, nodes=[SILENCE]):
        eventually(lambda: browser.text("#updated") == "Updated 3 s ago.",
                   "it gets older")
        eventually(lambda: headline(browser) == NO_ANSWER, "it is too old")
    eventually(lambda: headline(browser).startswith(WORKS), "an answer")
    # as after a night in which the machine slept: the clock is far ahead
    with faked(browser, nodes=[SILENCE]), ahead(browser, 7 * 3600):
        time.sleep(0.7)  # its next tick
        assert WORKS not in page_text(browser)
        assert browser.text("#updated").startswith("Last response 7 h 0 min ago")
    eventually(lambda: headline(browser).startswith(WORKS), "an answer")


def a_hidden_page_claims_nothing(browser: Browser, _: Service) -> None:
    browser.open("/")
    with faked(browser, nodes=[node_list(*voters(5))]):
        eventually(lambda: title(browser).startswith(WORKS), "it works")
        browser.driver.minimize_window()
        eventually(lambda: title(browser) == "Paused – redlockd", "it is hidden")
        time.sleep(0.7)  # its next tick, if it had one
        assert title(browser) == "Paused – redlockd"
        browser.driver.set_window_size(*WIDE)
        eventually(lambda: title(browser).startswith(WORKS), "it works")


def who_is_refused_sees_no_outage(browser: Browser, _: Service) -> None:
    browser.open("/")
    eventually(lambda: headline(browser).startswith(WORKS), "it works")
    for answer, line, is_fresh in (
            (problem(403, "forbidden", "web lacks the scope read"),
             "This server refuses the request: web lacks the scope read.", False),
            (problem(403, "foreign_origin", "another origin asks"),
             "This server refuses the request: another origin asks.", False),
            (problem(429, "rate_limited", "too many requests"),
             "This server refuses the request: too many requests.", True)):
        with faked(browser, nodes=[answer]):
            if is_fresh:  # what was known a moment ago is still as good
                with ahead(browser, 5):
                    time.sleep(0.7)  # its next tick
                    assert headline(browser).startswith(WORKS)
            browser.run(AHEAD, 11000 if is_fresh else 0)
            eventually(lambda line=line: headline(browser) == line, line)
            assert title(browser) == "Refused – redlockd"
            assert level(browser) == "unknown"
            assert runbook_of(browser, "#verdict") == ""
            assert browser.find("#other-token")[0].is_displayed() == \
                (answer[2]["code"] == "forbidden")
            assert WORKS not in page_text(browser)
            browser.run(AHEAD, 0)
        eventually(lambda: headline(browser).startswith(WORKS), "an answer")
    with faked(browser, metrics=[problem(403, "forbidden", "no scope metrics")]):
        eventually(lambda: "no scope metrics" in browser.text("#facts"), "why")
        assert not browser.find("#charts")[0].is_displayed()
        assert headline(browser).startswith(WORKS)
    with faked(browser, locks=[problem(403, "key_refused", "no +scan")]):
        eventually(lambda: "no +scan" in browser.text("#locks-note"), "why")
        assert headline(browser).startswith(WORKS)
    browser.open("/")


def a_server_that_stops_is_told(browser: Browser, service: Service) -> None:
    """One more over the same nodes, which a signal stops."""
    origin = browser.origin
    port = free_ports(1)[0]
    with subprocess.Popen(
            [os.environ.get("REDLOCKD", "build/redlockd"), "--listen",
             f"127.0.0.1:{port}", "--nodes", ",".join(service.nodes),
             "--log-level", "error", "--drain-ms", "5000"]) as server:
        try:
            browser.origin = f"http://127.0.0.1:{port}"
            eventually(lambda: is_served(browser), "it serves")
            eventually(lambda: headline(browser).startswith(WORKS), "it works")
            server.send_signal(signal.SIGTERM)
            eventually(lambda: headline(browser) ==
                       "This server is about to stop.", "it stops")
            assert title(browser) == "Stopping – redlockd"
            assert WORKS not in page_text(browser)
            eventually(lambda: headline(browser) == NO_ANSWER, "it is gone")
            assert browser.text("#verdict-detail").startswith(
                "It was about to stop. Last known: ")
        finally:
            server.kill()
            browser.leave()
            browser.origin = origin
            browser.elsewhere.clear()
    for error in browser.errors():
        assert f":{port}/" in error, error


def is_served(browser: Browser) -> bool:
    try:
        browser.open("/")
        return bool(browser.find("#verdict-line"))
    except Exception:  # it does not listen yet
        return False


# ---- figures ----------------------------------------------------------------

def metrics(start: float, done: int, **gauges: int) -> list[Any]:
    lines = [f'redlockd_build_info{{version="1"}} 1',
             f"process_start_time_seconds {start}",
             "redlockd_http_requests_total"
             f'{{call="acquire",status="201"}} {done}']
    lines += [f"redlockd_{name} {value}" for name, value in gauges.items()]
    return [200, "text/plain", "\n".join(lines) + "\n"]


def several_servers_are_told(browser: Browser, _: Service) -> None:
    one, other = metrics(1, 1000), metrics(2, 10)
    for answers, is_told in (([one, one, one], False),
                             ([one, other, other], False),  # a restart
                             ([one, other, one, other], True)):
        browser.open("/")
        with faked(browser, metrics=answers):
            for left in (3, 2, 1):
                if left < len(answers):
                    browser.run(WAKE)
                    eventually(lambda left=left: len(browser.run(
                        "return fakes['/metrics']")) <= left, "an answer")
            eventually(lambda: browser.text("#facts"), "the figures")
            browser.run(WAKE)  # the last one once more
            found = "Several servers respond at this address" in browser.text("#several")
            assert found == is_told, (answers, browser.text("#several"))
            rates = re.findall(r"done ([\d,.]+)", browser.text("#charts"))
            assert rates in ([], ["0"], ["0.0"]), rates
    browser.open("/")


def limits_are_marked(browser: Browser, _: Service) -> None:
    browser.open("/")
    for gauges, text, hrefs in (
            ({"waiters": 81, "waiters_max": 100}, "81 clients wait of 100",
             ["#runbook-redlockdwaitersnearlimit"]),
            ({"connections": 900, "connections_max": 1000},
             "900 connections of 1,000",
             ["#runbook-redlockdconnectionsnearlimit"]),
            ({"waiters": 80, "waiters_max": 100, "connections": 7,
              "connections_max": 20000}, "7 connections", [])):
        with faked(browser, metrics=[metrics(1, 0, **gauges)]):
            eventually(lambda text=text: text in browser.text("#facts"), text)
            found = browser.run("""
                return [...document.querySelectorAll('#facts a')].map(
                  (it) => it.getAttribute('href'))""")
            assert found == hrefs, found
            assert all(leads_somewhere(browser, href) for href in found)


def first_x(browser: Browser, chart: int, line: int) -> float | None:
    path = str(browser.run("""
        return document.querySelectorAll('#charts figure')[arguments[0]]
          .querySelector(`path.line${arguments[1]}[d^=M]:not(.key *)`)
          ?.getAttribute('d') ?? ''""", chart, line))
    found = re.match(r"M([\d.]+) .*L", path)
    return float(found[1]) if found else None


def has_line(browser: Browser, chart: int) -> bool:
    """Of requests, which it asks for once more."""
    browser.run(WAKE)
    return first_x(browser, chart, 0) is not None


def charts_begin_with_what_is_known(browser: Browser,
                                    service: Service) -> None:
    browser.open("/")
    eventually(lambda: has_line(browser, 0), "a line of zeros")
    latency = browser.find("#charts figure")[1]
    assert first_x(browser, 1, 0) is None, "there were no requests"
    assert "nothing to draw yet" in latency.get_attribute("textContent")
    with traffic(service):
        for chart in (0, 1, 2):
            eventually(lambda chart=chart: has_line(browser, chart), "a line")
            x = first_x(browser, chart, 0)
            assert x is not None and x < 10, (chart, x)
        label = eventually(lambda: re.search(
            r"(\d+) s ago", latency.get_attribute("textContent")), "since when")
        assert int(label[1]) < 30, label
    assert not re.search(r"\bmin ago", browser.text("#charts")), \
        "it is not open for a minute"
    first = eventually(lambda: re.search(r"median ([\d.]+)",
                                         browser.text("#charts")), "latency")
    assert float(first[1]) > 0
    with faked(browser, metrics=[SILENCE]), ahead(browser, 11):
        eventually(lambda: "done –" in browser.text("#charts"),
                   "what is old is no value of now")
        assert "as of 1" in browser.text("#facts"), browser.text("#facts")
    browser.open("/")


# ---- locks ------------------------------------------------------------------

def lock(name: str, waiters: int, **fields: Any) -> dict[str, Any]:
    return {"id": name, "resource": name, "held": True, "version": "1",
            "mode": "exclusive", "remaining_ms": 60000, "fencing_token": 1,
            "waiters": waiters, "nodes": {"held": 5, "total": 5}, **fields}


def lock_names(browser: Browser) -> list[str]:
    return list(browser.run("""
        return [...document.querySelectorAll('#lock-rows tr')].map(
          (row) => row.cells[0].textContent)"""))


def what_is_waited_for_comes_first(browser: Browser, _: Service) -> None:
    browser.open("/")
    for locks, names in (
            ([lock("a", 0), lock("b", 1), lock("c", 12)], ["c", "b", "a"]),
            ([lock("b", 2), lock("a", 2), lock("c", 0)], ["a", "b", "c"]),
            ([lock("b", 0), lock("a", 0)], ["a", "b"]),
            ([lock("p", 3, id="p2", slots=[2]), lock("z", 9),
              lock("p", 3, id="p1", slots=[1])],
             ["z", "p, slot 1", "p, slot 2"])):
        with faked(browser, locks=[as_json({"locks": locks})]):
            eventually(lambda names=names: lock_names(browser) == names, names)
    # the focus stays with a row that moves
    before, after = [as_json({"locks": [lock("a", 0), lock("b", waiters)]})
                     for waiters in (0, 1)]
    with faked(browser, locks=[before, after]):
        eventually(lambda: lock_names(browser) == ["a", "b"], "two")
        browser.run("document.querySelectorAll('.opener')[1].focus()")
        eventually(lambda: lock_names(browser) == ["b", "a"], "they turn")
        assert browser.focused()["name"] == "b", browser.focused()


def a_lock_far_down_is_found(browser: Browser, service: Service) -> None:
    """Of many, the only one that somebody waits for; whoever looks sees it."""
    for count in (250, 1200):
        locks = [service.acquire(f"far:{n:04}") for n in range(count)]
        _, first = service.call("GET", "/locks?page_size=100")
        near = {it["resource"] for it in first["locks"]}
        wanted = next(it for it in locks if it.resource not in near)
        client = service.wait_for(wanted.resource)
        browser.open("/")
        eventually(lambda wanted=wanted:
                   lock_names(browser)[:1] == [wanted.resource], "it is first")
        assert (browser.row(wanted.resource) + [""] * 6)[WAITERS] == "1"
        shown = len(lock_names(browser))
        assert shown == 100, shown
        assert browser.find("#more")[0].is_displayed()
        open_details(browser, wanted.resource)
        assert facts(browser)["Waiters"] == "1"
        for it in locks:
            service.release(it)
        client.join()


def ten_thousand_locks_are_few_rows(browser: Browser, _: Service) -> None:
    browser.open("/")
    pages = []
    for page in range(40):  # a server gives fewer than it is asked for
        locks = [lock(f"{page * 250 + n:05}" + "x" * 250 * (n % 2), 0)
                 for n in range(250)]
        pages.append(as_json({"locks": locks, "next_cursor": str(page)}))
    pages[38][2]["locks"][0]["waiters"] = 4
    del pages[39][2]["next_cursor"]
    waiting = metrics(1, 0)
    waiting[2] += 'redlockd_waiters_by_kind{kind="lock"} 4\n'
    with faked(browser, metrics=[waiting]):
        time.sleep(2.5)
        with faked(browser, metrics=[waiting],
                   locks=[*pages, as_json({"locks": []})]):
            eventually(lambda: lock_names(browser)[:1] == ["09500"], "found")
            assert len(lock_names(browser)) == 100
            assert browser.text("#locks-note") == \
                "9,750 locks, and perhaps more."
            browser.looks_good()
    with faked(browser, metrics=[metrics(1, 0)],
               locks=[as_json({"locks": []})]):
        eventually(lambda: browser.text("#locks-note") ==
                   "No locks are held.", "nobody holds anything")
        assert not browser.find("#locks-table")[0].is_displayed()
    browser.open("/")


def a_slow_list_is_read_less_often(browser: Browser, _: Service) -> None:
    """It took 1 s, so it rests for 4 s; and then again."""
    browser.open("/")
    slow = as_json({"locks": [lock("slow", 0)]}) + [1000]
    with faked(browser, locks=[slow] * 9):
        eventually(lambda: lock_names(browser) == ["slow"], "the list")
        left = len(browser.run("return fakes['/locks']"))
        time.sleep(3.6)  # otherwise another one is due after 3 s
        now = len(browser.run("return fakes['/locks']"))
        assert left == now, (left, now)
        eventually(lambda: len(browser.run("return fakes['/locks']")) < now,
                   "it is read again")
