#include "five.h"

#include <check.h>

struct five five;

void five_begin(void)
{
    five = (struct five){.now_us = 10 * FIVE_SECOND};
    clocks_init(&five.clocks, FIVE_NODES, FIVE_TTL_MS,
                FIVE_WINDOW_US, FIVE_PATIENCE_US);
}

bool five_reply_after(int node, int64_t trip_us)
{
    int64_t sent_us = five.now_us;
    five.now_us += trip_us;
    return clocks_observe(&five.clocks, node,
                          FIVE_EPOCH_US + five.offset_us[node] + sent_us +
                              trip_us / 2,
                          sent_us, five.now_us);
}

bool five_reply(int node)
{
    return five_reply_after(node, FIVE_TRIP_US);
}

void five_all_reply(void)
{
    for (int i = 0; i < FIVE_NODES; i++)
        (void)five_reply(i);
}

void five_up(int node)
{
    clocks_note_up(&five.clocks, node, true);
    ck_assert(five_reply(node));
}

void five_all_up(void)
{
    for (int i = 0; i < FIVE_NODES; i++)
        five_up(i);
    clocks_tick(&five.clocks, five.now_us);
}

void five_watch(int64_t us)
{
    for (int64_t until_us = five.now_us + us; five.now_us < until_us;) {
        five.now_us += FIVE_SECOND;
        for (int i = 0; i < FIVE_NODES; i++)
            if (five.clocks.node[i].is_up)
                ck_assert(five_reply(i));
    }
    clocks_tick(&five.clocks, five.now_us);
}
