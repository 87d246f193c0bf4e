# SPDX-License-Identifier: MIT
"""Where C code can be changed, found in the tree that clang makes of it.

A place is an operator, a number or a statement in the body of a function, as
it stands in the file: what a macro brings along is no place. Nothing is left
out because it is hard to notice; only assertions are, which are the tests'
own means. Of the statements those are dropped that are expressions, and the
branches of an if, whatever they are.
"""
from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clang.cindex import Cursor, CursorKind, Index, TranslationUnit

FOLDERS = ("server", "api")
OPERATORS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
    "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("/",),
    "&": ("|",), "|": ("&",), "^": ("&",), "<<": (">>",), ">>": ("<<",),
    "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",),
    "%=": ("/=",), "&=": ("|=",), "|=": ("&=",), "^=": ("&=",),
    "<<=": (">>=",), ">>=": ("<<=",)}
# the other one binds differently: only brackets keep what belongs together
BRACKETED = {"&&", "||", "&", "|", "^"}
NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
ASSERTS = {"assert", "static_assert"}
# of the children of a statement, those that are statements themselves
BODIES: dict[CursorKind, Callable[[list[Cursor]], list[Cursor]]] = {
    CursorKind.COMPOUND_STMT: lambda all_: all_,
    CursorKind.IF_STMT: lambda all_: all_[1:],
    CursorKind.FOR_STMT: lambda all_: all_[-1:],
    CursorKind.WHILE_STMT: lambda all_: all_[-1:],
    CursorKind.DO_STMT: lambda all_: all_[:1],
    CursorKind.CASE_STMT: lambda all_: all_[-1:],
    CursorKind.DEFAULT_STMT: lambda all_: all_[-1:],
    CursorKind.LABEL_STMT: lambda all_: all_[-1:],
}
EXPRESSIONS = {CursorKind.CALL_EXPR, CursorKind.BINARY_OPERATOR,
               CursorKind.COMPOUND_ASSIGNMENT_OPERATOR,
               CursorKind.UNARY_OPERATOR, CursorKind.CSTYLE_CAST_EXPR,
               CursorKind.CONDITIONAL_OPERATOR, CursorKind.PAREN_EXPR,
               CursorKind.UNEXPOSED_EXPR}


@dataclass(frozen=True)
class Change:
    """Bytes from..to of the file become another text."""
    begin: int
    end: int
    text: bytes
    what: str  # for the reader


@dataclass(frozen=True)
class Place:
    path: str  # inside the project
    line: int
    column: int
    changes: tuple[Change, ...]  # one of them is drawn


@dataclass(frozen=True)
class Draw:
    """The change that was drawn as the number-th."""
    number: int
    place: Place
    change: Change


def draws(places: list[Place], seed: int) -> list[Draw]:
    """All places in an order of chance, and of each one of its changes."""
    chance = random.Random(seed)
    return [Draw(number, place, chance.choice(place.changes))
            for number, place in
            enumerate(chance.sample(places, len(places)), 1)]


def c_files(root: Path) -> list[Path]:
    return sorted(file for folder in FOLDERS
                  for file in (root / folder).rglob("*.c"))


def all_places(root: Path, flags: list[str],
               names: tuple[str, ...] = ()) -> list[Place]:
    """Of the files of these names; of all files, if there is no name."""
    files = [root / name for name in names] or c_files(root)
    return [place for file in files
            for place in Finder(root, file, flags).places()]


class Finder:
    """The places of one file."""

    def __init__(self, root: Path, file: Path, flags: list[str]) -> None:
        self.path = str(file.relative_to(root))
        self.name = str(file)
        self.text = file.read_bytes()
        self.unit = parse(root, file, flags)
        tokens = list(self.unit.get_tokens(extent=self.unit.cursor.extent))
        self.tokens = [token.spelling for token in tokens]
        self.begins = [token.extent.start.offset for token in tokens]
        self.ends = [token.extent.end.offset for token in tokens]

    def places(self) -> Iterator[Place]:
        for function in self.unit.cursor.get_children():
            where = function.location.file
            if (function.kind == CursorKind.FUNCTION_DECL and where
                    and where.name == self.name and function.is_definition()):
                yield from self._below(function)

    def _below(self, cursor: Cursor) -> Iterator[Place]:
        children = list(cursor.get_children())
        if cursor.kind in (CursorKind.BINARY_OPERATOR,
                           CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
            yield from self._operator(cursor, children)
        elif cursor.kind == CursorKind.UNARY_OPERATOR:
            yield from self._negation(cursor)
        elif cursor.kind == CursorKind.INTEGER_LITERAL:
            yield from self._number(cursor)
        for child in BODIES.get(cursor.kind, lambda _: [])(children):
            if child.kind in EXPRESSIONS:
                yield from self._statement(child)
            elif cursor.kind == CursorKind.IF_STMT:
                yield from self._branch(child)
        for child in children:
            yield from self._below(child)

    def _place(self, at: int, *changes: Change) -> Place:
        return Place(self.path, self.text.count(b"\n", 0, at) + 1,
                     at - self.text.rfind(b"\n", 0, at), changes)

    def _token(self, offset: int) -> int:
        """The number of the first token that begins there or behind."""
        return bisect_left(self.begins, offset)

    def _whole(self, begin: int, end: int) -> bool:
        """Whether tokens begin and end just there, outside of a macro."""
        first = self._token(begin)
        last = bisect_left(self.ends, end)
        return (first <= last < len(self.ends) and self.begins[first] == begin
                and self.ends[last] == end
                and self.tokens[first] not in ASSERTS)

    def _operator(self, cursor: Cursor, sides: list[Cursor]) -> Iterator[Place]:
        if len(sides) != 2:
            return
        (left, left_end), (right, right_end) = map(extent, sides)
        number = self._token(left_end)
        if not (self._whole(left, left_end) and self._whole(right, right_end)
                and left_end < right and self._token(right) == number + 1
                and extent(cursor) == (left, right_end)):
            return
        old = self.tokens[number]
        begin, end = self.begins[number], self.ends[number]
        changes = []
        for new in OPERATORS.get(old, ()):
            change = Change(begin, end, new.encode(), f"`{old}` → `{new}`")
            if old in BRACKETED:
                change = self._bracketed(left, right_end, change)
            changes.append(change)
        if changes:
            yield self._place(begin, *changes)

    def _bracketed(self, left: int, right: int, change: Change) -> Change:
        text = b"(%b%b%b)" % (self.text[left:change.begin], change.text,
                              self.text[change.end:right])
        return Change(left, right, text, change.what)

    def _negation(self, cursor: Cursor) -> Iterator[Place]:
        begin, end = extent(cursor)
        if (self._whole(begin, end)
                and self.tokens[self._token(begin)] == "!"):
            yield self._place(begin, Change(
                begin, begin + 1, b"", f"`{self._quote(begin, end)}` "
                "without its `!`"))

    def _number(self, cursor: Cursor) -> Iterator[Place]:
        begin, end = extent(cursor)
        match = NUMBER.fullmatch(self.text[begin:end].decode())
        if not (match and self._whole(begin, end)):
            return
        is_octal = re.fullmatch("0[0-7]+", match[1])
        value = int(match[1], 8 if is_octal else 0) + 1
        new = f"{value}{match[2]}"
        yield self._place(begin, Change(begin, end, new.encode(),
                                        f"`{match[0]}` → `{new}`"))

    def _statement(self, cursor: Cursor) -> Iterator[Place]:
        """Its semicolon stays."""
        begin, end = extent(cursor)
        after = bisect_left(self.ends, end) + 1
        if self._whole(begin, end) and self.tokens[after] == ";":
            yield self._place(begin, self._without(begin, end))

    def _branch(self, cursor: Cursor) -> Iterator[Place]:
        """What an if does when it holds, or when not; if it does not begin
        with an if itself: then it is that one's."""
        begin, end = extent(cursor)
        if cursor.kind == CursorKind.IF_STMT or not self._whole(begin, end):
            return
        if cursor.kind == CursorKind.COMPOUND_STMT:
            begin, end = begin + 1, end - 1
            inside = list(cursor.get_children())
            if len(inside) == 1 and inside[0].kind in EXPRESSIONS:
                return  # is a place already, as a statement
        if self.text[begin:end].strip():
            yield self._place(extent(cursor)[0], self._without(begin, end))

    def _without(self, begin: int, end: int) -> Change:
        # lines keep their numbers, which assertions tell
        lines = b"\n" * self.text.count(b"\n", begin, end)
        return Change(begin, end, lines,
                      f"dropped `{self._quote(begin, end)};`".replace(";;", ";"))

    def _quote(self, begin: int, end: int) -> str:
        text = " ".join(self.text[begin:end].decode().split())
        return text if len(text) <= 60 else text[:57] + "…"


def extent(cursor: Cursor) -> tuple[int, int]:
    return cursor.extent.start.offset, cursor.extent.end.offset


def parse(root: Path, file: Path, flags: list[str]) -> TranslationUnit:
    """As it is compiled in root, where paths of flags begin."""
    absolute = [f"-I{root / flag[2:]}" if flag.startswith("-I") else flag
                for flag in flags]
    unit = Index.create().parse(str(file), absolute)
    errors = [str(one) for one in unit.diagnostics if one.severity >= 3]
    if errors:
        raise SystemExit(f"mutate: {file}: {errors[0]}")
    return unit
