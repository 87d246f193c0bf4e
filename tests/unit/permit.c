#include "permit.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

const char *permit_field(const char *name)
{
    return master_text(&live.master, "HGET " PERMIT_STATE " %s", name);
}

long long permit_number(const char *name)
{
    return atoll(permit_field(name));
}

void permit_set(const char *name, const char *value)
{
    (void)master_integer(&live.master, "HSET " PERMIT_STATE " %s %b", name,
                         value, strlen(value));
}

void permit_set_number(const char *name, int64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    permit_set(name, digits);
}

bool permit_has_state(void)
{
    return master_integer(&live.master, "EXISTS " PERMIT_STATE) == 1;
}

enum script_look_word permit_look_with(const char *nonce)
{
    struct script_call call = live_call(SCRIPT_LOOK, "", "");
    call.nonce = span_of(nonce);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    return live.reply.look.word;
}

enum script_look_word permit_look(void)
{
    return permit_look_with(LIVE_NONCE);
}

enum script_look_word permit_peek(void)
{
    return permit_look_with("");
}

enum vote permit_admit(const char *mark)
{
    struct script_call call = live_call(SCRIPT_ADMIT, "", "");
    call.found = span_of(mark);
    return live_ask(&call);
}

enum vote permit_readmit(const char *found, int64_t beat_us)
{
    struct script_call call = live_call(SCRIPT_READMIT, "", "");
    call.found = span_of(found);
    call.beat_us = beat_us;
    return live_ask(&call);
}

enum vote permit_revoke(const char *spent)
{
    struct script_call call = live_call(SCRIPT_REVOKE, "", "");
    call.nonce = span_of("ffffffffffffffff");
    call.found = span_of(spent);
    return live_ask(&call);
}

/* As a durable node is found after a restart; its beat is so old. */
int64_t permit_restarted(int64_t age_us)
{
    int64_t beat_us = live_node_now_us() - age_us;
    permit_set("admit", PERMIT_OLD);
    permit_set("durable", "1");
    permit_set_number("beat", beat_us);
    permit_set_number("max_ttl", LIVE_TTL_MS);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    return beat_us;
}
