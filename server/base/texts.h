/*
 * Two texts that are kept together: within the struct while they are short,
 * otherwise in memory of their own.
 */
#ifndef REDLOCKD_TEXTS_H
#define REDLOCKD_TEXTS_H

#include "types.h"

enum { TEXTS_SMALL = 160 };

/* Must not be moved while it keeps something. */
struct texts {
    size_t first_len;
    size_t second_len;
    char *bytes;
    char small[TEXTS_SMALL];
};

/* Copies both. False: no memory, and nothing is kept. */
bool texts_keep(struct texts *texts, struct span first, struct span second);

/* Frees what texts_keep took. */
void texts_drop(struct texts *texts);

static inline struct span texts_first(const struct texts *texts)
{
    return (struct span){texts->bytes, texts->first_len};
}

static inline struct span texts_second(const struct texts *texts)
{
    return (struct span){texts->bytes + texts->first_len, texts->second_len};
}

#endif
