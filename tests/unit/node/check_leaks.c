/* SPDX-License-Identifier: MIT */
/*
 * What was begun and ended leaves nothing behind, neither in the process nor in
 * a loop that lives on. LeakSanitizer would see only the former. Parts of a
 * loop, and links that never connect: check_starved.c.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../play.h"
#include "../tcp.h"
#include "faked.h"
#include "heard.h"

enum { LONG = RESOURCE_MAX };

/* Of a lock that was acquired when the play began. */
#define YOUNG_TOKEN "1795221642000000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

/* ---- the loop ------------------------------------------------------------ */

static struct loop *loop;

static void begin_loop(void)
{
    signal(SIGPIPE, SIG_IGN);
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* A turn in which what was closed is freed. */
static void turn(void)
{
    struct loop_timer *timer = loop_timer_new(loop, stop, loop);
    loop_timer_set(timer, 0);
    loop_run(loop);
    loop_timer_free(timer);
}

static void use_a_loop(void)
{
    begin_loop();
    turn();
    loop_free(loop);
}

SUITE(leaks, .timeout_s = 60);

TEST(a_loop_leaves_nothing)
{
    growth_expect_none(use_a_loop);
}

/* ---- connections --------------------------------------------------------- */

static struct address_node nowhere;
static int failures;

static void ignore_up(void *ctx, const struct node_facts *facts)
{
    (void)ctx, (void)facts;
}

static void count_failure(void *ctx, enum node_state reason, const char *detail)
{
    (void)ctx, (void)reason, (void)detail;
    failures++;
}

static void use_a_line(void)
{
    const struct line_setup setup = {.loop = loop,
                                     .config = &nowhere,
                                     .silence_us = FAKED_SILENCE_US,
                                     .prefix = ""};
    const struct line_events events = {.up = ignore_up, .down = count_failure};
    struct line line = {0};
    int before = failures;
    ck_assert(line_init(&line, &setup, &events));
    line_open(&line, 0);
    turns_until_count(loop, &failures, before + 2);
    line_fini(&line);
    turn();
}

TEST(an_attempt_to_connect_leaves_nothing)
{
    struct sockaddr_in address;
    int fd = tcp_bind(&address);
    PRINT_TO(nowhere.host, "127.0.0.1");
    nowhere.port = ntohs(address.sin_port);
    begin_loop();
    growth_expect_none(use_a_line);
    loop_free(loop);
    close(fd);
}

static void use_a_link(void)
{
    enum { CALLS = 100 };
    int replies = faked.replies = 0;
    int ups = faked.ups;
    faked_start_link();
    faked_until_up(ups + 1);
    faked_inspect_all(CALLS);
    turns_until_count(faked.loop, &faked.replies, replies + CALLS);
    (void)faked_inspect(CALLS); /* is on its way */
    link_free(faked.link);
    faked.link = NULL;
    loop_set_stage(faked.loop, LOOP_FLUSH, NULL, NULL);
    fake_close(&faked.node);
    loop = faked.loop;
    turn();
}

TEST(a_link_leaves_nothing)
{
    faked_setup();
    faked.silence_us = 10 * (int64_t)FAKED_SILENCE_US;
    growth_expect_none(use_a_link);
    faked_teardown();
}

static void use_a_subscription(void)
{
    heard_start(faked.loop, &faked.config, 10 * (int64_t)FAKED_SILENCE_US);
    heard_open();
    heard_until_up(1);
    heard_set("r", true);
    heard_flush(NULL); /* is on its way */
    heard_end();
    fake_close(&faked.node);
    loop = faked.loop;
    turn();
}

TEST(a_subscription_leaves_nothing)
{
    faked_setup();
    growth_expect_none(use_a_subscription);
    faked_teardown();
}

/* ---- locks --------------------------------------------------------------- */

/* An extended lock that is missing on two nodes: they are to get it again. */
static void extend_on_three(void)
{
    (void)engine_extend(play.engine, PLAY_RESOURCE, span_of(YOUNG_TOKEN), 30000,
                        false, NULL);
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer(CALL_EXTEND, i, i < 3 ? VOTE_EXTENDED : VOTE_FREE);
}

/* A grant that nobody takes, of which one node owes the release for long. */
static void use_an_engine(void)
{
    static char name[LONG];
    const struct engine_acquire acquire = {.resource = {name, sizeof name},
                                           .owner = span_of("me"),
                                           .ttl_ms = 30000};
    memset(name, 'n', sizeof name);
    play_begin();
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    extend_on_three();
    play_node_down(4);
    engine_abandon(play.engine, op);
    play_advance(1000000);
    (void)engine_release(play.engine, acquire.resource, span_of(PLAY_TOKEN),
                         NULL);
    (void)engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    play_end();
}

TEST(an_engine_leaves_nothing)
{
    growth_expect_none(use_an_engine);
}

/* In one that lives on, all the same. */
static void use_locks(void)
{
    static char name[LONG];
    const struct span resource = {name, sizeof name};
    memset(name, 'n', sizeof name);
    play.sent_count = 0;
    engine_op op =
        engine_release(play.engine, resource, span_of(PLAY_TOKEN), NULL);
    play_answer_range(CALL_RELEASE, 0, PLAY_NODES, VOTE_DELETED);
    engine_close(play.engine, op);
    op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_GRANTED);
    engine_close(play.engine, op);
}

TEST(locks_leave_nothing)
{
    play_begin();
    growth_expect_none(use_locks);
    play_end();
}
