/*
 * A proxy reads the whole answer and then ends its connection to us as it
 * likes, often with a reset. What its client was told to hold must stay held.
 */

#include "http.h"
#include "proxy.h"

enum { N = 3, LOCKS = 20, TTL_MS = 60000, RESETS_MS = 500 };

static const struct proxy_mode modes[] = {
    {"keep-alive", PROXY_HAPROXY, "mode http\n option http-keep-alive", NULL},
    {"server-close", PROXY_HAPROXY, "mode http\n option http-server-close",
     NULL},
    {"close", PROXY_HAPROXY, "mode http\n option httpclose", NULL},
    {"no reuse", PROXY_HAPROXY, "mode http\n http-reuse never", NULL},
    {"any reuse", PROXY_HAPROXY, "mode http\n http-reuse always", NULL},
    {"tcp", PROXY_HAPROXY, "mode tcp", NULL},
    {"tcp, no linger", PROXY_HAPROXY, "mode tcp\n option nolinger", NULL},
    {"nginx", PROXY_NGINX_HTTP, "", ""},
    {"nginx, keepalive", PROXY_NGINX_HTTP, "keepalive 8;",
     "proxy_http_version 1.1; proxy_set_header Connection \"\";"},
    {"nginx, stream", PROXY_NGINX_STREAM, NULL, NULL},
};

WORLD(world_start, N, "");

/*
 * Half of the clients end behind their answer, as curl does on a command
 * line; the others go on with the connection they have.
 */
static void acquire_all(const struct server *proxy, int mode,
                        struct lock locks[LOCKS])
{
    for (int i = 0; i < LOCKS; i++) {
        const char *resource = textf("proxied-%d-%d", mode, i);
        lock_take(proxy, resource, TTL_MS, &locks[i]);
        if (i % 2 == 0)
            http_disconnect();
    }
    http_disconnect();
}

SUITE(proxies, .timeout_s = 120, WORLD_ONCE);

TEST_EACH(story_36_a_proxy_that_resets_does_not_lose_the_lock, modes)
{
    const struct proxy_mode *mode = &modes[_i];
    struct lock locks[LOCKS];
    struct server proxy;

    double lost = http_metric(here, "redlockd_undelivered_grants_total");
    pid_t pid = proxy_start(mode, here, &proxy);
    acquire_all(&proxy, _i, locks);
    pause_ms(RESETS_MS); /* for whatever comes behind the answers */
    for (int i = 0; i < LOCKS; i++) {
        const struct answer *a =
            lock_acquire(here, locks[i].resource, TTL_MS, NULL);
        ck_assert_msg(a->status == 409, "%s: %d is not held: %s", mode->name, i,
                      a->body);
        expect_ok(lock_extend(&proxy, &locks[i], TTL_MS));
        lock_drop(&proxy, &locks[i]);
    }
    ck_assert_double_eq(http_metric(here, "redlockd_undelivered_grants_total"),
                        lost);
    proxy_stop(pid);
}
