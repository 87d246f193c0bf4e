/* SPDX-License-Identifier: MIT */
/*
 * An operator releases all readers of a lock: what was there is released on
 * each node, and nothing that is granted later. FORCED_TRIES has each tried
 * more often.
 *
 * Two servers see different clocks: each reaches only three of five nodes, by a
 * port that nobody listens on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum {
    N = 5,
    TTL_MS = 5000,
    AHEAD_MS = 450,
    TRIES = 2,
};

#define TIMES "--node-timeout-ms 200 --max-ttl-ms 6000"

static int tries(void)
{
    const char *given = getenv("FORCED_TRIES");
    return given != NULL ? atoi(given) : TRIES;
}

/* ---- servers whose clocks differ ----------------------------------------- */

static void cut_off(struct server *server, int first, int second)
{
    PRINT_TO(server->ports, "%d=%d,%d=%d", world.nodes[first].port,
             harness_free_port(), world.nodes[second].port,
             harness_free_port());
}

static bool sees(const struct server *server, int count)
{
    if (http_probe(server, "/readyz") != 200)
        return false;
    const struct answer *a = HTTP(server, .method = "GET", .path = "/nodes");
    return a->status == 200 && answer_int(a, "voting") == count;
}

/*
 * The clocks of nodes 3 and 4 are ahead; the first server reaches 2, 3 and 4,
 * and the second one 0, 1 and 2. So the first one's numbers are higher.
 */
static void set_up(void)
{
    static const int ahead_ms[N] = {0, 0, 30, AHEAD_MS, AHEAD_MS};
    world_start_nodes(N);
    for (int i = 0; i < N; i++) {
        if (ahead_ms[i] == 0)
            continue;
        node_kill(&world.nodes[i]);
        world.nodes[i].has_clock = true;
        node_set_clock(&world.nodes[i], ahead_ms[i]);
        node_start(&world.nodes[i]);
    }
    world_admit_nodes(TIMES);
    cut_off(here, 0, 1);
    cut_off(there, 3, 4);
    for (int i = 0; i < 3; i++)
        world_start_server(i, TIMES);
    /* clocks that differ are watched for the greatest TTL */
    for (int i = 0; i < 3; i++)
        AWHILE(sees(&world.servers[i], i < 2 ? 3 : N));
}

SUITE(forced, .timeout_s = 120, .set_up_once = set_up,
      .tear_down_once = world_finish);

static const char *body_of(const char *name, bool is_shared)
{
    return textf("{\"resource\":\"%s\",\"ttl_ms\":%d,\"mode\":\"%s\"}", name,
                 TTL_MS, is_shared ? "shared" : "exclusive");
}

static const struct answer *force_all(const struct server *server,
                                      const char *name)
{
    static char path[128];
    PRINT_TO(path, "/locks/%s?force=all", name);
    return HTTP(server, .method = "DELETE", .path = path);
}

/*
 * The second server grants a reader after the forced release is answered, with
 * a number below the first server's time. Its lock stays for its whole
 * validity, also when nodes are asked again.
 */
TEST(story_66_a_reader_who_comes_after_the_answer_stays)
{
    int lost = 0, count = tries();
    for (int i = 0; i < count; i++) {
        struct lock before, after;
        const char *name = textf("later-%d", i);
        grant_take(here, body_of(name, true), NULL, &before);
        expect_ok(force_all(here, name));
        grant_take(there, body_of(name, true), NULL, &after);
        int64_t until_ms = harness_now_ms() + 1500;
        bool is_there = true;
        while (is_there && harness_now_ms() < until_ms) {
            is_there =
                grant_ask(&world.servers[2], body_of(name, false), NULL, NULL)
                    ->status == 409;
            pause_ms(50);
        }
        lost += !is_there;
        (void)lock_release(there, &after);
    }
    printf("forced: %d of %d readers who came later were lost\n", lost, count);
    ck_assert_int_eq(lost, 0);
}

/* ---- a downgrade that reached three nodes ---------------------------------
 */

static void downgrade(const struct server *server, struct lock *grant)
{
    const struct answer *a =
        expect_ok(grant_extend(server, grant, "\"mode\":\"shared\""));
    PRINT_TO(grant->token, "%s", answer_text(a, "token"));
}

/*
 * The exclusive value stays where a node was paused: the repair, which would
 * bring the shared one there, needs more of its time.
 */
static bool leave_half(const char *name, struct lock *grant)
{
    const struct server *server = &world.servers[2];
    grant_take(server, body_of(name, false), NULL, grant);
    expect_keys(name, N);
    world_pause_nodes(0, 2);
    downgrade(server, grant);
    pause_ms(250); /* the node timeout: the downgrade comes too late */
    world_resume_nodes(0, 2);
    int left = 0;
    for (int i = 0; i < 2; i++)
        left +=
            strcmp(node_text(&world.nodes[i], "TYPE %s", name), "string") == 0;
    return left == 2;
}

/* By number, and with the readers. */
TEST_RANGE(story_67_what_a_downgrade_did_not_reach_is_released, 0, 2)
{
    int halves = 0, left = 0, count = tries();
    for (int i = 0; i < count; i++) {
        char name[32], path[128];
        struct lock grant;
        PRINT_TO(name, "half-%d-%d", _i, i);
        halves += leave_half(name, &grant);
        PRINT_TO(path, "/locks/%s?force=%lld", name, (long long)grant.number);
        const struct answer *a =
            _i == 0 ? force_all(&world.servers[2], name)
                    : HTTP(&world.servers[2], .method = "DELETE", .path = path);
        expect_ok(a);
        int64_t until_ms = harness_now_ms() + TTL_MS / 2;
        while (count_keys(name) > 0 && harness_now_ms() < until_ms)
            pause_ms(5);
        left += count_keys(name) > 0;
    }
    printf("forced: %d of %d downgrades were half done, %d left keys\n", halves,
           count, left);
    ck_assert_int_eq(left, 0);
}
