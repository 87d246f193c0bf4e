/* SPDX-License-Identifier: MIT */
/*
 * What a node may refuse to redlockd's user, or not know, at the start and
 * later: it is told what is missing, by what would grant it, and does not vote
 * without what is needed. Which commands those are, the script that asks for
 * them tells: so none can be forgotten here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/base/types.h"
#include "http.h"
#include "node.h"
#include "rival.h"

enum { N = 9, TOLD_MS = 20000, COMMANDS_MAX = 64, NAME_SIZE = 32 };

/* A command, as "DEL" or "CONFIG GET", and the rule that would grant it. */
struct command {
    char name[NAME_SIZE], rule[2 * NAME_SIZE];
    bool is_needed;
};

static struct command commands[COMMANDS_MAX];
static int commands_count;

/* ---- the script's list --------------------------------------------------- */

static void add_command(const char *at, bool is_needed)
{
    static const char *const containers[] = {"CONFIG", "ACL", "CLIENT"};
    struct command command = {.is_needed = is_needed};
    char sub[NAME_SIZE] = "", name[NAME_SIZE];

    ck_assert_int_lt(commands_count, COMMANDS_MAX);
    ck_assert_int_ge(sscanf(at, "{'%31[A-Z]', '%31[A-Z]'", name, sub), 1);
    bool has_sub = false;
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        has_sub |= strcmp(name, containers[i]) == 0;
    PRINT_TO(command.name, "%s", name);
    (void)snprintf(command.rule, sizeof command.rule, "+%s%s%.16s", name,
                   has_sub ? "|" : "", has_sub ? sub : "");
    for (char *c = command.rule; *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    commands[commands_count++] = command;
}

static bool is_listed(const char *at)
{
    for (int i = 0; i < commands_count; i++)
        if (strncmp(at + 2, commands[i].name, strlen(commands[i].name)) == 0 &&
            at[2 + strlen(commands[i].name)] == '\'')
            return true;
    return false;
}

static void read_commands(void)
{
    char *text = harness_read_file("server/node/scripts/rights.lua");
    const char *optional = strstr(text, "local optional");

    commands_count = 0;
    ck_assert_ptr_nonnull(optional);
    for (const char *at = text; (at = strstr(at, "{'")) != NULL; at++)
        if (strncmp(at, "{'EVALSHA'", 10) != 0 && !is_listed(at))
            add_command(at, at < optional);
    free(text);
    ck_assert_int_gt(commands_count, 25);
}

/* ---- what is told -------------------------------------------------------- */

static char told[1000];

static bool is_reported(int node, const char *state, const char *detail)
{
    PRINT_TO(told, "%s: ", rival_told(0, node, "state"));
    size_t len = strlen(told);
    (void)snprintf(told + len, sizeof told - len, "%s",
                   rival_told(0, node, "detail"));
    return strncmp(told, state, strlen(state)) == 0 && strstr(told, detail);
}

/* The same again and again: it does not vote in between. */
static void expect_steady(int node, const char *state)
{
    STAYS(600, rival_is_in_state(0, node, state));
}

/* Fails with what is told instead. */
static void wait_told(int node, const char *state, const char *detail)
{
    int64_t deadline_ms = harness_now_ms() + TOLD_MS;

    while (!is_reported(node, state, detail)) {
        ck_assert_msg(harness_now_ms() < deadline_ms,
                      "node %d: \"%s\" instead of \"%s: %s\"", node, told,
                      state, detail);
        pause_ms(20);
    }
}

static void wait_back(int node)
{
    wait_told(node, "voting", "admitted");
    AWHILE(!is_reported(node, "", "its user lacks"));
}

static void expect_told(int node, const struct command *command,
                        const char *detail)
{
    if (command->is_needed)
        wait_told(node, "no_permission", detail);
    else
        wait_told(node, "voting", detail);
}

static void set_up(void)
{
    memset(&world, 0, sizeof world);
    read_commands();
}

SUITE(rights, .timeout_s = 180, .set_up = set_up, .tags = "slow");

/* ---- each in turn -------------------------------------------------------- */

/* Nine nodes at a time lack one each. */
TEST(each_right_that_is_taken_away_is_named_until_it_is_back)
{
    world_start_nodes(N);
    world_serve(0, "");
    for (int first = 0; first < commands_count; first += N) {
        int count = commands_count - first < N ? commands_count - first : N;
        for (int i = 0; i < count; i++)
            node_do(&world.nodes[i], "ACL SETUSER default -%s",
                    commands[first + i].rule + 1);
        for (int i = 0; i < count; i++)
            expect_told(i, &commands[first + i],
                        textf("its user lacks %s", commands[first + i].rule));
        if (commands[first].is_needed)
            expect_steady(0, "no_permission");
        for (int i = 0; i < count; i++)
            node_do(&world.nodes[i], "ACL SETUSER default +%s",
                    commands[first + i].rule + 1);
        for (int i = 0; i < count; i++)
            wait_back(i);
    }
    world_stop();
}

/* Likewise, before the first vote: it has none. */
TEST(each_command_that_is_not_known_is_named)
{
    for (int first = 0; first < commands_count; first += N) {
        int count = commands_count - first < N ? commands_count - first : N;
        world_start_nodes(N);
        for (int i = 0; i < count; i++) {
            node_kill(&world.nodes[i]);
            world.nodes[i].renamed = commands[first + i].name;
            node_start(&world.nodes[i]);
        }
        world_start_server(0, "--first-start yes --restart-guard off");
        world_await(0, "/livez");
        for (int i = 0; i < count; i++)
            expect_told(i, &commands[first + i],
                        textf("it does not know %s (rename-command?)",
                              commands[first + i].name));
        world_stop();
    }
}

/* ---- keys and channels --------------------------------------------------- */

static const struct {
    const char *rule, *state, *detail;
} patterns[] = {
    {"resetkeys ~other:*", "no_permission", "its user lacks ~app:*"},
    {"resetkeys %%R~*", "no_permission", "its user lacks ~app:*"},
    {"resetkeys %%W~*", "no_permission", "its user lacks ~app:*"},
    {"resetkeys ~app:redlockd:state", "no_permission",
     "its user lacks ~app:redlockd:*"},
    {"resetkeys ~app:redlockd:* ~app:order:*", "voting", "admitted"},
    {"resetkeys ~other:* -del", "no_permission", "its user lacks +del ~app:*"},
    {"resetchannels", "voting", "its user lacks &app:redlockd:released:*"},
    {"resetchannels &redlockd:released:*", "voting",
     "its user lacks &app:redlockd:released:*"},
    {"resetchannels -publish -subscribe", "voting",
     "its user lacks +publish +subscribe &app:redlockd:released:*"},
};

TEST(key_and_channel_patterns_are_named)
{
    enum { COUNT = sizeof patterns / sizeof *patterns };

    ck_assert_int_eq(COUNT, N);
    world_start_nodes(N);
    world_serve(0, "--key-prefix app:");
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i],
                textf("ACL SETUSER default %s", patterns[i].rule));
    for (int i = 0; i < N; i++)
        wait_told(i, patterns[i].state, patterns[i].detail);
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "ACL SETUSER default ~* &* +@all");
    for (int i = 0; i < N; i++)
        wait_back(i);
    world_stop();
}

/* ---- a lost right while locks are held ----------------------------------- */

/* Nodes that can neither extend nor release must not go on granting, and none
 * may vote in between: each flap would be a line of the log. */
TEST(nodes_do_not_flap_without_a_right)
{
    struct lock lock;

    world_start(5, "");
    lock_take(here, "held", 60000, &lock);
    for (int i = 0; i < 5; i++)
        node_do(&world.nodes[i], "ACL SETUSER default -pexpire");
    answer_expect(lock_extend(here, &lock, 60000), 503, "no_quorum");
    rival_await_count(0, 0);
    for (int i = 0; i < 5; i++)
        expect_steady(i, "no_permission");
    ck_assert_int_eq(server_count_log(here, "event=no_quorum"), 1);
    ck_assert_int_eq(server_count_log(here, "its user lacks +pexpire"), 5);
    for (int i = 0; i < 5; i++)
        node_do(&world.nodes[i], "ACL SETUSER default +pexpire");
    rival_await_count(0, 5);
    expect_ok(lock_extend(here, &lock, 60000));
    lock_drop(here, &lock);
    world_stop();
}
