/* SPDX-License-Identifier: MIT */
#include "round.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/types.h"
#include "../port/token.h"
#include "../voting/clocks.h"

enum { DRIFT_FIXED_US = 2000 }; /* of the text */

void round_init(struct round *round, enum lock_call kind, int total,
                int64_t start_us, int64_t deadline_us)
{
    assert(total >= 1 && total <= NODES_MAX && deadline_us >= start_us);
    static_assert((int)VOTE_PENDING == 0, "");
    static_assert((int)STATE_NONE == 0, "");
    memset(round, 0, offsetof(struct round, values));
    round->kind = kind;
    round->total = total;
    round->quorum = quorum_of(total);
    round->pending = total;
    round->start_us = start_us;
    round->deadline_us = deadline_us;
}

void round_note_ballot(struct round *round, int node, struct ballot ballot)
{
    assert(node >= 0 && node < round->total);
    /* a second reply is ignored; nothing is sent to a node that has voted */
    assert(round->votes[node].vote == VOTE_PENDING);
    round->votes[node].vote = ballot.vote;
    round->votes[node].state = ballot.state;
    round->unasked &= (uint16_t)~nodeset_of(node);
    round->pending--;
}

uint16_t round_with(const struct round *round, enum vote vote)
{
    uint16_t nodes = 0;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote == vote)
            nodes |= nodeset_of(i);
    return nodes;
}

/* Those that have neither a vote nor still owe one. */
static uint16_t round_not_voting(const struct round *round)
{
    uint16_t nodes = 0;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote != VOTE_PENDING &&
            !vote_is_answer(round->votes[i].vote))
            nodes |= nodeset_of(i);
    return nodes;
}

static int count_not_voting(const struct round *round)
{
    return nodeset_count(round_not_voting(round));
}

bool round_is_broken(const struct round *round)
{
    return (round_not_voting(round) & round->sent) != 0;
}

uint16_t round_may_be_set(const struct round *round)
{
    uint16_t nodes = round->sent;
    for (int i = 0; i < round->total; i++)
        if (ballot_is_harmless(round_ballot(&round->votes[i])))
            nodes &= (uint16_t)~nodeset_of(i);
    return nodes;
}

bool round_wants_rest(const struct round *round)
{
    uint16_t under_way = round->sent & round_with(round, VOTE_PENDING);
    return round->unasked != 0 && (under_way == 0 || round_is_broken(round));
}

void round_note_sent(struct round *round, int node, uint32_t life)
{
    assert(node >= 0 && node < round->total);
    round->votes[node].life = life;
    round->sent |= nodeset_of(node);
    round->unasked &= (uint16_t)~nodeset_of(node);
}

void round_note_reply(struct round *round, int node,
                      const struct call_reply *reply)
{
    struct round_vote *vote = &round->votes[node];
    if (reply->vote == VOTE_DISCONNECTED)
        round->broken |= nodeset_of(node);
    if (vote->vote != VOTE_PENDING)
        return;
    round_note_ballot(round, node, call_ballot(reply));
    if (reply->vote == VOTE_STALE && reply->highest > round->highest)
        round->highest = reply->highest;
    if (reply->vote == VOTE_HELD) {
        assert(reply->value.len <= VALUE_MAX); /* script.c reads no longer */
        vote->pttl_ms = reply->pttl_ms;
        vote->holders = reply->holders;
        vote->reader = round->kind == LOCK_ACQUIRE ? reply->highest : 0;
        vote->value_len = span_copy(round->values[node], reply->value);
    }
}

void round_note_outdated(struct round *round, int node)
{
    enum vote *vote = &round->votes[node].vote;
    if (*vote == VOTE_GRANTED || *vote == VOTE_EXTENDED || *vote == VOTE_FREE)
        *vote = VOTE_DISTRUSTED;
}

void round_note_rest(struct round *round, enum vote vote)
{
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote == VOTE_PENDING)
            round_note_ballot(round, i, (struct ballot){.vote = vote});
}

void round_wait_on(struct round *round, int64_t deadline_us)
{
    uint16_t silent = round->sent & round_with(round, VOTE_UNANSWERED);
    round->deadline_us = deadline_us;
    round->pending += nodeset_count(silent);
    for (int i = 0; i < round->total; i++)
        if ((silent & nodeset_of(i)) != 0)
            round->votes[i].vote = VOTE_PENDING;
}

static bool is_same_value(const struct round *round, int a, int b)
{
    return round->votes[a].vote == VOTE_HELD &&
           round->votes[b].vote == VOTE_HELD &&
           (round->votes[a].holders > 0) == (round->votes[b].holders > 0) &&
           span_is_same(round_value(round, a), round_value(round, b));
}

int round_common_value(const struct round *round, int *node)
{
    int count = 0;
    *node = -1;
    for (int i = 0; i < round->total; i++) {
        int same = 0;
        if (round->votes[i].vote != VOTE_HELD)
            continue;
        for (int j = 0; j < round->total; j++)
            same += is_same_value(round, i, j);
        if (same > count) {
            count = same;
            *node = i;
        }
    }
    return count;
}

/* Held with a value that is no token of ours. */
static bool round_is_foreign(const struct round *round, int node)
{
    return round->votes[node].vote == VOTE_HELD &&
           round->votes[node].holders == 0 &&
           !token_is_ours(round_value(round, node));
}

int round_foreign(const struct round *round)
{
    int count = 0;
    for (int i = 0; i < round->total; i++)
        count += round_is_foreign(round, i);
    return count;
}

uint16_t round_repeated(const struct round *round, struct span key_hash,
                        int64_t *number)
{
    struct token_parts parts;
    uint16_t nodes = 0;
    *number = 0;
    for (int i = 0; i < round->total && key_hash.len > 0; i++) {
        if (round->votes[i].vote != VOTE_HELD ||
            !token_parse(round_value(round, i), &parts) ||
            !span_is_same(parts.key_hash, key_hash))
            continue;
        nodes |= nodeset_of(i);
        *number = at_least(*number, parts.number);
    }
    return nodes;
}

bool round_may_have(const struct round *round, struct span key_hash)
{
    int64_t number;
    int found = nodeset_count(round_repeated(round, key_hash, &number));
    int unknown = 0;
    for (int i = 0; i < round->total; i++)
        unknown += !vote_is_answer(round->votes[i].vote);
    return found > 0 && found + unknown >= round->quorum;
}

int64_t round_reader_number(const struct round *round)
{
    int64_t number = 0;
    for (int i = 0; i < round->total; i++)
        number = at_least(number, round->votes[i].reader);
    return number;
}

int64_t round_remaining_ms(const struct round *round)
{
    int64_t ends_ms[NODES_MAX];
    int count = 0;
    int common;
    int same = round_common_value(round, &common);
    for (int i = 0; i < round->total; i++) {
        int64_t pttl_ms = round->votes[i].pttl_ms;
        bool is_the_holders = same >= round->quorum
                                  ? is_same_value(round, common, i)
                                  : round_is_foreign(round, i);
        if (is_the_holders)
            ends_ms[count++] = pttl_ms >= 0 ? pttl_ms : INT64_MAX;
    }
    if (count < round->quorum)
        return -1;
    int64_t remaining_ms =
        order_statistic(ends_ms, count, count - round->quorum);
    return remaining_ms == INT64_MAX ? -1 : remaining_ms;
}

int64_t round_holders(const struct round *round)
{
    int64_t most = 0;
    int count = 0;
    for (int i = 0; i < round->total; i++) {
        count += round->votes[i].holders > 0;
        most = at_least(most, round->votes[i].holders);
    }
    return count < round->quorum ? 0 : most;
}

/* With this many nodes not voting, the rest is less than a majority. */
static int too_many_missing(const struct round *round)
{
    return round->total - round->quorum + 1;
}

/*
 * A row of a verdict table: it fits if have ≥ need. As replies come in, counts
 * only grow, each by at most one per reply; so with p replies outstanding a row
 * can no longer fit if have + p < need.
 */
struct row {
    enum verdict verdict;
    int have;
    int need;
};

enum { ALWAYS = 0 };

/* The first row that fits, once no row above it can fit any more. */
static enum verdict round_decide(const struct row *row, int pending)
{
    for (;; row++) {
        if (row->have >= row->need)
            return row->verdict;
        if (row->have + pending >= row->need)
            return VERDICT_OPEN;
    }
}

enum verdict round_verdict(const struct round *round)
{
    int held = round_count(round, VOTE_HELD);
    int node, common = held > 0 ? round_common_value(round, &node) : 0;
    int foreign = held > 0 ? round_foreign(round) : 0;
    int own = round_count(round, VOTE_EXTENDED);
    int missing = count_not_voting(round);
    int quorum = round->quorum, too_many = too_many_missing(round);
    bool is_early = round->hears_all && round->pending > 0;
    /* too few vote, for one lasting reason, or for any */
    const struct row refused = {VERDICT_REFUSED,
                                round_count(round, VOTE_KEY_REFUSED), quorum};
    const struct row no_quorum = {VERDICT_NO_QUORUM, missing, too_many};
    switch (round->kind) {
    case LOCK_ACQUIRE:
        return round_decide(
            (const struct row[]){
                /* by a majority of the configured nodes */
                {VERDICT_WON, round_count(round, VOTE_GRANTED), quorum},
                refused,
                no_quorum,
                /* one value, or values that are no tokens of ours (some
                   libraries use another on each node): nobody races us */
                {VERDICT_HELD, common > foreign ? common : foreign, quorum},
                {VERDICT_STALE, round_count(round, VOTE_STALE), 1},
                {VERDICT_SPLIT, 0, ALWAYS}},
            round->pending);
    case LOCK_EXTEND:
        return round_decide(
            (const struct row[]){
                {VERDICT_WON, own, quorum},
                refused,
                no_quorum,
                /* those that did not vote could have made the majority */
                {VERDICT_NO_QUORUM, own + missing, quorum},
                {VERDICT_NOT_OWNER, held, 1},
                {VERDICT_NOT_FOUND, 0, ALWAYS}},
            round->pending);
    case LOCK_RELEASE:
        return round_decide(
            (const struct row[]){
                refused,
                no_quorum,
                /* even if a leftover of ours was deleted elsewhere */
                {VERDICT_NOT_OWNER, common, quorum},
                {VERDICT_WON, round_count(round, VOTE_DELETED), 1},
                {VERDICT_NOT_OWNER, held, 1},
                {VERDICT_NOT_FOUND, 0, ALWAYS}},
            round->pending);
    case LOCK_INSPECT:
        return round_decide(
            (const struct row[]){
                {VERDICT_FOUND, common, quorum},
                refused,
                no_quorum,
                /* nobody could acquire it; values of other libraries have a
                   version of their own, whichever reply comes first */
                {VERDICT_BUSY, foreign, quorum},
                {VERDICT_BUSY, held, too_many},
                /* with those that did not vote, one may be on a majority */
                {VERDICT_NO_QUORUM, common + missing, quorum},
                {VERDICT_NOT_FOUND, 0, ALWAYS}},
            round->pending);
    case LOCK_FORCE:
        /* Which other nodes have the token does not matter: all are asked to
           delete it. A minority may have what an old lock left behind, so each
           node is waited for before the token is not found, or if all tokens
           are wanted. */
        return round_decide(
            (const struct row[]){refused,
                                 no_quorum,
                                 {VERDICT_WON, is_early ? 0 : round->found, 1},
                                 {VERDICT_NOT_OWNER, held, 1},
                                 {VERDICT_NOT_FOUND, 0, ALWAYS}},
            round->pending);
    }
    abort();
}

bool round_is_lost_to_time(const struct round *round)
{
    int slow = nodeset_count(round->sent & (round_with(round, VOTE_UNANSWERED) |
                                            round_with(round, VOTE_LATE)));
    return slow > 0 && count_not_voting(round) - slow < too_many_missing(round);
}

int64_t round_validity_ms(const struct round *round, int64_t ttl_ms,
                          int64_t now_us, double drift_factor)
{
    if (round->won_us == 0)
        return -1;
    assert(ttl_ms > 0 && round->won_us >= round->start_us);
    int64_t ttl_us = ttl_ms * 1000;
    double drift = (double)ttl_us * drift_factor;
    int64_t drift_us = (int64_t)drift;
    if ((double)drift_us < drift)
        drift_us++;
    int64_t flight_us = round->won_us - round->start_us;
    int64_t hidden_us = at_least(flight_us, NODECLOCK_STEP_US);
    int64_t validity_us = ttl_us - (now_us - round->start_us) - drift_us -
                          DRIFT_FIXED_US - hidden_us;
    return validity_us >= 0 ? validity_us / 1000 : -1;
}
