"""Defects of permits.

What permits stand on are locks, whose defects are in defects.py.
"""
from defect import Defect, Edit

PERMITS = [
    Defect("permits above the limit", "sim", "capacity", [Edit(
        "server/engine/permits/permits.c",
        "        struct slotset mine = slotset_below(it->limit);\n",
        "        struct slotset mine = slotset_below(3);\n")], seed=7),
    Defect("permits for fewer slots than asked for", "sim", "capacity", [Edit(
        "server/engine/permits/permits.c",
        "    for (int i = 0; i < it->wanted; i++) {\n",
        "    for (int i = 0; i < 1; i++) {\n")], seed=7),
    Defect("permits told by nodes that forgot", "differ", "batch", [Edit(
        "server/node/scripts/slots.lua",
        "    if not is_admitted() then\n        return 'Q'\n    end\n",
        "    is_admitted()\n")]),
    Defect("permits not found by their key", "differ", "batch", [Edit(
        "server/node/scripts/slots.lua", "                letters[i] = '2'\n",
        "                letters[i] = '1'\n")]),
    Defect("permits not announced to their pool", "differ", "batch", [Edit(
        "server/node/scripts/lone.lua", "    if pool then\n",
        "    if pool == '' then\n")]),
    # No two get one slot: their acquires decide. What they lose is rounds.
    Defect("two permits try one slot", "unit",
           "those_under_way_try_different_slots", [Edit(
               "server/engine/permits/pool.c",
               "    slotset_join(&pool->taken, slots);\n", "")],
           tests="permits"),
    Defect("permits linger without a limit", "unit",
           "permits_that_stand_in_line_for_a_query_count", [Edit(
               "server/engine/permits/permits.c",
               "    count_lingering(pool);\n", "")], tests="tickets"),
    Defect("only a repeat of what few nodes have", "unit",
           "tries_follow_queries_until_there_is_no_free_slot", [Edit(
               "server/engine/permits/permits.c",
               "                    asking->only_repeats || asking->losses",
               "                    asking->losses")], tests="permits"),
    Defect("a repeat tries a leftover again and again", "unit",
           "tries_follow_queries_until_there_is_no_free_slot", [Edit(
               "server/engine/permits/permits.c",
               "asking->only_repeats || asking->losses > 0);",
               "asking->only_repeats);")], tests="permits"),
    Defect("a repeat that loses its slot takes another", "unit",
           "tries_follow_queries_until_there_is_no_free_slot", [Edit(
               "server/engine/permits/permits.c",
               "            it->is_looked = it->only_repeats;\n", "")],
           tests="permits"),
    Defect("refused grant counts as granted", "unit",
           "what_it_would_repeat_has_just_expired", [Edit(
               "server/engine/rounds/operation.c",
               "    operation_undo(it);\n"
               "    it->result = result_plain(",
               "    operation_undo(it);\n"
               "    operation_count_outcome(it);\n"
               "    it->result = result_plain(")], tests="permits"),
    Defect("a repeat that finds a leftover takes another slot", "sim", "same",
           [Edit("server/engine/permits/pool.c",
                 "    return count == query->own_wanted ? set",
                 "    for (int i = 0; i < query->own_limit; i++)\n"
                 "        count += query->own[i] > 0 && !slotset_has(&set, i);\n"
                 "    return count == query->own_wanted ? set")], seed=7),
    Defect("own slots by any node", "unit",
           "it_is_open_until_no_answer_matters", [Edit(
               "server/engine/permits/pool.c",
               "    return open == 0 || proven >= query->own_wanted ||\n",
               "    return open <= query->total * POOL_SLOTS_MAX ||\n")],
           tests="query"),
    Defect("one identity takes all queries", "unit",
           "an_identity_that_asks_for_much_holds_up_no_other", [Edit(
               "server/engine/permits/permits.c",
               "    it->line = &permits->pools.lines[request->asker];\n",
               "    it->line = &permits->pools.lines[0];\n")], tests="permits"),
    Defect("queries without a share", "unit",
           "identities_share_the_nodes_time", [Edit(
               "server/engine/permits/pool.c",
               "(int64_t)SLOT_US * slots * sharers;\n",
               "(int64_t)SLOT_US * slots;\n")], tests="permits"),
    Defect("queries pile up on slow nodes", "unit",
           "queries_of_many_large_pools_take_turns", [Edit(
               "server/engine/permits/pool.c",
               "    line->open += slots;\n",
               "    line->open += slots - slots;\n"), Edit(
               "server/engine/permits/pool.c",
               "    line->open -= slots;\n",
               "    line->open -= slots - slots;\n"), Edit(
               "server/engine/permits/pool.c",
               "    assert(line->open >= slots);",
               "    assert(slots >= 0);")], tests="permits"),
    Defect("the first in the pool pays", "unit",
           "an_identity_that_asks_for_much_holds_up_no_other_in_its_pool",
           [Edit("server/engine/permits/permits.c",
                 "payer->line->until_us <= it->line->until_us ? payer",
                 "true ? payer")], tests="permits"),
    Defect("large pools for the price of small ones", "unit",
           "requests_count_by_what_they_ask", [Edit(
               "api/locks.c", " + (int)body->limit / SLOTS_EACH;", ";")], tests="access_limits"),
    Defect("pool idle twice", "unit",
           "story_63_a_pool_that_is_used_again_is_not_idle", [Edit(
               "server/engine/permits/permits.c",
               "    if (pool->users == 0 || pool->is_running)\n",
               "    if (pool->is_running)\n")], tests="permits"),
    # An inspection of a watch, that is no permit's, but leaves as a query does.
    Defect("inspection that outlives its watch", "unit",
           "story_64_nobody_is_left_while_an_inspection_is_under_way", [Edit(
               "server/engine/rounds/operation.c",
               "    assert(it->request.call == LOCK_INSPECT ||\n",
               "    assert(it->request.owned_by == OWNER_LISTING ||\n"
               "           it->request.owned_by == OWNER_LOOK ||\n")],
           tests="watches"),
    Defect("permits refused without a query", "unit",
           "a_full_pool_is_refused_after_a_query", [Edit(
               "server/engine/permits/permits.c",
               "        bool is_informed = it->event <= pool->informed;\n",
               "        bool is_informed = true;\n")], tests="permits"),
    Defect("permits of a wide request taken", "unit",
           "permits_have_one_queue", [Edit(
               "server/engine/permits/permits.c",
               "        slotset_remove(&open, &mine);\n", "")],
           tests="permits_waits"),
    Defect("permits not handed over", "unit",
           "a_released_slot_goes_to_the_first_in_the_same_batch", [Edit(
               "server/engine/engine.c",
               "    permits_on_release(&engine->permits, resource);\n", "")],
           tests="permits_waits"),
    Defect("permit beyond the limit of locks that is no repeat", "unit",
           "tries_follow_queries_until_there_is_no_free_slot", [Edit(
               "server/engine/permits/permits.c",
               "        if (it->only_repeats)\n            return ACT_REFUSE;\n",
               "")], tests="permits"),
    Defect("repeat of what has expired keeps a slot", "unit",
           "what_it_would_repeat_has_just_expired", [Edit(
               "server/engine/permits/permits.c",
               "    if (is_won && it->only_repeats && !result->is_repeat) {\n",
               "    if (is_won && false) {\n")], tests="permits"),
    Defect("a slot that is tried freed for ever", "unit",
           "a_slot_that_is_tried_is_not_free_later", [Edit(
               "server/engine/permits/pool.c",
               "    if (slotset_has(&pool->trying, slot))\n"
               "        return; /* the try tells */\n", "")], tests="pool"),
    # What a slot is called, and told as.
    Defect("slot that a client can name", "unit",
           "a_lock_named_like_a_slot_is_none", [Edit(
               "server/lock/names.h",
               '#define NAMES_SLOT "\\x1f"', '#define NAMES_SLOT "#"')],
           tests="locks_permits"),
    Defect("slots of two pools in one id", "unit",
           "names_are_slots_of_one_pool_or_none", [Edit(
               "server/lock/names.c",
               "            (count > 0 && names_compare(&one, pool) != 0))\n",
               "            false)\n")], tests="names"),
    Defect("slot and resource in one id", "unit",
           "other_spellings_are_refused", [Edit(
               "api/message/id.c",
               "        if (id_check_resource(names_next(&names)) != NULL)\n",
               "        if (!id_is_name(names_next(&names)))\n")], tests="id"),
    Defect("slot of a pool with a bad name", "unit",
           "other_spellings_are_refused", [Edit(
               "api/message/id.c",
               " && id_check_pool(pool) == NULL;\n", ";\n")], tests="id"),
    Defect("permit told by the names of its slots", "unit",
           "each_answer_tells_the_pool_and_the_slots", [Edit(
               "api/message/render.c",
               "    struct span told = count > 0 ? pool : names;\n",
               "    struct span told = names;\n")], tests="locks_permits"),
    Defect("slots told in the order of their names", "unit",
           "slots_are_told_in_the_order_of_their_numbers", [Edit(
               "server/lock/names.c",
               "        for (; at > 0 && slots[at - 1] > slot; at--)\n",
               "        for (; at > NAMES_MAX; at--)\n")], tests="names"),
]
