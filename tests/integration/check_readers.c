/* SPDX-License-Identifier: MIT */
/*
 * Readers and writers: many clients, three servers, and never a writer beside
 * anybody. READERS_MS makes it longer.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"
#include "waiter.h"

#define KEY "0123456789abcdef"

enum {
    N = 5,
    SERVERS = 3,
    READERS = 32,
    WRITERS = 2,
    CLIENTS = READERS + WRITERS,
    TTL_MS = 3000,
    HOLD_MS = 2,
    FAULT_MS = 700,
    SOON_MS = 30000,
};

/* What the clients share with the test, and the register that they guard. */
struct crowd {
    atomic_int readers, writers, most_readers;
    atomic_int meetings; /* a writer with anybody */
    atomic_int reads, writes;
    atomic_int stale;           /* reads with a number below a writer's */
    atomic_int refused;         /* writes with a number below another's */
    atomic_int longest_wait_ms; /* of a writer */
    atomic_llong highest, of_writers;
};

static struct crowd *crowd;

static void begin(void)
{
    world_start_nodes(N);
    world_admit_nodes("");
    world_serve_all(SERVERS, "--node-timeout-ms 500");
    crowd = harness_share(sizeof *crowd);
}

SUITE(readers, .timeout_s = 90, .set_up_once = begin,
      .tear_down_once = world_finish);

/* ---- clients ------------------------------------------------------------- */

static void raise_int(atomic_int *it, int value)
{
    int old = atomic_load(it);
    while (value > old && !atomic_compare_exchange_weak(it, &old, value))
        continue;
}

static void raise_number(atomic_llong *it, long long value)
{
    long long old = atomic_load(it);
    while (value > old && !atomic_compare_exchange_weak(it, &old, value))
        continue;
}

static void read_it(long long number)
{
    raise_int(&crowd->most_readers, atomic_fetch_add(&crowd->readers, 1) + 1);
    if (atomic_load(&crowd->writers) > 0)
        atomic_fetch_add(&crowd->meetings, 1);
    if (number < atomic_load(&crowd->of_writers))
        atomic_fetch_add(&crowd->stale, 1);
    raise_number(&crowd->highest, number);
    pause_ms(HOLD_MS);
    atomic_fetch_add(&crowd->reads, 1);
    atomic_fetch_sub(&crowd->readers, 1);
}

static void write_it(long long number)
{
    if (atomic_fetch_add(&crowd->writers, 1) > 0 ||
        atomic_load(&crowd->readers) > 0)
        atomic_fetch_add(&crowd->meetings, 1);
    if (number <= atomic_load(&crowd->highest))
        atomic_fetch_add(&crowd->refused, 1);
    raise_number(&crowd->highest, number);
    raise_number(&crowd->of_writers, number);
    pause_ms(HOLD_MS);
    atomic_fetch_add(&crowd->writes, 1);
    atomic_fetch_sub(&crowd->writers, 1);
}

/* Some readers wait, some do not; each asks one server, and releases at any. */
static void work(int client)
{
    const struct server *server = &world.servers[client % SERVERS];
    bool is_writer = client >= READERS;
    const char *json =
        is_writer ? "{\"resource\":\"doc\",\"ttl_ms\":3000,\"wait_ms\":20000}"
        : client % 4 < 3
            ? "{\"resource\":\"doc\",\"ttl_ms\":3000,\"mode\":\"shared\","
              "\"wait_ms\":20000}"
            : "{\"resource\":\"doc\",\"ttl_ms\":3000,\"mode\":\"shared\"}";
    struct lock grant;
    int64_t since_ms = harness_now_ms();
    for (int i = 0; !crowd_is_over(); i++) {
        const struct answer *answer = grant_ask(server, json, NULL, &grant);
        if (answer->status != 201) {
            pause_ms(1 + client % 7);
            continue;
        }
        if (is_writer) {
            raise_int(&crowd->longest_wait_ms,
                      (int)(harness_now_ms() - since_ms));
            write_it(grant.number);
        } else {
            read_it(grant.number);
        }
        (void)lock_release(&world.servers[i % SERVERS], &grant);
        since_ms = harness_now_ms();
        if (is_writer)
            pause_ms(20);
    }
}

/* One node at a time: the others are a majority. */
static void disturb(int i)
{
    AWHILE(rival_count_voting(0) >= N - 1);
    node_disturb(&world.nodes[i % N], "pkf"[i % 3], FAULT_MS / 2);
    pause_ms(FAULT_MS / 2);
}

static void run(bool has_faults)
{
    const char *given = getenv("READERS_MS");
    int run_ms = given != NULL ? atoi(given) : 3 * FAULT_MS;
    memset(crowd, 0, sizeof *crowd);
    crowd_start(CLIENTS, work);
    int64_t end_ms = harness_now_ms() + run_ms;
    for (int i = 0; harness_now_ms() < end_ms; i++) {
        if (has_faults)
            disturb(i);
        else
            pause_ms(FAULT_MS);
    }
    crowd_end();
    printf("readers: %d reads, at most %d at once, %d writes, a writer waited "
           "at most %d ms\n",
           atomic_load(&crowd->reads), atomic_load(&crowd->most_readers),
           atomic_load(&crowd->writes), atomic_load(&crowd->longest_wait_ms));
    ck_assert_int_eq(atomic_load(&crowd->meetings), 0);
    ck_assert_int_eq(atomic_load(&crowd->stale), 0);
    ck_assert_int_eq(atomic_load(&crowd->refused), 0);
    ck_assert_int_gt(atomic_load(&crowd->reads), 0);
    ck_assert_int_gt(atomic_load(&crowd->writes), 0);
}

TEST(story_62_no_writer_beside_anybody)
{
    run(false);
    ck_assert_int_gt(atomic_load(&crowd->most_readers), 1);
    ck_assert_int_le(atomic_load(&crowd->longest_wait_ms), 2 * TTL_MS);
}

/* ---- one after the other ------------------------------------------------- */

#define SHARED(resource)                                                       \
    "{\"resource\":\"" resource "\",\"mode\":\"shared\",\"ttl_ms\":9000}"

#define WAITS(resource)                                                        \
    "{\"resource\":\"" resource "\",\"mode\":\"shared\",\"ttl_ms\":20000,"     \
    "\"wait_ms\":20000}"

static int readable(const int fds[2])
{
    struct pollfd waits[] = {{.fd = fds[0], .events = POLLIN},
                             {.fd = fds[1], .events = POLLIN}};
    ck_assert_int_ge(poll(waits, 2, SOON_MS), 1);
    ck_assert_int_ne(waits[0].revents == 0, waits[1].revents == 0);
    return waits[0].revents != 0 ? 0 : 1;
}

/*
 * A writer keeps both out, so each tries long after it was asked for: the lock
 * that one gets is later than the other's request. Both must not have it, as a
 * repeat takes the place of one.
 */
TEST(of_two_at_once_with_one_key_one_gets_in)
{
    struct lock writer, reader;
    int fds[2];
    grant_take(here, "{\"resource\":\"twice\",\"ttl_ms\":9000}", NULL, &writer);
    for (int i = 0; i < 2; i++) {
        fds[i] = grant_send(&world.servers[i], WAITS("twice"), KEY);
        waiter_expect_count(&world.servers[i], 1);
    }
    pause_ms(1500); /* more than the doubt about their clocks */
    lock_drop(&world.servers[2], &writer);
    int first = readable(fds);
    (void)grant_read(fds[first], 201, SOON_MS);
    raw_stays(fds[1 - first], 1500);
    expect_ok(grant_ask(&world.servers[2], SHARED("twice"), KEY, &reader));
    for (int i = 0; i < N; i++)
        AWHILE(node_integer(&world.nodes[i], "ZCARD twice") == 1);
    lock_drop(&world.servers[2], &reader);
    reader = grant_read(fds[1 - first], 201, SOON_MS); /* as soon as it may */
    lock_drop(&world.servers[2], &reader);
}

#define TO_SHARED "\"mode\":\"shared\""

/*
 * Three of five nodes have the reader's form of the token, and two of them
 * fail: the others, which were away, have the writer's. So a reader's extend
 * must find that, too; and a writer's token that is sent in the reader's form
 * cannot be told from the one that a downgrade gave.
 */
TEST(an_extend_of_a_reader_finds_what_a_downgrade_did_not_reach)
{
    struct lock it;
    const struct server *server = here;
    world_wait_ready(0);
    grant_take(server, "{\"resource\":\"half\",\"ttl_ms\":20000}", NULL, &it);
    AWHILE(count_keys("half") == N);
    world_pause_nodes(3, 5);
    const struct answer *answer =
        expect_ok(grant_extend(server, &it, TO_SHARED ",\"ttl_ms\":20000"));
    PRINT_TO(it.token, "%s", answer_text(answer, "token"));
    world_pause_nodes(0, 2);
    pause_ms(700); /* the downgrade comes too late to the others */
    world_resume_nodes(3, 5);
    SOON(grant_extend(server, &it, "\"ttl_ms\":20000")->status == 200);
    world_resume_nodes(0, 2);
}

/* Last: the nodes that it starts end with it. A node that has forgotten waits
 * for what others have promised: so no lock above lasts for long. */
TEST(no_writer_beside_anybody_while_nodes_fail)
{
    run(true);
}
