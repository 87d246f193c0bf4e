/*
 * Permits: many clients, two servers, and never more holders than the limit.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../server/lock/names.h"
#include "grant.h"
#include "http.h"
#include "node.h"
#include "waiter.h"

enum {
    N = 5,
    CLIENTS = 64,
    LIMIT = 10,
    TRIES = 5,
    HOLD_MS = 5,
    RUN_MS = 4000,
    SOON_MS = 30000,
    FAULTS = 6,
};

/* What the clients share with the test. */
struct crowd {
    atomic_int holders, most;
    atomic_int slots[LIMIT]; /* holders of each */
    atomic_int grants[CLIENTS];
    atomic_int meetings; /* two had one slot */
    atomic_int lost;     /* releases of what had ended */
    atomic_bool is_over;
};

WORLD_WITH_END;
static struct crowd *crowd;

static void begin(void)
{
    world_start_two(&world, N, "--node-timeout-ms 500");
    crowd = harness_share(sizeof *crowd);
}

/* ---- a client ------------------------------------------------------------ */

static void hold(int client, int slot)
{
    int holders = atomic_fetch_add(&crowd->holders, 1) + 1;
    int most = atomic_load(&crowd->most);
    while (holders > most &&
           !atomic_compare_exchange_weak(&crowd->most, &most, holders))
        continue;
    if (atomic_fetch_add(&crowd->slots[slot], 1) > 0)
        atomic_fetch_add(&crowd->meetings, 1);
    atomic_fetch_add(&crowd->grants[client], 1);
    harness_pause_ms(HOLD_MS);
    atomic_fetch_sub(&crowd->slots[slot], 1);
    atomic_fetch_sub(&crowd->holders, 1);
}

/* Some wait, some do not; each asks one server, and releases at any. */
static void work(int client)
{
    const struct server *server = &world.servers[client % 2];
    const char *json =
        client % 4 < 3
            ? "{\"resource\":\"crowd\",\"limit\":10,\"wait_ms\":5000}"
            : "{\"resource\":\"crowd\",\"limit\":10}";
    struct lock grant;
    for (int i = 0; !atomic_load(&crowd->is_over); i++) {
        const struct answer *answer = grant_ask(server, json, NULL, &grant);
        if (answer->status != 201) {
            harness_pause_ms(1 + client % 7);
            continue;
        }
        const json_t *slots = json_object_get(answer->json, "slots");
        hold(client, (int)json_integer_value(json_array_get(slots, 0)));
        if (lock_release(&world.servers[i % 2], &grant)->status != 200)
            atomic_fetch_add(&crowd->lost, 1);
    }
}

static void disturb(int i)
{
    struct node *node = &world.nodes[i % N];
    if (i % 2 == 0) {
        node_pause(node);
        harness_pause_ms(RUN_MS / FAULTS / 2);
        node_resume(node);
    } else {
        node_kill(node);
        harness_pause_ms(RUN_MS / FAULTS / 2);
        node_start(node);
    }
    harness_pause_ms(RUN_MS / FAULTS / 2);
}

static void run(bool has_faults)
{
    pid_t pids[CLIENTS];
    int least = INT32_MAX, most = 0, all = 0;
    memset(crowd, 0, sizeof *crowd);
    for (int i = 0; i < CLIENTS; i++) {
        pids[i] = harness_fork();
        if (pids[i] == 0) {
            work(i);
            _exit(0);
        }
    }
    for (int i = 0; i < FAULTS; i++) {
        if (has_faults)
            disturb(i);
        else
            harness_pause_ms(RUN_MS / FAULTS);
    }
    atomic_store(&crowd->is_over, true);
    for (int i = 0; i < CLIENTS; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
        int grants = atomic_load(&crowd->grants[i]);
        all += grants;
        if (i % 4 == 3)
            continue; /* does not wait */
        least = grants < least ? grants : least;
        most = grants > most ? grants : most;
    }
    printf("permits: %d grants in %d ms, at most %d of %d at once; of those "
           "that wait fewest %d, most %d\n",
           all, RUN_MS, atomic_load(&crowd->most), LIMIT, least, most);
    ck_assert_int_le(atomic_load(&crowd->most), LIMIT);
    ck_assert_int_eq(atomic_load(&crowd->meetings), 0);
    ck_assert_int_gt(least, 0);
}

SUITE(permits, .timeout_s = 90, .set_up_once = begin,
      .tear_down_once = world_tear_down);

TEST(story_61_never_more_than_the_limit)
{
    /* on a busy machine one of them may always be between two permits */
    for (int i = 0; i < TRIES; i++) {
        run(false);
        ck_assert_int_eq(atomic_load(&crowd->lost), 0);
        if (atomic_load(&crowd->most) == LIMIT)
            break;
    }
    ck_assert_int_eq(atomic_load(&crowd->most), LIMIT);
}

/* ---- one after the other ------------------------------------------------- */

static json_int_t first_slot(const struct answer *answer)
{
    const json_t *slots = json_object_get(answer->json, "slots");
    ck_assert_uint_eq(json_array_size(slots), 1);
    return json_integer_value(json_array_get(slots, 0));
}

TEST(a_permit_is_a_lock_for_every_call)
{
    const struct server *server = &world.servers[0];
    const struct server *other = &world.servers[1];
    struct lock grant;
    const char *json = "{\"resource\":\"p\",\"limit\":2,\"owner\":\"me\"}";
    char name[16], path[6100];
    json_int_t slot = first_slot(grant_ask(server, json, NULL, &grant));
    answer_expect(lock_extend(other, &grant, 9000), 200, NULL);
    PRINT_TO(name, "p" NAMES_SLOT "%d", (int)slot);
    const struct answer *answer = answer_expect(
        HTTP(other, .method = "GET", .path = "/pools/p?limit=2"), 200, NULL);
    const json_t *slots = json_object_get(answer->json, "slots");
    const json_t *held = json_array_get(slots, 0);
    ck_assert_uint_eq(json_array_size(slots), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(held, "slot")), slot);
    ck_assert_str_eq(json_string_value(json_object_get(held, "owner")), "me");
    ck_assert_int_gt(json_integer_value(json_object_get(held, "remaining_ms")),
                     5000);
    ck_assert_uint_eq(json_array_size(json_object_get(answer->json, "free")),
                      1);
    PRINT_TO(path, "%s?force=%lld", grant.path, (long long)grant.number);
    answer_expect(HTTP(other, .method = "DELETE", .path = path), 200, NULL);
    /* three nodes were enough for the answer */
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, name) == 0);
    answer_expect(lock_release(server, &grant), 404, "lock_not_found");
}

TEST(several_permits_are_granted_together_or_not)
{
    const struct server *server = &world.servers[0];
    struct lock two, one;
    const char *json = "{\"resource\":\"s\",\"limit\":3,\"permits\":2}";
    grant_take(server, json, NULL, &two);
    answer_expect(grant_ask(&world.servers[1], json, NULL, NULL), 409,
                  "lock_held");
    grant_take(&world.servers[1], "{\"resource\":\"s\",\"limit\":3}", NULL,
               &one);
    answer_expect(lock_release(&world.servers[1], &two), 200, NULL);
    grant_take(server, json, NULL, &two);
    answer_expect(lock_release(server, &two), 200, NULL);
    answer_expect(lock_release(server, &one), 200, NULL);
}

/* Its answer was lost, and it asks another server. */
TEST(a_repeat_gets_the_same_slot)
{
    static const char key[] = "9f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e";
    const char *json = "{\"resource\":\"r\",\"limit\":100}";
    struct lock grant, again;
    json_int_t slot =
        first_slot(grant_ask(&world.servers[0], json, key, &grant));
    const struct answer *answer =
        grant_ask(&world.servers[1], json, key, &again);
    ck_assert_int_eq(answer->status, 200);
    ck_assert_int_eq(first_slot(answer), slot);
    answer_expect(lock_release(&world.servers[0], &grant), 409, "not_owner");
    answer_expect(lock_release(&world.servers[0], &again), 200, NULL);
}

/* Whichever comes first, two clients hold the two of them at once. */
TEST(a_lock_named_like_a_slot_is_another_lock)
{
    const struct server *server = &world.servers[0];
    const struct server *other = &world.servers[1];
    const char *json = "{\"resource\":\"issue\",\"limit\":13,\"permits\":13}";
    struct lock permit, lock, slash;
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            lock_take(other, "issue#12", 9000, &lock);
        grant_take(server, json, NULL, &permit);
        if (i == 0)
            lock_take(other, "issue#12", 9000, &lock);
        lock_take(other, "issue", 9000, &slash);
        answer_expect(lock_extend(other, &permit, 9000), 200, NULL);
        answer_expect(lock_extend(server, &lock, 9000), 200, NULL);
        answer_expect(lock_release(other, &permit), 200, NULL);
        answer_expect(lock_release(server, &lock), 200, NULL);
        answer_expect(lock_release(server, &slash), 200, NULL);
    }
    /* and a pool may have any resource's name */
    grant_take(server, "{\"resource\":\"issue#\",\"limit\":1}", NULL, &permit);
    answer_expect(lock_release(other, &permit), 200, NULL);
}

static const char *const told[] = {"id",   "resource", "slots",
                                   "mode", "owner",    "fencing_token"};

static void expect_same(const json_t *grant, const json_t *another,
                        const char *name)
{
    const json_t *one = json_object_get(grant, name);
    const json_t *other = json_object_get(another, name);
    ck_assert_msg(one != NULL && other != NULL && json_equal(one, other), "%s",
                  name);
}

static void expect_all_same(const json_t *grant, const json_t *another)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        expect_same(grant, another, told[i]);
    ck_assert_ptr_null(json_object_get(another, "limit"));
    ck_assert_ptr_null(json_object_get(another, "resources"));
}

/* The locks whose names have this prefix, as soon as there are count. */
static const json_t *list(const char *prefix, size_t count)
{
    const char *target = textf("/locks?prefix=%s", prefix);
    const json_t *locks = NULL;
    WAIT_UNTIL(SOON_MS,
               (locks = json_object_get(
                    answer_expect(HTTP(&world.servers[1], .method = "GET",
                                       .path = target),
                                  200, NULL)
                        ->json,
                    "locks"),
                json_array_size(locks) == count));
    return locks;
}

TEST(each_call_tells_the_same_of_a_permit)
{
    const struct server *server = &world.servers[0];
    const struct server *other = &world.servers[1];
    struct lock lock;
    for (size_t permits = 1; permits <= 2; permits++) {
        const char *json = textf("{\"resource\":\"same %zu\",\"limit\":12,"
                                 "\"permits\":%zu,\"owner\":\"me\"}",
                                 permits, permits);
        json_t *grant =
            json_incref(grant_take(server, json, NULL, &lock)->json);
        ck_assert_str_eq(json_string_value(json_object_get(grant, "resource")),
                         textf("same %zu", permits));
        ck_assert_int_eq(json_integer_value(json_object_get(grant, "limit")),
                         12);
        expect_all_same(
            grant,
            answer_expect(lock_extend(other, &lock, 9000), 200, NULL)->json);
        const char *id = lock.path + strlen("/locks/");
        json = textf("{\"operations\":[{\"operation\":\"extend\","
                     "\"id\":\"%s\",\"token\":\"%s\"}]}",
                     id, lock.token);
        const struct answer *answer = answer_expect(
            HTTP(other, .method = "POST", .path = "/batch", .json = json), 200,
            NULL);
        const json_t *item =
            json_array_get(json_object_get(answer->json, "results"), 0);
        expect_all_same(grant, json_object_get(item, "grant"));
        expect_all_same(
            grant, answer_expect(grant_inspect(other, &lock), 200, NULL)->json);
        const json_t *locks = list(textf("same%%20%zu", permits), permits);
        for (size_t i = 0; i < permits; i++) {
            item = json_array_get(locks, i);
            if (permits == 1)
                expect_all_same(grant, item);
            expect_same(grant, item, "resource");
            expect_same(grant, item, "fencing_token");
            ck_assert_uint_eq(json_array_size(json_object_get(item, "slots")),
                              1);
        }
        answer = answer_expect(lock_release(other, &lock), 200, NULL);
        for (size_t i = 0; i < 3; i++)
            expect_same(grant, answer->json, told[i]);
        answer = answer_expect(lock_extend(other, &lock, 9000), 404,
                               "lock_not_found");
        for (size_t i = 0; i < 3; i++)
            expect_same(grant, answer->json, told[i]);
        json_decref(grant);
    }
}

/* The nodes announce it on the channel of the pool. */
TEST(a_release_at_another_server_wakes_one_that_waits)
{
    static const char json[] =
        "{\"resource\":\"w\",\"limit\":1,\"wait_ms\":20000}";
    struct lock grant;
    for (int i = 0; i < 4; i++) {
        grant_take(&world.servers[0], json, NULL, &grant);
        int fd = grant_send(&world.servers[1], json, NULL);
        waiter_expect_count(&world.servers[1], 1);
        harness_pause_ms(300); /* until the nodes announce */
        answer_expect(lock_release(&world.servers[0], &grant), 200, NULL);
        grant = grant_read(fd, 201, SOON_MS);
        answer_expect(lock_release(&world.servers[1], &grant), 200, NULL);
    }
    ck_assert_int_gt(waiter_handovers(&world.servers[1], "announcement"), 0);
}

/* Last: the nodes that it starts end with it. */
TEST(never_more_while_nodes_are_paused_and_killed)
{
    run(true);
}
