# SPDX-License-Identifier: MIT
"""Defects of what tells a first replica from a node that was a replica."""
from defect import plant

LUA = "server/node/scripts/permission.lua"
PROMOTED = "story_74_a_node_that_was_a_replica_is_quarantined"
RECENT = "story_74_only_a_recent_probe_at_this_memory_counts"

BACKUPS = [
    plant("first replica that costs the vote", "unit memory",
          "story_74_a_first_replica_and_a_freed_backlog_cost_no_vote", LUA,
          "if before then", "if before and now < 0 then"),
    plant("second replication ID not examined", "unit memory", PROMOTED, LUA,
          "'master_replid2:' .. string.rep('0', 40)", "'master_replid2:'"),
    plant("bytes from a master not examined", "unit memory", PROMOTED, LUA,
          "and read == read_from_master() and", "and"),
    plant("replica taken for the master that it was", "unit memory",
          "story_74_a_replica_is_not_the_master_that_it_was", LUA, "'role:master'",
          "'role:'"),
    plant("trace from long ago", "unit high_waters", RECENT, LUA, "now < at + 5000000",
          "now < at + 6000000"),
    plant("trace from the future", "unit high_waters", RECENT, LUA,
          "id ~= replid and at + 0 <= now and", "id ~= replid and"),
    plant("admission of any memory followed", "unit high_waters", RECENT, LUA,
          "if string.sub(text, -#end_before) ~= end_before then",
          "if #text < #end_before then"),
    plant("quarantined by another, and followed", "unit high_waters",
          "story_74_what_is_quarantined_meanwhile_waits", LUA,
          "not is_current(quarantine) and id_before(", "id_before("),
    plant("quarantine record and what was taken not followed", "unit high_waters",
          "story_74_a_first_replica_begins_no_new_quarantine", LUA,
          "admit, quarantine, taken = follow('admit', admit), follow('quarantine', quarantine),\n"
          "                follow('taken', taken)", "admit = follow('admit', admit)"),
    plant("quarantined at once by a server without a trace", "unit high_waters",
          "story_74_a_probe_without_a_trace_quarantines_nothing_at_once", LUA,
          "if nonce == '' or is_early then", "if nonce == '' then"),
    plant("trace of another connection", "unit nodes",
          "story_74_a_trace_ends_with_its_connection", "server/engine/voting/members.c",
          "it->trace[0] = '\\0';", "(void)0;"),
    plant("trace of a server that stood still", "unit nodes",
          "story_74_a_trace_ends_with_its_time", "server/engine/voting/nodes.c",
          "now_us - it->probed_us < TRACE_US ? it->trace",
          "now_us >= it->probed_us ? it->trace"),
    plant("quarantine that each backup begins anew", "unit nodes",
          "story_74_a_quarantine_with_another_replication_id_is_the_same",
          "server/engine/voting/members.c", "bool is_new = !is_same_quarantine(it, quarantine);",
          "bool is_new = !span_is(quarantine, it->quarantine);"),
    plant("bare node quarantined before others probed", "unit nodes",
          "story_74_others_have_a_heartbeat_to_follow", "server/engine/voting/members.c",
          " &&\n        !rules_is_in_this_life(members, node))", ")"),
]
