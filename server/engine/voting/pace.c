#include "pace.h"

#include "../../base/types.h"

enum {
    SMOOTHING = 8,   /* round trips that an average remembers */
    SLOWER_US = 500, /* a smaller difference is noise */
    OUTLIER = 4,     /* of what is slow; longer counts no more: we may have
                        stood still */
    UNKNOWN_US = 1000000000,
};

void pace_init(struct pace *pace, int total)
{
    *pace = (struct pace){.total = total, .slow_us = UNKNOWN_US};
}

void pace_on_sent(struct pace *pace, int node, int64_t now_us)
{
    struct pace_node *it = &pace->node[node];
    if (it->under_way++ == 0)
        it->since_us = now_us;
}

void pace_on_reply(struct pace *pace, int node, bool is_round, int64_t sent_us,
                   int64_t received_us)
{
    struct pace_node *it = &pace->node[node];
    int64_t trip_us = at_least(received_us - sent_us, 1);
    if (trip_us > OUTLIER * pace->slow_us)
        trip_us = OUTLIER * pace->slow_us;
    if (is_round && it->under_way > 0)
        it->under_way--;
    it->since_us = received_us;
    it->trip_us +=
        it->trip_us == 0 ? trip_us : (trip_us - it->trip_us) / SMOOTHING;
}

void pace_on_down(struct pace *pace, int node)
{
    pace->node[node] = (struct pace_node){0};
}

void pace_tick(struct pace *pace)
{
    int64_t trips_us[NODES_MAX];
    int known = 0;
    for (int i = 0; i < pace->total; i++)
        if (pace->node[i].trip_us > 0)
            trips_us[known++] = pace->node[i].trip_us;
    pace->slow_us = UNKNOWN_US;
    if (known == 0)
        return;
    int needed = quorum_of(pace->total);
    int64_t last_us =
        order_statistic(trips_us, known, (needed < known ? needed : known) - 1);
    pace->slow_us = at_least(2 * last_us, last_us + SLOWER_US);
}

bool pace_leaves_time(const struct pace *pace, int64_t timeout_us)
{
    return pace->slow_us == UNKNOWN_US ||
           pace->slow_us + pace->slow_us / 2 <= timeout_us;
}

bool pace_is_slow(const struct pace *pace, int node, int64_t now_us)
{
    const struct pace_node *it = &pace->node[node];
    return it->trip_us > pace->slow_us ||
           (it->under_way > 0 && now_us - it->since_us > pace->slow_us);
}
