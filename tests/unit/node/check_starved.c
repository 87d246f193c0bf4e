/* SPDX-License-Identifier: MIT */
/*
 * Parts of a loop, links and engines are made whole, or not at all.
 */
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/link.h"
#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../play.h"
#include "../starve.h"
#include "../turns.h"

static struct loop *loop;
static int ends[2];

static void ignore_event(void *arg, int events)
{
    (void)arg, (void)events;
}

static void ignore_found(void *arg, const struct addrinfo *found,
                         const char *error)
{
    (void)arg, (void)found, (void)error;
}

static void stop(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

/* ---- what can be made ---------------------------------------------------- */

static void *make_watch(void)
{
    return loop_watch_new(loop, ends[0], ignore_event, NULL);
}

static void free_watch(void *it)
{
    loop_watch_free(it);
}

static void *make_timer(void)
{
    return loop_timer_new(loop, stop, NULL);
}

static void free_timer(void *it)
{
    loop_timer_free(it);
}

/* Of an address: nothing waits in another thread. */
static void *make_lookup(void)
{
    return loop_lookup_new(loop, "127.0.0.1", 1, ignore_found, NULL);
}

static void free_lookup(void *it)
{
    loop_lookup_cancel(it);
}

static void *make_link(void)
{
    static const struct address_node config = {.host = "127.0.0.1", .port = 1};
    static const struct node_events events = {0};
    const struct line_setup setup = {
        .loop = loop, .config = &config, .silence_us = 1000000, .prefix = ""};
    return link_new(0, &setup, &events);
}

static void free_link(void *it)
{
    link_free(it);
}

static bool has_timers = true;
static struct metrics metrics;

static int64_t port_now(void *ctx)
{
    (void)ctx;
    return 1000000;
}

static bool port_timer(void *ctx, uint32_t id, int64_t at_us)
{
    (void)ctx, (void)id, (void)at_us;
    return has_timers;
}

static void *make_engine(void)
{
    static const struct engine_port port = {.now = port_now,
                                            .timer = port_timer};
    return engine_new(&play_settings, &port, &metrics);
}

static void free_engine(void *it)
{
    engine_free(it);
}

static const struct {
    void *(*make)(void);
    void (*free)(void *it);
    int allocations_least;
} things[] = {
    {make_watch, free_watch, 1},   {make_timer, free_timer, 1},
    {make_lookup, free_lookup, 2}, {make_link, free_link, 3},
    {make_engine, free_engine, 1},
};

/* ---- with too little memory ---------------------------------------------- */

static int thing;

/* In a turn all that was closed is freed. */
static void turn(void)
{
    struct loop_timer *timer = make_timer();
    loop_timer_set(timer, clock_now_us());
    loop_run(loop);
    loop_timer_free(timer);
}

static void make_with_too_little(void)
{
    void *it = NULL;
    int n = 0;
    for (; it == NULL; n++) {
        starve = (struct starve){.is_on = true, .left = n + 1};
        it = things[thing].make();
        starve.is_on = false;
        ck_assert_int_eq(it == NULL, starve.left == 0);
    }
    ck_assert_int_gt(n, things[thing].allocations_least);
    things[thing].free(it);
    turn();
}

SUITE(starved);

TEST_EACH(each_allocation_may_fail, things)
{
    thing = _i;
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(pipe(ends), 0);
    growth_expect_none(make_with_too_little);
    loop_free(loop);
}

static void make_without_a_timer(void)
{
    ck_assert_ptr_null(make_engine());
}

TEST(without_a_timer_there_is_no_engine)
{
    has_timers = false;
    growth_expect_none(make_without_a_timer);
    engine_free(NULL);
}
