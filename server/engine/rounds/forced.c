/* SPDX-License-Identifier: MIT */
#include "forced.h"

#include <assert.h>
#include <stdlib.h>

#include "../port/token.h"

/* Of inspections: so many times as are needed if nobody comes meanwhile. */
enum { PATIENCE = 4, INSPECTIONS_MAX = 1 << 20 };

/* What one inspection found. */
struct forced_token {
    bool is_shared; /* on one node */
    size_t len;
    char text[TOKEN_MAX];
};

struct forced *forced_new(int64_t number)
{
    struct forced *forced = calloc(1, sizeof *forced);
    if (forced != NULL)
        forced->number = number;
    return forced;
}

void forced_free(struct forced *forced)
{
    if (forced != NULL)
        free(forced->tokens);
    free(forced);
}

/* ---- inspections --------------------------------------------------------- */

void forced_begin_inspection(struct forced *forced)
{
    forced->count = 0;
    forced->left = 0;
    forced->is_releasing = false;
}

static struct span forced_token(const struct forced *forced, int i)
{
    return (struct span){forced->tokens[i].text, forced->tokens[i].len};
}

/* Nodes report mostly the same tokens in the same order. */
static struct forced_token *forced_find(struct forced *forced,
                                        struct span token)
{
    for (int tried = 0; tried < forced->count; tried++) {
        int i = (forced->next + tried) % forced->count;
        if (!token_is_same(forced_token(forced, i), token))
            continue;
        forced->next = i + 1;
        return &forced->tokens[i];
    }
    return NULL;
}

static struct forced_token *forced_add(struct forced *forced, struct span token)
{
    if (forced->count == forced->room) {
        int room = forced->room > 0 ? 2 * forced->room : 4;
        void *tokens =
            realloc(forced->tokens, (size_t)room * sizeof *forced->tokens);
        if (tokens == NULL)
            return NULL;
        forced->tokens = tokens;
        forced->room = room;
    }
    struct forced_token *it = &forced->tokens[forced->count++];
    it->is_shared = false;
    it->len = span_copy(it->text, token);
    return it;
}

bool forced_note_tokens(struct forced *forced, const struct call_reply *reply)
{
    struct span rest = reply->names, token;
    struct token_parts parts;
    forced->next = 0;
    while (call_next_name(&rest, &token)) {
        if (!token_parse(token, &parts) ||
            (forced->number != 0 && parts.number != forced->number))
            continue;
        struct forced_token *it = forced_find(forced, token);
        if (it == NULL)
            it = forced_add(forced, token);
        if (it == NULL)
            return false;
        it->is_shared |= parts.is_shared;
    }
    if (forced->number == 0)
        forced->left = at_least(forced->left, reply->left);
    return true;
}

struct span forced_next(const struct forced *forced, int *at)
{
    while (*at < forced->count) {
        int i = (*at)++;
        if (forced->number != 0 || forced->tokens[i].is_shared)
            return forced_token(forced, i);
    }
    return (struct span){0};
}

int forced_count(const struct forced *forced)
{
    int count = 0, at = 0;
    while (forced_next(forced, &at).len > 0)
        count++;
    return count;
}

void forced_end_inspection(struct forced *forced)
{
    forced->is_releasing = true;
    if (forced->inspections++ == 0)
        forced->inspections_max =
            (int)at_most(PATIENCE * (2 + forced->left / CALL_TOKENS_REPORTED),
                         INSPECTIONS_MAX);
}

/* ---- releases ----------------------------------------------------------- */

void forced_begin_releases(struct forced *forced, unsigned asking)
{
    forced->asking = asking;
    memset(forced->tally, 0, sizeof forced->tally);
}

/* What counts most is the first: no vote at all, then that one was deleted. */
static int forced_rank(struct ballot ballot)
{
    static const enum vote votes[] = {VOTE_PENDING, VOTE_UNASKED, VOTE_FREE,
                                      VOTE_HELD, VOTE_DELETED};
    enum { VOTES = sizeof votes / sizeof *votes };
    int rank = 0;
    while (rank < VOTES && votes[rank] != ballot.vote)
        rank++;
    return rank;
}

static void forced_merge(struct forced_tally *tally, struct ballot ballot)
{
    if (forced_rank(ballot) > forced_rank(tally->ballot))
        tally->ballot = ballot;
}

void forced_note_asked(struct forced *forced, int node, struct ballot ballot)
{
    forced->tally[node].due += ballot.vote == VOTE_PENDING;
    forced_merge(&forced->tally[node], ballot);
}

struct ballot forced_ballot(const struct forced *forced, int node)
{
    const struct forced_tally *tally = &forced->tally[node];
    if (tally->due > 0)
        return (struct ballot){.vote = VOTE_PENDING};
    return tally->ballot;
}

bool forced_note_answer(struct forced *forced, int node, unsigned asking,
                        struct call_reply *reply)
{
    struct forced_tally *tally = &forced->tally[node];
    if (!forced->is_releasing || asking != forced->asking ||
        tally->due == 0) /* of an earlier round, if the numbers wrapped */
        return false;
    forced_merge(tally, call_ballot(reply));
    if (reply->vote != tally->ballot.vote || tally->ballot.vote != VOTE_HELD) {
        reply->vote = tally->ballot.vote;
        reply->state = tally->ballot.state;
    }
    return --tally->due == 0;
}
