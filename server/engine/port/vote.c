#include "vote.h"

#include <assert.h>

static const struct kind {
    const char *name;
    const char *detail;
} kinds[VOTE_KINDS] = {
    [VOTE_PENDING] = {"pending",
                      "not needed: the outcome was certain without it"},
    [VOTE_GRANTED] = {"granted", "the lock was set on this node"},
    [VOTE_EXTENDED] = {"extended", "the node had the token"},
    [VOTE_DELETED] = {"deleted", "the lock was deleted on this node"},
    [VOTE_HELD] = {"held", "the node has another value for this resource"},
    [VOTE_FREE] = {"free", "the node has no lock for this resource"},
    [VOTE_STALE] = {"stale", "the node accepted a higher fencing number"},
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
 * An error in the middle of a script (NOPERM, MISCONF, …) may have left the key
 * there. Only errors that come before any script starts are harmless.
 */
static bool is_before_script(enum node_state state)
{
    switch (state) {
    case STATE_LOADING:
    case STATE_BUSY:
    case STATE_NO_SCRIPT:
    case STATE_TOO_MANY:
        return true;
    default:
        return false;
    }
}

/* A user that may not set the key has not set it. */
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
        return is_before_script(ballot.state);
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
