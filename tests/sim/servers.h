/*
 * The servers: each runs the real engine behind its port, with a clock of its
 * own. They are stopped for a while, killed and started again, and some with
 * another configuration.
 */
#ifndef SIM_SERVERS_H
#define SIM_SERVERS_H

#include "../../server/engine/engine.h"
#include "../../server/engine/port.h"
#include "heap.h"
#include "links.h"

enum {
    SIM_SERVERS = 4, /* the last is there only for a foreign configuration */
    SIM_FOREIGN = SIM_SERVERS - 1,
    SIM_TIMERS = 512,
    SIM_MAX_HOLD_MS = 3000,
};

/* What the servers are configured for. */
enum configuration {
    CONFIGURATION_FIRST,
    CONFIGURATION_NEXT,    /* higher epoch: other hosts, another max TTL */
    CONFIGURATION_FOREIGN, /* the first one's epoch, and all else the same */
    CONFIGURATIONS
};

struct simconfig {
    int epoch;
    int64_t max_ttl_ms;
    const char *fingerprint;
    int name[SIM_NODES]; /* of each node */
};

struct simserver {
    struct world *world;
    int number;
    struct engine *engine; /* NULL: it does not run */
    enum configuration configuration;
    bool is_trusting; /* runs with --first-start yes */
    int64_t voted_us; /* first saw a node that may vote, in this life */
    bool is_paused;
    struct event *deferred; /* to be handled when it goes on */
    size_t deferred_count;
    size_t deferred_room;
    int64_t offset_us; /* of its clock, which is ppm parts per million fast */
    int64_t ppm;
    int64_t timers[SIM_TIMERS];
    struct metrics metrics;
    struct simlink links[SIM_NODES];
    uint64_t round_tag; /* the last round that sent something */
    uint64_t rounds_sent;
    uint64_t rounds_impaired; /* of them: began while something was wrong */
};

struct world;

/* What its CLOCK_BOOTTIME shows. */
int64_t server_clock(const struct simserver *server);

const struct simconfig *servers_config(const struct world *world,
                                       enum configuration configuration);

/* Whether it has this name; and the hash that stands in admissions. */
bool servers_has_name(const struct world *world,
                      enum configuration configuration, int name);
const char *servers_name_hash(int name);

/* Decides what the configurations of this world are. */
void servers_init(struct world *world);
void servers_fini(struct world *world);

/* Starts it, with --first-start yes or auto. */
void server_start(struct world *world, int number,
                  enum configuration configuration, bool is_trusting);
void server_kill(struct world *world, int number);
void server_pause(struct world *world, int number, int64_t us);
void server_resume(struct world *world, int number);

/* What each server thinks of each node. */
void servers_trace(const struct world *world);

/* Puts the event off if the server is paused; true: it did. */
bool server_defer(struct world *world, int number, const struct event *event);

void server_on_timer(struct world *world, const struct event *event);

#endif
