/*
 * JSON bodies: what clients send, and what is read from the nodes. The answers
 * that must be fast are in render.h.
 */
#ifndef REDLOCKD_JSON_H
#define REDLOCKD_JSON_H

#include "faults.h"
#include "http.h"

struct json_t;

/* To be called once, before anything else here. */
void json_init(void);

/* The members of a body. The spans lie in root. */
struct json_input {
    bool has_resource;
    bool has_owner;
    bool has_token;
    bool has_ttl;
    struct span resource;
    struct span owner;
    struct span token; /* any text; its form is not looked at here */
    int64_t ttl_ms;
    struct json_t *root;
};

/*
 * Reads the body of a call: acquire takes resource, owner, ttl_ms; extend
 * token, ttl_ms; release token. False: errors tells all that is wrong, with
 * the pointer "" for the body as a whole; nothing of a token is repeated
 * there. Without memory it tells nothing. Either way json_input_fini must
 * follow.
 */
bool json_parse(struct json_input *input, struct span body, enum route route,
                int64_t max_ttl_ms, struct faults *errors);
void json_input_fini(struct json_input *input);

/*
 * The body of an inspection: malloc'ed, with a newline behind, and its length.
 * NULL: no memory.
 */
char *json_render_inspect(const struct engine_result *result, size_t *len);

/* Sets id and resource: which lock it is about. */
void json_set_lock(struct json_t *object, struct span resource);

/* Sets what is known of a holder: remaining_ms, fencing_token, owner. */
void json_set_holder(struct json_t *object, const struct engine_result *result);

/*
 * Renders and frees a value; NULL becomes NULL. For problem and the above: what
 * they could not add to it for lack of memory makes it NULL, too.
 */
char *json_render(struct json_t *root, size_t *len);

/* ---- what operators ask ------------------------------------------------- */

struct json_node {
    const char *name;
    struct engine_node_view view;
};

struct json_nodes {
    const char *status; /* "ready" and the like; NULL: left out */
    int quorum;
    int total;
    int voting;
    bool has_list;
    int64_t now_us;
    struct json_node list[NODES_MAX];
};

/* The array of nodes alone, for problems. */
struct json_t *json_node_list(const struct json_nodes *nodes);

char *json_render_nodes(const struct json_nodes *nodes, size_t *len);

#endif
