# SPDX-License-Identifier: MIT
"""Defects that only those notice who watch, or leave."""
from defect import plant

WATCHES = "server/engine/watches.c"
RESULT = "server/engine/rounds/result.c"

MEMBERS = "server/engine/voting/members.c"
HURRY = "bool may_hurry = it->burst < BURST_MOST;"

VISITS = [
    plant("news of nodes reported as fast as nodes reply", "sim", "paced", MEMBERS,
          HURRY, "bool may_hurry = it->burst >= 0;"),
    plant("news of nodes reported without a pause", "unit eligibility",
          "news_that_never_end_keep_no_node_busy", MEMBERS, HURRY,
          "bool may_hurry = it->burst >= 0;"),
    plant("configurations that wait for one node, unnamed", "unit members",
          "two_configurations_that_wait_for_one_node_are_named", MEMBERS,
          "it->replaced >= RIVAL_MIN;", "it->replaced > 1000;"),
    plant("node that restarts taken for a contested one", "unit members",
          "a_node_that_restarts_often_is_not_contested", MEMBERS,
          "it->replaced = 0; /* a restart", "/* a restart"),
    plant("pool that nobody uses is served", "sim", "alive",
          "server/engine/permits/permits.c", "if (pool->users == 0 || pool->is_running)",
          "if (pool->is_running)"),
    plant("inspection of a watch that nobody may discard", "sim", "alive",
          "server/engine/rounds/operation.c", "assert(it->request.call == LOCK_INSPECT ||",
          "assert((it->request.call == LOCK_INSPECT &&\n"
          "            it->request.owned_by != OWNER_WATCH) ||"),
    plant("watches that SIGTERM does not end", "sim", "alive",
          "server/engine/waiting/ticket.c",
          "for (int i = 0; i < WAITING_KINDS; i++) {\n        struct ticket *it",
          "for (int i = 0; i < WAITING_WATCH; i++) {\n        struct ticket *it"),
    plant("watched lock that is seldom examined", "sim", "watched", WATCHES,
          "EACH_US = 1000000, ", "EACH_US = 60000000, "),
    plant("watch answered by an older inspection", "unit watches",
          "another_version_is_told", WATCHES,
          "if (one->ticket.since_us <= it->began_us &&", "if (it->began_us > 0 &&"),
    plant("watch whose end tells what is old", "unit watches",
          "at_the_end_of_its_time_it_tells_nothing_that_is_old", WATCHES,
          "at_least(ticket->since_us, ticket->until_us - EACH_US);", "ticket->since_us;"),
    plant("watched lock whose end is not told", "sim", "watched", WATCHES,
          "bool is_known = result->outcome == OUTCOME_FOUND ||\n"
          "                    result->outcome == OUTCOME_NOT_FOUND;",
          "bool is_known = result->outcome == OUTCOME_FOUND;"),
    plant("state that passes told at once", "unit watches",
          "a_state_that_passes_is_not_told", WATCHES, "it->may_pass = may_pass;",
          "it->may_pass = true;"),
    plant("version of each number of readers", "unit watches",
          "readers_who_come_and_go_wake_nobody", RESULT,
          "result->version = version_shared;",
          "result->version = version_of_number(result->holders);"),
    plant("one version for all values of others", "unit watches",
          "each_state_has_a_version", RESULT,
          "result->version = version_of_value(round_value(round, node));",
          "result->version = version_foreign;"),
    plant("version of the last holder when the nodes disagree", "unit watches",
          "each_state_has_a_version", RESULT, "else if (count < round->quorum)",
          "else if (count < 1)"),
]
