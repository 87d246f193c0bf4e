"""main.py ORIGIN PID NODE=PID…: the stories, in a browser that shows the page of
the server at ORIGIN, which has this PID and these nodes."""
from __future__ import annotations

import sys
import traceback

from browser import Browser
from service import Service
from stories import STORIES


def main() -> int:
    nodes = dict(argument.split("=") for argument in sys.argv[3:])
    service = Service(sys.argv[1], int(sys.argv[2]),
                      {name: int(pid) for name, pid in nodes.items()})
    browser = Browser(service.origin)
    failed = 0
    try:
        for story in STORIES:
            name = story.__name__.replace("_", " ")
            try:
                story(browser, service)
                print(f"ok    {name}", flush=True)
            except Exception:  # whatever: it is told, and the others run
                failed += 1
                print(f"FAIL  {name}\n{traceback.format_exc(limit=-3)}",
                      flush=True)
    finally:
        browser.quit()
    print(f"{len(STORIES) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
