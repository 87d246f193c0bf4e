#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of the modules named on the command line, or of all check_*.py
here and in tests/protocol; ends with "N passed, N failed"."""
import logging
import pathlib
import sys
import time
import unittest
import warnings


class Result(unittest.TestResult):
    passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def _say(self, verdict, test, text=""):
        took = time.monotonic() - getattr(self, "began", time.monotonic())
        print(f"{verdict:5} {test.id()} ({took:.1f} s) {text}", flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self._say("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("skip", test, reason)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say("FAIL", test, "\n" + self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self._say("FAIL", test, "\n" + self.errors[-1][1])

    def addSubTest(self, test, subtest, error):
        if error:
            self.addFailure(subtest, error)


FOLDERS = [pathlib.Path(__file__).parents[1] / name
           for name in ("python", "protocol")]
# it tells of blocks that hold up the loop: some do so on purpose
logging.getLogger("asyncio").setLevel(logging.ERROR)
# two tests fork while other threads run, on purpose
warnings.filterwarnings("ignore", ".* is multi-threaded, use of fork")
names = sys.argv[1:] or sorted(path.stem for folder in FOLDERS
                               for path in folder.glob("check_*.py"))
result = Result()
unittest.defaultTestLoader.loadTestsFromNames(names).run(result)
failed = len(result.failures) + len(result.errors)
print(f"{result.passed} passed, {failed} failed")
sys.exit(1 if failed or not result.passed else 0)
