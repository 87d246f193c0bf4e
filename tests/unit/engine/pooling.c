#include "pooling.h"

#include <check.h>
#include <stdio.h>

#include "waiting.h"

static engine_op ask(int limit, int permits, int64_t wait_ms,
                     const char *key_hash)
{
    return waiting_acquire((struct engine_acquire){
        .resource = span_of("pool"),
        .owner = span_of("web-3"),
        .key_hash = span_of(key_hash),
        .wait_ms = wait_ms,
        .limit = limit,
        .permits = permits,
    });
}

engine_op pooling_ask(int limit, int permits, int64_t wait_ms)
{
    return ask(limit, permits, wait_ms, "");
}

engine_op pooling_ask_with_key(int limit, int permits, const char *key_hash)
{
    return ask(limit, permits, 0, key_hash);
}

void pooling_grant(void)
{
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_GRANTED);
}

void pooling_hold(void)
{
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, PLAY_TOKEN_OF(1));
}

void pooling_tell(int nodes, const char *letters)
{
    for (int i = 0; i < nodes; i++)
        pooling_tell_from(i, letters);
}

void pooling_tell_from(int node, const char *letters)
{
    PLAY_REPLY(CALL_SLOTS, node, .vote = VOTE_DONE, .pttl_ms = 5000,
               .slots = span_of(letters));
}

int pooling_tries(void)
{
    return play_count(CALL_ACQUIRE) / PLAY_NODES;
}

int pooling_queries(void)
{
    return play_count(CALL_SLOTS) / PLAY_NODES;
}

const char *pooling_tried(void)
{
    for (int i = play.sent_count - 1; i >= 0; i--)
        if (play.sent[i].call.kind == CALL_ACQUIRE)
            return play.sent[i].resource;
    return "";
}

const char *pooling_win(int limit)
{
    static char names[8][64];
    static int next;
    char *name = names[next++ % 8];
    engine_op op = pooling_ask(limit, 1, 0);
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    struct span resource = play_result(op)->resource;
    snprintf(name, sizeof names[0], "%.*s", (int)resource.len, resource.ptr);
    engine_close(play.engine, op);
    return name;
}

void pooling_release(const char *resource, int64_t number)
{
    (void)engine_release(play.engine, span_of(resource), play_token(number),
                         NULL);
}
