#include "forced.h"

#include <stdlib.h>

#include "../../base/order.h"
#include "../port/token.h"

/* Of looks: so many times as are needed if nobody comes meanwhile. */
enum { PATIENCE = 4, LOOKS_MAX = 1 << 20 };

struct forced *forced_new(int64_t number)
{
    struct forced *forced = calloc(1, sizeof *forced);
    if (forced != NULL)
        forced->number = number;
    return forced;
}

void forced_free(struct forced *forced)
{
    if (forced == NULL)
        return;
    free(forced->tokens);
    free(forced);
}

/* ---- looks -------------------------------------------------------------- */

void forced_begin_look(struct forced *forced)
{
    forced->count = 0;
    forced->left = 0;
    forced->is_releasing = false;
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
    it->nodes = 0;
    it->is_shared = false;
    it->len = span_copy(it->text, token);
    return it;
}

bool forced_note_tokens(struct forced *forced, int node,
                        const struct call_reply *reply)
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
        it->nodes |= (uint16_t)(1u << node);
        it->is_shared |= parts.is_shared;
    }
    if (forced->number == 0)
        forced->left = at_least(forced->left, reply->left);
    return true;
}

bool forced_is_wanted(const struct forced *forced, int i)
{
    return forced->number != 0 || forced->tokens[i].is_shared;
}

int forced_count(const struct forced *forced)
{
    int count = 0;
    for (int i = 0; i < forced->count; i++)
        count += forced_is_wanted(forced, i);
    return count;
}

void forced_end_look(struct forced *forced)
{
    forced->is_releasing = true;
    if (forced->looks++ == 0)
        forced->looks_max = (int)at_most(
            PATIENCE * (2 + forced->left / CALL_TOKENS_TOLD), LOOKS_MAX);
}

/* ---- releases ----------------------------------------------------------- */

void forced_begin_release(struct forced *forced, unsigned asking)
{
    forced->asking = asking;
    for (int i = 0; i < NODES_MAX; i++)
        forced->tally[i] = (struct forced_tally){
            .ballot = {.vote = VOTE_PENDING},
        };
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
    struct forced_tally *tally = &forced->tally[node];
    tally->due += ballot.vote == VOTE_PENDING;
    forced_merge(tally, ballot);
}

bool forced_note_answer(struct forced *forced, int node,
                        struct call_reply *reply)
{
    struct forced_tally *tally = &forced->tally[node];
    if (tally->due == 0) /* of an earlier round, if the numbers wrapped */
        return false;
    forced_merge(tally, call_ballot(reply));
    if (reply->vote != tally->ballot.vote || tally->ballot.vote != VOTE_HELD) {
        reply->vote = tally->ballot.vote;
        reply->state = tally->ballot.state;
    }
    return --tally->due == 0;
}
