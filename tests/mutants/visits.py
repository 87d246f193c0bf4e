"""Defects that only those notice who watch, or leave."""
from defect import Defect, Edit

WATCHES = "server/engine/watches.c"
RESULT = "server/engine/rounds/result.c"
LOCKS = "api/locks.c"

VISITS = [
    Defect("password of a connection string that becomes an address", "unit",
           "an_option_of_another_client_is_no_node", [Edit(
        "server/base/address.c",
        "    if (is_option((struct span){*text, len}))\n", "    if (len == 0)\n")],
           tests="address"),
    Defect("query of an address taken into the password", "unit",
           "any_other_is_refused_with_a_reason", [Edit(
        "server/base/address.c", "    if (strpbrk(info, \"/?#\"))\n",
        "    if (strchr(info, '/'))\n")], tests="address"),
    Defect("bare number that becomes the address of a node", "unit",
           "any_other_is_refused_with_a_reason", [Edit(
        "server/base/address.c", " && !is_address(host))\n",
        " && is_address(host))\n")], tests="address"),
    Defect("option of a command that becomes the address of a node", "unit",
           "any_other_is_refused_with_a_reason", [Edit(
        "server/base/address.c",
        "    if (*text == '-')\n        return dash_reason;\n", ""), Edit(
        "server/base/address.c",
        "    if (*host == '-')\n        return dash_reason;\n", ""), Edit(
        "server/base/address.c", "label.ptr[0] == '-' ||", "")],
           tests="address"),
    Defect("query of an address taken for a list", "unit",
           "any_other_is_refused_with_a_reason", [Edit(
        "server/base/address.c", "    if (strchr(\"?#\", *sign))\n",
        "    if (!strpbrk(text, \";|&\"))\n")], tests="address"),
    Defect("wrong byte of a key whose place is one too low", "unit",
           "the_wrong_byte_of_an_idempotency_key_is_told", [Edit(
        LOCKS, "place + 1, byte);", "place, byte);")], tests="locks_input"),
    Defect("two keys of one line taken for the first", "unit",
           "a_key_may_be_in_quotes", [Edit(
        "api/exchange.c", " || *rest.ptr == ';' ? key", " || true ? key")],
           tests="exchange"),
    Defect("compressed body that is taken for text", "unit",
           "what_a_body_is_instead_of_json_is_named", [Edit(
        "api/message/body.c", "text.len >= 2 && i <", "text.len > 2 && i <")],
           tests="body"),
    Defect("byte order mark that is not named behind a space", "unit",
           "what_a_body_is_instead_of_json_is_named", [Edit(
        "api/message/body.c", "    while (text.len > 0 && strchr(",
        "    while (text.len > 99 && strchr(")], tests="body"),
    Defect("media type of which only the first of two counts", "unit",
           "the_media_type_alone_tells_that_it_is_json", [Edit(
        "api/message/head.c", "        is_more = memchr(type.ptr",
        "        is_more = false && memchr(type.ptr")], tests="head"),
    Defect("pool that nobody uses is served", "sim", "alive", [Edit(
        "server/engine/permits/permits.c",
        "    if (pool->users == 0 || pool->is_running)\n",
        "    if (pool->is_running)\n")]),
    Defect("inspection of a watch that nobody may discard", "sim", "alive",
           [Edit("server/engine/rounds/operation.c",
                 "    assert(it->request.call == LOCK_INSPECT ||\n",
                 "    assert((it->request.call == LOCK_INSPECT &&\n"
                 "            it->request.owned_by != OWNER_WATCH) ||\n")]),
    Defect("watches that SIGTERM does not end", "sim", "alive", [Edit(
        "server/engine/waiting/ticket.c",
        "    for (int i = 0; i < WAITING_KINDS; i++) {\n        struct ticket *it",
        "    for (int i = 0; i < WAITING_WATCH; i++) {\n        struct ticket *it")]),
    Defect("watched lock that is seldom looked at", "sim", "watched", [Edit(
        WATCHES, "    EACH_US = 1000000, ", "    EACH_US = 60000000, ")]),
    Defect("watch answered by an older inspection", "unit",
           "another_version_is_told", [Edit(
        WATCHES, "        if (one->ticket.since_us <= it->began_us &&\n",
        "        if (it->began_us > 0 &&\n")], tests="watches"),
    Defect("watch whose end tells what is old", "unit",
           "at_the_end_of_its_time_it_tells_nothing_that_is_old", [Edit(
        WATCHES,
        "           at_least(ticket->since_us, ticket->until_us - EACH_US);\n",
        "           ticket->since_us;\n")], tests="watches"),
    Defect("watched lock whose end is not told", "sim", "watched", [Edit(
        WATCHES,
        "    bool is_known = result->outcome == OUTCOME_FOUND ||\n"
        "                    result->outcome == OUTCOME_NOT_FOUND;\n",
        "    bool is_known = result->outcome == OUTCOME_FOUND;\n")]),
    Defect("state that passes told at once", "unit",
           "a_state_that_passes_is_not_told", [Edit(
        WATCHES, "    it->may_pass = may_pass;\n",
        "    it->may_pass = true;\n")], tests="watches"),
    Defect("version of each number of readers", "unit",
           "readers_who_come_and_go_wake_nobody", [Edit(
        RESULT, "        result->version = version_shared;\n",
        "        result->version = version_of_number(result->holders);\n")],
           tests="watches"),
    Defect("one version for all values of others", "unit",
           "each_state_has_a_version", [Edit(
        RESULT,
        "        result->version = version_of_value(round_value(round, node));\n",
        "        result->version = version_foreign;\n")], tests="watches"),
    Defect("version of the last holder when the nodes disagree", "unit",
           "each_state_has_a_version", [Edit(
        RESULT,
        "    else if (count < round->quorum)\n", "    else if (count < 1)\n")],
           tests="watches"),
    Defect("free lock that is an error", "unit",
           "without_a_wait_a_free_lock_is_shown_at_once", [Edit(
        LOCKS,
        "                   (result->outcome == OUTCOME_NOT_FOUND &&\n"
        "                    call->kind == LOCK_INSPECT);",
        "                   result->outcome == OUTCOME_KINDS;")],
           tests="locks_watch"),
    Defect("watch after any text", "unit", "a_wrong_argument_is_told", [Edit(
        LOCKS, " && !version_is_wellformed(*known))\n",
        " && known->len == 0)\n")],
           tests="locks_watch"),
    Defect("batch whose answer is written in pieces", "unit",
           "the_answer_to_a_batch_is_written_at_once", [Edit(
        "api/front.c", "    bool is_batch = request->match.route == ROUTE_BATCH;\n",
        "    bool is_batch = false;\n")], tests="front_turns"),
]
