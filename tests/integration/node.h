/* SPDX-License-Identifier: MIT */
/*
 * A blocking look at one node, past the service.
 */
#ifndef REDLOCKD_TEST_NODE_H
#define REDLOCKD_TEST_NODE_H

#include "harness.h"

struct redisReply;
struct redisContext;

/* printf-like as redisCommand. NULL: no connection. The caller frees it. */
struct redisReply *node_try(struct node *node, const char *format, ...);

/* The same, which must succeed: neither silence nor an error reply. */
void node_do(struct node *node, const char *format, ...);
long long node_integer(struct node *node, const char *format, ...);

/* A copy of a string reply in a static buffer; NULL: nil. */
const char *node_text(struct node *node, const char *format, ...);

/* How often it has run the command ("evalsha", or "set" by a script). */
int node_count(struct node *node, const char *command);

void node_disconnect(struct node *node);

/* Another connection; look at its err. The caller frees it. */
struct redisContext *node_connect(const struct node *node);

/*
 * Makes node a replica of source, and waits until it has the data. It stays
 * a replica until REPLICAOF NO ONE.
 */
void node_replicate(struct node *node, struct node *source);

/* For a node with a clock of its own: ms ahead of the true one. */
void node_set_clock(const struct node *node, int64_t ms);

/* Replaces the append-only files of a node, which must be down. */
void node_copy_files(const struct node *to, const struct node *from);

/* Pauses it for ms, or kills it and starts it then, or flushes it: p, k, f. */
void node_disturb(struct node *node, char how, int ms);

/* The append-only file: its length · the power cut that left no more of it,
 * for a node that is down. */
long node_file_length(const struct node *node);
void node_cut_file(const struct node *node, long length);

/* Starts copy, a node of its own, with the memory that node has now. */
void node_start_copy(struct node *copy, const struct node *node);

/* node has the data of copy from now on; it keeps its run_id. */
void node_bring_back(struct node *node, struct node *copy);

/* How many nodes have this key. */
int count_keys(const char *key);
void expect_keys(const char *key, int count); /* soon */

/* SET key value PX ttl_ms on nodes first … first + count - 1; 0: no TTL. */
void world_set(int first, int count, const char *key, const char *value,
               int ttl_ms);
void world_del(int first, int count, const char *key);

#endif
