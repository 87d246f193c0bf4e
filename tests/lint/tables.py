# SPDX-License-Identifier: MIT
"""What tests/lint/tables.c printed into the file that is the second argument."""
import json
import pathlib
import sys

# a sample of each answer, by the name of its schema, with every member
answers = json.loads(pathlib.Path(sys.argv[2]).read_text())
tables = answers.pop("tables")


def members_of(value):
    """The names of all members, however deep."""
    if isinstance(value, list):
        return {name for item in value for name in members_of(item)}
    if not isinstance(value, dict):
        return set()
    return set(value) | members_of(list(value.values()))
