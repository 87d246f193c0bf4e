#include "turn.h"

enum {
    OTHERS_US = 1000000, /* they count as waiting for so long */
    YIELD_US = 5000,     /* at least */
    YIELD_MOST_US = 50000,
    YIELD_TRIPS = 2, /* a release, its announcement and an attempt */
    GAP_MOST_US = 1000000,
    BEHIND_US = 2000, /* at most, and at most this part of the time that */
    BEHIND_PART = 32, /* has passed since its turn began */
};

void turn_on_others(struct turn *turn, int64_t others, int64_t now_us)
{
    turn->others = others;
    turn->others_until_us = now_us + OTHERS_US;
}

void turn_on_release(struct turn *turn, uint64_t next, int64_t trip_us,
                     int64_t now_us)
{
    bool is_over = next == 0 || next > turn->arrivals;
    if (!is_over || now_us >= turn->others_until_us ||
        now_us < turn->rest_until_us)
        return;
    int64_t us = at_most(YIELD_TRIPS * trip_us, YIELD_MOST_US);
    turn->yield_until_us = now_us + at_least(us, YIELD_US);
}

void turn_on_grant(struct turn *turn, bool follows, uint64_t arrivals,
                   int64_t now_us)
{
    if (!follows) {
        turn->arrivals = arrivals;
        turn->begun_us = now_us;
    }
    turn->elsewhere = 0;
    if (turn->yield_until_us == 0)
        return;
    turn->yield_until_us = 0; /* it was no use */
    turn->gap_us = at_most(at_least(turn->gap_us * 2, YIELD_US), GAP_MOST_US);
    turn->rest_until_us = now_us + turn->gap_us;
}

void turn_end_yield(struct turn *turn, bool was_used)
{
    turn->yield_until_us = 0;
    if (was_used)
        turn->gap_us = 0;
}

int64_t turn_behind_us(const struct turn *turn, int waiters, int64_t now_us)
{
    int64_t most_us = (now_us - turn->begun_us) / BEHIND_PART;
    if (turn->others < 2 || now_us >= turn->others_until_us)
        return 0;
    return at_most(most_us, BEHIND_US) / at_least(turn->elsewhere / waiters, 1);
}
