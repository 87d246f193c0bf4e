/* SPDX-License-Identifier: MIT */
/*
 * Keys and slots of a simulated node, as a call names them, and what is
 * promised about them.
 */
#ifndef REDLOCKD_TEST_SIMKEYS_H
#define REDLOCKD_TEST_SIMKEYS_H

#include "simnode.h"

/* The key of one of the call's names, by its place; NULL: there is none. */
const struct simkey *simkeys_at(const struct simbatch *batch,
                                const struct simcall *call, int place);

/* Whether it has just this value. */
bool simkeys_has(const struct simkey *key, struct span value);

/* What is left of the key's TTL; 0: there is none. */
int64_t simkeys_left_ms(const struct simbatch *batch, const struct simkey *key);

/* Its text, for the rest of the TTL that it has, or this one. */
void simkeys_set(const struct simbatch *batch, const struct simcall *call,
                 int resource, int64_t ttl_ms);

/* What is told of a key; NULL: that there is none. */
enum vote simkeys_probe(const struct simbatch *batch, const struct simkey *key,
                        struct simreply *answer);

/* The node is above maxmemory, and sets nothing new. */
enum vote simkeys_lack_memory(struct simreply *answer);

/*
 * What a replication or a forced release leaves behind, so that no other
 * replication of its token follows it; and whether such a tombstone is there.
 */
void simkeys_bury(const struct simbatch *batch, const struct simcall *call);
bool simkeys_is_buried(const struct simbatch *batch,
                       const struct simcall *call);

/* The number in the slot of a name, and another one there. */
int64_t simkeys_number(const struct simbatch *batch, const struct simcall *call,
                       int place);
void simkeys_write(const struct simbatch *batch, const struct simcall *call,
                   int place, int64_t number);

/* Which numbers its readers recorded. */
struct simwriters *simkeys_writers(const struct simbatch *batch,
                                   const struct simcall *call, int place);

/* Returns how many were told. */
int simkeys_publish(const struct simbatch *batch, int resource,
                    struct span message);

/* The same, of a lock that has ended, while servers listen; a slot is announced
 * to its pool as well. */
int simkeys_announce(const struct simbatch *batch, int resource,
                     struct span token);

/* The generation rises once a batch; until is rounded up. */
void simkeys_promise(struct simbatch *batch, const struct simcall *call);

/* The number of a value that is a token of the same client, with the same key
 * hash and in the same form; -1: it is none. Whether it is not too high. */
int64_t simkeys_repeated(struct span value, const struct call *call);
bool simkeys_may_replace(struct span value, const struct call *call);

#endif
