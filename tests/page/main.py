# SPDX-License-Identifier: MIT
"""main.py ORIGIN PID NODE=PID…: the stories, in a browser that shows the page of
the server at ORIGIN, which has this PID and these nodes. STORIES takes those
whose names contain one of its words; the first one always runs."""
from __future__ import annotations

import os
import sys
import time
import traceback

import stories
import stories_auth
import stories_details
import stories_docs
import stories_end
import stories_force
import stories_foreign
import stories_night
from browser import Browser
from service import Service

# Meanwhile, the nodes that the first of these have flushed come to vote again;
# the last ones stop the server.
MODULES = (stories, stories_details, stories_force, stories_foreign, stories_auth,
           stories_night, stories_docs, stories_end)
# what takes a browser and a service, and nothing else
STORIES = [it for module in MODULES for it in vars(module).values()
           if list(getattr(it, "__annotations__", {}).values()) ==
           ["Browser", "Service", "None"] and it.__module__ == module.__name__]


def is_chosen(name: str) -> bool:
    words = os.environ.get("STORIES", "").split()
    return not words or name == STORIES[0].__name__ or \
        any(word in name for word in words)


def main() -> int:
    nodes = dict(argument.split("=") for argument in sys.argv[3:])
    service = Service(sys.argv[1], int(sys.argv[2]),
                      {name: int(pid) for name, pid in nodes.items()})
    browser = Browser(service.origin)
    chosen = [story for story in STORIES if is_chosen(story.__name__)]
    failed = 0
    try:
        for story in chosen:
            name = story.__name__.replace("_", " ")
            began = time.monotonic()
            try:
                story(browser, service)
                took = time.monotonic() - began
                print(f"ok    {name} ({took:.0f} s)", flush=True)
            except Exception:  # whatever: it is told, and the others run
                failed += 1
                print(f"FAIL  {name}\n{traceback.format_exc(limit=-3)}",
                      flush=True)
    finally:
        browser.quit()
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
