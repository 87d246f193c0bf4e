#!/usr/bin/env python3
"""The pages that the Debian package brings, in one folder: shipdocs.py FOLDER

Links between them lead to each other there, and to its examples. A link to a
file that it does not bring becomes text.
"""
import pathlib
import posixpath
import re
import sys

root = pathlib.Path(__file__).resolve().parents[1]
# of the source tree, in which nobody is who has the package
LEFT_OUT = {"map.md"}
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(([^()\s]+)\)")


def shipped():
    """Where each file is in the folder, by its path here."""
    names = {name: name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")}
    for page in sorted((root / "docs").glob("*.md")):
        if page.name not in LEFT_OUT:
            names[f"docs/{page.name}"] = page.name
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
        return f"[{text}]({there}{'#' + anchor if anchor else ''})"
    return LINK.sub(link, (root / page).read_text())


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    names = shipped()
    for page, name in names.items():
        if "/" not in name:
            (folder / name).write_text(convert(page, names))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
