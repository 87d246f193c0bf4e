"""/docs tells all that /openapi.yaml has, as HTML that any browser reads."""
from __future__ import annotations

import urllib.request
import xml.etree.ElementTree as ElementTree
from typing import Any

import html5lib
import yaml
from selenium.webdriver.common.keys import Keys

from browser import Browser, eventually
from service import Service

METHODS = {"get", "put", "post", "delete", "patch"}
PATHS = {"/", "/openapi.yaml", "/page.css", "/page.svg", "/page.js", "/docs",
         "/metrics", "/nodes"}


def read(service: Service, path: str) -> str:
    with urllib.request.urlopen(service.origin + path, timeout=30) as answer:
        return str(answer.read().decode())


def parse(text: str) -> ElementTree.Element:
    """Strictly: any error of HTML is an exception."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree: ElementTree.Element = parser.parse(text)
    return tree


def check_links(tree: ElementTree.Element) -> None:
    names = [element.attrib["id"] for element in tree.iter()
             if "id" in element.attrib]
    assert len(names) == len(set(names)), "an id occurs twice"
    links = [element.attrib[name] for element in tree.iter()
             for name in ("href", "src") if name in element.attrib]
    for link in links:
        known = link[1:] in names if link.startswith("#") else \
            link in PATHS or link.startswith("https://")
        assert known, f"{link} leads nowhere"


def text_of(tree: ElementTree.Element, name: str) -> str:
    """The section's text, each run of blanks being one."""
    found = [element for element in tree.iter("section")
             if element.attrib.get("id") == name]
    assert found, f"{name} is missing"
    return " ".join("".join(found[0].itertext()).split())


def the_pages_are_valid_html(_: Browser, service: Service) -> None:
    for path in ("/", "/docs"):
        check_links(parse(read(service, path)))


def resolve(spec: Any, node: Any) -> Any:
    while "$ref" in node:
        kind, name = node["$ref"].split("/")[-2:]
        node = spec["components"][kind][name]
    return node


def check_operation(spec: Any, path: str, method: str, operation: Any,
                    text: str) -> None:
    wanted = [f"{method.upper()} {path}", operation["summary"],
              *operation["responses"]]
    for parameter in operation.get("parameters", []):
        wanted.append(resolve(spec, parameter)["name"])
    contents = operation.get("requestBody", {}).get("content", {})
    for content in contents.values():
        wanted += [example["summary"]
                   for example in content["examples"].values()]
    for want in wanted:
        assert want in text, f"{method} {path} does not tell {want}"


def the_api_is_described_whole(_: Browser, service: Service) -> None:
    spec = yaml.safe_load(read(service, "/openapi.yaml"))
    tree = parse(read(service, "/docs"))
    count = 0
    for path, item in spec["paths"].items():
        for method in METHODS & set(item):
            operation = item[method]
            check_operation(spec, path, method, operation,
                            text_of(tree, operation["operationId"]))
            count += 1
    assert count > 10, count
    components = spec["components"]
    for name, schema in components["schemas"].items():
        text = text_of(tree, f"schema-{name}")
        for member in schema.get("properties", {}):
            assert member in text, f"{name} does not tell {member}"
    for kind, prefix in (("responses", "answer"), ("headers", "header")):
        for name in components[kind]:
            assert name in text_of(tree, f"{prefix}-{name}")


def the_description_is_read_by_keyboard_and_phone(browser: Browser,
                                                  service: Service) -> None:
    browser.open("/docs")
    browser.press(Keys.TAB)
    assert browser.focused() == {"name": "Skip the contents", "isSeen": True}
    browser.press(Keys.ENTER)
    browser.press(Keys.TAB)
    eventually(lambda: browser.run(
        "return document.activeElement.closest('main') !== null"), "the text")
    browser.open("/docs#schema-Grant")
    eventually(lambda: browser.run("""
        const top = document.querySelector('#schema-Grant')
          .getBoundingClientRect().top;
        return top >= 0 && top < innerHeight"""), "the schema is in sight")
    browser.run("""for (const it of document.querySelectorAll('details')) {
        it.open = true;
        }""")
    browser.looks_good()
