#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is made from the tables of options: manual pages and more.

manual.py BUILD NAME

BUILD is a folder with redlockd and redlockctl: what their --help says is what
their tables say. docs/reference/options.md has more words on each option of
redlockd. NAME: redlockd.8, redlockctl.1, redlockd.env, redlockctl.bash.
"""
from __future__ import annotations

import email.utils
import itertools
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Option(NamedTuple):
    """An option of redlockd."""
    flag: str
    form: str     # of its value; "": it takes none
    group: str    # that it stands in
    text: str     # Markdown
    default: str

    @property
    def variable(self) -> str:
        return "REDLOCKD_" + self.flag.upper().replace("-", "_")


class Choice(NamedTuple):
    """An option of redlockctl, and the commands that have it."""
    name: str     # "-w, --wait TIME"
    text: str
    commands: list[str]


def help_of(build: str, program: str, *command: str) -> str:
    return subprocess.run([f"{build}/{program}", *command, "--help"],
                          check=True, capture_output=True, text=True).stdout


# ---- tables -----------------------------------------------------------------

def described() -> dict[str, str]:
    """The third column of the table of flags."""
    page = (ROOT / "docs/reference/options.md").read_text()
    return dict(re.findall(r"^\| `--([a-z-]+)` \|[^|]*\| (.*) \|$", page, re.M))


def options_of(build: str) -> list[Option]:
    words = described()
    rows = re.findall(r"^([A-Z].*):$|"
                      r"^  --([a-z-]+)(?: ([^\s\[]\S*))?(?: \[(.*)\])?$",
                      help_of(build, "redlockd"), re.M)
    missing = [flag for _, flag, *_ in rows if flag and flag not in words]
    if missing or not rows:
        sys.exit(f"docs/reference/options.md: no row for {missing}")
    found: list[Option] = []
    group = ""
    for title, flag, form, default in rows:
        group = title or group
        if flag:
            found.append(Option(flag, form, group, words[flag], default))
    return found


def commands_of(build: str) -> dict[str, str]:
    """The help of each command of redlockctl."""
    names = re.findall(r"^  ([a-z]+) ", help_of(build, "redlockctl"), re.M)
    return {name: help_of(build, "redlockctl", name) for name in names}


def choices_of(helps: dict[str, str]) -> list[Choice]:
    found: dict[str, Choice] = {}
    for command, text in helps.items():
        for name, words in re.findall(r"^  ((?:-\w, )?--.*)\n((?:      .*\n)+)",
                                      text.split("\nOptions:\n")[1], re.M):
            found.setdefault(name, Choice(name, " ".join(words.split()), []))
            found[name].commands.append(command)
    return list(found.values())


# ---- text -------------------------------------------------------------------

def plain(markdown: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return text.replace("`", "").replace("**", "")


def roff(text: str) -> str:
    """A line of plain text; what begins like a request does not become one."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def roff_of(markdown: str) -> str:
    """Words in backticks and stars are bold."""
    text = roff(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown))
    text = re.sub(r"`([^`]*)`|\*\*(.*?)\*\*",
                  lambda match: f"\\fB{match[1] or match[2]}\\fP", text)
    return text[:1].upper() + text[1:]


def tagged(tag: str, *lines: str) -> str:
    return "\n".join([".TP", tag, *lines])


def date() -> str:
    """Of the release: two builds of one must be the same."""
    changelog = (ROOT / "debian/changelog").read_text()
    line = re.search(r"^ -- .*>  (.*)$", changelog, re.M)
    assert line, "debian/changelog: no date"
    return email.utils.parsedate_to_datetime(line[1]).date().isoformat()


def filled(name: str, **parts: str) -> str:
    page = (ROOT / "docs/man" / name).read_text()
    parts |= {"DATE": date(), "VERSION": (ROOT / "VERSION").read_text().strip()}
    return re.sub(r"@([A-Z]+)@", lambda match: parts[match[1]], page)


# ---- what is made -----------------------------------------------------------

def daemon_page(build: str) -> str:
    def entry(option: Option) -> str:
        tag = f".B {roff('--' + option.flag)}"
        if option.form:
            tag += f" \\fI{roff(option.form)}\\fP"
        lines = [roff_of(option.text).rstrip(".") + "."]
        if option.default:
            lines.append(f"Default: {roff(option.default)}.")
        if option.form:
            lines.append(f"Variable: \\fB{option.variable}\\fP.")
        return tagged(tag, *lines)
    lines = []
    for group, options in itertools.groupby(options_of(build), lambda it: it.group):
        lines += [f".SS {group}", *map(entry, options)]
    return filled("redlockd.8", OPTIONS="\n".join(lines))


def paragraphs(text: str) -> str:
    """Lines that are indented stay as they are."""
    out = []
    for block in text.strip().split("\n\n"):
        for is_list, lines in grouped(block.splitlines()):
            if is_list:
                out += [".nf", ".RS 2", *map(roff, lines), ".RE", ".fi"]
            else:
                out += [".PP", *map(roff, lines)]
    return "\n".join(out)


def grouped(lines: list[str]) -> list[tuple[bool, list[str]]]:
    groups: list[tuple[bool, list[str]]] = []
    for line in lines:
        is_list = line.startswith("  ")
        if not groups or groups[-1][0] != is_list:
            groups.append((is_list, []))
        groups[-1][1].append(line.strip())
    return groups


def client_page(build: str) -> str:
    helps = commands_of(build)

    def section(name: str) -> str:
        text = helps[name]
        title = text.splitlines()[0].partition(": ")[2]
        usage = re.search(r"^Usage: (.*)$", text, re.M)
        assert usage, name
        about, _, rest = text[usage.end():].partition("\nOptions:\n")
        rest = rest.partition("1.5, 500ms, 2m, 1h.\n")[2]
        return "\n".join([f".SS {name}", roff(title[:1].upper() + title[1:]) + ".",
                          ".PP", ".nf", roff(usage[1].strip()), ".fi",
                          paragraphs(f"{about}\n\n{rest}")])

    def entry(choice: Choice) -> str:
        common = len(choice.commands) == len(helps)
        where = "all commands" if common else ", ".join(choice.commands)
        return tagged(f".B {roff(choice.name)}", roff(choice.text), f"({where})")

    return filled("redlockctl.1", COMMANDS="\n".join(map(section, helps)),
                  OPTIONS="\n".join(map(entry, choices_of(helps))))


NODES = ",".join(f"10.0.0.{i}:6379" for i in range(1, 6))
ENV_HEAD = """\
# The environment of redlockd.service: see redlockd(8). After a change:
#   systemctl restart redlockd
#
# Each variable is shown with its default. A value with blanks, quotes or
# backslashes stands in single quotes. Only root and the group redlockd can
# read this file: it may hold passwords.
#
# REDLOCKD_NODES must be set, or REDLOCKD_NODES_FILE, a file with the same.
"""


def environment(build: str) -> str:
    options = [option for option in options_of(build) if option.form]
    # the one that must be set comes first
    options.sort(key=lambda option: option.flag != "nodes")
    out = [ENV_HEAD]
    for option in options:
        out += textwrap.wrap(plain(option.text), 76, initial_indent="# ",
                             subsequent_indent="# ", break_on_hyphens=False)
        if option.flag == "nodes":
            out.append(f"#{option.variable}={NODES}")
            out.append(f"#{option.variable}_FILE=/etc/redlockd/nodes")
        else:
            out.append(f"#{option.variable}={option.default}")
        out.append("")
    return "\n".join(out)


COMPLETION = """\
# bash completion for redlockctl

_redlockctl() {
    local word=${COMP_WORDS[COMP_CWORD]} words i
    # behind -- stands a command of its own
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            ! declare -F _command_offset >/dev/null ||
                _command_offset $((i + 1))
            return
        fi
    done
    case $COMP_CWORD:${COMP_WORDS[1]} in
    1:*) words='@NAMES@ --help --version' ;;
@CASES@
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
} && complete -o default -F _redlockctl redlockctl
"""


def completion(build: str) -> str:
    helps = commands_of(build)
    flags: dict[str, list[str]] = {name: [] for name in helps}
    for choice in choices_of(helps):
        for name in choice.commands:
            flags[name] += re.findall(r"--[a-z-]+", choice.name)
    cases = [f"    *:{name}) words='{' '.join(flags[name])}' ;;" for name in helps]
    return COMPLETION.replace("@NAMES@", " ".join(helps)) \
        .replace("@CASES@", "\n".join(cases))


MAKERS = {
    "redlockd.8": daemon_page,
    "redlockctl.1": client_page,
    "redlockd.env": environment,
    "redlockctl.bash": completion,
}

if __name__ == "__main__":
    print(MAKERS[sys.argv[2]](sys.argv[1]).rstrip("\n"))
