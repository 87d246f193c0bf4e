"""The same load over TLS and over plain HTTP, in turns on the same nodes; then
what HANDSHAKES (1000) whole handshakes cost the server, with an ECDSA key and
with an RSA one. CLIENTS (64) says how many clients there are.
"""
from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from certificates import openssl
from measure import (Path, Run, Runs, around, cpu_per_cycle, in_pairs, load,
                     setting, pids, show)
from processes import cpu_us
from stack import Stack, started

KEYS = {"ECDSA P-256": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        "RSA 2048": ("rsa:2048",)}


def start_secure(stack: Stack, server: int, key: tuple[str, ...]) -> None:
    names = [f"{server}.key", f"{server}.pem"]
    openssl(stack.folder, "req", "-x509", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-newkey", *key, "-keyout", names[0], "-out",
            names[1])
    stack.start_server(server, "--tls-key", str(stack.folder / names[0]),
                       "--tls-cert", str(stack.folder / names[1]))


def shake_hands(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain) as secure:
            secure.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            if not secure.recv(4096).startswith(b"HTTP/1.1 200 "):
                raise RuntimeError("not served over TLS")


def play() -> Iterator[Run]:
    clients, count = int(setting("CLIENTS", 64)), int(setting("HANDSHAKES", 1000))
    with started(log_level="error") as stack:
        stack.start_server(0)
        for server, key in enumerate(KEYS.values(), 1):
            start_secure(stack, server, key)

        def run(_: object, what: str) -> Run:
            server = int(what == "tls")
            return around(load(stack.server_ports[server], clients,
                               setting("SECONDS_RUN", 3), *["-t"] * server),
                          server=pids([stack.servers[server]]))
        yield from in_pairs(3, [clients], ["plain", "tls"], run)
        context = ssl._create_unverified_context()
        for server, name in enumerate(KEYS, 1):
            pid = [stack.servers[server].pid]
            before = cpu_us(pid)
            for _ in range(count):
                shake_hands(stack.server_ports[server], context)
            yield {"handshake": name, "us": (cpu_us(pid) - before) // count}


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    kinds = {what: runs.of(what=what) for what in ("plain", "tls")}
    show([{"": what, "cycles/s": each.text("cycles_per_s"),
           "p50 ms": each.ms("p50"), "p99 ms": each.ms("p99"),
           "server, µs a cycle": each.text(cpu_per_cycle("server"))}
          for what, each in kinds.items()], is_markdown, is_named=True)
    sums = {what: sum(run["cycles_per_s"] for run in each)
            for what, each in kinds.items()}
    if sums["plain"] > 0:
        print(f"tls / plain: {sums['tls'] / sums['plain']:.2f}")
    for (name,) in runs.each("handshake"):
        print(f"handshake {name}: {runs.of(handshake=name).text('us')} us of CPU,"
              " connection and one request included")
