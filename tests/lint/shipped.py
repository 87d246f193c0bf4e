#!/usr/bin/env python3
"""The pages of the Debian package: each link leads to one of its files and, with
#, to a heading there. The alerts' pages are among them.
"""
import pathlib
import re
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "scripts")]
from shipdocs import main, shipped  # noqa: E402

# what an operator reads at night, and before the first start
NEEDED = {"runbook.md", "authentication.md", "guarantees.md", "operations.md",
          "configuration.md", "production.md", "packages.md", "tls.md",
          "examples/rules.yml", "examples/haproxy.cfg", "examples/nginx.conf"}
problems = []


def anchors(text):
    """As docs.py."""
    prose = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", prose, re.M)}


def check(folder):
    names = set(shipped().values())
    problems.extend(f"the package lacks {name}" for name in NEEDED - names)
    pages = {path.name: path.read_text() for path in folder.iterdir()}
    count = 0
    for page, text in pages.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", link):
                continue
            count += 1
            if (path or page) not in names:
                problems.append(f"{page}: {link} is not in the package")
            elif anchor and anchor not in anchors(pages[path or page]):
                problems.append(f"{page}: there is no heading {link}")
    for page, anchor in re.findall(
            r"runbook_url: .*/(\w+\.md)#(\S+?)'",
            (root / "deploy/prometheus/rules.yml").read_text()):
        count += 1
        if anchor not in anchors(pages.get(page, "")):
            problems.append(f"rules.yml: {page}#{anchor} is not in the package")
    if count < 300:
        problems.append(f"only {count} links were found")


with tempfile.TemporaryDirectory() as name:
    main(pathlib.Path(name))
    check(pathlib.Path(name))
for problem in problems:
    print(f"shipped: {problem}")
sys.exit(1 if problems else 0)
