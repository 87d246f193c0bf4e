/*
 * The loop's timers: never early, and after what came before they were due.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"

enum { LATE_US = 2000 }; /* a timer may come so much later than it is due */

static struct loop *loop;
static int pair[2];
static struct loop_timer *timer;
static struct loop_watch *watch;
static void (*take_away)(struct loop_timer *it); /* with the second byte */
static int64_t due_us;
static int reads, fired;
static int reads_before; /* the timer */

static void setup(void)
{
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    reads = fired = 0;
    reads_before = -1;
}

static void teardown(void)
{
    loop_free(loop);
    close(pair[0]);
    close(pair[1]);
}

static void count(void *arg)
{
    (void)arg;
    fired++;
}

/* ---- moments ------------------------------------------------------------ */

enum { MOMENTS = 400 };

struct moment {
    int64_t at_us;
    struct loop_timer *timer;
};

static void check_moment(void *arg)
{
    struct moment *moment = arg;
    ck_assert_int_ge(clock_now_us(), moment->at_us);
    fired++;
}

/* Work within the turn ages libuv's own clock, which must not matter. */
static void set_after_work(void *arg)
{
    struct moment *moments = arg;
    for (int i = 0; i < MOMENTS; i++) {
        int64_t busy_until_us = clock_now_us() + 100;
        while (clock_now_us() < busy_until_us)
            continue;
        moments[i].at_us = clock_now_us() + (i * 37) % 5000;
        loop_timer_set(moments[i].timer, moments[i].at_us);
    }
}

SUITE(loop_timers, .timeout_s = 30, .set_up = setup, .tear_down = teardown);

TEST(timers_are_never_early)
{
    static struct moment moments[MOMENTS];
    for (int i = 0; i < MOMENTS; i++)
        moments[i].timer = loop_timer_new(loop, check_moment, &moments[i]);
    timer = loop_timer_new(loop, set_after_work, moments);
    loop_timer_set(timer, 0);
    turns_until_count(loop, &fired, MOMENTS);
    ck_assert_int_eq(fired, MOMENTS);
}

static bool is_past(void *arg)
{
    return clock_now_us() >= *(const int64_t *)arg;
}

TEST(a_timer_is_replaced_and_stopped)
{
    struct moment moment = {.at_us = clock_now_us() + 20000};
    moment.timer = loop_timer_new(loop, check_moment, &moment);
    loop_timer_set(moment.timer, 0);
    loop_timer_set(moment.timer, moment.at_us);
    turns_until_count(loop, &fired, 1);
    loop_timer_set(moment.timer, clock_now_us());
    loop_timer_stop(moment.timer);
    int64_t later_us = clock_now_us() + 5000;
    turns_until(loop, is_past, &later_us);
    ck_assert_int_eq(fired, 1);
}

static void set_to_the_past(void *arg)
{
    (void)arg;
    if (fired < 5)
        loop_timer_set(timer, 0);
}

static struct loop_timer *other;

/* The other one, which is due as well, is to run much later, or not at all. */
static void put_other_off(void *arg)
{
    const bool *stops = arg;
    if (*stops)
        loop_timer_stop(other);
    else
        loop_timer_set(other, clock_now_us() + 3600000000);
}

static bool has_run(void *arg)
{
    int *turns = arg;
    return ++*turns > 5;
}

TEST_RANGE(a_timer_that_is_due_can_still_be_put_off, 0, 2)
{
    int turns = 0;
    bool stops = _i == 0;
    timer = loop_timer_new(loop, put_other_off, &stops);
    other = loop_timer_new(loop, count, NULL);
    loop_timer_set(timer, 0);
    loop_timer_set(other, 0);
    turns_until(loop, has_run, &turns);
    ck_assert_int_eq(fired, 0);
}

TEST(a_timer_that_sets_itself_to_the_past_starves_nobody)
{
    timer = loop_timer_new(loop, set_to_the_past, NULL);
    loop_timer_set(timer, 0);
    loop_set_stage(loop, LOOP_SERVE, count, NULL);
    turns_until_count(loop, &fired, 5);
}

/* ---- what came before --------------------------------------------------- */

static void write_byte(void)
{
    ck_assert_int_eq(write(pair[1], "x", 1), 1);
}

static void read_byte(void)
{
    char byte;
    ck_assert_int_eq(read(pair[0], &byte, 1), 1);
    reads++;
}

/* The first reading takes until the timer is due, and meanwhile more comes. */
static void read_for_long(void *arg, int events)
{
    (void)arg;
    (void)events;
    read_byte();
    if (reads == 1) {
        due_us = clock_now_us() + 3000;
        loop_timer_set(timer, due_us);
        while (clock_now_us() <= due_us + LATE_US)
            continue;
        write_byte();
    } else if (take_away != NULL) {
        take_away(timer);
    }
}

static void note_reads(void *arg)
{
    (void)arg;
    reads_before = reads;
    loop_stop(loop);
}

static void set_and_read(void)
{
    watch = loop_watch_new(loop, pair[0], read_for_long, NULL);
    ck_assert(loop_watch_set(watch, LOOP_READABLE));
    timer = loop_timer_new(loop, note_reads, NULL);
    write_byte();
}

TEST(what_came_while_the_loop_was_busy_is_read_first)
{
    set_and_read();
    loop_run(loop);
    ck_assert_int_eq(reads_before, 2);
}

TEST_RANGE(what_is_read_may_take_away_the_timer, 0, 2)
{
    take_away = _i == 0 ? loop_timer_stop : loop_timer_free;
    set_and_read();
    turns_until_count(loop, &reads, 2);
    int64_t later_us = clock_now_us() + 5000;
    turns_until(loop, is_past, &later_us);
    ck_assert_int_eq(reads_before, -1);
}

static char state_of(pid_t pid)
{
    char path[64];
    char stat[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(stat, sizeof stat, file));
    (void)fclose(file); /* only read */
    return strrchr(stat, ')')[2];
}

static void read_it(void *arg, int events)
{
    (void)arg;
    (void)events;
    read_byte();
}

/* Exits with how many bytes were read before the timer. */
static pid_t start_sleeper(void)
{
    due_us = clock_now_us() + 100000;
    pid_t child = fork();
    if (child != 0)
        return child;
    watch = loop_watch_new(loop, pair[0], read_it, NULL);
    timer = loop_timer_new(loop, note_reads, NULL);
    loop_timer_set(timer, due_us);
    if (loop_watch_set(watch, LOOP_READABLE))
        loop_run(loop);
    _exit(reads_before);
}

/* Stops it in its sleep. False: its timer was due before that. */
static bool stop_asleep(pid_t pid)
{
    while (state_of(pid) != 'S')
        if (clock_now_us() > due_us)
            return false;
    kill(pid, SIGSTOP);
    while (state_of(pid) != 'T')
        if (state_of(pid) == 'Z')
            return false;
    return clock_now_us() < due_us;
}

static int end_of(pid_t pid)
{
    int status = 0;
    kill(pid, SIGCONT);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(what_came_while_the_process_was_stopped_is_read_first)
{
    pid_t child = start_sleeper();
    while (!stop_asleep(child)) { /* the machine is busy */
        (void)end_of(child);
        child = start_sleeper();
    }
    write_byte();
    while (clock_now_us() <= due_us + LATE_US)
        sched_yield();
    ck_assert_int_eq(end_of(child), 1);
}
