/* SPDX-License-Identifier: MIT */
/*
 * Announcements of releases on their way from the nodes to the servers. They
 * are lost, late, or false; and in some worlds none arrives.
 */
#ifndef SIM_NEWS_H
#define SIM_NEWS_H

#include "links.h"

/* A server's second connection to one of its nodes. */
struct listener {
    bool is_up;
    int machine;
    uint64_t life;       /* of the machine, when it connected */
    uint64_t generation; /* of the connection */
    bool is_subscribed[SIM_POOL + 1];
};

/* The port's listen, also off when the server dies, and subscribe. */
void news_listen(struct world *world, int server, bool is_on);
void news_subscribe(struct world *world, int server, int node,
                    struct span resource, bool is_on);

/* What a machine announces while it executes a call. */
struct news {
    struct world *world;
    int machine;
};

/* Takes it to the servers; borrows news. */
struct simlisteners news_listeners(struct news *news);

void news_on_event(struct world *world, const struct event *event);

#endif
