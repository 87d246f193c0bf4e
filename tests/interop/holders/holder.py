# SPDX-License-Identifier: MIT
"""One client of a lock library, as a process: a line in, a line out.

    acquire RESOURCE TTL_MS  |  extend RESOURCE TTL_MS  |  release RESOURCE

    yes VALIDITY_MS ELAPSED_MS FENCE   the library says so; FENCE may be `none`
    no ELAPSED_MS WHY
"""
import logging
import sys
import time


class Refused(Exception):
    """The library said no without an exception of its own."""


def since(start):
    return (time.monotonic() - start) * 1000


def usual_validity_ms(start, ttl_ms):
    """The Redlock page's, for libraries that do not say it."""
    return int(ttl_ms - since(start) - (ttl_ms * 0.01 + 2))


def show(start, validity_ms, fence="none"):
    print("yes", validity_ms, int(since(start)), fence, flush=True)


def show_refusal(start, error):
    text = str(error) if isinstance(error, Refused) else \
        f"{type(error).__name__}: {error}"
    print("no", int(since(start)), " ".join(text.split())[:200], flush=True)


def silence():
    """Libraries log what the stories do to them."""
    logging.disable(logging.CRITICAL)


def serve(adapter):
    """`adapter` has acquire and extend, which return validity_ms and fence,
    and release; they raise when the library says no."""
    silence()
    for line in sys.stdin:
        verb, resource, *ttl = line.split()
        start = time.monotonic()
        try:
            said = getattr(adapter, verb)(resource, *map(int, ttl))
        except Exception as error:  # whatever a library raises is its answer
            show_refusal(start, error)
        else:
            show(start, *(said or (0,)))
