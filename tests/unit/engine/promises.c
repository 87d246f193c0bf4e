#include "promises.h"

#include <string.h>

void promises_init(struct promises *promises, int quorum)
{
    memset(promises, 0, sizeof *promises);
    promises->quorum = quorum;
}

int promises_add(struct promises *promises, int64_t over_us)
{
    int number = promises->count++;
    promises->promise[number % PROMISES_MAX] =
        (struct promise){.over_us = over_us};
    return number;
}

static int count(unsigned bits)
{
    int nodes = 0;
    for (; bits != 0; bits &= bits - 1)
        nodes++;
    return nodes;
}

void promises_on_vote(struct promises *promises, int number, int node,
                      int64_t now_us)
{
    struct promise *promise = &promises->promise[number % PROMISES_MAX];
    promise->voted_us[node] = now_us;
    promise->voted |= 1u << node;
}

void promises_on_count(struct promises *promises, int number, unsigned nodes)
{
    struct promise *promise = &promises->promise[number % PROMISES_MAX];
    if (promise->counted != 0 || count(nodes) < promises->quorum)
        return;
    promise->counted = nodes;
    promises->won++;
}

void promises_on_loss(struct promises *promises, int node, int64_t since_us)
{
    for (int i = 0; i < PROMISES_MAX; i++) {
        struct promise *it = &promises->promise[i];
        if (it->voted_us[node] >= since_us)
            it->forgot |= it->voted & 1u << node;
    }
}

void promises_on_step(struct promises *promises, int node)
{
    for (int i = 0; i < PROMISES_MAX; i++)
        promises->promise[i].ended |= promises->promise[i].voted & 1u << node;
}

void promises_on_unseen_step(struct promises *promises, int node)
{
    for (int i = 0; i < PROMISES_MAX; i++)
        promises->promise[i].ended &= ~(1u << node);
}

void promises_on_admission(struct promises *promises, int node, int64_t now_us)
{
    for (int i = 0; i < PROMISES_MAX; i++) {
        struct promise *it = &promises->promise[i];
        if (now_us < it->over_us)
            it->back |= (it->forgot | it->ended) & 1u << node;
    }
}

bool promises_has_voted(const struct promises *promises, int node)
{
    for (int i = 0; i < PROMISES_MAX; i++)
        if (promises->promise[i].voted & 1u << node)
            return true;
    return false;
}

int promises_find_broken(const struct promises *promises)
{
    for (int i = 0; i < PROMISES_MAX; i++)
        if ((promises->promise[i].back & promises->promise[i].counted) != 0)
            return i;
    return -1;
}
