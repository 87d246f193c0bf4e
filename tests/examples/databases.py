# SPDX-License-Identifier: MIT
"""Databases in which api/clients/examples/fencing/ protects an order."""
import contextlib
import itertools
import os
import pathlib
import re
import runpy
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading

from nodes import HOST, Node
from ports import free_ports
from processes import end, spawn
from waiting import wait_until


def named_statements(source):
    """The statements of the file, by their names."""
    parts = re.split(r"^-- name: (\w+)$", source.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Database:
    """What a story asks; a kind that needs a server has one for all stories."""
    server_kind = None
    _servers, _mutex, _numbers = {}, threading.Lock(), itertools.count(1)

    def __init__(self, source):
        self.source = source
        self.number = next(self._numbers)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fencing."))
        if self.server_kind:
            with self._mutex:
                if self.server_kind not in self._servers:
                    self._servers[self.server_kind] = self.server_kind()
            self.server = self._servers[self.server_kind]
        self.prepare()

    def prepare(self):
        pass

    def close(self):
        shutil.rmtree(self.folder)

    @classmethod
    def stop_servers(cls):
        for server in cls._servers.values():
            server.stop()
        cls._servers.clear()


class DatabaseServer:
    """One behind a socket in its folder. As root, it runs as the user whom
    Debian's package made."""

    def __init__(self, user):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="database."))
        self.data = str(self.folder / "data")
        self.log = open(self.folder / "log", "wb")
        self.user = ()
        if os.getuid() == 0:
            self.user = ("setpriv", "--reuid", user, "--regid", user,
                         "--clear-groups", "--pdeathsig", "KILL")
            self.folder.chmod(0o755)
            shutil.chown(self.folder, user)
        self.process = None
        self.start()
        wait_until(self.is_up, f"the server of {user} starts", 60)

    def run(self, *command):
        subprocess.run([*self.user, *command], check=True, stdout=self.log,
                       stderr=self.log, cwd=self.folder)

    def spawn(self, *command):
        self.process = spawn(*self.user, *command, stdout=self.log,
                             stderr=self.log, cwd=self.folder)

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # asks for a fast shutdown
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            end(self.process)
        self.log.close()
        shutil.rmtree(self.folder)


def tell(command):
    """What the command says; it must succeed."""
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# ---- SQL ----------------------------------------------------------------------

class Sqlite(Database):
    def prepare(self):
        self.statements = named_statements(self.source)
        self.path = self.folder / "sqlite"
        self.run("schema")

    def run(self, name, **values):
        """The first column of what is returned."""
        with contextlib.closing(sqlite3.connect(self.path)) as link, link:
            return [row[0] for row in link.execute(self.statements[name], values)]


class PostgresqlServer(DatabaseServer):
    def __init__(self):
        self.bin = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"),
                       key=lambda path: float(path.parent.name))
        super().__init__("postgres")

    def start(self):
        self.run(self.bin / "initdb", "-D", self.data, "-A", "trust", "-U",
                 "postgres", "--no-sync")
        self.spawn(str(self.bin / "postgres"), "-D", self.data, "-F", "-k",
                   str(self.folder), "-c", "listen_addresses=")

    def client(self, *arguments):
        return [self.bin / "psql", "-h", self.folder, "-U", "postgres", "-qtA",
                "-v", "ON_ERROR_STOP=1", *arguments]

    def is_up(self):
        return subprocess.run(self.client("-c", "SELECT 1"),
                              capture_output=True).returncode == 0


class Postgresql(Database):
    server_kind = PostgresqlServer

    def prepare(self):
        tell(self.server.client("-c", f"CREATE DATABASE story{self.number}"))

    def run(self, name, **values):
        """One session prepares the statements and executes one of them."""
        order = {"write": ("id", "state", "fence"), "read": ("id", "fence"),
                 "put": ("id", "state", "fence")}[name]
        literals = ", ".join(repr(values[word]) for word in order)
        return tell(self.server.client(
            "-d", f"story{self.number}", "-f", self.source,
            "-c", f"EXECUTE {name}_order({literals})"))


class MariadbServer(DatabaseServer):
    def __init__(self):
        super().__init__("mysql")

    def start(self):
        self.run("mariadb-install-db", "--no-defaults", f"--datadir={self.data}",
                 "--auth-root-authentication-method=normal", "--skip-test-db",
                 "--skip-name-resolve")
        self.spawn("/usr/sbin/mariadbd", "--no-defaults",
                   f"--datadir={self.data}", f"--socket={self.folder}/socket",
                   "--skip-networking", "--innodb-flush-log-at-trx-commit=0",
                   f"--pid-file={self.folder}/pid")

    def client(self, *arguments):
        return ["mariadb", "--no-defaults", "-u", "root", "-S",
                f"{self.folder}/socket", "-N", "-B", *arguments]

    def is_up(self):
        return subprocess.run(self.client("-e", "SELECT 1"),
                              capture_output=True).returncode == 0

    def stop(self):
        self.process.terminate()
        super().stop()


class Mariadb(Database):
    server_kind = MariadbServer

    def prepare(self):
        self.statements = named_statements(self.source)
        self.name = f"story{self.number}"
        tell(self.server.client("-e", f"CREATE DATABASE {self.name}"))
        self.run("schema")

    def run(self, name, **values):
        text = re.sub(r":(\w+)", lambda match: repr(values[match[1]]),
                      self.statements[name])
        return tell(self.server.client("-D", self.name, "-e",
                                       f"START TRANSACTION; {text} COMMIT"))


# ---- others -------------------------------------------------------------------

class RedisServer(Node):
    def __init__(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="database."))
        super().__init__(self.home, {"save": ""})
        self.start()

    def stop(self):
        self.kill()
        shutil.rmtree(self.home)


class Redis(Database):
    server_kind = RedisServer

    def run(self, name, id, fence, state=None):
        answer = self.server.do(
            "EVAL", self.source.read_text(), 1, f"{self.number}:order:{id}",
            fence, *([state] if name != "read" else []))
        return [] if answer is None else [answer]


class LighttpdServer:
    """WebDAV, whose PUT obeys If-Match and If-None-Match."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="database."))
        (self.folder / "data").mkdir()
        [self.port] = free_ports(1)
        (self.folder / "conf").write_text(
            'server.modules = ("mod_staticfile", "mod_webdav")\n'
            'mimetype.assign = (".json" => "application/json")\n'
            f'server.document-root = "{self.folder}/data"\n'
            f'server.bind = "{HOST}"\nserver.port = {self.port}\n'
            'webdav.activate = "enable"\n')
        with open(self.folder / "log", "wb") as log:
            self.process = spawn("lighttpd", "-D", "-f", self.folder / "conf",
                                 stdout=log, stderr=log)
        wait_until(lambda: b"started" in (self.folder / "log").read_bytes(),
                   "lighttpd starts", 10)

    def stop(self):
        end(self.process)
        shutil.rmtree(self.folder)


class Etag(Database):
    """The program reads an object; before it writes, another one may have."""
    server_kind = LighttpdServer

    def prepare(self):
        self.program = runpy.run_path(str(self.source))

    def run(self, name, id, fence, state=None):
        url = f"http://{HOST}:{self.server.port}/{self.number}-{id}.json"
        try:
            return [self.program["write"](url, fence, state)]
        except self.program["Late"]:
            return []

    def between(self, step):
        """Takes the step once, between the next look at the object and the
        change of it."""
        names = self.program["write"].__globals__
        real = names["ask"]

        def ask(method, *arguments, **headers):
            if method == "PUT":
                names["ask"] = real
                step()
            return real(method, *arguments, **headers)
        names["ask"] = ask
