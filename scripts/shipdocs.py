#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages that the Debian package brings: shipdocs.py FOLDER

Links between them lead to each other there, and to its examples. A link to a
file that it does not bring becomes text.
"""
import pathlib
import posixpath
import re
import sys

root = pathlib.Path(__file__).resolve().parents[1]
# of the source tree, in which nobody is who has the package
LEFT_OUT = {"docs/internals/map.md"}
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^()\s]+)\)")


def shipped():
    """Where each file is in the folder, by its path here."""
    names = {name: name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")}
    for page in sorted((root / "docs").rglob("*.md")):
        name = page.relative_to(root).as_posix()
        if name not in LEFT_OUT:
            names[name] = name.removeprefix("docs/")
    examples = (root / "debian/redlockd.examples").read_text().split()
    return names | {name: f"examples/{posixpath.basename(name)}"
                    for name in examples}


def convert(page, names):
    def link(match):
        is_image, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target) or not path:
            return match[0]
        there = names.get(posixpath.normpath(
            posixpath.join(posixpath.dirname(page), path)))
        if is_image or there is None:
            return text
        to = posixpath.relpath(there, posixpath.dirname(names[page]) or ".")
        return f"[{text}]({to}{'#' + anchor if anchor else ''})"
    return LINK.sub(link, (root / page).read_text())


def main(folder):
    names = shipped()
    for page, name in names.items():
        if name.endswith(".md"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(convert(page, names))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
