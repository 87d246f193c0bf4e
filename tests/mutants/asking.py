"""Defects of acquires that ask a quorum first, and of fills. See run.py."""
from defect import Defect, Edit

SPREADS = "server/engine/rounds/spreads.c"

ASKING = [
    Defect("two of three are enough", "sim", "exclusion", [Edit(
        "server/engine/rounds/round.c",
        "{VERDICT_WON, round_count(round, VOTE_GRANTED), quorum},\n",
        "{VERDICT_WON, round_count(round, VOTE_GRANTED) + "
        "(round->unasked != 0),\n"
        "                 quorum},\n")]),
    Defect("slow nodes are waited for", "unit", "a_slow_round_asks_the_others",
           [Edit("server/engine/rounds/operation.c",
                 "            widen(it, WIDENING_SLOW);\n",
                 "            (void)WIDENING_SLOW;\n")], tests="quorum"),
    Defect("fill after the release", "unit",
           "a_fill_is_not_sent_after_the_release", [Edit(
        "server/engine/rounds/operation.c",
        "    spreads_cancel(spreads, ask->resource, token);\n", "")], tests="quorum"),
    Defect("fill with a deadline of its own", "unit",
           "a_lock_that_stays_gets_onto_the_other_nodes", [Edit(
        SPREADS, "        .deadline_us = round->deadline_us,\n",
        "        .deadline_us = environment_now(spreads->env) + 4000000,\n")],
           tests="quorum"),
    Defect("fill too late for far nodes", "unit",
           "after_a_long_round_the_fill_is_sent_in_time", [Edit(
        SPREADS, "SPREADS_FILL_US), last_us);\n",
        "SPREADS_FILL_US), INT64_MAX + 0 * last_us);\n")], tests="quorum"),
    Defect("fill with the whole TTL", "unit",
           "a_lock_that_stays_gets_onto_the_other_nodes", [Edit(
        SPREADS, "    call->ttl_ms = it->ttl_ms - passed_ms;\n",
        "    call->ttl_ms = it->ttl_ms + 0 * passed_ms;\n")], tests="quorum"),
    Defect("fill of a grant that nobody took", "sim", "tidy", [Edit(
        "server/engine/rounds/operation.c",
        "        it->result.token = token_of(it);\n",
        "        it->result.token = token_of(it);\n"
        "        const struct round_lock lock = lock_of(it);\n"
        "        if (outcome == OUTCOME_GRANTED)\n"
        "            spreads_on_granted(it->operations->spreads, &it->round, "
        "&lock);\n")]),
    # The simulator would have to slow a release down between two nodes.
    Defect("late majority that closes a release", "model", "leftover",
           model="repair", rule="LATE"),
    Defect("young lock in time from its release on", "model", "leftover",
           model="repair", rule="FROM_RELEASE"),
    Defect("release that misses the fill of another server", "sim", "tidy",
           [Edit("server/engine/rounds/releases.c",
                 "        return it->is_again ? 0 : it->again;\n",
                 "        return 0;\n")]),
    # Clients that gave up, behind a proxy that does not pass a close on.
    Defect("ghost that goes on waiting for a lock", "sim", "withdrawal", [Edit(
        "server/engine/waiting/waits.c",
        "            waiter_has_key(place->waiter, key_hash))\n"
        "            return place->waiter;\n",
        "            waiter_has_key(place->waiter, key_hash) &&\n"
        "            place == NULL)\n"
        "            return place->waiter;\n")]),
    Defect("ghost that goes on waiting for a permit", "sim", "withdrawal",
           [Edit("server/engine/engine.c",
                 "    if (is_permit)\n        permits_withdraw(",
                 "    if (engine == NULL)\n        permits_withdraw(")]),
    Defect("grant of a ghost that stays", "unit",
           "story_75_what_it_tries_is_released", [Edit(
        "server/engine/waiting/ticket.c",
        "    if (operation != NULL)\n        (void)operation_abandon(operation);"
        "\n    it->operation = 0;\n",
        "    if (operation != NULL)\n        operation_discard(operation);\n"
        "    it->operation = 0;\n")], tests="waits_repeats"),
]
