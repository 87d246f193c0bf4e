# SPDX-License-Identifier: MIT
"""The tables of docs/neighbours.md: what the run found, and what they say."""
import pathlib

PAGE = pathlib.Path(__file__).parents[2] / "docs/neighbours.md"
MEETS = ("it keeps redlockd out", "redlockd keeps it out", "its late extend",
         "its late release")
REDLOCK = ("library", "version", "run", "key of `r`", *MEETS)
SINGLE = ("lock", "version", "run", "key of `r`", *MEETS)
PLACES = ("lock", "one of five keeps redlockd out", "redlockd keeps it out",
          "each of five keeps redlockd out", "redlockd keeps them out")
LOSSES = ("lock", "what it does", "redlockd's next extend")


def empty_tables():
    return {header: [] for header in (REDLOCK, SINGLE, PLACES, LOSSES)}


def line_of(cells):
    return "| " + " | ".join(cells) + " |"


def cells_of(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def show(header, rows):
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    print()
    for row in [header, *rows]:
        print("  ".join(f"{cell:<{width}}"
                        for cell, width in zip(row, widths)))


def span(lines, header):
    """Where the rows of a table begin and end."""
    first = lines.index(line_of(header)) + 2
    last = first
    while last < len(lines) and lines[last].startswith("|"):
        last += 1
    return first, last


def write(tables):
    """Of a run of all: the rows of others would be lost."""
    lines = PAGE.read_text().splitlines()
    for header, rows in tables.items():
        first, last = span(lines, header)
        lines[first:last] = map(line_of, rows)
    PAGE.write_text("\n".join(lines) + "\n")


def check(score, tables, played):
    """Each row that was played must stand there, and no other of its name."""
    lines = PAGE.read_text().splitlines()
    for header, found in tables.items():
        first, last = span(lines, header)
        told = [cells_of(line) for line in lines[first:last]]
        told = [row for row in told if row[0] in played]
        for row in found:
            score.check(row in told, f"{PAGE.name} has no row {row}")
        for row in told:
            score.check(row in found, f"{PAGE.name} is wrong: {row}")
