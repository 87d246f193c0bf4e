/*
 * Acquires with an Idempotency-Key: whoever lost the answer gets the lock
 * again, and only the newest token counts.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "grant.h"
#include "node.h"
#include "waiter.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define KEY "9f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"
#define OTHER_KEY "0f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"

enum { N = 5, SOON_MS = 9000, TEXT_SIZE = 4096 };

WORLD(world_start_two, N, "");
static const struct server *const server = &world.servers[0];
static const struct server *const another = &world.servers[1];

static const char *wish(const char *resource, int ttl_ms, int wait_ms)
{
    return textf("{\"resource\":\"%s\",\"ttl_ms\":%d,\"wait_ms\":%d}", resource,
                 ttl_ms, wait_ms);
}

static void await_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, SOON_MS), 1);
}

/* The second took the place of the first; it is released in the end. */
static void expect_replaced(const struct lock *first, const struct lock *second)
{
    ck_assert_str_ne(second->token, first->token);
    ck_assert_int_gt(second->number, first->number);
    answer_expect(lock_extend(server, first, 30000), 409, "not_owner");
    answer_expect(lock_release(server, first), 409, "not_owner");
    answer_expect_held(grant_inspect(server, second));
    answer_expect(lock_extend(server, second, 30000), 200, NULL);
    answer_expect(lock_extend(another, second, 30000), 200, NULL);
    answer_expect(lock_release(server, second), 200, NULL);
    answer_expect_free(grant_inspect(server, second));
}

SUITE(repeat, .timeout_s = 60, WORLD_ONCE);

/* ---- an answer that is lost --------------------------------------------- */

TEST_RANGE(a_lost_answer_is_made_good, 0, 2)
{
    struct lock second;
    const struct server *const servers[] = {server, another};
    int fd = grant_send(server, wish("lost", 60000, 0), KEY);
    struct lock first = grant_read(fd, 201, SOON_MS);
    raw_reset(fd);
    const struct answer *a =
        grant_ask(servers[_i], wish("lost", 60000, 0), KEY, &second);
    answer_expect(a, 200, NULL);
    ck_assert_str_eq(answer_header(a, "Location"), "/locks/lost");
    ck_assert_int_gt(answer_int(a, "validity_ms"), 50000);
    expect_replaced(&first, &second);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "lost") == 0);
}

/* The answer is written, nobody reads it, and the server dies. */
TEST(a_server_that_died_with_the_answer_is_made_good)
{
    struct lock grant;
    world_serve(&world, 2, "");
    int fd = grant_send(&world.servers[2], wish("dies", 60000, 0), KEY);
    await_readable(fd);
    http_disconnect();
    world_kill_server(&world, 2);
    close(fd);
    answer_expect(grant_ask(server, wish("dies", 60000, 0), OTHER_KEY, NULL),
                  409, "lock_held");
    answer_expect(grant_ask(server, wish("dies", 60000, 0), KEY, &grant), 200,
                  NULL);
    answer_expect(lock_release(server, &grant), 200, NULL);
}

/* Of several resources, named in another order. */
TEST(several_are_repeated_as_one)
{
    struct lock first, second;
    grant_take(server, "{\"resources\":[\"s:a\",\"s:b\"]}", KEY, &first);
    answer_expect(
        grant_ask(another, "{\"resources\":[\"s:b\",\"s:a\"]}", KEY, &second),
        200, NULL);
    ck_assert_str_eq(second.path, first.path);
    expect_replaced(&first, &second);
    WAIT_UNTIL(
        SOON_MS,
        world_count_keys(&world, "s:a") + world_count_keys(&world, "s:b") == 0);
}

TEST(a_repeat_may_be_repeated)
{
    struct lock grants[8];
    for (int i = 0; i < COUNT(grants); i++)
        answer_expect(grant_ask(i % 2 ? server : another,
                                wish("again", 60000, 0), KEY, &grants[i]),
                      i == 0 ? 201 : 200, NULL);
    for (int i = 1; i < COUNT(grants); i++)
        ck_assert_int_gt(grants[i].number, grants[i - 1].number);
    expect_replaced(&grants[COUNT(grants) - 2], &grants[COUNT(grants) - 1]);
}

/* ---- what is no repeat -------------------------------------------------- */

TEST(other_resources_or_keys_are_other_locks)
{
    struct lock one, two;
    grant_take(server, wish("k:1", 60000, 0), KEY, &one);
    grant_take(server, wish("k:2", 60000, 0), KEY, &two);
    static const char *const keys[] = {OTHER_KEY, NULL};
    for (int i = 0; i < COUNT(keys); i++) {
        const struct answer *a =
            grant_ask(server, wish("k:1", 60000, 0), keys[i], NULL);
        answer_expect(a, 409, "lock_held");
        ck_assert_int_eq(answer_int(a, "held_by.fencing_token"), one.number);
    }
    answer_expect(
        grant_ask(server, "{\"resources\":[\"k:1\",\"k:2\"]}", KEY, NULL), 409,
        "lock_held");
    answer_expect(lock_extend(server, &one, 30000), 200, NULL);
    answer_expect(lock_release(server, &one), 200, NULL);
    answer_expect(lock_release(server, &two), 200, NULL);
}

TEST(after_a_release_it_is_an_acquire)
{
    struct lock grant;
    struct lock other;
    for (int i = 0; i < 3; i++) {
        grant_take(server, wish("free", 60000, 0), KEY, &grant);
        answer_expect(lock_release(server, &grant), 200, NULL);
    }
    lock_take(server, "free", 60000, &other);
    answer_expect(grant_ask(server, wish("free", 60000, 0), KEY, NULL), 409,
                  "lock_held");
    answer_expect(lock_release(server, &other), 200, NULL);
}

/* ---- how long it lasts -------------------------------------------------- */

TEST(a_shorter_ttl_shortens_the_answer_alone)
{
    struct lock grant;
    grant_ask(server, wish("short", 60000, 0), KEY, &grant);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "short") == N);
    const struct answer *a = answer_expect(
        grant_ask(server, wish("short", 1000, 0), KEY, &grant), 200, NULL);
    ck_assert_int_eq(answer_int(a, "ttl_ms"), 1000);
    ck_assert_int_lt(answer_int(a, "validity_ms"), 1000);
    for (int i = 0; i < N; i++)
        ck_assert_int_gt(node_integer(&world.nodes[i], "PTTL short"), 40000);
    answer_expect(lock_release(server, &grant), 200, NULL);
}

TEST(a_longer_ttl_counts)
{
    struct lock grant;
    grant_ask(server, wish("long", 5000, 0), KEY, &grant);
    answer_expect(grant_ask(server, wish("long", 60000, 0), KEY, &grant), 200,
                  NULL);
    ck_assert_int_gt(grant.validity_ms, 50000);
    WAIT_UNTIL(SOON_MS, node_integer(&world.nodes[0], "PTTL long") > 40000 &&
                            node_integer(&world.nodes[4], "PTTL long") > 40000);
    answer_expect(lock_release(server, &grant), 200, NULL);
}

/* Its client may work under the first answer. */
TEST(a_repeat_whose_client_left_is_not_undone)
{
    struct lock grant;
    grant_ask(server, wish("gone", 60000, 0), KEY, &grant);
    for (int i = 0; i < 20; i++) {
        int fd = grant_send(server, wish("gone", 60000, 0), KEY);
        harness_pause_ms(i % 3);
        raw_reset(fd);
        answer_expect(grant_ask(server, wish("gone", 60000, 0), NULL, NULL),
                      409, "lock_held");
    }
    answer_expect(grant_ask(another, wish("gone", 60000, 0), KEY, &grant), 200,
                  NULL);
    answer_expect(lock_release(server, &grant), 200, NULL);
}

/* ---- others ------------------------------------------------------------- */

TEST_RANGE(the_holder_does_not_queue_behind_others, 0, 2)
{
    struct lock grant;
    const struct server *const servers[] = {server, another};
    grant_take(server, wish("q", 60000, 30000), KEY, &grant);
    int fd = waiter_send(server, "q", 60000, 30000);
    waiter_expect_count(server, 1);
    int64_t began_ms = harness_now_ms();
    answer_expect(grant_ask(servers[_i], wish("q", 60000, 30000), KEY, &grant),
                  200, NULL);
    ck_assert_int_lt(harness_now_ms() - began_ms, SOON_MS);
    waiter_expect_count(server, 1);
    answer_expect(lock_release(server, &grant), 200, NULL);
    struct verdict verdict = waiter_expect_grant(fd, "q", SOON_MS);
    answer_expect(lock_release(server, &verdict.lock), 200, NULL);
}

enum { RIVALS = 8, ROUNDS = 12 };

/* How many of the tokens that were told still count. */
static int count_valid(const struct lock *grants, int count)
{
    int valid = 0;
    for (int i = 0; i < count; i++) {
        const struct answer *a = lock_extend(server, &grants[i], 30000);
        valid += a->status == 200;
        if (a->status != 200)
            answer_expect(a, 409, "not_owner");
    }
    return valid;
}

TEST(of_repeats_at_once_one_token_counts)
{
    struct lock grants[RIVALS + 2];
    int won = 0, lost = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int fds[RIVALS], count = 0;
        const char *name = textf("rivals:%d", round);
        const struct answer *a =
            grant_ask(server, wish(name, 60000, 0), KEY, &grants[count++]);
        answer_expect(a, 201, NULL);
        for (int i = 0; i < RIVALS; i++)
            fds[i] =
                grant_send(i % 2 ? server : another, wish(name, 60000, 0), KEY);
        for (int i = 0; i < RIVALS; i++) {
            char out[TEXT_SIZE];
            await_readable(fds[i]);
            ck_assert_int_gt(recv(fds[i], out, 13, MSG_PEEK), 12);
            bool is_grant = strncmp(out, "HTTP/1.1 200 ", 13) == 0;
            ck_assert_msg(is_grant || strncmp(out, "HTTP/1.1 409 ", 13) == 0,
                          "%.13s", out);
            if (is_grant)
                grants[count++] = grant_read(fds[i], 200, SOON_MS);
            won += is_grant;
            lost += !is_grant;
            close(fds[i]);
        }
        ck_assert_int_le(count_valid(grants, count), 1);
        answer_expect(
            grant_ask(server, wish(name, 60000, 0), KEY, &grants[count]), 200,
            NULL);
        ck_assert_int_eq(count_valid(grants, count), 0);
        expect_replaced(&grants[count - 1], &grants[count]);
    }
    printf("repeat: of %d at once %d got the lock, %d did not\n",
           ROUNDS * RIVALS, won, lost);
    ck_assert_int_gt(won, 0);
}
