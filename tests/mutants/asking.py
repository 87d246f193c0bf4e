# SPDX-License-Identifier: MIT
"""Defects of acquires that ask a quorum first, and of early replications. See run.py."""
from defect import Defect, plant

SPREADS = "server/engine/rounds/spreads.c"

ASKING = [
    plant("two of three are enough", "sim", "exclusion", "server/engine/rounds/round.c",
          "{VERDICT_WON, round_count(round, VOTE_GRANTED), quorum},",
          "{VERDICT_WON, round_count(round, VOTE_GRANTED) + (round->unasked != 0),\n"
          "                 quorum},"),
    plant("slow nodes are waited for", "unit quorum", "a_slow_round_asks_the_others",
          "server/engine/rounds/operation.c", "widen(it, WIDENING_SLOW);",
          "(void)WIDENING_SLOW;"),
    plant("early replication after the release", "unit quorum",
          "an_early_replication_is_not_sent_after_the_release",
          "server/engine/rounds/operation.c",
          "spreads_cancel(spreads, ask->resource, token);", ""),
    plant("fill with a deadline of its own", "unit quorum",
          "a_lock_that_stays_gets_onto_the_other_nodes", SPREADS,
          ".deadline_us = round->deadline_us,",
          ".deadline_us = environment_now(spreads->env) + 4000000,"),
    plant("fill too late for far nodes", "unit quorum",
          "after_a_long_round_the_early_replication_is_sent_in_time", SPREADS,
          "SPREADS_EARLY_US), last_us);", "SPREADS_EARLY_US), INT64_MAX + 0 * last_us);"),
    plant("fill with the whole TTL", "unit quorum",
          "a_lock_that_stays_gets_onto_the_other_nodes", SPREADS,
          "call->ttl_ms = it->ttl_ms - passed_ms;",
          "call->ttl_ms = it->ttl_ms + 0 * passed_ms;"),
    plant("fill of a grant that nobody took", "sim", "tidy",
          "server/engine/rounds/operation.c", "it->result.token = token_of(it);",
          "it->result.token = token_of(it);\n"
          "        const struct round_lock lock = lock_of(it);\n"
          "        if (outcome == OUTCOME_GRANTED)\n"
          "            spreads_on_granted(it->operations->spreads, &it->round, &lock);"),
    # The simulator would have to slow a release down between two nodes.
    Defect("late majority that closes a release", "model", "leftover",
           model="replication", rule="LATE"),
    Defect("young lock in time from its release on", "model", "leftover",
           model="replication", rule="FROM_RELEASE"),
    plant("release that misses the early replication of another server", "sim", "tidy",
          "server/engine/rounds/releases.c", "return it->is_again ? 0 : it->again;",
          "return 0;"),
    # Clients that gave up, behind a proxy that does not pass a close on.
    plant("ghost that goes on waiting for a lock", "sim", "withdrawal",
          "server/engine/waiting/waits.c",
          "waiter_has_key(place->waiter, key_hash))\n            return place->waiter;",
          "waiter_has_key(place->waiter, key_hash) &&\n" "            place == NULL)\n"
          "            return place->waiter;"),
    plant("ghost that goes on waiting for a permit", "sim", "withdrawal",
          "server/engine/engine.c", "if (is_permit)\n        permits_withdraw(",
          "if (engine == NULL)\n        permits_withdraw("),
    plant("grant of a ghost that stays", "unit waits_repeats",
          "story_75_what_it_tries_is_released", "server/engine/waiting/ticket.c",
          "if (operation != NULL)\n" "        (void)operation_abandon(operation);\n"
          "    it->operation = 0;", "if (operation != NULL)\n"
          "        operation_discard(operation);\n" "    it->operation = 0;"),
]
