/*
 * The permission on a real node, behind live.h: its fields, and the calls that
 * look at it and change it.
 */
#ifndef REDLOCKD_TEST_PERMIT_H
#define REDLOCKD_TEST_PERMIT_H

#include "live.h"

#define PERMIT_STATE "p:redlockd:state"
#define PERMIT_OLD "1:fingerprint:old" /* an admission of an older life */
#define PERMIT_OTHER_MARK "1:run:ffffffffffffffff"

/* A field's text ("": none) or number, and how to write it. */
const char *permit_field(const char *name);
long long permit_number(const char *name);
void permit_set(const char *name, const char *value);
void permit_set_number(const char *name, int64_t value);

bool permit_has_state(void);

/* A look that makes LIVE_MARK or another, or a peek. */
enum script_look_word permit_look(void);
enum script_look_word permit_look_with(const char *nonce);
enum script_look_word permit_peek(void);

#define PERMIT_ASSERT_WORD(is, word) ck_assert_int_eq((int)(is), (int)(word))

enum vote permit_admit(const char *mark);
enum vote permit_readmit(const char *found, int64_t beat_us);

/* Leaves PERMIT_OTHER_MARK. */
enum vote permit_revoke(const char *spent);

/* As a durable node is found after a restart; its beat is so old. */
int64_t permit_restarted(int64_t age_us);

#endif
