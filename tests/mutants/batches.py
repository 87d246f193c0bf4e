# SPDX-License-Identifier: MIT
"""Defects of POST /batch: how its operations are read, begun, answered and undone."""
from __future__ import annotations

from defect import plant

BATCH = "api/batch.c"

BATCHES = [
    plant("an operation answered with another's result", "unit batches",
          "each_operation_is_done_as_if_it_were_alone", BATCH,
          "batch_put_answer(&json, &it->items[i]);",
          "batch_put_answer(&json, &it->items[0]);"),
    plant("an acquire in a batch that pauses", "unit batches",
          "split_votes_for_a_lock_delay_nobody", "api/locks.c", "call->item > 0, /*",
          "false, /*"),
    plant("one bad operation that fails all", "unit batches",
          "a_bad_operation_does_not_stop_the_others", BATCH,
          "if (!check_weight(request, it, bodies) ||",
          "for (int i = 0; i < count; i++) {\n" "        if (it->items[i].status == 0)\n"
          "            continue;\n"
          "        problem_respond_not_json(&request->call);\n"
          "        goto done;\n" "    }\n"
          "    if (!check_weight(request, it, bodies) ||"),
    plant("a batch at the price of one request", "unit batches",
          "each_is_charged_as_far_as_the_burst_goes", BATCH, "    if (call->item == 1 ||\n",
          "    if (call->item >= 1 ||\n"),
    plant("an extend in a batch of any name", "unit batches",
          "a_lock_outside_of_the_prefixes_is_refused_alone", BATCH,
          "if ((call->kind == LOCK_ACQUIRE ||", "if ((call->kind != LOCK_INSPECT ||"),
    plant("a grant in a batch whose right is lost", "unit batches",
          "an_acquire_that_lost_its_right_is_undone_alone", BATCH,
          "!locks_stand(service, &item->call)", "false"),
    plant("a grant in a batch kept for who has left", "unit exchange",
          "a_batch_of_which_nobody_is_told_leaves_no_lock", BATCH,
          "request->answers_due -= !has_outcome(service, item);\n"
          "        locks_abandon(service, &item->call);",
          "request->answers_due -= !has_outcome(service, item);\n"
          "        engine_close(service->engine, item->call.op);\n"
          "        item->call.op = 0;"),
    plant("a grant in a batch kept though its answer is not written", "unit exchange",
          "a_batch_of_which_nobody_is_told_leaves_no_lock", BATCH,
          "if (call->op != 0 && is_answered)", "if (call->op != 0)"),
    plant("two operations of one lock in a batch", "unit batches",
          "two_operations_of_one_lock_are_refused_and_nothing_is_done", BATCH,
          "sharing_of(&bodies[later->n]) == sharing;", "true;"),
    plant("one token in two forms in a batch", "unit batches",
          "two_operations_of_one_lock_are_refused_and_nothing_is_done", BATCH,
          "span_behind(token, TOKEN_NUMBER_LEN + 1)", "token"),
    plant("a batch of any number of resources", "unit batches",
          "a_batch_has_two_hundred_resources_at_most", BATCH,
          "if (!check_weight(request, it, bodies) ||\n        !check",
          "if (!check"),
    plant("a key of one operation for all", "unit batches", "each_has_its_own_key", BATCH,
          "item->call.idempotency_key = body->key;", ""),
]
