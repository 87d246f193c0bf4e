/*
 * The permission on a real node, over live.h: its fields, and the calls that
 * read and change it.
 */
#ifndef REDLOCKD_TEST_PERMIT_H
#define REDLOCKD_TEST_PERMIT_H

#include "live.h"

#define PERMIT_STATE "p:redlockd:state"
#define PERMIT_OTHER_NONCE "ffffffffffffffff"

/* An admission of an older life. */
#define PERMIT_OLD                                                             \
    "1:fingerprint:0123456789abcdef:old:"                                      \
    "ffffffffffffffffffffffffffffffffffffff"                                   \
    "ff"

/* A field's text ("": none) or number, and how to write it. */
const char *permit_field(const char *name);
long long permit_number(const char *name);
void permit_set(const char *name, const char *value);
void permit_set_number(const char *name, int64_t value);

bool permit_has_state(void);

/* A look that makes LIVE_MARK or another, or a probe. */
enum call_look_word permit_look(void);
enum call_look_word permit_look_with(const char *nonce);
enum call_look_word permit_probe(void);

/* A look by a server that knows this floor; nonce "": a probe. */
enum call_look_word permit_look_above(int64_t floor, const char *nonce);

/* A look that tells the node what is known of others. */
enum call_look_word permit_tell(const char *witnesses);

#define PERMIT_ASSERT_WORD(is, word) ck_assert_int_eq((int)(is), (int)(word))

int permit_admit(const char *mark);
int permit_readmit(const char *found); /* with the first mark */

/* Leaves permit_other_mark(). */
int permit_revoke(const char *found);
const char *permit_other_mark(void);

/* Makes it look like a durable node after a restart, with this beat. */
void permit_restart(int64_t beat);

#endif
