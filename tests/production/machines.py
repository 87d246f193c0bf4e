# SPDX-License-Identifier: MIT
"""Six machines on one network: trees of Debian that systemd has booted, each in
namespaces of its own, with names in /etc/hosts and ssh between them. They stand
for the hardware, and for nothing else."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
import mirror
from waiting import wait_until

NAMES = ("n1", "n2", "n3", "n4", "n5", "admin")
NETWORK = "10.77.0"
MIRROR = (f"{NETWORK}.254", 3128)
BOOT_S = 180

ENVIRONMENT = ("HOME=/root", "LANG=C.UTF-8", "TERM=dumb", "PAGER=cat",
               "USER=root", "DEBIAN_FRONTEND=noninteractive",
               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
               "/sbin:/bin")


def call(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


class Machine:
    def __init__(self, name: str, base: Path, folder: Path) -> None:
        self.name = name
        self.address = f"{NETWORK}.{NAMES.index(name) + 1}"
        self.upper = folder / "upper"
        (self.upper / "etc").mkdir(parents=True, exist_ok=True)
        self.write("etc/hostname", name + "\n")
        self.write("etc/hosts", "127.0.0.1 localhost\n" + "".join(
            f"{NETWORK}.{number} {each}\n"
            for number, each in enumerate(NAMES, 1)))
        self.write("etc/apt/apt.conf.d/01proxy", 'Acquire::http::Proxy '
                   f'"http://{MIRROR[0]}:{MIRROR[1]}";\n')
        with (folder / "boot.log").open("wb") as log:
            self.process = subprocess.Popen(
                [str(ROOT / "tests/production/machine.sh"), str(base),
                 str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True)
        self.init = 0

    def write(self, path: str, text: str) -> None:
        """Before the machine boots."""
        file = self.upper / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def wait_until_up(self) -> None:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} does not boot")
        self.init = int(line)

    def plug_in(self, switch: int) -> None:
        """A cable to the switch."""
        call("nsenter", "-t", switch, "-n", "sh", "-ec", f"""
            ip link add {self.name} type veth peer name eth0 netns {self.init}
            ip link set {self.name} master lan up""")
        call("nsenter", "-t", self.init, "-n", "sh", "-ec", f"""
            ip addr add {self.address}/24 dev eth0
            ip link set eth0 up""")

    def words(self, script: str) -> list[str]:
        return ["nsenter", "--target", str(self.init), "--all", "--wdns=/root",
                "env", "-i", *ENVIRONMENT, "bash", "-l", "-euo", "pipefail",
                "-c", script]

    def spawn(self, script: str, log: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.words(script), stdout=log, stderr=log,
                                stdin=subprocess.DEVNULL)

    def run(self, script: str, limit_s: float) -> tuple[int, str]:
        """As root pastes it at a prompt: exit status and all that it prints."""
        try:
            done = subprocess.run(
                self.words(script), stdout=subprocess.PIPE,
                stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, text=True,
                errors="replace", timeout=limit_s, check=False)
        except subprocess.TimeoutExpired as error:
            said = error.stdout or b""
            return 124, said.decode(errors="replace") if isinstance(
                said, bytes) else said
        return done.returncode, done.stdout

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Machines:
    def __init__(self, work: Path) -> None:
        """work: with base/, a tree, and deb/, both made by run.sh"""
        self.switch = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net",
             "sleep", "infinity"])
        self.all: dict[str, Machine] = {}
        self.bring_packages(work)
        for name in NAMES:
            self.all[name] = Machine(name, work / "base",
                                     work / "machines" / name)

    @staticmethod
    def bring_packages(work: Path) -> None:
        home = work / "machines/admin/upper/root"
        home.mkdir(0o700, parents=True)
        for name in ("redlockd", "redlockctl"):
            for file in (work / "deb").glob(f"{name}_*.deb"):
                shutil.copy(file, home)

    def start(self) -> None:
        # its network is there when it runs `sleep`
        wait_until(lambda: "sleep" in Path(
            f"/proc/{self.switch.pid}/comm").read_text(), "the switch")
        call("nsenter", "-t", self.switch.pid, "-n", "sh", "-ec", f"""
            ip link set lo up
            ip link add lan type bridge
            ip addr add {MIRROR[0]}/24 dev lan
            ip link set lan up""")
        mirror.serve(self.switch.pid, *MIRROR)
        for machine in self.all.values():
            machine.wait_until_up()
            machine.plug_in(self.switch.pid)

    def stop(self) -> None:
        for machine in self.all.values():
            machine.end()
        self.switch.kill()
        self.switch.wait()
