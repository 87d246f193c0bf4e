/* SPDX-License-Identifier: MIT */
#include "result.h"

#include <assert.h>

#include "../port/token.h"
#include "round.h"

enum {
    ACQUIRE = 1 << LOCK_ACQUIRE,
    EXTEND = 1 << LOCK_EXTEND,
    RELEASE = 1 << LOCK_RELEASE,
    INSPECT = 1 << LOCK_INSPECT,
    FORCE = 1 << LOCK_FORCE,
    ANY = ACQUIRE | EXTEND | RELEASE | INSPECT | FORCE,
};

static const struct kind {
    const char *name;
    int calls; /* that can have this outcome */
} kinds[OUTCOME_KINDS] = {
    [OUTCOME_PENDING] = {"pending", 0},
    [OUTCOME_GRANTED] = {"granted", ACQUIRE},
    [OUTCOME_HELD] = {"held", ACQUIRE},
    [OUTCOME_VALIDITY_EXHAUSTED] = {"validity_exhausted", ACQUIRE | EXTEND},
    [OUTCOME_EXTENDED] = {"extended", EXTEND},
    [OUTCOME_MAX_HOLD] = {"max_hold_reached", EXTEND},
    [OUTCOME_RELEASED] = {"released", RELEASE | FORCE},
    [OUTCOME_FOUND] = {"found", INSPECT},
    [OUTCOME_NOT_OWNER] = {"not_owner", EXTEND | RELEASE | FORCE},
    [OUTCOME_NOT_FOUND] = {"not_found", EXTEND | RELEASE | INSPECT | FORCE},
    [OUTCOME_KEY_REFUSED] = {"key_refused", ANY},
    [OUTCOME_NO_QUORUM] = {"no_quorum", ANY},
    [OUTCOME_TOO_MANY_WAITERS] = {"too_many_waiters", ACQUIRE | INSPECT},
    [OUTCOME_STOPPED] = {"stopped", ACQUIRE | INSPECT},
};

const char *outcome_name(enum outcome outcome)
{
    assert(outcome < OUTCOME_KINDS);
    return kinds[outcome].name;
}

bool outcome_is_of(enum outcome outcome, enum lock_call call)
{
    assert(outcome < OUTCOME_KINDS);
    return kinds[outcome].calls & 1 << call;
}

static const char *name_of_outcome(enum lock_call call, int outcome)
{
    return outcome < OUTCOME_KINDS && outcome_is_of((enum outcome)outcome, call)
               ? outcome_name((enum outcome)outcome)
               : NULL;
}

static const char *name_of_vote(int vote)
{
    return ballot_name(ballot_of_number(vote));
}

static_assert((int)BALLOT_KINDS <= METRICS_VOTES, "");
static_assert((int)OUTCOME_KINDS <= METRICS_OUTCOMES, "");

const struct metrics_names result_names = {name_of_outcome, name_of_vote};

struct engine_result result_plain(enum outcome outcome, int total)
{
    return (struct engine_result){
        .outcome = outcome,
        .remaining_ms = -1,
        .held_ms = -1,
        .quorum = quorum_of(total),
        .total = total,
    };
}

void result_report_votes(struct engine_result *result,
                         const struct round *round)
{
    static const enum vote as_asked[] = {
        [LOCK_ACQUIRE] = VOTE_GRANTED, [LOCK_EXTEND] = VOTE_EXTENDED,
        [LOCK_RELEASE] = VOTE_DELETED, [LOCK_INSPECT] = VOTE_HELD,
        [LOCK_FORCE] = VOTE_HELD,
    };
    result->round_start_us = round->start_us;
    result->votes_for = round_count(round, as_asked[round->kind]);
    if (round->kind == LOCK_RELEASE) /* they never had it */
        result->votes_for += round_count(round, VOTE_UNASKED);
    result->asked = nodeset_count(round->sent);
    result->quorum = round->quorum;
    result->total = round->total;
    for (int i = 0; i < round->total; i++)
        result->votes[i] = round_ballot(&round->votes[i]);
}

void result_report_token(struct engine_result *result, struct span token)
{
    struct token_parts parts;
    if (!token_parse(token, &parts))
        return; /* from another library: no number, no owner */
    result->number = parts.number;
    result->is_shared = parts.is_shared;
    result->owner = parts.owner;
    result->key_hash = parts.key_hash;
}

void result_report_age(struct engine_result *result, int64_t median_us)
{
    if (result->number > 0 && median_us >= result->number)
        result->held_ms = (median_us - result->number) / 1000;
}

void result_report_holder(struct engine_result *result,
                          const struct round *round, int64_t median_us)
{
    int node, count = round_common_value(round, &node);
    if (count >= round->quorum) {
        result_report_token(result, round_value(round, node));
        result_report_age(result, median_us);
    }
    result->has_holder = true;
    result->holders = round_holders(round);
    result->is_shared = result->holders > 0;
    result->remaining_ms = round_remaining_ms(round);
}

void result_report_version(struct engine_result *result,
                           const struct round *round, bool is_free)
{
    int node, count = round_common_value(round, &node);
    bool is_foreign = round_foreign(round) >= round->quorum;
    result->holders = is_free ? 0 : round_holders(round);
    result->is_shared = result->holders > 0;
    if (is_free)
        result->version = version_free;
    else if (result->is_shared)
        result->version = version_shared;
    else if (count < round->quorum)
        result->version = is_foreign ? version_foreign : version_split;
    else if (result->number > 0)
        result->version = version_of_number(result->number);
    else
        result->version = version_of_value(round_value(round, node));
}
