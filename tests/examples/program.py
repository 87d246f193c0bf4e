# SPDX-License-Identifier: MIT
"""An example as a process: what it says, and how it is paused and ended."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

from jobs import Job
from processes import end, spawn
from waiting import wait_until


def now_ms():
    """By the clock with which the examples stamp their steps."""
    return time.time_ns() // 10**6


class Lines:
    """A process, and the lines that it says."""

    def __init__(self, command, **variables):
        self.lines = []
        self.process = spawn(
            *command, text=True, env={**os.environ, **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.reader = Job(self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def tail(self):
        return " / ".join(self.lines[-5:])

    def says(self, pattern, limit_s=15):
        wait_until(lambda: any(re.search(pattern, line) for line in self.lines),
                   f"it says {pattern}: {self.tail()}", limit_s)

    def result(self, limit_s=30):
        """Its exit status, when it has ended and all was read."""
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it goes on: {self.tail()}") from None
        self.reader.join(5)  # ends only if no child of it writes any more
        return self.process.returncode

    def tell(self, number):
        """A signal to it and all that it has started."""
        os.killpg(self.process.pid, number)

    def leave(self):
        with contextlib.suppress(ProcessLookupError):
            self.tell(signal.SIGKILL)
        end(self.process)


class Program(Lines):
    """It works under a lock; each step is a line "working STAMP_MS FENCE",
    with its slot behind if there is one."""

    def __init__(self, command, urls, lock, work_ms, variables):
        """lock: resource, TTL and wait, for where the command has `...`"""
        command = list(command) + [...] * (... not in command)
        place = command.index(...)
        command[place:place + 1] = lock
        super().__init__([*command, work_ms], URLS=" ".join(urls), **variables)

    def _steps(self):
        found = [re.fullmatch(r"working (\d+) (\d+)( \d+)?", line)
                 for line in list(self.lines)]
        return [(int(step[1]), int(step[2]), int(step[3] or -1))
                for step in found if step]

    def stamps_ms(self):
        return [stamp for stamp, _, _ in self._steps()]

    def fences(self):
        return {fence for _, fence, _ in self._steps()}

    def slots(self):
        """-1: none."""
        return {slot for _, _, slot in self._steps()}

    def has_worked(self, limit_s=15):
        """Waits for the first step."""
        wait_until(lambda: self._steps() or self.process.poll() is not None,
                   f"the example works: {self.tail()}", limit_s)
        assert self._steps(), f"it ended without work: {self.tail()}"

    def result(self, limit_s=30):
        status = super().result(limit_s)
        assert not self.reader.is_alive(), "it left a child that goes on"
        return status

    def tail(self):
        return " / ".join(line for line in self.lines[-400:]
                          if not line.startswith("working"))[-300:] \
            or f"{len(self.lines)} steps"

    def completes(self, limit_s=30):
        status = self.result(limit_s)
        assert status == 0, f"exit status {status}: {self.tail()}"
        assert self._steps(), "it did no work"

    def loses(self, limit_s=30):
        """It ends because the lock was lost, and tells so."""
        status = self.result(limit_s)
        assert status != 0, "it ended as if the lock had not been lost"
        assert re.search(r"lock\W*lost", "\n".join(self.lines), re.I), \
            f"it ended with {status}, but not for the lock: {self.tail()}"

    def quiet_after(self, moment_ms, why):
        late = [stamp - moment_ms for stamp in self.stamps_ms()
                if stamp > moment_ms]
        assert not late, f"{len(late)} steps {why}, up to {late[-1]} ms late"

    # -- as a machine that sleeps: with all processes of its session

    def _session(self):
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended
            if int(fields[3]) == self.process.pid:
                yield int(entry.parent.name)

    def signal_all(self, number):
        for pid in self._session():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def pause(self):
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def leave(self):
        self.signal_all(signal.SIGKILL)
        end(self.process)
