"""Which seeds are kept, and what is said of one that fails."""
from __future__ import annotations

import argparse

import kept

TEXT = """# a comment

11 --tls  # exclusion: a node forgot
12 --seconds 40 --faults all,-step # tidy
"""
RUN = argparse.Namespace(seed=7, seconds=40.0, faults="all", tls=False,
                         clients=kept.CLIENTS, resources=kept.RESOURCES)


def test_lines() -> None:
    lines = kept.read(TEXT)
    assert lines == [["--seed", "11", "--tls"],
                     ["--seed", "12", "--seconds", "40", "--faults",
                      "all,-step"]], lines
    assert [kept.choose(lines, i) for i in (0, 1, 2)] == [*lines, lines[0]]
    assert kept.choose([], 5) == []
    assert isinstance(kept.read(kept.FILE.read_text()), list)


def test_bad_lines() -> None:
    """None may pass for a comment."""
    for text in ("11 --tls", "seed 11 # why", "--tls # why", "11 #", "-3 # why"):
        try:
            kept.read(text)
        except SystemExit:
            continue
        raise AssertionError(text)


def test_advice() -> None:
    """What it says to add is a line that plays the same again."""
    text = kept.advice(RUN, True)
    assert "is new" in text and kept.replay(RUN) in text, text
    line = text.split("tests/nemesis/seeds: ")[1]
    assert kept.read(line) == [kept.replay(RUN).split()[1:]], line
    assert "is new" not in kept.advice(RUN, False)
    other = argparse.Namespace(**{**vars(RUN), "tls": True, "clients": 3})
    assert kept.replay(other).endswith("--clients 3 --resources 12 --tls")


TESTS = (test_lines, test_bad_lines, test_advice)
