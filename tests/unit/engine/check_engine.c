/*
 * An engine is made whole, or not at all.
 */

#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../play.h"
#include "../starve.h"

static bool has_timers;
static struct metrics metrics;

static int64_t port_now(void *ctx)
{
    (void)ctx;
    return 1000000;
}

static bool port_timer(void *ctx, uint32_t slot, int64_t at_us)
{
    (void)ctx, (void)slot, (void)at_us;
    return has_timers;
}

static struct engine *make(void)
{
    static const struct engine_port port = {.now = port_now,
                                            .timer = port_timer};
    return engine_new(&play_settings, &port, &metrics);
}

static void make_with_too_little(void)
{
    struct engine *engine = NULL;
    int n = 0;
    for (; engine == NULL; n++) {
        starve = (struct starve){.is_on = true, .left = n + 1};
        engine = make();
        starve.is_on = false;
        ck_assert_int_eq(engine == NULL, starve.left == 0);
    }
    ck_assert_int_gt(n, 1);
    engine_free(engine);
}

SUITE(engine);

TEST(each_of_its_allocations_may_fail)
{
    has_timers = true;
    growth_expect_none(make_with_too_little);
}

static void make_without_a_timer(void)
{
    ck_assert_ptr_null(make());
}

TEST(without_a_timer_there_is_none)
{
    has_timers = false;
    growth_expect_none(make_without_a_timer);
    engine_free(NULL);
}
