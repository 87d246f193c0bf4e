/* SPDX-License-Identifier: MIT */
#include "turns.h"

#include <check.h>
#include <time.h>

#include "../../server/base/clock.h"

enum {
    TURNS_DEADLINE_US = 40000000,
    TURNS_PROBE_US = 1000,
    REST_US = 100000,
    REST_WORK_US =
        50000, /* time of the processor; a loop that spins takes all */
};

struct turns {
    struct loop *loop;
    struct loop_timer *timer;
    turns_fn *is_so;
    void *arg;
    int64_t until_us;
};

static void probe(void *arg)
{
    struct turns *turns = arg;
    int64_t now_us = clock_now_us();
    if (turns->is_so(turns->arg)) {
        loop_stop(turns->loop);
        return;
    }
    ck_assert_msg(now_us < turns->until_us, "waited for it in vain");
    loop_timer_set(turns->timer, now_us + TURNS_PROBE_US);
}

void turns_until(struct loop *loop, turns_fn *is_so, void *arg)
{
    struct turns turns = {.loop = loop,
                          .is_so = is_so,
                          .arg = arg,
                          .until_us = clock_now_us() + TURNS_DEADLINE_US};
    turns.timer = loop_timer_new(loop, probe, &turns);
    ck_assert_ptr_nonnull(turns.timer);
    loop_timer_set(turns.timer, 0);
    loop_run(loop);
    loop_timer_free(turns.timer);
}

struct counter {
    const int *counter;
    int value;
};

static bool has_counted(void *arg)
{
    const struct counter *counter = arg;
    return *counter->counter >= counter->value;
}

void turns_until_count(struct loop *loop, const int *counter, int value)
{
    struct counter wanted = {counter, value};
    turns_until(loop, has_counted, &wanted);
}

static bool has_passed(void *arg)
{
    const int64_t *until_us = arg;
    return clock_now_us() >= *until_us;
}

void turns_pass(struct loop *loop, int64_t us)
{
    int64_t until_us = clock_now_us() + us;
    turns_until(loop, has_passed, &until_us);
}

void turns_expect_rest(struct loop *loop)
{
    clock_t before = clock();
    turns_pass(loop, REST_US);
    int64_t took_us = (int64_t)(clock() - before) * 1000000 / CLOCKS_PER_SEC;
    ck_assert_int_lt(took_us, REST_WORK_US);
}
