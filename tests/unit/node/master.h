/*
 * A real redis-server on a socket in a directory of its own.
 */
#ifndef REDLOCKD_TEST_MASTER_H
#define REDLOCKD_TEST_MASTER_H

#include <sys/types.h>

struct redisContext;

struct master {
    pid_t pid;
    char dir[32];
    char path[64]; /* its unix socket */
    struct redisContext *redis;
    struct redisContext *ears; /* has subscribed; NULL: to nothing yet */
};

/* Starts it and waits until it answers. */
void master_start(struct master *master);

/* Kills it and removes its directory. */
void master_stop(struct master *master);

/* printf-like as redisCommand: a string, status or error reply, in a buffer. */
const char *master_text(struct master *master, const char *format, ...);

/* The same for an integer reply. */
long long master_integer(struct master *master, const char *format, ...);

/* Subscribes to a channel on a connection of its own, or of its own again. */
void master_subscribe(struct master *master, const char *channel);

/* Waits for the next message there; returns its channel, and behind = the
 * message if it is not empty; in a buffer. */
const char *master_hear(struct master *master);

#endif
