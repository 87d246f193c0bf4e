#include "state.h"

#include <assert.h>

static const struct kind {
    const char *name;
    const char *detail;
} kinds[STATE_KINDS] = {
    [STATE_NONE] = {"voting", "the node may vote"},
    [STATE_LOADING] = {"loading", "the node is loading its dataset"},
    [STATE_READ_ONLY] = {"read_only", "the node is a replica, not a master"},
    [STATE_MISCONFIGURED] = {"misconfigured",
                             "the node cannot persist and refuses writes"},
    [STATE_OUT_OF_MEMORY] = {"out_of_memory", "the node is above maxmemory"},
    [STATE_BUSY] = {"busy", "a script blocks the node"},
    [STATE_NO_PERMISSION] = {"no_permission",
                             "the node refuses the user, its password or a "
                             "command"},
    [STATE_NO_SCRIPT] = {"no_script",
                         "the node's script cache was flushed; it is being "
                         "reloaded"},
    [STATE_TOO_MANY] = {"too_many_clients", "the node is at its maxclients"},
    [STATE_CLUSTER] = {"cluster", "the node belongs to a Redis Cluster"},
    [STATE_EVICTS] = {"evicts", "the node would evict keys to free memory"},
    [STATE_TOO_OLD] = {"too_old", "the node runs too old a version"},
    [STATE_FAILED] = {"failed", "the node answered with an error"},
    [STATE_GARBAGE] = {"garbage", "the node sent an invalid reply"},
    [STATE_UNREACHABLE] = {"unreachable", "there is no connection to the node"},
    [STATE_TLS_FAILED] = {"tls_failed",
                          "no TLS connection to the node can be made"},
    [STATE_SILENT] = {"silent", "no reply within the node timeout"},
    [STATE_MOVED] = {"moved",
                     "the node's name or address now belongs to another "
                     "server"},
    [STATE_UNCONFIRMED] = {"unconfirmed",
                           "no new connection has confirmed the node recently"},
    [STATE_DUPLICATE] = {"duplicate", "one server answers to two of the names"},
    [STATE_ADMITTING] = {"admitting",
                         "its permission to vote is being checked"},
    [STATE_QUARANTINED] = {"quarantined",
                           "the node does not carry this server's admission"},
    [STATE_WAITING] = {"first_start", "the nodes are about to be admitted for "
                                      "the first time"},
    [STATE_SUPERSEDED] = {"superseded",
                          "the node carries a newer configuration than this "
                          "server"},
    [STATE_FOREIGN] = {"other_configuration",
                       "the node serves another configuration of this epoch"},
    [STATE_STEPPED] = {"clock_stepped", "the node's clock stepped"},
    [STATE_UNPROVEN] = {"clock_unproven",
                        "the node's clock differs from the others, and is "
                        "being watched"},
    [STATE_SKEWED] = {"skewed", "the node's clock is too far from the others"},
};

const char *state_name(enum node_state state)
{
    assert(state < STATE_KINDS);
    return kinds[state].name;
}

const char *state_detail(enum node_state state)
{
    assert(state < STATE_KINDS);
    return kinds[state].detail;
}
