/* SPDX-License-Identifier: MIT */
/*
 * A command for redlockctl run that writes down until when it lived:
 *
 *   beat FILE [stubborn] [daemon]
 *
 * It writes the time, of CLOCK_BOOTTIME in ns, into its place of FILE about
 * every millisecond, until it is killed; so does a child. daemon: another child
 * does so in a session of its own. stubborn: SIGTERM does not end them.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 3, PAUSE_US = 1000 };

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static volatile int64_t *map_places(const char *path)
{
    const size_t size = PLACES * sizeof(int64_t);
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        fail(path);
    void *places = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (places == MAP_FAILED)
        fail(path);
    return places;
}

static _Noreturn void beat(volatile int64_t *place)
{
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_BOOTTIME, &now);
        *place = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        usleep(PAUSE_US);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return EXIT_FAILURE;
    bool has_daemon = false;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "daemon") == 0)
            has_daemon = true;
        if (strcmp(argv[i], "stubborn") == 0)
            signal(SIGTERM, SIG_IGN);
    }
    volatile int64_t *places = map_places(argv[1]);
    if (fork() == 0)
        beat(&places[1]);
    if (has_daemon && fork() == 0) {
        setsid();
        beat(&places[2]);
    }
    beat(&places[0]);
}
