#include "guard.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_VERSION = 1 }; /* of keys and scripts on the nodes */

static bool move(struct guard *guard, enum guard_phase phase, enum vote refusal,
                 const char *detail)
{
    bool is_change = guard->phase != phase || guard->refusal != refusal;
    guard->phase = phase;
    guard->refusal = refusal;
    snprintf(guard->detail, sizeof guard->detail, "%s", detail);
    return is_change;
}

void guard_init(struct guard *guard)
{
    *guard = (struct guard){0};
    (void)move(guard, GUARD_DOWN, VOTE_DONE, "not connected yet");
}

bool guard_on_up(struct guard *guard, int epoch, const char *fingerprint,
                 const char *run_id)
{
    int len = snprintf(guard->admit, sizeof guard->admit, "%d:%s:%s", epoch,
                       fingerprint, run_id);
    assert(len > 0 && len < (int)sizeof guard->admit);
    return move(guard, GUARD_ADMITTING, VOTE_DONE, "being admitted");
}

bool guard_on_down(struct guard *guard, enum vote reason, const char *detail)
{
    return move(guard, GUARD_DOWN, reason, detail);
}

bool guard_on_admit(struct guard *guard, enum vote vote)
{
    if (guard->phase == GUARD_DOWN || vote == VOTE_UNREACHABLE)
        return false; /* the event down says it better */
    if (vote == VOTE_DONE)
        return move(guard, GUARD_VOTING, VOTE_DONE, "admitted");
    return move(guard, guard->phase, vote, vote_detail(vote));
}

/* Refusals that speak of the node's condition, not of one command. */
static bool is_condition(enum vote vote)
{
    switch (vote) {
    case VOTE_LOADING:
    case VOTE_READ_ONLY:
    case VOTE_MISCONFIGURED:
    case VOTE_OUT_OF_MEMORY:
    case VOTE_BUSY:
    case VOTE_NO_PERMISSION:
    case VOTE_FAILED:
        return true;
    default:
        return false;
    }
}

bool guard_on_vote(struct guard *guard, enum vote vote)
{
    if (guard->phase == GUARD_DOWN)
        return false;
    if (vote == VOTE_QUARANTINED && guard->phase == GUARD_VOTING)
        return move(guard, GUARD_ADMITTING, VOTE_DONE,
                    "the node lost its admission");
    if (is_condition(vote))
        return move(guard, guard->phase, vote, vote_detail(vote));
    return false;
}

bool guard_may_vote(const struct guard *guard)
{
    return guard->phase == GUARD_VOTING;
}

bool guard_is_voting(const struct guard *guard)
{
    return guard->phase == GUARD_VOTING && guard->refusal == VOTE_DONE;
}

enum vote guard_refusal(const struct guard *guard)
{
    if (guard->refusal != VOTE_DONE)
        return guard->refusal;
    return guard->phase == GUARD_DOWN ? VOTE_UNREACHABLE : VOTE_QUARANTINED;
}

const char *guard_state(const struct guard *guard)
{
    if (guard->refusal != VOTE_DONE)
        return vote_name(guard->refusal);
    switch (guard->phase) {
    case GUARD_DOWN:
        return "connecting";
    case GUARD_ADMITTING:
        return "admitting";
    case GUARD_VOTING:
        return "voting";
    }
    abort();
}

/* FNV-1a, 64 bits: an equality check between friends, not a defence. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return (hash ^ '\n') * 0x100000001b3;
}

void guard_fingerprint(char hex[GUARD_FINGERPRINT_LEN + 1],
                       const char *const names[], int count, int quorum,
                       int64_t max_ttl_ms)
{
    const char *sorted[NODES_MAX];
    assert(count <= NODES_MAX);
    for (int i = 0; i < count; i++) {
        int at = i;
        /* cppcheck-suppress uninitvar; those below i are filled */
        for (; at > 0 && strcmp(sorted[at - 1], names[i]) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = names[i];
    }
    char numbers[96];
    snprintf(numbers, sizeof numbers, "%d %d %d %lld", DATA_VERSION, count,
             quorum, (long long)max_ttl_ms);
    uint64_t hash = hash_text(0xcbf29ce484222325, numbers);
    for (int i = 0; i < count; i++)
        hash = hash_text(hash, sorted[i]);
    snprintf(hex, GUARD_FINGERPRINT_LEN + 1, "%016llx",
             (unsigned long long)hash);
}
