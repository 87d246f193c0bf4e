/* SPDX-License-Identifier: MIT */
#include "seeds.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KEPT_MAX = 200,
    LINE_SIZE = 500,
    FRESH_ABOVE = 1000000, /* beyond those that are always the same */
    FRESH_RANGE = 1000000000,
    SEED_CPU_S = 300, /* a seed takes a thousandth of it */
};

struct kept {
    int count;
    uint64_t seed[KEPT_MAX];
};

/* ---- the file ----------------------------------------------------------- */

/* A number, and behind a blank why it is kept; false: it is neither. */
static bool take_line(const char *line, uint64_t *seed)
{
    char *end;
    if (!isdigit((unsigned char)line[0]))
        return false;
    errno = 0;
    *seed = strtoull(line, &end, 10);
    return errno == 0 && *end == ' ' && strspn(end, " \n") < strlen(end);
}

static bool read_lines(struct kept *kept, FILE *file, const char *path)
{
    char line[LINE_SIZE];
    for (int i = 1; fgets(line, sizeof line, file) != NULL; i++) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (kept->count == KEPT_MAX ||
            !take_line(line, &kept->seed[kept->count++])) {
            fprintf(stderr, "%s:%d: expected: SEED reason; at most %d\n", path,
                    i, KEPT_MAX);
            return false;
        }
    }
    return true;
}

static bool read_kept(struct kept *kept, const char *path)
{
    kept->count = 0;
    if (path == NULL)
        return true;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        return false;
    }
    bool is_good = read_lines(kept, file, path);
    (void)fclose(file);
    return is_good;
}

/* ---- the new ones ------------------------------------------------------- */

static bool choose_fresh(uint64_t *first)
{
    const char *given = getenv("SEED");
    struct timespec now;
    if (given != NULL && given[0] != '\0') {
        char *end;
        *first = strtoull(given, &end, 10);
        if (*end != '\0')
            fprintf(stderr, "SEED: not a number: %s\n", given);
        return *end == '\0';
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    *first = FRESH_ABOVE + us % FRESH_RANGE;
    return true;
}

/* ---- playing ------------------------------------------------------------ */

struct run {
    const struct seeds *seeds;
    seeds_play_fn play;
    void *ctx;
    struct seeds_played played;
};

/* A loop without an end is a failure as well, and has a seed. */
static char hang_text[100];

static void on_hang(int signal)
{
    (void)signal;
    (void)!write(STDOUT_FILENO, hang_text, strlen(hang_text));
    _exit(EXIT_FAILURE);
}

static void limit_cpu(uint64_t seed)
{
    const struct itimerval limit = {.it_value.tv_sec = SEED_CPU_S};
    (void)snprintf(hang_text, sizeof hang_text,
                   "seed %llu does not end within %d s of CPU time\n",
                   (unsigned long long)seed, SEED_CPU_S);
    (void)fflush(stdout);
    (void)signal(SIGVTALRM, on_hang);
    (void)setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static bool play_here(const struct run *run, uint64_t seed)
{
    limit_cpu(seed);
    return run->play(run->ctx, seed);
}

static bool play_apart(const struct run *run, uint64_t seed)
{
    int status;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(play_here(run, seed) ? EXIT_SUCCESS : EXIT_FAILURE);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("seeds: a process of its own");
        return false;
    }
    if (WIFSIGNALED(status))
        printf("seed %llu: alive: %s ended the process\n",
               (unsigned long long)seed, strsignal(WTERMSIG(status)));
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static void play_one(struct run *run, uint64_t seed, bool is_fresh)
{
    const struct seeds *seeds = run->seeds;
    if (seeds->are_apart ? play_apart(run, seed) : play_here(run, seed)) {
        run->played.passed++;
        return;
    }
    run->played.failed++;
    printf("seed %llu %s: replay with %s --seed %llu --seeds 1\n",
           (unsigned long long)seed, is_fresh ? "is new" : "was played before",
           seeds->replay, (unsigned long long)seed);
    if (is_fresh && seeds->kept != NULL)
        printf("your change need not be the cause; keep the seed by adding a "
               "line to %s: %llu and why\n",
               seeds->kept, (unsigned long long)seed);
}

struct seeds_played seeds_play(const struct seeds *seeds, seeds_play_fn play,
                               void *ctx)
{
    static struct kept kept;
    struct run run = {.seeds = seeds, .play = play, .ctx = ctx};
    uint64_t fresh;
    if (!read_kept(&kept, seeds->kept) || !choose_fresh(&fresh))
        return (struct seeds_played){.failed = 1};
    printf("seeds: %d kept, %llu from %llu on", kept.count,
           (unsigned long long)seeds->count, (unsigned long long)seeds->first);
    if (seeds->fresh > 0)
        printf(", %llu new ones: SEED=%llu plays them again",
               (unsigned long long)seeds->fresh, (unsigned long long)fresh);
    printf("\n");
    for (int i = 0; i < kept.count; i++)
        play_one(&run, kept.seed[i], false);
    for (uint64_t i = 0; i < seeds->count; i++)
        play_one(&run, seeds->first + i, false);
    for (uint64_t i = 0; i < seeds->fresh; i++)
        play_one(&run, fresh + i, true);
    return run.played;
}
