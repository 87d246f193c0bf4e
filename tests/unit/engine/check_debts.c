/* SPDX-License-Identifier: MIT */
/* When nodes get what they owe, and in which order. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../server/base/log.h"
#include "../../../server/engine/port/port.h"
#include "../../../server/engine/port/token.h"
#include "../../../server/engine/rounds/releases.h"
#include "../../lib/suite/suite.h"
#include "../said.h"
#include "../starve.h"

enum {
    NODES = 5,
    SECOND_US = 1000000,
    TTL_US = 60 * SECOND_US,
    CALLS = 2000,
    LIMIT = 512 * 1024
};

/* The nodes' clocks minus ours. */
#define EPOCH_US INT64_C(1795221641000000)

static struct metrics metrics;
static struct environment env;
static struct nodes nodes;
static struct debts debts;
static int64_t now_us;

/* What was sent: the node, the tag, and the name, which is a number. */
static struct {
    int node, name;
    uint64_t tag;
    size_t resource_len, token_len;
} sent[CALLS];
static int sent_count, answered;
static int room; /* so many more can be sent */

static void expect_one_letter(struct span text)
{
    ck_assert(memcmp(text.ptr, text.ptr + 1, text.len - 1) == 0);
}

static enum vote port_send(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    char name[16] = {0};
    (void)ctx;
    ck_assert_int_eq(call->kind, CALL_RELEASE);
    ck_assert_uint_gt(call->token.len, 0);
    ck_assert(tag_is_debt(tag));
    if (room-- <= 0)
        return VOTE_STALLED;
    ck_assert_int_lt(sent_count, CALLS);
    if (call->resource.len < sizeof name)
        (void)span_copy(name, call->resource);
    else
        expect_one_letter(call->resource), expect_one_letter(call->token);
    sent[sent_count].resource_len = call->resource.len;
    sent[sent_count].token_len = call->token.len;
    sent[sent_count].node = node;
    sent[sent_count].name = atoi(name);
    sent[sent_count++].tag = tag;
    return VOTE_PENDING;
}

static int64_t port_now(void *ctx)
{
    (void)ctx;
    return now_us;
}

static void pass(int64_t us)
{
    for (int64_t until_us = now_us + us; now_us < until_us;) {
        now_us += SECOND_US / 5;
        debts_tick(&debts, now_us);
    }
}

static void set_up(int node, bool is_up)
{
    nodes.node[node].is_up = is_up;
    if (is_up)
        debts_on_up(&debts, node, now_us);
}

static void begin(void)
{
    static const struct engine_settings settings = {
        .nodes = NODES,
        .node_names = {"a", "b", "c", "d", "e"},
        .node_timeout_us = 50000,
        .max_ttl_ms = TTL_US / 1000,
        .config_epoch = 1,
    };
    const struct engine_port port = {.send = port_send, .now = port_now};
    log_set_level(LOG_OFF);
    now_us = 1000 * SECOND_US;
    sent_count = answered = 0;
    room = INT32_MAX;
    metrics = (struct metrics){0};
    env = (struct environment){settings, port, &metrics};
    nodes_init(&nodes, &env);
    debts_init(&debts, &nodes);
    for (int i = 0; i < NODES; i++) {
        clocks_note_up(&nodes.clocks, i, true);
        (void)clocks_observe(&nodes.clocks, i, EPOCH_US + now_us, now_us,
                             now_us);
        set_up(i, true);
    }
    pass(SECOND_US);
}

static void end(void)
{
    debts_fini(&debts);
    ck_assert_uint_eq(debts.bytes, 0);
}

/* A lock of this name that was acquired so long ago. */
static void owe_until(int node, int name, int64_t ago_us, int64_t until_us)
{
    static const unsigned char random[TOKEN_RANDOM_BYTES];
    char resource[16], token[TOKEN_MAX];
    snprintf(resource, sizeof resource, "%d", name);
    size_t len =
        token_make(token, random,
                   &(struct token_parts){.number = EPOCH_US + now_us - ago_us});
    debts_add(&debts, node, span_of(resource), (struct span){token, len},
              until_us);
}

static void owe(int node, int name, int64_t ago_us)
{
    owe_until(node, name, ago_us, now_us + TTL_US);
}

/* Several from the first name on, and they are sent. */
static void send(int node, int count)
{
    for (int i = 0; i < count; i++)
        owe(node, i, 0);
    pass(SECOND_US / 5);
}

static void answer(int call, enum vote vote)
{
    ck_assert_int_lt(call, sent_count);
    debts_on_reply(&debts, sent[call].node, sent[call].tag, vote, now_us);
}

static void answer_next(enum vote vote)
{
    answer(answered++, vote);
}

static void answer_all(enum vote vote)
{
    for (int count = sent_count; answered < count;)
        answer_next(vote);
}

static void expect_nothing_owed(void)
{
    ck_assert_uint_eq(debts.items, 0);
    ck_assert_uint_eq(debts.bytes, 0);
}

SUITE(debts, .set_up = begin, .tear_down = end);

TEST(a_node_that_is_there_gets_it_with_the_next_tick)
{
    owe(2, 7, 0);
    owe(2, 8, 0);
    ck_assert_int_eq(sent_count, 0);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 2);
    ck_assert_int_eq(sent[0].node, 2);
    ck_assert_int_eq(sent[0].name, 7);
    answer_next(VOTE_DELETED);
    answer_next(VOTE_FREE);
    pass(SECOND_US);
    ck_assert_int_eq(sent_count, 2);
    expect_nothing_owed();
}

TEST(what_is_owed_no_longer_is_not_sent)
{
    set_up(1, false);
    for (int i = 0; i < 4; i++)
        owe_until(1, i, 0, now_us + (i == 1 ? 2 : 1) * SECOND_US);
    pass(SECOND_US);
    ck_assert_uint_eq(debts.items, 3); /* of those that are not the oldest */
    ck_assert_uint_eq(metrics.releases_dropped, 0);
    set_up(1, true);
    ck_assert_int_eq(sent_count, 1);
    ck_assert_int_eq(sent[0].name, 1);
    answer_next(VOTE_HELD);
    expect_nothing_owed();
}

TEST(nor_kept_while_the_node_is_away_but_what_is_under_way)
{
    set_up(4, false);
    for (int i = 1; i <= 10000; i++)
        owe_until(4, i, 0, now_us + i * (SECOND_US / 1000));
    size_t before = debts.bytes;
    pass(5 * SECOND_US);
    ck_assert_uint_eq(debts.items, 5000);
    ck_assert_uint_lt(debts.bytes, before);
    set_up(4, true);
    pass(10 * SECOND_US);
    ck_assert_uint_eq(debts.items, DEBTS_WINDOW);
    nodes.node[4].is_up = false;
    answer_all(VOTE_DISCONNECTED);
    pass(SECOND_US);
    expect_nothing_owed();
}

TEST(what_it_may_have_comes_before_what_it_hardly_has)
{
    set_up(4, false);
    pass(10 * SECOND_US);
    owe(4, 1, 0);              /* acquired while it was away */
    owe(4, 2, 20 * SECOND_US); /* before that */
    owe(4, 3, 5 * SECOND_US);
    owe(4, 4, 9 * SECOND_US); /* just when it went away */
    set_up(4, true);
    static const int order[] = {2, 4, 1, 3};
    ck_assert_int_eq(sent_count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(sent[i].name, order[i]);
}

/* A server that was just started cannot know what others have sent there. */
TEST(a_node_that_was_never_seen_may_have_all_from_before)
{
    end();
    set_up(4, false);
    debts_init(&debts, &nodes);
    pass(10 * SECOND_US);
    owe(4, 1, 0);
    owe(4, 2, 11 * SECOND_US);
    set_up(4, true);
    ck_assert_int_eq(sent[0].name, 2);
}

/* However late a lock's number says that it was acquired. */
TEST(a_node_that_is_there_may_have_them_all)
{
    owe(2, 1, -20 * SECOND_US);
    owe(2, 2, 20 * SECOND_US);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 2);
    ck_assert_int_eq(sent[0].name, 1);
    ck_assert_int_eq(sent[1].name, 2);
}

TEST(they_are_sent_a_few_hundred_at_a_time)
{
    send(1, 3 * DEBTS_WINDOW);
    ck_assert_int_eq(sent_count, DEBTS_WINDOW);
    answer(1, VOTE_DELETED);
    ck_assert_int_eq(sent_count, DEBTS_WINDOW + 1);
    answer(0, VOTE_DELETED);
    ck_assert_int_eq(sent_count, DEBTS_WINDOW + 2);
    ck_assert_uint_eq(debts.items, 3 * DEBTS_WINDOW - 2);
    answered = 2;
    while (answered < sent_count)
        answer_next(VOTE_DELETED);
    ck_assert_int_eq(sent_count, 3 * DEBTS_WINDOW);
    for (int i = 0; i < sent_count; i++)
        ck_assert_int_eq(sent[i].name, i);
    expect_nothing_owed();
}

TEST(what_a_node_refuses_is_not_asked_of_it_all_the_time)
{
    room = 1;
    send(1, 3);
    room = INT32_MAX;
    answer_next(VOTE_UNFIT);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 1);
    pass(SECOND_US);
    ck_assert_int_eq(sent_count, 4);
    for (int i = 1; i <= 3; i++) /* it goes to the end */
        ck_assert_int_eq(sent[i].name, i % 3);
    answer_all(VOTE_DELETED);
    expect_nothing_owed();
}

/* It has lost the key, or lets nobody set or delete it. */
TEST(what_a_node_cannot_have_is_not_asked_of_it_again)
{
    send(1, 2);
    answer_next(VOTE_NOT_ADMITTED);
    answer_next(VOTE_KEY_REFUSED);
    expect_nothing_owed();
    pass(SECOND_US);
    ck_assert_int_eq(sent_count, 2);
}

TEST(what_was_lost_with_the_connection_is_sent_again_in_its_place)
{
    static const int again[] = {0, 1, 3, 4, 5, 6, 7, 8, 9};
    room = 6;
    send(1, 10);
    answer(2, VOTE_DELETED);
    nodes.node[1].is_up = false;
    for (int i = 0; i < 6; i++)
        if (i != 2)
            answer(i, VOTE_DISCONNECTED);
    ck_assert_uint_eq(debts.items, 9);
    room = INT32_MAX;
    set_up(1, true);
    ck_assert_int_eq(sent_count, 6 + 9);
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(sent[6 + i].name, again[i]);
    answered = 6;
    answer_all(VOTE_DELETED);
    expect_nothing_owed();
}

TEST(the_unlikely_do_not_use_up_the_memory)
{
    debts.limit = LIMIT;
    set_up(4, false);
    pass(10 * SECOND_US);
    while (metrics.releases_forgone == 0)
        owe(4, 1, 0);
    ck_assert_uint_le(debts.bytes, LIMIT / 2);
    ck_assert_uint_gt(debts.bytes, LIMIT / 2 - 120);
    /* less than 60 bytes more than a token */
    ck_assert_uint_gt(debts.items, debts.bytes / 120);
    ck_assert_uint_eq(metrics.releases_dropped, 0);
    while (metrics.releases_dropped == 0)
        owe(4, 2, 20 * SECOND_US);
    ck_assert_uint_eq(metrics.releases_forgone, 1);
    ck_assert_uint_gt(debts.bytes, LIMIT - 120);
    set_up(4, true);
    ck_assert_int_eq(sent[0].name, 2);
}

TEST(what_finds_no_memory_leaves_the_queue_as_it_was)
{
    owe(1, 0, 0);
    starve = (struct starve){.is_on = true, .left = 1};
    owe(1, 7, 0);
    starve.is_on = false;
    ck_assert_int_eq(starve.left, 0);
    ck_assert_uint_eq(metrics.releases_dropped, 1);
    owe(1, 1, 0);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 2);
    for (int i = 0; i < sent_count; i++)
        ck_assert_int_eq(sent[i].name, i);
    answer_all(VOTE_DELETED);
    expect_nothing_owed();
}

TEST(the_longest_names_fit)
{
    static char resource[NAMES_LEN_MAX], token[TOKEN_MAX];
    memset(resource, 'r', sizeof resource);
    memset(token, 't', sizeof token);
    for (int i = 0; i < 100; i++)
        debts_add(&debts, 1, (struct span){resource, sizeof resource},
                  (struct span){token, sizeof token}, now_us + TTL_US);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 100);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(sent[i].resource_len, sizeof resource);
        ck_assert_uint_eq(sent[i].token_len, sizeof token);
    }
    answer_all(VOTE_DELETED);
    expect_nothing_owed();
}

/* Against a plain list of names, of which each is there until it is done. */
enum { NAMES = 30000, STEPS = 100000 };

static bool is_done[NAMES];
static uint64_t random_state;

static int draw(int below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (int)((random_state >> 33) % (unsigned)below);
}

/* Here, sent are those without an answer. */
static void play_answer_one(void)
{
    if (sent_count == 0)
        return;
    int at = draw(sent_count), name = sent[at].name;
    uint64_t tag = sent[at].tag;
    bool is_refused = draw(10) == 0;
    sent[at] = sent[--sent_count];
    debts_on_reply(&debts, 1, tag, is_refused ? VOTE_UNFIT : VOTE_DELETED,
                   now_us);
    ck_assert(is_refused || !is_done[name]);
    is_done[name] |= !is_refused;
}

static void play_step(void)
{
    int chance = draw(70);
    if (chance < 30) {
        room = draw(8);
        now_us += SECOND_US;
        debts_tick(&debts, now_us);
        room = 0;
    } else if (chance < 69) {
        play_answer_one();
    } else {
        nodes.node[1].is_up = false;
        for (int i = 0; i < sent_count; i++)
            answer(i, VOTE_DISCONNECTED);
        sent_count = 0;
        set_up(1, true);
    }
}

TEST(each_is_done_once_whatever_happens)
{
    int owed = 0;
    random_state = (uint64_t)getpid();
    printf("debts: seed %llu\n", (unsigned long long)random_state);
    room = 0;
    for (int i = 0; i < STEPS; i++) {
        if (owed < NAMES && draw(3) == 0)
            owe_until(1, owed++, 0, INT64_MAX);
        play_step();
    }
    while (debts.items > 0)
        play_step();
    for (int i = 0; i < owed; i++)
        ck_assert(is_done[i]);
    expect_nothing_owed();
}

TEST(what_was_dropped_is_told_once_in_a_while)
{
    said_begin();
    log_set_level(LOG_WARN);
    debts.limit = 0;
    set_up(4, false);
    pass(20 * SECOND_US);
    ck_assert_str_eq(said(), "");
    owe(4, 1, 0); /* it hardly has that */
    pass(SECOND_US);
    ck_assert_str_eq(said(), "");
    owe(4, 1, 30 * SECOND_US);
    owe(4, 2, 30 * SECOND_US);
    pass(SECOND_US);
    ck_assert_has(said(), "event=releases_dropped count=2");
    owe(4, 3, 40 * SECOND_US);
    pass(5 * SECOND_US);
    ck_assert_str_eq(said(), "");
    pass(5 * SECOND_US);
    ck_assert_has(said(), "event=releases_dropped count=1");
    ck_assert_uint_eq(metrics.releases_dropped, 3);
    said_end();
}
