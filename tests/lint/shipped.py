#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages of the Debian package: each link leads to one of its files and, with
#, to a heading there. The alerts' pages are among them.
"""
import re
import sys
import tempfile
from pathlib import Path
from posixpath import dirname, join, normpath

from findings import ROOT, anchors, complain, links, source, tell

sys.path[:0] = [str(ROOT / "scripts")]
from shipdocs import main, shipped  # noqa: E402

# what an operator reads at night, and before the first start
NEEDED = {"runbook.md", "operations.md", "internals/guarantees.md",
          "deploy/production.md", "deploy/debian.md", "reference/options.md",
          "deploy/hosted-redis.md", "reference/authentication.md",
          "reference/tls.md", "reference/metrics.md", "reference/audit.md",
          "examples/rules.yml", "examples/haproxy.cfg", "examples/nginx.conf"}


def check(folder):
    names = set(shipped().values())
    for name in NEEDED - names:
        complain("shipped", f"the package lacks {name}")
    pages = {path.relative_to(folder).as_posix(): path.read_text()
             for path in folder.rglob("*.md")}
    found = [(page, link, normpath(join(dirname(page), path)) if path else page, anchor)
             for page, text in pages.items() for link, path, anchor in links(text)]
    found += [("rules.yml", f"{page}#{anchor}", page, anchor)
              for page, anchor in re.findall(
                  r"runbook_url: .*/(\w+\.md)#(\S+?)'",
                  source("deploy/prometheus/rules.yml"))]
    for page, link, path, anchor in found:
        if path not in names:
            complain(page, f"{link} is not in the package")
        elif anchor and anchor not in anchors(pages[path]):
            complain(page, f"there is no heading {link}")
    if len(found) < 300:
        complain("shipped", f"only {len(found)} links were found")


with tempfile.TemporaryDirectory() as name:
    main(Path(name))
    check(Path(name))
tell()
