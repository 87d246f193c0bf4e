#include "call.h"

#include <assert.h>

struct kind {
    const char *name;
    const char *detail;
};

static const struct kind kinds[VOTE_KINDS] = {
    [VOTE_PENDING] = {"pending",
                      "not needed: the outcome was certain without it"},
    [VOTE_GRANTED] = {"granted", "the lock was set on this node"},
    [VOTE_EXTENDED] = {"extended", "the node had the token"},
    [VOTE_DELETED] = {"deleted", "the lock was deleted on this node"},
    [VOTE_HELD] = {"held", "the node has another value for this resource"},
    [VOTE_FREE] = {"free", "the node has no lock for this resource"},
    [VOTE_UNASKED] = {"unasked", "the node was not asked, as it hardly has "
                                 "the lock"},
    [VOTE_STALE] = {"stale", "the node accepted a higher fencing token"},
    [VOTE_DONE] = {"done", "the node carried the command out"},
    [VOTE_CHANGED] = {"changed", "the node's state had changed by then"},
    [VOTE_NOT_ADMITTED] = {"quarantined",
                           "the node does not carry this server's admission"},
    [VOTE_LATE] = {"late", "the command reached the node after its deadline"},
    [VOTE_OUT_OF_RANGE] = {"skewed",
                           "the node's clock is too far from the others"},
    [VOTE_KEY_REFUSED] = {"key_refused",
                          "the node's user may not access this resource's "
                          "key: no key pattern of its ACL covers it"},
    [VOTE_UNANSWERED] = {"silent", "no reply within the node timeout"},
    [VOTE_DISCONNECTED] = {"unreachable", "there is no connection to the node"},
    [VOTE_STALLED] = {"stalled",
                      "too many commands already wait for the node's replies"},
    [VOTE_UNREADABLE] = {"garbage", "the node sent an invalid reply"},
    [VOTE_DISTRUSTED] = {"distrusted",
                         "the node granted, but no longer qualified to vote"},
};

static const struct kind states[STATE_KINDS] = {
    [STATE_NONE] = {"voting", "the node may vote"},
    [STATE_LOADING] = {"loading", "the node is loading its dataset"},
    [STATE_READ_ONLY] = {"read_only", "the node is a replica, not a master"},
    [STATE_MISCONFIGURED] = {"misconfigured",
                             "the node cannot persist and refuses writes"},
    [STATE_OUT_OF_MEMORY] =
        {"out_of_memory",
         "the node is above maxmemory (OOM): it extends and releases what is "
         "held, and grants nothing new; raise maxmemory, or free memory"},
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
    return states[state].name;
}

const char *state_detail(enum node_state state)
{
    assert(state < STATE_KINDS);
    return states[state].detail;
}

bool vote_is_answer(enum vote vote)
{
    return vote >= VOTE_GRANTED && vote <= VOTE_CHANGED;
}

bool vote_ends_release(enum vote vote)
{
    return vote_is_answer(vote) || vote == VOTE_NOT_ADMITTED ||
           vote == VOTE_KEY_REFUSED;
}

/*
 * A user that may not set the key has not set it. An error in the middle of a
 * script (NOPERM, MISCONF, …) may have left the key there; only errors that
 * come before any script starts are harmless.
 */
bool ballot_is_harmless(struct ballot ballot)
{
    switch (ballot.vote) {
    case VOTE_HELD:
    case VOTE_FREE:
    case VOTE_STALE:
    case VOTE_NOT_ADMITTED:
    case VOTE_LATE:
    case VOTE_OUT_OF_RANGE:
    case VOTE_KEY_REFUSED:
    case VOTE_STALLED:
        return true;
    case VOTE_UNFIT:
        return ballot.state == STATE_LOADING || ballot.state == STATE_BUSY ||
               ballot.state == STATE_NO_SCRIPT ||
               ballot.state == STATE_TOO_MANY;
    default:
        return false;
    }
}

const char *ballot_name(struct ballot ballot)
{
    assert(ballot.vote < VOTE_KINDS);
    return ballot.vote == VOTE_UNFIT ? state_name(ballot.state)
                                     : kinds[ballot.vote].name;
}

const char *ballot_detail(struct ballot ballot)
{
    assert(ballot.vote < VOTE_KINDS);
    return ballot.vote == VOTE_UNFIT ? state_detail(ballot.state)
                                     : kinds[ballot.vote].detail;
}

int ballot_number(struct ballot ballot)
{
    return (int)ballot.vote + (int)ballot.state;
}

struct ballot ballot_of_number(int number)
{
    assert(number >= 0 && number < BALLOT_KINDS);
    if (number < (int)VOTE_UNFIT)
        return (struct ballot){.vote = (enum vote)number};
    return ballot_unfit((enum node_state)(number - (int)VOTE_UNFIT));
}
