/* SPDX-License-Identifier: MIT */
/*
 * The answers that went well, and what problems share with them, as JSON.
 */
#ifndef REDLOCKD_RENDER_H
#define REDLOCKD_RENDER_H

#include "../../server/engine/engine.h"
#include "../../server/lock/lock.h"
#include "json.h"

/* ---- locks -------------------------------------------------------------- */

/* What a grant or an extension tells beyond the engine's result. */
struct render_times {
    int64_t elapsed_ms;
    int64_t renew_after_ms;
    const int64_t *waited_ms; /* NULL: it was not asked to wait */
    int limit;                /* of the pool; 0: it is no permit */
    int64_t max_hold_ms;      /* 0: without limit */
};

/* A pool, as in the response to its GET. */
struct render_pool {
    struct span name;
    int limit;
    int waiters;
    int count; /* of its slots that are held */
    const struct engine_result *(*slot)(void *ctx, int n); /* each of them */
    void *ctx;
};

/* Bodies: malloc'ed, with a newline behind, and the length; NULL: no memory. */
char *render_grant(const struct engine_result *result,
                   const struct render_times *times, size_t *len);
char *render_release(const struct engine_result *result, size_t *len);
char *render_inspect(const struct engine_result *result, int64_t max_hold_ms,
                     size_t *len);
char *render_pool(const struct render_pool *pool, size_t *len);

/* A body in parts: a page of locks. cursor NULL: it is the last one. */
void render_page_begin(struct json *json);
void render_page_lock(struct json *json, const struct engine_result *result,
                      int64_t max_hold_ms);
char *render_page_end(struct json *json, const char *cursor, size_t *len);

/*
 * Members that tell what lock it is about: id, and resource, or resources if it
 * covers several; or as_list, for those who search many of them. Of a permit
 * resource is the pool, and slots its slots.
 */
void render_lock(struct json *json, struct span names, bool as_list);

/* Members: what is known of a holder: remaining_ms, fencing_token, owner. */
void render_holder(struct json *json, const struct engine_result *result);

/* ---- what operators ask ------------------------------------------------- */

struct render_nodes {
    const char *status; /* "ready" and the like; NULL: left out */
    int quorum;
    int total;
    int voting;
    bool has_list;
    int64_t now_us;
    struct engine_node_view list[NODES_MAX];
};

/* A body, as above. */
char *render_nodes(const struct render_nodes *nodes, size_t *len);

/* A member: the array nodes alone. */
void render_node_list(struct json *json, const struct render_nodes *nodes);

#endif
