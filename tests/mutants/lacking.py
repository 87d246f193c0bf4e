"""Defects of what a node may lack: rights, commands, scripts, durability."""
from defect import Defect, Edit

HANDSHAKE = "server/node/handshake.c"
LINK = "server/node/link.c"
NODES = "server/engine/voting/nodes.c"

LACKING = [
    Defect("node that votes without a right", "unit",
           "what_is_missing_is_named_at_once", [Edit(
               HANDSHAKE, "    if (handshake->needs[0] == '\\0')\n"
               "        return STATE_NONE;\n    handshake_explain(",
               "    if (handshake->needs[0] != ' ')\n"
               "        return STATE_NONE;\n    handshake_explain(")],
           tests="handshake"),
    Defect("first missing right alone", "unit",
           "what_is_missing_is_named_at_once", [Edit(
               HANDSHAKE, "return step < HANDSHAKE_RIGHTS ? STATE_NONE : "
               "judge_rights(handshake);",
               "return judge_rights(handshake);")], tests="handshake"),
    Defect("password in the words of a node", "unit",
           "refusals_are_named", [Edit(
               HANDSHAKE, "        why = \"the node does not accept AUTH\";",
               "        span_print(handshake->detail, "
               "sizeof handshake->detail, words);\n"
               "    if (handshake->detail[0] != '\\0')\n"
               "        return ballot.state;")], tests="handshake"),
    Defect("arguments in the words of a node", "unit",
           "words_of_an_error_are_without_arguments", [Edit(
               "server/node/script.c",
               "        text.len = (size_t)(at - text.ptr);",
               "        text.len += 0;")], tests="script"),
    Defect("right that is lost unnoticed", "unit",
           "a_refused_command_is_followed_by_a_probe", [Edit(
               LINK, "    line_open(&link->probe, now_us);\n}\n\n"
               "/* False: the link went down. */", "}\n\n"
               "/* False: the link went down. */")], tests="probe"),
    Defect("probe for each refusal", "unit",
           "a_refused_command_is_probed_rarely", [Edit(
               LINK, "link->doubted_us != 0 && now_us", "0 != 0 && now_us")],
           tests="probe"),
    Defect("probe that asks for no rights", "unit",
           "a_node_that_becomes_unfit_is_left", [Edit(
               LINK, "    for_probes.beside = &link->line;\n",
               "    for_probes.beside = &link->line;\n"
               "    for_probes.prefix = NULL;\n")], tests="probe"),
    Defect("keys that may be read only", "unit",
           "rights_that_are_taken_away_take_the_link_down", [Edit(
               "server/node/scripts/rights.lua",
               "redis.acl_check_cmd('EVALSHA', string.rep('0', 40), '1', key)",
               "redis.acl_check_cmd('GET', key)")], tests="link_live"),
    Defect("lost durability that is not told", "unit",
           "lost_durability_is_told_once", [Edit(
               NODES, "    if (is_change)\n        log_write(\n            facts",
               "    if (!is_change && is_change)\n"
               "        log_write(\n            facts")],
           tests="nodes_log"),
    Defect("node that was never reached and never told", "unit",
           "a_node_that_was_never_reached_is_told_once", [Edit(
               NODES, "environment_now(env);\n        it->is_log_due = true;\n",
               "environment_now(env);\n")],
           tests="nodes_log"),
    Defect("node away before this server began", "unit",
           "a_node_that_was_never_reached_has_an_age", [Edit(
               NODES, "it->since_us = environment_now(env);",
               "it->since_us = 0;")],
           tests="status"),
    Defect("new node said to have forgotten", "unit",
           "a_node_that_never_voted_is_new", [Edit(
               "server/engine/voting/status.c",
               "it->is_only_marked && !it->has_voted)",
               "it->is_only_marked && it->has_voted)")], tests="status"),
    Defect("acquire lost with the scripts", "unit",
           "an_acquire_is_sent_again_once", [Edit(
               "server/engine/rounds/operation.c",
               "    if (it->state != OPERATION_ROUND ||\n"
               "        !attempt_repeat(", "    if (it->state == OPERATION_ROUND"
               " ||\n        !attempt_repeat(")], tests="flushed"),
    Defect("acquire again behind its release", "unit",
           "what_is_decided_is_not_sent_again", [Edit(
               "server/engine/rounds/operation.c",
               "    if (it->state != OPERATION_ROUND ||\n"
               "        !attempt_repeat(", "    if (!attempt_repeat(")],
           tests="flushed"),
    Defect("acquire again and again", "unit",
           "what_finds_none_twice_has_no_vote", [Edit(
               "server/engine/rounds/attempt.c",
               "    vote->is_repeated = true;\n", "")], tests="flushed"),
    Defect("release lost with the scripts", "unit",
           "a_release_is_sent_again_once", [Edit(
               "server/engine/rounds/releases.c",
               "    it->repeated |= nodeset_of(node);\n"
               "    call.tombstone_ms = it->tombstone_ms;\n",
               "    if (it->repeated == 0)\n        return false;\n"
               "    call.tombstone_ms = it->tombstone_ms;\n")],
           tests="flushed"),
]
