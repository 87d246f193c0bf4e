#include "pair.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair pair;

static void on_wake(void *ctx, struct connection *woken)
{
    ck_assert_ptr_eq(ctx, &pair);
    ck_assert_ptr_eq(woken, pair.it);
    pair.wakes++;
}

void pair_begin(void)
{
    int ends[2];
    play_begin();
    pair.wakes = 0;
    pair.loop = loop_new();
    ck_assert_ptr_nonnull(pair.loop);
    ck_assert(
        connections_init(&pair.all, pair.loop, play.engine, &play.metrics));
    pair.all.wake = on_wake;
    pair.all.ctx = &pair;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pair.fd = ends[0];
    pair.client = ends[1];
    pair_open();
}

void pair_end(void)
{
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
    return pair.it->has_left;
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
    pair.it = connection_new(&pair.all, pair.fd, NULL);
    ck_assert_ptr_nonnull(pair.it);
}

void pair_close(void)
{
    connection_free(pair.it);
}
