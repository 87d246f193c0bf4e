# SPDX-License-Identifier: MIT
"""/docs tells all that /openapi.yaml has, as HTML that any browser reads."""
from __future__ import annotations

import urllib.request
import xml.etree.ElementTree as ElementTree
from typing import Any

import html5lib
import yaml
from selenium.webdriver.common.keys import Keys

from browser import PHONE, WIDE, Browser, eventually
from openapi import target
from service import Service

METHODS = {"get", "put", "post", "delete", "patch"}
COMPONENTS = (("schemas", "schema"), ("responses", "answer"),
              ("headers", "header"))
# of what is unfolded, by its sections, 1280 px wide; with one column and each
# error in sight it was nearly 500
SECTION_PX = 400
SCREENS = 3  # of what is folded
PAGES = {"/", "/page.css", "/page.svg", "/page.js", "/docs", "/openapi.yaml"}
PATHS = PAGES | {"/metrics", "/nodes"}


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


def summaries_of(tree: ElementTree.Element) -> dict[str, str]:
    """What is seen of each section while it is folded."""
    return {fold.find("section").attrib["id"]:
            " ".join("".join(fold.find("summary").itertext()).split())
            for fold in tree.iter("details")
            if fold.attrib.get("class") == "fold"}


def text_of(tree: ElementTree.Element, name: str) -> str:
    """The section's text, each run of blanks being one."""
    found = [element for element in tree.iter("section")
             if element.attrib.get("id") == name]
    assert found, f"{name} is missing"
    return " ".join("".join(found[0].itertext()).split())


def the_pages_are_valid_html(_: Browser, service: Service) -> None:
    for path in ("/", "/docs"):
        check_links(parse(read(service, path)))


def check_operation(spec: Any, path: str, method: str, operation: Any,
                    text: str) -> None:
    wanted = list(operation["responses"])
    for parameter in operation.get("parameters", []):
        wanted.append(target(spec, parameter)["name"])
    contents = operation.get("requestBody", {}).get("content", {})
    for content in contents.values():
        wanted += [example["summary"]
                   for example in content["examples"].values()]
    for want in wanted:
        assert want in text, f"{method} {path} does not tell {want}"


def the_api_is_described_whole(_: Browser, service: Service) -> None:
    spec = yaml.safe_load(read(service, "/openapi.yaml"))
    tree = parse(read(service, "/docs"))
    summaries = summaries_of(tree)
    count = 0
    for path, item in spec["paths"].items():
        for method in METHODS & set(item):
            operation = item[method]
            summary = f"{method.upper()} {path} {operation['summary']}"
            assert summaries[operation["operationId"]] == summary, summaries
            check_operation(spec, path, method, operation,
                            text_of(tree, operation["operationId"]))
            count += 1
    assert count > 10, count
    components = spec["components"]
    for name, schema in components["schemas"].items():
        text = text_of(tree, f"schema-{name}")
        for member in schema.get("properties", {}):
            assert member in text, f"{name} does not tell {member}"
    for kind, prefix in COMPONENTS[1:]:
        for name in components[kind]:
            assert summaries[f"{prefix}-{name}"] == name
            assert text_of(tree, f"{prefix}-{name}")


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
    browser.is_accessible()


# ---- how it is found --------------------------------------------------------

def is_in_sight(browser: Browser, name: str) -> bool:
    return bool(browser.run("""
        const box = document.getElementById(arguments[0])
          .getBoundingClientRect();
        return box.height > 0 && box.top >= 0 && box.top < innerHeight;
        """, name))


def is_current(browser: Browser, name: str) -> bool:
    """The contents mark this section, and no other."""
    marked = browser.run("""
        return [...document.querySelectorAll('nav a:target-current')]
          .map((link) => link.hash)""")
    return bool(marked == [f"#{name}"])


def anchors_of(spec: Any) -> list[str]:
    """All that the page ever had: others may link to them."""
    names = [one["name"] for one in spec["tags"]]
    for item in spec["paths"].values():
        names += [item[method]["operationId"] for method in METHODS & set(item)]
    for kind, prefix in COMPONENTS:
        names += [kind] + [f"{prefix}-{name}"
                           for name in spec["components"][kind]]
    return names


def the_contents_lead_to_each_section(browser: Browser,
                                      service: Service) -> None:
    spec = yaml.safe_load(read(service, "/openapi.yaml"))
    tree = parse(read(service, "/docs"))
    assert not list(tree.iter("script")), "it is to work without scripts"
    links = [link.attrib["href"] for nav in tree.iter("nav")
             for link in nav.iter("a")]
    for name in anchors_of(spec):
        assert f"#{name}" in links, f"the contents have no {name}"
    browser.resize(1280, 900)
    for name in ("getLock", "responses", "schema-Lock", "answer-Unauthorized"):
        browser.open(f"/docs#{name}")
        eventually(lambda name=name: is_in_sight(browser, name), name)
        nav = browser.run("""
            const box = document.querySelector('.columns > nav')
              .getBoundingClientRect();
            const text = document.querySelector('main').getBoundingClientRect();
            return [box.top >= 0, box.right <= text.left, box.bottom <= 900]""")
        assert nav == [True, True, True], f"{name}: {nav}"
    unfold(browser)
    for name in ("extendLock", "listNodes"):
        browser.run("document.getElementById(arguments[0]).scrollIntoView()",
                    name)
        eventually(lambda name=name: is_current(browser, name),
                   f"the contents mark {name}")


def unfold(browser: Browser) -> None:
    browser.run("""for (const it of document.querySelectorAll('.fold')) {
        it.open = true;
        }""")


def the_first_screen_shows_all_operations(browser: Browser,
                                          service: Service) -> None:
    spec = yaml.safe_load(read(service, "/openapi.yaml"))
    assert not PAGES & set(spec["paths"]), "the pages are no operations"
    names = [item[method]["operationId"] for item in spec["paths"].values()
             for method in METHODS & set(item)]
    for size, screens in (((1280, 900), SCREENS), (WIDE, SCREENS),
                          (PHONE, 2 * SCREENS)):
        browser.resize(*size)
        browser.open("/docs")
        for name in names:
            assert browser.run("""
                const box = document.getElementById(arguments[0])
                  .parentElement.querySelector('summary')
                  .getBoundingClientRect();
                return box.height > 0 && box.bottom <= innerHeight;
                """, name), f"{name} is not on the first screen of {size}"
        height = browser.run("return document.documentElement.scrollHeight")
        print(f"      /docs, folded, {size[0]} px wide: {height} px")
        assert height < screens * size[1], (height, size)
    browser.resize(*WIDE)


def a_link_unfolds_one_section(browser: Browser, _: Service) -> None:
    """From elsewhere, of the page itself, and again; the others stay folded."""
    def unfolded() -> list[str]:
        return list(browser.run("""
            return [...document.querySelectorAll('.fold[open] > section')].map(
              (it) => it.id)"""))
    browser.resize(1280, 900)
    for name in ("acquireLock", "header-Retry-After", "schema-Problem"):
        browser.leave()
        browser.open(f"/docs#{name}")
        eventually(lambda name=name: is_in_sight(browser, name), name)
        assert unfolded() == [name], unfolded()
        assert browser.run("""
            return document.getElementById(arguments[0]).parentElement
              .getBoundingClientRect().top >= 0""", name), "nor its summary"
    browser.find("nav a[href='#getPool']")[0].click()
    eventually(lambda: is_in_sight(browser, "getPool"), "a link of the page")
    assert unfolded() == ["getPool", "schema-Problem"], unfolded()
    browser.resize(*WIDE)


def examples_of(operation: Any, spec: Any, is_good: bool) -> int:
    """How many: of the request and of success; or of errors told here."""
    holders = [answer for status, answer in operation["responses"].items()
               if status.startswith("2") == is_good and "$ref" not in answer]
    if is_good:
        holders.append(operation.get("requestBody", {}))
    return sum(len(content["examples"]) for holder in holders
               for content in target(spec, holder).get("content", {}).values())


def examples_are_open_and_errors_are_not(browser: Browser,
                                         service: Service) -> None:
    spec = yaml.safe_load(read(service, "/openapi.yaml"))
    browser.resize(1280, 900)
    browser.open("/docs")
    for item in spec["paths"].values():
        for method in METHODS & set(item):
            name = item[method]["operationId"]
            seen, unseen = browser.run("""
                document.getElementById(arguments[0]).parentElement.open = true;
                const all = [...document.querySelectorAll(
                  `#${arguments[0]} pre`)];
                const seen = all.filter((it) => it.checkVisibility());
                return [seen.length, all.length - seen.length]""", name)
            assert seen == examples_of(item[method], spec, True), name
            assert unseen == examples_of(item[method], spec, False), name
    unfold(browser)
    height, count = browser.run("""
        return [document.documentElement.scrollHeight,
                document.querySelectorAll('main section').length]""")
    print(f"      /docs: {height} px, {height / count:.0f} for each section")
    assert height < SECTION_PX * count, (height, count)
