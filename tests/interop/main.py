#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays how locks broke elsewhere, with Redlock libraries and with redlockd:
"library × story: broken / holds". redlockd, the last column, has to hold.

STORIES="1 5" and LIBRARIES="pottery redlockd" play some of them only.
"""
import pathlib
import signal
import sys
import time
import traceback

import stories_locks
import stories_memory
import stories_permits
import stories_rounds
from clients import HOLDERS, Library
from selection import chosen
from world import NotPossible

BUILD = pathlib.Path(sys.argv[1])
PYTHON = str(BUILD / "venv/bin/python3")
RSLOCK = pathlib.Path("build/rslock/holder/rslock-holder")


def python_holder(name):
    return PYTHON, str(HOLDERS / name)


LIBRARIES = [
    Library("redlock-py", python_holder("use_redlock_py.py"), can_extend=False),
    Library("pottery", python_holder("use_pottery.py"), key_prefix="redlock:"),
    Library("aioredlock", python_holder("use_aioredlock.py")),
    Library("rslock", (str(RSLOCK),)),
    Library("redlockd", python_holder("use_redlockd.py"), is_redlockd=True),
]


def all_stories():
    """By their numbers."""
    found = {}
    for module in (stories_rounds, stories_memory, stories_locks,
                   stories_permits):
        for name, function in vars(module).items():
            if name.startswith("story_"):
                found[name.removeprefix("story_")] = function
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def play(story, library):
    """A word, and what was seen."""
    if library.name == "rslock" and not RSLOCK.exists():
        return "skipped", "there is no cargo to build it"
    try:
        return story(library)
    except NotPossible as why:
        return "failed" if library.is_redlockd else "n/a", str(why)
    except Exception as error:  # the other stories can still be told
        traceback.print_exc()
        return "failed", repr(error)


def passes(row):
    """redlockd holds; where it was not chosen, all others do. None if there was
    nobody to play it."""
    words = set(row.values())
    if "failed" in words:
        return False
    ours = row.get("redlockd", "n/a")
    if ours != "n/a":
        return ours == "holds"
    words -= {"n/a", "skipped"}
    return words == {"holds"} if words else None


def print_table(stories, names, table):
    width = max(len(stories[key].__doc__) for key in table)
    print()
    print(f"{'':>3} {'':<{width}}  " + " ".join(f"{n:<10}" for n in names))
    for key, row in table.items():
        print(f"{key:>3} {stories[key].__doc__:<{width}}  "
              + " ".join(f"{row[name]:<10}" for name in names)
              + ("  FAIL" if passes(row) is False else ""))


def main():
    # what a story started is cleaned up on the way out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stories = all_stories()
    libraries = {library.name: library for library in LIBRARIES}
    names = chosen("LIBRARIES", libraries)
    table = {}
    start = time.monotonic()
    for key in chosen("STORIES", stories):
        print(f"\n{key} {stories[key].__doc__}", flush=True)
        table[key] = {}
        for name in names:
            began = time.monotonic()
            word, seen = play(stories[key], libraries[name])
            table[key][name] = word
            print(f"    {name:<10} {word:<7} {seen} "
                  f"[{time.monotonic() - began:.1f} s]", flush=True)
    print_table(stories, names, table)
    ends = [passes(row) for row in table.values()]
    print(f"in {time.monotonic() - start:.0f} s")
    print(f"{ends.count(True)} passed, {ends.count(False)} failed")
    sys.exit(False in ends or True not in ends)


main()
