/*
 * Shared locks on a real redis-server, through a real link: who keeps whom out,
 * when each reader's time ends, releases. Numbers are in
 * check_lua_shared_numbers.c, extensions and downgrades in
 * check_lua_downgrade.c, several locks and repeats in
 * check_lua_shared_several.c.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "holders.h"

#define CHANNEL "p:" SCRIPT_RELEASED

enum { SHORT_MS = 400 };

SUITE(lua_shared, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* ---- who keeps whom out ------------------------------------------------- */

TEST(readers_hold_a_lock_together)
{
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "A");
    ck_assert_int_eq(holders_acquire(0, "~B", 0), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "AB");
    ck_assert(holders_are_told(0, 2, LIVE_TTL_MS - 10000, LIVE_TTL_MS));
    for (const char *name = "A"; *name != '\0';
         name = *name == 'A' ? "B" : "") {
        char token[] = {'~', *name, '\0'};
        int64_t left_ms = holders_left_ms(0, token);
        ck_assert(left_ms > LIVE_TTL_MS - 10000 && left_ms <= LIVE_TTL_MS);
    }
    ck_assert_int_eq(live.downs, 0);
}

/* Of a lock alone, of several, and of a repeat. */
TEST(a_reader_keeps_writers_out)
{
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_REPEAT,
                                           CALL_EXTEND, CALL_RELEASE};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(several_run(kinds[i], "a", "B"), VOTE_HELD);
        ck_assert_int_eq(live.reply.holders, 1);
        ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS - 10000);
        ck_assert_str_eq(live.value, "");
        ck_assert_int_eq(several_run(kinds[i], "a\nb", "B"), VOTE_HELD);
        ck_assert_int_eq(live.reply.holders, 1);
    }
    struct call repair = several_call(CALL_REPAIR, "a", "B");
    repair.seen = several_slot(0);
    ck_assert_int_eq(live_ask(&repair), VOTE_HELD);
    ck_assert(!holders_let_in(0));
    ck_assert_str_eq(holders_of(0), "A");
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:b"), 0);
}

/* In a row of acquires, too. */
TEST(a_reader_keeps_each_writer_of_a_row_out)
{
    struct call calls[SEVERAL + 1];
    static const char *const locks[] = {"b", "a", "c", "a"};
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    for (int i = 0; i <= SEVERAL; i++) {
        calls[i] = live_call(CALL_ACQUIRE, locks[i], "B");
        calls[i].slots[0] = (uint16_t)(locks[i][0] - 'a' + 20);
    }
    live_ask_all(calls, SEVERAL + 1);
    for (int i = 0; i <= SEVERAL; i++)
        ck_assert_int_eq(live.votes[i],
                         locks[i][0] == 'a' ? VOTE_HELD : VOTE_GRANTED);
    ck_assert_int_eq(live.reply.holders, 1);
}

TEST(a_writer_keeps_readers_out)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "A"), VOTE_GRANTED);
    static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_REPEAT,
                                           CALL_EXTEND, CALL_RELEASE};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(several_run(kinds[i], "a", "~B"), VOTE_HELD);
        ck_assert_int_eq(live.reply.holders, 0);
        ck_assert_str_eq(live.value, "A");
        ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS - 10000);
    }
    struct call repair = several_call(CALL_REPAIR, "a", "~B");
    repair.seen = several_slot(0);
    ck_assert_int_eq(live_ask(&repair), VOTE_HELD);
    ck_assert_str_eq(live.value, "A");
    ck_assert_str_eq(several_value(0), "A");
}

/* Something else that has the name of a lock: no reader may join or spoil it.
 */
static const struct {
    const char *command;
    int vote; /* of an extend and of a release */
    const char *value;
} others[] = {
    {"SET p:a foreign", VOTE_HELD, "foreign"},
    {"SET p:a %s", VOTE_HELD, "~A"}, /* as no call of ours sets it */
    {"HSET p:a field 1", VOTE_HELD, ""},
    {"RPUSH p:a x", VOTE_HELD, ""},
    {"SADD p:a x", VOTE_HELD, ""},
    {"ZADD p:a 1 x 2 y", VOTE_FREE, ""},
    {"ZADD p:a 1 x inf y", VOTE_FREE, ""},
    {"ZADD p:a 1.5 x 99999999999999 y", VOTE_FREE, ""},
};

TEST_EACH(readers_leave_what_is_not_ours_alone, others)
{
    master_text(&live.master, others[_i].command, live_token("~A"));
    struct call repair = several_call(CALL_REPAIR, "a", "~A");
    for (int has_end = 0; has_end <= 1; has_end++) {
        static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_INSPECT};
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(several_run(kinds[i], "a", "~B"), VOTE_HELD);
            ck_assert_int_eq(live.reply.holders, 0);
            ck_assert_str_eq(live.value, others[_i].value);
            ck_assert(has_end ? live.reply.pttl_ms > 0
                              : live.reply.pttl_ms == -1);
        }
        ck_assert_int_eq(live_ask(&repair), VOTE_HELD);
        ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), others[_i].vote);
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), others[_i].vote);
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", "B"), VOTE_HELD);
        ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "B"), VOTE_HELD);
        if (others[_i].vote == VOTE_FREE)
            ck_assert_int_eq(master_integer(&live.master, "ZCARD p:a"), 2);
        master_integer(&live.master, "PEXPIRE p:a %d", LIVE_TTL_MS);
    }
    ck_assert_int_eq(several_slot(0), 0);
    ck_assert_int_eq(live.downs, 0);
}

/* ---- ends --------------------------------------------------------------- */

TEST(each_reader_ends_for_itself)
{
    ck_assert_int_eq(holders_ask(CALL_ACQUIRE, 0, "~A", LIVE_TTL_MS),
                     VOTE_GRANTED);
    ck_assert_int_eq(holders_ask(CALL_ACQUIRE, 0, "~B", SHORT_MS),
                     VOTE_GRANTED);
    while (!holders_are_told(0, 1, LIVE_TTL_MS - 20000, LIVE_TTL_MS))
        ck_assert(holders_are_told(0, 2, LIVE_TTL_MS - 20000, LIVE_TTL_MS) ||
                  holders_left_ms(0, "~B") <= 0);
    ck_assert_int_lt(holders_left_ms(0, "~B"), 0);
    /* which the next one drops */
    ck_assert_int_eq(holders_acquire(0, "~C", 0), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "AC");
}

/* A plain SET NX gets in then, and not later. */
TEST(the_lock_ends_with_the_last_that_is_left)
{
    ck_assert_int_eq(holders_ask(CALL_ACQUIRE, 0, "~A", LIVE_TTL_MS),
                     VOTE_GRANTED);
    ck_assert_int_eq(holders_ask(CALL_ACQUIRE, 0, "~B", SHORT_MS),
                     VOTE_GRANTED);
    ck_assert_int_gt(several_pttl(0), SHORT_MS);
    long long ends_ms =
        atoll(master_text(&live.master, "ZSCORE p:a %s", live_token("~B")));
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
    ck_assert_int_le(several_pttl(0), SHORT_MS);
    int64_t began_us, ended_us;
    bool is_in;
    do {
        began_us = master_integer(&live.master, "EVAL %s 0",
                                  "local t = redis.call('TIME') "
                                  "return t[1] * 1000000 + t[2]");
        is_in = holders_let_in(0);
        ended_us = master_integer(&live.master, "EVAL %s 0",
                                  "local t = redis.call('TIME') "
                                  "return t[1] * 1000000 + t[2]");
        ck_assert(is_in ? ended_us / 1000 > ends_ms
                        : began_us / 1000 <= ends_ms);
    } while (!is_in);
}

TEST(a_shorter_reader_shortens_nothing)
{
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    ck_assert_int_eq(holders_ask(CALL_ACQUIRE, 0, "~B", SHORT_MS),
                     VOTE_GRANTED);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS - 10000);
    ck_assert_int_eq(holders_ask(CALL_ACQUIRE, 0, "~C", 2 * LIVE_TTL_MS),
                     VOTE_GRANTED);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~B"), VOTE_DELETED);
    ck_assert_int_gt(several_pttl(0), LIVE_TTL_MS);
}

/* ---- releases ----------------------------------------------------------- */

TEST(each_reader_is_released_for_itself)
{
    static const char *const tokens[] = {"~B", "~A", "~C"};
    static const char *const left[] = {"AC", "C", ""};
    for (const char *name = "ABC"; *name != '\0'; name++) {
        char token[] = {'~', *name, '\0'};
        ck_assert_int_eq(holders_acquire(0, token, 0), VOTE_GRANTED);
    }
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~D"), VOTE_FREE);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", tokens[i]),
                         VOTE_DELETED);
        ck_assert_str_eq(holders_of(0), left[i]);
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", tokens[i]), VOTE_FREE);
    }
    ck_assert_int_eq(several_pttl(0), -2);
    ck_assert(holders_let_in(0));
}

/* Who has been away for too long has no lock any more, though nobody has
 * dropped it yet. */
TEST(one_that_has_ended_is_free)
{
    holders_add(0, "~B", LIVE_TTL_MS);
    for (int i = 0; i < 2; i++) {
        holders_add(0, "~A", -1000);
        ck_assert(holders_are_told(0, 1, 0, LIVE_TTL_MS));
        ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_FREE);
        int vote = several_run(CALL_RELEASE, "a", i == 0 ? "~A" : "A");
        ck_assert_int_eq(vote, i == 0 ? VOTE_FREE : VOTE_HELD);
        ck_assert_str_eq(holders_of(0), "B");
    }
}

TEST(a_missing_one_means_nothing_without_our_admission)
{
    ck_assert_int_eq(holders_acquire(0, "~A", 0), VOTE_GRANTED);
    struct call call = several_call(CALL_RELEASE, "a", "~B");
    call.admit = span_of(LIVE_ADMIT);
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    call.token = span_of("~A");
    ck_assert_int_eq(live_ask(&call), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
}

/* A row reads all of them at once, where it may. */
TEST_RANGE(a_row_releases_readers, 0, 2)
{
    static const struct {
        enum call_kind kind;
        const char *lock, *token;
        int vote;
    } row[] = {
        {CALL_ACQUIRE, "d", "D", VOTE_GRANTED},
        {CALL_RELEASE, "a", "~A", VOTE_DELETED},
        {CALL_RELEASE, "b", "B", VOTE_DELETED},  /* of the shared form */
        {CALL_RELEASE, "c", "~A", VOTE_FREE},    /* somebody else's */
        {CALL_RELEASE, "e", "~C", VOTE_DELETED}, /* of the exclusive one */
        {CALL_RELEASE, "f", "~A", VOTE_FREE},    /* nobody's */
        {CALL_RELEASE, "g", "~A", VOTE_HELD},    /* a writer's */
        {CALL_RELEASE, "h", "A", VOTE_HELD},     /* of readers */
        {CALL_ACQUIRE, "i", "D", VOTE_GRANTED},
        {CALL_RELEASE, "j", "E", VOTE_DELETED},
    };
    enum { ROW = sizeof row / sizeof *row };
    struct call calls[ROW];
    const char *const setting[] = {"~A", "~B", "~C"};
    for (int i = 0; i < SEVERAL; i++) {
        holders_add(i, setting[i], LIVE_TTL_MS);
        holders_add(i, "~F", LIVE_TTL_MS / 2);
    }
    master_text(&live.master, "SET p:e %s PX 60000", live_token("C"));
    master_text(&live.master, "SET p:g %s PX 60000", live_token("B"));
    master_text(&live.master, "SET p:j %s PX 60000", live_token("E"));
    master_integer(&live.master, "COPY p:c p:h");
    if (_i == 1)
        master_text(&live.master, "ACL SETUSER default -mget");
    for (int i = 0; i < ROW; i++) {
        calls[i] = live_call(row[i].kind, row[i].lock, row[i].token);
        calls[i].slots[0] = (uint16_t)(20 + i);
    }
    live_ask_all(calls, ROW);
    for (int i = 0; i < ROW; i++)
        ck_assert_msg(live.votes[i] == row[i].vote, "call %d: %s", i,
                      ballot_name(ballot_of_number(live.votes[i])));
    ck_assert_str_eq(holders_of(0), "F");
    ck_assert_str_eq(holders_of(1), "F");
    ck_assert_str_eq(holders_of(2), "FC");
    ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:e p:f p:j"), 0);
    ck_assert_int_eq(live.downs, 0);
}

/* Nobody who waits could get in before. Alone, and in a row. */
TEST_RANGE(only_the_last_release_is_announced, 0, 2)
{
    struct call calls[3];
    live_listen(CALL_LISTEN_US);
    master_subscribe(&live.master, CHANNEL "a");
    holders_add(0, "~A", LIVE_TTL_MS);
    holders_add(0, "~B", LIVE_TTL_MS);
    holders_add(0, "~C", -1000); /* has ended: waits for nobody */
    static const char *const tokens[] = {"~A", "~B"};
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++) {
            static const char *const locks[] = {"a", "b", "c"};
            calls[k] = live_call(CALL_RELEASE, locks[k], tokens[i]);
            calls[k].slots[0] = (uint16_t)(20 + k);
        }
        live_ask_all(calls, _i == 0 ? 1 : 3);
        ck_assert_int_eq(live.votes[0], VOTE_DELETED);
        ck_assert_int_eq(live.answers[0].listeners, i);
    }
    ck_assert_str_eq(live_hear(), CHANNEL "a=B");
}

/* ---- errors ------------------------------------------------------------- */

/* Nothing of a grant, if its user lacks one right. */
TEST_RANGE(without_a_right_no_reader_is_granted, 0, 4)
{
    static const char *const rights[] = {"zadd", "zrange", "pexpireat",
                                         "zremrangebyscore"};
    for (int has_other = 0; has_other <= 1; has_other++) {
        if (has_other)
            holders_add(0, "~B", LIVE_TTL_MS / 2);
        master_text(&live.master, "ACL SETUSER default -%s", rights[_i]);
        if (has_other || _i < 3) /* the first one need not drop others */
            ck_assert_int_eq(holders_acquire(0, "~A", 0), UNFIT(NO_PERMISSION));
        struct call repair = several_call(CALL_REPAIR, "a", "~A");
        ck_assert_int_eq(live_ask(&repair), UNFIT(NO_PERMISSION));
        master_text(&live.master, "ACL SETUSER default +%s", rights[_i]);
        ck_assert_str_eq(holders_of(0), has_other ? "B" : "");
        ck_assert_int_le(several_pttl(0), LIVE_TTL_MS / 2);
        ck_assert_int_eq(several_slot(0), 0);
        ck_assert_str_eq(holders_numbers(0), "");
    }
}

/* Its error asks for another release. */
TEST_RANGE(a_release_without_a_right_is_an_error, 0, 2)
{
    static const char *const rights[] = {"zscore", "zrem"};
    holders_add(0, "~A", LIVE_TTL_MS);
    holders_add(0, "~B", LIVE_TTL_MS);
    master_text(&live.master, "ACL SETUSER default -%s", rights[_i]);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"),
                     UNFIT(NO_PERMISSION));
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "A"), UNFIT(NO_PERMISSION));
    ck_assert_str_eq(holders_of(0), "AB");
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"),
                     _i == 0 ? (int)UNFIT(NO_PERMISSION) : (int)VOTE_EXTENDED);
    master_text(&live.master, "ACL SETUSER default +%s", rights[_i]);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
}
