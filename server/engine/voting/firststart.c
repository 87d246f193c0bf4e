/* SPDX-License-Identifier: MIT */
#include "firststart.h"

enum {
    PATIENCE_US = 30000000, /* the wait for the last node */
    YIELD_US = 2000000,     /* time for a server that leads a first start */
};

static void firststart_end(struct firststart *start)
{
    start->step = FIRSTSTART_OVER;
    start->quarantined = 0;
}

void firststart_forget(struct firststart *start, int node)
{
    start->quarantined &= (uint16_t)~nodeset_of(node);
}

/* Another server quarantines the nodes, perhaps for its own first start. */
static void yield(struct firststart *start, int64_t now_us)
{
    start->yield_until_us = now_us + YIELD_US;
    firststart_end(start);
}

int64_t firststart_remaining_us(const struct firststart *start, int64_t now_us)
{
    if (start->step != FIRSTSTART_WAITING || start->since_us == 0)
        return 0;
    return at_least(start->since_us + PATIENCE_US - now_us, 0);
}

uint16_t firststart_advance(struct firststart *start, bool is_possible,
                            bool are_all_empty, int64_t probed_us,
                            int64_t now_us)
{
    const uint16_t all = nodeset_all(start->nodes);
    switch (start->step) {
    case FIRSTSTART_WAITING:
        if (!is_possible || (start->since_us != 0 &&
                             firststart_remaining_us(start, now_us) == 0))
            firststart_end(start);
        else if (are_all_empty) {
            start->step = FIRSTSTART_LEAD;
            return nodeset_of(start->leader);
        }
        return 0;
    case FIRSTSTART_LEAD:
        if ((start->quarantined & nodeset_of(start->leader)) == 0)
            return 0;
        start->step = FIRSTSTART_REST;
        return all;
    case FIRSTSTART_REST:
        if (start->quarantined != all)
            return 0;
        start->step = FIRSTSTART_HOLD;
        start->hold_until_us = now_us + start->hold_us;
        return 0;
    case FIRSTSTART_HOLD:
        if (now_us < start->hold_until_us)
            return 0;
        start->step = FIRSTSTART_CHECK;
        start->since_us = now_us;
        return all;
    case FIRSTSTART_CHECK:
        if (probed_us >= start->since_us)
            start->step = FIRSTSTART_ADMIT;
        return 0;
    case FIRSTSTART_ADMIT:
        if (start->quarantined == 0)
            firststart_end(start);
        return 0;
    case FIRSTSTART_OVER:
        return 0;
    }
    return 0;
}

void firststart_on_up(struct firststart *start, int64_t now_us)
{
    if (start->step == FIRSTSTART_WAITING && start->since_us == 0)
        start->since_us = now_us;
}

void firststart_on_probe(struct firststart *start, int node,
                         enum call_probe_word word, bool is_same_quarantine,
                         int64_t now_us)
{
    bool is_own = (start->quarantined & nodeset_of(node)) != 0 &&
                  word == PROBE_QUARANTINED && is_same_quarantine;
    switch (start->step) {
    case FIRSTSTART_WAITING:
        if (word == PROBE_QUARANTINED)
            yield(start, now_us);
        else if (word != PROBE_EMPTY)
            firststart_end(
                start); /* it was used before: there is no first start */
        return;
    case FIRSTSTART_LEAD:
    case FIRSTSTART_REST:
        if (word == PROBE_FRESH)
            start->quarantined |= nodeset_of(node);
        else if (word != PROBE_EMPTY && !is_own)
            yield(start, now_us);
        return;
    case FIRSTSTART_HOLD:
    case FIRSTSTART_CHECK:
        if (!is_own)
            firststart_end(start);
        return;
    case FIRSTSTART_ADMIT:
        if (!is_own)
            firststart_forget(start, node);
        return;
    case FIRSTSTART_OVER:
        return;
    }
}

void firststart_on_trouble(struct firststart *start, int node)
{
    if (start->step == FIRSTSTART_LEAD)
        start->step = FIRSTSTART_WAITING; /* none is known to be quarantined */
    else if (start->step == FIRSTSTART_ADMIT)
        firststart_forget(start, node);
    else if (start->step != FIRSTSTART_WAITING)
        firststart_end(start);
}

bool firststart_may_quarantine(const struct firststart *start, int node,
                               int64_t now_us)
{
    switch (start->step) {
    case FIRSTSTART_LEAD:
        return node == start->leader;
    case FIRSTSTART_REST:
        return true;
    case FIRSTSTART_OVER:
        return now_us >= start->yield_until_us;
    default:
        return false;
    }
}

bool firststart_is_quarantining(const struct firststart *start)
{
    return start->step == FIRSTSTART_LEAD || start->step == FIRSTSTART_REST;
}

bool firststart_may_admit(const struct firststart *start, int node)
{
    return start->step == FIRSTSTART_ADMIT &&
           (start->quarantined & nodeset_of(node)) != 0;
}
