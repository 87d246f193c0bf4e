/*
 * Acquires and releases in one batch, most of them in rows that the script runs
 * at once, on a real redis-server: what they promise, what they do to each
 * other, and what fails only one of them.
 */

#include "../../lib/suite/suite.h"
#include "permit.h"

static int64_t base_us; /* the number of A */

static void setup(void)
{
    live_setup_admitted();
    base_us = live_node_now_us();
    tokens_renumber(span_of("A"), base_us);
}

/* ---- what a row promises ------------------------------------------------- */

static struct call call_of(enum call_kind kind, const char *name, int slot)
{
    struct call call = live_call(kind, name, "A");
    call.slots[0] = (uint16_t)slot;
    call.number = base_us;
    return call;
}

static struct call acquire(const char *name, int slot)
{
    return call_of(CALL_ACQUIRE, name, slot);
}

static struct call release(const char *name, int slot)
{
    return call_of(CALL_RELEASE, name, slot);
}

static void set(const char *name)
{
    ck_assert_str_eq(master_text(&live.master, "SET p:%s %s PX %d", name,
                                 live_token("A"), LIVE_TTL_MS),
                     "OK");
}

static bool has(const char *name)
{
    return master_integer(&live.master, "EXISTS p:%s", name) == 1;
}

#define EXPECT_VOTES(...)                                                      \
    do {                                                                       \
        static const int expected_votes[] = {__VA_ARGS__};                     \
        enum { COUNT = sizeof expected_votes / sizeof(int) };                  \
        for (int i = 0; i < COUNT; i++)                                        \
            ck_assert_int_eq(live.votes[i], expected_votes[i]);                \
    } while (0)

SUITE(lua_batch, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

/* Rows, single calls and calls of other kinds; or none that promises. */
TEST(a_batch_of_rows_counts_once)
{
    struct call calls[] = {
        acquire("a", 1), acquire("b", 2),
        acquire("c", 3), release("a", 1),
        acquire("d", 4), acquire("e", 5),
        acquire("f", 6), call_of(CALL_EXTEND, "b", 9),
        acquire("g", 7),
    };
    int64_t beat = permit_number("beat");
    live_ask_all(calls, 9);
    EXPECT_VOTES(VOTE_GRANTED, VOTE_GRANTED, VOTE_GRANTED, VOTE_DELETED,
                 VOTE_GRANTED, VOTE_GRANTED, VOTE_GRANTED, VOTE_EXTENDED,
                 VOTE_GRANTED);
    ck_assert_int_eq(live.reply.beat, beat + 1);
    ck_assert_int_eq(permit_number("beat"), beat + 1);
    for (char slot[] = "1"; slot[0] <= '7'; slot[0]++)
        ck_assert_int_eq(permit_number(slot), base_us);
    ck_assert_str_eq(permit_field("9"), ""); /* only acquires set them */
    live_ask_all(calls + 4, 3);
    EXPECT_VOTES(VOTE_HELD, VOTE_HELD, VOTE_HELD);
    ck_assert_int_eq(live.reply.beat, 0);
    ck_assert_int_eq(permit_number("beat"), beat + 1);
}

/* In a row, or alone. */
TEST_RANGE(a_beat_that_is_none_of_ours_begins_anew, 0, 10)
{
    static const char *const beats[] = {"spoilt", "-1", "nan", "1e300",
                                        "9007199254740992"};
    struct call calls[] = {acquire("a", 1), acquire("b", 2), acquire("c", 3)};
    permit_set("beat", beats[_i % 5]);
    live_ask_all(calls, _i < 5 ? 3 : 1);
    ck_assert_int_eq(live.votes[0], VOTE_GRANTED);
    ck_assert_int_eq(live.reply.beat, 1);
    ck_assert_int_eq(permit_number("beat"), 1);
}

/* ---- one lock twice ------------------------------------------------------ */

/* The two, and acquires around them, so that both are in rows, or not. */
static const char *const places[] = {"12", "--12--", "-1-2-", "--1--2--",
                                     "1---2"};

enum { PLACES = sizeof places / sizeof *places, CALLS_MAX = 8 };

static void expect_among(const struct call *first, int first_vote,
                         const struct call *second, int second_vote, int place)
{
    static const char *const others[] = {"s", "t", "u", "v",
                                         "w", "x", "y", "z"};
    struct call calls[CALLS_MAX] = {0};
    int votes[CALLS_MAX];
    int count = (int)strlen(places[place]);
    for (int i = 0; i < count; i++) {
        char which = places[place][i];
        calls[i] = which == '1'   ? *first
                   : which == '2' ? *second
                                  : acquire(others[i], 100 + i);
        votes[i] = which == '1'   ? first_vote
                   : which == '2' ? second_vote
                                  : (int)VOTE_GRANTED;
    }
    live_ask_all(calls, count);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(live.votes[i], votes[i]);
    ck_assert_int_eq(live.downs, 0);
}

TEST_RANGE(what_is_released_can_be_acquired_in_the_same_batch, 0, PLACES)
{
    struct call first = release("r", 1), second = acquire("r", 1);
    set("r");
    second.token = span_of("B");
    expect_among(&first, VOTE_DELETED, &second, VOTE_GRANTED, _i);
    ck_assert_str_eq(live_holder("r"), "B");
    ck_assert_int_eq(permit_number("1"), base_us);
}

TEST_RANGE(what_is_acquired_can_be_released_in_the_same_batch, 0, PLACES)
{
    struct call first = acquire("r", 1), second = release("r", 1);
    expect_among(&first, VOTE_GRANTED, &second, VOTE_DELETED, _i);
    ck_assert(!has("r"));
    ck_assert_int_eq(permit_number("1"), base_us);
}

TEST_RANGE(a_lock_is_deleted_once, 0, PLACES)
{
    struct call call = release("r", 1);
    set("r");
    expect_among(&call, VOTE_DELETED, &call, VOTE_FREE, _i);
    ck_assert(!has("r"));
}

TEST_RANGE(a_lock_is_granted_once, 0, PLACES)
{
    struct call first = acquire("r", 1), second = acquire("r", 1);
    second.token = span_of("B");
    second.number++;
    expect_among(&first, VOTE_GRANTED, &second, VOTE_HELD, _i);
    ck_assert_str_eq(live_holder("r"), "A");
    ck_assert_int_eq(permit_number("1"), base_us);
}

/* The second must be above the first. */
TEST_RANGE(locks_of_one_slot_get_rising_numbers, 0, PLACES)
{
    struct call first = acquire("r", 1), second = acquire("q", 1);
    expect_among(&first, VOTE_GRANTED, &second, VOTE_STALE, _i);
    ck_assert(!has("q"));
    ck_assert_int_eq(permit_number("1"), base_us);
    first.resource = span_of("m");
    first.number = base_us + 1;
    second.number = base_us + 2;
    struct call calls[] = {first, second, acquire("n", 3)};
    live_ask_all(calls, 3);
    EXPECT_VOTES(VOTE_GRANTED, VOTE_GRANTED, VOTE_GRANTED);
    ck_assert_int_eq(permit_number("1"), base_us + 2);
}

/* ---- what a node refuses ------------------------------------------------- */

static struct call mixed[6];

/*
 * Three locks that are there, three that are not; with one deadline, so that
 * all are in one batch, however slow the machine is.
 */
static void mix(void)
{
    static const char *const held[] = {"a", "b", "c"},
                             *free[] = {"d", "e", "f"};
    for (int i = 0; i < 3; i++) {
        set(held[i]);
        mixed[2 * i] = release(held[i], 1 + i);
        mixed[2 * i + 1] = acquire(free[i], 4 + i);
        mixed[2 * i + 1].node_deadline_us = mixed[1].node_deadline_us;
    }
}

static void user(const char *rights)
{
    const char *command = textf("ACL SETUSER default %s", rights);
    ck_assert_str_eq(master_text(&live.master, command), "OK");
}

/* To read it does not help. */
TEST_RANGE(a_key_that_is_refused_fails_only_its_call, 0, 4)
{
    static const char *const rights[] = {
        "resetkeys ~p:redlockd:state ~p:[acdef]",
        "resetkeys ~p:redlockd:state ~p:[acdef] %%R~p:b",
        "resetkeys ~p:redlockd:state ~p:[abcdf]",
        "resetkeys ~p:redlockd:state ~p:[abcdf] %%R~p:e",
    };
    int refused = _i < 2 ? 2 : 3;
    mix();
    user(rights[_i]);
    live_ask_all(mixed, 6);
    user("allkeys");
    for (int i = 0; i < 6; i++) {
        int vote = i % 2 == 0 ? VOTE_DELETED : VOTE_GRANTED;
        ck_assert_int_eq(live.votes[i], i == refused ? VOTE_KEY_REFUSED : vote);
    }
    ck_assert_int_eq(has("a") + has("c"), 0);
    ck_assert_int_eq(has("d") + has("f"), 2);
    ck_assert_int_eq(has("b"), refused == 2);
    ck_assert_int_eq(has("e"), refused != 3);
    ck_assert_int_eq(permit_number("4"), base_us);
    ck_assert_int_eq(permit_number("5"), refused == 3 ? 0 : base_us);
    ck_assert_int_eq(live.downs, 0);
}

/* Each release gets the one vote, each acquire the other. */
static const struct {
    const char *damage, *mend;
    int release, acquire;
    bool may_set; /* what it does not grant: it is released later */
} damages[] = {
    {"ACL SETUSER default -hset", "ACL SETUSER default +hset", VOTE_DELETED,
     UNFIT(NO_PERMISSION), true},
    {"ACL SETUSER default -hmget", "ACL SETUSER default +hmget", VOTE_DELETED,
     UNFIT(NO_PERMISSION), false},
    /* by which the script knows whether it has our admission */
    {"ACL SETUSER default -info", "ACL SETUSER default +info", VOTE_DELETED,
     UNFIT(NO_PERMISSION), false},
    {"ACL SETUSER default -del", "ACL SETUSER default +del",
     UNFIT(NO_PERMISSION), VOTE_GRANTED, false},
    /* who may not read at once does all the same */
    {"ACL SETUSER default -mget", "ACL SETUSER default +mget", VOTE_DELETED,
     VOTE_GRANTED, false},
    {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", VOTE_DELETED,
     UNFIT(OUT_OF_MEMORY), false},
};

TEST_EACH(what_a_node_cannot_do_changes_nothing, damages)
{
    bool is_deleted = damages[_i].release == VOTE_DELETED;
    bool is_granted = damages[_i].acquire == VOTE_GRANTED;
    mix();
    master_text(&live.master, damages[_i].damage);
    live_ask_all(mixed, 6);
    master_text(&live.master, damages[_i].mend);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(live.votes[i], i % 2 == 0 ? damages[_i].release
                                                   : damages[_i].acquire);
    ck_assert_int_eq(has("a") + has("b") + has("c"), is_deleted ? 0 : 3);
    if (!damages[_i].may_set)
        ck_assert_int_eq(has("d") + has("e") + has("f"), is_granted ? 3 : 0);
    ck_assert_int_eq(live.reply.beat != 0, is_granted);
    for (char slot[] = "4"; slot[0] <= '6'; slot[0]++)
        ck_assert_int_eq(permit_number(slot), is_granted ? base_us : 0);
    ck_assert_int_eq(live.downs, 0);
}

TEST(a_state_of_another_type_grants_nothing)
{
    mix();
    master_text(&live.master, "SET " PERMIT_STATE " x");
    live_ask_all(mixed, 6);
    EXPECT_VOTES(VOTE_DELETED, UNFIT(FAILED), VOTE_DELETED, UNFIT(FAILED),
                 VOTE_DELETED, UNFIT(FAILED));
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), 1);
    ck_assert_str_eq(master_text(&live.master, "GET " PERMIT_STATE), "x");
    live_ask_all(mixed, 6); /* what is not there may have been forgotten */
    for (int i = 0; i < 6; i += 2)
        ck_assert(live.votes[i] != VOTE_FREE && live.votes[i] != VOTE_DELETED);
    ck_assert_int_eq(live.downs, 0);
}

/* Nobody knows what the highest was. */
TEST_RANGE(a_spoilt_slot_fails_only_its_call, 0, 6)
{
    static const char *const numbers[] = {
        "spoilt", "nan", "1e300", "-5", "9007199254740992", ""};
    bool is_lower = strcmp(numbers[_i], "-5") == 0; /* as good as none */
    mix();
    live_write_slot(5, numbers[_i]);
    live_ask_all(mixed, 6);
    EXPECT_VOTES(VOTE_DELETED, VOTE_GRANTED, VOTE_DELETED);
    ck_assert_int_eq(live.votes[3],
                     is_lower ? (int)VOTE_GRANTED : UNFIT(FAILED));
    ck_assert_int_eq(live.votes[4], VOTE_DELETED);
    ck_assert_int_eq(live.votes[5], VOTE_GRANTED);
    ck_assert_int_eq(has("e"), is_lower);
    if (!is_lower)
        ck_assert_str_eq(permit_field("5"), numbers[_i]);
    ck_assert_int_eq(live.downs, 0);
}
