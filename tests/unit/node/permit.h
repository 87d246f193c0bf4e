/*
 * The permission on a real node, over live.h: its fields, and the calls that
 * read and change it.
 */
#ifndef REDLOCKD_TEST_PERMIT_H
#define REDLOCKD_TEST_PERMIT_H

#include "live.h"

#define PERMIT_STATE "p:redlockd:state"
#define PERMIT_OTHER_NONCE "9999999999:"

/* An admission of an older life, and its birth. */
#define PERMIT_OLD_BIRTH "16000000000000001234567890"
#define PERMIT_OLD                                                             \
    LIVE_NAME PERMIT_OLD_BIRTH ":3:old:"                                       \
                               "ffffffffffffffffffffffffffffffffffffffff"

/* A field's text ("": none) or number, and how to write it. */
const char *permit_field(const char *name);
long long permit_number(const char *name);
void permit_set(const char *name, const char *value);
void permit_set_number(const char *name, int64_t value);
void permit_drop(const char *name);

bool permit_has_state(void);

/* A look or a probe, as this call says, or as live_call makes it. */
enum call_look_word permit_ask(const struct call *call);
enum call_look_word permit_look(void);
enum call_look_word permit_look_with(const char *nonce);
enum call_look_word permit_probe(void);

/* A look by a server that knows this floor; nonce "": a probe. */
enum call_look_word permit_look_above(int64_t floor, const char *nonce);

/* A look that tells the node what is known of others. */
enum call_look_word permit_tell(const char *witnesses);

/* A look by a server that knows this birth under the node's name, and may mark
 * it anew. */
enum call_look_word permit_renew(const char *latest);

#define PERMIT_ASSERT_WORD(is, word) ck_assert_int_eq((int)(is), (int)(word))

/* The node's mark, which must be new and of this nonce. */
const char *permit_mark_of(const char *nonce);

int permit_admit(const char *mark);
int permit_readmit(const char *found); /* with live.marked */

/* Leaves a mark of PERMIT_OTHER_NONCE. */
int permit_revoke(const char *found);

/* Makes it look like a durable node after a restart, with this beat. */
void permit_restart(int64_t beat);

#endif
