/*
 * A real redis-server that runs the real script.
 */
#ifndef DIFFER_REAL_H
#define DIFFER_REAL_H

#include <sys/types.h>

#include "../../server/node/batch.h"
#include "../lib/node/simnode.h"

enum { REAL_HEARD_MAX = 512 };

struct redisContext;

struct real {
    pid_t pid;
    char dir[32];
    char path[64]; /* its unix socket */
    struct redisContext *redis;
    struct redisContext *ears; /* subscribes to announcements */
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

/* From now on hears what is announced of this resource, or no longer. */
void real_subscribe(struct real *real, const char *resource, bool is_on);

/* " resource=message" of each announcement since the last time. */
void real_hear(struct real *real, char text[REAL_HEARD_MAX]);

/* Runs count calls as one batch; REAL_PREFIX is the prefix of all keys. */
void real_run(struct real *real, const struct call *calls, int count,
              struct simreply *replies);

#define REAL_PREFIX "p:"

#endif
