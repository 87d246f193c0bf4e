#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a TLS server accepts, tried one by one; what it should not is an error.

accepted.py REDLOCKD

Starts redlockd with an ECDSA certificate, and again with an RSA one. For each
protocol version, each cipher suite of OpenSSL, each key exchange with each
cipher of GnuTLS, and each group, one handshake that offers nothing else. Then
SHA-1, tickets and a renegotiation. Only suites with forward secrecy and AEAD may be accepted;
and at least one of each kind that the docs name must be.
"""
from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

WEAK = "@SECLEVEL=0"
GOOD = re.compile(r"^(TLS_(AES|CHACHA20)_\w+|ECDHE-(ECDSA|RSA)-"
                  r"(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305))$")
GOOD_GROUPS = {"X25519", "P-256", "P-384"}
MUST = {"ecdsa": {"TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
        "rsa": {"TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES128-GCM-SHA256"}}
problems: list[str] = []


def run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True,
                          timeout=60, check=False)
    return done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """redlockd without nodes: it is not ready, but speaks TLS."""

    def __init__(self, binary: str, folder: str, kind: str) -> None:
        key = (["rsa:2048"] if kind == "rsa" else
               ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        cert, private = f"{folder}/{kind}.pem", f"{folder}/{kind}.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", *key, "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-keyout",
                        private, "-out", cert], check=True,
                       capture_output=True)
        self.port = free_port()
        self.process = subprocess.Popen(
            [binary, "--listen", f"127.0.0.1:{self.port}", "--nodes",
             "127.0.0.1:1", "--tls-cert", cert, "--tls-key", private,
             "--drain-ms", "0", "--log-level", "error"])
        self.wait()

    def wait(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        sys.exit("tls: redlockd does not listen")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(20) != 0:
            problems.append("redlockd did not end well")

    def openssl(self, *options: str) -> str:
        """What s_client says: the suite that was agreed on, or ""."""
        said = run("openssl", "s_client", "-connect",
                   f"127.0.0.1:{self.port}", "-brief", *options)
        found = re.search(r"^Ciphersuite: (\S+)", said, re.M)
        return found.group(1) if found else ""

    def gnutls(self, priorities: str) -> bool:
        said = run("gnutls-cli", "--insecure", "--priority", priorities, "-p",
                   str(self.port), "127.0.0.1")
        return "Handshake was completed" in said


# ---- what there is to try ---------------------------------------------------

def openssl_suites() -> list[str]:
    listed = run("openssl", "ciphers", "-s", "-tls1_2",
                 f"ALL:COMPLEMENTOFALL:{WEAK}")
    return listed.strip().split(":")


# ---- the trials -------------------------------------------------------------

def check_versions(server: Server) -> None:
    for version in ("-tls1", "-tls1_1"):
        if server.openssl(version, "-cipher", f"ALL:{WEAK}"):
            problems.append(f"{version} is accepted")
    for version in ("-tls1_2", "-tls1_3"):
        if not server.openssl(version):
            problems.append(f"{version} is refused")


def check_suites(server: Server, kind: str) -> int:
    tried = openssl_suites()
    new = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
           "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_CCM_SHA256",
           "TLS_AES_128_CCM_8_SHA256"]
    with ThreadPoolExecutor(4) as pool:
        old_said = pool.map(lambda suite: server.openssl(
            "-tls1_2", "-cipher", f"{suite}:{WEAK}"), tried)
        new_said = pool.map(lambda suite: server.openssl(
            "-tls1_3", "-ciphersuites", suite), new)
        accepted = {suite for suite in [*old_said, *new_said] if suite}
    for suite in sorted(accepted):
        print(f"  {kind}: {suite}")
        if not GOOD.match(suite) or "CCM" in suite:
            problems.append(f"{kind}: {suite} is accepted")
    for suite in sorted(MUST[kind] - accepted):
        problems.append(f"{kind}: {suite} is refused")
    return len(tried) + len(new)


def check_gnutls(server: Server, kind: str) -> int:
    exchanges = ("RSA", "DHE-RSA", "ECDHE-RSA", "ECDHE-ECDSA", "ANON-DH",
                 "ANON-ECDH")
    ciphers = ("AES-128-GCM", "AES-256-GCM", "CHACHA20-POLY1305", "AES-128-CCM",
               "AES-256-CCM", "AES-128-CCM-8", "AES-128-CBC", "AES-256-CBC",
               "CAMELLIA-128-GCM", "CAMELLIA-128-CBC", "3DES-CBC",
               "ARCFOUR-128", "NULL")
    forms = [(exchange, cipher) for exchange in exchanges for cipher in ciphers]

    def accepted(form: tuple[str, str]) -> bool:
        exchange, cipher = form
        return server.gnutls(
            f"NONE:+VERS-TLS1.2:+{exchange}:+{cipher}:+MAC-ALL:+SIGN-ALL:"
            "+GROUP-ALL:+COMP-NULL:+CTYPE-X509")
    with ThreadPoolExecutor(4) as pool:
        for form, is_accepted in zip(forms, pool.map(accepted, forms)):
            exchange, cipher = form
            is_good = (exchange == f"ECDHE-{kind.upper()}" and
                       cipher in ciphers[:3])
            if is_accepted != is_good:
                problems.append(
                    f"{kind}: GnuTLS with {exchange} and {cipher} is "
                    f"{'accepted' if is_accepted else 'refused'}")
    return len(forms)


def check_groups(server: Server) -> int:
    listed = ("X25519", "P-256", "P-384", "P-521", "X448", "P-224",
              "brainpoolP256r1", "secp256k1", "ffdhe2048", "ffdhe3072")
    for group in listed:
        is_accepted = bool(server.openssl("-groups", group))
        if is_accepted != (group in GOOD_GROUPS):
            problems.append(f"group {group}: "
                            f"{'accepted' if is_accepted else 'refused'}")
    return len(listed)


def check_session(server: Server) -> None:
    """No SHA-1, no tickets, no renegotiation."""
    if server.openssl("-tls1_2", "-sigalgs", "ECDSA+SHA1:RSA+SHA1", "-cipher",
                      f"ALL:{WEAK}"):
        problems.append("signatures with SHA-1 are accepted")
    for version in ("-tls1_2", "-tls1_3"):
        said = run("openssl", "s_client", "-connect",
                   f"127.0.0.1:{server.port}", version)
        if "session ticket:" in said.lower():
            problems.append(f"{version}: there is a session ticket")
    said = run("sh", "-c",
               f"(sleep 0.5; echo R; sleep 1) | openssl s_client -connect "
               f"127.0.0.1:{server.port} -tls1_2 -legacy_renegotiation")
    if "RENEGOTIATING" not in said:
        problems.append("s_client has not tried to renegotiate")
    elif re.search(r"RENEGOTIATING.*(verify return|Server certificate)", said,
                   re.S):
        problems.append("renegotiation is accepted")


def main() -> None:
    binary = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("ecdsa", "rsa"):
            server = Server(binary, folder, kind)
            try:
                check_versions(server)
                tried = check_suites(server, kind) + check_groups(server)
                tried += check_gnutls(server, kind)
                check_session(server)
            finally:
                server.stop()
            print(f"{kind}: {tried} tried")
    for problem in problems:
        print(f"tls: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
