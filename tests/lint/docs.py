#!/usr/bin/env python3
"""README's tables against what the binary and the code say.

Options:  a row "| `--flag` | `default` | …" for each option with a value.
Problems: each code in api/problem.c stands in a row with its status.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
problems = []


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def check_options(readme):
    out = subprocess.run([sys.argv[1], "--help"], check=True,
                         capture_output=True, text=True).stdout
    flags = {}
    for flag, default in re.findall(r"^  --([a-z-]+).*?(?:\[(.*)\])?$", out,
                                    re.M):
        flags[flag] = default
    documented = {}
    for row in rows(readme):
        match = re.match(r"\|\s*`--([a-z-]+)[^`]*`\s*\|([^|]*)\|", row)
        if match:
            documented[match[1]] = match[2].strip().strip("`")
    for flag, default in flags.items():
        if flag not in documented:
            problems.append(f"README.md: no row for --{flag}")
        elif default and documented[flag] != default:
            problems.append(f"README.md: --{flag} is {default}, "
                            f"not {documented[flag]}")
    for flag in documented.keys() - flags.keys():
        problems.append(f"README.md: there is no --{flag}")


def check_codes(readme):
    source = (root / "api" / "problem.c").read_text()
    table = set(re.findall(r'"([a-z]+(?:_[a-z]+)+)",\s*(\d{3})', source))
    table |= {(code, status) for status, code in
              re.findall(r'(\d{3}),\s*"([a-z]+(?:_[a-z]+)+)"', source)}
    if not table:
        problems.append("api/problem.c: found no table of codes")
    for code, status in sorted(table):
        if not any(f"`{code}`" in row and status in row for row in rows(readme)):
            problems.append(f"README.md: no row has `{code}` and {status}")


readme_path = root / "README.md"
if readme_path.exists():
    check_options(readme_path.read_text())
    check_codes(readme_path.read_text())
else:
    problems.append("README.md is missing")
for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
