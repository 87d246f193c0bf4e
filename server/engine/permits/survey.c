#include "survey.h"

#include <assert.h>

#include "../../base/order.h"

void survey_init(struct survey *survey, int total, int count, int wanted)
{
    assert(total <= NODES_MAX && count > 0 && count <= POOL_SLOTS_MAX);
    *survey = (struct survey){.total = total, .count = count, .wanted = wanted};
    for (int i = 0; i < total; i++)
        survey->votes[i].vote = VOTE_PENDING;
}

void survey_look(struct survey *survey, int limit, int wanted, bool must_prove)
{
    assert(limit <= survey->count && wanted > 0);
    survey->own_limit = limit;
    survey->own_wanted = wanted;
    survey->must_prove = must_prove;
}

void survey_note_ballot(struct survey *survey, int node, struct ballot ballot)
{
    if (survey->votes[node].vote == VOTE_PENDING)
        survey->votes[node] = ballot;
}

void survey_note_reply(struct survey *survey, int node,
                       const struct call_reply *reply)
{
    struct ballot ballot = call_ballot(reply);
    if (survey->votes[node].vote != VOTE_PENDING)
        return;
    if (ballot.vote == VOTE_DONE && reply->slots.len != (size_t)survey->count)
        ballot = (struct ballot){.vote = VOTE_UNREADABLE};
    survey->votes[node] = ballot;
    if (ballot.vote != VOTE_DONE)
        return;
    survey->rest_ms[survey->answers++] = reply->pttl_ms;
    for (int i = 0; i < survey->count; i++) {
        if (reply->slots.ptr[i] != CALL_SLOT_FREE)
            survey->taken[i]++;
        if (reply->slots.ptr[i] == CALL_SLOT_OWN)
            survey->own[i]++;
    }
}

void survey_note_rest(struct survey *survey)
{
    for (int i = 0; i < survey->total; i++)
        survey_note_ballot(survey, i, (struct ballot){.vote = VOTE_UNANSWERED});
}

static int count_votes(const struct survey *survey, enum vote vote)
{
    int count = 0;
    for (int i = 0; i < survey->total; i++)
        count += survey->votes[i].vote == vote;
    return count;
}

/* So many nodes are known to have no key there. */
static int free_on(const struct survey *survey, int slot)
{
    return survey->answers - survey->taken[slot];
}

/* Whether no answer that is still to come changes which slots are its own. */
static bool is_own_clear(const struct survey *survey, int pending)
{
    int quorum = quorum_of(survey->total), seen = 0, proven = 0, open = 0;
    for (int i = 0; i < survey->own_limit; i++) {
        int own = survey->own[i];
        seen += own > 0;
        proven += own >= quorum;
        open += own > 0 && own < quorum && own + pending >= quorum;
    }
    return open == 0 || proven >= survey->own_wanted ||
           seen < survey->own_wanted ||
           (seen == survey->own_wanted && !survey->must_prove);
}

enum survey_outcome survey_outcome(const struct survey *survey)
{
    int quorum = quorum_of(survey->total), free = 0, open = 0;
    int pending = count_votes(survey, VOTE_PENDING);
    int refused = count_votes(survey, VOTE_KEY_REFUSED);
    if (survey->answers < quorum) {
        bool may_change =
            pending > 0 && (survey->answers + pending >= quorum ||
                            (refused < quorum && refused + pending >= quorum));
        return may_change          ? SURVEY_OPEN
               : refused >= quorum ? SURVEY_REFUSED
                                   : SURVEY_NO_QUORUM;
    }
    for (int i = 0; i < survey->count; i++) {
        bool is_free = free_on(survey, i) >= quorum;
        free += is_free;
        open += !is_free && free_on(survey, i) + pending >= quorum;
    }
    bool is_clear =
        (free >= survey->wanted || open == 0) && is_own_clear(survey, pending);
    return is_clear || pending == 0 ? SURVEY_TOLD : SURVEY_OPEN;
}

struct slotset survey_own(const struct survey *survey)
{
    struct slotset set = {{0}};
    int least = survey->must_prove ? quorum_of(survey->total) : 1, count = 0;
    for (int nodes = survey->answers; nodes >= least; nodes--)
        for (int i = 0; i < survey->own_limit && count < survey->own_wanted;
             i++) {
            if (survey->own[i] != nodes)
                continue;
            slotset_add(&set, i);
            count++;
        }
    return count == survey->own_wanted ? set : (struct slotset){{0}};
}

struct slotset survey_free(const struct survey *survey)
{
    struct slotset set = {{0}};
    for (int i = 0; i < survey->count; i++)
        if (free_on(survey, i) >= quorum_of(survey->total))
            slotset_add(&set, i);
    return set;
}

int64_t survey_rest_ms(const struct survey *survey)
{
    int64_t rests[NODES_MAX];
    int count = 0;
    for (int i = 0; i < survey->answers; i++)
        if (survey->rest_ms[i] >= 0)
            rests[count++] = survey->rest_ms[i];
    int quorum = quorum_of(survey->total);
    if (count < quorum)
        return -1;
    return order_statistic(rests, count, quorum - 1);
}
