"""Defects of what tells a first replica from a node that was a replica."""
from defect import Defect, Edit

LUA = "server/node/scripts/permission.lua"
PROMOTED = "story_74_a_node_that_was_a_replica_is_marked"
RECENT = "story_74_only_a_recent_look_at_this_memory_counts"

BACKUPS = [
    Defect("first replica that costs the vote", "unit",
           "story_74_a_first_replica_and_a_freed_backlog_cost_no_vote", [Edit(
               LUA, "        if before then\n",
               "        if before and now < 0 then\n")], tests="memory"),
    Defect("second replication ID not looked at", "unit", PROMOTED, [Edit(
        LUA, "'master_replid2:' .. string.rep('0', 40)",
        "'master_replid2:'")], tests="memory"),
    Defect("bytes from a master not looked at", "unit", PROMOTED, [Edit(
        LUA, " and read == read_from_master() and", " and")],
           tests="memory"),
    Defect("replica taken for the master that it was", "unit",
           "story_74_a_replica_is_not_the_master_that_it_was", [Edit(
               LUA, "'role:master'", "'role:'")], tests="memory"),
    Defect("trace from long ago", "unit", RECENT, [Edit(
        LUA, "now < at + 5000000", "now < at + 6000000")], tests="high_waters"),
    Defect("trace from the future", "unit", RECENT, [Edit(
        LUA, "id ~= replid and at + 0 <= now and", "id ~= replid and")],
           tests="high_waters"),
    Defect("admission of any memory followed", "unit", RECENT, [Edit(
        LUA, "            if string.sub(text, -#end_before) ~= end_before then\n",
        "            if #text < #end_before then\n")], tests="high_waters"),
    Defect("marked by another, and followed", "unit",
           "story_74_what_is_marked_meanwhile_waits", [Edit(
               LUA, "not is_current(mark) and id_before(",
               "id_before(")], tests="high_waters"),
    Defect("mark and what was taken not followed", "unit",
           "story_74_a_first_replica_begins_no_new_quarantine", [Edit(
               LUA, "admit, mark, taken = follow('admit', admit),"
               " follow('mark', mark),\n"
               "                follow('taken', taken)\n",
               "admit = follow('admit', admit)\n")], tests="high_waters"),
    Defect("marked at once by a server without a trace", "unit",
           "story_74_a_look_without_a_trace_marks_nothing_at_once", [Edit(
               LUA, "if nonce == '' or is_early then",
               "if nonce == '' then")], tests="high_waters"),
    Defect("trace of another connection", "unit",
           "story_74_a_trace_ends_with_its_connection", [Edit(
               "server/engine/voting/members.c",
               "    it->trace[0] = '\\0';", "    (void)0;")],
           tests="nodes"),
    Defect("trace of a server that stood still", "unit",
           "story_74_a_trace_ends_with_its_time", [Edit(
               "server/engine/voting/nodes.c",
               "now_us - it->looked_us < TRACE_US ? it->trace",
               "now_us >= it->looked_us ? it->trace")], tests="nodes"),
    Defect("quarantine that each backup begins anew", "unit",
           "story_74_a_mark_with_another_replication_id_is_the_same", [Edit(
               "server/engine/voting/members.c",
               "    bool is_new = !is_same_mark(it, mark);\n",
               "    bool is_new = !span_is(mark, it->mark);\n")],
           tests="nodes"),
    Defect("bare node marked before others looked", "unit",
           "story_74_others_have_a_heartbeat_to_follow", [Edit(
               "server/engine/voting/members.c",
               " &&\n        !rules_is_in_this_life(members, node))",
               ")")], tests="nodes"),
]
