/* SPDX-License-Identifier: MIT */
#include "heard.h"

#include <check.h>

enum { NODE = 3 };

struct heard heard;

/* ---- events ------------------------------------------------------------- */

static void check_event(const void *engine, int node)
{
    ck_assert_ptr_eq(engine, &heard);
    ck_assert_int_eq(node, NODE);
    ck_assert(!heard.is_in_call);
}

static void close_in_event(bool closes)
{
    if (closes)
        heard_close();
    if (closes && heard.reopens)
        heard_open();
}

static void on_up(struct engine *engine, int node)
{
    check_event(engine, node);
    heard.ups++;
    close_in_event(heard.closes_when_up);
}

static void on_down(struct engine *engine, int node)
{
    check_event(engine, node);
    heard.downs++;
    ck_assert_int_ge(heard.ups, heard.downs);
}

static void keep(struct span resource)
{
    ck_assert_uint_le(resource.len, RESOURCE_MAX);
    heard.last[span_copy(heard.last, resource)] = '\0';
}

static void on_subscribed(struct engine *engine, int node, struct span resource)
{
    check_event(engine, node);
    if (resource.len == 0)
        return; /* heartbeats */
    heard.subscribed++;
    keep(resource);
}

static void on_announced(struct engine *engine, int node, struct span resource,
                         int64_t number)
{
    static int turn, in_turn;
    check_event(engine, node);
    close_in_event(heard.closes_when_announced);
    if (resource.len == 0) {
        heard.generations++;
        return;
    }
    heard.announced++;
    heard.number = number;
    keep(resource);
    in_turn = turn == heard.turns ? in_turn + 1 : 1;
    turn = heard.turns;
    if (heard.most_in_a_turn < in_turn)
        heard.most_in_a_turn = in_turn;
}

/* ---- calls -------------------------------------------------------------- */

void heard_open(void)
{
    bool was_in_call = heard.is_in_call;
    heard.is_in_call = true;
    subscription_open(heard.subscription);
    heard.is_in_call = was_in_call;
}

void heard_close(void)
{
    bool was_in_call = heard.is_in_call;
    heard.is_in_call = true;
    subscription_close(heard.subscription);
    heard.is_in_call = was_in_call;
}

void heard_set(const char *resource, bool is_on)
{
    heard.is_in_call = true;
    subscription_set(heard.subscription, span_of(resource), is_on);
    heard.is_in_call = false;
}

void heard_flush(void *arg)
{
    (void)arg;
    heard.is_in_call = true;
    subscription_flush(heard.subscription);
    heard.is_in_call = false;
    heard.turns++;
}

void heard_start(struct loop *loop, const struct address_node *config,
                 int64_t silence_us)
{
    static const struct node_events events = {.engine = (struct engine *)&heard,
                                              .listener_up = on_up,
                                              .listener_down = on_down,
                                              .subscribed = on_subscribed,
                                              .announced = on_announced};
    heard = (struct heard){.loop = loop};
    const struct line_setup setup = {.loop = loop,
                                     .config = config,
                                     .silence_us = silence_us,
                                     .prefix = "p:"};
    heard.subscription = subscription_new(NODE, &setup, &events);
    ck_assert_ptr_nonnull(heard.subscription);
    loop_set_stage(loop, LOOP_FLUSH, heard_flush, NULL);
}

void heard_end(void)
{
    loop_set_stage(heard.loop, LOOP_FLUSH, NULL, NULL);
    subscription_free(heard.subscription);
    heard.subscription = NULL;
}

/* ---- waiting ------------------------------------------------------------ */

void heard_until_up(int ups)
{
    turns_until_count(heard.loop, &heard.ups, ups);
}

void heard_until_down(int downs)
{
    turns_until_count(heard.loop, &heard.downs, downs);
}
