"""Defects of redlockctl: where the servers limit a hold, and where what answers
is no redlockd. See run.py."""
from defect import Defect, Edit

FOREIGN_ANSWER = "no_answer_of_another_is_taken"
FREE_MEANWHILE = "a_lock_that_was_free_meanwhile_is_lost"

CTL = [
    Defect("any success counts", "ctl", FOREIGN_ANSWER, [Edit(
        "cli/answer.c",
        "        return is_success(answer->body, question) ? ANSWER_DONE\n",
        "        return is_success(answer->body, question) || answer->body != NULL"
        " ? ANSWER_DONE\n")], tests="foreign"),
    Defect("any problem counts", "ctl", FOREIGN_ANSWER, [Edit(
        "cli/answer.c",
        "           strcmp(type + sizeof PROBLEM_TYPE - 1, code) == 0;\n",
        "           strcmp(type + sizeof PROBLEM_TYPE - 1, code) == 0 || *code;\n"),
        Edit(
        "cli/answer.c",
        "           strncmp(type, PROBLEM_TYPE, sizeof PROBLEM_TYPE - 1) == 0 &&\n",
        "           (strncmp(type, PROBLEM_TYPE, sizeof PROBLEM_TYPE - 1) == 0 ||\n"
        "            *code) &&\n")], tests="foreign"),
    Defect("answer about another lock", "ctl", FOREIGN_ANSWER, [Edit(
        "cli/answer.c",
        "    return id == NULL ? answer_is_token(told) : strcmp(told, id) == 0;\n",
        "    return id == NULL ? answer_is_token(told) : *told != '\\0';\n")],
           tests="foreign"),
    Defect("token of any characters", "ctl", FOREIGN_ANSWER, [Edit(
        "cli/answer.c", "        if (*text < '!' || *text > '~')\n",
        "        if (*text < 0)\n")], tests="foreign"),
    Defect("secrets repeated", "ctl", FOREIGN_ANSWER, [Edit(
        "cli/fetch.c", "    return len >= SECRET_LEN &&\n",
        "    return len > 1000 &&\n")], tests="foreign"),
    Defect("wait for another service", "ctl", "a_waiting_run_ends", [Edit(
        "cli/replicas.c",
        "    if (verdict != ANSWER_DENIED && !is_foreign) {\n",
        "    if (verdict != ANSWER_DENIED) {\n")], tests="foreign"),
    Defect("no wait for a gateway", "ctl", "a_waiting_run_ends", [Edit(
        "cli/answer.c", "    return answer->status >= 400;\n",
        "    return answer->status >= 600;\n")], tests="foreign"),
    Defect("other replicas not asked", "ctl", "another_replica_is_asked", [Edit(
        "cli/answer.h",
        "           verdict == ANSWER_STARVED || verdict == ANSWER_FOREIGN;\n",
        "           verdict == ANSWER_STARVED;\n")], tests="foreign"),
    Defect("end of the hold is the end", "ctl", "a_repeat_that_fails_is_made_again",
           [Edit("cli/run.c", "    if (verdict == ANSWER_FINAL)\n",
                 "    if (verdict == ANSWER_FINAL && run->is_token_open)\n")],
           tests="limits"),
    Defect("grant of a free lock goes on", "ctl", FREE_MEANWHILE, [Edit(
        "cli/replicas.c", "    else if (answer->status != HTTP_OK)\n",
        "    else if (answer->status == 0)\n")], tests="limits"),
    Defect("other slots go on", "ctl", FREE_MEANWHILE, [Edit(
        "cli/replicas.c", "    if (strcmp(fresh->id, lock->id) != 0)\n",
        "    if (*fresh->id == 0)\n")], tests="limits"),
    Defect("lock of another waited for", "ctl", FREE_MEANWHILE, [Edit(
        "cli/replicas.c", "    return number != 0 && number != lock->fencing_token &&\n",
        "    return number < 0 &&\n")], tests="limits"),
    Defect("old token released", "ctl",
           "an_unknown_token_is_asked_for_before_the_release", [Edit(
        "cli/run.c", "    if (run->is_token_open && run->lost != ANSWER_LOST) {\n",
        "    if (run->is_token_open && run->lost == ANSWER_LOST) {\n")],
           tests="limits"),
    Defect("refused connection is a release", "ctl",
           "what_was_not_released_is_not_called_so", [Edit(
        "cli/fetch.c", "           sent == 0;\n", "           sent < 0;\n")],
           tests="foreign"),
    Defect("run takes a refused connection for a release", "ctl",
           "a_run_whose_lock_was_lost_says_so", [Edit(
        "cli/fetch.c", "           sent == 0;\n", "           sent < 0;\n")],
           tests="foreign"),
    Defect("gateway's word is a release", "ctl",
           "what_was_not_released_is_not_called_so", [Edit(
        "cli/replicas.c",
        "            answer, replicas->options->command_id == COMMAND_RELEASE);\n",
        "            answer, replicas->options->command_id == COMMANDS);\n")],
           tests="foreign"),
    Defect("lost answer is no release", "ctl",
           "what_was_not_released_is_not_called_so", [Edit(
        "cli/answer.c", "    if (answer->status == 0 || is_good(answer->status) ||\n",
        "    if (is_good(answer->status) ||\n")], tests="foreign"),
    Defect("run takes a 503 for a release", "ctl",
           "a_run_whose_lock_was_lost_says_so", [Edit(
        "cli/answer.c",
        "    return !is_strict && answer->status != HTTP_NO_SERVICE;\n",
        "    return !is_strict;\n")], tests="foreign"),
    Defect("ignored signal ends a run", "ctl", "what_is_ignored_does_not_end_it", [
        Edit("cli/wake.c", "        if (action.sa_handler != SIG_IGN)\n", "")], tests="cancel"),
    Defect("untold lock is kept", "ctl", "what_could_not_be_printed_is_released", [
        Edit("cli/commands.c",
             "    if (fflush(stdout) != 0 || commands_are_cut())\n",
             "    if (fflush(stdout) != 0 && lock.id[0] == 0)\n")], tests="cancel"),
    Defect("closed pipe ends an acquire", "ctl",
           "what_could_not_be_printed_is_released", [Edit(
        "cli/commands.c",
        "    (void)signal(SIGPIPE, SIG_IGN); /* or it could not give the lock back */\n",
        "")], tests="cancel"),
    Defect("extends without limit refused", "sim", "limit", [Edit(
        "server/engine/rounds/operation.c",
        "    if (max_us == 0 || !token_parse(token, &parts))\n",
        "    if (!token_parse(token, &parts))\n")]),
    Defect("hold lasts beyond its limit", "sim", "limit", [Edit(
        "server/engine/rounds/operation.c",
        "    return now_us != 0 && end_us - parts.number > max_us;\n",
        "    return now_us != 0 && now_us - parts.number > max_us &&\n"
        "           end_us != 0;\n")]),
]
