#!/usr/bin/env python3
"""crowd.py LOAD HOST:PORT PID [tls]: ten thousand connections that do nothing;
CROWD=1000 takes fewer. The p99 is the median of RUNS runs, SECONDS_RUN seconds
each; P99_TIMES says how much it may rise.

Idle ones, silent ones, ones that never read what they asked for, and ones that
wait for a thousand locks: meanwhile others are served with a p99 within 3 times
of alone; when they have left, the server's descriptors and memory are as before.
Those that wait cost little memory, and no CPU time. Over TLS each connection
has shaken hands, and been served once.
"""
import json
import os
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import time

CROWD = int(os.environ.get("CROWD", 10000))
RUNS = int(os.environ.get("RUNS", 3))
SECONDS = float(os.environ.get("SECONDS_RUN", 2))
P99_TIMES = float(os.environ.get("P99_TIMES", 3))
CLIENTS, MEMORY_KIB = 8, 4096
RESOURCES, WAITING_KIB = CROWD // 10, 100000
IDLE_S, IDLE_SHARE = 5, 0.05
SHAKEN_KIB = 60  # of memory for each, its handshake included
LOAD, LISTEN, SERVER = [sys.argv[1]], sys.argv[2], int(sys.argv[3])
SECURE = None  # how to speak TLS
if "tls" in sys.argv[4:]:
    LOAD.append("-t")
    SECURE = ssl.create_default_context()
    SECURE.check_hostname = False
    SECURE.verify_mode = ssl.CERT_NONE
HOST, PORT = LISTEN.rsplit(":", 1)
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"
counts = {True: 0, False: 0}


def judge(is_good, text):
    counts[is_good] += 1
    print("  ok  " if is_good else "  BAD ", text, flush=True)


def p99_us():
    """The median of some runs."""
    values = []
    for _ in range(RUNS):
        words = subprocess.run([*LOAD, LISTEN, str(CLIENTS), str(SECONDS)],
                               check=True, capture_output=True,
                               text=True).stdout.split()
        told = dict(zip(words[::2], words[1::2]))
        judge(told["failures"] == "0", f"failures {told['failures']}")
        values.append(int(told["p99_us"]))
    return statistics.median(values)


def descriptors():
    return len(os.listdir(f"/proc/{SERVER}/fd"))


def memory_kib():
    with open(f"/proc/{SERVER}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    return 0


def shake(one):
    """And asks at once: later it would have been silent for too long."""
    secure = SECURE.wrap_socket(one)
    secure.sendall(GET % b"/livez")
    if not secure.recv(1024).startswith(b"HTTP/1.1 200 "):
        sys.exit("crowd: not served over TLS")
    return secure


def connect():
    crowd = []
    for _ in range(CROWD):
        one = socket.create_connection((HOST, PORT))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        crowd.append(shake(one) if SECURE else one)
    return crowd


def idle(crowd):
    for one in crowd:
        one.sendall(GET % b"/livez")
        one.recv(1024)


def shaken(crowd):
    del crowd


def silent(crowd):
    del crowd


def unread(crowd):
    for one in crowd:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(GET % b"/openapi.yaml" * 2)


def post(one, body):
    text = json.dumps(body).encode()
    one.sendall(b"POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: "
                b"application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (len(text), text))


def waiting(crowd):
    """Ten for each lock, which the first connection holds."""
    names = [f"crowd-{time.monotonic_ns()}-{i}" for i in range(RESOURCES)]
    for name in names:
        post(crowd[0], {"resource": name, "ttl_ms": 60000})
        if b" 201 " not in crowd[0].recv(4096):
            sys.exit("crowd: a free lock was not granted")
    for i, one in enumerate(crowd[1:]):
        post(one, {"resource": names[i % RESOURCES], "ttl_ms": 1000,
                   "wait_ms": 50000})


def leave(crowd):
    for one in crowd:
        one.close()


def cpu_ticks():
    with open(f"/proc/{SERVER}/stat", encoding="ascii") as stat:
        words = stat.read().rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])


def come(kind):
    """Waits until the server has done what they asked for."""
    crowd = connect()
    kind(crowd)
    before, deadline = -1, time.monotonic() + 20
    while cpu_ticks() - before > 5 and time.monotonic() < deadline:
        before = cpu_ticks()
        time.sleep(0.5)
    return crowd


def judge_waiting():
    """While nothing is released."""
    memory, before = memory_kib(), cpu_ticks()
    time.sleep(IDLE_S)
    share = (cpu_ticks() - before) / os.sysconf("SC_CLK_TCK") / IDLE_S
    judge(memory <= WAITING_KIB, f"waiting: {memory} KiB meanwhile")
    judge(share <= IDLE_SHARE, f"waiting: {share:.1%} of a core meanwhile")


def judge_shaken(memory):
    each = (memory_kib() - memory) / CROWD
    judge(each <= SHAKEN_KIB, f"shaken: {each:.1f} KiB each")


def settle(before):
    """Waits until the server has noticed that they left."""
    deadline = time.monotonic() + 30
    while descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)  # memory is given back in the sweeps behind that


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    alone = p99_us()
    kinds = (shaken,) if SECURE else (idle, silent, unread, waiting)
    # once before it is measured, as what is made once is no leak
    for kind in kinds:
        leave(come(kind))
    settle(20)
    before, memory = descriptors(), memory_kib()
    for kind in kinds:
        crowd = come(kind)
        peak = memory_kib()
        if kind is waiting:
            judge_waiting()
        if kind is shaken:
            judge_shaken(memory)
        among = p99_us()
        leave(crowd)
        settle(before)
        judge(among <= alone * P99_TIMES,
              f"{kind.__name__}: p99 {among} us, alone {alone} us")
        judge(descriptors() <= before,
              f"{kind.__name__}: {descriptors()} descriptors, {before} before")
        judge(memory_kib() <= memory + MEMORY_KIB,
              f"{kind.__name__}: {memory_kib()} KiB, {memory} before, "
              f"{peak} meanwhile")
    print(f"{counts[True]} passed, {counts[False]} failed")
    return counts[False] > 0


sys.exit(main())
