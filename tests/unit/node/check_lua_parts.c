/*
 * Releases and repairs of several locks of which only some are there, on a real
 * redis-server.
 */

#include "../../lib/suite/suite.h"
#include "several.h"

#define CHANNEL "p:" SCRIPT_RELEASED

/* ---- release ------------------------------------------------------------ */

/* The values of a, b, c, and what is left of them. */
static const struct {
    const char *before;
    const char *after;
    int vote;
} releases[] = {
    {"AAA", "---", VOTE_DELETED}, {"-AA", "---", VOTE_FREE},
    {"AA-", "---", VOTE_FREE},    {"---", "---", VOTE_FREE},
    {"BAA", "B--", VOTE_HELD},    {"ABA", "-B-", VOTE_HELD},
    {"AAB", "--B", VOTE_HELD},    {"-BA", "-B-", VOTE_HELD},
    {"BC-", "BC-", VOTE_HELD},    {"A-B", "--B", VOTE_HELD},
};

static void set_all(const char *values)
{
    for (int i = 0; i < SEVERAL; i++) {
        const char value[] = {values[i], '\0'};
        if (values[i] != '-')
            several_set(i, value, (i + 1) * LIVE_TTL_MS);
    }
}

SUITE(lua_parts, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

TEST_EACH(all_that_have_the_token_are_deleted, releases)
{
    set_all(releases[_i].before);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"),
                     releases[_i].vote);
    ck_assert_str_eq(several_values(), releases[_i].after);
    if (releases[_i].vote == VOTE_HELD) {
        int first = (int)strspn(releases[_i].after, "-");
        ck_assert_int_eq(live.value[0], releases[_i].after[first]);
        ck_assert_int_gt(live.reply.pttl_ms, first * LIVE_TTL_MS);
        ck_assert_int_le(live.reply.pttl_ms, (first + 1) * LIVE_TTL_MS);
    }
}

TEST(a_missing_one_means_nothing_without_our_admission)
{
    struct call call = several_call(CALL_RELEASE, "a\nb\nc", "A");
    call.admit = span_of(LIVE_ADMIT);
    set_all("AAA");
    ck_assert_int_eq(live_ask(&call), VOTE_DELETED);
    set_all("A-A");
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    ck_assert_str_eq(several_values(), "---");
    set_all("A-B");
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
}

/* The node may not be asked again. */
TEST_RANGE(what_is_not_refused_is_deleted, 0, SEVERAL)
{
    static const char *const rights[] = {"~p:[bc]", "~p:[ac]", "~p:[ab]"};
    static const char *const values[] = {"A--", "-A-", "--A"};
    set_all("AAA");
    several_restrict(rights[_i]);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"),
                     VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert_str_eq(several_values(), values[_i]);
    set_all("AAA");
    several_restrict(textf("%s %%%%R~p:%c", rights[_i], 'a' + _i));
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"),
                     VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert_str_eq(several_values(), values[_i]);
}

/* Its error asks for another release, which HELD would not. */
TEST(an_error_is_told_before_another_holder)
{
    set_all("BAA");
    master_text(&live.master, "ACL SETUSER default -del");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"),
                     UNFIT(NO_PERMISSION));
    master_text(&live.master, "ACL SETUSER default +del");
    ck_assert_str_eq(several_values(), "BAA");
}

/* Of each lock, on its own channel. */
TEST(each_deletion_is_announced)
{
    master_subscribe(&live.master, CHANNEL "a");
    master_subscribe(&live.master, CHANNEL "c");
    set_all("AAA");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_DELETED);
    ck_assert_int_eq(live.reply.listeners, 0);
    live_listen(CALL_LISTEN_US);
    set_all("AAA");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_DELETED);
    ck_assert_int_eq(live.reply.listeners, 1); /* the most */
    ck_assert_str_eq(live_hear(), CHANNEL "a=A");
    ck_assert_str_eq(live_hear(), CHANNEL "c=A");
    set_all("BAA");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_HELD);
    ck_assert_str_eq(live_hear(), CHANNEL "c=A");
    set_all("-AA");
    master_integer(&live.master, "DEL p:a");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb\nc", "A"), VOTE_FREE);
    ck_assert_str_eq(live_hear(), CHANNEL "c=A");
    set_all("AA-");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb", "A"), VOTE_DELETED);
    ck_assert_int_eq(live.reply.listeners, 1);
    ck_assert_str_eq(live_hear(), CHANNEL "a=A");
    set_all("A--");
    ck_assert_int_eq(several_run(CALL_RELEASE, "a\nb", "A"), VOTE_FREE);
    ck_assert_str_eq(live_hear(), CHANNEL "a=A");
}

/* ---- repair ------------------------------------------------------------- */

/* A repair of what an extend has just found missing. */
static struct call make_repair(const char *names)
{
    struct call call = several_call(CALL_REPAIR, names, "A");
    ck_assert_int_eq(several_run(CALL_EXTEND, names, "A"), VOTE_FREE);
    call.seen = live.reply.highest;
    return call;
}

TEST_RANGE(only_those_that_are_missing_are_set, 0, 5)
{
    static const char *const values[] = {"-AA", "A-A", "AA-", "--A", "---"};
    int64_t before = live_node_now_us() - 5000000;
    set_all(values[_i]);
    for (int i = 0; i < SEVERAL; i++)
        several_raise(i, before + i);
    struct call call = make_repair("a\nb\nc");
    call.ttl_ms = LIVE_TTL_MS / 2;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(several_values(), "AAA");
    for (int i = 0; i < SEVERAL; i++) {
        bool is_new = values[_i][i] == '-';
        ck_assert_int_eq(several_slot(i), is_new ? call.number : before + i);
        ck_assert_int_eq(several_pttl(i) <= LIVE_TTL_MS / 2, is_new);
    }
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED); /* all are there */
    ck_assert_int_eq(several_run(CALL_EXTEND, "a\nb\nc", "A"), VOTE_EXTENDED);
}

/* An extend may find that all have come back. */
TEST(if_none_is_missing_nothing_changes)
{
    struct call call = make_repair("a\nb\nc");
    set_all("AAA");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    for (int i = 0; i < SEVERAL; i++) {
        ck_assert_int_eq(several_slot(i), 0);
        ck_assert_int_gt(several_pttl(i), i * LIVE_TTL_MS);
    }
}

/*
 * A part may have been there when the others were missing, and be released
 * since then.
 */
TEST_RANGE(what_was_not_missing_stays_away, 0, SEVERAL)
{
    const char *const locks[] = {"a", "b", "c"};
    several_set(_i, "A", LIVE_TTL_MS);
    struct call call = make_repair("a\nb\nc");
    ck_assert_int_eq(call.seen, 7 - (1 << _i));
    ck_assert_int_eq(live_run(CALL_RELEASE, locks[_i], "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert_str_eq(several_values(), "---");
}

/* Of any part. */
TEST_RANGE(a_repair_does_not_follow_another_one, 0, SEVERAL)
{
    const char *const locks[] = {"a", "b", "c"};
    struct call call = make_repair("a\nb\nc");
    struct call part = several_call(CALL_REPAIR, locks[_i], "A");
    ck_assert_int_eq(live_ask(&part), VOTE_GRANTED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert_int_eq(live_run(CALL_RELEASE, locks[_i], "A"), VOTE_DELETED);
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert_str_eq(several_values(), "---");
}

TEST_RANGE(if_another_has_one_none_is_set, 0, SEVERAL)
{
    struct call call = make_repair("a\nb\nc");
    several_set(_i, "B", LIVE_TTL_MS);
    ck_assert_int_eq(live_ask(&call), VOTE_HELD);
    ck_assert_str_eq(live.value, "B");
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:a p:b p:c"), 1);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_eq(several_slot(i), 0);
}

TEST(higher_numbers_of_slots_stay)
{
    int64_t now_us = live_node_now_us();
    several_raise(0, now_us + 9000000);
    several_raise(1, now_us - 9000000);
    struct call call = make_repair("a\nb\nc");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(several_slot(0), now_us + 9000000);
    ck_assert_int_eq(several_slot(1), call.number);
    ck_assert_int_eq(several_slot(2), call.number);
}

TEST_RANGE(a_spoilt_slot_is_left_alone, 0, 4)
{
    static const char *const numbers[] = {"spoilt", "1e300", "9007199254740992",
                                          "nan"};
    live_write_slot(8, numbers[_i]);
    struct call call = make_repair("a\nb\nc");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(several_values(), "AAA");
    ck_assert_str_eq(master_text(&live.master, "HGET p:redlockd:state 8"),
                     numbers[_i]);
    ck_assert_int_eq(live.downs, 0);
}

/* Those that were there before stay. */
TEST(if_one_is_refused_those_that_were_set_are_deleted)
{
    set_all("-A-");
    struct call call = make_repair("a\nb\nc");
    several_restrict("%%R~p:c ~p:[ab]");
    ck_assert_int_eq(live_ask(&call), VOTE_KEY_REFUSED);
    several_restrict("allkeys");
    ck_assert_str_eq(several_values(), "-A-");
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_eq(several_slot(i), 0);
}
