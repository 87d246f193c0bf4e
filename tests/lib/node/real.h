/* SPDX-License-Identifier: MIT */
/*
 * A real redis-server that runs the real script.
 */
#ifndef REDLOCKD_TEST_REAL_H
#define REDLOCKD_TEST_REAL_H

#include <sys/types.h>

#include "../../../server/node/batch.h"
#include "simnode.h"

enum { REAL_HEARD_MAX = 512 };

struct redisContext;
struct redisReply;

enum { REAL_BATCHES_MAX = 64 };

struct real {
    pid_t pid;
    char dir[32];
    char path[64]; /* its unix socket */
    struct redisContext *redis;
    struct redisContext *ears; /* subscribes to announcements */
    char sha[SCRIPT_SHA_LEN + 1];
    int batches; /* of the last calls, and what was said to them */
    struct redisReply *said[REAL_BATCHES_MAX];
};

/* Starts it and loads the script. Prints why and exits if it cannot. */
void real_start(struct real *real);
void real_stop(struct real *real);

/* Runs a plain command, and checks that its reply is no error. */
void real_command(struct real *real, const char *format, ...);

/* The same; a string, status or error, which lasts for four calls; an integer.
 */
const char *real_text(struct real *real, const char *format, ...);
long long real_integer(struct real *real, const char *format, ...);

/*
 * The text after the name ("evicted_keys:") in a section of INFO, at most
 * SIM_REPLID_LEN bytes.
 */
void real_info(struct real *real, const char *section, const char *name,
               char value[SIM_REPLID_LEN + 1]);

/* From now on hears what is announced of this resource, or no longer. */
void real_subscribe(struct real *real, const char *resource, bool is_on);

/* " resource=message" of each announcement since the last time. */
void real_hear(struct real *real, char text[REAL_HEARD_MAX]);

/*
 * Runs count calls in as few batches as hold them; REAL_PREFIX is the prefix of
 * all keys. What the replies borrow lasts until the next call; returns how many
 * batches there were.
 */
int real_ask(struct real *real, const struct call *calls, int count,
             struct call_reply *replies);

/* The same, and keeps what the replies borrow. */
void real_run(struct real *real, const struct call *calls, int count,
              struct simreply *replies);

#define REAL_PREFIX "p:"

#endif
