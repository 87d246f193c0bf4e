# SPDX-License-Identifier: MIT
"""What the guide promises, asked of the machines when it has been followed, by
means of its own. Each check returns what is wrong; "" if nothing is."""
from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from machines import Machines
from page import NODES

LIMIT_S = 60
CURL = "curl -sS --max-time 10 --cacert ca/ca.pem"
# beyond loopback; 22 is how the files came
PORTS = {"n": {22, 6379, 8443}, "admin": {22}}


def admin(machines: Machines, script: str) -> tuple[int, str]:
    status, came = machines.all["admin"].run(script, LIMIT_S)
    return status, came.strip()


def all_vote(machines: Machines) -> str:
    for node in NODES:
        _, came = admin(machines, f"{CURL} https://{node}:8443/readyz")
        if '"voting":5,' not in came:
            return f"{node}: {came}"
    return ""


def all_durable(machines: Machines) -> str:
    _, came = admin(machines, f"{CURL} https://n1:8443/nodes "
                    '-H "Authorization: Bearer $(cat ca/oncall.token)"')
    nodes = json.loads(came)["nodes"]
    bad = [node for node in nodes if not node["durable"]]
    return json.dumps(bad) if bad or len(nodes) != len(NODES) else ""


def nothing_in_the_clear(machines: Machines) -> str:
    for port, text in ((8443, "GET /livez HTTP/1.0\\r\\n\\r\\n"),
                       (6379, "PING\\r\\n")):
        _, came = admin(machines, f"""
            exec 3<>/dev/tcp/n2/{port}
            printf '{text}' >&3
            timeout 10 head -c 5 <&3 2>/dev/null || true""")
        if came:
            return f"port {port} answers: {came}"
    return ""


def only_these_ports(machines: Machines) -> str:
    for name, machine in machines.all.items():
        _, came = machine.run("ss -Hltn", LIMIT_S)
        ports = {int(port) for address, port in
                 re.findall(r"^LISTEN +\d+ +\d+ +(\S+):(\d+) ", came, re.M)
                 if not address.startswith(("127.", "[::1]"))}
        if ports != PORTS.get(name, PORTS["n"]):
            return f"{name} listens on {sorted(ports)}"
    return ""


def node_wants_both(machines: Machines) -> str:
    """A certificate and a password."""
    _, came = machines.all["n1"].run(
        "redis-cli -h n2 --tls --cacert /etc/redlockd/ca.pem ping", LIMIT_S)
    if "PONG" in came or "NOAUTH" in came:  # it was let in so far
        return f"without a certificate: {came}"
    _, came = machines.all["n1"].run(
        "cd /etc/redlockd; redis-cli -h n2 --tls --cacert ca.pem "
        "--cert server.pem --key server.key ping", LIMIT_S)
    return "" if "NOAUTH" in came else f"without a password: {came}"


def status_of(machines: Machines, who: str, what: str) -> str:
    """who: "" or the name of a token"""
    header = f'-H "Authorization: Bearer $(cat ca/{who}.token)"' if who else ""
    return admin(machines, f"{CURL} -o /dev/null -w '%{{http_code}}' "
                 f"{header} {what}")[1]


def rights_count(machines: Machines) -> str:
    lock = "https://n3:8443/locks --json"
    for who, what, expected in (
            ("", f"{lock} '{{\"resource\":\"billing/1\"}}'", "401"),
            ("billing", f"{lock} '{{\"resource\":\"other/1\"}}'", "403"),
            ("billing", f"{lock} '{{\"resource\":\"billing/1\"}}'", "201"),
            ("billing", "https://n3:8443/metrics", "403"),
            ("prometheus", "https://n3:8443/metrics", "200"),
            ("prometheus", "https://n3:8443/nodes", "403")):
        came = status_of(machines, who, what)
        if came != expected:
            return f"{who or 'nobody'}: {what}: {came}, not {expected}"
    return ""


def watched(machines: Machines) -> str:
    """Prometheus reaches each server, and no alert fires but the one that the
    guide announces: its restarts are too many for half an hour."""
    for query, expected in (
            ('sum(up{job="redlockd"})', "5"),
            ('count(ALERTS{alertstate="firing",alertname!="RedlockdRestarts"})'
             " or vector(0)", "0")):
        _, came = admin(machines, "curl -s --data-urlencode "
                        f"'query={query}' http://127.0.0.1:9090/api/v1/query")
        value = json.loads(came)["data"]["result"][0]["value"][1]
        if value != expected:
            return f"{query} is {value}\n" + admin(
                machines, "curl -s http://127.0.0.1:9090/api/v1/alerts")[1]
    return ""


def survives_a_reboot(machines: Machines) -> str:
    for node in NODES:
        _, came = machines.all[node].run(
            "systemctl is-enabled redis-server redlockd@1 redlockd@2", LIMIT_S)
        if came.split() != ["enabled"] * 3:
            return f"{node}: {came}"
    return ""


def restarts_refuse_nobody(machines: Machines) -> str:
    """Two processes on a port, one after the other. A client that knows only
    this machine, with a connection for each request, waits for a lock that
    nobody releases until its TTL ends. It may be waiting in the moment when a
    process stops: that is told at once, as docs/operations.md says."""
    with ThreadPoolExecutor(1) as thread:
        restart = thread.submit(
            machines.all["n1"].run, "for process in 1 2; do systemctl restart "
            "redlockd@$process; done; touch /run/restarted", LIMIT_S)
        statuses = admin(machines, f"""
            token=$(cat ca/billing.token)
            end=$((SECONDS + 40))
            until [ $SECONDS -ge $end ] || ssh n1 test -e /run/restarted; do
                for i in $(seq 50); do
                    echo '{{"resource":"billing/turn",' \
                        '"wait_ms":5000,"ttl_ms":100}}' |
                        {CURL} -w '%{{http_code}}\\n' -o last --json @- \
                            -H "Authorization: Bearer $token" \
                            https://n1:8443/locks >status || echo none >status
                    cat status
                    grep -qx 201 status || cp last refused
                done
            done""")[1].split()
    print(f"      {len(statuses)} acquires meanwhile")
    if restart.result()[0] != 0:
        return restart.result()[1]
    bad = [status for status in statuses if status != "201"]
    if len(bad) <= 2 and set(bad) <= {"503"} and len(statuses) >= 100:
        return ""
    return f"{Counter(statuses)}\n" + admin(machines, "cat refused")[1]


CHECKS: dict[str, Callable[[Machines], str]] = {
    "all nodes vote for each server": all_vote,
    "each node is durable": all_durable,
    "nothing answers without TLS": nothing_in_the_clear,
    "no other port is open": only_these_ports,
    "a node wants a certificate and a password": node_wants_both,
    "tokens and rights count": rights_count,
    "restarts on a shared port refuse nobody": restarts_refuse_nobody,
    "Prometheus watches, and is quiet": watched,
    "all starts after a reboot": survives_a_reboot,
}
