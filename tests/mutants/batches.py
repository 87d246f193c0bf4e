"""Defects of POST /batch: how its operations are read, begun, answered and undone."""
from __future__ import annotations

from defect import Defect, Edit

BATCH = "api/batch.c"
LOAD = "api/message/jsonload.c"

BATCHES = [
    Defect("an operation answered with another's result", "unit",
           "each_operation_is_done_as_if_it_were_alone", [Edit(
               BATCH, "        batch_put_answer(&json, &it->items[i]);\n",
               "        batch_put_answer(&json, &it->items[0]);\n")],
           tests="batches"),
    Defect("an acquire in a batch that pauses", "unit",
           "split_votes_for_a_lock_delay_nobody", [Edit(
               "api/locks.c", "call->item > 0, /*", "false, /*")],
           tests="batches"),
    Defect("one bad operation that fails all", "unit",
           "a_bad_operation_does_not_stop_the_others", [Edit(
               BATCH, "    if (!check_weight(request, it, bodies) ||\n",
               "    for (int i = 0; i < count; i++) {\n"
               "        if (it->items[i].status == 0)\n"
               "            continue;\n"
               "        problem_respond_not_json(&request->call);\n"
               "        goto done;\n"
               "    }\n"
               "    if (!check_weight(request, it, bodies) ||\n")],
           tests="batches"),
    Defect("a batch at the price of one request", "unit",
           "each_is_charged_as_far_as_the_burst_goes", [Edit(
               BATCH, "    if (call->item == 1 ||\n",
               "    if (call->item >= 1 ||\n")], tests="batches"),
    Defect("an extend in a batch of any name", "unit",
           "a_lock_outside_of_the_prefixes_is_refused_alone", [Edit(
               BATCH, "        if ((call->kind == LOCK_ACQUIRE ||",
               "        if ((call->kind != LOCK_INSPECT ||")],
           tests="batches"),
    Defect("a grant in a batch whose right is lost", "unit",
           "an_acquire_that_lost_its_right_is_undone_alone", [Edit(
               BATCH, "!locks_stand(service, &item->call)", "false")],
           tests="batches"),
    Defect("a grant in a batch kept for who has left", "unit",
           "a_batch_of_which_nobody_is_told_leaves_no_lock", [Edit(
               BATCH, "        request->answers_due -= "
               "!has_outcome(service, item);\n"
               "        locks_abandon(service, &item->call);\n",
               "        request->answers_due -= "
               "!has_outcome(service, item);\n"
               "        engine_close(service->engine, item->call.op);\n"
               "        item->call.op = 0;\n")], tests="exchange"),
    Defect("a grant in a batch kept though its answer is not written", "unit",
           "a_batch_of_which_nobody_is_told_leaves_no_lock", [Edit(
               BATCH, "        if (call->op != 0 && is_answered)\n",
               "        if (call->op != 0)\n")], tests="exchange"),
    Defect("an outcome counted twice in a batch", "unit",
           "a_batch_of_which_nobody_is_told_leaves_no_lock", [Edit(
               BATCH, "request->answers_due -= !has_outcome(service, item);",
               "request->answers_due--;")], tests="exchange"),
    Defect("two operations of one lock in a batch", "unit",
           "two_operations_of_one_lock_are_refused_and_nothing_is_done", [Edit(
               BATCH, "           sharing_of(&bodies[later->n]) == sharing;\n",
               "           true;\n")], tests="batches"),
    Defect("one token in two forms in a batch", "unit",
           "two_operations_of_one_lock_are_refused_and_nothing_is_done", [Edit(
               BATCH, "span_behind(token, TOKEN_NUMBER_LEN + 1)", "token")],
           tests="batches"),
    Defect("a member twice in a body of the usual shape", "unit",
           "what_is_read_is_what_jansson_reads", [Edit(
               LOAD, "    return json_object_get(object, name) == NULL;\n",
               "    return json_is_object(object);\n")], tests="jsonload"),
    Defect("a batch of any number of resources", "unit",
           "a_batch_has_two_hundred_resources_at_most", [Edit(
               BATCH, "    if (!check_weight(request, it, bodies) ||\n"
               "        !check", "    if (!check")], tests="batches"),
    Defect("a text of two lines in a body of the usual shape", "unit",
           "what_is_read_is_what_jansson_reads", [Edit(
               LOAD,
               "    it->rest = span_behind(it->rest, text->len + 1);\n"
               "    return true;\n",
               "    it->rest = span_behind(it->rest, text->len);\n"
               "    return scan_take(it, '\"');\n"), Edit(
                   LOAD, "text->len == it->rest.len || "
                   "text->ptr[text->len] != '\"'",
                   "text->len == it->rest.len")],
           tests="jsonload"),
    Defect("a key of one operation for all", "unit",
           "each_has_its_own_key", [Edit(
               BATCH, "    item->call.idempotency_key = body->key;\n",
               "")], tests="batches"),
]
