"""Defects of what a node may lack: rights, commands, scripts, durability."""
from defect import Defect, Edit

HANDSHAKE = "server/node/handshake.c"
LINK = "server/node/link.c"
NODES = "server/engine/voting/nodes.c"
STATUS = "server/engine/voting/status.c"
SCRIPTS = "server/node/scripts/"

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
               "it->is_only_marked && !it->has_voted;",
               "it->is_only_marked && it->has_voted;")], tests="status"),
    Defect("quorum that blinks told as lost", "unit",
           "a_quorum_that_is_back_soon_and_failed_nobody_is_not_told", [Edit(
               NODES, "    LOSS_US = HEARTBEAT_US,", "    LOSS_US = 0,")],
           tests="nodes_log"),
    Defect("request that fails while the loss is not told", "unit",
           "a_quorum_that_a_request_missed_is_told_at_once", [Edit(
               NODES, ": has_lasted || has_failed;", ": has_lasted;")],
           tests="nodes_log"),
    Defect("restart told as a lost quorum", "unit",
           "a_request_in_the_moment_of_the_start_is_no_lost_quorum", [Edit(
               NODES, "? has_lasted && has_failed", "? has_failed")],
           tests="nodes_log"),
    Defect("unready while votes are probed again", "unit",
           "a_quorum_that_is_back_soon_and_failed_nobody_is_not_told", [Edit(
               "server/engine/engine.c",
               "(!loss->is_first && !loss->is_logged)",
               "(!loss->is_first && loss->is_logged)")], tests="nodes_log"),
    Defect("quorum told as back that was not told as lost", "unit",
           "a_quorum_that_is_back_soon_and_failed_nobody_is_not_told", [Edit(
               NODES, "(nodes->loss.is_first || nodes->loss.is_logged))",
               "(nodes->loss.is_first || !nodes->loss.is_first))")],
           tests="nodes_log"),
    Defect("late votes told as a lost quorum", "unit",
           "nodes_that_vote_and_are_late_are_no_lost_quorum", [Edit(
               NODES, "nodes_has_quorum(nodes) || loss->is_logged", "loss->is_logged")],
           tests="nodes_log"),
    Defect("first start by another server told as a quarantine", "unit",
           "a_first_start_by_another_server_is_no_quarantine_yet", [Edit(
               NODES, "status_is_starting(&nodes->members, node)\n",
               "nodes->voting < 0\n")], tests="nodes_log"),
    Defect("acquire lost with the scripts", "unit",
           "an_acquire_is_sent_again_once", [Edit(
               "server/engine/rounds/operation.c",
               "    if (it->state != OPERATION_ROUND || !repeat_call(",
               "    if (it->state == OPERATION_ROUND || !repeat_call(")], tests="flushed"),
    Defect("acquire again behind its release", "unit",
           "what_is_decided_is_not_sent_again", [Edit(
               "server/engine/rounds/operation.c",
               "    if (it->state != OPERATION_ROUND || !repeat_call(",
               "    if (!repeat_call(")],
           tests="flushed"),
    Defect("acquire again and again", "unit",
           "what_finds_none_twice_has_no_vote", [Edit(
               "server/engine/rounds/operation.c",
               "    round->repeated |= nodeset_of(node);\n", "")],
           tests="flushed"),
    Defect("release lost with the scripts", "unit",
           "a_release_is_sent_again_once", [Edit(
               "server/engine/rounds/releases.c",
               "    it->repeated |= nodeset_of(node);\n"
               "    call.tombstone_ms = it->tombstone_ms;\n",
               "    if (it->repeated == 0)\n        return false;\n"
               "    call.tombstone_ms = it->tombstone_ms;\n")],
           tests="flushed"),
    Defect("full node that extends nothing", "unit", "a_lock_is_extended", [
        Edit(SCRIPTS + "single.lua",
             "    if not ok and is_oom(reply) and not",
             "    if ok and is_oom(reply) and not")], tests="full"),
    Defect("full nodes not asked for extends", "sim", "full", [Edit(
        STATUS, "    return clocks_refusal(&nodes->clocks, node);\n",
        "    refusal = clocks_refusal(&nodes->clocks, node);\n"
        "    return refusal == STATE_NONE && status_is_full(nodes, node)\n"
        "               ? STATE_OUT_OF_MEMORY\n"
        "               : refusal;\n")], faults="full"),
    Defect("new lock behind a release on a full node", "unit",
           "neighbours_in_a_batch_change_nothing", [Edit(
               SCRIPTS + "batch.lua", "then\n    is_memory_short()\n",
               "then\n    is_short = nil\n")], tests="full"),
    Defect("new reader beside others on a full node", "unit",
           "neighbours_in_a_batch_change_nothing", [Edit(
               SCRIPTS + "share.lua", "    elseif is_short then\n",
               "    elseif is_short and false then\n")], tests="full"),
    Defect("look that does not tell of memory", "unit",
           "a_look_beats_and_tells_of_it", [Edit(
               SCRIPTS + "permission.lua", "is_short and 1 or 0, heard",
               "0, heard")], tests="full"),
    Defect("own lock that a full node does not repeat", "unit",
           "a_repeat_replaces_its_own_lock", [Edit(
               SCRIPTS + "repeat.lua", "        go_on_without_memory() -- it",
               "        is_new = false -- it")], tests="full"),
    Defect("held lock that is told as want of memory", "unit",
           "a_lock_that_is_held_is_told", [Edit(
               SCRIPTS + "row.lua",
               "    if is_oom(value) then -- what",
               "    if value and is_oom(highest) then -- what")],
           tests="full"),
    Defect("forced release without tombstone on a full node", "unit",
           "a_forced_release_leaves_its_tombstone", [Edit(
               SCRIPTS + "tombstone.lua",
               "        if is_oom(redis.pcall('HSET'",
               "        if not is_oom(redis.pcall('HSET'")], tests="full"),
    Defect("evicting nodes not asked to release", "unit",
           "evicting_nodes_get_releases_and_no_calls_for_votes", [Edit(
               NODES, "(it->is_up || it->is_open) && !call",
               "(it->is_up || 0) && !call")], tests="nodes"),
    Defect("lock that was evicted is free", "unit",
           "what_evicting_nodes_lack_is_not_free", [Edit(
               NODES, "it->is_open && tag_kind_of(tag) == TAG_RELEASE &&",
               "it->is_open &&")], tests="nodes"),
    Defect("evicting node that votes", "unit",
           "evicting_nodes_get_releases_and_no_calls_for_votes", [Edit(
               NODES, "facts->evicts[0] != '\\0'", "facts->evicts[0] == '.'")],
           tests="nodes"),
    Defect("node that evicts from now on not met anew", "unit",
           "a_node_that_evicts_is_left_and_comes_back", [Edit(
               LINK, "    if (has_evicted != (facts->evicts[0] != '\\0')) {",
               "    if (has_evicted && facts->evicts[0] == '.') {")],
           tests="link_live"),
]
