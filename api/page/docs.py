#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Makes of openapi.yaml a page for people: docs.py openapi.yaml >docs.html

The renderers that are usual draw in the browser: Swagger UI takes a megabyte
of script for it, ten times what this page has as a whole, and styles that the
pages' Content-Security-Policy forbids. So the page is made when redlockd is
built. It needs no script.

What it has is folded, so that the first screen shows all operations. A link
leads to what is inside, not to its summary: browsers unfold only then.
"""
from __future__ import annotations

import html
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import yaml
from markdown_it import MarkdownIt

Node = dict[str, Any]
METHODS = ("get", "put", "post", "delete", "patch")
LINE = 56  # characters of an example that fit beside its text
markdown = MarkdownIt("js-default")


def escape(value: Any) -> str:
    return html.escape(str(value))


def tag(name: str, *parts: str, **attributes: str) -> str:
    """The parts are HTML, the attributes text."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
                      for key, value in attributes.items())
    return f"<{name}{written}>{''.join(parts)}</{name}>\n"


def code(value: Any) -> str:
    return f"<code>{escape(value)}</code>"


def prose(text: str) -> str:
    return str(markdown.render(text))


def phrase(text: str) -> str:
    """One paragraph, without being one."""
    return str(markdown.renderInline(text.strip()))


def layout(value: Any, room: int = LINE, indent: str = "") -> str:
    """JSON, with what fits on one line on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= room or not value or not isinstance(value, (dict, list)):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        items = [layout(one, LINE - len(deeper), deeper) for one in value]
        begin, end = "[]"
    else:
        names = [json.dumps(name) + ": " for name in value]
        items = [name + layout(one, LINE - len(deeper + name), deeper)
                 for name, one in zip(names, value.values())]
        begin, end = "{}"
    return (f"{begin}\n{deeper}" + f",\n{deeper}".join(items) +
            f"\n{indent}{end}")


def target_of(reference: str) -> tuple[str, str]:
    """(schemas, Lock) of #/components/schemas/Lock"""
    kind, name = reference.removeprefix("#/components/").split("/")
    return kind, name


class Page:
    def __init__(self, spec: Node) -> None:
        self.spec = spec

    def resolved(self, node: Node) -> Node:
        if "$ref" not in node:
            return node
        kind, name = target_of(node["$ref"])
        return self.resolved(self.spec["components"][kind][name])

    # ---- schemas ------------------------------------------------------------

    def type_of(self, schema: Node) -> str:
        if "$ref" in schema:
            _, name = target_of(schema["$ref"])
            return f'<a href="#schema-{name}">{escape(name)}</a>'
        if "oneOf" in schema:
            return " or ".join(self.type_of(one) for one in schema["oneOf"])
        if schema["type"] == "array":
            return f"array of {self.type_of(schema['items'])}"
        return str(schema["type"])

    @staticmethod
    def limits_of(schema: Node) -> Iterator[str]:
        unit = {"Length": " characters", "Items": " items"}
        for ending in ("imum", "Length", "Items"):
            least, most = schema.get("min" + ending), schema.get("max" + ending)
            named = unit.get(ending, "")
            if least is not None and most is not None:
                yield f"{least:,} to {most:,}{named}"
            elif least is not None:
                yield f"at least {least:,}{named}"
            elif most is not None:
                yield f"at most {most:,}{named}"
        if schema.get("uniqueItems"):
            yield "each once"
        if "enum" in schema:
            always = "always " if len(schema["enum"]) == 1 else ""
            yield always + " or ".join(map(code, schema["enum"]))
        if "pattern" in schema:
            yield "pattern " + code(schema["pattern"])
        for word in ("default", "example"):
            if word in schema:
                yield f"{word} " + code(json.dumps(schema[word],
                                                   ensure_ascii=False))

    def facts(self, schema: Node) -> str:
        limits = "; ".join(self.limits_of(schema))
        return tag("p", limits, class_="muted") if limits else ""

    def members(self, schema: Node) -> str:
        """Of an object, or of what an array holds."""
        holder = schema.get("items", schema)
        required = holder.get("required", [])
        return self.terms(
            (f"{code(name)} {self.type_of(member)}"
             f"{', required' if name in required else ''}",
             "" if "$ref" in member else self.schema(member))
            for name, member in holder.get("properties", {}).items())

    def schema(self, schema: Node) -> str:
        text = schema.get("description", "")
        return prose(text) + self.facts(schema) + self.members(schema)

    @staticmethod
    def terms(pairs: Iterable[tuple[str, str]], **attributes: str) -> str:
        items = "".join(tag("dt", term) + (tag("dd", text) if text else
                                           "<dd></dd>\n")
                        for term, text in pairs)
        return tag("dl", items, **attributes) if items else ""

    # ---- what is sent and answered ------------------------------------------

    def parameters(self, path: Node, operation: Node) -> str:
        found = [self.resolved(one) for one in
                 path.get("parameters", []) + operation.get("parameters", [])]
        return self.section("Parameters", self.terms((
            (f"{code(one['name'])} {self.type_of(one['schema'])}, "
             f"in the {one['in']}{', required' if one['required'] else ''}",
             prose(one["description"])) for one in found), class_="beside"))

    def kinds(self, holder: Node) -> str:
        return "".join(tag("p", f"{code(kind)}: ",
                           self.type_of(content["schema"]))
                       for kind, content in holder.get("content", {}).items())

    def examples(self, holder: Node, is_open: bool) -> str:
        """Open: what people copy and compare with."""
        return "".join(self.example(self.resolved(one), is_open)
                       for content in holder.get("content", {}).values()
                       for one in content.get("examples", {}).values())

    @staticmethod
    def example(example: Node, is_open: bool) -> str:
        value = example["value"]
        text = value if isinstance(value, str) else layout(value)
        name = phrase(example["summary"])
        written = tag("pre", escape(text.rstrip("\n")))
        if is_open:
            return tag("figure", tag("figcaption", name), written)
        return tag("details", tag("summary", "Example: ", name), written)

    @staticmethod
    def beside(text: str, examples: str) -> str:
        return tag("div", tag("div", text), tag("div", examples),
                   class_="pair") if examples else text

    def body(self, operation: Node) -> str:
        if "requestBody" not in operation:
            return ""
        body = operation["requestBody"]
        need = ", required" if body.get("required") else ""
        return self.section(f"Body{need}", self.beside(
            prose(body["description"]) + self.kinds(body),
            self.examples(body, is_open=True)))

    def headers(self, answer: Node) -> str:
        names = [f'<a href="#header-{name}">{escape(name)}</a>'
                 for name in answer.get("headers", {})]
        return tag("p", "Headers: ", ", ".join(names), class_="muted") \
            if names else ""

    def links(self, answer: Node) -> str:
        names = [f'<a href="#{link["operationId"]}">'
                 f'{phrase(link["description"])}</a>'
                 for link in answer.get("links", {}).values()]
        return tag("p", "Then: ", " ".join(names)) if names else ""

    def success(self, answer: Node) -> str:
        return self.beside(
            prose(answer["description"]) + self.kinds(answer) +
            self.links(answer) + self.headers(answer),
            self.examples(answer, is_open=True))

    def whole_error(self, answer: Node) -> str:
        return (prose(answer["description"]) + self.kinds(answer) +
                self.examples(answer, is_open=False) +
                self.links(answer) + self.headers(answer))

    def error(self, answer: Node) -> str:
        """One that several operations share is told once, at the end."""
        if "$ref" not in answer:
            return self.whole_error(answer)
        _, name = target_of(answer["$ref"])
        more = f' <a href="#answer-{name}">{escape(name)}</a>'
        return tag("p", phrase(self.resolved(answer)["description"]), more)

    def answers(self, operation: Node) -> str:
        answers = operation["responses"]
        good = [status for status in answers if status.startswith("2")]
        bad = [status for status in answers if status not in good]
        return self.section("Responses", self.terms(
            (code(status), self.success(answers[status])) for status in good) +
            tag("details",
                tag("summary", "Errors: ", " ".join(map(code, bad))),
                self.terms(((code(status), self.error(answers[status]))
                            for status in bad), class_="beside")))

    # ---- the page -----------------------------------------------------------

    @staticmethod
    def fold(title: str, *parts: str, name: str) -> str:
        return tag("details", tag("summary", tag("h3", title)),
                   tag("section", *parts, id=name), class_="fold")

    @staticmethod
    def section(title: str, content: str) -> str:
        return tag("h4", escape(title)) + content if content else ""

    def operations(self, of_tag: str) -> Iterator[tuple[str, str, Node, Node]]:
        for path, item in self.spec["paths"].items():
            for method in METHODS:
                if of_tag in item.get(method, {}).get("tags", []):
                    yield method.upper(), path, item, item[method]

    def operation(self, method: str, path: str, item: Node,
                  operation: Node) -> str:
        return self.fold(f"{code(f'{method} {path}')} "
                         f"{escape(operation['summary'])}",
                         prose(operation["description"]),
                         self.parameters(item, operation), self.body(operation),
                         self.answers(operation), name=operation["operationId"])

    def components(self, kind: str, prefix: str) -> str:
        write = {"schemas": self.schema, "responses": self.whole_error,
                 "headers": lambda it: (prose(it["description"]) +
                                        self.facts(it["schema"]))}[kind]
        return tag("div", *(
            self.fold(code(name), write(node), name=f"{prefix}-{name}")
            for name, node in self.spec["components"][kind].items()),
            class_="parts")

    PARTS = (("schemas", "schema", "Schemas"),
             ("responses", "answer", "Shared responses"),
             ("headers", "header", "Headers"))

    @staticmethod
    def group(link: str, title: str, items: Iterable[tuple[str, str]],
              is_open: bool) -> str:
        """Links to a part of the page and to its sections."""
        links = [f'<a href="#{link}">Overview</a>']
        links += [f'<a href="#{to}">{code(text)}</a>' for to, text in items]
        return tag("details", tag("summary", escape(title)),
                   tag("ul", *(tag("li", it) for it in links)),
                   **({"open": ""} if is_open else {}))

    def contents_list(self) -> str:
        calls = [self.group(
            one["name"], one["name"].capitalize(),
            ((operation["operationId"], f"{method} {path}")
             for method, path, _, operation in self.operations(one["name"])),
            is_open=True) for one in self.spec["tags"]]
        parts = [self.group(
            kind, title, ((f"{prefix}-{name}", name)
                          for name in self.spec["components"][kind]),
            is_open=False) for kind, prefix, title in self.PARTS]
        return tag("nav", *calls, *parts, aria_label="Contents")

    def body_of_page(self) -> str:
        info = self.spec["info"]
        calls = "".join(
            tag("h2", escape(one["name"].capitalize()), id=one["name"]) +
            prose(one["description"]) +
            "".join(self.operation(*it) for it in self.operations(one["name"]))
            for one in self.spec["tags"])
        components = "".join(
            tag("h2", escape(title), id=kind) + self.components(kind, prefix)
            for kind, prefix, title in self.PARTS)
        top = tag("header", tag("h1", escape(info["title"])),
                  tag("p", f"{escape(info['version'])}: the API",
                      class_="muted"),
                  tag("nav", '<a href="/">Status</a> '
                      '<a href="/openapi.yaml">openapi.yaml</a>',
                      aria_label="More of this server"), class_="top")
        return ('<a class="skip" href="#text">Skip the contents</a>\n' + top +
                tag("div", self.contents_list(),
                    tag("main", self.fold(
                        "What all operations have in common",
                        prose(info["description"]), name="common"), calls,
                        components, id="text", tabindex="-1"),
                    class_="columns"))

    def text(self) -> str:
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The API of redlockd</title>
<link rel="icon" type="image/svg+xml" href="/page.svg">
<link rel="stylesheet" href="/page.css">
</head>
<body class="docs">
{self.body_of_page()}</body>
</html>
"""


with open(sys.argv[1], encoding="utf-8") as file:
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale says
    print(Page(yaml.safe_load(file)).text(), end="")
