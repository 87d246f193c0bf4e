/* SPDX-License-Identifier: MIT */
/*
 * The servers: each runs the real engine behind its port, with its own clock.
 * They are paused, killed and restarted, some with another configuration.
 */
#ifndef SIM_SERVERS_H
#define SIM_SERVERS_H

#include "../../server/engine/engine.h"
#include "../../server/engine/port/port.h"
#include "heap.h"
#include "links.h"
#include "news.h"

enum {
    SIM_SERVERS = 4, /* the last one only for a foreign configuration */
    SIM_FOREIGN = SIM_SERVERS - 1,
    SIM_TIMERS = 512,
};

/* The configurations of servers. */
enum configuration {
    CONFIGURATION_FIRST,
    CONFIGURATION_NEXT,    /* higher epoch: other hosts, another max TTL */
    CONFIGURATION_FOREIGN, /* as the first, but for the fingerprint */
    CONFIGURATION_THIRD, /* only where lists change again and again: lists.h */
    CONFIGURATION_OTHER, /* … another installation */
    CONFIGURATIONS
};

struct simconfig {
    int epoch;
    int64_t max_ttl_ms;
    const char *fingerprint;
    int word_epoch; /* for which its old servers are said to be stopped; 0: for
                       none */
    bool is_begun;  /* it may be in use; only where lists change … */
    bool is_given_up;    /* … until the word was given for another one */
    int nodes;           /* that it has */
    int name[SIM_NODES]; /* of each */
};

/* In worlds where servers have different ones, each start chooses them. */
struct simoptions {
    int64_t node_timeout_us;
    int64_t max_ttl_ms;
    int epoch;
    bool has_word; /* the old servers are stopped */
};

struct simserver {
    struct world *world;
    int number;
    struct engine *engine; /* NULL: it is not running */
    enum configuration configuration;
    struct simoptions options;
    int64_t max_hold_ms; /* 0: without limit */
    bool is_trusting;    /* runs with --first-start yes */
    int64_t voted_us; /* when it first saw a node that may vote, in this life */
    int64_t drains_us; /* since it got SIGTERM; 0: it did not */
    int64_t ends_us;   /* serves until then, at least */
    bool is_closed;    /* … and nobody any more */
    bool is_paused;
    int64_t resumed_us;     /* when it began, or went on after its last pause */
    struct event *deferred; /* to be handled when it resumes */
    size_t deferred_count;
    size_t deferred_room;
    int64_t offset_us; /* of its clock, which runs ppm parts per million fast */
    int64_t ppm;
    int64_t timers[SIM_TIMERS];
    struct metrics metrics;
    struct simlink links[SIM_NODES];
    struct listener listeners[SIM_NODES];
    uint64_t round_tag; /* the last round that sent something */
    uint64_t rounds_sent;
    uint64_t rounds_impaired; /* began while something was wrong */
};

struct world;

/* Its CLOCK_BOOTTIME. */
int64_t server_clock(const struct simserver *server);

const struct simconfig *servers_config(const struct world *world,
                                       enum configuration configuration);

/* How many nodes this server has. */
int server_nodes(const struct world *world, int number);

/* Whether it has this name; and the hash of the name in admissions. */
bool servers_has_name(const struct world *world,
                      enum configuration configuration, int name);
const char *servers_name_hash(int name);

/* Whether the machine of this name carries an admission of it, or did. */
bool servers_has_admitted(const struct world *world,
                          enum configuration configuration, int name);

/* Decides on the configurations of this world. */
void servers_init(struct world *world);
void servers_fini(struct world *world);

/* From now on servers start with other names, with the epoch after that of the
 * nodes: as those that are refused tell. */
void servers_choose_next(struct world *world);

/* Starts it, with --first-start yes or auto. */
void server_start(struct world *world, int number,
                  enum configuration configuration, bool is_trusting);
/* Whether it has the options of a world where all servers have the same. */
bool server_has_usual_options(const struct world *world, int number);

void server_kill(struct world *world, int number);

/* SIGTERM: it answers those who wait, ends when nobody asks, and is started
 * again. It searches for that now and then. */
void server_terminate(struct world *world, int number);
void server_on_drain(struct world *world, const struct event *event);

void server_pause(struct world *world, int number, int64_t us);
void server_resume(struct world *world, int number);

/* Traces what each server thinks of each node. */
void servers_trace(const struct world *world);

/* Defers the event if the server is paused; true: it did. */
bool server_defer(struct world *world, int number, const struct event *event);

void server_on_timer(struct world *world, const struct event *event);

#endif
