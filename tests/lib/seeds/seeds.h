/* SPDX-License-Identifier: MIT */
/*
 * Which seeds a test at random plays: those of a file, which failed once; some
 * that are always the same; and some that are new each time, so that each run
 * looks where none has looked before.
 */
#ifndef REDLOCKD_TEST_SEEDS_H
#define REDLOCKD_TEST_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct seeds {
    const char *kept;      /* a file of lines "SEED reason"; NULL: none */
    uint64_t first, count; /* always the same */
    uint64_t fresh;        /* so many that are new */
    const char *replay;    /* the command, without "--seed N --seeds 1" */
    bool are_apart;        /* each in a process of its own, which may die */
};

struct seeds_played {
    uint64_t passed, failed;
};

/*
 * False: the seed failed, and why is printed. Of those that are apart, ctx must
 * be in memory that processes share; one whose process dies has failed, with
 * "alive" as the reason.
 */
typedef bool (*seeds_play_fn)(void *ctx, uint64_t seed);

/*
 * Plays them, the kept ones first. Prints which, and how to play again what
 * failed. The new ones begin at the number in the environment's SEED, or
 * anywhere. A file that cannot be read, or a SEED that is no number, fails
 * before anything is played.
 */
struct seeds_played seeds_play(const struct seeds *seeds, seeds_play_fn play,
                               void *ctx);

#endif
