/*
 * The same calls on a real node and on nodestate.h, which the rivals play on:
 * they must give the same answers and end in the same state. A difference is
 * printed with the seed.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "../nodestate.h"
#include "permit.h"

enum { SEEDS = 20, CALLS = 80 };

#define NAMES_A "00000000000000aa"
#define NAMES_B "00000000000000bb"

static uint64_t random_state;
static struct nodestate state;
static const char *memory; /* the node's replication ID */

static int draw(int below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (int)((random_state >> 33) % (unsigned)below);
}

/* Few of each, so that they meet again. */
static void draw_admission(char *text, bool is_whole)
{
    static const char *const admits[] = {"1:f:n:run", "1:f:n:old", "1:g:n:run",
                                         "1:f:m:run", "2:f:n:run"};
    const char *admit = admits[draw(25) == 0 ? 4 : draw(6) % 4];
    snprintf(text, sizeof(nodestate_text), "%s%s%s", admit, is_whole ? ":" : "",
             is_whole ? memory : "");
}

static void draw_mark(char *text)
{
    static const char *const lives[] = {"1:run:", "1:old:", "2:run:"};
    static const char *const ends[] = {":5:aaaaaaaaaaaaaaaa", ":0:first-aaaa",
                                       ":5:bbbbbbbbbbbbbbbb"};
    snprintf(text, sizeof(nodestate_text), "%s%s%s", lives[draw(3)],
             draw(4) ? memory : "other", ends[draw(3)]);
}

static void draw_call(struct nodestate_call *call)
{
    static const char *const nonces[] = {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb",
                                         "first-aaaa"};
    *call = (struct nodestate_call){
        .kind = (enum admission_action_kind)draw(ADMISSION_REVOKE + 1),
        .max_ttl_ms = 60000 + draw(2) * 1000,
        .floor = draw(3) ? 0 : state.beat + draw(3) - 1,
        .median_us = draw(4) ? 5 + draw(3) : 0,
        .deadline_us = draw(3) ? live_node_now_us() + 1000000000 : 1,
        .is_durable = draw(4) != 0,
        .is_objecting = draw(2),
    };
    if (call->floor < 0)
        call->floor = 0;
    draw_admission(call->admit, false);
    if (call->kind == ADMISSION_LOOK || call->kind == ADMISSION_REVOKE)
        strcpy(call->nonce, nonces[draw(3)]);
    if (call->kind == ADMISSION_PROBE || call->kind == ADMISSION_LOOK)
        snprintf(call->told, sizeof call->told,
                 draw(2) ? NAMES_A "=%d " NAMES_B "=%d" : NAMES_B "=%d",
                 draw(9), draw(9));
    if (draw(2))
        draw_mark(call->mark);
    else
        strcpy(call->mark, state.mark);
    if (draw(2))
        draw_admission(call->found, true);
    else
        strcpy(call->found, state.admit);
}

static void ask_node(const struct nodestate_call *it)
{
    static const enum call_kind kinds[] = {
        [ADMISSION_PROBE] = CALL_LOOK,    [ADMISSION_LOOK] = CALL_LOOK,
        [ADMISSION_ADMIT] = CALL_ADMIT,   [ADMISSION_READMIT] = CALL_READMIT,
        [ADMISSION_REVOKE] = CALL_REVOKE,
    };
    struct call call = {
        .kind = kinds[it->kind],
        .admit = span_of(it->admit),
        .nonce = span_of(it->nonce),
        .found = span_of(it->found),
        .mark = span_of(it->mark),
        .witnesses = span_of(it->told),
        .max_ttl_ms = it->max_ttl_ms,
        .floor = it->floor,
        .median_us = it->median_us,
        .node_deadline_us = it->deadline_us,
        .is_durable = it->is_durable,
        .is_objecting = it->is_objecting,
    };
    (void)live_ask(&call);
}

static void compare_looks(const struct nodestate_reply *reply, const char *at)
{
    const struct call_look *look = &live.reply.look;
    ck_assert_int_eq(live.reply.vote, VOTE_DONE);
    ck_assert_msg(look->word == reply->look.word, "%s: %d, not %d", at,
                  (int)look->word, (int)reply->look.word);
    ck_assert_msg(strcmp(live.admit, reply->admit) == 0, "%s: admit", at);
    ck_assert_msg(strcmp(live.mark, reply->mark) == 0, "%s: mark", at);
    ck_assert_msg(strcmp(live.witnesses, reply->witnesses) == 0,
                  "%s: %s, not %s", at, live.witnesses, reply->witnesses);
    ck_assert_msg(look->max_ttl_ms == reply->look.max_ttl_ms, "%s: max_ttl_ms",
                  at);
    ck_assert_msg(look->is_durable == reply->look.is_durable, "%s: is_durable",
                  at);
    ck_assert_msg(look->beat == reply->look.beat, "%s: beat", at);
    ck_assert_msg(look->seen_us == reply->look.seen_us, "%s: seen_us", at);
    ck_assert_msg(look->voted_us == reply->look.voted_us, "%s: voted_us", at);
}

static void compare_states(const char *at)
{
    ck_assert_msg(permit_has_state() == state.exists, "%s: state", at);
    ck_assert_msg(strcmp(permit_field("admit"), state.admit) == 0,
                  "%s: admit %s", at, state.admit);
    ck_assert_msg(strcmp(permit_field("mark"), state.mark) == 0, "%s: mark %s",
                  at, state.mark);
    ck_assert_msg(permit_number("max_ttl") == state.max_ttl_ms, "%s: max_ttl",
                  at);
    ck_assert_msg(permit_number("durable") == state.is_durable, "%s: durable",
                  at);
    ck_assert_msg(permit_number("beat") == state.beat, "%s: beat", at);
    ck_assert_msg(permit_number("seen") == state.seen_us, "%s: seen", at);
    ck_assert_msg(permit_number("voted") == state.voted_us, "%s: voted", at);
}

/* A lock that is free is asked for. */
static void promise(int number, const char *at)
{
    nodestate_text admission;
    char resource[32];
    snprintf(resource, sizeof resource, "r%d", number);
    draw_admission(admission, true);
    struct call call = live_call(CALL_ACQUIRE, resource, "A");
    call.admit = span_of(draw(3) ? state.admit : admission);
    call.median_us = 5 + draw(3);
    if (call.admit.len == 0)
        call.admit = span_of("1:f:n:run");
    char asked[sizeof admission];
    asked[span_copy(asked, call.admit)] = '\0';
    int64_t beat = nodestate_promise(&state, memory, asked, call.median_us);
    ck_assert_msg(live_ask(&call) ==
                      (beat != 0 ? VOTE_GRANTED : VOTE_QUARANTINED),
                  "%s", at);
    ck_assert_msg(live.reply.beat == beat, "%s", at);
}

static void act(const char *at)
{
    struct nodestate_call call;
    struct nodestate_reply reply;
    draw_call(&call);
    ask_node(&call);
    nodestate_run(&state, memory, &call, live.reply.node_now_us, &reply);
    if (call.kind == ADMISSION_PROBE || call.kind == ADMISSION_LOOK)
        compare_looks(&reply, at);
    else
        ck_assert_msg((live.reply.vote == VOTE_DONE) == reply.is_done,
                      "%s: kind %d", at, (int)call.kind);
    ck_assert_msg(live.reply.beat == reply.beat, "%s: kind %d: %d, not %d", at,
                  (int)call.kind, (int)live.reply.beat, (int)reply.beat);
}

static void play(int seed)
{
    random_state = (uint64_t)seed;
    master_text(&live.master, "FLUSHALL");
    memset(&state, 0, sizeof state);
    for (int i = 0; i < CALLS; i++) {
        char at[64];
        snprintf(at, sizeof at, "seed %d, call %d", seed, i);
        if (draw(20) == 0) {
            master_text(&live.master, "FLUSHALL");
            memset(&state, 0, sizeof state);
        }
        if (draw(6) == 0)
            promise(i, at);
        else
            act(at);
        compare_states(at);
    }
}

START_TEST(the_simulated_node_does_what_the_real_one_does)
{
    memory = strrchr(live.admission, ':') + 1;
    for (int seed = 0; seed < SEEDS; seed++)
        play(seed);
}
END_TEST

Suite *check_same(void);

Suite *check_same(void)
{
    Suite *suite = suite_create("same");
    TCase *tc = tcase_create("same");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, live_setup, live_teardown);
    tcase_add_test(tc, the_simulated_node_does_what_the_real_one_does);
    suite_add_tcase(suite, tc);
    return suite;
}
