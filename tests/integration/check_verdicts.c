/* SPDX-License-Identifier: MIT */
/*
 * The verdict tables with real nodes: keys are laid on them past the service,
 * and the answer is compared.
 */
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 5, TTL_MS = 30000 };

WORLD(world_start, N, "--retry-delay-ms 50 --retry-count 5");

/*
 * What each node has when the call comes: "o" the client's own lock, "f" the
 * value of somebody else, "d" one that differs from node to node, "s" a token
 * that does so, as of servers that race, "-" nothing. Extend and release come
 * from a client that has had the lock everywhere.
 */
static const struct {
    char call; /* acquire, extend, release, inspect */
    const char *nodes;
    int status;
    const char *code;
    int left; /* nodes with a key, soon */
} rows[] = {
    {'a', "fff--", 409, "lock_held", 3},
    {'a', "ff---", 201, NULL, 5},
    {'a', "ddd--", 409, "lock_held", 3},
    {'a', "sssss", 409, "lock_held", 5},
    {'e', "--ooo", 200, NULL, 5}, /* it is repaired */
    {'e', "f--oo", 409, "not_owner", 3},
    {'e', "---oo", 404, "lock_not_found", 2},
    {'r', "fffoo", 409, "not_owner", 3},
    {'r', "----o", 200, NULL, 0},
    {'r', "f----", 409, "not_owner", 1},
    {'r', "-----", 404, "lock_not_found", 0},
    {'i', "fff--", 200, NULL, 3},
    {'i', "ff---", 200, NULL, 2},
    {'i', "ddd--", 200, NULL, 3},
};

/* What an inspection of these tells. */
static const char *const versions[] = {
    "\"version\":\"foreign-466b58a030dfb213\"", "\"version\":\"free\"",
    "\"version\":\"foreign\""};

static void lay(const char *name, const char *nodes)
{
    for (int i = 0; i < N; i++) {
        const char *value = nodes[i] == 'f'   ? "foreign"
                            : nodes[i] == 'd' ? textf("value%d", i)
                                              : textf("%016d.%040x", i + 1, i);
        if (nodes[i] == '-')
            world_del(i, 1, name);
        else if (nodes[i] != 'o')
            world_set(i, 1, name, value, TTL_MS);
    }
}

static const struct answer *call(char kind, const char *name,
                                 const struct lock *lock)
{
    return kind == 'a'   ? lock_acquire(here, name, TTL_MS, NULL)
           : kind == 'e' ? lock_extend(here, lock, TTL_MS)
           : kind == 'r' ? lock_release(here, lock)
                         : lock_inspect(here, name);
}

SUITE(verdicts, .timeout_s = 60, WORLD_ONCE);

TEST_EACH(what_the_nodes_have_decides, rows)
{
    struct lock lock;
    const char *name = textf("row:%d", _i);
    if (strchr("er", rows[_i].call) != NULL) {
        lock_take(here, name, TTL_MS, &lock);
        expect_keys(name, N);
    }
    lay(name, rows[_i].nodes);
    const struct answer *a = call(rows[_i].call, name, &lock);
    answer_expect(a, rows[_i].status, rows[_i].code);
    ck_assert_lacks(a->body, "value");
    if (rows[_i].call == 'i')
        ck_assert_has(a->body, versions[_i - 11]);
    expect_keys(name, rows[_i].left);
}

GROUP(hurt, .timeout_s = 60, WORLD_ONCE);

TEST(without_enough_votes_nothing_is_known)
{
    struct lock lock;
    lock_take(here, "hurt", TTL_MS, &lock);
    expect_keys("hurt", N);
    world_kill_nodes(0, 3);
    for (const char *kind = "aeir"; *kind != '\0'; kind++)
        answer_expect(call(*kind, *kind == 'a' ? "few" : "hurt", &lock), 503,
                      "no_quorum");
    const struct answer *a = lock_acquire(here, "few", TTL_MS, NULL);
    ck_assert(answer_has(a, "retry_after_ms"));
    ck_assert_str_eq(answer_text(a, "nodes.0.vote"), "unreachable");
    expect_keys("few", 0);
    world_restart_nodes(0, 3); /* the release is still due */
    AWHILE(count_keys("hurt") == 0);
}
