"""Databases in which api/clients/examples/fencing/ protects a row."""
import contextlib
import pathlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess

from processes import spawn
from waiting import wait_until


class Sqlite:
    """The statements of the file, by their names."""

    def __init__(self, source, folder):
        parts = re.split(r"^-- name: (\w+)$", source.read_text(), flags=re.M)
        self.statements = dict(zip(parts[1::2], parts[2::2]))
        self.path = folder / "sqlite"
        self.run("schema")

    def run(self, name, **values):
        """The first column of what is returned."""
        with contextlib.closing(sqlite3.connect(self.path)) as link, link:
            return [row[0] for row in link.execute(self.statements[name], values)]

    def close(self):
        pass


class Postgresql:
    """A server of its own, behind a socket in its folder. It refuses to run as
    root, who gives it to the user whom Debian's package made."""

    def __init__(self, source, folder):
        self.source, self.folder = source, folder
        self.bin = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"),
                       key=lambda path: float(path.parent.name))
        self.user = ()
        if os.getuid() == 0:
            self.user = ("setpriv", "--reuid", "postgres", "--regid",
                         "postgres", "--clear-groups", "--pdeathsig", "KILL")
            folder.chmod(0o755)
            shutil.chown(folder, "postgres")
        data = str(folder / "data")
        with open(folder / "log", "wb") as log:
            subprocess.run(
                [*self.user, self.bin / "initdb", "-D", data, "-A", "trust",
                 "-U", "postgres", "--no-sync"], check=True, stdout=log,
                stderr=log, cwd=folder)
            self.process = spawn(
                *self.user, self.bin / "postgres", "-D", data, "-F", "-k", folder,
                "-c", "listen_addresses=", stdout=log, stderr=log, cwd=folder)
        wait_until(lambda: self.psql("-c", "SELECT 1").returncode == 0,
                   "PostgreSQL starts", 60)

    def psql(self, *arguments):
        return subprocess.run(
            [self.bin / "psql", "-h", self.folder, "-U", "postgres", "-qtA",
             "-v", "ON_ERROR_STOP=1", *arguments], text=True,
            capture_output=True)

    def run(self, name, **values):
        """One session prepares the statements and executes one of them."""
        order = {"write": ("id", "state", "fence"), "read": ("id", "fence"),
                 "put": ("id", "state", "fence")}[name]
        literals = ", ".join(repr(values[word]) for word in order)
        done = self.psql("-f", self.source,
                         "-c", f"EXECUTE {name}_order({literals})")
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def close(self):
        self.process.send_signal(signal.SIGINT)  # asks it for a fast shutdown
        self.process.wait(30)
