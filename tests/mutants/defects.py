"""Deliberate defects: each takes one cure away. See run.py."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    path: str
    old: str  # occurs exactly once
    new: str


@dataclass(frozen=True)
class Defect:
    name: str
    suite: str  # sim: the simulator finds it; nemesis: real processes do
    edits: list[Edit]
    faults: str = "all"  # the kinds that bring it to light


DEFECTS = [
    # ---- rounds -------------------------------------------------------------
    Defect("token reused over retries", "sim", [Edit(
        "server/operation.c",
        "        if (number > 0)\n            make_token(",
        "        if (number > 0 && it->rounds == 1)\n            make_token(")]),
    Defect("quorum of 2 of 5", "sim", [Edit(
        "server/round.c", "return total / 2 + 1;", "return total / 2;")]),
    Defect("no drift", "sim", [Edit(
        "server/round.c",
        "int64_t validity_us = ttl_us - elapsed_us - drift_us - DRIFT_FIXED_US;",
        "int64_t validity_us = ttl_us - elapsed_us + 0 * drift_us;")]),
    Defect("validity without elapsed", "sim", [Edit(
        "server/round.c", "ttl_us - elapsed_us - drift_us",
        "ttl_us - 0 * elapsed_us - drift_us")]),
    Defect("late replies counted", "sim", [Edit(
        "server/round.c", "if (received_us > round->deadline_us) {",
        "if (received_us > round->deadline_us + 3600000000) {"), Edit(
        "server/operation.c", "    round_note_deadline(&it->round);\n",
        "    set_timer(operations, it, it->round.deadline_us + 200000);\n"
        "    if (nodes_now(operations->nodes) < it->round.deadline_us + 200000)"
        "\n        return;\n    round_note_deadline(&it->round);\n")]),
    Defect("no deadline", "sim", [Edit(
        "server/nodes.c",
        "nodeclock_latest_at(&nodes->clocks.node[node].base, deadline_us);",
        "deadline_us + ((int64_t)1 << 52);")]),
    Defect("lost straggler release", "sim", [Edit(
        "server/operation.c",
        "if (!vote->is_sent || vote_is_harmless(vote->vote))",
        "if (!vote->is_sent || vote->vote != VOTE_GRANTED)")]),
    Defect("failed extend that releases", "sim", [Edit(
        "server/operation.c",
        "        settle(operations, it, OUTCOME_NOT_FOUND);\n",
        "        if (it->kind == ROUND_EXTEND)\n"
        "            undo(operations, it);\n"
        "        settle(operations, it, OUTCOME_NOT_FOUND);\n"), Edit(
        "server/operation.c",
        "        assert(verdict == VERDICT_NO_QUORUM);\n"
        "        settle(operations, it, OUTCOME_NO_QUORUM);\n    }\n}\n\n"
        "static void decide(struct operations *operations, struct operation "
        "*it)\n{",
        "        if (it->kind == ROUND_EXTEND)\n"
        "            undo(operations, it);\n"
        "        settle(operations, it, OUTCOME_NO_QUORUM);\n    }\n}\n\n"
        "static void decide(struct operations *operations, struct operation "
        "*it)\n{")]),
    # ---- numbers ------------------------------------------------------------
    Defect("number only in the server's memory", "sim", [Edit(
        "server/nodes.c",
        "    nodes->last_number = fence_next(median_us, nodes->last_number);\n",
        "    nodes->last_number++;\n"), Edit(
        "server/fence.c", "return window_us < 1000000 ? 1000000 : window_us;",
        "return window_us + ((int64_t)1 << 52);")]),
    Defect("window off, and spread", "sim", [Edit(
        "server/nodes.c",
        "call->window_us = fence_window_us(nodes->settings.max_ttl_ms);",
        "call->window_us = (int64_t)1 << 52;"), Edit(
        "server/clocks.c", ".far_us = window_us / 2,",
        ".far_us = (int64_t)1 << 52,"), Edit(
        "server/clocks.c", "if (llabs(step_us) > STEP_LEAST_US) {",
        "if (llabs(step_us) > (int64_t)1 << 52) {")]),
    # ---- who may vote -------------------------------------------------------
    Defect("admission without run_id", "sim", [Edit(
        "server/guard.c", "guard->settings.fingerprint, run_id);",
        "guard->settings.fingerprint, run_id + strlen(run_id));")]),
    Defect("mark without nonce", "sim", [Edit(
        "server/nodes.c",
        "nodes->port.random(nodes->port.ctx, &random, sizeof random);",
        "random = 0;")]),
    Defect("quarantine by run_id", "sim", [Edit(
        "server/guard.c", "    if (!is_text(node->mark, look->mark)) {\n",
        "    size_t life = strlen(node->mark);\n"
        "    life = life > SCRIPT_NONCE_LEN ? life - SCRIPT_NONCE_LEN : 0;\n"
        "    if (life == 0 || look->mark.len <= life ||\n"
        "        memcmp(node->mark, look->mark.ptr, life) != 0) {\n"), Edit(
        "server/guard.c", "    node->mark[0] = '\\0';\n", ""), Edit(
        "server/guard.c",
        "        copy_state(node->mark, look->mark);\n",
        "")]),
    Defect("no quarantine", "sim", [Edit(
        "server/guard.c", "    if (guard->settings.is_off)\n        return 0;\n",
        "    if (guard)\n        return 0;\n")]),
    Defect("first start without hold", "sim", [Edit(
        "server/firststart.c",
        "        start->hold_until_us = view->now_us + start->hold_us;\n",
        "        start->step = FIRSTSTART_ADMIT;\n")]),
    Defect("first start of nodes that are not all empty", "sim", [Edit(
        "server/firststart.c", "    if (!view->are_all_empty)\n        return 0;\n",
        ""), Edit(
        "server/firststart.c", "        if (word != LOOK_EMPTY)\n"
        "            yield(start, now_us);\n        return;\n", "        return;\n"),
        Edit("server/firststart.c", "        if (word == LOOK_FRESH)\n",
             "        if (word == LOOK_FRESH || word == LOOK_CREATED)\n"),
        Edit("server/firststart.c", "if (count_marked(start) < start->nodes)",
             "if (count_marked(start) == 0)")]),
    Defect("readmission without beat", "sim", [Edit(
        "server/nodes.c", "        .beat_us = it->beat_us,\n",
        "        .beat_us = 0,\n"), Edit(
        "server/nodes.c", "        .max_ttl_ms = nodes->settings.max_ttl_ms,\n",
        "        .max_ttl_ms = action->kind == GUARD_READMIT ? 86400000\n"
        "                      : nodes->settings.max_ttl_ms,\n")]),
    Defect("readmission of nodes that are not durable", "sim", [Edit(
        "server/guard.c", "node->may_readmit = node->is_durable && "
        "look->is_durable;", "node->may_readmit = true;"), Edit(
        "server/nodes.c", "        .is_durable = it->is_durable,\n",
        "        .is_durable = true,\n")]),
    Defect("admission although not all nodes were marked", "sim", [Edit(
        "server/guard.c",
        "        if (!guard->node[i].is_of_epoch)\n            return false;\n",
        "")]),
    Defect("quarantined votes counted", "sim", [Edit(
        "server/round.c", "    settle(round, node, reply->vote);\n",
        "    settle(round, node, reply->vote == VOTE_QUARANTINED\n"
        "                            ? VOTE_GRANTED : reply->vote);\n")]),
    Defect("baseline per connection", "sim", [Edit(
        "server/clocks.c", "    clocks->node[node].is_up = true;\n",
        "    clocks->node[node] = (struct clock_node){.is_up = true,\n"
        "                                             .is_proven = true};\n"), Edit(
        "server/clocks.c", "    node->is_proven = false;\n", "")]),
    Defect("steps not looked for", "sim", [Edit(
        "server/clocks.c", "if (llabs(step_us) > STEP_LEAST_US) {",
        "if (llabs(step_us) > (int64_t)1 << 52) {")]),
    Defect("step test on points", "sim", [Edit(
        "server/nodeclock.c", "        .low_us = node_us - received_us,\n",
        "        .low_us = node_us - (sent_us + received_us) / 2,\n"), Edit(
        "server/nodeclock.c", "        .high_us = node_us - sent_us,\n",
        "        .high_us = node_us - (sent_us + received_us) / 2,\n")]),
    Defect("connections not confirmed", "sim", [Edit(
        "server/standing.c",
        "           now_us - node->confirmed_us < CONFIRMED_US;",
        "           now_us != 0;")]),
    # ---- on the nodes -------------------------------------------------------
    Defect("no admission check", "nemesis", [Edit(
        "server/scripts/acquire.lua", "    if not is_admitted() then",
        "    if false then")], faults="kill-empty,flush,ring,cut"),
    Defect("release without compare", "nemesis", [Edit(
        "server/scripts/release.lua", "    if value == ARGV[a + 1] then",
        "    if value then")]),
    Defect("extend that creates", "nemesis", [Edit(
        "server/scripts/extend.lua", "        return 'FREE'\n",
        "        redis.call('SET', ARGV[a], ARGV[a + 1], 'PX', ARGV[a + 2])\n"
        "        return 'EXTENDED'\n")]),
    Defect("extend that shortens", "nemesis", [Edit(
        "server/scripts/extend.lua",
        "pttl >= 0 and pttl < tonumber(ARGV[a + 2])", "pttl >= 0")]),
    Defect("wall clock instead of boot time", "nemesis", [Edit(
        "server/clock.c", "CLOCK_BOOTTIME", "CLOCK_REALTIME")],
        faults="server-clock"),
    Defect("small steps believed one by one", "nemesis", [Edit(
        "server/nodeclock.c",
        "    if (nodeclock_step_us(clock, seen) != 0)\n        return;\n",
        "    if (nodeclock_step_us(clock, seen) != 0) {\n"
        "        *clock = *seen;\n        return;\n    }\n")],
        faults="race,ring,cut"),
]
