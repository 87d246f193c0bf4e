#include "vote.h"

#include <assert.h>

struct vote_kind {
    const char *name;
    const char *detail;
};

static const struct vote_kind kinds[VOTE_KINDS] = {
    [VOTE_PENDING] = {"pending",
                      "not needed: the outcome was certain without it"},
    [VOTE_GRANTED] = {"granted", "the lock was set on this node"},
    [VOTE_EXTENDED] = {"extended", "the node had the token"},
    [VOTE_DELETED] = {"deleted", "the lock was deleted on this node"},
    [VOTE_HELD] = {"held", "the node has another value for this resource"},
    [VOTE_FREE] = {"free", "the node has no lock for this resource"},
    [VOTE_STALE] = {"stale", "the node accepted a higher fencing number"},
    [VOTE_DONE] = {"done", "the node carried the command out"},
    [VOTE_CHANGED] = {"changed", "the node's state was another by then"},
    [VOTE_QUARANTINED] = {"quarantined",
                          "the node does not carry this server's admission"},
    [VOTE_LATE] = {"late", "the command reached the node past its deadline"},
    [VOTE_SKEWED] = {"skewed", "the node's clock is too far from the others"},
    [VOTE_LOADING] = {"loading", "the node is loading its dataset"},
    [VOTE_READ_ONLY] = {"read_only", "the node is a replica, not a master"},
    [VOTE_MISCONFIGURED] = {"misconfigured",
                            "the node cannot persist and refuses writes"},
    [VOTE_OUT_OF_MEMORY] = {"out_of_memory", "the node is above maxmemory"},
    [VOTE_BUSY] = {"busy", "a script blocks the node"},
    [VOTE_NO_PERMISSION] = {"no_permission",
                            "the node refuses the user, its password or a "
                            "command"},
    [VOTE_KEY_REFUSED] = {"key_refused",
                          "the node's user may not access this resource's "
                          "key: no key pattern of its ACL covers it"},
    [VOTE_NO_SCRIPT] = {"no_script",
                        "the node's script cache was flushed; it is being "
                        "reloaded"},
    [VOTE_TOO_MANY] = {"too_many_clients", "the node is at its maxclients"},
    [VOTE_CLUSTER] = {"cluster", "the node belongs to a Redis Cluster"},
    [VOTE_EVICTS] = {"evicts", "the node would evict keys to free memory"},
    [VOTE_TOO_OLD] = {"too_old", "the node runs too old a version"},
    [VOTE_MOVED] = {"moved", "the node's name or address leads to another "
                             "server now"},
    [VOTE_FAILED] = {"failed", "the node answered with an error"},
    [VOTE_SUPERSEDED] = {"superseded",
                         "the node carries a newer configuration than this "
                         "server"},
    [VOTE_FOREIGN] = {"other_configuration",
                      "the node serves another configuration of this epoch"},
    [VOTE_WAITING] = {"first_start", "the nodes are about to be admitted for "
                                     "the first time"},
    [VOTE_DUPLICATE] = {"duplicate",
                        "the same server stands behind two of the names"},
    [VOTE_UNCONFIRMED] = {"unconfirmed",
                          "no new connection has confirmed the node lately"},
    [VOTE_STEPPED] = {"clock_stepped", "the node's clock stepped"},
    [VOTE_UNPROVEN] = {"clock_unproven",
                       "the node's clock differs from the others, and is "
                       "being watched"},
    [VOTE_DISTRUSTED] = {"distrusted",
                         "the node granted when it could no longer be "
                         "counted"},
    [VOTE_SILENT] = {"silent", "no reply within the node timeout"},
    [VOTE_UNREACHABLE] = {"unreachable", "there is no connection to the node"},
    [VOTE_STALLED] = {"stalled",
                      "too many commands already wait for the node's replies"},
    [VOTE_GARBAGE] = {"garbage", "the node's reply makes no sense"},
};

bool vote_is_answer(enum vote vote)
{
    return vote >= VOTE_GRANTED && vote <= VOTE_CHANGED;
}

bool vote_ends_release(enum vote vote)
{
    return vote_is_answer(vote) || vote == VOTE_QUARANTINED ||
           vote == VOTE_KEY_REFUSED;
}

/*
 * An error that a script met half-way (NOPERM, MISCONF, …) may have left the
 * key behind, so of the errors only those count as harmless that come before
 * any script starts; and who may not set the key has not.
 */
bool vote_is_harmless(enum vote vote)
{
    switch (vote) {
    case VOTE_HELD:
    case VOTE_FREE:
    case VOTE_STALE:
    case VOTE_QUARANTINED:
    case VOTE_LATE:
    case VOTE_SKEWED:
    case VOTE_LOADING:
    case VOTE_BUSY:
    case VOTE_KEY_REFUSED:
    case VOTE_NO_SCRIPT:
    case VOTE_TOO_MANY:
    case VOTE_STALLED:
        return true;
    default:
        return false;
    }
}

const char *vote_name(enum vote vote)
{
    assert(vote < VOTE_KINDS);
    return kinds[vote].name;
}

const char *vote_detail(enum vote vote)
{
    assert(vote < VOTE_KINDS);
    return kinds[vote].detail;
}
