/*
 * The proxy prints its port, and takes commands on its stdin.
 */
#include "delay.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Never returns. */
static void become_proxy(int node_port, int commands, int answers)
{
    char path[PATH_SIZE], port[16];

    harness_tool("nemesis-proxy", path);
    snprintf(port, sizeof port, "%d", node_port);
    if (dup2(commands, STDIN_FILENO) < 0 || dup2(answers, STDOUT_FILENO) < 0)
        _exit(126);
    execv(path, (char *[]){path, "1", port, NULL});
    _exit(127);
}

int delay_replies(const struct node *node, int ms)
{
    int commands[2], answers[2];
    char text[64] = "";

    ck_assert_int_eq(pipe2(commands, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(answers, O_CLOEXEC), 0);
    if (harness_fork() == 0)
        become_proxy(node->port, commands[0], answers[1]);
    close(commands[0]);
    close(answers[1]);
    ck_assert_int_gt(read(answers[0], text, sizeof text - 1), 0);
    close(answers[0]);
    int port = (int)strtol(text, NULL, 10);
    ck_assert_int_gt(port, 0);
    snprintf(text, sizeof text, "delay 0 0 1 %d 0\n", ms);
    ck_assert_int_gt(write(commands[1], text, strlen(text)), 0);
    return port; /* the proxy lives as long as commands[1] is open */
}
