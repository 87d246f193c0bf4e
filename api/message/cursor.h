/*
 * The cursor of a listing as a text, opaque to clients. Pure.
 */
#ifndef REDLOCKD_CURSOR_H
#define REDLOCKD_CURSOR_H

#include "../../server/engine/engine.h"

enum { CURSOR_MAX = 64 };

/* Writes it with a NUL. */
void cursor_encode(char text[CURSOR_MAX], const struct list_cursor *cursor);

/* False: not one that cursor_encode writes. */
bool cursor_decode(struct span text, struct list_cursor *cursor);

#endif
