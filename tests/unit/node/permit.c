#include "permit.h"

#include <stdlib.h>

#include "../../lib/suite/suite.h"

/* ---- fields -------------------------------------------------------------- */

const char *permit_field(const char *name)
{
    return textf("%s",
                 master_text(&live.master, "HGET " PERMIT_STATE " %s", name));
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
    const char *digits = textf("%lld", (long long)value);
    permit_set(name, digits);
}

void permit_drop(const char *name)
{
    (void)master_integer(&live.master, "HDEL " PERMIT_STATE " %s", name);
}

bool permit_has_state(void)
{
    return master_integer(&live.master, "EXISTS " PERMIT_STATE) == 1;
}

const char *permit_mark_of(const char *nonce)
{
    const char *mark = textf("%.*s", CALL_STATE_MAX, permit_field("mark"));
    ck_assert_msg(live_is_mark_of(mark, nonce), "%s is not of %s", mark, nonce);
    return mark;
}

/* ---- looks --------------------------------------------------------------- */

enum call_look_word permit_ask(const struct call *call)
{
    ck_assert_int_eq(live_ask(call), VOTE_DONE);
    return live.reply.look.word;
}

enum call_look_word permit_look_with(const char *nonce)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.nonce = span_of(nonce);
    return permit_ask(&call);
}

enum call_look_word permit_look(void)
{
    return permit_look_with(LIVE_NONCE);
}

enum call_look_word permit_probe(void)
{
    return permit_look_with("");
}

enum call_look_word permit_look_above(int64_t floor, const char *nonce)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.nonce = span_of(nonce);
    call.floor = floor;
    return permit_ask(&call);
}

enum call_look_word permit_tell(const char *witnesses)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.witnesses = span_of(witnesses);
    return permit_ask(&call);
}

enum call_look_word permit_renew(const char *latest)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.nonce = span_of(PERMIT_OTHER_NONCE);
    call.latest = span_of(latest);
    call.is_renewing = true;
    return permit_ask(&call);
}

/* ---- what changes it ----------------------------------------------------- */

int permit_admit(const char *mark)
{
    struct call call = live_call(CALL_ADMIT, "", "");
    call.mark = span_of(mark);
    return live_ask(&call);
}

int permit_readmit(const char *found)
{
    struct call call = live_call(CALL_READMIT, "", "");
    call.found = span_of(found);
    return live_ask(&call);
}

int permit_revoke(const char *found)
{
    struct call call = live_call(CALL_REVOKE, "", "");
    call.nonce = span_of(PERMIT_OTHER_NONCE);
    call.found = span_of(found);
    return live_ask(&call);
}

void permit_restart(int64_t beat)
{
    permit_drop("mark");
    permit_set("admit", PERMIT_OLD);
    permit_set("durable", "1");
    permit_set("until", "0");
    permit_set("top", "0");
    permit_set_number("beat", beat);
    permit_set_number("max_ttl", LIVE_TTL_MS);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
}
