/* SPDX-License-Identifier: MIT */
/*
 * redlockd --plan on real nodes: what it tells, its exit status, and that it
 * leaves nothing on them. Which text belongs to what is in
 * tests/unit/check_plan.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum {
    NODES = 5, /* named a to e; of the others, some are admitted as x to z */
    ALL = 9,
    GOES_ON = 0,
    PAUSE = 3,
    UNKNOWN = 4,
    REFUSED = 5,
    WORDS_MAX = 16,
    TEXT_SIZE = 8000,
    OPTIONS_SIZE = 400,
};

static char text[TEXT_SIZE];

/* ---- servers and nodes --------------------------------------------------- */

static const int usual[NODES] = {0, 1, 2, 3, 4};
static const int others[] = {5, 6, 7};

/* A server over these nodes, all of which vote. */
static void serve(int server, const char *options, const char *names,
                  const int nodes[])
{
    world_start_server(server, world_name_nodes(options, names, nodes));
    world_await(server, "/readyz");
    rival_await_count(server, (int)strlen(names));
}

static void admit(const char *names, const int nodes[])
{
    serve(1, AT_SIGHT, names, nodes);
    world_stop_server(1);
}

static void begin(void)
{
    world_start_nodes(ALL);
    admit("abcde", usual);
    admit("xyz", others);
}

static void begin_and_serve(void)
{
    begin();
    serve(0, "", "abcde", usual);
}

/* Nobody is disturbed. */
static void expect_service(void)
{
    ck_assert_int_eq(rival_count_voting(0), NODES);
    rival_cycle(here, "cycled");
}

/* ---- the plan ------------------------------------------------------------ */

static int plan(const char *options)
{
    char copy[OPTIONS_SIZE + 20], *rest = NULL, *output;
    char *argv[WORDS_MAX] = {(char *)harness_binary(), "--plan"};
    int argc = 2;
    snprintf(copy, sizeof copy, "%s", options);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    int status = harness_run(argv, NULL, &output);
    snprintf(text, sizeof text, "\n%s", output);
    free(output);
    return status;
}

#define EXPECT_PLAN(status, options)                                           \
    do {                                                                       \
        int is = plan(options);                                                \
        ck_assert_msg(is == (status), "status %d:%s", is, text);               \
    } while (0)

static bool has(const char *part)
{
    return strstr(text, part) != NULL;
}

#define EXPECT(part) ck_assert_msg(has(part), "no \"%s\" in%s", part, text)

/* The number behind this beginning of a line. */
static int number_behind(const char *begin)
{
    const char *at = strstr(text, begin);
    ck_assert_msg(at != NULL, "no \"%s\" in%s", begin, text);
    return (int)strtol(at + strlen(begin), NULL, 10);
}

static const char held[] = "\nheld: the locks that were granted so far expire "
                           "within ";

SUITE(plan, .timeout_s = 120, .set_up_once = begin_and_serve,
      .tear_down_once = world_finish);

/* ---- the same names ------------------------------------------------------ */

/* It has the address of a server that runs: it does not listen there. */
TEST(an_unchanged_configuration_goes_on)
{
    struct lock lock;
    const char *before = textf("--listen 127.0.0.1:%d", here->port);
    EXPECT_PLAN(GOES_ON, world_name_nodes(before, "abcde", usual));
    EXPECT("votes; goes on\n");
    EXPECT("\nvotes: 5 of 5, and 3 are needed\n");
    EXPECT("\nepoch: 1\n");
    EXPECT("\nheld: nothing\n");
    EXPECT("\npause: none");
    lock_take(here, "held", 30000, &lock);
    EXPECT_PLAN(GOES_ON,
                world_name_nodes("--config-epoch 20 --max-ttl-ms 90000",
                                 "abcde", usual));
    EXPECT("\nepoch: 1, which the nodes store; --config-epoch 20");
    ck_assert_int_le(number_behind(held), 31);
    ck_assert_int_gt(number_behind(held), 1);
    ck_assert_str_eq(node_text(&world.nodes[0], "HGET redlockd:state max_ttl"),
                     "60000");
    expect_service();
}

/* ---- other names --------------------------------------------------------- */

TEST(five_names_become_three)
{
    struct lock lock;
    lock_take(here, "held, too", 30000, &lock);
    EXPECT_PLAN(PAUSE, world_name_nodes("", "abc", usual));
    EXPECT(": stores other names, of epoch 1; does not vote");
    EXPECT("\nepoch: 1 is too low");
    EXPECT("give --config-epoch 2\n");
    EXPECT_PLAN(PAUSE, world_name_nodes("--config-epoch 7", "abc", usual));
    EXPECT("\nepoch: 7 is too high");
    EXPECT("give --config-epoch 2\n");
    EXPECT_PLAN(PAUSE, world_name_nodes("--config-epoch 2", "abc", usual));
    EXPECT(": stores other names, of epoch 1; is taken over");
    EXPECT("\nepoch: 2 replaces other names, which have epoch 1\n");
    ck_assert_int_le(number_behind(held), 31);
    ck_assert_int_le(number_behind("\npause: "), 34);
    EXPECT(" s if it begins now, 67 s at most; meanwhile");
    expect_service();
}

/* ---- nodes that die -------------------------------------------------------
 */

GROUP(own, .timeout_s = 120);

TEST(dead_nodes_are_named)
{
    begin_and_serve();
    node_kill(&world.nodes[4]);
    EXPECT_PLAN(GOES_ON, world_name_nodes("", "abcde", usual));
    EXPECT(textf("\nnode e at 127.0.0.1:%d: is unreachable (",
                 world.nodes[4].port));
    EXPECT("\nvotes: 4 of 5");
    EXPECT("\nwithout a vote: e\n");
    world_stop_server(0);
    node_kill(&world.nodes[3]);
    node_pause(&world.nodes[2]);
    EXPECT_PLAN(UNKNOWN, world_name_nodes("", "abcde", usual));
    EXPECT("\nunknown: 2 of 5 nodes are reachable, and 3 are needed\n");
    node_resume(&world.nodes[2]);
    world_stop();
}

TEST(story_65_other_names_need_a_majority_of_the_old_ones)
{
    begin();
    node_kill(&world.nodes[2]);
    EXPECT_PLAN(REFUSED, world_name_nodes("--config-epoch 2", "abc", usual));
    EXPECT("\nmissing: c\n");
    EXPECT("\nrefused: of the 5 old names, 2 are in this list with all their "
           "data, "
           "and 3 are needed");
    world_stop();
}

/* ---- nothing is left ----------------------------------------------------- */

static void digest(char digests[ALL][64])
{
    for (int i = 0; i < ALL; i++)
        snprintf(digests[i], 64, "%s",
                 node_text(&world.nodes[i], "DEBUG DIGEST"));
}

static const struct {
    const char *before;
    const char *names;
    int nodes[NODES];
} configurations[] = {
    {"", "abcde", {0, 1, 2, 3, 4}},
    {"--max-ttl-ms 900000 --config-epoch 9", "abcde", {0, 1, 2, 3, 4}},
    {"", "abcde", {1, 0, 2, 3, 8}},
    {"", "abcde", {0, 1, 2, 3, 5}},
    {"--config-epoch 2", "abc", {0, 1, 2}},
    {"--config-epoch 2 --take-over 2", "pqrs", {0, 5, 6, 8}},
    {AT_SIGHT " --config-epoch 2", "pqrs", {0, 5, 6, 8}},
    {"--first-start yes", "a", {8}},
    {AT_SIGHT, "a", {8}},
};

/* Nor is it in the way of a server of the same names. */
TEST(nothing_is_left_on_the_nodes)
{
    char before[ALL][64], after[ALL][64];
    begin();
    digest(before);
    for (size_t i = 0; i < sizeof configurations / sizeof *configurations;
         i++) {
        int status = plan(world_name_nodes(configurations[i].before,
                                           configurations[i].names,
                                           configurations[i].nodes));
        ck_assert_msg(status == GOES_ON || status == PAUSE, "status %d:%s",
                      status, text);
        digest(after);
        for (int k = 0; k < ALL; k++)
            ck_assert_str_eq(after[k], before[k]);
    }
    serve(0, "", "abcde", usual);
    expect_service();
    world_stop();
}
