# SPDX-License-Identifier: MIT
"""Certificates for tests of TLS, good ones and bad ones, made on the fly."""
from __future__ import annotations

import subprocess
from pathlib import Path


def openssl(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(words)}: {done.stdout}")


KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """Files in a folder: name.pem and name.key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in "ca", "other-ca":
            openssl(folder, "req", "-x509", *KEY, "-keyout", f"{name}.key",
                    "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")
        self.make("server", "IP:127.0.0.1")
        self.make("elsewhere", "DNS:redlockd.example")
        self.make("foreign", "IP:127.0.0.1", ca="other-ca")
        self.make("expired", "IP:127.0.0.1", *self.past())
        self.make("client", "DNS:gateway")
        self.make("stranger", "DNS:gateway", ca="other-ca")

    def past(self) -> tuple[str, ...]:
        """Newer openssl refuse days that are negative, older ones dates."""
        text = subprocess.run(["openssl", "x509", "-help"], text=True,
                              capture_output=True).stderr
        return ("-not_before", "20200101000000Z", "-not_after",
                "20200102000000Z") if "-not_after" in text else ("-days", "-1")

    def make(self, name: str, names: str, *days: str, ca: str = "ca") -> None:
        (self.folder / "names").write_text(f"subjectAltName={names}\n")
        openssl(self.folder, "req", *KEY, "-keyout", f"{name}.key", "-out",
                f"{name}.csr", "-subj", f"/CN={name}")
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA",
                f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial",
                *(days or ("-days", "2")), "-extfile", "names", "-out", f"{name}.pem")

    def __getitem__(self, file: str) -> str:
        return str(self.folder / file)
