#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the transcripts notice mistakes: breaks a rule in a copy of a
package, and its player must fail.

  broken.py [PACKAGE…]      python, node, go, php, ruby, java, rust; PYTHON is an
                            interpreter with httptools

Ends with "N passed, N failed".
"""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
JAVA = "src/main/java/org/redlockd"


class Break(NamedTuple):
    rule: str
    file: str
    line: str
    broken: str


class Package(NamedTuple):
    source: str  # what is copied
    play: list[str]  # the command, within the copy
    breaks: list[Break]


PACKAGES = {
    "python": Package("api/clients/python/src", [
        os.environ.get("PYTHON", "python3"), str(ROOT / "tests/python/main.py"),
        "check_protocol.Transcripts.test_each"], [
        Break("a repeat has the key of the first request", "redlockd/_talk.py",
              "self._key, wish.members", "os.urandom(9).hex(), wish.members"),
        Break("validity counts from before the request", "redlockd/_talk.py",
              'granted = sent + body', 'granted = now() + body'),
        Break("a release that may have been done is no loss",
              "redlockd/_talk.py", "if may_be_done or answer.is_repeated:",
              "if False:"),
        Break("an acquire may be granted by a kept connection that ended",
              "redlockd/_talk.py", "return not self.is_repeated and (",
              "return ("),
        Break("two short requests are under way at most", "redlockd/_batch.py",
              "SLOTS = 2\n", "SLOTS = 3\n"),
        Break("an acquire beside others is tried once", "redlockd/_batch.py",
              "        trip.is_batch = len(trip.calls) > 1 or (\n",
              "        trip.is_batch = len(trip.calls) > 1 or (False and\n"),
        Break("an extend without time takes no place", "redlockd/_batch.py",
              "        if self._urgent:\n"
              "            trip = self._take(has_slot=False)\n",
              "        if self._urgent and self._free:\n"
              "            trip = self._take(has_slot=True)\n"),
    ]),
    "node": Package("api/clients/node/src", [
        os.environ.get("NODE", "node"), "--test",
        str(ROOT / "tests/node/protocol.test.mjs")], [
        Break("a repeat has the key of the first request", "talk.js",
              "new Acquire(wish, this.key,", "new Acquire(wish, randomUUID(),"),
        Break("validity counts from before the request", "answer.js",
              "const granted = sent +",
              'const granted = require("./clock.js").now() +'),
        Break("a release that may have been done is no loss", "talk.js",
              "if (mayBeDone || answer.isRepeated) return;", ""),
        Break("an acquire may be granted by a kept connection that ended",
              "answer.js", "return !this.isRepeated && (", "return ("),
        Break("two short requests are under way at most", "queue.js",
              "const SLOTS = 2;", "const SLOTS = 3;"),
        Break("an acquire beside others is tried once", "queue.js",
              "const isTriedOnce = this.#underWay > 0 &&",
              "const isTriedOnce = false &&"),
        Break("an extend without time takes no place", "queue.js",
              "if (operation.mustWait || operation.isUrgent)",
              "if (operation.mustWait)"),
    ]),
    "php": Package("api/clients/php", [
        "php", str(ROOT / "tests/php/transcripts.php")], [
        Break("a repeat has the key of the first request",
              "src/Internal/Attempt.php",
              "['Idempotency-Key' => $this->key]",
              "['Idempotency-Key' => bin2hex(random_bytes(9))]"),
        Break("validity counts from before the request", "src/Internal/Grant.php",
              "$granted = $answer->sentMs", "$granted = Clock::nowMs()"),
        Break("a release that may have been done is no loss",
              "src/Internal/Talk.php", "if ($mayBeDone || $answer->isRepeated) {",
              "if (false) {"),
        Break("an acquire may be granted by a kept connection that ended",
              "src/Internal/Answer.php", "return !$this->isRepeated\n            && (",
              "return ("),
        Break("an extend leaves time for another replica", "src/Internal/Talk.php",
              "min($this->timeoutMs, $leftMs / 4)", "$this->timeoutMs"),
    ]),
    "ruby": Package("api/clients/ruby", [
        "ruby", str(ROOT / "tests/ruby/transcripts.rb")], [
        Break("a repeat has the key of the first request",
              "lib/redlockd/wanted.rb", '{ "Idempotency-Key" => @key }',
              '{ "Idempotency-Key" => SecureRandom.hex(9) }'),
        Break("validity counts from before the request", "lib/redlockd/grant.rb",
              "granted = answer.sent_ms", "granted = Clock.now_ms"),
        Break("a release that may have been done is no loss",
              "lib/redlockd/talk.rb", "return if may_be_done || answer.repeated?",
              "return if false"),
        Break("an acquire may be granted by a kept connection that ended",
              "lib/redlockd/answer.rb", "!repeated? && (", "("),
        Break("an extend leaves time for another replica", "lib/redlockd/talk.rb",
              "[@timeout_ms, left_ms / 4].min", "@timeout_ms"),
        Break("two short requests are under way at most",
              "lib/redlockd/coalescer.rb", "PLACES = 2", "PLACES = 3"),
        Break("an acquire beside others is tried once",
              "lib/redlockd/coalescer.rb", "is_tried_once = @under_way.positive?",
              "is_tried_once = false"),
        Break("an extend without time takes no place", "lib/redlockd/coalescer.rb",
              "wanted.must_wait || wanted.is_urgent", "wanted.must_wait"),
        Break("a try that was refused waits with another key",
              "lib/redlockd/wanted.rb", "new_key unless may_be_granted", ""),
    ]),
    "java": Package("api/clients/java", [str(ROOT / "tests/java/play.sh")], [
        Break("a repeat has the key of the first request", f"{JAVA}/Attempt.java",
              "acquire(wanted, key, wanted.body()",
              "acquire(wanted, newKey(), wanted.body()"),
        Break("validity counts from before the request", f"{JAVA}/Grant.java",
              "grantedMs = sentMs", "grantedMs = Clock.nowMs()"),
        Break("a release that may have been done is no loss", f"{JAVA}/Talk.java",
              "if (mayBe || answer.isRepeated) {", "if (false) {"),
        Break("an acquire may be granted by a kept connection that ended",
              f"{JAVA}/Answer.java", "return !isRepeated && (", "return ("),
        Break("an extend leaves time for another replica", f"{JAVA}/Talk.java",
              "body, Math.min(timeoutMs, leftMs / 4)", "body, timeoutMs"),
        Break("two short requests are under way at most", f"{JAVA}/Coalescer.java",
              "PLACES = 2;", "PLACES = 3;"),
        Break("an acquire beside others is tried once", f"{JAVA}/Coalescer.java",
              "boolean isBesideOthers = ", "boolean isBesideOthers = false && "),
        Break("an extend without time takes no place", f"{JAVA}/Coalescer.java",
              "            } else if (one.send.isUrgent) {", "            } else if (false) {"),
    ]),
    "rust": Package("api/clients/rust", [
        "env", "CARGO_INCREMENTAL=1", "cargo", "test", "--quiet", "--lib"], [
        Break("a repeat has the key of the first request", "src/wanted.rs",
              '("Idempotency-Key", self.key.clone())',
              '("Idempotency-Key", crate::clock::now_ms().to_string())'),
        Break("validity counts from before the request", "src/grant.rs",
              "let granted = answer.sent_ms", "let granted = now_ms()"),
        Break("a release that may have been done is no loss", "src/talk.rs",
              "if self.may_be_done || answer.is_repeated {", "if false {"),
        Break("an acquire may be granted by a kept connection that ended",
              "src/answer.rs", "!self.is_repeated\n            && (", "("),
        Break("an extend leaves time for another replica", "src/talk.rs",
              "self.rules.timeout_ms.min(left_ms / 4.0)", "self.rules.timeout_ms"),
        Break("two short requests are under way at most", "src/coalesce.rs",
              "PLACES: usize = 2;", "PLACES: usize = 3;"),
        Break("an acquire beside others is tried once", "src/coalesce.rs",
              "                && calls[0].is_tried_once()", "                && false"),
        Break("an extend without time takes no place", "src/coalesce.rs",
              "call.has(|operation| operation.is_urgent)", "false"),
    ]),
    "go": Package("api/clients/go", ["go", "test", "-count=1", "."], [
        Break("a repeat has the key of the first request", "acquire.go",
              "	t.asked = t.options.acquire(",
              "	t.key, _ = newKey()\n	t.asked = t.options.acquire("),
        Break("validity counts from before the request", "acquire.go",
              "	if g := readGrant(a); g != nil && g.workUntil",
              "	a.sent = now\n	if g := readGrant(a); g != nil && g.workUntil"),
        Break("a release that may have been done is no loss", "extend.go",
              "if t.mayBeDone || a.isRepeated {", "if false {"),
        Break("an acquire may be granted by a kept connection that ended",
              "answer.go", "return !a.isRepeated && (", "return ("),
        Break("two short requests are under way at most", "coalesce.go",
              "	slots = 2\n", "	slots = 3\n"),
        Break("an acquire beside others is tried once", "coalesce.go",
              "	return o.request.kind == acquire &&",
              "	return false &&"),
        Break("an extend without time takes no place", "coalesce.go",
              "		case r.isUrgent:\n", "		case false:\n"),
    ]),
}


def plays(package: Package, copy: pathlib.Path) -> str | None:
    """What its player says; None: it fails."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "ROOT": str(ROOT),
                   "PLAYED": str(copy), "PACKAGE": str(copy),
                   "TRANSCRIPTS": str(ROOT / "tests/protocol"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(package.play, cwd=copy, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return None if done.returncode else done.stdout


def notices(package: Package, copy: pathlib.Path, one: Break) -> bool:
    file = copy / one.file
    text = file.read_text()
    assert text.count(one.line) == 1, f"{one.file}: {one.line}"
    file.write_text(text.replace(one.line, one.broken))
    says = plays(package, copy)
    file.write_text(text)
    return says is None


def check(name: str, package: Package) -> Iterator[bool]:
    """In one copy: a compiler goes on from what it has compiled."""
    def report(is_right: bool, what: str) -> bool:
        print("ok   " if is_right else "FAIL ", name, what, flush=True)
        return is_right

    with tempfile.TemporaryDirectory(prefix="broken.") as folder:
        copy = pathlib.Path(folder) / "copy"
        shutil.copytree(ROOT / package.source, copy)
        says = plays(package, copy)
        yield report(says is not None and "warning: " not in says, "as it is")
        for one in package.breaks:
            yield report(notices(package, copy, one), f"broken: {one.rule}")


def main(names: list[str]) -> int:
    counts = {True: 0, False: 0}
    for name in names or PACKAGES:
        for is_right in check(name, PACKAGES[name]):
            counts[is_right] += 1
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
