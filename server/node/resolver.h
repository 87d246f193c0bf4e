/*
 * Where a node is: the addresses of its name, each time resolved anew.
 *
 * One lookup a node at a time, however often it is asked for and given up: a
 * few threads resolve for all, and a name server that hangs over one node's
 * name would soon have taken all of them from the others.
 */
#ifndef REDLOCKD_PLACE_H
#define REDLOCKD_PLACE_H

#include "../base/config.h"
#include "../base/loop.h"

enum { PLACE_ADDRESS_MAX = 64 }; /* numeric, with an interface's name */

struct place;

/* config is borrowed until place_free. NULL: no memory. */
struct place *place_new(struct loop *loop, const struct config_node *config);
void place_free(struct place *place);

/*
 * address: numeric; of a name with several the one whose turn it is. It was
 * asked for at began_us. NULL: there is none; error says why (static text).
 */
typedef void place_fn(void *arg, const char *address, int64_t began_us,
                      const char *error);

/*
 * Resolves, and calls fn once, maybe before it returns. Joins a lookup that
 * place_leave left behind. One asks at a time.
 */
void place_ask(struct place *place, place_fn *fn, void *arg);

/*
 * fn is not called any more. The lookup goes on, and whoever asks next gets
 * what it found.
 */
void place_leave(struct place *place);

/* It could not be connected to: the next of the name's addresses has its turn.
 */
void place_refuse(struct place *place);

/* It could: kept as the last good one. */
void place_keep(struct place *place, const char *address);

/* The last good address; NULL: none yet. */
const char *place_last(const struct place *place);

#endif
