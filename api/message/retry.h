/*
 * When a client should try again: a random part of a range, so that clients
 * that were refused together do not come back together. A range is a fraction
 * of what is known of the matter.
 */
#ifndef REDLOCKD_RETRY_H
#define REDLOCKD_RETRY_H

#include <stdint.h>

/* Nobody is told to wait longer. */
enum { RETRY_MAX_MS = 1000 };

/* 1 to range_ms, each as likely; 1 to RETRY_MAX_MS if that is less. */
int64_t retry_within_ms(int64_t range_ms);

/*
 * After a lock was found held. A lock that has been held for long will be held
 * for long, unless its TTL ends. held_ms, remaining_ms: -1 unknown.
 */
int64_t retry_held_ms(int64_t held_ms, int64_t remaining_ms);

/*
 * After an extension of a lock with this TTL failed: there must be time for
 * several attempts in what is left of the validity, a third of the TTL behind
 * its renewal.
 */
int64_t retry_extend_ms(int64_t ttl_ms);

#endif
