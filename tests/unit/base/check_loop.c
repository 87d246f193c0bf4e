/* SPDX-License-Identifier: MIT */
/*
 * The loop: the order of a turn, watches, timers, which are never early and
 * come after what came before they were due, signals, lookups, and its end
 * without memory, which it logs first.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/base/types.h"
#include "../../../server/lock/lock.h"
#include "../../lib/suite/suite.h"
#include "../said.h"
#include "../tcp.h"
#include "../turns.h"

enum { LATE_US = 2000 }; /* a timer may come so much later than it is due */

static struct loop *loop;
static int pair[2];
static char order[256]; /* what ran, a letter each */
static int turns_left;
static int calls, reads, seen_events;
static struct loop_timer *timer, *other_timer;
static struct loop_watch *watch, *other;

static void setup(void)
{
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    order[0] = '\0';
    calls = reads = seen_events = 0;
}

static void teardown(void)
{
    loop_free(loop);
    close(pair[0]);
    close(pair[1]);
}

static void note(const char *letter)
{
    ck_assert_uint_lt(strlen(order) + 1, sizeof order);
    strcat(order, letter);
}

static void write_byte(int fd)
{
    ck_assert_int_eq(write(fd, "x", 1), 1);
}

static void read_byte(int fd)
{
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 1);
    reads++;
}

static void count(void *arg)
{
    (void)arg;
    calls++;
}

/* ---- the order of a turn ------------------------------------------------ */

static void on_readable(void *arg, int events)
{
    (void)arg;
    ck_assert_int_eq(events, LOOP_READABLE);
    read_byte(pair[0]);
    note("r");
    if (strcmp(order, "sfr") == 0)
        loop_timer_set(timer, 0);
}

static void on_timer(void *arg)
{
    (void)arg;
    note("t");
}

static void serve(void *arg)
{
    (void)arg;
    note("s");
}

static void flush(void *arg)
{
    (void)arg;
    note("f");
    if (--turns_left == 0)
        loop_stop(loop);
    else
        write_byte(pair[1]);
}

SUITE(loop, .timeout_s = 30, .set_up = setup, .tear_down = teardown);

/* A timer that is set while reading runs after the next reading. */
TEST(a_turn_reads_runs_timers_serves_and_flushes)
{
    timer = loop_timer_new(loop, on_timer, NULL);
    watch = loop_watch_new(loop, pair[0], on_readable, NULL);
    ck_assert(loop_watch_set(watch, LOOP_READABLE));
    loop_set_stage(loop, LOOP_FLUSH, flush, NULL);
    loop_set_stage(loop, LOOP_SERVE, serve, NULL);
    turns_left = 4;
    loop_run(loop);
    ck_assert_str_eq(order, "sfrsfrtsfrsf");
}

TEST(a_loop_with_nothing_to_do_runs_until_it_is_stopped)
{
    pid_t child = fork();
    if (child == 0) {
        write_byte(pair[1]);
        loop_run(loop);
        _exit(7);
    }
    read_byte(pair[0]); /* from here on it would end, if it did */
    usleep(20000);
    /* only the signal ends it, whenever that comes */
    int status = 0;
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
}

/* ---- freeing ------------------------------------------------------------ */

static void free_watch_within(void *arg, int events)
{
    (void)arg;
    (void)events;
    calls++;
    loop_watch_free(watch);
}

static void free_timer_within(void *arg)
{
    (void)arg;
    calls++;
    loop_timer_free(timer);
}

TEST(objects_may_be_freed_in_their_callbacks)
{
    watch = loop_watch_new(loop, pair[0], free_watch_within, NULL);
    ck_assert(loop_watch_set(watch, LOOP_READABLE | LOOP_WRITABLE));
    write_byte(pair[1]);
    timer = loop_timer_new(loop, free_timer_within, NULL);
    loop_timer_set(timer, clock_now_us());
    turns_until_count(loop, &calls, 2);
    ck_assert_int_eq(calls, 2);
    loop_watch_free(NULL);
    loop_timer_free(NULL);
    loop_lookup_cancel(NULL);
}

static void free_the_other(void *arg, int events)
{
    struct loop_watch **which = arg;
    (void)events;
    calls++;
    loop_watch_free(*which);
    *which = NULL;
}

/* Both are ready in one turn; the first frees the other. */
TEST(a_watch_that_was_freed_is_not_called_in_the_same_turn)
{
    watch = loop_watch_new(loop, pair[0], free_the_other, &other);
    other = loop_watch_new(loop, pair[1], free_the_other, &watch);
    ck_assert(loop_watch_set(watch, LOOP_WRITABLE));
    ck_assert(loop_watch_set(other, LOOP_WRITABLE));
    turns_until_count(loop, &calls, 1);
    ck_assert((watch == NULL) != (other == NULL));
}

TEST(the_loop_frees_what_is_left)
{
    watch = loop_watch_new(loop, pair[0], free_watch_within, NULL);
    ck_assert(loop_watch_set(watch, LOOP_READABLE));
    timer = loop_timer_new(loop, on_timer, NULL);
    loop_timer_set(timer, clock_now_us() + 1000000);
    ck_assert(loop_on_signal(loop, SIGUSR1, on_timer, NULL));
    /* teardown frees the loop, valgrind and ASan look */
}

/* ---- watches ------------------------------------------------------------ */

static void note_events(void *arg, int events)
{
    (void)arg;
    seen_events |= events;
    calls++;
}

TEST(a_watch_tells_what_it_was_asked_for)
{
    watch = loop_watch_new(loop, pair[0], note_events, NULL);
    ck_assert_ptr_nonnull(watch);
    ck_assert_ptr_null(loop_watch_new(loop, -1, note_events, NULL));
    ck_assert(loop_watch_set(watch, LOOP_READABLE | LOOP_DISCONNECT));
    write_byte(pair[1]);
    turns_until_count(loop, &calls, 1);
    ck_assert_int_eq(seen_events, LOOP_READABLE);
    ck_assert(loop_watch_set(watch, LOOP_DISCONNECT));
    calls = seen_events = 0;
    shutdown(pair[1], SHUT_WR);
    turns_until_count(loop, &calls, 1);
    ck_assert_int_eq(seen_events, LOOP_DISCONNECT);
    ck_assert(loop_watch_set(watch, LOOP_WRITABLE));
    calls = seen_events = 0;
    turns_until_count(loop, &calls, 1);
    ck_assert_int_eq(seen_events, LOOP_WRITABLE);
}

/* The second one may be made, but not set. */
TEST(a_descriptor_has_one_watch_at_a_time)
{
    struct loop_watch *first = loop_watch_new(loop, pair[0], NULL, NULL);
    struct loop_watch *second = loop_watch_new(loop, pair[0], NULL, NULL);
    ck_assert(first != NULL && second != NULL);
    ck_assert(loop_watch_set(first, LOOP_READABLE));
    ck_assert(!loop_watch_set(second, LOOP_READABLE));
    ck_assert(!loop_watch_set(second, LOOP_READABLE));
    loop_watch_free(second);
    loop_watch_free(first);
}

TEST(a_regular_file_cannot_be_watched)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_null(loop_watch_new(loop, fileno(file), note_events, NULL));
    (void)fclose(file); /* only read */
}

TEST(a_reset_is_an_error_and_the_descriptor_may_be_closed)
{
    struct tcp tcp = tcp_connect();
    int fd = tcp.server;
    tcp_reset(tcp.client);
    watch = loop_watch_new(loop, fd, note_events, NULL);
    ck_assert(loop_watch_set(watch, LOOP_DISCONNECT));
    turns_until_count(loop, &calls, 1);
    ck_assert_int_eq(seen_events, LOOP_ERROR);
    ck_assert_int_eq(calls, 1);
    /* it is stopped, and starts again when it is told to */
    ck_assert(loop_watch_set(watch, LOOP_DISCONNECT));
    turns_until_count(loop, &calls, 2);
    loop_watch_free(watch);
    close(fd);
    /* the same number again, in the same turn */
    int again = dup2(pair[0], fd);
    watch = loop_watch_new(loop, again, note_events, NULL);
    ck_assert_ptr_nonnull(watch);
    ck_assert(loop_watch_set(watch, LOOP_WRITABLE));
    turns_until_count(loop, &calls, 3);
    loop_watch_free(watch);
    close(again);
}

/* ---- timers ------------------------------------------------------------- */

enum { MOMENTS = 400 };

struct moment {
    int64_t at_us;
    struct loop_timer *timer;
};

static void check_moment(void *arg)
{
    struct moment *moment = arg;
    ck_assert_int_ge(clock_now_us(), moment->at_us);
    calls++;
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

TEST(timers_are_never_early)
{
    static struct moment moments[MOMENTS];
    for (int i = 0; i < MOMENTS; i++)
        moments[i].timer = loop_timer_new(loop, check_moment, &moments[i]);
    timer = loop_timer_new(loop, set_after_work, moments);
    loop_timer_set(timer, 0);
    turns_until_count(loop, &calls, MOMENTS);
    ck_assert_int_eq(calls, MOMENTS);
}

/* Neither before its time, nor for what it was before. */
TEST(a_timer_that_was_put_off_runs_once_and_in_time)
{
    struct moment moment = {.at_us = clock_now_us() + 30000};
    moment.timer = loop_timer_new(loop, check_moment, &moment);
    loop_timer_set(moment.timer, moment.at_us - 25000);
    loop_timer_stop(moment.timer);
    loop_timer_set(moment.timer, moment.at_us);
    turns_until_count(loop, &calls, 1);
    moment.at_us = clock_now_us() + 1000;
    loop_timer_set(moment.timer, moment.at_us + 60000000);
    loop_timer_set(moment.timer, moment.at_us);
    turns_until_count(loop, &calls, 2);
    loop_timer_set(moment.timer, clock_now_us());
    loop_timer_stop(moment.timer);
    turns_pass(loop, 5000);
    ck_assert_int_eq(calls, 2);
}

static void set_to_the_past(void *arg)
{
    (void)arg;
    if (calls < 5)
        loop_timer_set(timer, 0);
}

/* The other one, which is due as well, is to run much later, or not at all. */
static void put_other_off(void *arg)
{
    const bool *stops = arg;
    if (*stops)
        loop_timer_stop(other_timer);
    else
        loop_timer_set(other_timer, clock_now_us() + 3600000000);
}

TEST_RANGE(a_timer_that_is_due_can_still_be_put_off, 0, 2)
{
    bool stops = _i == 0;
    timer = loop_timer_new(loop, put_other_off, &stops);
    other_timer = loop_timer_new(loop, count, NULL);
    loop_timer_set(timer, 0);
    loop_timer_set(other_timer, 0);
    turns_pass(loop, 5000);
    ck_assert_int_eq(calls, 0);
}

TEST(a_timer_that_sets_itself_to_the_past_starves_nobody)
{
    timer = loop_timer_new(loop, set_to_the_past, NULL);
    loop_timer_set(timer, 0);
    loop_set_stage(loop, LOOP_SERVE, count, NULL);
    turns_until_count(loop, &calls, 5);
}

/* ---- what came before --------------------------------------------------- */

static int64_t due_us;
static int reads_before;                         /* the timer */
static void (*take_away)(struct loop_timer *it); /* with the second byte */

/* The first reading takes until the timer is due, and meanwhile more comes. */
static void read_for_long(void *arg, int events)
{
    (void)arg;
    (void)events;
    read_byte(pair[0]);
    if (reads == 1) {
        due_us = clock_now_us() + 3000;
        loop_timer_set(timer, due_us);
        while (clock_now_us() <= due_us + LATE_US)
            continue;
        write_byte(pair[1]);
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

static void set_and_read(void (*with_second)(struct loop_timer *it))
{
    reads_before = -1;
    take_away = with_second;
    watch = loop_watch_new(loop, pair[0], read_for_long, NULL);
    ck_assert(loop_watch_set(watch, LOOP_READABLE));
    timer = loop_timer_new(loop, note_reads, NULL);
    write_byte(pair[1]);
}

TEST(what_came_while_the_loop_was_busy_is_read_first)
{
    set_and_read(NULL);
    loop_run(loop);
    ck_assert_int_eq(reads_before, 2);
}

TEST_RANGE(what_is_read_may_take_away_the_timer, 0, 2)
{
    set_and_read(_i == 0 ? loop_timer_stop : loop_timer_free);
    turns_until_count(loop, &reads, 2);
    turns_pass(loop, 5000);
    ck_assert_int_eq(reads_before, -1);
}

/* ---- signals and names -------------------------------------------------- */

TEST(signals_arrive_in_the_loop)
{
    ck_assert(loop_on_signal(loop, SIGUSR1, count, NULL));
    raise(SIGUSR1);
    /* cppcheck-suppress unreachableCode; the signal is handled */
    ck_assert_int_eq(calls, 0);
    turns_until_count(loop, &calls, 1);
    raise(SIGUSR1);
    /* cppcheck-suppress unreachableCode; as above */
    turns_until_count(loop, &calls, 2);
    ck_assert(!loop_on_signal(loop, SIGKILL, count, NULL));
}

static char found[NI_MAXHOST + 8];

static void on_lookup(void *arg, const struct addrinfo *list, const char *error)
{
    (void)arg;
    char port[8];
    calls++;
    found[0] = '\0';
    ck_assert((list == NULL) == (error != NULL));
    for (; list != NULL; list = list->ai_next) {
        ck_assert_int_eq(list->ai_socktype, SOCK_STREAM);
        if (getnameinfo(list->ai_addr, list->ai_addrlen, found, sizeof found,
                        port, sizeof port,
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0 &&
            strcmp(found, "127.0.0.1") == 0)
            break;
    }
    if (list != NULL)
        ck_assert_str_eq(port, "6379");
}

static const char *const names[] = {"127.0.0.1", "localhost"};

TEST_RANGE(addresses_and_names_are_looked_up, 0, 2)
{
    ck_assert_ptr_nonnull(
        loop_lookup_new(loop, names[_i], 6379, on_lookup, NULL));
    ck_assert_int_eq(calls, 0);
    turns_until_count(loop, &calls, 1);
    ck_assert_str_eq(found, "127.0.0.1");
    ck_assert_int_eq(calls, 1);
}

TEST(a_name_that_is_none_has_an_error)
{
    /* a space is refused by the resolver before any server is asked */
    ck_assert_ptr_nonnull(
        loop_lookup_new(loop, "no name", 6379, on_lookup, NULL));
    turns_until_count(loop, &calls, 1);
    ck_assert_str_eq(found, "");
}

/* Every node may hang at once. What is set already is somebody's wish. */
TEST(each_node_has_a_thread_for_its_lookups)
{
    loop_free(loop);
    unsetenv("UV_THREADPOOL_SIZE");
    loop = loop_new();
    const char *threads = getenv("UV_THREADPOOL_SIZE");
    ck_assert_ptr_nonnull(threads);
    ck_assert_int_gt(strtol(threads, NULL, 10), NODES_MAX);
    loop_free(loop);
    setenv("UV_THREADPOOL_SIZE", "3", 1);
    loop = loop_new();
    ck_assert_str_eq(getenv("UV_THREADPOOL_SIZE"), "3");
}

TEST(a_name_that_nobody_can_be_asked_for_is_refused)
{
    ck_assert_ptr_null(loop_lookup_new(loop, "\xff\xfe", 1, on_lookup, NULL));
    ck_assert(!loop_is_resolving(loop));
}

TEST(a_lookup_that_was_given_up_does_not_call)
{
    for (int i = 0; i < 20; i++)
        loop_lookup_cancel(
            loop_lookup_new(loop, names[i % 2], 6379, on_lookup, NULL));
    loop_lookup_new(loop, "localhost", 6379, on_lookup, NULL);
    turns_until_count(loop, &calls, 1);
    ck_assert_int_eq(calls, 1);
}

/* ---- memory ------------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__ /* it has its own way to be without memory */

/* A descriptor that libuv's table has no room for. */
enum { FAR = 1000 };

/* Takes all memory there is. */
static void exhaust(void)
{
    const struct rlimit none = {0, 0};
    void *volatile block;

    if (setrlimit(RLIMIT_AS, &none) != 0)
        _exit(1);
    do
        block = malloc(1024); /* never freed: the process ends */
    while (block != NULL);
}

/* libuv ends the process. */
TEST(loop_without_memory_says_so)
{
    int status;

    said_begin();
    pid_t child = fork();
    if (child == 0) {
        watch = loop_watch_new(loop, fcntl(pair[0], F_DUPFD, FAR), note_events,
                               NULL);
        if (watch == NULL)
            _exit(2);
        exhaust();
        (void)loop_watch_set(watch, LOOP_WRITABLE); /* it does not come back */
        _exit(3);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%d",
                  status);
    ck_assert_has(said(), "event=no_memory");
    said_end();
}

#endif
