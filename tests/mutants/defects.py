"""Deliberate defects: each takes one cure away. See run.py.

What would be a defect of a node's script is made in the simulator's node,
which build/release/differ holds equal to the script, or seen by the nemesis.
"""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Edit:
    path: str
    old: str  # occurs exactly once
    new: str


@dataclass(frozen=True)
class Defect:
    name: str
    suite: str  # sim: the simulator finds it; nemesis: real processes do
    falls: str  # the invariant that it breaks
    edits: list[Edit] = field(default_factory=list)
    faults: str = "all"  # the kinds that bring it to light
    seed: int = 1        # the first, or the only one
    model: str = ""      # model: this one finds it, with this rule off
    rule: str = ""


# A node takes any number.
WINDOW_OFF = Edit(
    "server/nodes.c",
    "call->window_us = fence_window_us(nodes->settings.max_ttl_ms);",
    "call->window_us = (int64_t)1 << 52;")
# The last reply is always right.
STEPS_BELIEVED = [
    Edit("server/clocks.c", "if (llabs(step_us) > STEP_LEAST_US) {",
         "if (llabs(step_us) > (int64_t)1 << 52) {"),
    Edit("server/nodeclock.c",
         "    if (nodeclock_step_us(clock, seen) != 0)\n        return;\n",
         "    if (nodeclock_step_us(clock, seen) != 0) {\n"
         "        *clock = *seen;\n        return;\n    }\n")]

DEFECTS = [
    # ---- rounds -------------------------------------------------------------
    Defect("token reused over retries", "sim", "rising", [Edit(
        "server/operation.c",
        "        make_token(operations, it, call.number);",
        "        if (it->rounds == 1)\n"
        "            make_token(operations, it, call.number);")]),
    Defect("quorum of 2 of 5", "sim", "exclusion", [Edit(
        "server/round.c", "return total / 2 + 1;", "return total / 2;")]),
    Defect("no drift", "sim", "kept", [Edit(
        "server/round.c",
        "int64_t validity_us = ttl_us - elapsed_us - drift_us - DRIFT_FIXED_US;",
        "int64_t validity_us = ttl_us - elapsed_us + 0 * drift_us;")]),
    Defect("validity without elapsed", "sim", "kept", [Edit(
        "server/round.c", "ttl_us - elapsed_us - drift_us",
        "ttl_us - 0 * elapsed_us - drift_us")]),
    Defect("late replies counted", "sim", "rising", [Edit(
        "server/round.c", "if (received_us > round->deadline_us) {",
        "if (received_us > round->deadline_us + 3600000000) {"), Edit(
        "server/operation.c", "    round_note_deadline(&it->round);\n",
        "    set_timer(operations, it, it->round.deadline_us + 200000);\n"
        "    if (nodes_now(operations->nodes) < it->round.deadline_us + 200000)"
        "\n        return;\n    round_note_deadline(&it->round);\n")],
        faults="slow,server_pause,double"),
    Defect("no deadline", "sim", "mortal", [Edit(
        "server/nodes.c",
        "nodeclock_latest_at(&nodes->clocks.node[node].base, deadline_us);",
        "deadline_us + ((int64_t)1 << 52);")]),
    Defect("lost straggler release", "sim", "tidy", [Edit(
        "server/operation.c",
        "if (!vote->is_sent || vote_is_harmless(vote->vote))",
        "if (!vote->is_sent || vote->vote != VOTE_GRANTED)")]),
    Defect("failed extend that releases", "sim", "own", [Edit(
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
    Defect("number only in the server's memory", "sim", "rising", [Edit(
        "server/nodes.c",
        "    nodes->last_number = fence_next(median_us, nodes->last_number);\n",
        "    nodes->last_number++;\n"), WINDOW_OFF]),
    Defect("numbers of a minority's clocks", "sim", "alive", [Edit(
        "server/operation.c",
        "    return it->round.pending >= it->round.quorum;\n",
        "    return it->round.pending > 0;\n"), Edit(
        "server/nodes.c",
        "    if (nodes->last_number > median_us + nodes->clocks.far_us)\n",
        "    if (nodes->last_number == FENCE_MAX)\n")],
        faults="step,flush,restart,block,server_restart,slow"),
    Defect("window off, and spread", "sim", "rising", [WINDOW_OFF, Edit(
        "server/clocks.c", ".far_us = window_us / 2,",
        ".far_us = (int64_t)1 << 52,")],
        faults="step,flush,pause"),
    # ---- who may vote -------------------------------------------------------
    Defect("admission without run_id", "sim", "exclusion", [Edit(
        "server/guard.c", "guard->settings.fingerprint, run_id);",
        "guard->settings.fingerprint, run_id + strlen(run_id));")],
        faults="restart,slow,block"),
    Defect("mark without nonce", "sim", "exclusion", [Edit(
        "server/nodes.c",
        "nodes->port.random(nodes->port.ctx, &random, sizeof random);",
        "random = 0;"), Edit(
        "server/guard.c", "    node->must_revoke = is_text(node->spent, look->mark);\n",
        "    node->must_revoke = false;\n")],
        faults="target,flush,break,block,error,server_pause"),
    Defect("quarantine by run_id", "sim", "exclusion", [Edit(
        "server/guard.c", "    if (!is_text(node->mark, look->mark)) {\n"
        "        copy_state(node->mark, look->mark);\n",
        "    size_t life = look->mark.len - SCRIPT_NONCE_LEN;\n"
        "    bool is_known = strncmp(node->mark, look->mark.ptr, life) == 0;\n"
        "    copy_state(node->mark, look->mark);\n"
        "    if (!is_known) {\n"), Edit(
        "server/guard.c", "    node->mark[0] = '\\0';\n", "")]),
    Defect("no quarantine", "sim", "exclusion", [Edit(
        "server/guard.c", "    if (guard->settings.is_off)\n        return 0;\n",
        "    if (guard)\n        return 0;\n")]),
    # The code has this rule twice: a server asks only nodes that it has seen
    # admitted, and a majority of them does not forget. The model has it once.
    Defect("first start without hold", "model", "two_holders",
           model="first_start", rule="NO_HOLD"),
    Defect("first start of nodes that are not all empty", "sim", "exclusion", [Edit(
        "server/firststart.c", "        if (word != LOOK_EMPTY)\n",
        "        if (word != LOOK_EMPTY && word != LOOK_BARE)\n"), Edit(
        "server/firststart.c", "        if (word == LOOK_FRESH)\n",
        "        if (word == LOOK_FRESH || word == LOOK_CREATED)\n"), Edit(
        "server/firststart.c", "else if (word != LOOK_EMPTY && !is_own)",
        "else if (word != LOOK_EMPTY && word != LOOK_BARE && !is_own)")],
        faults="next,block,slow,pause"),
    Defect("readmission without beat", "sim", "exclusion", [Edit(
        "tests/sim/simnode.c",
        "        memory->durable != '1' || beat_us < call->call.beat_us ||\n"
        "        beat_us > clock_us ||\n"
        "        clock_us - beat_us >= call->call.max_ttl_ms * 1000)\n",
        "        memory->durable != '1' || beat_us < 0)\n")]),
    Defect("readmission of nodes that are not durable", "sim", "exclusion", [Edit(
        "server/guard.c", "node->may_readmit = node->is_durable && "
        "look->is_durable;", "node->may_readmit = true;"), Edit(
        "server/nodes.c", "        .is_durable = it->is_durable,\n",
        "        .is_durable = true,\n")],
        faults="restart,restore,block,slow"),
    Defect("admission although not all nodes were marked", "sim", "exclusion", [Edit(
        "server/guard.c",
        "        if (!guard->node[i].is_of_epoch)\n            return false;\n",
        "")]),
    Defect("quarantined votes counted", "sim", "kept", [Edit(
        "server/round.c", "    settle(round, node, reply->vote);\n",
        "    settle(round, node, reply->vote == VOTE_QUARANTINED\n"
        "                            ? VOTE_GRANTED : reply->vote);\n")]),
    Defect("baseline per connection", "sim", "exclusion", [Edit(
        "server/clocks.c", "    clocks->node[node].is_up = true;\n",
        "    clocks->node[node] = (struct clock_node){.is_up = true,\n"
        "                                             .is_proven = true};\n"), Edit(
        "server/clocks.c", "    node->is_proven = false;\n", "")],
        faults="step,break,block,slow"),
    Defect("steps not looked for", "sim", "exclusion", STEPS_BELIEVED,
        faults="step,block,slow,pause"),
    Defect("step test on points", "sim", "alive", [Edit(
        "server/nodeclock.c", "        .low_us = node_us - received_us,\n",
        "        .low_us = node_us - (sent_us + received_us) / 2,\n"), Edit(
        "server/nodeclock.c", "        .high_us = node_us - sent_us,\n",
        "        .high_us = node_us - (sent_us + received_us) / 2,\n")]),
    Defect("connections not confirmed", "sim", "exclusion", [Edit(
        "server/standing.c",
        "           now_us - node->confirmed_us < CONFIRMED_US;",
        "           now_us != 0;")],
        faults="move,unconfirm"),
    # ---- on the nodes -------------------------------------------------------
    Defect("no admission check", "sim", "exclusion", [Edit(
        "tests/sim/simnode.c",
        "    if (memory->admit[0] == '\\0' || !is_text(call->call.admit, "
        "memory->admit))\n        return VOTE_QUARANTINED;\n",
        "    if (memory == NULL)\n        return VOTE_QUARANTINED;\n")],
        faults="flush,block,slow"),
    Defect("release without compare", "nemesis", "exclusion", [Edit(
        "server/scripts/release.lua", "    if value == ARGV[a + 1] then",
        "    if value then")]),
    Defect("extend that creates", "nemesis", "own", [Edit(
        "server/scripts/extend.lua", "        return 'FREE'\n",
        "        redis.call('SET', ARGV[a], ARGV[a + 1], 'PX', ARGV[a + 2])\n"
        "        return 'EXTENDED'\n")]),
    Defect("extend that shortens", "sim", "exclusion", [Edit(
        "tests/sim/simnode.c", "    if (expires_ms > key->expires_ms)\n", "")]),
    # here the clock that the port gives: it is set forward now and then
    Defect("wall clock instead of boot time", "sim", "exclusion", [Edit(
        "tests/sim/servers.c",
        "    return server->offset_us + now_us + now_us * server->ppm / 1000000;",
        "    int64_t times = (now_us + server->number * 2000000) / 6000000;\n"
        "    int64_t set_us = times * 60000000;\n"
        "    return server->offset_us + set_us + now_us +\n"
        "           now_us * server->ppm / 1000000;")],
        faults="flush,block,slow"),
]
