/*
 * Append-only files that are loaded without the rights to all that they hold:
 * nobody may get a lock that the node had granted.
 *
 * With a greatest TTL of 8 s a quarantine lasts 14.5 s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

#define LIMIT "--max-ttl-ms 8000"

enum { N = 5, LIMIT_MS = 8000, RETURN_MS = 40000 };

static struct holder holder;

SUITE(memory_rights, .timeout_s = 120, .tags = "slow");

/* redlockd is another user than the one that the file is loaded as. */
static const char *options(void)
{
    static char text[512];
    int len = PRINT_TO(text, LIMIT " --nodes ");
    for (int i = 0; i < world.nodes_count; i++)
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "%sredis://full:any@127.0.0.1:%d", i > 0 ? "," : "",
                        world.nodes[i].port);
    return text;
}

static void restart_without(struct node *node, const char *command)
{
    node_kill(node);
    node->lacks = command;
    node_start(node);
}

static bool has_durable_node(void)
{
    const struct answer *answer = HTTP(here, .method = "GET", .path = "/nodes");

    return strstr(answer->body, "\"durable\":true") != NULL;
}

/*
 * Redis loads its append-only file as the user default, and silently drops what
 * a script wrote if that user may not do it: here each extension. Its lock ends
 * when the TTL of before the extension does.
 */
TEST(story_52_append_only_file_is_loaded_without_the_rights_to_it)
{
    struct node *node = &world.nodes[0];

    world_start_nodes(N);
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "ACL SETUSER full on nopass ~* &* +@all");
    world_serve(0, options());
    rival_hold(0, 3000, &holder);
    rival_extend(0, LIMIT_MS, &holder);
    restart_without(node, "-pexpireat");
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}

/* All of them, and the servers too: nobody knows better. */
TEST(story_52_all_append_only_files_are_loaded_without_the_rights)
{
    world_start_nodes(N);
    for (int i = 0; i < N; i++)
        restart_without(&world.nodes[i], "-pexpireat");
    world_serve(0, textf("%s --first-start yes", options()));
    ck_assert(!has_durable_node());
    rival_hold(0, 3000, &holder);
    rival_extend(0, LIMIT_MS, &holder);
    world_kill_server(0);
    world_kill_nodes(0, N);
    world_restart_nodes(0, N);
    world_start_server(0, options());
    world_await(0, "/livez");
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}
