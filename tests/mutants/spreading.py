"""Defects of what brings a held lock to all nodes. See run.py."""
from defect import Defect, Edit

SPREADS = "server/engine/rounds/spreads.c"
REPAIR = "server/node/scripts/repair.lua"


def unit(name: str, test: str, before: str, after: str) -> Defect:
    """One that a test of the played engine notices."""
    return Defect(name, "unit", test, [Edit(SPREADS, before, after)],
                  tests="spreads")


TWO_LOOKS = "story_50_a_lock_gets_where_two_looks_find_it_missing"

SPREADING = [
    Defect("no spread", "sim", "spread", [Edit(
        SPREADS, "    else if (!is_done(spreads, &record))\n",
        "    else if (record.has == 0)\n")]),
    Defect("no spread of what was granted, on real nodes", "nemesis", "spread",
           [Edit(SPREADS, "    if (is_done(spreads, &record))\n",
                 "    if (record.has != 0)\n")], faults="calm", seed=2),
    Defect("fill whose answers are not read", "sim", "spread", [Edit(
        SPREADS, "    it->at_us = it->gate_us;\n    put_in(spreads, it);\n",
        "    it->at_us = it->gate_us;\n    it->has = all_nodes(spreads);\n"
        "    put_in(spreads, it);\n")]),
    Defect("creation that counts as long as any", "sim", "spread", [Edit(
        SPREADS, "    if (it->look == 0) /* of the fill */\n", "")], seed=1645),
    Defect("spread that gives up where something else is", "sim", "spread",
           [Edit(SPREADS, "    if (reply->vote == VOTE_HELD && "
                 "(it->created & nodeset_of(node)) != 0)\n"
                 "        it->again |= nodeset_of(node);\n",
                 "    if (reply->vote == VOTE_HELD) {\n"
                 "        spreads_forget(spreads, it);\n        return;\n    }\n")]),
    unit("creation that is not looked at", "what_a_creation_found_is_looked_at",
         "    if (it->look == 0) /* of the fill */\n", ""),
    unit("several that others hold do not lack",
         "of_several_what_others_have_is_missing",
         "    if (reply->vote == VOTE_FREE || names_count(",
         "    if (reply->vote == VOTE_FREE && names_count("),
    Defect("spread without tombstone", "differ", "batch", [Edit(
        REPAIR, "if is_other or redis.call('EXISTS', tombstone) ~= 0 then",
        "if is_other then")]),
    Defect("tombstone of one form only", "differ", "batch", [Edit(
        "server/node/scripts/tombstone.lua",
        "        string.sub(ARGV[b], 1, 16) .. '.' .. "
        "string.sub(ARGV[b], 18)\n",
        "        ARGV[b]\n")]),
    Defect("spread behind a forced release", "unit",
           "what_has_the_number_is_released_everywhere", [Edit(
               "server/engine/rounds/operation.c",
               "    if (is_forced)\n        ask->", "    if (!is_forced)\n        ask->")],
           tests="force"),
    Defect("forced release without tombstone", "differ", "batch", [Edit(
        "server/node/scripts/tombstone.lua",
        "        redis.pcall('HSET', tombstone, 'until', '')\n", "")]),
    Defect("tombstone on a node without state", "unit",
           "but_a_node_without_state_stays_empty", [Edit(
               "server/node/scripts/tombstone.lua",
               "    if redis.call('EXISTS', state) == 1 then\n",
               "    if redis.call('EXISTS', state) >= 0 then\n")],
           tests="lua_repair"),
    Defect("spread that an intent keeps out", "differ", "batch", [Edit(
        REPAIR, "readers(ARGV[i]) == 0)", "readers(ARGV[i]) == -1)")]),
    Defect("intent that does not lack the lock", "differ", "batch", [Edit(
        "server/node/scripts/extend.lua", "readers(ARGV[i]) == 0\n",
        "readers(ARGV[i]) == -1\n")]),
    Defect("spread of what was not missing", "differ", "batch", [Edit(
        REPAIR, "if is_other or redis.call('EXISTS', tombstone) ~= 0 then",
        "if redis.call('EXISTS', tombstone) ~= 0 then")]),
    Defect("spread that overwrites", "differ", "batch", [Edit(
        REPAIR, "            if is_there and value ~= ARGV[b] then\n",
        "            if pttl == nil then\n")]),
    Defect("spread of a reader that a repeat has replaced", "differ", "batch", [
        Edit(REPAIR, "latest and (repeated(latest) or 0) > number and\n",
             "latest and repeated(latest) == true and\n")]),
    Defect("spread beside what it has replaced", "differ", "batch", [
        Edit(REPAIR, "latest and (repeated(latest) or 0) > number and\n",
             "latest and repeated(latest) and\n")]),
    unit("tombstone that is too short", TWO_LOOKS,
         "    TOMBSTONE_TIMEOUTS = 4,", "    TOMBSTONE_TIMEOUTS = 3,"),
    unit("spread of what ends soon", "what_ends_soon_is_not_created",
         "    bool ends_before = end_us(it) <= now_us + 2 * wait_us(spreads);",
         "    bool ends_before = end_us(it) <= now_us;"),
    unit("spread without a gate", TWO_LOOKS,
         "round->start_us + wait_us(spreads) + "
         "lock->uncertainty_us;\n",
         "round->start_us + 0 * wait_us(spreads) + "
         "lock->uncertainty_us;\n"),
    unit("looks without a wait between them", TWO_LOOKS,
         "    return spreads->env->settings.node_timeout_us + "
         "drift_us(spreads);\n",
         "    return drift_us(spreads);\n"),
    unit("spread at the first look", "what_two_looks_find_to_be_missing_is_created",
         "    uint16_t due = it->before &",
         "    uint16_t due = (it->before | it->lacks) &"),
    unit("second look that comes late", "a_second_look_that_is_late_is_a_first_one",
         "    LOOKS_APART = 3,", "    LOOKS_APART = 300,"),
    unit("spread with a longer deadline", TWO_LOOKS,
         "    return at_most(it->look_us +",
         "    return at_most(it->look_us + 1000000 +"),
    unit("spread that is tried once", "it_is_tried_again_where_something_else_is",
         "        if (again != 0)\n            create(",
         "        if (again == UINT16_MAX)\n            create("),
    unit("spread that pauses on after a change",
         "a_change_between_two_looks_ends_the_long_pauses",
         "    if (reply->vote == VOTE_CHANGED)\n        it->tries = 0;\n",
         ""),
    unit("held is not lacking", "it_is_tried_again_where_something_else_is",
         "    return reply->value.len > 0 &&",
         "    return reply->value.len == 0 &&"),
    unit("spread among readers", "what_two_looks_find_to_be_missing_is_created",
         "    return reply->value.len > 0 &&",
         "    return reply->holders > 0 ||"),
    unit("spread that extends hold up", "extends_in_between_do_not_begin_anew",
         "    it->tries = 0;\n    it->has = is_longer ?",
         "    it->tries = 0;\n"
         "    it->lacks = it->before = 0;\n    it->has = is_longer ?"),
    unit("shorter look that counts for a longer extend",
         "a_longer_extend_counts",
         "    if (it->sent_end_us == end_us(it))\n",
         "    if (it->sent_end_us <= end_us(it))\n"),
    unit("too many that keep later ones out",
         "the_latest_of_too_many_take_the_place_of_those_that_end_soon",
         "    if (spreads->slots.used == spreads->slots.limit)\n",
         "    if (spreads->slots.used > spreads->slots.limit)\n"),
    unit("too many of whom any gives way",
         "the_latest_of_too_many_take_the_place_of_those_that_end_soon",
         "        if (first == NULL || end_us(it) < end_us(first))\n",
         "        if (first == NULL)\n"),
    unit("no window between fast and slow clocks",
         "clocks_of_any_speed_leave_time_to_create",
         "    return timeout_us * timeout_us / wait_us(spreads);\n",
         "    return timeout_us - drift_us(spreads);\n"),
    Defect("stragglers that use up all places", "unit",
           "stragglers_refuse_nobody", [Edit(
               "server/engine/rounds/operation.c",
               "    if (is_kept && slots->used >",
               "    if (!is_kept && slots->used >")], tests="spreads"),
    Defect("repeat whose client leaves before its last votes", "unit",
           "so_it_is_if_its_grant_comes_to_nothing", [Edit(
               "server/engine/rounds/operation.c",
               "    if (is_granted) /* its last votes are undone, too */\n",
               "    if (is_granted && !it->is_repeat)\n")],
           tests="repeats"),
    Defect("tombstone that ends while a spread is under way", "model",
           "leftover", model="repair", rule="TOMB=3", world="SMALL"),
    Defect("spread before the acquire's end", "model", "leftover",
           model="repair", rule="NO_GATE"),
]
