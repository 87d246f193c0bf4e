/* SPDX-License-Identifier: MIT */
/*
 * A full front, one that drains, and one that stops. More of it is in
 * tests/integration, check_flood.c and check_drain.c.
 */
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/base/log.h"
#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../node/names.h"
#include "authtext.h"
#include "served.h"

#define HALF SERVED_POST(16) "{"

static int clients[SERVED_CONNECTIONS];

/* As many as there is room for send this. */
static void fill(const char *text)
{
    for (int i = 0; i < SERVED_CONNECTIONS; i++)
        clients[i] = served_ask(text);
}

SUITE(front_limits, .set_up = served_begin, .tear_down = served_end);

/* ---- full --------------------------------------------------------------- */

TEST(who_waits_for_the_nodes_never_gives_way)
{
    fill(SERVED_ACQUIRE);
    served_await_acquires(SERVED_CONNECTIONS);
    int fd = served_ask(SERVED_GET("/livez"));
    served_pass();
    ck_assert_uint_eq(play.metrics.connections_cut, 0);
    ck_assert_uint_eq(play.metrics.requests_answered, 0);
    for (int i = 0; i < SERVED_CONNECTIONS; i++)
        served_grant();
    served_expect(fd, " 200 ");
    ck_assert_uint_eq(play.metrics.requests_answered, SERVED_CONNECTIONS + 1);
    ck_assert_uint_eq(play.metrics.connections_cut, 1);
}

/* Nobody sends anything more: time alone makes room. */
TEST(half_a_request_gives_way_after_a_second)
{
    int64_t before_us = clock_now_us();
    fill(HALF);
    served_pass();
    served_expect(served_ask(SERVED_GET("/livez")), " 200 ");
    ck_assert_int_ge(clock_now_us() - before_us, 900000);
    served_expect_last(clients[0], NULL);
    ck_assert_uint_eq(play.metrics.connections_cut, 1);
}

/* ---- at rest ------------------------------------------------------------ */

/* Its knock lasts. */
TEST(who_waits_for_room_does_not_keep_the_loop_awake)
{
    fill(SERVED_ACQUIRE);
    served_await_acquires(SERVED_CONNECTIONS);
    int fd = served_connect();
    turns_expect_rest(served.loop);
    close(fd);
}

TEST(who_sends_nothing_does_not_either)
{
    fill(SERVED_GET("/livez"));
    served_expect(clients[0], " 200 ");
    turns_expect_rest(served.loop);
    close(clients[0]);
    turns_expect_rest(served.loop);
}

/* ---- draining ----------------------------------------------------------- */

TEST(draining_it_serves_but_is_not_ready)
{
    int fd = served_ask(SERVED_GET("/readyz"));
    served_expect(fd, " 200 ");
    front_begin_drain(served.front);
    served_send(fd, SERVED_GET("/readyz"));
    const char *answer = served_read(fd, NULL);
    ck_assert_has(answer, "\"code\":\"shutting_down\"");
    ck_assert_has(answer, "\r\nRetry-After: 1\r\n"); /* second, at least */
    ck_assert_has(answer, "\r\nConnection: close\r\n");
    fd = served_ask(SERVED_ACQUIRE);
    served_await_acquires(1);
    served_grant();
    served_expect_last(fd, " 201 ");
}

/* ---- stopping ----------------------------------------------------------- */

TEST(stopping_answers_what_waits_and_closes_all)
{
    clients[0] = served_ask(SERVED_ACQUIRE);
    served_await_acquires(1);
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    clients[1] = served_ask(HALF);
    clients[2] = served_ask(SERVED_GET("/livez"));
    served_expect(clients[2], " 200 ");
    front_free(served.front);
    served.front = NULL;
    served_expect_last(clients[0], "\"code\":\"shutting_down\"");
    served_expect_last(clients[1], NULL);
    served_expect_last(clients[2], NULL);
    ck_assert_uint_eq(play.metrics.requests_answered, 2);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
    ck_assert_int_ge(play_count(CALL_RELEASE), 1);
}

/* The library ends the process if it is stopped while a request waits. */
TEST(stopping_begins_nothing_that_came_too_late)
{
    int fd = served_ask(SERVED_GET("/livez"));
    served_expect(fd, " 200 ");
    served_send(fd, SERVED_ACQUIRE);
    front_free(served.front);
    served.front = NULL;
    served_expect_last(fd, "\"code\":\"shutting_down\"");
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 0);
}

/* ---- starting ----------------------------------------------------------- */

static struct front *start_another(char error[FRONT_ERROR_MAX])
{
    const struct front_setup setup = served_setup();
    return front_new(&setup, error);
}

static const struct {
    const char *host;
    int port; /* 0: that of the other */
    const char *error;
} listens[] = {
    {"127.0.0.1", 0, "listen 127.0.0.1:%d: address already"},
    {"192.0.2.1", 7, "listen 192.0.2.1:7: cannot assign"},
    {"2001:db8::1", 7, "listen [2001:db8::1]:7: "},
    {"nowhere.test", 7, "listen nowhere.test:7: name or service"},
};

TEST_EACH(where_it_cannot_listen_it_does_not_start, listens)
{
    char error[FRONT_ERROR_MAX];
    const char *expected = textf(listens[_i].error, served.port);
    int lowest = dup(0); /* the next free descriptor */
    close(lowest);
    names_resolve_to("", 0);
    strcpy(served.config.listen_host, listens[_i].host);
    served.config.listen_port =
        listens[_i].port != 0 ? listens[_i].port : served.port;
    ck_assert_ptr_null(start_another(error));
    ck_assert_msg(strncmp(error, expected, strlen(expected)) == 0, "%s", error);
    int now_lowest = dup(0);
    ck_assert_int_eq(now_lowest, lowest); /* none is left open */
    close(now_lowest);
    close(served_ask(SERVED_GET("/livez")));
}

/* The side that closes first keeps the port for a while. */
TEST(a_restart_takes_the_port_at_once_and_others_may_share_it)
{
    char error[FRONT_ERROR_MAX];
    struct front *fronts[2];
    int fd = served_ask(SERVED_GET("/livez"));
    served_expect(fd, " 200 ");
    front_free(served.front);
    served.front = NULL;
    served_expect_last(fd, NULL);
    names_resolve_to("127.0.0.1", 0);
    strcpy(served.config.listen_host, "here.test");
    served.config.listen_port = served.port;
    served.config.reuse_port = true;
    for (int i = 0; i < 2; i++) {
        fronts[i] = start_another(error);
        ck_assert_msg(fronts[i] != NULL, "%s", error);
    }
    served.config.reuse_port = false;
    ck_assert_ptr_null(start_another(error));
    close(served_connect());
    front_free(fronts[0]);
    front_free(fronts[1]);
}

/* ---- a check of the configuration: what it reads, and leaves --------------
 */

static struct config config;
static char error[FRONT_ERROR_MAX];

static void set_up(void)
{
    log_set_level(LOG_OFF);
    (void)snprintf(config.auth_file, sizeof config.auth_file, "%s",
                   authtext_write("a " AUTHTEXT_SECRET " read prefix=*\n"));
}

GROUP(checking, .set_up = set_up, .tear_down = authtext_remove);

static void check(void)
{
    ck_assert_msg(front_check(&config, error), "%s", error);
}

static void check_in_vain(void)
{
    ck_assert(!front_check(&config, error));
}

TEST(a_check_leaves_nothing)
{
    growth_expect_none(check);
    strcpy(config.tls_cert, "/none");
    growth_expect_none(check_in_vain);
    ck_assert_has(error, "\"/none\"");
    (void)authtext_write("half");
    growth_expect_none(check_in_vain);
    ck_assert_has(error, config.auth_file);
}
