/* SPDX-License-Identifier: MIT */
/*
 * GET /locks over real nodes: exactly what is held, page by page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "http.h"
#include "node.h"

enum {
    N = 5,
    KEYS = 50000,
    HELD = 600,          /* of the keys: on three nodes that stay */
    OURS = 60,           /* through the server */
    PAGES_MAX = 6000,    /* of a list that ends */
    PAGE_NODE_US = 5000, /* of a processor, on a node */
    SHOWN_MAX = 2000,
};

static void set_up(void)
{
    world_start(N, "--node-timeout-ms 500");
}

/* On a busy machine, too, each lock gets onto all nodes. */
static void set_up_slow(void)
{
    world_start(N, "--node-timeout-ms 2000");
}

/* ---- pages -------------------------------------------------------------- */

static struct shown {
    int count, pages;
    char *resources[SHOWN_MAX];
} shown;

static void forget_shown(void)
{
    for (int i = 0; i < shown.count; i++)
        free(shown.resources[i]);
    shown.count = shown.pages = 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One page; false: it was the last. cursor: in and out, "": the first. */
static bool read_page(const char *arguments, char cursor[64])
{
    char path[256];
    size_t i;
    json_t *lock;
    snprintf(path, sizeof path, "/locks?%s%s%s", arguments,
             cursor[0] != '\0' ? "&cursor=" : "", cursor);
    const struct answer *a = HTTP(here, .method = "GET", .path = path);
    ck_assert_msg(a->status == 200, "%s", a->body);
    json_array_foreach(json_object_get(a->json, "locks"), i, lock)
    {
        ck_assert_int_lt(shown.count, SHOWN_MAX);
        shown.resources[shown.count++] =
            strdup(json_string_value(json_object_get(lock, "resource")));
    }
    ck_assert_int_lt(++shown.pages, PAGES_MAX);
    bool has_next = answer_has(a, "next_cursor");
    snprintf(cursor, 64, "%s", has_next ? answer_text(a, "next_cursor") : "");
    return has_next;
}

/* All pages; what is shown, sorted. */
static void list(const char *arguments)
{
    char cursor[64] = "";
    forget_shown();
    while (read_page(arguments, cursor))
        continue;
    qsort(shown.resources, (size_t)shown.count, sizeof *shown.resources,
          by_text);
}

/* Of those that begin like this. */
static void expect_none_twice(const char *prefix)
{
    for (int i = 1; i < shown.count; i++)
        if (strncmp(shown.resources[i], prefix, strlen(prefix)) == 0)
            ck_assert_str_ne(shown.resources[i - 1], shown.resources[i]);
}

static bool is_shown(const char *resource)
{
    return bsearch(&resource, shown.resources, (size_t)shown.count,
                   sizeof *shown.resources, by_text) != NULL;
}

/* ---- exactly what is held ----------------------------------------------- */

/*
 * Key i is on a majority if it is one of the first HELD; else on one node or on
 * two, or is no lock at all.
 */
static void fill(struct node *node, int number)
{
    static const char script[] =
        "local n, held, keys = tonumber(ARGV[1]), tonumber(ARGV[2]), "
        "tonumber(ARGV[3]) "
        "for i = 0, keys - 1 do "
        "  local key, m = 'k:' .. i, i % 5 "
        "  if i < held then "
        "    if n >= 2 or (n + i) % 2 == 0 then "
        "      redis.call('SET', key, 'theirs', 'PX', '600000') end "
        "  elseif m == n then "
        "    if i % 3 == 0 then redis.call('HSET', key, 'f', 'v') "
        "    elseif i % 7 == 0 then redis.call('SET', key .. '\\n', 'x') "
        "    else redis.call('SET', key, 'x') end "
        "  elseif (i % 11 == 0 and (m + 1) % 5 == n) then "
        "    redis.call('SET', key, 'x') "
        "  end "
        "end";
    node_do(node, "EVAL %s 0 %d %d %d", script, number, HELD, KEYS);
}

/* What it has computed for so far: a busy machine takes no more of that. */
static long long node_us(struct node *node)
{
    double user_s = -1, system_s = -1;
    struct redisReply *reply = node_try(node, "INFO cpu");
    const char *user = reply != NULL ? strstr(reply->str, "used_cpu_user:") : 0;
    const char *system =
        reply != NULL ? strstr(reply->str, "used_cpu_sys:") : 0;
    if (user != NULL && system != NULL) {
        user_s = strtod(user + strlen("used_cpu_user:"), NULL);
        system_s = strtod(system + strlen("used_cpu_sys:"), NULL);
    }
    freeReplyObject(reply);
    ck_assert_double_ge(user_s, 0);
    ck_assert_double_ge(system_s, 0);
    return (long long)((user_s + system_s) * 1e6);
}

/* ---- while they change -------------------------------------------------- */

/* Below bound. */
static int draw(uint32_t *seed, int bound)
{
    *seed = *seed * 1664525 + 1013904223;
    return (int)(*seed >> 16) % bound;
}

SUITE(list, .timeout_s = 240, .set_up_once = set_up,
      .tear_down_once = world_finish);

TEST(what_stays_is_shown_once_while_others_come_and_go)
{
    enum { STAY = 200, CHANGING = 40, ROUNDS = 5 };
    struct lock locks[CHANGING] = {{{0}, {0}, {0}, 0, 0}};
    uint32_t seed = (uint32_t)harness_now_ms();
    printf("list: seed %u\n", seed);
    for (int i = 0; i < STAY; i++) {
        const char *resource = textf("c:stay:%d", i);
        world_set(draw(&seed, 3), 3, resource, "theirs", 600000);
    }
    for (int round = 0; round < ROUNDS; round++) {
        char cursor[64] = "";
        forget_shown();
        do {
            struct lock *it = &locks[draw(&seed, CHANGING)];
            const char *resource = textf("c:%d", (int)(it - locks));
            if (it->token[0] == '\0') {
                (void)lock_acquire(here, resource, 60000, it);
            } else {
                (void)lock_release(here, it);
                it->token[0] = '\0';
            }
        } while (read_page("prefix=c:&page_size=10", cursor));
        qsort(shown.resources, (size_t)shown.count, sizeof *shown.resources,
              by_text);
        expect_none_twice("c:stay:");
        for (int i = 0; i < STAY; i++) {
            const char *resource = textf("c:stay:%d", i);
            ck_assert_msg(is_shown(resource), "%s", resource);
        }
    }
}

/* ---- one by one --------------------------------------------------------- */

GROUP(list_exactly, .timeout_s = 240, .set_up_once = set_up_slow,
      .tear_down_once = world_finish);

TEST(exactly_the_held_of_50000_keys_with_two_nodes_away)
{
    long long before[N];
    for (int i = 0; i < N; i++)
        fill(&world.nodes[i], i);
    for (int i = 0; i < OURS; i++) {
        struct lock lock;
        const char *resource = textf("k:ours:%d", i);
        lock_take(here, resource, 60000, &lock);
        expect_keys(resource, N);
    }
    world_kill_nodes(0, 2);
    SOON(http_metric(here, "redlockd_quorum_margin") == 0);
    for (int i = 2; i < N; i++)
        before[i] = node_us(&world.nodes[i]);
    list("prefix=k:&page_size=100");
    for (int i = 2; i < N; i++) {
        long long us = node_us(&world.nodes[i]) - before[i];
        printf("list: %d pages, %lld us of node %d each\n", shown.pages,
               us / shown.pages, i);
        ck_assert_int_lt(us / shown.pages, PAGE_NODE_US);
    }
    expect_none_twice("");
    ck_assert_int_eq(shown.count, HELD + OURS);
    for (int i = 0; i < HELD; i++) {
        const char *resource = textf("k:%d", i);
        ck_assert_msg(is_shown(resource), "%s", resource);
    }
    for (int i = 0; i < OURS; i++) {
        const char *resource = textf("k:ours:%d", i);
        ck_assert_msg(is_shown(resource), "%s", resource);
    }
}
