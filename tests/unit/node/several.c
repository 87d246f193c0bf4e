#include "several.h"

#include <stdlib.h>

#include "../../lib/suite/suite.h"

enum { FIRST_SLOT = 7 };

static const char *const keys[SEVERAL] = {"p:a", "p:b", "p:c"};

struct call several_call(enum call_kind kind, const char *names,
                         const char *token)
{
    struct call call = live_call(kind, names, token);
    for (int i = 0; i < NAMES_MAX; i++)
        call.slots[i] = (uint16_t)(FIRST_SLOT + i);
    return call;
}

int several_run(enum call_kind kind, const char *names, const char *token)
{
    struct call call = several_call(kind, names, token);
    return live_ask(&call);
}

const char *several_value(int lock)
{
    return tokens_name(master_text(&live.master, "GET %s", keys[lock]));
}

const char *several_values(void)
{
    static char values[SEVERAL + 1];
    for (int i = 0; i < SEVERAL; i++) {
        const char *value = several_pttl(i) == -2 ? "-" : several_value(i);
        values[i] = *value;
    }
    return values;
}

long long several_pttl(int lock)
{
    return master_integer(&live.master, "PTTL %s", keys[lock]);
}

void several_set(int lock, const char *value, int64_t pttl_ms)
{
    ck_assert_str_eq(master_text(&live.master, "SET %s %s PX %lld", keys[lock],
                                 live_token(value), (long long)pttl_ms),
                     "OK");
}

long long several_slot(int lock)
{
    bool is_there = master_integer(&live.master, "HEXISTS p:redlockd:state %d",
                                   FIRST_SLOT + lock) == 1;
    return is_there
               ? atoll(master_text(&live.master, "HGET p:redlockd:state %d",
                                   FIRST_SLOT + lock))
               : 0;
}

void several_raise(int lock, int64_t number)
{
    master_integer(&live.master, "HSET p:redlockd:state %d %lld",
                   FIRST_SLOT + lock, (long long)number);
}

long long several_beat(void)
{
    return atoll(master_text(&live.master, "HGET p:redlockd:state beat"));
}

void several_restrict(const char *rights)
{
    const char *command =
        textf("ACL SETUSER default resetkeys ~p:redlockd:state %s", rights);
    ck_assert_str_eq(master_text(&live.master, command), "OK");
}
