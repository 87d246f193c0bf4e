/*
 * The verdict tables, row by row: keys are laid on the nodes past the service,
 * and the answer is compared. Over one, three and five nodes; q is the quorum.
 */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"

WORLD_WITH_END;
static const struct server *const server = &world.servers[0];
static int n, q;

static void begin(int count)
{
    n = count;
    q = n / 2 + 1;
    world_start(&world, n, "--retry-delay-ms 50 --retry-count 5");
}

static void begin_1(void)
{
    begin(1);
}

static void begin_3(void)
{
    begin(3);
}

static void begin_5(void)
{
    begin(5);
}

static void end_own(void)
{
    world_stop(&world);
}

/* A lock that lies on every node, not only on a quorum. */
static void acquire_everywhere(const char *resource, struct lock *lock)
{
    lock_take(server, resource, 30000, lock);
    WAIT_UNTIL(5000, world_count_keys(&world, resource) == n);
}

SUITE(verdicts);

/* ---- acquire ------------------------------------------------------------ */

GROUP(nodes_5, .timeout_s = 60, .set_up_once = begin_5,
      .tear_down_once = world_tear_down);
GROUP(nodes_3, .timeout_s = 60, .set_up_once = begin_3,
      .tear_down_once = world_tear_down, .also = &group_nodes_5);
GROUP(nodes_1, .timeout_s = 60, .set_up_once = begin_1,
      .tear_down_once = world_tear_down, .also = &group_nodes_3);

TEST(acquire_one_value_on_a_quorum_is_held)
{
    world_set(&world, 0, q, "held", "foreign", 20000);
    const struct answer *a = lock_acquire(server, "held", 1000, NULL);
    answer_expect(a, 409, "lock_held");
    ck_assert_int_gt(answer_int(a, "held_by.remaining_ms"), 0);
    ck_assert(!answer_has(a, "held_by.fencing_token"));
    /* what was granted on the rest is taken back */
    WAIT_UNTIL(5000, world_count_keys(&world, "held") == q);
}

TEST(acquire_one_value_on_less_than_a_quorum_is_granted)
{
    struct lock lock;

    world_set(&world, 0, n - q, "minority", "foreign", 20000);
    lock_take(server, "minority", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
    WAIT_UNTIL(5000, world_count_keys(&world, "minority") == n - q);
}

/* CRC-16/XMODEM modulo 16384, bit by bit: not the code under test. */
static int slot_of(const char *resource)
{
    unsigned crc = 0;

    for (; *resource; resource++) {
        crc ^= (unsigned)(unsigned char)*resource << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
        crc &= 0xffff;
    }
    return (int)(crc % 16384);
}

static void raise_number(int node, const char *resource, long long number)
{
    node_do(&world.nodes[node], "HSET redlockd:state %d %lld max_token %lld",
            slot_of(resource), number, number);
}

TEST(acquire_stale_number_is_raised_above_the_highest)
{
    struct lock lock;
    long long highest = 0;

    lock_take(server, "stale", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
    for (int i = 0; i < n; i++) {
        highest = lock.number + 1000000 + i;
        raise_number(i, "stale", highest);
    }
    lock_take(server, "stale", 9000, &lock);
    /* a majority rejected less than its own highest */
    ck_assert_int_gt(lock.number, highest - n + q);
    for (int i = 0; i < n; i++)
        ck_assert_int_le(lock.number, highest + n * 1000);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

/* How many nodes gave this vote, as the problem lists them. */
static int count_votes(const struct answer *answer, const char *vote)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        const char *path = textf("nodes.%d.vote", i);
        count += strcmp(answer_text(answer, path), vote) == 0;
    }
    return count;
}

/* Each node has another value, as of a race between servers of ours. */
static void split(const char *resource, int ttl_ms)
{
    for (int i = 0; i < n; i++) {
        const char *token = textf("%016d.%040x", i + 1, (unsigned)i);
        world_set(&world, i, 1, resource, token, ttl_ms);
    }
}

/* Some libraries use a value of its own for each node: nobody is racing. */
TEST(acquire_others_values_on_a_quorum_are_held)
{
    for (int i = 0; i < q; i++) {
        world_set(&world, i, 1, "theirs", textf("value%d", i), 20000);
    }
    const struct answer *a = lock_acquire(server, "theirs", 9000, NULL);
    answer_expect(a, 409, "lock_held");
    ck_assert_int_gt(answer_int(a, "held_by.remaining_ms"), 10000);
    ck_assert_int_le(answer_int(a, "held_by.remaining_ms"), 20000);
    ck_assert(!answer_has(a, "held_by.fencing_token"));
    ck_assert_lacks(a->body, "value");
    WAIT_UNTIL(5000, world_count_keys(&world, "theirs") == q);
}

/* No holder, but no way to a quorum either. */
TEST(acquire_split_without_end_is_held_by_nobody_known)
{
    split("split", 0);
    const struct answer *a = lock_acquire(server, "split", 9000, NULL);
    answer_expect(a, 409, "lock_held");
    if (n > 1)
        ck_assert(!answer_has(a, "held_by"));
    ck_assert_int_eq(world_count_keys(&world, "split"), n);
    world_del(&world, 0, n, "split");
}

TEST(acquire_split_votes_are_tried_again)
{
    struct lock lock;

    split("resolves", 60);
    WAIT_UNTIL(5000,
               lock_acquire(server, "resolves", 9000, &lock)->status == 201);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

/* ---- extend ------------------------------------------------------------- */

TEST(extend_own_value_on_a_quorum_is_extended)
{
    struct lock lock;

    acquire_everywhere("ext-own", &lock);
    world_del(&world, 0, n - q, "ext-own");
    const struct answer *a = lock_extend(server, &lock, 40000);
    answer_expect(a, 200, NULL);
    ck_assert_int_eq(answer_int(a, "nodes.quorum"), q);
    /* never made anew where it was gone */
    ck_assert_int_eq(world_count_keys(&world, "ext-own"), q);
}

TEST(extend_other_value_is_not_owner)
{
    struct lock lock;

    acquire_everywhere("ext-other", &lock);
    world_del(&world, 0, n - q + 1, "ext-other");
    world_set(&world, 0, 1, "ext-other", "foreign", 20000);
    answer_expect(lock_extend(server, &lock, 40000), 409, "not_owner");
    ck_assert_int_eq(world_count_keys(&world, "ext-other"), q);
}

TEST(extend_own_value_on_too_few_is_not_found)
{
    struct lock lock;

    acquire_everywhere("ext-few", &lock);
    world_del(&world, 0, n - q + 1, "ext-few");
    answer_expect(lock_extend(server, &lock, 40000), 404, "lock_not_found");
    /* a failed extend releases nothing */
    ck_assert_int_eq(world_count_keys(&world, "ext-few"), q - 1);
}

/* ---- release ------------------------------------------------------------ */

TEST(release_other_value_on_a_quorum_is_not_owner)
{
    struct lock lock;

    acquire_everywhere("rel-other", &lock);
    world_set(&world, 0, q, "rel-other", "foreign", 20000);
    answer_expect(lock_release(server, &lock), 409, "not_owner");
    WAIT_UNTIL(5000, world_count_keys(&world, "rel-other") == q);
}

TEST(release_deleted_somewhere_is_released)
{
    struct lock lock;

    acquire_everywhere("rel-one", &lock);
    world_del(&world, 0, n - 1, "rel-one");
    answer_expect(lock_release(server, &lock), 200, NULL);
    WAIT_UNTIL(5000, world_count_keys(&world, "rel-one") == 0);
}

TEST(release_other_value_on_a_few_is_not_owner)
{
    struct lock lock;

    acquire_everywhere("rel-few", &lock);
    world_del(&world, 0, n, "rel-few");
    world_set(&world, 0, 1, "rel-few", "foreign", 20000);
    answer_expect(lock_release(server, &lock), 409, "not_owner");
    world_del(&world, 0, n, "rel-few");
    answer_expect(lock_release(server, &lock), 404, "lock_not_found");
}

/* ---- inspect ------------------------------------------------------------ */

/* As soon as a quorum agrees: at most what the whole quorum still has. */
TEST(inspect_never_overstates_the_remaining_time)
{
    for (int i = 0; i < n; i++)
        world_set(&world, i, 1, "look", "foreign", 20000 * (i + 1));
    const struct answer *a = lock_inspect(server, "look");
    answer_expect(a, 200, NULL);
    /* the q-th largest of 20, 40, 60… s */
    ck_assert_int_le(answer_int(a, "remaining_ms"), 20000 * (n - q + 1));
    ck_assert_int_gt(answer_int(a, "remaining_ms"), 10000);
    ck_assert_str_eq(answer_text(a, "version"), "foreign-466b58a030dfb213");
    ck_assert(!answer_has(a, "fencing_token"));
    ck_assert(!answer_has(a, "owner"));
}

TEST(inspect_busy_without_one_value_is_found_without_holder)
{
    for (int i = 0; i < n - q + 1; i++) {
        const char *value = textf("busy%d", i);
        world_set(&world, i, 1, "busy", value, 0);
    }
    const struct answer *a = lock_inspect(server, "busy");
    answer_expect(a, 200, NULL);
    ck_assert_int_eq(answer_int(a, "nodes.held"), n - q + 1); /* any value */
    if (n > 1) /* else that is one value */
        ck_assert_str_eq(answer_text(a, "version"),
                         n - q + 1 < q ? "split" : "foreign");
    ck_assert(!answer_has(a, "fencing_token"));
    ck_assert(!answer_has(a, "owner"));
}

TEST(inspect_busy_on_too_few_is_not_found)
{
    world_set(&world, 0, n - q, "rare", "foreign", 20000);
    answer_expect_free(lock_inspect(server, "rare"));
}

/* Rows that hurt no node share one world. */

/* Rows that hurt nodes have a world each. */

/* These stop nodes: each starts its own. */
GROUP(hurt_5, .timeout_s = 60, .set_up = begin_5, .tear_down = end_own);
GROUP(hurt_3, .timeout_s = 60, .set_up = begin_3, .tear_down = end_own,
      .also = &group_hurt_5);
GROUP(hurt_1, .timeout_s = 60, .set_up = begin_1, .tear_down = end_own,
      .also = &group_hurt_3);

/* And one slot beyond reach must not take all other resources with it. */
TEST(acquire_number_far_from_the_clocks_is_no_quorum)
{
    struct lock lock;

    lock_take(server, "skew", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
    for (int i = 0; i < n; i++)
        raise_number(i, "skew", lock.number + 3600000000LL);
    const struct answer *a = lock_acquire(server, "skew", 9000, NULL);
    answer_expect(a, 503, "no_quorum");
    ck_assert_int_gt(count_votes(a, "stale"), n - q);
    ck_assert(answer_has(a, "retry_after_ms"));
    WAIT_UNTIL(5000, world_count_keys(&world, "skew") == 0);
    lock_take(server, "level", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

TEST(acquire_without_enough_votes_is_no_quorum)
{
    struct lock lock;

    for (int i = 0; i < n - q + 1; i++)
        node_kill(&world.nodes[i]);
    const struct answer *a = lock_acquire(server, "few", 9000, &lock);
    answer_expect(a, 503, "no_quorum");
    ck_assert(answer_has(a, "retry_after_ms"));
    for (int i = 0; i < n; i++) {
        char path[32], name[32];
        snprintf(path, sizeof path, "nodes.%d.node", i);
        snprintf(name, sizeof name, "127.0.0.1:%d", world.nodes[i].port);
        ck_assert_str_eq(answer_text(a, path), name);
    }
    ck_assert_str_eq(answer_text(a, "nodes.0.vote"), "unreachable");
    WAIT_UNTIL(5000, world_count_keys(&world, "few") == 0);
}

TEST(extend_without_enough_answers_is_no_quorum)
{
    struct lock lock;

    acquire_everywhere("ext-dead", &lock);
    for (int i = 0; i < n - q + 1; i++)
        node_kill(&world.nodes[i]);
    answer_expect(lock_extend(server, &lock, 40000), 503, "no_quorum");
    ck_assert_int_eq(world_count_keys(&world, "ext-dead"), q - 1);
}

TEST(release_without_enough_answers_is_no_quorum_and_is_repeated)
{
    struct lock lock;

    acquire_everywhere("rel-dead", &lock);
    for (int i = 0; i < n - q + 1; i++)
        node_kill(&world.nodes[i]);
    answer_expect(lock_release(server, &lock), 503, "no_quorum");
    for (int i = 0; i < n - q + 1; i++)
        node_start(&world.nodes[i]);
    WAIT_UNTIL(20000, world_count_keys(&world, "rel-dead") == 0);
}

TEST(inspect_without_enough_answers_is_no_quorum)
{
    for (int i = 0; i < n - q + 1; i++)
        node_kill(&world.nodes[i]);
    answer_expect(lock_inspect(server, "x"), 503, "no_quorum");
}

GROUP(several_hurt_5, .timeout_s = 60, .set_up = begin_5, .tear_down = end_own);
GROUP(several_hurt_3, .timeout_s = 60, .set_up = begin_3, .tear_down = end_own,
      .also = &group_several_hurt_5);

/* q answers, and the silent ones could still make a quorum of ours. */
TEST(extend_that_silent_nodes_could_decide_is_no_quorum)
{
    struct lock lock;

    acquire_everywhere("ext-open", &lock);
    world_del(&world, 0, 1, "ext-open");
    for (int i = 1; i <= n - q; i++)
        node_pause(&world.nodes[i]);
    answer_expect(lock_extend(server, &lock, 40000), 503, "no_quorum");
    for (int i = 1; i <= n - q; i++)
        node_resume(&world.nodes[i]);
}
