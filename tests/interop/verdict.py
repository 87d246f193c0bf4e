# SPDX-License-Identifier: MIT
"""What a story can end with, and what several of them have in common."""
import time

from world import must, overlap_ms, try_until

TTL_MS = 2000  # of the locks in the stories, if nothing else is wanted


def broken(evidence):
    return "broken", evidence


def holds(evidence):
    return "holds", evidence


def no_number(evidence):
    return "none", evidence


def all_hold(*variants):
    """Plays the variants of a story up to the first that is broken."""
    seen = []
    for variant in variants:
        word, evidence = variant()
        if word != "holds":
            return word, evidence
        seen.append(evidence)
    return holds("; ".join(seen))


def two_holders(first, second, what):
    """Broken if both were told that they hold, at one moment."""
    both_ms = overlap_ms(first, second)
    if both_ms <= 0:
        return None
    return broken(f"{what}: B holds too, {both_ms} ms before A's validity ends")


def hold_on_three(world, resource="r", before=lambda: None):
    """A holds on the first three nodes alone; returns A's answer and B.
    `before` is called when both clients are there."""
    a, b = world.client(), world.client()
    before()
    world.occupy(resource, world.nodes[3:])
    first = must(a.acquire(resource, TTL_MS), "A acquires on three nodes")
    world.vacate(resource, world.nodes[3:])
    return first, b


def b_tries(first, b, what, resource="r", later_s=3):
    """B asks while A holds, and once A's validity is over."""
    second = try_until(lambda: b.acquire(resource, TTL_MS, limit_s=5), 0.8)
    found = two_holders(first, second, what)
    if found:
        return found
    refused = second if second else "no answer"
    time.sleep(max(0.0, first.valid_until - time.monotonic()))
    third = try_until(lambda: b.acquire(resource, TTL_MS, limit_s=5), later_s)
    if third and third.said_yes:
        after_ms = int((third.at - first.valid_until) * 1000)
        return holds(f"B: {refused}; granted {after_ms} ms after A's validity")
    return holds(f"B: {refused}; nor in {later_s} s after A's validity")
