"""Defects that only those notice who watch, or leave."""
from defect import Defect, Edit, plant

WATCHES = "server/engine/watches.c"
RESULT = "server/engine/rounds/result.c"
LOCKS = "api/locks.c"

VISITS = [
    plant("password of a connection string that becomes an address", "unit address",
          "an_option_of_another_client_is_no_node", "server/base/address.c",
          "if (is_option((struct span){*text, len}))", "if (len == 0)"),
    Defect("option of a command that becomes the address of a node", "unit",
           "any_other_is_refused_with_a_reason", [Edit(
        "server/base/address.c",
        "    if (*text == '-')\n        return dash_reason;\n", ""), Edit(
        "server/base/address.c",
        "    if (*host == '-')\n        return dash_reason;\n", ""), Edit(
        "server/base/address.c", "label.ptr[0] == '-' ||", "")],
           tests="address"),
    plant("wrong byte of a key whose place is one too low", "unit locks_input",
          "the_wrong_byte_of_an_idempotency_key_is_told", LOCKS, "place + 1, byte);",
          "place, byte);"),
    plant("two keys of one line taken for the first", "unit exchange",
          "a_key_may_be_in_quotes", "api/exchange.c", "|| *rest.ptr == ';' ? key",
          "|| true ? key"),
    plant("compressed body that is taken for text", "unit body",
          "what_a_body_is_instead_of_json_is_named", "api/message/body.c",
          "text.len >= 2 && i <", "text.len > 2 && i <"),
    plant("media type of which only the first of two counts", "unit head",
          "the_media_type_alone_tells_that_it_is_json", "api/message/head.c",
          "is_more = memchr(type.ptr", "is_more = false && memchr(type.ptr"),
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
    plant("watched lock that is seldom looked at", "sim", "watched", WATCHES,
          "EACH_US = 1000000, ", "EACH_US = 60000000, "),
    plant("watch answered by an older inspection", "unit watches",
          "an_inspection_that_began_before_tells_a_client_nothing", WATCHES,
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
    plant("free lock that is an error", "unit locks_watch",
          "without_a_wait_a_free_lock_is_shown_at_once", LOCKS,
          "(result->outcome == OUTCOME_NOT_FOUND &&\n"
          "                    call->kind == LOCK_INSPECT);",
          "result->outcome == OUTCOME_KINDS;"),
    plant("watch after any text", "unit locks_watch", "a_wrong_argument_is_told", LOCKS,
          "&& !version_is_wellformed(*known))", "&& known->len == 0)"),
    plant("batch whose answer is written in pieces", "unit front_turns",
          "the_answer_to_a_batch_is_written_at_once", "api/front.c",
          "bool is_batch = request->match.route == ROUTE_BATCH;", "bool is_batch = false;"),
]
