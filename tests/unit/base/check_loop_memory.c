/*
 * libuv ends the process when it has no memory for a watch. It must log
 * that first.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../server/base/loop.h"
#include "../../lib/suite/suite.h"

#ifndef __SANITIZE_ADDRESS__ /* it has its own way to be without memory */

/* A descriptor that libuv's table has no room for. */
enum { FAR = 1000 };

static void ignore_event(void *arg, int events)
{
    (void)arg;
    (void)events;
}

/* Takes all memory there is. */
static void exhaust(void)
{
    const struct rlimit none = {0, 0};
    void *volatile block;

    if (setrlimit(RLIMIT_AS, &none) != 0)
        _exit(1);
    do
        block = malloc(1024); /* never freed: the process ends */
    while (block != NULL);
}

/* In a child: never returns. */
static void watch_without_memory(int err)
{
    struct loop *loop = loop_new();
    int fd = fcntl(err, F_DUPFD, FAR);
    struct loop_watch *watch = loop_watch_new(loop, fd, ignore_event, NULL);

    if (watch == NULL || dup2(err, STDERR_FILENO) < 0)
        _exit(2);
    exhaust();
    (void)loop_watch_set(watch, LOOP_WRITABLE); /* it does not come back */
    _exit(3);
}

SUITE(loop_memory);

TEST(loop_without_memory_says_so)
{
    char said[1024] = "";
    int ends[2], status;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        watch_without_memory(ends[1]);
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%d",
                  status);
    ck_assert_int_ge(read(ends[0], said, sizeof said - 1), 0);
    ck_assert_msg(strstr(said, "event=no_memory"), "said: %s", said);
    close(ends[0]);
}

#endif
