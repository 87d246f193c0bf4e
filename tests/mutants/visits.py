"""Defects that only those notice who watch, or leave."""
from defect import Defect, Edit

WATCHES = "server/engine/waiting/watches.c"

VISITS = [
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
    Defect("watch answered by an older inspection", "sim", "watched", [Edit(
        WATCHES, "        if (one->ticket.since_us <= it->began_us &&\n",
        "        if (it->began_us > 0 &&\n")], seed=282),
]
