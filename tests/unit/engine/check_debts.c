/* When nodes get what they owe, and in which order. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../server/base/log.h"
#include "../../../server/engine/port/tag.h"
#include "../../../server/engine/port/token.h"
#include "../../../server/engine/rounds/debts.h"
#include "../../lib/suite/suite.h"

enum { NODES = 5, SECOND_US = 1000000, TTL_US = 60 * SECOND_US, CALLS = 2000 };

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
} sent[CALLS];
static int sent_count, answered;
static bool is_full;

static enum vote port_send(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    char name[16] = {0};
    (void)ctx;
    ck_assert_int_eq(call->kind, CALL_RELEASE);
    ck_assert_uint_gt(call->token.len, 0);
    ck_assert(tag_is_debt(tag));
    if (is_full)
        return VOTE_STALLED;
    ck_assert_int_lt(sent_count, CALLS);
    (void)span_copy(name, call->resource);
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
    is_full = false;
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
    ck_assert_uint_eq(debts.store.bytes, 0);
}

/* A lock of this name that was acquired so long ago. */
static void owe(int node, int name, int64_t ago_us)
{
    static const unsigned char random[TOKEN_RANDOM_BYTES];
    char resource[16], token[TOKEN_MAX];
    snprintf(resource, sizeof resource, "%d", name);
    size_t len =
        token_make(token, random,
                   &(struct token_parts){.number = EPOCH_US + now_us - ago_us});
    debts_add(
        &debts, node,
        &(struct owed_item){span_of(resource), {token, len}, now_us + TTL_US});
}

static void answer_next(enum vote vote)
{
    ck_assert_int_lt(answered, sent_count);
    debts_on_reply(&debts, sent[answered].node, sent[answered].tag, vote,
                   now_us);
    answered++;
}

static void answer_all(enum vote vote)
{
    for (int count = sent_count; answered < count;)
        answer_next(vote);
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
    ck_assert_uint_eq(debts.store.items, 0);
}

TEST(a_node_that_is_away_gets_it_when_it_is_back)
{
    set_up(4, false);
    owe(4, 1, 0);
    pass(5 * SECOND_US);
    ck_assert_int_eq(sent_count, 0);
    set_up(4, true);
    ck_assert_int_eq(sent_count, 1);
    answer_next(VOTE_HELD);
    ck_assert_uint_eq(debts.store.items, 0);
}

TEST(until_the_ttl_has_passed)
{
    set_up(4, false);
    owe(4, 1, 0);
    pass(TTL_US - SECOND_US);
    ck_assert_uint_eq(debts.store.items, 1);
    pass(SECOND_US);
    ck_assert_uint_eq(debts.store.items, 0);
    ck_assert_uint_eq(metrics.releases_dropped, 0);
    set_up(4, true);
    ck_assert_int_eq(sent_count, 0);
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
    for (int i = 0; i < 3 * OWED_WINDOW; i++)
        owe(1, i, 0);
    pass(SECOND_US);
    ck_assert_int_eq(sent_count, OWED_WINDOW);
    answer_next(VOTE_DELETED);
    ck_assert_int_eq(sent_count, OWED_WINDOW + 1);
    while (answered < sent_count)
        answer_next(VOTE_DELETED);
    ck_assert_int_eq(sent_count, 3 * OWED_WINDOW);
    for (int i = 0; i < sent_count; i++)
        ck_assert_int_eq(sent[i].name, i);
    ck_assert_uint_eq(debts.store.items, 0);
}

TEST(what_a_node_refuses_is_not_asked_of_it_all_the_time)
{
    owe(1, 1, 0);
    pass(SECOND_US / 5);
    answer_next(VOTE_UNFIT);
    owe(1, 2, 0);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 1);
    pass(SECOND_US);
    ck_assert_int_eq(sent_count, 3);
    answer_all(VOTE_DELETED);
    ck_assert_uint_eq(debts.store.items, 0);
}

/* It has lost the key, or lets nobody set or delete it. */
TEST(what_a_node_cannot_have_is_not_asked_of_it_again)
{
    owe(1, 1, 0);
    owe(1, 2, 0);
    pass(SECOND_US / 5);
    answer_next(VOTE_NOT_ADMITTED);
    answer_next(VOTE_KEY_REFUSED);
    ck_assert_uint_eq(debts.store.items, 0);
    pass(SECOND_US);
    ck_assert_int_eq(sent_count, 2);
}

TEST(what_was_lost_with_the_connection_is_sent_again)
{
    for (int i = 0; i < 3; i++)
        owe(1, i, 0);
    pass(SECOND_US / 5);
    answer_next(VOTE_DELETED);
    nodes.node[1].is_up = false;
    answer_all(VOTE_DISCONNECTED);
    ck_assert_int_eq(sent_count, 3);
    set_up(1, true);
    ck_assert_int_eq(sent_count, 5);
    ck_assert_int_eq(sent[3].name, 1);
    answer_all(VOTE_DELETED);
    ck_assert_uint_eq(debts.store.items, 0);
}

TEST(what_the_connection_does_not_take_waits)
{
    owe(1, 1, 0);
    is_full = true;
    pass(SECOND_US);
    is_full = false;
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 1);
}

TEST(the_unlikely_do_not_use_up_the_memory)
{
    debts.store.limit = (size_t)8 * OWED_BLOCK;
    set_up(4, false);
    pass(10 * SECOND_US);
    while (metrics.releases_forgone == 0)
        owe(4, 1, 0);
    ck_assert_uint_eq(debts.store.bytes, (size_t)4 * OWED_BLOCK);
    ck_assert_uint_eq(metrics.releases_dropped, 0);
    while (metrics.releases_dropped == 0)
        owe(4, 2, 20 * SECOND_US);
    ck_assert_uint_eq(metrics.releases_forgone, 1);
    ck_assert_uint_eq(debts.store.bytes, (size_t)8 * OWED_BLOCK);
    set_up(4, true);
    ck_assert_int_eq(sent[0].name, 2);
}

/* Not even if no more may be added: it has a place already. */
TEST_RANGE(an_answer_drops_nothing, 0, 3)
{
    static const enum vote votes[] = {VOTE_DELETED, VOTE_UNFIT,
                                      VOTE_DISCONNECTED};
    debts.store.limit = OWED_BLOCK;
    owe(2, 7, 0);
    pass(SECOND_US / 5);
    ck_assert_int_eq(sent_count, 1);
    answer_next(votes[_i]);
    ck_assert_uint_eq(metrics.releases_dropped, 0);
    ck_assert_uint_eq(metrics.releases_forgone, 0);
    ck_assert_uint_eq(debts.store.items, votes[_i] == VOTE_DELETED ? 0 : 1);
}

/* What came on stderr since; a test is a process of its own. */
static const char *read_log(int from)
{
    static char text[4096];
    ssize_t got = read(from, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

TEST(what_was_dropped_is_told_once_in_a_while)
{
    int log[2];
    ck_assert_int_eq(pipe2(log, O_NONBLOCK), 0);
    dup2(log[1], STDERR_FILENO);
    log_set_level(LOG_WARN);
    debts.store.limit = 0;
    set_up(4, false);
    pass(20 * SECOND_US);
    ck_assert_str_eq(read_log(log[0]), "");
    owe(4, 1, 0); /* it hardly has that */
    pass(SECOND_US);
    ck_assert_str_eq(read_log(log[0]), "");
    owe(4, 1, 30 * SECOND_US);
    owe(4, 2, 30 * SECOND_US);
    pass(SECOND_US);
    ck_assert_ptr_nonnull(
        strstr(read_log(log[0]), "event=releases_dropped count=2"));
    owe(4, 3, 40 * SECOND_US);
    pass(5 * SECOND_US);
    ck_assert_str_eq(read_log(log[0]), "");
    pass(5 * SECOND_US);
    ck_assert_ptr_nonnull(
        strstr(read_log(log[0]), "event=releases_dropped count=1"));
    ck_assert_uint_eq(metrics.releases_dropped, 3);
}
