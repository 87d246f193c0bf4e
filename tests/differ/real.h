/*
 * A real redis-server that runs the real script.
 */
#ifndef DIFFER_REAL_H
#define DIFFER_REAL_H

#include <sys/types.h>

#include "../../server/node/batch.h"
#include "../lib/node/simnode.h"

struct redisContext;

struct real {
    pid_t pid;
    char dir[32];
    char path[64]; /* its unix socket */
    struct redisContext *redis;
    char sha[SCRIPT_SHA_LEN + 1];
};

/* Starts it and loads the script. Prints why and exits if it cannot. */
void real_start(struct real *real);
void real_stop(struct real *real);

/* Runs a plain command, and checks that its reply is no error. */
void real_command(struct real *real, const char *format, ...);

/*
 * The text after the name ("evicted_keys:") in a section of INFO, at most
 * SIM_REPLID_LEN bytes.
 */
void real_info(struct real *real, const char *section, const char *name,
               char value[SIM_REPLID_LEN + 1]);

/* Runs count calls as one batch; REAL_PREFIX is the prefix of all keys. */
void real_run(struct real *real, const struct call *calls, int count,
              struct simreply *replies);

#define REAL_PREFIX "p:"

#endif
