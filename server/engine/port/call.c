/* SPDX-License-Identifier: MIT */
#include "call.h"

#include <assert.h>

#define UNFIT(state) [(int)VOTE_UNFIT + (int)STATE_##state]

/* By ballot_number. */
static const struct {
    const char *name;
    const char *detail;
} ballots[BALLOT_KINDS] = {
    [VOTE_PENDING] = {"pending",
                      "not needed: the outcome was certain without this node"},
    [VOTE_GRANTED] = {"granted", "the lock was set on this node"},
    [VOTE_EXTENDED] = {"extended", "the node had the token"},
    [VOTE_DELETED] = {"deleted", "the lock was deleted on this node"},
    [VOTE_HELD] = {"held", "the node has another value for this resource"},
    [VOTE_FREE] = {"free", "the node has no lock for this resource"},
    [VOTE_UNASKED] =
        {"unasked",
         "the node was not queried, as it is unlikely to have the lock"},
    [VOTE_STALE] = {"stale", "the node accepted a higher fencing token"},
    [VOTE_DONE] = {"done", "the node executed the command"},
    [VOTE_CHANGED] =
        {"changed",
         "the node's state had changed before the command reached it"},
    [VOTE_NOT_ADMITTED] =
        {"quarantined",
         "the node stores no admission of this server's configuration"},
    [VOTE_LATE] = {"late", "the command reached the node after its deadline"},
    [VOTE_OUT_OF_RANGE] = {"skewed",
                           "the node's clock is too far from the others"},
    [VOTE_KEY_REFUSED] = {"key_refused",
                          "the node's user may not access this resource's "
                          "key: no key pattern of its ACL covers it"},
    [VOTE_UNANSWERED] = {"silent", "no reply within the node timeout"},
    [VOTE_DISCONNECTED] = {"unreachable", "there is no connection to the node"},
    [VOTE_STALLED] = {"stalled",
                      "too many commands already wait for replies of the node"},
    [VOTE_UNREADABLE] = {"garbage", "the node sent an invalid reply"},
    [VOTE_DISTRUSTED] =
        {"distrusted",
         "the node granted the lock, but was no longer allowed to vote"},
    UNFIT(NONE) = {"voting", "the node may vote"},
    UNFIT(LOADING) = {"loading", "the node is loading its dataset"},
    UNFIT(READ_ONLY) = {"read_only", "the node is a replica, not a master"},
    UNFIT(MISCONFIGURED) = {"misconfigured",
                            "the node cannot persist and refuses writes"},
    UNFIT(OUT_OF_MEMORY) =
        {"out_of_memory",
         "the node is above maxmemory (OOM): it extends and releases what is "
         "held, and grants nothing new; raise maxmemory, or free memory"},
    UNFIT(BUSY) = {"busy", "a script blocks the node"},
    UNFIT(NO_PERMISSION) = {"no_permission",
                            "the node refuses the user, its password or a "
                            "command"},
    UNFIT(NO_SCRIPT) = {"no_script",
                        "the node's script cache was flushed; it is being "
                        "reloaded"},
    UNFIT(TOO_MANY) = {"too_many_clients", "the node is at its maxclients"},
    UNFIT(CLUSTER) = {"cluster", "the node belongs to a Redis Cluster"},
    UNFIT(EVICTS) = {"evicts", "the node would evict keys to free memory"},
    UNFIT(TOO_OLD) = {"too_old", "the node's version of Redis is too old"},
    UNFIT(FAILED) = {"failed", "the node replied with an error"},
    UNFIT(GARBAGE) = {"garbage", "the node sent an invalid reply"},
    UNFIT(UNREACHABLE) = {"unreachable", "there is no connection to the node"},
    UNFIT(TLS_FAILED) = {"tls_failed",
                         "the TLS handshake with the node failed"},
    UNFIT(SILENT) = {"silent", "no reply within the node timeout"},
    UNFIT(MOVED) = {"moved",
                    "the node's name or address now leads to another server"},
    UNFIT(UNCONFIRMED) = {"unconfirmed",
                          "no new connection has confirmed the node recently"},
    UNFIT(DUPLICATE) = {"duplicate",
                        "two of the names lead to the same server"},
    UNFIT(ADMITTING) = {"admitting", "its permission to vote is being checked"},
    UNFIT(QUARANTINED) =
        {"quarantined",
         "the node stores no admission of this server's configuration"},
    UNFIT(WAITING) = {"first_start", "the nodes are about to be admitted for "
                                     "the first time"},
    UNFIT(SUPERSEDED) =
        {"superseded",
         "the node stores a newer configuration than this server has"},
    UNFIT(OTHER) = {"other_configuration",
                    "the node serves another configuration of this epoch"},
    UNFIT(STEPPED) = {"clock_stepped", "the node's clock stepped"},
    UNFIT(UNPROVEN) =
        {"clock_unproven",
         "the node's clock differs from the others, and is being measured"},
    UNFIT(SKEWED) = {"skewed", "the node's clock is too far from the others"},
};

const char *state_name(enum node_state state)
{
    return ballot_name(ballot_unfit(state));
}

const char *state_detail(enum node_state state)
{
    return ballot_detail(ballot_unfit(state));
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
    return ballots[ballot_number(ballot)].name;
}

const char *ballot_detail(struct ballot ballot)
{
    return ballots[ballot_number(ballot)].detail;
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
