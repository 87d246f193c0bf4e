/*
 * One lock over several resources: all of them or none, whoever asks for them
 * in whatever order.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grant.h"
#include "node.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum { N = 5, SOON_MS = 9000 };

WORLD(world_start, N, "");
static const struct server *const server = &world.servers[0];

SUITE(several, .timeout_s = 60, WORLD_ONCE);

/* ---- all or none -------------------------------------------------------- */

TEST(one_that_is_held_holds_up_all)
{
    struct lock one, all;
    const struct answer *a;
    grant_ask(server, "{\"resource\":\"n:b\"}", NULL, &one);
    a = grant_ask(server, "{\"resources\":[\"n:a\",\"n:c\",\"n:b\"]}", NULL,
                  NULL);
    answer_expect(a, 409, "lock_held");
    ck_assert_int_eq(answer_int(a, "held_by.fencing_token"), one.number);
    ck_assert_uint_eq(json_array_size(json_object_get(a->json, "resources")),
                      3);
    ck_assert_int_eq(world_count_keys(&world, "n:a"), 0);
    ck_assert_int_eq(world_count_keys(&world, "n:c"), 0);

    answer_expect(lock_release(server, &one), 200, NULL);
    a = grant_ask(server, "{\"resources\":[\"n:a\",\"n:c\",\"n:b\"]}", NULL,
                  &all);
    answer_expect(a, 201, NULL);
    ck_assert_int_gt(all.number, one.number);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "n:a") == N);
    answer_expect(lock_release(server, &all), 200, NULL);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "n:a") +
                                world_count_keys(&world, "n:b") +
                                world_count_keys(&world, "n:c") ==
                            0);
}

/* A node refuses the second key: the first must not stay. */
TEST(one_that_the_nodes_refuse_leaves_none)
{
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i],
                "ACL SETUSER default resetkeys ~redlockd:* ~ok:*");
    const struct answer *a = grant_ask(
        server, "{\"resources\":[\"ok:1\",\"ok:2\",\"secret\"]}", NULL, NULL);
    answer_expect(a, 403, "key_refused");
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "ACL SETUSER default allkeys");
    ck_assert_int_eq(world_count_keys(&world, "ok:1"), 0);
    ck_assert_int_eq(world_count_keys(&world, "ok:2"), 0);
    lock_expect_cycle(server, "ok:1");
}

/* ---- by their id -------------------------------------------------------- */

TEST(the_id_stands_for_all)
{
    struct lock all, one;
    const struct answer *a =
        grant_ask(server, "{\"resources\":[\"i:b\",\"i:a\"],\"ttl_ms\":5000}",
                  NULL, &all);
    answer_expect(a, 201, NULL);
    ck_assert_str_eq(answer_header(a, "Location"), all.path);
    answer_expect(lock_extend(server, &all, 60000), 200, NULL);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "i:a") == N &&
                            world_count_keys(&world, "i:b") == N);
    int longer = 0;
    for (int i = 0; i < N; i++)
        longer += node_integer(&world.nodes[i], "PTTL i:a") > 40000 &&
                  node_integer(&world.nodes[i], "PTTL i:b") > 40000;
    ck_assert_int_ge(longer, N / 2 + 1);
    a = answer_expect_held(grant_inspect(server, &all));
    ck_assert_int_eq(answer_int(a, "fencing_token"), all.number);
    /* one of them is not the lock */
    one = all;
    strcpy(one.path, "/locks/i:a");
    a = grant_inspect(server, &one);
    ck_assert_int_eq(answer_int(a, "fencing_token"), all.number);
    answer_expect(lock_release(server, &all), 200, NULL);
    answer_expect(lock_release(server, &all), 404, "lock_not_found");
    answer_expect(lock_extend(server, &all, 5000), 404, "lock_not_found");
    answer_expect_free(grant_inspect(server, &all));
}

TEST(a_lock_that_lost_one_of_them_is_lost)
{
    struct lock all;
    grant_ask(server, "{\"resources\":[\"l:a\",\"l:b\"]}", NULL, &all);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "l:b") == N);
    world_del(&world, 0, N, "l:b");
    answer_expect(lock_extend(server, &all, 5000), 404, "lock_not_found");
    lock_expect_cycle(server, "l:b");
    answer_expect(lock_release(server, &all), 404, "lock_not_found");
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "l:a") == 0);
}

/* Sixteen names that have 4096 bytes with what joins them. */
static const char *longest(void)
{
    static char json[8192];
    int len = sprintf(json, "{\"resources\":[");
    for (int i = 15; i >= 0; i--)
        len +=
            sprintf(json + len, "\"%c%0*d%s\"%s", 'a' + i, i == 0 ? 253 : 254,
                    0, i == 0 ? "\xc3\xa9" : "", i > 0 ? "," : "]}");
    return json;
}

TEST(the_longest_works_by_its_id_however_that_is_written)
{
    struct lock all;
    char plain[sizeof all.path];
    const struct answer *a = grant_ask(server, longest(), NULL, &all);
    answer_expect(a, 201, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(a->json, "resources")),
                      16);
    ck_assert_uint_eq(strlen(all.path), 7 + 5464);
    strcpy(plain, all.path);
    for (int i = 0; i < 2; i++) {
        answer_expect(lock_extend(server, &all, 30000), 200, NULL);
        answer_expect_held(grant_inspect(server, &all));
        strcpy(all.path, "/locks/%7e%7E");
        strcat(all.path, plain + strlen("/locks/~~"));
    }
    answer_expect(grant_ask(server, longest(), NULL, NULL), 409, "lock_held");
    answer_expect(lock_release(server, &all), 200, NULL);
    grant_take(server, longest(), NULL, &all);
    answer_expect(lock_release(server, &all), 200, NULL);
}

/* ---- rivals ------------------------------------------------------------- */

static const struct {
    const char *names; /* of one letter each, in the order of the list */
    int wait_ms;
} wishes[] = {
    {"ab", 0},    {"ba", 0},    {"bc", 0},    {"cab", 0},    {"b", 0},
    {"ab", 9000}, {"ba", 9000}, {"cb", 9000}, {"abc", 9000}, {"a", 9000},
};

enum { WORKERS = COUNT(wishes), RUN_MS = 3000, HOLD_MS = 2 };

static struct contest {
    atomic_int holders[3]; /* of a, b, c: worker + 1; 0: nobody */
    atomic_llong numbers[3];
    atomic_int grants[WORKERS];
    atomic_int failed;
    atomic_bool is_over;
} * contest;

static void pause_ms(int64_t ms)
{
    usleep((useconds_t)ms * 1000);
}

/* Nobody else has any of them, and each number is above all before. */
static void hold(int worker, const struct lock *grant)
{
    for (const char *name = wishes[worker].names; *name != '\0'; name++) {
        int i = *name - 'a';
        bool was_free = atomic_exchange(&contest->holders[i], worker + 1) == 0;
        bool is_higher = atomic_exchange(&contest->numbers[i], grant->number) <
                         grant->number;
        atomic_fetch_add(&contest->failed, !was_free || !is_higher);
    }
    pause_ms(HOLD_MS);
    for (const char *name = wishes[worker].names; *name != '\0'; name++)
        if (atomic_exchange(&contest->holders[*name - 'a'], 0) != worker + 1)
            atomic_fetch_add(&contest->failed, 1);
}

static void work(int worker)
{
    const struct server *mine = &world.servers[worker % 2];
    char json[256];
    int len = sprintf(json, "{\"ttl_ms\":20000,\"wait_ms\":%d,\"resources\":[",
                      wishes[worker].wait_ms);
    for (const char *name = wishes[worker].names; *name != '\0'; name++)
        len += sprintf(json + len, "\"r:%c\"%s", *name,
                       name[1] != '\0' ? "," : "]}");
    while (!atomic_load(&contest->is_over)) {
        struct lock grant;
        const struct answer *a = grant_ask(mine, json, NULL, &grant);
        if (a->status == 201) {
            atomic_fetch_add(&contest->grants[worker], 1);
            hold(worker, &grant);
            a = lock_release(mine, &grant);
            atomic_fetch_add(&contest->failed, a->status != 200);
        } else {
            answer_expect(a, 409, "lock_held");
            pause_ms(1);
        }
    }
}

static bool has_each_had_grants(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (atomic_load(&contest->grants[i]) == 0)
            return false;
    return true;
}

TEST(rivals_neither_meet_nor_block_each_other)
{
    pid_t workers[WORKERS];
    contest = harness_share(sizeof *contest);
    world_serve(&world, 1, "");
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = harness_fork();
        if (workers[i] == 0) {
            work(i);
            _exit(0);
        }
    }
    pause_ms(RUN_MS);
    WAIT_UNTIL(SOON_MS,
               has_each_had_grants()); /* a busy machine needs longer */
    atomic_store(&contest->is_over, true);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        ck_assert_int_eq(waitpid(workers[i], &status, 0), workers[i]);
        ck_assert_int_eq(status, 0);
        printf("several: %-3s %s: %d grants\n", wishes[i].names,
               wishes[i].wait_ms > 0 ? "waiting" : "polling",
               atomic_load(&contest->grants[i]));
    }
    ck_assert_int_eq(atomic_load(&contest->failed), 0);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "r:a") +
                                world_count_keys(&world, "r:b") +
                                world_count_keys(&world, "r:c") ==
                            0);
    world_stop_server(&world, 1);
}

/* Who waits for several is served when the last of them is free. */
TEST(who_waits_for_several_waits_for_each)
{
    struct lock a, b;
    char out[4096];
    lock_take(server, "w:a", 60000, &a);
    lock_take(server, "w:b", 60000, &b);
    int fd = grant_send(server,
                        "{\"resources\":[\"w:b\",\"w:a\"],\"wait_ms\":30000}",
                        "0123456789abcdef");
    WAIT_UNTIL(SOON_MS,
               answer_int(lock_inspect(server, "w:a"), "waiters") == 1);
    answer_expect(lock_release(server, &a), 200, NULL);
    lock_expect_cycle(server, "w:a"); /* who waits has nothing yet */
    answer_expect(lock_release(server, &b), 200, NULL);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_int_eq(strncmp(out, "HTTP/1.1 201 ", 13), 0);
    ck_assert_has(out, "\"resources\":[\"w:a\",\"w:b\"]");
    close(fd);
}
