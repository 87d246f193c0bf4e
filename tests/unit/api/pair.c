/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "fields.h"

struct pair pair;

static const struct config config = {
    .nodes_count = PLAY_NODES, .default_ttl_ms = 12000, .max_ttl_ms = 60000};
static struct requestid_source ids;

static void on_wake(struct connection *woken)
{
    ck_assert_ptr_eq(woken, &pair.it->connection);
    pair.wakes++;
}

static const struct connection_events events = {
    .wake = on_wake, .leave = exchange_on_leave, .end = exchange_on_end};

void pair_begin(void)
{
    int ends[2];
    play_begin();
    pair.wakes = 0;
    http_response_init(&pair.response);
    pair.loop = loop_new();
    ck_assert_ptr_nonnull(pair.loop);
    ids = (struct requestid_source){.seed = 1};
    pair.service = (struct service){.engine = play.engine,
                                    .config = &config,
                                    .metrics = &play.metrics,
                                    .ids = &ids};
    ck_assert(connections_init(&pair.all, pair.loop, &play.metrics));
    pair.all.events = &events;
    pair.all.size = sizeof(struct exchange);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pair.fd = ends[0];
    pair.client = ends[1];
    pair_open();
}

void pair_end(void)
{
    free(pair.response.body);
    pair_close();
    close(pair.fd);
    if (pair.client >= 0)
        close(pair.client);
    ck_assert_int_eq(pair.all.in_flight, 0);
    ck_assert_uint_eq(play.metrics.requests_accepted,
                      play.metrics.requests_answered +
                          play.metrics.requests_abandoned);
    connections_fini(&pair.all);
    loop_free(pair.loop);
    play_end();
}

static bool has_left(void *arg)
{
    (void)arg;
    return pair.it->connection.has_left;
}

void pair_await_leave(void)
{
    turns_until(pair.loop, has_left, NULL);
}

void pair_leave(void)
{
    close(pair.client);
    pair.client = -1;
    pair_await_leave();
}

void pair_open(void)
{
    struct connection *it =
        connection_new(&pair.all, pair.fd, NULL, NULL, clock_now_us());
    ck_assert_ptr_nonnull(it);
    pair.it = exchange_of(it);
}

void pair_close(void)
{
    connection_free(&pair.it->connection);
}

void pair_answer(int64_t now_us)
{
    connection_answer(&pair.it->connection,
                      pair.it->request.call.op != 0 ? PAIR_ANSWER_LEN : 0,
                      now_us);
}

static void forget_response(void)
{
    free(pair.response.body);
    memset(&pair.response, 0x55, sizeof pair.response);
}

enum exchange_step pair_ask(const char *fields)
{
    struct head head;
    head_init(&head, 100, 0);
    fields_add(&head, fields);
    forget_response();
    return exchange_begin(pair.it, &head, false, &pair.response);
}

enum exchange_step pair_go_on(void)
{
    forget_response();
    return exchange_go_on(pair.it, play.now_us, &pair.response);
}

void pair_expect(enum exchange_step step, int status)
{
    ck_assert_int_eq(step, EXCHANGE_ANSWER);
    ck_assert_int_eq(pair.response.status, status);
}
