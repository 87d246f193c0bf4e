#include "holders.h"

#include <stdlib.h>

#include "../../lib/suite/suite.h"

enum { FIRST_SLOT = 7, SHOWN_MAX = 20 };

static const char *const names[SEVERAL] = {"a", "b", "c"};

static struct call make_call(enum call_kind kind, int lock, const char *token)
{
    struct call call = several_call(kind, names[lock], token);
    call.slots[0] = (uint16_t)(FIRST_SLOT + lock);
    return call;
}

int holders_acquire(int lock, const char *token, int64_t number)
{
    struct call call = make_call(CALL_ACQUIRE, lock, token);
    if (number != 0)
        call.number = number;
    return live_ask(&call);
}

int holders_ask(enum call_kind kind, int lock, const char *token,
                int64_t ttl_ms)
{
    struct call call = make_call(kind, lock, token);
    call.ttl_ms = ttl_ms;
    return live_ask(&call);
}

const char *holders_of(int lock)
{
    static char text[SHOWN_MAX + 1];
    long long count = master_integer(&live.master, "ZCARD p:%s", names[lock]);
    int shown = 0;
    ck_assert_int_le(count, SHOWN_MAX);
    for (int i = 0; i < count; i++) {
        const char *token = master_text(
            &live.master, "EVAL %s 1 p:%s %d",
            "return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1])[1]",
            names[lock], i);
        if (strcmp(token, HOLDERS_WISH) == 0)
            continue;
        const char *name = tokens_name(token);
        ck_assert_int_eq(name[0], '~');
        text[shown++] = name[1];
    }
    text[shown] = '\0';
    return text;
}

static int64_t now_ms(void)
{
    return atoll(master_text(&live.master, "EVAL %s 0",
                             "local t = redis.call('TIME') return string."
                             "format('%.0f', t[1] * 1000 + math.floor(t[2] / "
                             "1000))"));
}

int64_t holders_left_ms(int lock, const char *token)
{
    const char *score = master_text(&live.master, "ZSCORE p:%s %s", names[lock],
                                    live_token(token));
    ck_assert_str_ne(score, "");
    int64_t ends_ms = atoll(score);
    return ends_ms - now_ms();
}

int64_t holders_wish_ms(int lock)
{
    const char *score =
        master_text(&live.master, "EVAL %s 1 p:%s %s",
                    "return redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0'",
                    names[lock], HOLDERS_WISH);
    return atoll(score) - now_ms();
}

void holders_add(int lock, const char *token, int64_t left_ms)
{
    int64_t ends_ms = now_ms() + left_ms;
    master_integer(&live.master, "ZADD p:%s %lld %s", names[lock],
                   (long long)ends_ms, live_token(token));
    const char *plus = strchr(live_token(token), '+');
    if (plus != NULL) {
        master_integer(&live.master, "HSET p:redlockd:repeat:%s p:%s %s",
                       textf("%.*s", KEY_HASH_LEN, plus + 1), names[lock],
                       live_token(token));
    }
    long long last_ms = atoll(master_text(
        &live.master, "EVAL %s 1 p:%s",
        "return redis.call('ZRANGE', KEYS[1], 0, 0, 'REV', 'WITHSCORES')[2]",
        names[lock]));
    if (left_ms > 0)
        master_integer(&live.master, "PEXPIREAT p:%s %lld", names[lock],
                       last_ms);
}

const char *holders_numbers(int slot)
{
    return master_text(&live.master, "HGET p:redlockd:state %ds",
                       FIRST_SLOT + slot);
}

bool holders_are_told(int lock, int64_t count, int64_t low_ms, int64_t high_ms)
{
    struct call call = make_call(CALL_INSPECT, lock, "");
    int vote = live_ask(&call);
    return vote == VOTE_HELD && live.reply.holders == count &&
           live.reply.pttl_ms > low_ms && live.reply.pttl_ms <= high_ms &&
           live.value[0] == '\0';
}

bool holders_let_in(int lock)
{
    return master_integer(&live.master, "SETNX p:%s foreign", names[lock]) == 1;
}
