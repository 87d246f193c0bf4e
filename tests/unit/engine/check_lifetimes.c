/* SPDX-License-Identifier: MIT */
/*
 * Whoever has asked for something may leave while it is under way. Each row of
 * the table in engine.h is played with each way to leave, and each of these
 * with each way in which the nodes go on. A sanitizer sees what is used after
 * it was freed.
 */
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

enum {
    WAIT_MS = 1000,
    STEP_US = 20000,
    A_WHILE_US = 3000000,
    CLIENTS_MAX = 8,
    ANSWERS_MAX = 400, /* of the nodes to what is asked at once */
    CALLS_KEPT = PLAY_CALLS_MAX / 4,
};

struct client {
    engine_op op; /* 0: none, or ended */
    bool is_list;
    bool is_answered;
};

static struct client clients[CLIENTS_MAX];
static int clients_count;

static void note_answer(void *client)
{
    struct client *it = client;
    ck_assert(!it->is_answered);
    it->is_answered = true;
}

SUITE(lifetimes);

/* ---- clients ------------------------------------------------------------ */

static struct client *next_client(void)
{
    ck_assert_int_lt(clients_count, CLIENTS_MAX);
    clients[clients_count] = (struct client){0};
    return &clients[clients_count++];
}

static void acquire(struct engine_acquire wish)
{
    struct client *it = next_client();
    if (wish.resource.len == 0)
        wish.resource = PLAY_RESOURCE;
    it->op = engine_acquire(play.engine, &wish, it);
    ck_assert(it->op != 0);
}

/* An acquire in a table. */
#define ASK(...)                                                               \
    {                                                                          \
        .ttl_ms = 30000, __VA_ARGS__                                           \
    }
#define NAME(text) .resource = {(text), sizeof(text) - 1}
#define KEY .key_hash = {PLAY_KEY, sizeof PLAY_KEY - 1}
#define WAIT .wait_ms = WAIT_MS
#define POOL NAME("pool"), .limit = 3, .permits = 1

static void end(struct client *it)
{
    if (it->op == 0)
        return;
    if (!it->is_answered) {
        (void)engine_abandon(play.engine, it->op);
    } else {
        if (!it->is_list)
            (void)engine_take(play.engine, it->op, play.now_us);
        engine_close(play.engine, it->op);
    }
    it->op = 0;
}

/* ---- what is under way -------------------------------------------------- */

/* The oldest round, if one is under way: some wait behind the first. */
static void answer_round(enum call_kind kind, const char *letters)
{
    if (play_find(kind, 0) != NULL)
        letters_answer(kind, letters);
}

static void hold(void)
{
    answer_round(CALL_ACQUIRE, "AAAAA");
}

static void repeat_half(void)
{
    scene_more("acquire:OOO repeat:ggs");
}

static void begin_extend(void)
{
    struct client *it = next_client();
    it->op = engine_extend(play.engine, PLAY_RESOURCE, span_of(PLAY_TOKEN),
                           30000, false, it);
}

static void begin_release(void)
{
    struct client *it = next_client();
    it->op =
        engine_release(play.engine, PLAY_RESOURCE, span_of(PLAY_TOKEN), it);
}

static void begin_force(void)
{
    struct client *it = next_client();
    it->op = engine_force(play.engine, PLAY_RESOURCE, 1, it);
}

static void begin_forced_release(void)
{
    begin_force();
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_TOKENS, i) != NULL)
            play_answer_held(CALL_TOKENS, i, PLAY_TOKEN_OF(1));
}

static void begin_inspection(void)
{
    struct client *it = next_client();
    it->op = engine_inspect(play.engine, PLAY_RESOURCE, it);
}

/* The pool's timer is under way. */
static void fill_pool(void)
{
    hold();
    for (int i = 0; i < 3; i++)
        if (play_find(CALL_SLOTS, i) != NULL)
            PLAY_REPLY(CALL_SLOTS, i, .vote = VOTE_DONE, .pttl_ms = 5000,
                       .slots = span_of("111"));
}

static void begin_watch(void)
{
    struct client *it = next_client();
    it->op =
        engine_watch(play.engine, PLAY_RESOURCE, span_of("1"), WAIT_MS, it);
    play_advance(STEP_US);
}

static void begin_watch_between_inspections(void)
{
    begin_watch();
    if (play_find(CALL_INSPECT, 0) != NULL)
        play_hold_range(CALL_INSPECT, 0, PLAY_NODES, PLAY_TOKEN);
}

static void list(struct span pool)
{
    struct client *it = next_client();
    it->is_list = true;
    it->op = engine_list(play.engine,
                         &(struct engine_list){.limit = 10, .pool = pool}, it);
}

static void begin_scan(void)
{
    list((struct span){0});
}

static void begin_inspections(void)
{
    list((struct span){0});
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_SCAN, i) != NULL)
            PLAY_REPLY(CALL_SCAN, i, .vote = VOTE_DONE,
                       .names = span_of("3:o:a3:o:b"));
}

static void begin_pool_page(void)
{
    list(span_of("pool"));
}

/* Acquires, of three the first of which finds its lock held; and what follows,
 * or begins something else. */
static const struct {
    const char *name;
    struct engine_acquire asks[3];
    void (*then)(void);
    enum call_kind kind; /* what nodes answer to such calls */
    const char *answers;
} begun[] = {
    {"a round", .asks = {ASK()}},
    {"a pause", {ASK()}, NULL, CALL_ACQUIRE, "ggAAB"},
    {"a grant", {ASK()}, NULL, CALL_ACQUIRE, "ggg"},
    {"a repeat", {ASK(KEY)}, NULL, CALL_ACQUIRE, "OOO"},
    {"half of a repeat", .asks = {ASK(KEY)}, .then = repeat_half},
    {"a pause of a repeat",
     {ASK(KEY, .is_shared = true)},
     NULL,
     CALL_REPEAT,
     "ggAAB"},
    {"an extend", .then = begin_extend},
    {"a replication", .then = begin_extend, CALL_EXTEND, "feee"},
    {"a release", .then = begin_release},
    {"a force", .then = begin_force},
    {"a forced release", .then = begin_forced_release},
    {"an inspection", .then = begin_inspection},
    {"a turn", .asks = {ASK(WAIT)}},
    {"a pause of a turn", {ASK(WAIT)}, NULL, CALL_ACQUIRE, "ggAAB"},
    /* a timer, and subscriptions, are under way */
    {"a wait", {ASK(WAIT)}, NULL, CALL_ACQUIRE, "AAAAA"},
    {"a wait behind another", .asks = {ASK(WAIT), ASK(WAIT, KEY)}},
    /* behind one that wants more, whose attempts would not find its lock */
    {"a probe",
     .asks = {ASK(WAIT, NAME("order:41\norder:42")), ASK(WAIT, KEY)}},
    /* it does not wait, but stands in a queue, where it is its turn */
    {"a turn of a reader",
     .asks = {ASK(WAIT, NAME("order:41")),
              ASK(WAIT, NAME("order:41\norder:42")), ASK(.is_shared = true)}},
    {"a query", .asks = {ASK(POOL, KEY)}},
    {"a query of a wait", .asks = {ASK(POOL, KEY, WAIT)}},
    {"a query of a repeat", .asks = {ASK(POOL, KEY, .only_repeats = true)}},
    {"a try", .asks = {ASK(POOL)}},
    {"a try of a wait", .asks = {ASK(POOL, WAIT)}},
    {"a wait for a slot", .asks = {ASK(POOL, WAIT)}, .then = fill_pool},
    {"a permit", {ASK(POOL)}, NULL, CALL_ACQUIRE, "ggg"},
    {"a watch", .then = begin_watch},
    {"a watch between inspections", .then = begin_watch_between_inspections},
    {"a scan", .then = begin_scan},
    {"the inspections of a page", .then = begin_inspections},
    {"the page of a pool", .then = begin_pool_page},
};

static void begin(int what)
{
    for (int i = 0; i < 3 && begun[what].asks[i].ttl_ms > 0; i++) {
        acquire(begun[what].asks[i]);
        if (i == 0 && begun[what].asks[2].ttl_ms > 0)
            hold();
    }
    if (begun[what].then != NULL)
        begun[what].then();
    if (begun[what].answers != NULL)
        answer_round(begun[what].kind, begun[what].answers);
    for (int i = 0; i < clients_count; i++)
        ck_assert(clients[i].op != 0);
}

/* ---- who leaves --------------------------------------------------------- */

static void leave_last(void)
{
    end(&clients[clients_count - 1]);
}

static void leave_first(void)
{
    end(&clients[0]);
}

static void leave_all(void)
{
    for (int i = 0; i < clients_count; i++)
        end(&clients[i]);
}

/* Whoever waits is answered; then the process ends. */
static void stop(void)
{
    engine_stop_waiting(play.engine);
    leave_all();
}

/* The rest goes on, for as long as the server drains. */
static void stop_waiting(void)
{
    engine_stop_waiting(play.engine);
}

/* As those who wait do in the end. */
static void stay(void)
{
}

static const struct {
    const char *name;
    void (*leave)(void);
} leaves[] = {
    {"the last leaves", leave_last}, {"the first leaves", leave_first},
    {"all leave", leave_all},        {"the server stops", stop},
    {"it drains", stop_waiting},     {"nobody leaves", stay},
};

/* ---- how the nodes go on ------------------------------------------------ */

/* Whether the node has set or found the lock, or knows nothing of it. */
static struct call_reply make_reply(const struct play_call *sent, bool is_good)
{
    struct call_reply held = {
        .vote = VOTE_HELD, .pttl_ms = 5000, .value = span_of(PLAY_TOKEN)};
    struct call_reply granted = {.vote = VOTE_GRANTED};
    switch (sent->call.kind) {
    case CALL_ACQUIRE:
    case CALL_REPEAT:
    case CALL_REPLICATE:
        return is_good ? granted : held;
    case CALL_EXTEND:
        return (struct call_reply){.vote = is_good ? VOTE_EXTENDED : VOTE_FREE};
    case CALL_RELEASE:
        return (struct call_reply){.vote = is_good ? VOTE_DELETED : VOTE_FREE,
                                   .listeners = 2};
    case CALL_INSPECT:
        return is_good ? held : (struct call_reply){.vote = VOTE_FREE};
    case CALL_SLOTS:
        return (struct call_reply){.vote = VOTE_DONE,
                                   .pttl_ms = 500,
                                   .slots = span_of(is_good ? "000" : "111")};
    case CALL_SCAN:
        return (struct call_reply){.vote =
                                       is_good ? VOTE_DONE : VOTE_UNREADABLE,
                                   .names = span_of("3:o:a3:o:b")};
    default:
        return (struct call_reply){.vote = VOTE_DONE};
    }
}

/* The nodes answer all that is asked, and what is asked because of it. */
static void answer_all(bool is_good)
{
    int i = 0;
    play_answer_all_probes();
    for (int answered = 0; answered < ANSWERS_MAX && i < play.sent_count; i++) {
        struct play_call *sent = &play.sent[i];
        if (sent->is_answered)
            continue;
        answered++;
        if (sent->call.kind == CALL_PROBE)
            play_answer_probes(sent->node, PROBE_ADMITTED, "");
        else
            play_reply(sent, make_reply(sent, is_good));
        if (i < CALLS_KEPT)
            continue;
        i++;
        play.sent_count -= i;
        memmove(play.sent, play.sent + i,
                (size_t)play.sent_count * sizeof *play.sent);
        i = -1;
    }
}

/* Their timeouts pass, and whoever waits for a lock is told so. */
static void let_pass(void)
{
    for (int64_t us = 0; us < A_WHILE_US; us += STEP_US) {
        play_advance(STEP_US);
        if (play.sent_count > CALLS_KEPT)
            play.sent_count = 0; /* never answered */
    }
}

static void go_on_well(void)
{
    answer_all(true);
}

static void go_on_badly(void)
{
    answer_all(false);
}

static void lose_all(void)
{
    play_nodes_down(PLAY_NODES);
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_connect(i);
    play_answer_all_probes();
}

static void lose_one(void)
{
    play_reconnect(0);
    play_answer_probes(0, PROBE_ADMITTED, "");
    answer_all(true);
}

static void announce(void)
{
    for (int i = 0; i < PLAY_NODES; i++) {
        engine_on_listener_up(play.engine, i);
        engine_on_subscribed(play.engine, i, span_of(""));
        engine_on_subscribed(play.engine, i, PLAY_RESOURCE);
        engine_on_announced(play.engine, i, PLAY_RESOURCE, 9);
        engine_on_announced(play.engine, i, span_of("pool" NAMES_SLOT "1"), 9);
    }
    answer_all(true);
    for (int i = 0; i < PLAY_NODES; i++)
        engine_on_listener_down(play.engine, i);
}

static const struct {
    const char *name;
    void (*go_on)(void);
} ends[] = {
    {"the nodes answer", go_on_well}, {"they refuse", go_on_badly},
    {"they are silent", let_pass},    {"they are lost", lose_all},
    {"one is lost", lose_one},        {"they announce", announce},
};

/* ---- afterwards --------------------------------------------------------- */

/* Answers what is due, for so long. */
static void serve(int64_t us)
{
    for (int64_t passed_us = 0; passed_us < us; passed_us += STEP_US) {
        play_advance(STEP_US);
        answer_all(true);
        play.sent_count = 0;
    }
}

static void expect_answered(int client)
{
    ck_assert_msg(clients[client].is_answered, "client %d of %d", client,
                  clients_count);
}

/* A new client of each kind is served as if nothing had been. */
static void expect_alive(void)
{
    clients_count = 0;
    static const struct engine_acquire asks[] = {
        ASK(NAME("new")), ASK(POOL, KEY), ASK(POOL), ASK(WAIT)};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        acquire(asks[i]);
    begin_watch();
    begin_scan();
    serve(2 * WAIT_MS * INT64_C(1000));
    for (int i = 0; i < clients_count; i++)
        expect_answered(i);
    leave_all();
    answer_all(true);
    serve(WAIT_MS * INT64_C(1000));
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 0);
}

static void play_pair(int what, int others, int leave, int end)
{
    const struct engine_settings settings = play_settings;
    play_begin_with(&settings);
    play.on_answer = note_answer;
    play_nodes_up();
    play.sent_count = clients_count = 0;
    for (int i = 0; i <= others; i++)
        begin(what);
    leaves[leave].leave();
    ends[end].go_on();
    let_pass();
    for (int i = 0; i < clients_count; i++)
        ck_assert_msg(clients[i].op == 0 || clients[i].is_answered,
                      "%s, %s, %s: client %d has no answer", begun[what].name,
                      leaves[leave].name, ends[end].name, i);
    leave_all();
    if (leaves[leave].leave == stop || leaves[leave].leave == stop_waiting)
        return;
    lose_all();
    expect_alive();
}

enum {
    LEAVES = sizeof leaves / sizeof *leaves,
    ENDS = sizeof ends / sizeof *ends
};

TEST_EACH(who_leaves_alone_takes_what_is_under_way_along, begun)
{
    for (int i = 0; i < LEAVES * ENDS; i++) {
        play_pair(_i, 0, i / ENDS, i % ENDS);
        play_end();
    }
}

/* Another one wants the same. */
TEST_EACH(who_leaves_others_spoils_nothing_for_them, begun)
{
    for (int i = 0; i < LEAVES * ENDS; i++) {
        play_pair(_i, 1, i / ENDS, i % ENDS);
        play_end();
    }
}

/* The process ends at once, on a second signal. */
TEST_EACH(the_engine_ends_with_anything_under_way, begun)
{
    play_begin();
    play.on_answer = note_answer;
    clients_count = 0;
    begin(_i);
    begin(_i);
    engine_stop(play.engine);
    play_end();
}
