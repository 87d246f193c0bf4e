/*
 * Rows of acquires and releases in one batch, which the script runs at once, on
 * a real redis-server: each has the answer that it would have alone.
 */

#include "../../lib/suite/suite.h"
#include "permit.h"

/* ---- what a row may meet ------------------------------------------------- */

/* A call, for the lock that its place in the row names, and its answer. */
static const struct row_call {
    enum call_kind kind;
    const char *before;  /* what the node has, if anything */
    int64_t slot_us;     /* of the number in its slot, as below; 0: none */
    int64_t offset_us;   /* of its number to the node's clock */
    enum vote admitted;  /* the answer, … */
    enum vote late;      /* … past the deadline, … */
    enum vote forgotten; /* … and of a node without our admission */
    const char *value;   /* if it is held */
    const char *after;   /* the value that is there in the end; "": none */
} row[] = {
    {CALL_ACQUIRE, NULL, 0, 0, VOTE_GRANTED, VOTE_LATE, VOTE_NOT_ADMITTED, "",
     "A"},
    {CALL_RELEASE, "SET p:%s %s PX 50000", 0, 0, VOTE_DELETED, VOTE_DELETED,
     VOTE_DELETED, "", ""},
    {CALL_ACQUIRE, "SET p:%s foreign PX 50000", 0, 0, VOTE_HELD, VOTE_LATE,
     VOTE_NOT_ADMITTED, "foreign", "foreign"},
    {CALL_RELEASE, "SET p:%s foreign PX 50000", 0, 0, VOTE_HELD, VOTE_HELD,
     VOTE_HELD, "foreign", "foreign"},
    {CALL_ACQUIRE, "SET p:%s endless", 0, 0, VOTE_HELD, VOTE_LATE,
     VOTE_NOT_ADMITTED, "endless", "endless"},
    {CALL_RELEASE, NULL, 0, 0, VOTE_FREE, VOTE_FREE, VOTE_NOT_ADMITTED, "", ""},
    {CALL_ACQUIRE, "RPUSH p:%s x", 0, 0, VOTE_HELD, VOTE_LATE,
     VOTE_NOT_ADMITTED, "", "(list)"},
    {CALL_RELEASE, "RPUSH p:%s x", 0, 0, VOTE_HELD, VOTE_HELD, VOTE_HELD, "",
     "(list)"},
    {CALL_ACQUIRE, NULL, 1000, 0, VOTE_STALE, VOTE_LATE, VOTE_NOT_ADMITTED, "",
     ""},
    {CALL_ACQUIRE, "SET p:%s foreign PX 50000", 1000, 0, VOTE_HELD, VOTE_LATE,
     VOTE_NOT_ADMITTED, "foreign", "foreign"},
    {CALL_ACQUIRE, NULL, 0, LIVE_WINDOW_US + 5000000, VOTE_OUT_OF_RANGE,
     VOTE_LATE, VOTE_NOT_ADMITTED, "", ""},
    {CALL_ACQUIRE, NULL, 0, -LIVE_WINDOW_US - 5000000, VOTE_OUT_OF_RANGE,
     VOTE_LATE, VOTE_NOT_ADMITTED, "", ""},
    {CALL_ACQUIRE, NULL, -1000, 0, VOTE_GRANTED, VOTE_LATE, VOTE_NOT_ADMITTED,
     "", "A"},
    {CALL_RELEASE, "SET p:%s %s", 0, 0, VOTE_DELETED, VOTE_DELETED,
     VOTE_DELETED, "", ""},
};

enum { ROW = sizeof row / sizeof *row, FIRST_SLOT = 20 };

enum mood { ADMITTED, LATE, FORGOTTEN, MOODS };

static const char *const names[ROW] = {"a", "b", "c", "d", "e", "f", "g",
                                       "h", "i", "j", "k", "l", "m", "n"};

static int64_t base_us; /* the number of A */

static enum vote expected(const struct row_call *it, enum mood mood)
{
    return mood == ADMITTED ? it->admitted
           : mood == LATE   ? it->late
                            : it->forgotten;
}

static void setup(void)
{
    live_setup_admitted();
    base_us = live_node_now_us();
    tokens_renumber(span_of("A"), base_us);
}

/* All that the calls may find. */
static void prepare(bool has_top)
{
    for (int i = 0; i < ROW; i++) {
        master_integer(&live.master, "DEL p:%s", names[i]);
        if (row[i].before != NULL)
            master_text(&live.master, row[i].before, names[i], live_token("A"));
        master_integer(&live.master, "HDEL " PERMIT_STATE " %d",
                       FIRST_SLOT + i);
        long long number = base_us + row[i].slot_us;
        if (row[i].slot_us != 0)
            master_integer(&live.master, "HSET " PERMIT_STATE " %d %lld",
                           FIRST_SLOT + i, number);
    }
    if (has_top)
        permit_set_number("top", base_us + 1000); /* the highest in the slots */
    else
        master_integer(&live.master, "HDEL " PERMIT_STATE " top");
}

/* All of them have one token, except for those with other numbers. */
static struct call make_call(int number, enum mood mood)
{
    const struct row_call *it = &row[number];
    struct call call = live_call(it->kind, names[number], "A");
    call.slots[0] = (uint16_t)(FIRST_SLOT + number);
    call.number = base_us + it->offset_us;
    if (mood == LATE)
        call.node_deadline_us = base_us - 1000000;
    else
        call.node_deadline_us = base_us + 30000000;
    if (mood == FORGOTTEN)
        call.admit = span_of(LIVE_ADMIT);
    if (it->offset_us != 0)
        call.token = span_of("B");
    return call;
}

static const char *value_of(const char *name)
{
    bool is_list =
        strcmp(master_text(&live.master, "TYPE p:%s", name), "list") == 0;
    bool is_there = master_integer(&live.master, "EXISTS p:%s", name) == 1;
    return is_list ? "(list)" : is_there ? live_holder(name) : "";
}

/* The answer to this call of the row, and what it left behind. */
static void check_call(int number, const struct live_answer *answer, int vote,
                       enum mood mood)
{
    const struct row_call *it = &row[number];
    const char *slot = textf("%d", FIRST_SLOT + number);
    ck_assert_msg(vote == (int)expected(it, mood), "call %d: %s", number,
                  ballot_name(ballot_of_number(vote)));
    ck_assert_str_eq(answer->value, vote == VOTE_HELD ? it->value : "");
    if (vote != VOTE_HELD)
        ck_assert_int_eq(answer->pttl_ms, 0);
    else if (strcmp(it->value, "foreign") == 0)
        ck_assert(answer->pttl_ms > 40000 && answer->pttl_ms <= 50000);
    else
        ck_assert_int_eq(answer->pttl_ms, -1);
    ck_assert_int_eq(answer->highest,
                     vote == VOTE_STALE ? base_us + it->slot_us : 0);
    ck_assert_int_eq(answer->listeners, 0);
    if (vote == VOTE_GRANTED) {
        ck_assert_int_eq(permit_number(slot), base_us);
        long long pttl =
            master_integer(&live.master, "PTTL p:%s", names[number]);
        ck_assert(pttl > LIVE_TTL_MS - 10000 && pttl <= LIVE_TTL_MS);
    } else if (it->slot_us != 0) {
        ck_assert_int_eq(permit_number(slot), base_us + it->slot_us);
    } else {
        ck_assert_str_eq(permit_field(slot), "");
    }
    bool is_set = vote != VOTE_GRANTED && it->before == NULL;
    ck_assert_str_eq(value_of(names[number]), is_set ? "" : it->after);
}

static struct live_answer answers[ROW];
static int votes[ROW];

static void check_all(enum mood mood)
{
    for (int i = 0; i < ROW; i++)
        check_call(i, &answers[i], votes[i], mood);
}

/* Each in a batch of its own. */
static void ask_alone(enum mood mood)
{
    for (int i = 0; i < ROW; i++) {
        struct call call = make_call(i, mood);
        votes[i] = live_ask(&call);
        answers[i] = live.answers[1];
    }
}

/* In one batch, beginning with the call of this number. */
static void ask_at_once(enum mood mood, int first)
{
    struct call calls[ROW];
    for (int i = 0; i < ROW; i++)
        calls[i] = make_call((first + i) % ROW, mood);
    live_ask_all(calls, ROW);
    for (int i = 0; i < ROW; i++) {
        votes[(first + i) % ROW] = live.votes[i];
        answers[(first + i) % ROW] = live.answers[i];
    }
}

SUITE(lua_rows, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

TEST_RANGE(each_call_has_the_answer_that_it_has_alone, 0, ROW)
{
    for (int mood = 0; mood < MOODS; mood++)
        for (int has_top = 0; has_top < 2; has_top++) {
            prepare(has_top);
            ask_alone((enum mood)mood);
            check_all((enum mood)mood);
            prepare(has_top);
            ask_at_once((enum mood)mood, _i);
            check_all((enum mood)mood);
        }
    ck_assert_int_eq(live.downs, 0);
}

/* A token is shorter, and a reply has a bound. */
TEST(of_a_long_value_only_the_beginning_is_told)
{
    static char value[1001];
    struct call calls[4];
    memset(value, 'v', sizeof value - 1);
    for (int i = 0; i < 4; i++) {
        calls[i] = make_call(i, ADMITTED);
        master_integer(&live.master, "DEL p:%s", names[i]);
        master_text(&live.master, "SET p:%s %s", names[i], value);
    }
    live_ask_all(calls, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(live.votes[i], VOTE_HELD);
        ck_assert_uint_eq(strspn(live.answers[i].value, "v"), VALUE_MAX);
    }
}

#define MINE "1700000000000001~0123456789abcdef0123456789abcdef01234567"
#define ANOTHERS "1700000000000002~0123456789abcdef0123456789abcdef01234567"

/* What the row deletes at its end is that of others in it. */
TEST_RANGE(those_who_share_a_lock_keep_it, 0, 2)
{
    struct call calls[] = {make_call(1, ADMITTED), make_call(5, ADMITTED),
                           make_call(0, ADMITTED)};
    long long ends_ms = live_node_now_us() / 1000 + 50000;
    prepare(true);
    calls[1].token = span_of(MINE);
    master_integer(&live.master, "ZADD p:%s %lld " MINE " %lld " ANOTHERS,
                   names[5], ends_ms, ends_ms);
    if (_i == 1)
        live_listen(10000000);
    live_ask_all(calls, 3);
    ck_assert_int_eq(live.votes[0], VOTE_DELETED);
    ck_assert_int_eq(live.votes[1], VOTE_DELETED);
    ck_assert_int_eq(live.votes[2], VOTE_GRANTED);
    ck_assert_int_eq(live.answers[1].listeners, 0);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:%s", names[1]), 0);
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:%s", names[5]), 1);
}
