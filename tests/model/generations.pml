/* SPDX-License-Identifier: MIT */
/* What memory.pml and witness.pml share: generations, and what was promised. */

#ifdef ONE_HEARTBEAT
#define WAIT 1
#else
#define WAIT 2
#endif

mtype = {NONE, CURRENT, OLDER};

/* The servers. */
byte known[SERVERS];  /* the high-water mark */
byte wait[SERVERS];   /* since they began to wait, + 1; 0: they do not */
bit has_passed[SERVERS];

/* What was promised. */
byte left_;
#define LEFT left_

/* Generations are only compared, with node 0's and the copy's: 1 is the lower of
 * the two, 3 the higher; 2 is between them, 0 below, 4 above. */
#define LEVEL(v) \
    (v < low -> 0 : (v == low -> 1 : (v < high -> 2 : (v == high -> 3 : 4))))

inline compress()
{
    copy_generation = (has_copy -> copy_generation : generation);
    low = (generation < copy_generation -> generation : copy_generation);
    high = (generation > copy_generation -> generation : copy_generation);
    known[0] = LEVEL(known[0]);
    known[1] = LEVEL(known[1]);
    compress_witnesses();
    generation = LEVEL(generation);
    copy_generation = LEVEL(copy_generation);
    low = 0;
    high = 0
}
