# SPDX-License-Identifier: MIT
"""For each alert series that must let it fire, and similar ones that must not.

A scenario is the series of two servers, in promtool's notation, a sample every
15 s; at the last one of the shortest the alert fires or does not. `+` counts by the step.
"""
from __future__ import annotations

Series = dict[str, str]
HOUR = 240  # samples


def up(one: str, two: str) -> Series:
    return {'up{job="redlockd",instance="a"}': one,
            'up{job="redlockd",instance="b"}': two}


def on_both(name: str, one: str, two: str, labels: str = "") -> Series:
    its = f",{labels}" if labels else ""
    return {f'{name}{{job="redlockd",instance="{instance}"{its}}}': values
            for instance, values in (("a", one), ("b", two))}


def margin(one: str, two: str) -> Series:
    return on_both("redlockd_quorum_margin", one, two)


def of_node(name: str, values: str) -> Series:
    return on_both(name, values, "0x40", 'node="n:1"') | on_both(
        name, "0x40", "0x40", 'node="n:2"')


def voting(values: str) -> Series:
    return on_both("redlockd_node_voting", values, "1x200", 'node="n:1"')


def requests(by_status: dict[str, int], call: str = "acquire") -> Series:
    series: Series = {}
    for status, step in by_status.items():
        series |= on_both("redlockd_http_requests_total", f"0+{step}x60",
                          f"0+{step}x60", f'status="{status}",call="{call}"')
    return series


def acquires(below_fast: int, all_of_them: int) -> Series:
    """So many below 100 ms, so many in all, each 15 s."""
    series: Series = {}
    for bound, step in (("0.1", below_fast), ("0.5", all_of_them),
                        ("+Inf", all_of_them)):
        series |= on_both("redlockd_http_request_duration_seconds_bucket",
                          f"0+{step}x80", f"0+{step}x80",
                          f'call="acquire",le="{bound}"')
    return series


def grants(granted: int, undelivered: int) -> Series:
    return on_both("redlockd_operations_total", f"0+{granted}x80",
                   f"0+{granted}x80",
                   'operation="acquire",outcome="granted"') | on_both(
        "redlockd_undelivered_grants_total", f"0+{undelivered}x80",
        f"0+{undelivered}x80")


def part(name: str, limit_name: str, value: int) -> Series:
    return on_both(name, f"{value}x40", "1x40") | on_both(
        limit_name, "100x40", "100x40")


# alert: (fires, does not)
SCENARIOS: dict[str, tuple[Series, Series]] = {
    "RedlockdAllDown": (up("1x4 0x5", "1x4 0x5"), up("0x9", "1x9")),
    "RedlockdDown": (up("0x9", "1x9"), up("1x9 0x5", "1x15")),
    "RedlockdNoQuorum": (margin("2x4 -1x4", "2x4 -2x4"),
                         margin("-1x9", "2x9")),
    "RedlockdReplicaWithoutQuorum": (margin("-1x9", "2x9"),
                                     margin("-1x9", "-1x9")),
    "RedlockdNoNodeToSpare": (margin("0x21", "0x21"), margin("0x21", "1x21")),
    "RedlockdRestarts": (
        on_both("process_start_time_seconds",
                "1x9 2x9 3x9 4x9 5x9 6x9 7x9", "1x80"),
        on_both("process_start_time_seconds", "1x9 2x9 3x9 4x9 5x9 6x19",
                "1x80")),
    "RedlockdNodeNotVoting": (voting("1x4 0x21"), voting("1x4 0x10 1x11")),
    "RedlockdNodeLostItsData": (
        of_node("redlockd_node_quarantine_seconds", "0x4 66 51 36") |
        of_node("redlockd_node_restarted", "0x7") |
        # the other server was started meanwhile, and does not know better
        on_both("redlockd_node_new", "0x40", "0x4 1x2", 'node="n:1"'),
        # it keeps the memory from before a restart
        of_node("redlockd_node_quarantine_seconds", "0x4 66 51 36") |
        of_node("redlockd_node_restarted", "0x4 1 1 1")),
    "RedlockdNodeNotDurable": (
        on_both("redlockd_node_durable", "1x4 0x21", "1x200", 'node="n:1"'),
        on_both("redlockd_node_durable", "1x4 0x10 1x11", "1x200",
                'node="n:1"')),
    "RedlockdNodeFlaps": (voting("1 0 1 0 1 0 1 0 1"), voting("1 0 1 0 1x20")),
    "RedlockdNodeClockStepped": (
        of_node("redlockd_node_clock_steps_total", "0x4 1x10"),
        of_node("redlockd_node_clock_steps_total", f"7x{HOUR}")),
    "RedlockdNodeClockIsOff": (
        of_node("redlockd_node_clock_lead_seconds", "-0.3x21"),
        of_node("redlockd_node_clock_lead_seconds", "-0.2x21")),
    "RedlockdAcquireSlow": (acquires(95, 100), acquires(1000, 1001)),
    "RedlockdServerErrors": (
        requests({"201": 97, "503": 2}),
        requests({"201": 1000, "503": 1}) | requests({"503": 99}, "probe")),
    "RedlockdRefusesForLimits": (requests({"201": 90, "429": 10}),
                                 requests({"201": 97, "429": 3})),
    "RedlockdRefusesStrangers": (requests({"201": 90, "401": 5, "403": 5}),
                                 requests({"201": 97, "401": 3})),
    "RedlockdAuditLinesLost": (
        on_both("redlockd_audit_lost_total", "0x4 3x10", "0x14"),
        on_both("redlockd_audit_lost_total", f"3x{HOUR}", "0x14")),
    "RedlockdFileRefused": (
        on_both("redlockd_file_refused", "0x4 1x5", "0x9", 'file="auth"'),
        on_both("redlockd_file_refused", "0x4 1x3 0x2", "0x9", 'file="auth"')),
    # the time of promtool begins at 0
    "RedlockdCertificateExpires": (
        on_both("redlockd_tls_certificate_expiry_timestamp_seconds",
                f"600000x{HOUR + 1}", f"9e9x{HOUR + 1}"),
        on_both("redlockd_tls_certificate_expiry_timestamp_seconds",
                f"610000x{HOUR + 1}", f"9e9x{HOUR + 1}")),
    "RedlockdNodeCertificateExpires": (
        on_both("redlockd_node_tls_certificate_expiry_timestamp_seconds",
                f"600000x{HOUR + 1}", f"9e9x{HOUR + 1}", 'node="redis1"'),
        on_both("redlockd_node_tls_certificate_expiry_timestamp_seconds",
                f"610000x{HOUR + 1}", f"9e9x{HOUR + 1}", 'node="redis1"')),
    "RedlockdRevocationListOutdated": (
        on_both("redlockd_tls_client_crl_next_update_timestamp_seconds",
                "1000x120", "9e9x120"),
        on_both("redlockd_tls_client_crl_next_update_timestamp_seconds",
                "1300x120", "9e9x120")),
    "RedlockdGrantsUndelivered": (grants(100, 2), grants(1000, 2)),
    "RedlockdConnectionsNearLimit": (
        part("redlockd_connections", "redlockd_connections_max", 81),
        part("redlockd_connections", "redlockd_connections_max", 80)),
    "RedlockdWaitersNearLimit": (
        part("redlockd_waiters", "redlockd_waiters_max", 81),
        part("redlockd_waiters", "redlockd_waiters_max", 80)),
    "RedlockdDescriptorsNearLimit": (
        part("process_open_fds", "process_max_fds", 91),
        part("process_open_fds", "process_max_fds", 90)),
    "RedlockdBusy": (
        on_both("process_cpu_seconds_total", "0+14x80", "0+1x80"),
        on_both("process_cpu_seconds_total", "0+13x80", "0+1x80")),
    "RedlockdReleasesDropped": (
        on_both("redlockd_releases_dropped_total", "0x4 3x10", "0x14"),
        on_both("redlockd_releases_dropped_total", f"3x{HOUR}", "0x14")),
}


def starts(values: str) -> Series:
    return on_both("process_start_time_seconds", values, values)


# what an operator plans: nothing fires at any time
PLANNED: dict[str, Series] = {
    "servers restart one by one, five times within half an hour":
        starts("1x19 2x19 3x19 4x19 5x19 6x60") |
        up("1x19 0 1x18 0 1x120", "1x21 0 1x18 0 1x120") |
        margin("2x20 -1 2x18 -1 2x18 -1 2x18 -1 2x18 -1 2x60", "2x160") |
        voting("1x20 0 1x18 0 1x18 0 1x18 0 1x18 0 1x60") |
        # each drain refuses a few
        requests({"201": 1000}) | on_both(
            "redlockd_http_requests_total", "0x19 30x20 0x40 30x40",
            "0x22 30x20 0x40 30x40", 'status="503",call="acquire"'),
    "nodes restart one by one with their memory":
        up("1x60", "1x60") |
        voting("1x9 0x1 1x40") | margin("2x9 1x1 2x40", "2x9 1x1 2x40") |
        of_node("redlockd_node_quarantine_seconds", "0x9 66 51 0x40") |
        of_node("redlockd_node_restarted", "0x9 1 1 0x40"),
    "a node is replaced":
        starts("1x9 2x60") | up("1x60", "1x60") | voting("1x9 0x5 1x40") |
        margin("2x9 1x5 2x40", "2x9 1x5 2x40") |
        on_both("redlockd_node_quarantine_seconds",
                "0x9 66 51 36 21 6 0x40", "0x9 66 51 36 21 6 0x40",
                'node="n:1"') |
        on_both("redlockd_node_new", "0x9 1x4 0x40", "0x9 1x4 0x40",
                'node="n:1"') |
        on_both("redlockd_node_restarted", "0x60", "0x60", 'node="n:1"'),
    "a node is replaced where locks last for ten minutes":
        starts("1x9 2x90") | up("1x99", "1x99") | voting("1x9 0x41 1x40") |
        margin("2x9 1x41 2x40", "2x9 1x41 2x40") |
        on_both("redlockd_node_quarantine_seconds",
                "0x9 606-15x40 0x40", "0x9 606-15x40 0x40", 'node="n:1"') |
        on_both("redlockd_node_new", "0x9 1x40 0x40", "0x9 1x40 0x40",
                'node="n:1"') |
        on_both("redlockd_node_restarted", "0x90", "0x90", 'node="n:1"'),
}

# an outage of ten minutes; then all goes well
OUTAGE: Series = on_both(
    "redlockd_http_requests_total", "0+60x40 2400x40", "0+60x40 2400x40",
    'status="503",call="acquire"') | on_both(
    "redlockd_http_requests_total", "0x40 60+60x40", "0x40 60+60x40",
    'status="201",call="acquire"') | up("1x99", "1x99")
OUTAGE_S = 40 * 15


def samples(series: Series) -> int:
    """How many samples the shortest series has."""
    return min(sum(int(word.rsplit("x", 1)[1]) + 1 if "x" in word else 1
                   for word in values.split()) for values in series.values())
