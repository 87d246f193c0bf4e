# SPDX-License-Identifier: MIT
"""How each make target is tried that no gate runs in full: a command that takes
seconds, and shows that the tool still does its work. See check_tools.py.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    target: str
    command: str       # for bash; `make TARGET` is in it
    says: str = ""     # a regular expression that what it prints must match
    lane: str = ""     # tools of a lane share ports or files: one at a time
    needs: str = ""    # a command; where it fails, the machine cannot do this


def short(target: str, variables: str = "", says: str = "", lane: str = "",
          needs: str = "") -> Tool:
    return Tool(target, f"make {target} {variables}", says, lane, needs)


def bench(target: str, variables: str, says: str, needs: str = "") -> Tool:
    """Their ports are fixed."""
    return short(target, f"PAIRS=1 {variables}", says, "bench", needs)


def copy(target: str, command: str, says: str = "") -> Tool:
    """In a copy of the sources, without what was built: $COPY."""
    return Tool(target, f"cd $COPY; {command}", says, "copy")


# Ends what was started in the background as a terminal does, if it is ready; and
# kills make. Neither leaves a process, or a refused probe in the log.
RUN = r"""
export REDLOCKD_LISTEN=127.0.0.1:$(python3 -c 'import ports
print(*ports.free_ports(1))')
serves() { (exec 3<>/dev/tcp/${1/:/\/}) 2>/dev/null; }
for signal in TERM KILL; do
    log=$FOLDER/run.$signal
    make run >$log 2>&1 &
    make=$!
    until grep -q '^ *curl' $log; do kill -0 $make; sleep 0.2; done
    curl -fs --json '{"resource":"order:42","ttl_ms":3000}' \
        http://$REDLOCKD_LISTEN/locks
    all="$REDLOCKD_LISTEN $(grep '^  127' $log)"
    for one in $all; do serves $one; done
    kill -$signal $make
    wait $make || true
    for one in $all; do
        for _ in {1..150}; do serves $one || break; sleep 0.1; done
        ! serves $one || { echo "kill -$signal leaves $one"; exit 1; }
    done
    ! grep status=503 $log || exit 1
    grep -q 'keep nothing' $log
done
"""

# rslock would be compiled
PEERS = r"""
export PAIRS=1 SECONDS_RUN=0.2
make bench-peers CLIENTS=1 PEERS='aioredlock baseline etcd'
make bench-peers PROCESSES=4 PEERS=baseline
"""

INSTALL = r"""
make install DESTDIR=$FOLDER/root
cd $FOLDER/root/usr/local
bin/redlockd --version
bin/redlockctl --version
test -s share/man/man8/redlockd.8
test -s share/man/man1/redlockctl.1
bash -n share/bash-completion/completions/redlockctl
"""

# it keeps redlockd.env
SERVICE = r"""
make install-service DESTDIR=$FOLDER/service
cd $FOLDER/service
grep '^ExecStart=/usr/local/bin/redlockd' \
    usr/local/lib/systemd/system/redlockd.service
test -s usr/local/lib/sysusers.d/redlockd.conf
echo '# ours' >>etc/redlockd/redlockd.env
cd - >/dev/null
make install-service DESTDIR=$FOLDER/service
tail -n 1 $FOLDER/service/etc/redlockd/redlockd.env
"""

# The gate runs the suites among all others: here it is their names that count.
STARVED = r"""
make starved -n | tee $FOLDER/suites
sed -n 's/.*CK_RUN_SUITE=//p' $FOLDER/suites | while read -r suite; do
    test -e tests/integration/check_$suite.c
done
"""

# what make fmt has to put right
FMT = r"""
sed -i 's/^    /  /' server/base/clock.c
! cmp -s server/base/clock.c $ROOT/server/base/clock.c
make fmt C_FILES=server/base/clock.c
cmp server/base/clock.c $ROOT/server/base/clock.c
"""

DEB = r"""
env -u CI DEB_BUILD_OPTIONS='noopt noautodbgsym' make deb
dpkg-deb --contents build/deb/redlockd_*.deb
dpkg-deb --contents build/deb/redlockctl_*.deb
"""

# From a clone, in which everything is committed. The night makes all of it.
RELEASE = r"""
clone=$FOLDER/release
rm -rf $clone
git clone -q . $clone
cd $clone
make release PARTS='source clients'
cd dist
sha256sum -c SHA256SUMS
"""

TOOLS = [
    # ---- what measures -------------------------------------------------------
    bench("bench", "SECONDS_RUN=0.2 CLIENTS=1 PERSISTENCE=none "
          "TRIPS_TIMES=1000",  # a busy machine measures nothing
          r"(?s)2 stopped: [\d,]+ done/s.*^failures: 0$"),
    bench("bench-collected", "SECONDS_RUN=0.2 CLIENTS=12 LINES=2",
          r"(?s)^ +12 +2 at most +[1-9].*^failures: 0$"),
    bench("bench-contention", "SECONDS_RUN=0.5 CLIENTS=2 HOLDS_US=1000 "
          "SERVERS=1 CLIENTS_EIGHT=", r"(?s)polls, 10 ms .*^failures: 0$"),
    bench("bench-fairness", "SECONDS_RUN=1 PAIRS=1 SPLITS='3+1 1+0'",
          r"(?s)^3\+1 +[1-9].*^1\+0 +[1-9].*^failures: 0$"),
    bench("bench-permits", "SECONDS_RUN=0.5 CLIENTS=12",
          r"(?s)^busy +7 +10 +[1-9].*^failures: 0$"),
    bench("bench-readers", "SECONDS_RUN=0.2 PAIRS=1 CLIENTS=12",
          r"(?s)^many of one lock +12 +[1-9].*^failures: 0$"),
    bench("bench-watches", "SHORT=1 SCENES='own crowd'", r"^2 passed, 0 failed"),
    bench("bench-batch", "SHORT=1 ROUNDS=5", r"^4 passed, 0 failed"),
    Tool("bench-peers", PEERS,
         r"(?s)^9 runs; locks left behind: 0.*^Each client is a process of its"
         r" own.*^2 runs; locks left behind: 0", "bench"),
    # rslock as `interop` compiles it
    bench("bench-clients", "SECONDS_RUN=0.2 CLIENTS=1 HELD=10 SECONDS=2 "
          "TTL_MS=1000 RUST_PROFILE=holder", r"(?s)^ +1 +ours, Java +[1-9].*"
          r"^ +1 +ours, PHP +[1-9].*^ +1  ours, asyncio +[1-9].*"
          r"^ +1 +ours, Ruby +[1-9].*^ +1 +ours, Rust +[1-9].*"
          r"^ +10  ours, asyncio +0 .*^failures: 0$"),
    bench("bench-scale", "SECONDS_RUN=0.2 CLIENTS='1 64' CLIENTS_FEW=1 "
          "SERVERS=2 DISTANCES_MS='direct 1'", r"^failures: 0$"),
    bench("bench-flood", "SECONDS_RUN=1 FLOODERS=8",
          r"(?s)^[1-9].* acquires of the flood were sent.*p99 beside 8 .* alone: \d"
          r".*throughput .* without: \d"),
    bench("bench-options", "SECONDS_RUN=0.2 CLIENTS=1 "
          "OPTIONS='--drain-ms 10'", r"^cycles_per_s +[1-9]"),
    # a busy machine says nothing of the p99
    bench("bench-forgetting", "SHORT=1 SCENES=idle CLIENTS=4",
          r"^2 passed, 0 failed"),
    bench("bench-tenants", "SHORT=1 SCENES='shares pools' CLIENTS=4",
          r"^6 passed, 0 failed"),
    bench("bench-fsync", "SECONDS_RUN=0.2 CLIENTS=1", r"^failures: 0$"),
    bench("bench-profile", "SECONDS_RUN=0.2 CLIENTS=1", r"^failures: 0$",
          needs="perf record -q -o /dev/null -e cpu-clock true"),
    bench("bench-tls", "SECONDS_RUN=0.2 CLIENTS=1 HANDSHAKES=20",
          r"(?s)^tls / plain: \d.*^handshake RSA 2048: \d"),
    short("soak", "CYCLES=100 SECONDS_RUN=0.2",
          r"^at the end: +RSS \d+ KiB, \d+ descriptors", "bench"),
    short("crowd", "CROWD=200 RUNS=1 SECONDS_RUN=0.1 P99_TIMES=1000",
          r"(?s)waiting: \d+ KiB meanwhile.* shaken: [\d.]+ KiB each", "bench"),
    # ---- what searches -------------------------------------------------------
    short("leavers", "REQUESTS=2000", r"^2 passed, 0 failed"),
    short("sim-long", "SEEDS=10", r"^sim: 10 passed, 0 failed"),
    short("long", "GRANTS=100 TRIES=1", r"(?s)^100%: .*^100%: Checks: 6"),
    Tool("starved", STARVED, "CK_RUN_SUITE"),
    short("drills", "DRILLS=pause", r"(?m)^drills: 1 passed, 0 failed"),
    short("mutants", "MUTANTS_ARGS=\"--only 'no drift'\"",
          r"^mutants: 1 passed, 0 failed"),
    # the suite that notices its mutant; the units read no file of the tree that
    # they are built in, and have passed in another one
    Tool("mutate", "CK_RUN_SUITE=round make mutate JOBS=1 SUITES=unit "
         "MUTATE_ARGS=--check",
          r"^mutate: 1 passed, 0 failed"),
    short("examples-broken", "STORIES=lost", r"^[1-9]\d* passed, 0 failed"),
    short("interop", "STORIES=1 LIBRARIES='redlock-py redlockd' "
          "NEIGHBOURS=redsync", r"^1 passed, 0 failed(?s:.*)^[1-9]\d* passed"),
    short("deb-test", "CHECK=1", r"^[1-9]\d* passed, 0 failed"),
    short("fresh", "CHECK=1", r"^[1-9]\d* passed, 0 failed"),
    short("production", "CHECK=1", r"^[1-9]\d* passed, 0 failed"),
    short("release-test", "CHECK=1", r"^[1-9]\d* passed, 0 failed"),
    # ---- what runs and installs ----------------------------------------------
    Tool("run", RUN, r"fencing_token"),
    Tool("install", INSTALL),
    Tool("install-service", SERVICE, r"^# ours$"),
    # ---- what starts others --------------------------------------------------
    Tool("help", "make help | tee >(cat >&2) >$FOLDER/help\n"
         "for one in $TARGETS; do grep -q \"^  make $one \" $FOLDER/help; done"),
    copy("fmt", FMT),
    copy("map", "page=docs/internals/map.md; rm $page; make map; "
         "cmp $page $ROOT/$page"),
    copy("project", "page=debian/control; sed -i 's/^Homepage:.*/Homepage: x/' $page; "
         "make project; cmp $page $ROOT/$page"),
    copy("deps", "make deps"),
    copy("gate", "make gate STEPS=deps", r"^gate: 1 passed, 0 failed"),
    copy("nightly", "make nightly STEPS=deps", r"^nightly: 1 passed, 0 failed"),
    Tool("release", RELEASE, r"(?s)\.tar\.gz: OK.*\.crate: OK|\.crate: OK.*\.tar\.gz: OK"),
    copy("deb", DEB, r"(?s)\./usr/bin/redlockd$.*\./usr/bin/redlockctl$"),
    short("release-check", "CHECK=1", r"^[1-9]\d* passed, 0 failed"),
    copy("clean", "mkdir -p build; make clean; test ! -e build"),
]
