/* SPDX-License-Identifier: MIT */
/*
 * Acquires with an Idempotency-Key: whoever lost the answer gets the lock
 * again, and only the newest token counts.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"
#define KEY "9f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"
#define OTHER_KEY "0f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"

enum { N = 5, SOON_MS = 9000, TEXT_SIZE = 4096 };

WORLD(world_start_two, N, "");

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
    answer_expect(lock_extend(here, first, 30000), 409, "not_owner");
    answer_expect(lock_release(here, first), 409, "not_owner");
    answer_expect_held(grant_inspect(here, second));
    expect_ok(lock_extend(here, second, 30000));
    expect_ok(lock_extend(there, second, 30000));
    lock_drop(here, second);
    answer_expect_free(grant_inspect(here, second));
}

SUITE(repeat, .timeout_s = 60, WORLD_ONCE);

/* ---- an answer that is lost --------------------------------------------- */

TEST_RANGE(a_lost_answer_is_made_good, 0, 2)
{
    struct lock second;
    const struct server *const servers[] = {here, there};
    int fd = grant_send(here, wish("lost", 60000, 0), KEY);
    struct lock first = grant_read(fd, 201, SOON_MS);
    raw_reset(fd);
    const struct answer *a =
        grant_ask(servers[_i], wish("lost", 60000, 0), KEY, &second);
    expect_ok(a);
    ck_assert_str_eq(answer_header(a, "Location"), "/locks/lost");
    ck_assert_int_gt(answer_int(a, "validity_ms"), 50000);
    expect_replaced(&first, &second);
    expect_keys("lost", 0);
}

/* The answer is written, nobody reads it, and the server dies. */
TEST(a_server_that_died_with_the_answer_is_made_good)
{
    struct lock grant;
    world_serve(2, "");
    int fd = grant_send(&world.servers[2], wish("dies", 60000, 0), KEY);
    await_readable(fd);
    http_disconnect();
    world_kill_server(2);
    close(fd);
    answer_expect(grant_ask(here, wish("dies", 60000, 0), OTHER_KEY, NULL), 409,
                  "lock_held");
    expect_ok(grant_ask(here, wish("dies", 60000, 0), KEY, &grant));
    lock_drop(here, &grant);
}

/* ---- others ------------------------------------------------------------- */

enum { RIVALS = 8, ROUNDS = 12 };

/* How many of the tokens that were told still count. */
static int count_valid(const struct lock *grants, int count)
{
    int valid = 0;
    for (int i = 0; i < count; i++) {
        const struct answer *a = lock_extend(here, &grants[i], 30000);
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
            grant_ask(here, wish(name, 60000, 0), KEY, &grants[count++]);
        answer_expect(a, 201, NULL);
        for (int i = 0; i < RIVALS; i++)
            fds[i] =
                grant_send(i % 2 ? here : there, wish(name, 60000, 0), KEY);
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
        expect_ok(grant_ask(here, wish(name, 60000, 0), KEY, &grants[count]));
        ck_assert_int_eq(count_valid(grants, count), 0);
        expect_replaced(&grants[count - 1], &grants[count]);
    }
    printf("repeat: of %d at once %d got the lock, %d did not\n",
           ROUNDS * RIVALS, won, lost);
    ck_assert_int_gt(won, 0);
}
