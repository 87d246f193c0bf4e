# SPDX-License-Identifier: MIT
"""Deliberate defects: each removes one safeguard. See run.py.

A defect of a node's script is made in the simulator's node, which
build/release/differ compares with the script, or is left to the nemesis. Where
neither suffers, differ finds it itself.
"""
from asking import ASKING
from spreading import SPREADING
from defect import Defect, Edit, plant
from backups import BACKUPS
from lacking import LACKING
from mistakes import MISTAKES

# A node accepts any number.
WINDOW_OFF = Edit(
    "server/engine/voting/nodes.c",
    "call->window_us = FENCE_WINDOW_US;",
    "call->window_us = (int64_t)1 << 52;")
# The last reply is always trusted.
STEPS_BELIEVED = [
    Edit("server/engine/voting/clocks.c", "if (llabs(step_us) > NODECLOCK_STEP_US) {",
         "if (llabs(step_us) > (int64_t)1 << 52) {"),
    Edit("server/engine/voting/clocks.c",
         "    if (nodeclock_step_us(clock, seen) != 0)\n        return;\n",
         "    if (nodeclock_step_us(clock, seen) != 0) {\n"
         "        *clock = *seen;\n        return;\n    }\n")]
# A look revokes no admission and renews no mark.
GENERATIONS_UNTOLD = Edit(
    "tests/lib/node/simstate.c",
    "memory->generation.it < ask->high_water && may_quarantine",
    "memory->generation.it < 0 && may_quarantine")
# A row of acquires and releases deletes locks of any value.
ROW_DELETES = Edit(
    "server/node/scripts/row.lua",
    "            if value == token then\n",
    "            if value then\n")
# So does a release that comes alone.
LONE_DELETES = Edit(
    "server/node/scripts/lone.lua",
    "'0', '255') == ARGV[6] and", "'0', '255') ~= '' and")

DEFECTS = [
    # ---- rounds -------------------------------------------------------------
    plant("token reused across retries", "sim", "rising",
          "server/engine/rounds/operation.c", "it->token_len = token_make(",
          "if (it->attempts == 1)\n        it->token_len = token_make("),
    plant("quorum of 2 of 5", "sim", "exclusion", "server/lock/lock.h",
          "return nodes / 2 + 1;", "return nodes / 2;"),
    plant("no drift", "sim", "kept", "server/engine/rounds/round.c",
          "(now_us - round->start_us) - drift_us -",
          "(now_us - round->start_us) + 0 * drift_us -"),
    plant("validity without elapsed", "sim", "kept", "server/engine/rounds/round.c",
          "ttl_us - (now_us - round->start_us) - drift_us",
          "ttl_us - 0 * (now_us - round->start_us) - drift_us"),
    plant("replies of earlier rounds counted", "sim", "kept",
          "server/engine/rounds/operation.c",
          "if (it == NULL || tag_bits(TAG_OPERATION, (unsigned)it->attempts) !=\n"
          "                          entries_user_bits(tag)) /* of an earlier attempt */",
          "if (it == NULL)"),
    # asked twice: at the verdict, and when the answer is written
    Defect("expired extension counted", "sim", "exclusion", [Edit(
        "server/engine/rounds/operation.c",
        "    return validity_ms(it, now_of(it)) > 0 ? OUTCOME_EXTENDED "
        ": OUTCOME_VALIDITY_EXHAUSTED;\n",
        "    return OUTCOME_EXTENDED;\n"), Edit(
        "server/engine/rounds/operation.c", "    if (result->validity_ms > 0)\n",
        "    if (result->outcome == OUTCOME_EXTENDED && result->validity_ms < 1)\n"
        "        result->validity_ms = 1;\n"
        "    if (result->validity_ms > 0)\n")],
        faults="slow,server_pause,double"),
    plant("no deadline", "sim", "mortal", "server/engine/voting/nodes.c",
          "? nodeclock_latest_at(clock, deadline_us)",
          "? deadline_us + ((int64_t)1 << 52)"),
    plant("lost straggler release", "sim", "tidy", "server/engine/rounds/releases.c",
          "if (nodes == 0)\n        return;",
          "nodes &= round_with(round, VOTE_GRANTED);\n    if (nodes == 0)\n        return;"),
    plant("failed extend that releases", "sim", "own", "server/engine/rounds/operation.c",
          "if (!has_attempts_left(it) || !round_is_lost_to_time(&it->round))",
          "if (it->request.call == LOCK_EXTEND &&\n"
          "        (!has_attempts_left(it) || !round_is_lost_to_time(&it->round)))\n"
          "        operation_undo(it);\n"
          "    if (!has_attempts_left(it) || !round_is_lost_to_time(&it->round))"),
    # ---- spreads: spreading.py has more ---------------------------------------
    plant("replication counted at once", "sim", "kept", "server/engine/rounds/round.c",
          "int own = round_count(round, VOTE_EXTENDED);",
          "int own = round_count(round, VOTE_EXTENDED);\n"
          "    own += own > 0 ? round_count(round, VOTE_FREE) : 0;"),
    plant("replication without deadline", "sim", "mortal", "server/engine/voting/nodes.c",
          "bool is_undone = call->kind == CALL_ACQUIRE && !call->is_early;",
          "bool is_undone = call->kind == CALL_ACQUIRE && !call->is_early;\n"
          "    if (call->kind == CALL_REPLICATE)\n"
          "        return deadline_us + ((int64_t)1 << 52);", seed=1629),
    plant("release that asks once", "sim", "tidy", "server/engine/rounds/releases.c",
          "return may_be_set_again ? ", "return may_be_set_again && it->is_again ? "),
    # The simulator would have to slow a release down between two nodes, and an
    # extend to fall in between.
    Defect("release that asks again too soon", "model", "leftover",
           model="replication", rule="FIXED"),
    Defect("release that asks no third time", "model", "leftover",
           model="replication", rule="TWICE"),
    # ---- waiting ------------------------------------------------------------
    plant("grant to one that waited without a second probe", "sim", "exclusion",
          "server/engine/waiting/ticket.c", "*operation_take(operation, now_us);",
          "operation->result;"),
    plant("waiting without a retry", "sim", "served", "server/engine/waiting/waits.c",
          ": at_least(delay_us, LEAST_US);", ": (int64_t)1 << 52;"),
    plant("announcements trusted to arrive", "sim", "served",
          "server/engine/waiting/waits.c",
          "return announcing >= quorum_of(waits_nodes(waits));", "return announcing >= 0;"),
    plant("limit of waiters for each kind", "unit tickets", "all_that_wait_have_one_limit",
          "server/engine/waiting/ticket.c",
          "if (!ticket_waits(it) || !(is_full(it->all) || is_queue_full))",
          "bool is_full_too = it->all->waiting[it->kind].count >=\n"
          "                       it->all->env->settings.waiters_max;\n"
          "    if (!ticket_waits(it) || !(is_full_too || is_queue_full))"),
    plant("contender that nobody wakes", "unit waits_several",
          "who_may_go_as_another_gives_way_goes", "server/engine/waiting/waitqueue.c",
          "ticket_set_timer(&it->ticket, 1);", "(void)it->ticket;"),
    plant("turn without end", "unit turn", "all_that_waited_when_it_began_have_their_turn",
          "server/engine/waiting/waitqueue.c", "next == 0 || next > turn->arrivals;",
          "next == 0;"),
    plant("yields as often as before though nobody uses them", "unit turn",
          "yields_that_nobody_uses_are_ever_further_apart",
          "server/engine/waiting/waitqueue.c",
          "turn->rest_until_us = now_us + turn->gap_us;", "turn->rest_until_us = now_us;"),
    plant("quickest of several servers always first", "unit turn",
          "of_several_whoever_had_no_turn_for_longer_is_first",
          "server/engine/waiting/waitqueue.c", " / at_least(turn->elsewhere / waiters, 1);",
          ";"),
    plant("who asks again overtakes other servers", "unit announcements",
          "whoever_asks_again_lets_others_go_first_too", "server/engine/waiting/waits.c",
          "waiter_is_contender(it) && !yields(it, now_us))", "waiter_is_contender(it))"),
    plant("own lock that split votes hide", "unit retries",
          "split_votes_do_not_hide_an_own_lock", "server/engine/rounds/round.c",
          "return found > 0 && found + unknown >= round->quorum;",
          "return found > 0 && found >= round->quorum;"),
    plant("waiter that sleeps after split votes", "unit announcements",
          "after_split_votes_an_announcement_wakes_it", "server/engine/waiting/waits.c",
          ".is_choice = ticket_waits(&it->ticket),", ".is_choice = false,"),
    plant("readers that keep readers out", "unit tickets",
          "readers_do_not_keep_out_a_reader", "server/engine/waiting/waits.c",
          "queue->writers > 0 &&", "queue->count > 0 &&"),
    plant("reader behind a writer takes a place", "unit tickets",
          "a_reader_that_does_not_wait_is_not_one_too_many", "server/engine/engine.c",
          "? waits_start(&engine->waits, &request, acquire->wait_ms)",
          "? waits_start(&engine->waits, &request,\n"
          "                             acquire->wait_ms + is_behind)"),
    plant("vanished waiter keeps what it was granted", "sim", "tidy",
          "server/engine/rounds/operation.c", "if (is_granted || may_hold)",
          "if ((is_granted || may_hold) &&\n        it->request.owned_by != OWNER_WAITER)"),
    # ---- several resources --------------------------------------------------
    plant("partial multi-lock", "sim", "tidy", "tests/lib/node/simnode.c",
          "answer->reply.highest = highest;\n            return VOTE_STALE;\n        }",
          "answer->reply.highest = highest;\n" "            return VOTE_STALE;\n"
          "        }\n" "        if (held == NULL)\n"
          "            simkeys_set(batch, call, call->resources[i],\n"
          "                        ask->ttl_ms);"),
    # Parts of a lock are lost only where keys are evicted, or deleted by hand.
    plant("extension of part of a lock counts", "differ", "batch",
          "server/node/scripts/extend.lua", "if missing > 0 then",
          "if missing == 2 ^ n - 1 then"),
    plant("contender that ignores its other queues", "sim", "served",
          "server/engine/waiting/waitqueue.c", "it->places[i].queue->contender = it;",
          "if (i == 0)\n            it->places[i].queue->contender = it;"),
    # ---- repeats ------------------------------------------------------------
    Defect("repeat that keeps the old token", "sim", "rising", [Edit(
        "server/engine/rounds/operation.c",
        "    it->token_len = token_make(",
        "    if (!it->is_repeat)\n"
        "        it->token_len = token_make("), Edit(
        "server/engine/rounds/operation.c",
        "    /* nothing follows what it replaces */\n",
        "    int best, count = round_common_value(&it->round, &best);\n"
        "    it->token_len = span_copy(\n"
        "        it->token, round_value(&it->round, best));\n")]),
    plant("repeat that is undone", "sim", "exclusion", "server/engine/rounds/operation.c",
          "nodes &= it->fresh;", "nodes &= UINT16_MAX;"),
    plant("repeat that is undone where it replaced", "sim", "exclusion",
          "tests/lib/node/simnode.c", "answer->reply.was_free &= key == NULL;", ""),
    Defect("repeat that replaces anything newer", "sim", "kept", [Edit(
        "tests/lib/node/simkeys.c", "    return number >= 0 && number <= call->seen;\n",
        "    return number >= 0 && call->seen > 0;\n"), Edit(
        "server/engine/rounds/operation.c",
        "                    it->replaces < it->request.asked_us;\n",
        "                         it->replaces > 0;\n")]),
    plant("repeat that shortens the TTL", "sim", "kept", "tests/lib/node/simnode.c",
          "left > ask->ttl_ms ? left : ask->ttl_ms);",
          "left > 0 ? ask->ttl_ms : ask->ttl_ms);"),
    Defect("repeat behind one that wants more", "sim", "regained", [Edit(
        "server/engine/waiting/waits.c",
        "        if (contender != NULL && contender->count == 1)\n",
        "        if (contender != NULL)\n"), Edit(
        "server/engine/waiting/waits.c",
        "            notify_loss(tried, place->waiter, operation, now_us);\n",
        "            if (tried->count == 1)\n"
        "                notify_loss(tried, place->waiter, operation,\n"
        "                             now_us);\n")]),
    plant("repeat that does not ask anew", "sim", "regained",
          "server/engine/waiting/waitqueue.c",
          "if (!is_earlier && number >= claim->latest_us)", "if (!is_earlier)"),
    plant("copy that asks anew for what came later", "sim", "kept",
          "server/engine/waiting/waitqueue.c", "claim->latest_us = asked_us + apart_us;",
          "claim->latest_us = INT64_MAX - apart_us;"),
    plant("key hash without the resources", "nemesis", "answered", "api/access/digest.c",
          "len += span_copy(text + len, names);", "(void)names;", faults="none"),
    # ---- numbers ------------------------------------------------------------
    Defect("number only in the server's memory", "sim", "rising", [Edit(
        "server/engine/voting/nodes.c",
        "    nodes->last_number = fence_next(median_us, nodes->last_number);\n",
        "    nodes->last_number++;\n"), WINDOW_OFF]),
    Defect("numbers of a minority's clocks", "sim", "able", [Edit(
        "server/engine/rounds/operation.c",
        "    if (round->pending < round->quorum)",
        "    if (round->pending == 0)"), Edit(
        "server/engine/voting/nodes.c",
        "    if (nodes->last_number > median_us + CLOCK_FAR_US)\n",
        "    if (nodes->last_number == FENCE_MAX)\n")],
        faults="step,flush,restart,block,server_restart,slow", seed=674),
    # The model shows that numbers can fall (NO_WINDOW, NO_SPREAD); no seed does
    # so yet. Here it shows that nodes vote whose clock is far off.
    Defect("neither window nor spread", "sim", "replicated", [WINDOW_OFF, Edit(
        "server/engine/voting/clocks.c", "now_us)) > CLOCK_FAR_US;",
        "now_us)) > (int64_t)1 << 52;")], faults="flush,step"),
    # ---- who may vote -------------------------------------------------------
    plant("answers kept for a new quarantine record", "sim", "exclusion",
          "server/engine/voting/members.c", "it->asked = (struct member_asked){0};", "",
          faults="flush,break,block,slow"),
    plant("no quarantine", "sim", "exclusion", "server/engine/voting/rules.c",
          "if (members->settings.is_guard_off)\n        return true;",
          "if (members)\n        return true;"),
    # The code has a second safeguard: a server asks only nodes that it has seen
    # admitted, and a majority of them does not forget. The model has only one.
    Defect("first start without hold", "model", "two_holders",
           model="first_start", rule="NO_HOLD"),
    Defect("nobody objects to a first start", "model", "two_holders",
           model="first_start", rule="NO_OBJECTION", world="FLUSHED"),
    Defect("first start of nodes that are not all empty", "sim", "exclusion", [Edit(
        "server/engine/voting/firststart.c", "        else if (word != PROBE_EMPTY)\n",
        "        else if (word != PROBE_EMPTY && word != PROBE_BARE)\n"), Edit(
        "server/engine/voting/firststart.c", "        if (word == PROBE_FRESH)\n",
        "        if (word == PROBE_FRESH || word == PROBE_CREATED)\n"), Edit(
        "server/engine/voting/firststart.c", "else if (word != PROBE_EMPTY && !is_own)",
        "else if (word != PROBE_EMPTY && word != PROBE_BARE && !is_own)")],
        faults="next,block,slow,pause"),
    Defect("readmission without generation", "sim", "exclusion", [Edit(
        "server/engine/voting/nodes.c",
        ".high_water = members->witness.node[action->node].high_water",
        ".high_water = 0"), Edit(
        "server/engine/voting/rules.c",
        "it->generation >= members->witness.node[node].high_water", "it->generation >= 0")],
        faults="restore,promote,break,block,slow"),
    plant("evictions not detected", "sim", "exclusion", "tests/lib/node/simstate.c",
          "if (evicted > known)", "if (evicted < 0)", faults="evict,break"),
    plant("restored memory votes", "sim", "exclusion", "tests/lib/node/simnode.c",
          "strcmp(replid + 1, batch->process->replid) == 0", "replid[1] != '\\0'",
          faults="rollback,break"),
    # A second safeguard here, too: the generation also shows what such a node lost.
    Defect("readmission of nodes that are not durable", "model", "two_holders",
           model="memory", rule="NO_DURABLE"),
    Defect("admission before the old names are dead", "unit",
           "story_65_the_last_promise_of_a_majority_is_waited_for", [
        Edit("server/engine/voting/rules.c",
             "           members->takeover.is_over;\n", "           true;\n"),
        Edit("server/engine/voting/rules.c",
             "    if (rules_is_taking_over(members))\n"
             "        return false;\n", "")], tests="takeover"),
    plant("quarantined votes counted", "sim", "kept", "server/engine/rounds/round.c",
          "round_note_ballot(round, node, call_ballot(reply));",
          "round_note_ballot(round, node, (struct ballot){\n"
          "        reply->vote == VOTE_NOT_ADMITTED ? VOTE_GRANTED : reply->vote,\n"
          "        reply->state});"),
    Defect("baseline per connection", "sim", "exclusion", [Edit(
        "server/engine/voting/clocks.c", "    clocks->node[node].is_up = is_up;\n",
        "    clocks->node[node] = (struct clock_node){.is_up = is_up,\n"
        "                                             .is_proven = true};\n"), Edit(
        "server/engine/voting/clocks.c", "    node->is_proven = false;\n", "")],
        faults="step,break,block,slow"),
    Defect("steps not detected", "sim", "exclusion", STEPS_BELIEVED,
        faults="step,block,slow,pause"),
    # In the simulator, a wrongly revoked node is admitted again in the end.
    Defect("step test on points", "model", "revokes_honest", model="clocks",
           rule="POINTS"),
    # Generations and incarnations also reveal the old machine: the simulator finds that no
    # lock is granted for long, but no two holders.
    plant("connections not confirmed", "unit status",
          "story_31_a_node_that_no_fresh_connection_confirms_loses_its_vote",
          "server/engine/voting/status.c", "now_us - node->confirmed_us < CONFIRMED_US;",
          "now_us != 0;"),
    # ---- on the nodes -------------------------------------------------------
    plant("no admission check", "sim", "exclusion", "tests/lib/node/simnode.c",
          "if (!is_admitted(batch, call))\n        return VOTE_NOT_ADMITTED;",
          "(void)is_admitted(batch, call);", faults="flush,block,slow"),
    Defect("release without compare", "nemesis", "exclusion", [Edit(
        "server/node/scripts/release.lua", "        if value == ARGV[b] then",
        "        if value ~= '' then"), ROW_DELETES, LONE_DELETES]),
    plant("extend that creates", "nemesis", "own", "server/node/scripts/extend.lua",
          "return {'FREE', missing}",
          "redis.call('SET', ARGV[a], ARGV[b], 'PX', ARGV[b + 1])\n        return 'E'"),
    plant("extend that shortens", "sim", "exclusion", "tests/lib/node/simnode.c",
          "if (expires_ms > key->expires_ms)", ""),
    # the clock behind the port is set forward from time to time
    plant("wall clock instead of boot time", "sim", "exclusion", "tests/sim/servers.c",
          "return server->offset_us + now_us + now_us * server->ppm / 1000000;",
          "int64_t times = (now_us + server->number * 2000000) / 6000000;\n"
          "    int64_t set_us = times * 60000000;\n"
          "    return server->offset_us + set_us + now_us +\n"
          "           now_us * server->ppm / 1000000;", faults="flush,block,slow"),
    # ---- rows of acquires and releases, which simulated nodes do not have ---
    plant("row with one lock twice", "differ", "batch", "server/node/batch.c",
          "if (batch->buckets[i] == call->buckets[0]) {",
          "if (batch->buckets[i] > FENCE_BUCKETS) {"),
    plant("row without numbers", "differ", "batch", "server/node/scripts/row.lua",
          "buckets[filled] = digits\n", "slots[filled] = '0'\n"),
    Defect("row without compare", "differ", "batch", [ROW_DELETES]),
    # a slot above the highest fencing token, whose number is then not looked at
    plant("row that leaves the max_token", "differ", "batch", "server/node/scripts/row.lua",
          "if max_token_digits then", "if max_token_digits == '' then"),
    plant("replication that leaves the max_token", "differ", "batch",
          "server/node/scripts/replicate.lua",
          "bucket, digits, max_token and number > max_token,", "slot, digits, false,"),
    # ---- a lone acquire or release, which has lines of its own --------------
    plant("lone acquire without deadline", "differ", "batch",
          "server/node/scripts/lone.lua", "now <= tonumber(ARGV[3]) and", "true and"),
    plant("lone acquire of any memory", "unit high_waters",
          "a_node_that_was_a_replica_for_a_moment_has_no_vote",
          "server/node/scripts/lone.lua",
          "'master_replid:' .. string.sub(admit, -40), 1, true) then",
          "'master_replid:', 1, true) then"),
    plant("lone acquire that leaves the max_token", "differ", "batch",
          "server/node/scripts/lone.lua", "digits, 'max_token', digits,",
          "digits, 'max_token', found[4],"),
    Defect("lone release without compare", "differ", "batch", [LONE_DELETES]),
    plant("lone release that tells nobody", "unit lua_listen",
          "releases_are_announced_while_a_server_listens", "server/node/scripts/lone.lua",
          "(tonumber(listened_until) or 0) > now",
          "(tonumber(listened_until) or 0) > 2^53"),
    # ---- who may ask --------------------------------------------------------
    plant("unknown tokens taken for known ones", "nemesis", "rights", "api/access/access.c",
          "login->len = span_copy(login->token, token);\n    }\n    return number;",
          "login->len = span_copy(login->token, token);\n" "    }\n"
          "    return number < 0 ? 0 : number;", tls=True),
    plant("prefixes not compared with the body", "nemesis", "rights", "api/access/access.c",
          "return access_shows(access, call, names) ||",
          "return account_of(access, call) != NULL ||", tls=True),
    # ---- what nodes say of each other ---------------------------------------
    Defect("high_water not compared by a probe", "sim", "exclusion", [
        GENERATIONS_UNTOLD, Edit(
        "server/engine/voting/rules.c",
        "    return it->generation >= members->witness.node[node].high_water;",
        "    return it->generation >= 0;")],
        faults="restore,promote,rollback,break,block,slow"),
    plant("no node name in the admission", "sim", "exclusion",
          "server/engine/voting/members.c",
          "size_t len = (size_t)(strrchr(node->admit, ':') - node->admit) + 1;",
          "const char *name = strchr(strchr(node->admit, ':') + 1, ':');\n"
          "    size_t len = (size_t)(name - node->admit) + 1;", faults="replace,block,slow",
          seed=112),
    # These need several losses in a row, each at the right moment.
    Defect("witnesses not read", "model", "two_holders", model="memory",
           rule="NO_WITNESS"),
    Defect("emptied witnesses counted", "model", "two_holders",
           model="witness", rule="EMPTY_WITNESS"),
    Defect("readmission after one heartbeat", "model", "two_holders",
           model="witness", rule="ONE_HEARTBEAT"),
    Defect("readmission without the only node that knows", "model",
           "two_holders", model="five", rule="ONE_MAY_BE_AWAY"),
    Defect("generation not raised by an admission", "model", "two_holders",
           model="memory", rule="NO_RAISE"),
    # ---- what the others have promised --------------------------------------
    plant("others' promises not waited for", "sim", "exclusion",
          "server/engine/voting/rules.c",
          "asked->end_us = at_least(takeover_end_of(probe, now_us), asked->end_us);",
          "asked->end_us = now_us;", faults="flush,block,slow"),
    plant("extend without until", "sim", "exclusion", "tests/lib/node/simkeys.c",
          "if (until_us > memory->until_us.it)",
          "if (until_us > memory->until_us.it &&\n        call->call.kind != CALL_EXTEND)",
          faults="flush,block,slow", seed=365),
    plant("until of the last promise", "sim", "exclusion", "tests/lib/node/simkeys.c",
          "if (until_us > memory->until_us.it)", "if (until_us > 0)",
          faults="flush,block,slow"),
    plant("a minority is asked", "sim", "exclusion", "server/engine/voting/rules.c",
          "return nodeset_count(nodes) >= members->quorum;",
          "return nodeset_count(nodes) >= members->quorum - 1;",
          faults="lag,cut,options,quiet"),
    # A node forgets between its vote and those of the others, which are late.
    plant("incarnations that change no admission", "sim", "exclusion",
          "tests/lib/node/simstate.c",
          "write_admit(batch, call, incarnation, atoll(news.ptr) + 1);",
          "write_admit(batch, call, incarnation, atoll(news.ptr));",
          faults="lag,cut,options,quiet", seed=35),
    plant("votes of an earlier incarnation counted", "sim", "exclusion",
          "server/engine/voting/members.c", "return it->life == life && !it->is_outdated;",
          "return it->life >= life;", faults="lag,cut,options,quiet", seed=12),
    plant("quarantine record not compared by an admission", "sim", "exclusion",
          "tests/lib/node/simstate.c",
          "return quarantine[0] != '\\0' && span_is(call->call.quarantine, quarantine) &&",
          "return quarantine[0] != '\\0' && call->call.quarantine.len > 0 &&",
          faults="lag,cut,quiet,target"),
    # The simulator shows none of these in several hundred seeds: a second node
    # would have to forget, or a name to move, within the same few milliseconds.
    plant("no min_token", "differ", "batch", "server/node/scripts/permission.lua",
          "'min_token', min_token, 'max_token',", "'min_token', '0', 'max_token',"),
    Defect("min_token not told", "differ", "batch", [Edit(
        "server/node/scripts/permission.lua",
        "                math.max(number_of(fields[8]), number_of(fields[9])),\n",
        "                number_of(fields[8]),\n"), Edit(
        "server/node/scripts/permission.lua",
        "math.max(number_of(fields[3]), min_token)", "number_of(fields[3])")]),
    plant("asked once", "unit eligibility", "each_is_probed_again_once_all_of_them_know",
          "server/engine/voting/rules.c", "if (asked->joins != joins) {",
          "if (asked->joins != joins && now_us < 0) {"),
    plant("later incarnations ignored", "unit eligibility",
          "story_45_a_machine_with_an_earlier_incarnation_has_no_say",
          "server/engine/voting/members.c", "it->is_outdated = is_outdated(members, i);",
          "it->is_outdated = i < 0 && is_outdated(members, i);"),
    Defect("nodes that wait are asked", "unit",
           "a_quorum_of_others_that_vote_must_know_of_its_incarnation", [Edit(
        "server/engine/voting/members.c",
        "    if (is_admitted || (it->is_restarted &&",
        "    is_admitted |= it->phase == MEMBER_QUARANTINED;\n"
        "    if (is_admitted || (it->is_restarted &&"), Edit(
        "server/engine/voting/witness.c", "probe->word == PROBE_ADMITTED",
        "probe->word <= PROBE_QUARANTINED"), Edit(
        "server/engine/voting/rules.c",
        "i != node && it->phase == MEMBER_ADMITTED &&",
        "i != node && it->phase != MEMBER_DOWN &&")], tests="eligibility"),
    plant("outdated nodes are asked", "unit eligibility",
          "a_quorum_of_others_that_vote_must_know_of_its_incarnation",
          "server/engine/voting/rules.c",
          "it->is_clock_good && !rules_is_outdated(members, i))", "it->is_clock_good)"),
    plant("second probe before all knew of the incarnation", "unit eligibility",
          "each_is_probed_again_once_all_of_them_know", "server/engine/voting/rules.c",
          "members->node[reporter].probed_us >= asked->since_us) {",
          "members->node[reporter].probed_us > 0) {"),
] + ASKING + SPREADING + MISTAKES + LACKING + BACKUPS
