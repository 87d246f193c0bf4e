/*
 * The same calls on a real node and on nodestate.h, which the rivals play on:
 * they must answer the same and leave the same behind. The seed is printed
 * with what differs.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "nodestate.h"
#include "permit.h"

enum { SEEDS = 15, CALLS = 60 };

static uint64_t random_state;
static struct nodestate state;

static int draw(int below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (int)((random_state >> 33) % (unsigned)below);
}

/* Few of each, so that they meet again. */
static void draw_call(struct nodestate_call *call)
{
    static const char *const admits[] = {"1:f:run", "1:f:old", "1:g:run",
                                         "2:f:run"};
    static const char *const nonces[] = {"", "aaaaaaaaaaaaaaaa",
                                         "bbbbbbbbbbbbbbbb"};
    static const char *const marks[] = {
        "1:run:aaaaaaaaaaaaaaaa", "1:run:bbbbbbbbbbbbbbbb",
        "1:old:aaaaaaaaaaaaaaaa", "2:run:aaaaaaaaaaaaaaaa"};
    *call = (struct nodestate_call){
        .kind = (enum guard_action_kind)draw(GUARD_REVOKE + 1),
        .max_ttl_ms = 60000 + draw(2) * 1000,
        .is_durable = draw(4) != 0,
    };
    int epoch_2 = draw(20) == 0;
    strcpy(call->admit, admits[epoch_2 ? 3 : draw(4) % 3]);
    if (call->kind == GUARD_LOOK || call->kind == GUARD_REVOKE)
        strcpy(call->nonce, nonces[1 + draw(2)]);
    if (call->kind == GUARD_ADMIT || call->kind == GUARD_REVOKE)
        strcpy(call->found, draw(2) ? state.mark : marks[draw(4)]);
    if (call->kind == GUARD_READMIT) {
        strcpy(call->found, draw(2) ? state.admit : admits[draw(3)]);
        call->beat_us = draw(2) ? 0 : state.beat_us + draw(2);
    }
}

static void ask_node(const struct nodestate_call *it)
{
    static const enum script_kind kinds[] = {
        [GUARD_PEEK] = SCRIPT_LOOK,     [GUARD_LOOK] = SCRIPT_LOOK,
        [GUARD_ADMIT] = SCRIPT_ADMIT,   [GUARD_READMIT] = SCRIPT_READMIT,
        [GUARD_REVOKE] = SCRIPT_REVOKE,
    };
    struct script_call call = {
        .kind = kinds[it->kind],
        .admit = span_of(it->admit),
        .nonce = span_of(it->nonce),
        .found = span_of(it->found),
        .max_ttl_ms = it->max_ttl_ms,
        .beat_us = it->beat_us,
        .is_durable = it->is_durable,
    };
    (void)live_ask(&call);
}

static void compare_looks(const struct nodestate_reply *reply, const char *at)
{
    const struct script_look *look = &live.reply.look;
    ck_assert_int_eq(live.reply.vote, VOTE_DONE);
    ck_assert_msg(look->word == reply->look.word, "%s: %d, not %d", at,
                  (int)look->word, (int)reply->look.word);
    ck_assert_msg(strcmp(live.admit, reply->admit) == 0, "%s", at);
    ck_assert_msg(strcmp(live.mark, reply->mark) == 0, "%s", at);
    ck_assert_msg(look->max_ttl_ms == reply->look.max_ttl_ms, "%s", at);
    ck_assert_msg(look->is_durable == reply->look.is_durable, "%s", at);
    ck_assert_msg(look->beat_us == reply->look.beat_us, "%s", at);
}

static void compare_states(const char *at)
{
    ck_assert_msg(permit_has_state() == state.exists, "%s", at);
    ck_assert_msg(strcmp(permit_field("admit"), state.admit) == 0, "%s", at);
    ck_assert_msg(strcmp(permit_field("mark"), state.mark) == 0, "%s", at);
    ck_assert_msg(permit_number("max_ttl") == state.max_ttl_ms, "%s", at);
    ck_assert_msg(permit_number("durable") == state.is_durable, "%s", at);
    ck_assert_msg(permit_number("beat") == state.beat_us, "%s", at);
}

static void play(int seed)
{
    random_state = (uint64_t)seed;
    master_text(&live.master, "FLUSHALL");
    memset(&state, 0, sizeof state);
    for (int i = 0; i < CALLS; i++) {
        struct nodestate_call call;
        struct nodestate_reply reply;
        char at[64];
        snprintf(at, sizeof at, "seed %d, call %d", seed, i);
        if (draw(20) == 0) {
            master_text(&live.master, "FLUSHALL");
            memset(&state, 0, sizeof state);
        }
        draw_call(&call);
        ask_node(&call);
        nodestate_run(&state, &call, live.reply.node_now_us, &reply);
        if (call.kind == GUARD_PEEK || call.kind == GUARD_LOOK)
            compare_looks(&reply, at);
        else
            ck_assert_msg((live.reply.vote == VOTE_DONE) == reply.is_done,
                          "%s: kind %d", at, (int)call.kind);
        compare_states(at);
    }
}

START_TEST(the_simulated_node_does_what_the_real_one_does)
{
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
