/* SPDX-License-Identifier: MIT */
/*
 * The proxy prints its ports, and takes commands on its stdin.
 */
#include "ways.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_SIZE = 1024, WORD_SIZE = 16 };

/* Never returns. */
static void become_proxy(int servers, const struct node *nodes, int count,
                         const int pipes[2])
{
    char path[PATH_SIZE], words[WORLD_NODES + 1][WORD_SIZE];
    char *argv[WORLD_NODES + 3] = {path, words[WORLD_NODES]};

    harness_tool("nemesis-proxy", path);
    snprintf(argv[1], WORD_SIZE, "%d", servers);
    for (int i = 0; i < count; i++) {
        snprintf(words[i], WORD_SIZE, "%d", nodes[i].port);
        argv[2 + i] = words[i];
    }
    if (dup2(pipes[0], STDIN_FILENO) < 0 || dup2(pipes[1], STDOUT_FILENO) < 0)
        _exit(126);
    execv(path, argv);
    _exit(127);
}

/* Lines, of which the last one was printed whole. */
static void read_lines(int fd, int lines, char text[TEXT_SIZE])
{
    size_t len = 0;

    while (lines > 0) {
        ck_assert_uint_lt(len + 1, TEXT_SIZE);
        ck_assert_int_eq(read(fd, text + len, 1), 1);
        lines -= text[len++] == '\n';
    }
    text[len] = '\0';
}

void ways_start(struct ways *ways, int servers, const struct node *nodes,
                int nodes_count, int *ports)
{
    int commands[2], answers[2];
    char text[TEXT_SIZE], *rest = text;

    ck_assert_int_eq(pipe2(commands, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(answers, O_CLOEXEC), 0);
    if (harness_fork() == 0)
        become_proxy(servers, nodes, nodes_count,
                     (int[]){commands[0], answers[1]});
    close(commands[0]);
    close(answers[1]);
    *ways = (struct ways){.commands = commands[1], .answers = answers[0]};
    read_lines(ways->answers, servers, text);
    for (int i = 0; i < servers * nodes_count; i++) {
        ports[i] = (int)strtol(rest, &rest, 10);
        ck_assert_int_gt(ports[i], 0);
    }
}

void ways_start_between(struct ways *ways, int servers)
{
    int ports[WORLD_SERVERS * WORLD_NODES] = {0}, *port = ports;
    ways_start(ways, servers, world.nodes, world.nodes_count, ports);
    for (int i = 0; i < servers; i++)
        for (int n = 0; n < world.nodes_count; n++)
            server_route(&world.servers[i], &world.nodes[n], *port++);
}

/* The ways stay open for as long as this process lives. */
void ways_slow(struct server *server, int first, int count, int ms)
{
    for (int i = first; i < first + count; i++) {
        struct ways ways;
        int port;
        ways_start(&ways, 1, &world.nodes[i], 1, &port);
        ways_delay(&ways, 0, 0, WAY_TO_SERVER, ms);
        server_route(server, &world.nodes[i], port);
    }
}

/* Returns when the proxy has obeyed. */
static void tell(const struct ways *ways, const char *verb, int server,
                 int node, enum way way, int number)
{
    char text[TEXT_SIZE];
    int len = snprintf(text, sizeof text, "%s %d %d %d %d\nsync\n", verb,
                       server, node, (int)way, number);

    ck_assert_int_eq(write(ways->commands, text, (size_t)len), len);
    read_lines(ways->answers, 1, text);
    ck_assert_str_eq(text, "done\n");
}

void ways_delay(const struct ways *ways, int server, int node, enum way way,
                int ms)
{
    tell(ways, "delay", server, node, way, ms);
}

void ways_close(const struct ways *ways, int server, int node, enum way way)
{
    tell(ways, "stall", server, node, way, 1);
}

void ways_open(const struct ways *ways, int server, int node, enum way way)
{
    tell(ways, "stall", server, node, way, 0);
}
