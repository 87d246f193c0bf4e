#include "result.h"

#include <assert.h>

#include "token.h"

static const char *const names[OUTCOME_KINDS] = {
    [OUTCOME_PENDING] = "pending",
    [OUTCOME_GRANTED] = "granted",
    [OUTCOME_HELD] = "held",
    [OUTCOME_VALIDITY_EXHAUSTED] = "validity_exhausted",
    [OUTCOME_EXTENDED] = "extended",
    [OUTCOME_MAX_HOLD] = "max_hold_reached",
    [OUTCOME_RELEASED] = "released",
    [OUTCOME_FOUND] = "found",
    [OUTCOME_NOT_OWNER] = "not_owner",
    [OUTCOME_NOT_FOUND] = "not_found",
    [OUTCOME_KEY_REFUSED] = "key_refused",
    [OUTCOME_NO_QUORUM] = "no_quorum",
};

const char *outcome_name(enum outcome outcome)
{
    assert(outcome < OUTCOME_KINDS);
    return names[outcome];
}

/* The vote that means "as asked". */
static enum vote vote_for(enum round_kind kind)
{
    static const enum vote votes[] = {
        [ROUND_ACQUIRE] = VOTE_GRANTED,
        [ROUND_EXTEND] = VOTE_EXTENDED,
        [ROUND_RELEASE] = VOTE_DELETED,
        [ROUND_INSPECT] = VOTE_HELD,
    };
    return votes[kind];
}

void result_tell_votes(struct engine_result *result, const struct round *round)
{
    result->round_start_us = round->start_us;
    result->votes_for = round_count(round, vote_for(round->kind));
    result->quorum = round->quorum;
    result->total = round->total;
    for (int i = 0; i < round->total; i++)
        result->votes[i] = round->votes[i].vote;
}

void result_tell_token(struct engine_result *result, struct span token)
{
    struct token_parts parts;
    if (!token_parse(token, &parts))
        return; /* taken by another library: no number, no owner */
    result->number = parts.number;
    result->owner = parts.owner;
}

void result_tell_holder(struct engine_result *result, const struct round *round,
                        int64_t median_us)
{
    int count;
    int node = round_common_value(round, &count);
    if (count >= round->quorum) {
        const struct round_vote *vote = &round->votes[node];
        result_tell_token(result, (struct span){vote->value, vote->value_len});
        if (result->number > 0 && median_us >= result->number)
            result->held_ms = (median_us - result->number) / 1000;
    }
    result->has_holder = true;
    result->remaining_ms = round_remaining_ms(round);
}
