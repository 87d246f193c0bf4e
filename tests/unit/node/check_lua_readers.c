/*
 * Many readers of one lock in a batch, for whom the script does each thing
 * once, on a real redis-server: each has the answer that it would have alone.
 */
#include "../../lib/suite/suite.h"
#include "holders.h"

#define CHANNEL "p:redlockd:released:"

enum { HALF_MS = LIVE_TTL_MS / 2 };

/* Of readers of the lock a: "+A" comes, "-A" leaves; in their order. */
static void ask_all(const char *const *readers, int count)
{
    struct call calls[LIVE_VOTES_MAX];
    static char tokens[LIVE_VOTES_MAX][3];
    for (int i = 0; i < count; i++) {
        tokens[i][0] = '~';
        tokens[i][1] = readers[i][1];
        calls[i] = several_call(
            readers[i][0] == '+' ? CALL_ACQUIRE : CALL_RELEASE, "a", tokens[i]);
    }
    live_ask_all(calls, count);
}

static void expect_votes(const int *votes, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(live.votes[i] == votes[i], "call %d: %s", i,
                      ballot_name(ballot_of_number(live.votes[i])));
}

SUITE(lua_readers, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

static const char *const many[] = {"+A", "-E", "+B", "-F", "+C", "-D"};
static const int granted[] = {VOTE_GRANTED, VOTE_DELETED, VOTE_GRANTED,
                              VOTE_FREE,    VOTE_GRANTED, VOTE_FREE};
enum { MANY = sizeof many / sizeof *many };

static void add_leavers(void)
{
    holders_add(0, "~E", HALF_MS);
    holders_add(0, "~F", -1000); /* has ended */
}

TEST(what_many_write_is_written_once)
{
    static const char *const once[] = {"zadd", "zrem", "pexpireat"};
    long long before[3], beat = several_beat();
    add_leavers();
    for (int i = 0; i < 3; i++)
        before[i] = live_count_of(once[i]);
    ask_all(many, MANY);
    expect_votes(granted, MANY);
    before[0]++; /* one asks whether there is memory */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(live_count_of(once[i]), before[i] + 1);
    ck_assert_str_eq(holders_of(0), "ABC");
    ck_assert(holders_are_told(0, 3, LIVE_TTL_MS - 10000, LIVE_TTL_MS));
    ck_assert_int_eq(several_beat(), beat + 1);
    /* a writer's number stays known: an earlier reader still gets in */
    ck_assert_str_ne(holders_numbers(0), "");
    ck_assert_int_eq(holders_acquire(0, "~G", live_node_now_us() - 1000000),
                     VOTE_GRANTED);
}

/* The other forms of what a node denies are in lua_shared. */
TEST(without_a_right_each_is_asked_alone)
{
    add_leavers();
    master_text(&live.master, "ACL SETUSER default -zmscore");
    ask_all(many, MANY);
    expect_votes(granted, MANY);
    ck_assert_str_eq(holders_of(0), "ABC");
    ck_assert_int_eq(live.downs, 0);
}

/* Who leaves is released all the same. */
TEST_RANGE(without_a_right_nobody_comes, 0, 2)
{
    static const char *const rights[] = {"zadd", "zcount"};
    static const int votes[] = {UNFIT(NO_PERMISSION), VOTE_DELETED,
                                UNFIT(NO_PERMISSION), VOTE_FREE,
                                UNFIT(NO_PERMISSION), VOTE_FREE};
    add_leavers();
    holders_add(0, "~G", HALF_MS);
    master_text(&live.master, "ACL SETUSER default -%s", rights[_i]);
    ask_all(many, MANY);
    master_text(&live.master, "ACL SETUSER default +%s", rights[_i]);
    expect_votes(votes, MANY);
    ck_assert_str_eq(holders_of(0), "G");
    ck_assert_int_eq(several_slot(0), 0);
}

TEST(a_writer_is_told_to_each)
{
    static const int votes[] = {VOTE_HELD, VOTE_HELD, VOTE_HELD,
                                VOTE_HELD, VOTE_HELD, VOTE_HELD};
    several_set(0, "G", LIVE_TTL_MS);
    ask_all(many, MANY);
    expect_votes(votes, MANY);
    for (int i = 0; i < MANY; i++)
        ck_assert_str_eq(live.answers[i].value, "G");
}

/* And who leaves still leaves. */
TEST(a_wish_keeps_each_out)
{
    static const int votes[] = {VOTE_HELD, VOTE_DELETED, VOTE_FREE};
    static const char *const readers[] = {"+A", "-E", "-F"};
    add_leavers();
    holders_add(0, "~G", LIVE_TTL_MS);
    holders_add(0, HOLDERS_WISH, HALF_MS);
    ask_all(readers, 3);
    expect_votes(votes, 3);
    ck_assert_str_eq(holders_of(0), "G");
    ck_assert_int_gt(holders_wish_ms(0), 0);
}

/* Also if others come behind it in the same batch. */
TEST(each_last_one_is_announced)
{
    static const char *const readers[] = {"-E", "-G", "+A", "+B"};
    static const int votes[] = {VOTE_DELETED, VOTE_DELETED, VOTE_GRANTED,
                                VOTE_GRANTED};
    live_listen(CALL_LISTEN_US);
    master_subscribe(&live.master, CHANNEL "a");
    holders_add(0, "~E", LIVE_TTL_MS);
    holders_add(0, "~G", LIVE_TTL_MS);
    ask_all(readers, 4);
    expect_votes(votes, 4);
    ck_assert_int_eq(live.answers[0].listeners, 0);
    ck_assert_int_eq(live.answers[1].listeners, 1);
    ck_assert_str_eq(live_hear(), CHANNEL "a=G");
    ck_assert_str_eq(holders_of(0), "AB");
}
