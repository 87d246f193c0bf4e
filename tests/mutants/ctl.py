# SPDX-License-Identifier: MIT
"""Defects of redlockctl: where the servers limit a hold, and where what answers
is no redlockd. See run.py."""
from defect import Defect, Edit, plant

FOREIGN_ANSWER = "no_answer_of_another_is_taken"
FREE_MEANWHILE = "a_lock_that_was_free_meanwhile_is_lost"

CTL = [
    plant("any success counts", "ctl foreign", FOREIGN_ANSWER, "cli/answer.c",
          "return is_success(answer->body, question) ? ANSWER_DONE",
          "return is_success(answer->body, question) || answer->body != NULL ? "
          "ANSWER_DONE"),
    Defect("any problem counts", "ctl", FOREIGN_ANSWER, [Edit(
        "cli/answer.c",
        "           strcmp(type + sizeof PROBLEM_TYPE - 1, code) == 0;\n",
        "           strcmp(type + sizeof PROBLEM_TYPE - 1, code) == 0 || *code;\n"),
        Edit(
        "cli/answer.c",
        "           strncmp(type, PROBLEM_TYPE, sizeof PROBLEM_TYPE - 1) == 0 &&\n",
        "           (strncmp(type, PROBLEM_TYPE, sizeof PROBLEM_TYPE - 1) == 0 ||\n"
        "            *code) &&\n")], tests="foreign"),
    plant("secrets repeated", "ctl foreign", FOREIGN_ANSWER, "cli/fetch.c",
          "return len >= SECRET_LEN &&", "return len > 1000 &&"),
    plant("wait for another service", "ctl foreign", "a_waiting_run_ends", "cli/replicas.c",
          "if (verdict != ANSWER_DENIED && !is_other) {",
          "if (verdict != ANSWER_DENIED) {"),
    plant("other replicas not asked", "ctl foreign", "another_replica_is_asked",
          "cli/answer.h", "verdict == ANSWER_STARVED || verdict == ANSWER_NOT_REDLOCKD;",
          "verdict == ANSWER_STARVED;"),
    plant("end of the hold is the end", "ctl limits", "a_repeat_that_fails_is_made_again",
          "cli/run.c", "if (verdict == ANSWER_FINAL)",
          "if (verdict == ANSWER_FINAL && run->is_token_open)"),
    plant("grant of a free lock goes on", "ctl limits", FREE_MEANWHILE, "cli/replicas.c",
          "else if (answer->status != HTTP_OK)", "else if (answer->status == 0)"),
    plant("lock of another waited for", "ctl limits", FREE_MEANWHILE, "cli/replicas.c",
          "return number != 0 && number != lock->fencing_token &&", "return number < 0 &&"),
    plant("old token released", "ctl limits",
          "an_unknown_token_is_asked_for_before_the_release", "cli/run.c",
          "if (run->is_token_open && run->lost != ANSWER_LOST) {",
          "if (run->is_token_open && run->lost == ANSWER_LOST) {"),
    plant("run takes a refused connection for a release", "ctl foreign",
          "a_run_whose_lock_was_lost_says_so", "cli/fetch.c", "sent == 0;", "sent < 0;"),
    plant("lost answer is no release", "ctl foreign",
          "what_was_not_released_is_not_called_so", "cli/answer.c",
          "if (answer->status == 0 || is_good(answer->status) ||",
          "if (is_good(answer->status) ||"),
    plant("ignored signal ends a run", "ctl cancel", "what_is_ignored_does_not_end_it",
          "cli/wake.c", "if (action.sa_handler != SIG_IGN)", ""),
    plant("untold lock is kept", "ctl cancel", "what_could_not_be_printed_is_released",
          "cli/commands.c", "if (fflush(stdout) != 0 || commands_are_cut())",
          "if (fflush(stdout) != 0 && lock.id[0] == 0)"),
    plant("closed pipe ends an acquire", "ctl cancel",
          "what_could_not_be_printed_is_released", "cli/commands.c",
          "(void)signal(SIGPIPE, SIG_IGN); /* or it could not give the lock back */", ""),
    plant("extends without limit refused", "sim", "limit",
          "server/engine/rounds/operation.c",
          "if (max_us == 0 || !token_parse(token, &parts))",
          "if (!token_parse(token, &parts))"),
    plant("hold lasts beyond its limit", "sim", "limit", "server/engine/rounds/operation.c",
          "return now_us != 0 && end_us - parts.number > max_us;",
          "return now_us != 0 && now_us - parts.number > max_us &&\n"
          "           end_us != 0;"),
]
