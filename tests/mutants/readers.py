"""Defects of shared locks, on the nodes: scripts that differ finds, or a unit
test where no batch of differ could show it. The last ones are in no line of the
scripts: what a client must not do, and what a script does in one step.
"""
from defect import Defect, Edit

SHARED = "server/node/scripts/shared.lua"
SHARE = "server/node/scripts/share.lua"
ROW = "server/node/scripts/row.lua"
MANY = "server/node/scripts/readers.lua"
TOLD = "server/node/scripts/inspect.lua"
FORCE = "server/engine/rounds/operation.c"
FORCED = "server/engine/rounds/forced.c"

READERS = [
    Defect("reader without memory told that the lock is held", "unit",
           "a_reader_without_memory_is_not_told_that_the_lock_is_held", [Edit(
               "server/engine/waiting/waits.c",
               "    if (!ticket_waits(&it->ticket)) {\n"
               "        ticket_settle_plainly(&it->ticket, OUTCOME_NO_QUORUM);\n",
               "    if (it->several == NULL && it->count == 0) {\n"
               "        ticket_settle_plainly(&it->ticket, OUTCOME_NO_QUORUM);\n")],
           tests="waits_several"),
    Defect("readers' key that ends with the one that left", "differ", "batch",
           [Edit(SHARED, "redis.pcall('PEXPIREAT', lock, last[2])",
                 "redis.pcall('PEXPIREAT', lock, last[2], 'GT')")]),
    Defect("readers' key that ends with the one that came", "differ", "batch",
           [Edit(SHARE, "math.max(ends[i],\n                lasts[i] or 0))",
                 "ends[i])")]),
    Defect("shared repeat that replaces later locks", "unit",
           "a_repeat_whose_votes_are_split_with_another_tries_again", [Edit(
               "server/engine/rounds/operation.c",
               "    if (it->is_repeat && "
               "!it->request.is_shared)\n",
               "    if (it->is_repeat)\n")], tests="shared"),
    Defect("look that makes a lock shared", "differ", "batch", [Edit(
        "server/node/scripts/extend.lua",
        "    if tonumber(ARGV[b + 1]) == 0 then\n",
        "    if tonumber(ARGV[b + 1]) < 0 then\n")]),
    Defect("reader below a writer's number", "differ", "batch", [Edit(
        SHARE, "        if not (number > least) then\n",
        "        if not (number > min_token) then\n")]),
    Defect("reader below the min_token", "differ", "batch", [Edit(
        SHARE, "math.max(writers, min_token and min_token >= 0 and min_token or 2^53)\n",
        "writers + 0\n")]),
    Defect("reader not recorded in the slot", "differ", "batch", [Edit(
        SHARE, "        if number > numbers[i] then\n",
        "        if not numbers[i] then\n")]),
    Defect("readers that hide the writer's number", "differ", "batch", [Edit(
        "server/node/scripts/prelude.lua",
        "    return of and of + 0 == highest and number or\n",
        "    return of and number or\n")]),
    Defect("reader whose lower number lowers the slot's", "differ", "batch", [
        Edit(SHARE, "        if number > numbers[i] then\n",
             "        if numbers[i] then\n")]),
    Defect("repair of a reader that hides the writer's number", "differ",
           "batch", [Edit(
        "server/node/scripts/repair.lua",
        "digits .. ':' .. writer_in(known[2], highest))",
        "digits .. ':0')")]),
    Defect("readers that have ended are kept", "differ", "batch", [Edit(
        SHARED, "            '(' .. now_ms)\n", "            '(0')\n")]),
    Defect("reader that has ended is extended", "differ", "batch", [Edit(
        "server/node/scripts/extend.lua",
        "            if (tonumber(ends_ms) or 0) < now_ms then\n",
        "            if not ends_ms then\n")]),
    Defect("reader's time that gets shorter", "differ", "batch", [Edit(
        SHARED, "redis.pcall('ZADD', lock, 'GT', ends_ms, shared)",
        "redis.pcall('ZADD', lock, ends_ms, shared)")]),
    Defect("downgrade that leaves the writer", "differ", "batch", [Edit(
        "server/node/scripts/extend.lua",
        "            redis.call('DEL', lock)\n"
        "            local refused = join(lock, math.max(ends_ms, kept_ms))\n",
        "            local refused = not redis.call('PEXPIREAT', lock,\n"
        "                math.max(ends_ms, kept_ms))\n")]),
    Defect("downgrade that takes time away", "differ", "batch", [Edit(
        "server/node/scripts/extend.lua", "math.max(ends_ms, kept_ms))\n",
        "ends_ms)\n")]),
    Defect("release that leaves the other form", "differ", "batch", [Edit(
        SHARED, "            return value == exclusive and "
        "redis.pcall('DEL', lock) or nil\n",
        "            return value == shared and redis.pcall('DEL', lock) or "
        "nil\n")]),
    # what a node reports to a forced release
    Defect("report of readers that have ended", "differ", "batch", [Edit(
        TOLD, "redis.call('ZRANGE', ARGV[i], now_ms, '+inf',\n"
        "                'BYSCORE', 'LIMIT', '0', wanted",
        "redis.call('ZRANGE', ARGV[i], '-inf', '+inf',\n"
        "                'BYSCORE', 'LIMIT', '0', wanted")]),
    Defect("report without the exclusive form", "differ", "batch", [Edit(
        TOLD, "(form == 46 or form == 126)", "form == 126")]),
    Defect("report of an intent", "differ", "batch", [Edit(
        TOLD, " and token ~= INTENT and\n", " and\n")]),
    Defect("report of other numbers", "differ", "batch", [Edit(
        TOLD, "                (not wanted or string.sub(token, 1, 16) == "
        "wanted) then\n", "                true then\n")]),
    Defect("report of one page as all", "unit", "many_are_told_page_by_page", [
        Edit(TOLD, "math.max(not wanted and holders or 0, told) - told", "0")],
        tests="lua_tokens"),
    Defect("readers that are denied taken for what is not ours", "unit",
           "readers_that_the_user_may_not_read_are_an_error", [
        Edit(TOLD, "if refused and not string.find(refused.err, "
             "'^WRONGTYPE') then", "if false then")], tests="lua_tokens"),
    Defect("lost attempt that counts as an earlier reader", "unit",
           "what_its_own_lost_attempt_left_is_no_earlier_lock", [Edit(
               "server/engine/rounds/operation.c",
               "~(it->fresh | it->own)) != 0;\n",
               "~it->fresh) != 0;\n")],
           tests="shared"),
    # what is released of it
    Defect("forced release that follows who comes", "unit",
           "all_readers_that_are_found_are_released", [Edit(
               FORCE, "    if (has_more && ",
               "    if (")], tests="force"),
    Defect("forced release of one form", "unit",
           "story_67_what_a_minority_has_in_any_form_is_released", [Edit(
               FORCED, "it->is_shared |= parts.is_shared;",
               "it->is_shared = parts.is_shared;")], tests="force"),
    Defect("forced release of writers with the readers", "unit",
           "a_writers_lock_is_not_that_of_readers", [Edit(
               FORCED,
               "        if (forced->number != 0 || forced->tokens[i].is_shared)\n",
               "")],
           tests="force"),
    Defect("forced release that waits for a quorum of reports", "unit",
           "all_tokens_are_found_when_each_node_has_answered", [Edit(
               "server/engine/rounds/round.c",
               "    bool is_early = round->hears_all && round->pending > 0;\n",
               "    bool is_early = false;\n")], tests="round"),
    Defect("forced release without a token", "unit",
           "a_node_whose_admission_is_read_anew_is_sent_no_release_without_"
           "token", [Edit(
               "server/engine/rounds/operation.c",
               "it->forced == NULL || !it->forced->is_releasing;\n",
               "it != NULL;\n")], tests="force"),
    Defect("forced release that outlives its answer", "nemesis", "forced",
           [Edit("server/engine/rounds/operation.c",
                 "    if (it->forced == NULL || "
                 "outcome != OUTCOME_RELEASED)\n",
                 "    static char name[1024];\n"
                 "    static struct span named = {name, 0};\n"
                 "    static int64_t until_us;\n"
                 "    struct span its = it->request.resource;\n"
                 "    int64_t now_us = now_of(it);\n"
                 "    if (it->forced != NULL && its.len < 1024) {\n"
                 "        named.len = span_copy(name, its);\n"
                 "        until_us = now_us + 2000000;\n"
                 "    }\n"
                 "    if (outcome == OUTCOME_EXTENDED && now_us < until_us && "
                 "span_is_same(named, its))\n"
                 "        it->result.outcome = outcome = OUTCOME_NOT_OWNER;\n"
                 "    if (it->forced == NULL || "
                 "outcome != OUTCOME_RELEASED)\n")],
           faults="calm"),
    Defect("late answers to forced releases taken for reports", "unit",
           "the_look_is_repeated_until_no_node_has_more", [Edit(
               FORCED, "(!forced->is_releasing || asking != forced->asking ||\n",
               "(tally->due == 0 ||\n")],
           tests="force"),
    Defect("late answers to earlier releases taken for later ones", "unit",
           "a_late_answer_to_earlier_releases_is_none_to_later_ones", [Edit(
               FORCED, "asking != forced->asking ||\n", "asking >= 128 ||\n")],
           tests="force"),
    Defect("row that takes an intent for all readers", "differ", "batch", [Edit(
        ROW, "not two[3] and token ~= INTENT and\n", "not two[3] and\n")]),
    Defect("row that deletes readers with one of them", "unit",
           "a_row_releases_readers", [Edit(
               ROW,
               "                if is_release and\n"
               "                    values[at - before] == "
               "ARGV[at + token_offset] then\n",
               "                if answers[i] == 'D' then\n")],
           tests="lua_shared"),
    Defect("row that releases a reader among others", "differ", "batch", [Edit(
        ROW, "two[1] == token and not two[3] and token",
        "two[1] == token and token")]),
    Defect("row that releases a reader that has ended", "differ", "batch", [
        Edit(ROW, " ~= 43 and two[2] + 0 >= now_ms\n", " ~= 43\n")]),
    Defect("row that lets a reader join whoever has the lock", "differ",
           "batch", [Edit(ROW, "    if is_there ~= 0 then\n",
                          "    if is_there == 2 then\n")]),
    Defect("row that lets a reader in below the min_token", "differ", "batch", [Edit(
        ROW, "number > highest and number > min_token and\n"
        "                        writers",
        "number > highest and\n                        writers")]),
    Defect("row that forgets the writer's number", "differ", "batch", [Edit(
        ROW, "        writers[i] = writer_in(writers[i], numbers[i] or 0)\n",
        "        writers[i] = writers[i] and writer_in(writers[i], 0) or '0'\n")]),
    Defect("many readers that pass a waiting writer", "differ", "batch", [Edit(
        MANY, "    if scores.err or scores[1] or", "    if scores.err or")]),
    Defect("many readers beside what is not ours", "differ", "batch", [Edit(
        MANY, "    local lasts = redis.pcall('ZRANGE', lock, '0', releases, "
        "'REV')\n",
        "    local lasts = redis.pcall('ZRANGE', lock, '0', '0', 'REV')\n")]),
    Defect("many readers below a writer's number", "differ", "batch", [Edit(
        MANY, "        elseif number > least then\n",
        "        elseif number > 0 then\n")]),
    Defect("many readers outside the window", "differ", "batch", [Edit(
        MANY, "score or not number or math.abs(number - now) > ARGV[2] + 0",
        "score or not number")]),
    Defect("many readers that come late", "differ", "batch", [Edit(
        MANY, " or not is_whole or slot and now > ARGV[3] + 0 then\n",
        " or not is_whole then\n")]),
    Defect("many readers of a node that may have forgotten", "differ", "batch", [
        Edit(MANY, "    if not can_ask or not is_whole or", "    if not can_ask or")]),
    Defect("many readers whose lower numbers lower the slot's", "differ",
           "batch", [Edit(MANY, "math.max(number, highest)", "number")]),
    Defect("many readers' key that ends with the first of them", "differ",
           "batch", [Edit(MANY, "        local last = redis.pcall('ZRANGE', "
                          "lock, '0', '0', 'REV', 'WITHSCORES')\n",
                          "        local last = redis.pcall('ZRANGE', lock, "
                          "'0', '0', 'WITHSCORES')\n")]),
    Defect("many readers' key that ends with those that left", "differ",
           "batch", [Edit(MANY, "        refused = last[2] and redis.pcall("
                          "'PEXPIREAT', lock, last[2])\n",
                          "        refused = last[2] and redis.pcall("
                          "'PEXPIREAT', lock, last[2], 'GT')\n")]),
    Defect("many readers of whom one that has ended is released", "differ",
           "batch", [Edit(MANY, "            if score and score + 0 >= now_ms "
                          "then\n", "            if score then\n")]),
    Defect("the last of many readers is not announced", "differ", "batch", [
        Edit(MANY, "emptied[i] = holders == 0\n", "emptied[i] = false\n")]),
    Defect("many readers with one token", "differ", "batch", [Edit(
        MANY, "        if seen[token] or call[4]", "        if call[4]")]),
    Defect("readers that join what is not ours", "unit",
           "readers_leave_what_is_not_ours_alone", [Edit(
               SHARE, "        if last.err or last[1] and "
               "string.byte(last[1], 17) ~= 126 then\n",
               "        if last.err then\n")], tests="lua_shared"),
    Defect("readers that are refused lengthen the lock", "unit",
           "if_one_is_refused_none_is_granted", [Edit(
               SHARE, "                leave(ARGV[k])\n",
               "                redis.pcall('ZREM', ARGV[k], shared)\n")],
           tests="lua_shared_several"),
    Defect("each reader that leaves is announced", "differ", "batch", [Edit(
        "server/node/scripts/release.lua",
        " not has_others and is_listened() then\n", " is_listened() then\n")]),
    Defect("downgrade that no waiting reader hears of", "differ", "batch", [
        Edit("server/node/scripts/extend.lua",
             "                announce(lock, shared)\n", "")]),
    Defect("repeat that replaces readers of other keys", "differ", "batch", [
        Edit(SHARED, "            string.sub(shared, 59, 80)\n",
             "            'all'\n"),
        Edit("server/node/scripts/acquire.lua",
             "            string.find(value, key_hash, 58, true) ~= 58 or\n",
             "")]),
    Defect("repeat that replaces later readers", "differ", "batch", [Edit(
        SHARE, "            if old <= seen or is_own then\n",
        "            if old <= number then\n")]),
    Defect("reader's late repeat comes back", "differ", "batch", [Edit(
        SHARE, "            else\n                other = old\n",
        "            elseif old < number then\n"
        "                other = old\n")]),
    Defect("repeat beside another that is under way", "differ", "batch", [Edit(
        SHARE, "            else\n                other = old\n",
        "            elseif old > number then\n"
        "                other = old\n")]),
    Defect("own try that is undone in the place of a reader", "sim", "kept", [
        Edit("tests/lib/node/simshared.c",
             "        earlier->token_len = 0;\n"
             "        answer->reply.was_free = false;\n",
             "        bool is_ours = is_own(earlier, ask);\n"
             "        earlier->token_len = 0;\n"
             "        answer->reply.was_free &= is_ours;\n")], seed=702048),
    Defect("own try that is told as replacing nothing", "differ", "batch", [
        Edit(SHARE, "                is_repeated = true\n",
             "                is_repeated = is_repeated or old <= seen\n")]),
    Defect("two readers with one key", "sim", "same", [Edit(
        "tests/lib/node/simshared.c",
        "    return call->call.kind == CALL_REPEAT &&\n",
        "    return call->call.kind == CALL_KINDS &&\n")]),
    Defect("waiting reader that leaves an earlier one there", "unit",
           "a_repeat_that_waits_replaces_what_may_be_earlier_after_a_while", [
               Edit("server/engine/waiting/waits.c",
                    "                   ? round_reader_number(round)\n",
                    "                   ? 0 * round_reader_number(round)\n")],
           tests="shared"),
    Defect("reader that replaces at once what may be later", "unit",
           "a_repeat_that_waits_replaces_what_may_be_earlier_after_a_while", [
               Edit("server/engine/waiting/waits.c",
                    "        waits_find(it, number, now_us);\n"
                    "        schedule_claim(it, now_us);\n"
                    "    } else",
                    "        claim_know(&it->claim, number, now_us);\n"
                    "        schedule_claim(it, now_us);\n"
                    "    } else")], tests="shared"),
    Defect("reader with a number below the one that it replaces", "unit",
           "a_repeat_replaces_what_is_ahead_of_its_clocks", [Edit(
               "server/engine/rounds/operation.c",
               "    it->seen_number = it->replaces;\n",
               "    it->seen_number = 0;\n")], tests="shared"),
    Defect("readers that pass a waiting writer", "differ", "batch", [Edit(
        SHARE, "local is_wanted = intent and intent + 0 >= now_ms\n",
        "local is_wanted = intent and intent + 0 < 0\n")]),
    # as many as may
    Defect("readers without a limit", "sim", "readers", [Edit(
        "tests/lib/node/simshared.c",
        "           (count >= call->call.readers_max ||\n",
        "           (count < 0 ||\n")]),
    Defect("reader beyond the limit", "differ", "batch", [Edit(
        SHARE, "'+inf') >= most) and\n", "'+inf') > most) and\n")]),
    Defect("many readers beyond the limit", "differ", "batch", [Edit(
        MANY, "holders >= ARGV[calls[i][3] + 2] + 0 then\n",
        "holders < 0 then\n")]),
    Defect("fill that the limit refuses", "unit",
           "a_fill_has_no_limit", [Edit(
               "server/engine/rounds/spreads.c",
               "    call->readers_max = INT32_MAX; "
               "/* a majority has let it in */\n", "")], tests="shared"),
    Defect("repeat of a reader behind a writer", "unit",
           "a_reader_repeats_before_a_writer_that_waits", [
               Edit("server/engine/engine.c",
                    "(is_behind && acquire->key_hash.len == 0)\n",
                    "is_behind\n"),
               Edit("server/engine/waiting/waits.c",
                    "    if (it->is_shared && "
                    "it->ticket.key_hash.len > 0)\n"
                    "        it->claim.try_us",
                    "    if (it->claim.number != 0)\n"
                    "        it->claim.try_us")], tests="shared"),
    Defect("reader with a key that passes a writer", "unit",
           "a_reader_repeats_before_a_writer_that_waits", [Edit(
               "server/engine/rounds/operation.c",
               "        request->only_repeats ? 0 : ",
               "        ")], tests="shared"),
    # whom its key finds
    Defect("reader with a key that nobody finds", "differ", "batch", [Edit(
        SHARE, "            remember(ARGV[i], ends[i])\n",
        "            local _ = 0\n")]),
    Defect("reader's key that outlives its release", "differ", "batch", [Edit(
        SHARED, "            forget(lock)\n", "            local _ = 0\n")]),
    Defect("reader that leaves its own earlier try there", "differ", "batch", [
        Edit(SHARE, "            if old <= seen or is_own then\n",
             "            if old <= seen then\n")]),
    Defect("waiting reader that forgets its tries", "unit",
           "the_tries_of_a_reader_begin_alike", [Edit(
               "server/engine/waiting/waits.c",
               "        it->has_nonce = operation->has_nonce;\n", "")],
           tests="shared"),
    Defect("tries of one reader that do not begin alike", "unit",
           "the_tries_of_a_reader_begin_alike", [Edit(
               "server/engine/rounds/operation.c",
               "        memcpy(random, it->nonce, sizeof it->nonce);\n",
               "        (void)random;\n")], tests="shared"),
    Defect("reader with a key whom a part hides", "unit",
           "a_reader_that_has_lost_a_part_is_found_by_the_rest", [Edit(
               SHARED, "redis.pcall('HDEL', at, lock)",
               "redis.pcall('DEL', at)")], tests="lua_crowd"),
    Defect("reader's key that ends before it", "unit",
           "a_reader_with_a_key_is_known_by_it", [Edit(
               SHARED, "left < ends_ms - now_ms then\n",
               "left < 0 then\n")], tests="lua_crowd"),
    Defect("earlier reader that hides the latest", "differ", "batch", [Edit(
        SHARED, "        if latest and string.sub(latest, 1, 16) > "
        "string.sub(shared, 1, 16) then\n",
        "        if latest == false and shared == '' then\n")]),
    Defect("many readers with keys that nobody finds", "differ", "batch", [
        Edit(MANY, "            string.byte(ARGV[call[3]], 58) == 43 or\n",
             "")]),
    Defect("row that lets in readers with keys", "unit",
           "a_reader_in_a_row_is_known_by_its_key", [Edit(
               ROW, "byte(token, 58) ~= 43 and -- \"+\"\n",
               "\n")], tests="lua_crowd"),
    Defect("row that releases readers with keys", "unit",
           "a_reader_in_a_row_is_known_by_its_key", [Edit(
               ROW, "string.byte(token, 58) ~= 43 and two[2]",
               "two[2]")], tests="lua_crowd"),
    Defect("writer that takes the lock from readers", "differ", "batch", [Edit(
        "server/node/scripts/prelude.lua",
        "    if holders == 0 then\n        return",
        "    if holders and holders < 2 then\n        return")]),
    Defect("downgrade in two commands", "model", "two_holders",
           model="readers", rule="TWO_STEPS"),
    Defect("writer until its downgrade is answered", "model", "two_holders",
           model="readers", rule="WRITES_ON"),
    Defect("writer again after a failed downgrade", "model", "two_holders",
           model="readers", rule="GOES_BACK"),
]
