#!/usr/bin/env python3
"""README's tables against what the binary and the code say, both ways.

Options:  a row "| `--flag` | `default` | …" for each, as --help tells them.
Problems: a row for each code in api/problem.c, with its status.
Members:  a row for each that api/json.c reads and api/render.c writes.
Calls:    a row for each method and path of openapi.yaml.
States:   each row is one that server/engine/vote.c or server/engine/standing.c names.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
problems = []
# what each answer counts is told by the rows of the calls
COUNTED = {"nodes", "granted", "released", "quorum", "total"}


def source(name):
    return (root / name).read_text()


def same(what, documented, known):
    """Both are sets."""
    for one in sorted(documented - known, key=str):
        problems.append(f"README.md: {what}: there is no {one}")
    for one in sorted(known - documented, key=str):
        problems.append(f"README.md: {what}: no row for {one}")


def table(*header):
    """The rows, as lists of cells, of the table with this header."""
    lines = iter(source("README.md").splitlines())
    for line in lines:
        if cells(line) == list(header):
            break
    next(lines, None)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    if not rows:
        problems.append(f"README.md: found no table of {header[0]}")
    return rows


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def names(rows, column=0):
    """The words in backticks, such as `this`."""
    return {name for row in rows for name in re.findall(r"`(\w+)`", row[column])}


def check_options():
    out = subprocess.run([sys.argv[1], "--help"], check=True,
                         capture_output=True, text=True).stdout
    flags = dict(re.findall(r"^  --([a-z-]+).*?(?:\[(.*)\])?$", out, re.M))
    documented = {}
    for row in table("flag", "default", ""):
        documented[row[0].strip("`").removeprefix("--")] = row[1].strip("`")
    same("options", set(documented), set(flags))
    for flag, default in flags.items():
        if default and documented.get(flag, default) != default:
            problems.append(f"README.md: --{flag} is {default}, "
                            f"not {documented[flag]}")


def check_codes():
    known = set(re.findall(r'\{(\d{3}), "(\w+)"', source("api/problem.c")))
    same("codes", {(row[0], code)
                   for row in table("status", "`code`", "means", "do")
                   for code in names([row], 1)},
         known)


def check_members():
    read = source("api/json.c").split("members[] = {")[1].split("};")[0]
    known = {name for name, reader in
             re.findall(r'\{ROUTE_\w+, "(\w+)", (\w+)\}', read)
             if not reader.startswith("refuse_")}
    known |= set(re.findall(r'\\"(\w+)\\":', source("api/render.c")))
    same("members", names(table("member", "means")), known - COUNTED)


def check_calls():
    known = set()
    path = ""
    for line in source("openapi.yaml").split("\ncomponents:")[0].splitlines():
        if match := re.match(r"  (/.*):$", line):
            path = re.sub(r"\{(\w+)\}", r"<\1>", match[1])
        elif match := re.match(r"    (get|put|post|delete|patch):$", line):
            known.add(f"{match[1].upper()} {path}")
    same("calls", {row[0].split("`")[1] for row in table("call", "success")},
         known)


def check_states():
    known = set(re.findall(r'= \{"(\w+)"', source("server/engine/vote.c")))
    known |= set(re.findall(r'= \{"(\w+)"', source("server/engine/state.c")))
    known |= set(re.findall(r'return "(\w+)"', source("server/engine/standing.c")))
    documented = names(table("state", "means", "do"))
    same("states", documented, documented & known)


check_options()
check_codes()
check_members()
check_calls()
check_states()
for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
