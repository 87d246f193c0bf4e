#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays each story with each example of api/clients/examples/, over real servers
and real databases.

LANGUAGES="requests shell" and STORIES="lost asleep" play some of it; JOBS=2 at once.
With --self-test, plays each story with an example that is wrong on purpose:
the story must notice.
"""
import concurrent.futures
import functools
import os
import pathlib
import shutil
import signal
import sys
import time
import traceback

import fencing
import guide
import stories
from broken import BROKEN, break_file
from databases import (Database, Etag, Mariadb, Postgresql, Redis, Sqlite)
from selection import chosen
from stage import Stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "api/clients/examples"
BUILD = ROOT / "build/examples"  # where run.sh compiled
PYTHON = "/usr/bin/python3"  # the one that Debian's packages are for

# the tool without which a language is skipped, and how its example is run;
# ... is where the lock's arguments go, if not to the end
LANGUAGES = {
    "shell": ("jq", ("bash", EXAMPLES / "lock.sh", ...,
                     "bash", ROOT / "tests/examples/work.sh")),
    "requests": (PYTHON, (PYTHON, EXAMPLES / "lock_requests.py")),
}
# a file of api/clients/examples/fencing/, and what runs it
DATABASES = {
    "postgresql.sql": ("/usr/lib/postgresql", Postgresql),
    "mariadb.sql": ("/usr/sbin/mariadbd", Mariadb),
    "sqlite.sql": (PYTHON, Sqlite),
    "redis.lua": ("redis-server", Redis),
    "etag.py": ("lighttpd", Etag),
}


def stories_of(module):
    return {name.removeprefix("story_"): story
            for name, story in vars(module).items() if name.startswith("story_")}


STORIES, FENCING = stories_of(stories), stories_of(fencing)


def play(command, name):
    with Stage(command) as stage:
        STORIES[name](stage)


def play_fencing(kind, source, name):
    database = kind(source)
    try:
        assert database.run("put", id=1, state="new", fence=0)
        with Stage(None) as stage:
            FENCING[name](stage, database)
    finally:
        database.close()


def told(player, *arguments):
    """None, or what went wrong; and how long it took."""
    start = time.monotonic()
    try:
        wrong = player(*arguments)
    except AssertionError as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        wrong = str(error) or f"{frame.line} ({frame.name})"
    except Exception as error:  # the other stories can still be told
        wrong = repr(error)
    return wrong, time.monotonic() - start


def missing(name, tool):
    if os.path.exists(tool) or shutil.which(tool):
        return False
    print(f"skip  {name:<10} there is no {tool}")
    return True


def as_it_is(file):
    return file


def play_of(name, change=as_it_is):
    """The tool without which it is skipped, its stories, and what plays one; with
    what the change makes of its file."""
    if name in LANGUAGES:
        tool, command = LANGUAGES[name]
        return tool, STORIES, functools.partial(play, tuple(
            change(part) if isinstance(part, pathlib.Path) and
            part.parent == EXAMPLES else part for part in command))
    if name in DATABASES:
        tool, kind = DATABASES[name]
        return tool, FENCING, functools.partial(
            play_fencing, kind, change(EXAMPLES / "fencing" / name))
    command = guide.PROGRAMS[name]
    if change is not as_it_is:
        command = *command[:-1], change(guide.GUIDE / name)
    return str(command[0]), guide.stories_for(name), functools.partial(
        guide.play, command)


ALL = [*LANGUAGES, *DATABASES, *guide.PROGRAMS]
ALL_STORIES = [*STORIES, *FENCING, *guide.STORIES]


def play_examples(pool):
    jobs, skipped = {}, 0
    for name in chosen("LANGUAGES", ALL):
        tool, plays, player = play_of(name)
        if missing(name, tool):
            skipped += 1
            continue
        for story in chosen("STORIES", ALL_STORIES):
            if story not in plays or name not in getattr(
                    plays[story], "languages", [name]):
                continue
            jobs[pool.submit(told, player, story)] = \
                f"{name:<14} {plays[story].__doc__}"
    ends = []
    for job in concurrent.futures.as_completed(jobs):
        wrong, span_s = job.result()
        ends.append(wrong is None)
        print(f"{'FAIL' if wrong else 'ok':<5} {jobs[job]} [{span_s:.1f} s]"
              + (f"\n      {wrong}" if wrong else ""), flush=True)
    # CI has all tool chains: to skip one there means to test nothing
    return ends + [False] * (skipped if os.environ.get("CI") else 0)


def broken(changes, folder, source):
    """The file with these changes, in the folder."""
    folder.mkdir(exist_ok=True)
    return break_file(source, changes, folder / source.name)


def play_broken(pool):
    """Each defect is noticed by each story that is named beside it."""
    jobs = {}
    asked = chosen("STORIES", ALL_STORIES)
    for name in filter(BROKEN.__contains__, chosen("LANGUAGES", ALL)):
        for number, (what, changes, stories_of_it) in enumerate(BROKEN[name]):
            _, _, player = play_of(name, functools.partial(
                broken, changes, BUILD / f"broken-{name}{number}"))
            for story in filter(asked.__contains__, stories_of_it):
                jobs[pool.submit(told, player, story)] = f"{name} {what}", story
    ends = []
    for job in concurrent.futures.as_completed(jobs):
        (what, name), (wrong, span_s) = jobs[job], job.result()
        ends.append(wrong is not None)
        print(f"{'ok' if wrong else 'FAIL':<5} {what}: {name} says: "
              f"{wrong or 'nothing'} [{span_s:.1f} s]", flush=True)
    proven = {name for defects in BROKEN.values()
              for *_, names in defects for name in names}
    unproven = set(asked) - proven
    for name in unproven:
        print(f"FAIL  no defect shows that {name} can fail")
    return ends + [False] * len(unproven)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    self_test = "--self-test" in sys.argv[1:]
    pool = concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", 6)))
    try:
        ends = (play_broken if self_test else play_examples)(pool)
    finally:
        pool.shutdown(cancel_futures=True)
        Database.stop_servers()
    print(f"in {time.monotonic() - start:.0f} s")
    print(f"{ends.count(True)} passed, {ends.count(False)} failed")
    sys.exit(False in ends or True not in ends)


main()
