# SPDX-License-Identifier: MIT
"""Rules by which nodes that lost data were once admitted early. Nothing was told of
incarnations then, and each promise was to be found by a probe that came in time. The
simulator finds them, and so does the nemesis, by a strike that is made for each.
"""
from __future__ import annotations

from dataclasses import replace

from defects import Defect, Edit

# The others are looked at when this server would have ended its own rounds, not
# when they know of the incarnation.
LOOK_AFTER_OWN_ROUNDS = Edit(
    "server/engine/voting/members.c",
    "        it->sighted_us = it->news_us = now_us;\n",
    "        it->sighted_us = now_us;\n"
    "        for (int i = 0; i < members->settings.nodes; i++)\n"
    "            if (i != node)\n"
    "                members_want_probe(\n"
    "                    members, i,\n"
    "                    now_us + members->settings.node_timeout_us);\n")

IN_SIMULATOR = [
    # Rounds of a server with a longer timeout still go on.
    Defect("own timeout taken for everybody's", "sim", "exclusion", [
        LOOK_AFTER_OWN_ROUNDS, Edit(
            "server/engine/voting/rules.c",
            "    uint16_t carriers = carriers_of(members, node);\n",
            "    uint16_t carriers = carriers_of(members, node);\n"
            "    carriers = voters_beside(members, node);\n"), Edit(
            "server/engine/voting/rules.c",
            "    if (asked->joins != joins) {\n",
            "    if (asked->joins != joins && now_us < 0) {\n"), Edit(
            "server/engine/voting/rules.c",
            "members->node[reporter].probed_us >= asked->since_us) {\n",
            "members->node[reporter].probed_us >=\n"
            "                   it->sighted_us +\n"
            "                       members->settings.node_timeout_us) {\n"),
        Edit(
            "tests/lib/node/simstate.c",
            "    write_admit(batch, call, incarnation, atoll(news.ptr) + 1);\n",
            "    write_admit(batch, call, incarnation, atoll(news.ptr));\n"), Edit(
            "server/engine/voting/members.c",
            "    return it->life == life && !it->is_outdated;\n",
            "    return it->life >= life;\n")]),
    # The server that knows of a later promise had no time to report it.
    Defect("last promise not told yet", "sim", "exclusion", [
        LOOK_AFTER_OWN_ROUNDS, Edit(
            "server/engine/voting/rules.c",
            "    return it->is_durable && it->was_durable && is_latest_data",
            "    return is_latest_data"), Edit(
            "server/engine/voting/rules.c",
            "members->node[node].sighted_us + SAID_US;",
            "members->node[node].sighted_us +\n"
            "                       members->settings.node_timeout_us;")]),
]
STRIKES = ("under-way", "untold")  # of each, see tests/nemesis/strikes.py
EARLIER = IN_SIMULATOR + [
    # servers whose timeouts differ, by this seed
    replace(defect, name=f"{defect.name}, on real nodes", suite="nemesis",
            faults=strike, seed=2)
    for defect, strike in zip(IN_SIMULATOR, STRIKES, strict=True)]
