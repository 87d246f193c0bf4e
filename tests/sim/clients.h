/*
 * The clients of the simulation, and what must hold for them. After every
 * event:
 *
 *   exclusion  no two clients believe in a lock on one resource
 *   rising     each grant's number is above that of the grant before
 *   kept       the lock a client believes in is on a majority of the nodes
 *   answered   every operation is answered exactly once
 *   mortal     no acquire sets a key long after it was sent
 *   tidy       when all is calm and released, no key is left on any node
 *   alive      … and every resource can be acquired
 */
#ifndef SIM_CLIENTS_H
#define SIM_CLIENTS_H

#include "world.h"

enum client_state { CLIENT_IDLE, CLIENT_ASKING, CLIENT_HOLDING };
enum client_ask { ASK_ACQUIRE, ASK_EXTEND, ASK_RELEASE };
enum client_event { CLIENT_STEP, CLIENT_READ_ANSWER, CLIENT_LEAVE };

struct client {
    struct simserver *server; /* any, for each operation */
    enum client_state state;
    enum client_ask ask;
    bool is_answered;
    uint64_t serial; /* of its operation */
    engine_op op;
    int resource;
    int64_t ttl_ms;
    int64_t believes_until_us; /* 0: in nothing */
    size_t token_len;
    char token[TOKEN_MAX];
};

struct clients {
    struct client client[SIM_CLIENTS];
    bool is_resting; /* no new acquires */
    int64_t last_number[SIM_RESOURCES];
    uint64_t outcomes[OUTCOME_KINDS];
    uint64_t left;
    char violation[160]; /* "": none */
};

void clients_start(struct world *world);
void clients_on_answer(struct world *world, struct client *client);
void clients_on_event(struct world *world, const struct event *event);

/* Looks whether everything holds that must hold at every moment. */
void clients_check(struct world *world);

/* To be called when all is calm and the clients rest. */
void clients_check_end(struct world *world);

/* True if no client asks or holds. */
bool clients_are_idle(const struct clients *clients);

#endif
