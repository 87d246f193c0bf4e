/* SPDX-License-Identifier: MIT */
/*
 * What wakes a client that waits: a release through another server or by
 * another library, the end of a TTL, a quorum that returns; and a mere delay,
 * where nodes may not announce.
 */
#include <poll.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"

enum { N = 3, TTL_MS = 60000, WAIT_MS = 45000, SOON_MS = 12000 };

/* The longest: without news a hand-over mostly takes seconds. */
#define PATIENT "--retry-delay-ms 10000"

static struct lock held;

static void begin(const char *options)
{
    world_start_nodes(N);
    world_admit_nodes(options);
    world_serve_all(2, options);
}

static void begin_patiently(void)
{
    begin(PATIENT);
}

static void hold(const struct server *server, const char *resource, int ttl_ms)
{
    lock_take(server, resource, ttl_ms, &held);
}

/* Alone at this server. */
static int send_waiter(const struct server *server, const char *resource)
{
    int fd = waiter_send(server, resource, TTL_MS, WAIT_MS);
    waiter_expect_count(server, 1);
    return fd;
}

static struct verdict expect_grant(int fd, const char *resource)
{
    struct verdict verdict = waiter_expect_grant(fd, resource, SOON_MS);
    held = verdict.lock;
    return verdict;
}

SUITE(wait_causes);

/* ---- releases through another server ------------------------------------ */

GROUP(news, .timeout_s = 60, .set_up_once = begin_patiently,
      .tear_down_once = world_finish);

TEST(an_announcement_wakes_a_waiter_of_another_server)
{
    enum { TURNS = 20 };
    hold(here, "turns", TTL_MS);
    for (int i = 0; i < TURNS; i++) {
        int fd = send_waiter(i % 2 == 0 ? there : here, "turns");
        lock_drop(i % 2 == 0 ? here : there, &held);
        expect_grant(fd, "turns");
    }
    /* the first ones may be woken by the subscription, once it is confirmed */
    ck_assert_int_ge(waiter_handovers(here, "announcement") +
                         waiter_handovers(there, "announcement"),
                     TURNS / 2);
    ck_assert_int_eq(waiter_handovers(here, "release"), 0);
    ck_assert_int_eq(waiter_handovers(here, "expiry"), 0);
    lock_drop(here, &held);
}

TEST(a_release_while_a_subscription_begins_is_not_missed)
{
    for (int i = 0; i < 20; i++) {
        const char *resource = textf("new%d", i);
        hold(here, resource, TTL_MS);
        int fd = waiter_send(there, resource, TTL_MS, WAIT_MS);
        pause_ms(i % 5);
        lock_drop(here, &held);
        expect_grant(fd, resource);
    }
}

/* a hands the lock on and on: it may have 16 grants in a row, about. */
TEST(clients_of_one_server_do_not_starve_those_of_another)
{
    enum { CROWD = 4 };
    int fds[CROWD];
    hold(here, "turn", TTL_MS);
    int other = send_waiter(there, "turn");
    for (int i = 0; i < CROWD; i++) {
        fds[i] = waiter_send(here, "turn", TTL_MS, WAIT_MS);
        waiter_expect_count(here, i + 1);
    }
    int64_t end_ms = harness_now_ms() + 2 * SOON_MS;
    for (int i = 0;; i = (i + 1) % CROWD) {
        ck_assert_int_lt(harness_now_ms(), end_ms);
        lock_drop(here, &held);
        SOON((int)http_metric(here, "redlockd_waiters") < CROWD ||
             http_metric(there, "redlockd_waiters") < 1);
        if (http_metric(there, "redlockd_waiters") < 1)
            break;
        expect_grant(fds[i], "turn");
        fds[i] = waiter_send(here, "turn", TTL_MS, WAIT_MS);
        waiter_expect_count(here, CROWD);
    }
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    waiter_expect_count(here, 0);
    expect_grant(other, "turn");
    lock_drop(here, &held);
}

/* The one that is answered next; its connection is closed and -1 then. */
static struct verdict next_grant(struct pollfd *fds, int count)
{
    ck_assert_int_gt(poll(fds, (nfds_t)count, SOON_MS), 0);
    int i = 0;
    while (i < count - 1 && fds[i].revents == 0)
        i++;
    struct verdict verdict = expect_grant(fds[i].fd, "crowd");
    fds[i].fd = -1;
    return verdict;
}

static int count_sets(void)
{
    int most = 0;
    for (int i = 0; i < N; i++) {
        int sets = node_count(&world.nodes[i], "set");
        most = sets > most ? sets : most;
    }
    return most;
}

/* One contends at each server: the others ask no node. */
TEST(a_crowd_on_two_servers_asks_the_nodes_twice_a_hand_over)
{
    enum { EACH = 16, CROWD = 2 * EACH };
    struct pollfd fds[CROWD];
    hold(here, "crowd", TTL_MS);
    for (int i = 0; i < CROWD; i++) {
        struct server *server = i % 2 == 0 ? here : there;
        fds[i] = (struct pollfd){
            .fd = waiter_send(server, "crowd", TTL_MS, WAIT_MS),
            .events = POLLIN,
        };
        waiter_expect_count(server, i / 2 + 1);
    }
    waiter_expect_listeners("crowd", 2);
    int sets = count_sets();
    for (int i = 0; i < CROWD; i++) {
        lock_drop(here, &held);
        next_grant(fds, CROWD);
    }
    /* a little more: an announcement may come while the winner still asks */
    ck_assert_int_le(count_sets() - sets, 2 * CROWD + CROWD / 2);
    /* nor less: but a node that is slow for a moment is not asked */
    ck_assert_int_ge(count_sets() - sets, CROWD / 2);
    lock_drop(here, &held);
}

/* ---- the end of a TTL ---------------------------------------------------- */

TEST(the_end_of_the_ttl_wakes)
{
    enum { HOLD_MS = 1500 };
    int before = waiter_handovers(there, "expiry");
    int64_t since_ms = harness_now_ms();
    hold(here, "ttl", HOLD_MS);
    struct lock ended = held;
    expect_grant(send_waiter(there, "ttl"), "ttl");
    ck_assert_int_ge(harness_now_ms() - since_ms, ended.validity_ms);
    ck_assert_int_gt(held.number, ended.number);
    ck_assert_int_eq(waiter_handovers(there, "expiry"), before + 1);
    answer_expect(lock_release(here, &ended), 409, "not_owner");
    lock_drop(here, &held);
}

/* ---- what nobody announces ----------------------------------------------- */

GROUP(own, .timeout_s = 60);

/* ---- nodes that may not announce ------------------------------------------
 */

static void tell_nodes(const char *command)
{
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], command);
}

static void expect_handovers(void)
{
    for (int i = 0; i < 3; i++) {
        hold(here, "mute", TTL_MS);
        int fd = send_waiter(there, "mute");
        lock_drop(here, &held);
        expect_grant(fd, "mute");
        lock_drop(there, &held);
        expect_keys("mute", 0);
    }
}

static const char *const denials[] = {
    "ACL SETUSER default -publish",
    "ACL SETUSER default resetchannels -unsubscribe"};

/* Redis ends the connections of those that may no longer listen. */
TEST_EACH(announcements_that_end_while_clients_wait, denials)
{
    begin("");
    hold(here, "mute", TTL_MS);
    int fd = send_waiter(there, "mute");
    waiter_expect_listeners("mute", 1);
    tell_nodes(denials[_i]);
    lock_drop(here, &held);
    expect_grant(fd, "mute");
    lock_drop(there, &held);
    expect_handovers();
    world_stop();
}
