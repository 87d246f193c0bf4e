#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The docs' tables against what the binary and the code say, both ways.

docs.py REDLOCKD TABLES

Options:  a row "| `--flag` | `default` | …" for each, in the groups of --help.
Fields:   a row for each that requests take and that grants and releases tell.
Calls:    a row for each method and path that the server knows.
States:   each row is a vote or a state of a node.
Metrics:  a row for each name, with its type.
Events:   a row for each event of the log.
Rights:   each command of the scripts is one that the nodes' user may run.

And each relative link leads to a file and, with #, to one of its headings;
each code block is one that tests/readme pastes, or shows no command; the
programs of the guide are files that tests/examples runs.
"""
import re
import subprocess
import sys

from findings import (ROOT, anchors, complain, links, prose, same, source, sources,
                      table, tell)
from tables import answers, members_of, tables

sys.path[:0] = [str(ROOT / "scripts")]
from map import unlicensed  # noqa: E402

CONFIGURATION = "docs/reference/options.md"
CLIENTS = "docs/api.md"
OPERATIONS = "docs/operations.md"
METRICS = "docs/reference/metrics.md"
AUDIT = "docs/reference/audit.md"
GUIDE = "docs/guide.md"
PROGRAMS = "api/clients/examples/guide"
# what each answer counts is told by the rows of the calls
COUNTED = {"slot", "nodes", "asked", "granted", "released", "held", "quorum",
           "total"}


# ---- tables -----------------------------------------------------------------

def names(rows, column=0):
    """The words in backticks, such as `this`."""
    return {name for row in rows for name in re.findall(r"`(\w+)`", row[column])}


def check_options():
    out = subprocess.run([sys.argv[1], "--help"], check=True,
                         capture_output=True, text=True).stdout
    text = source(CONFIGURATION)
    flags = dict(re.findall(r"^  --([a-z-]+).*?(?:\[(.*)\])?$", out, re.M))
    documented = {}
    for row in table(text, "flag", "default", ""):
        documented[row[0].strip("`").removeprefix("--")] = row[1].strip("`")
    same(CONFIGURATION, "options", set(documented), set(flags))
    for flag, default in flags.items():
        if default and documented.get(flag, default) != default:
            complain(CONFIGURATION,
                     f"--{flag} is {default}, not {documented[flag]}")
    same(CONFIGURATION, "groups",
         groups(text, r"## Options (?:for )?(.*)", r"\| `(--[a-z-]+)` \|"),
         groups(out, r"([A-Z].*):", r"  (--[a-z-]+)"))


def groups(text, title, member):
    """Each line that is a member, with the title above it."""
    found, group = set(), ""
    for line in text.splitlines():
        if match := re.fullmatch(title, line):
            group = match[1].lower()
        elif match := re.match(member, line):
            found.add(f"{match[1]} in {group!r}")
    return found


def check_fields():
    known = members_of([answers[name] for name in
                        ("Grant", "Grant of a permit", "Release", "Lock", "LockList",
                         "Pool")])
    known = known.union(*tables["members"].values())
    known |= {"results"}  # around those of a batch
    same(CLIENTS, "fields", names(table(source(CLIENTS), "field", "meaning")),
         known - COUNTED)


def check_calls():
    known = set()
    for path, row in tables["paths"].items():
        shown = path.replace("{", "<").replace("}", ">")
        known |= {f"{method} {shown}"
                  for method in set(row["methods"]) - {"HEAD", "OPTIONS"}}
    rows = table(source(CLIENTS), "call", "success")
    calls = {row[0].split("`")[1].partition("?")[0] for row in rows}
    same(CLIENTS, "calls", calls, known)


def check_states():
    known = {vote["name"] for vote in tables["votes"]} | set(tables["states"])
    documented = names(table(source(OPERATIONS), "state", "means", "do"))
    same(OPERATIONS, "states", documented, documented & known)


def check_rights():
    used = {command.lower()
            for path in (ROOT / "server/node/scripts").glob("*.lua")
            for command in re.findall(r"(?:call|try)\('([A-Z]+)'",
                                      path.read_text())}
    [acl] = re.findall(r"ACL SETUSER redlockd (.*)", source(OPERATIONS))
    for one in sorted(used - set(re.findall(r"\+(\w+)", acl))):
        complain(OPERATIONS, f"ACL SETUSER lacks +{one}")


def check_metrics():
    """The tables of the code, and what is printed without one."""
    text = source("server/lock/metrics.c")
    known = {f"redlockd_{name} {kind}" for name, kind in
             re.findall(r'^    \{"(\w+)", "(\w+)",', text, re.M)}
    known |= {f"process_{name} {kind}" for name, kind in
              re.findall(r'print_process_value\(\s*out, "(\w+)", "(\w+)"', text)}
    known |= {f"redlockd_{name} {kind}" for name, kind in
              re.findall(r'print_head\(out, "(\w+)", "(\w+)"',
                         source("api/access/accounts.c"))}
    known |= {f"{name} {kind}" for name, kind in
              re.findall(r"# TYPE (redlockd_[a-z_]+) (\w+)",
                         source("api/access/access.c"))}
    told = {f"{name} {row[1]}" for row in
            table(source(METRICS), "metric", "type", "meaning")
            for name in names([row])}
    same(METRICS, "metrics", told, known)


def check_events():
    """Of lines of the log: the names before the fields of a call."""
    known = set()
    for text in sources("*.c").values():
        for call in re.findall(r"\b(?:log_(?:write|detail)\([^,;]*,|"
                               r"(?:tls_)?warn\(|warn_if_open\()([^,;]*),", text):
            known |= set(re.findall(r'"([a-z_]+)"', call))
    rows = table(source(AUDIT), "log event", "level", "meaning")
    same(AUDIT, "events", names(rows), known)


# ---- pages ------------------------------------------------------------------

def pages():
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"),
                        *ROOT.glob("api/*/*/*.md")]):
        yield path.relative_to(ROOT).as_posix()


def check_links(page):
    for link, path, anchor in links(prose(source(page))):
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.resolve().is_relative_to(ROOT) or not target.exists():
            complain(page, f"there is no {link}")
        elif anchor and anchor not in anchors(target.read_text()):
            complain(page, f"there is no heading {link}")


def check_blocks(page):
    """Console and sh are pasted, or gone through by compose-test, deb-test and
    production; python-test runs python, node-test js, and so on."""
    if page == "CONTRIBUTING.md":
        return
    for fence in re.findall(r"^ *```(\S+)$", source(page), re.M):
        if fence not in ("console", "sh", "sql", "python", "js", "go", "php",
                         "ruby", "java", "rust"):
            complain(page, f"nobody tests a block of {fence}")


def check_programs():
    """A program that the guide shows is the file that it names before, but for
    its licence. A script that is no program has no #! line."""
    text = source(GUIDE)
    file, shown = "", set()
    for match in re.finditer(
            r"\]\(\.\./(api/clients/examples/[^)#]+)\)"
            r"|^```(?:python|js|go|sh(?=\n#!))\n(.*?)^```$", text,
            re.M | re.S):
        if match[1]:
            file = match[1]
        elif not file or match[2] != unlicensed(source(file)):
            complain(GUIDE, f"the program below is not {file}:\n{match[2][:80]}")
        else:
            shown.add(file)
    for path in sorted((ROOT / PROGRAMS).iterdir()):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and f"../{name}" not in text:
            complain(GUIDE, f"it does not mention {name}")
    if not shown:
        complain(GUIDE, "it shows no program")


check_options()
check_fields()
check_calls()
check_states()
check_rights()
check_metrics()
check_events()
for each in pages():
    check_links(each)
    check_blocks(each)
check_programs()
tell()
