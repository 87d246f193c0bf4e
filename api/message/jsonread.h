/*
 * Reads JSON objects, and tells people what is wrong with their members.
 * jansson lives here, and in what reads members: body, locklist, jsonload.
 */
#ifndef REDLOCKD_JSONREAD_H
#define REDLOCKD_JSONREAD_H

#include <stddef.h>

#include "../../server/base/types.h"
#include "problem.h"

struct json_t;

/*
 * The object that the text is; the caller's to json_decref. NULL: errors tells
 * why; if it tells nothing, there is no memory.
 */
struct json_t *jsonread_load(struct span text, struct faults *errors);

/* For people, as in "… is a string". */
const char *jsonread_type(const struct json_t *value);

/*
 * The value of the member that the pointer names (RFC 6901). The text lies in
 * value. False: an error was added.
 */
bool jsonread_text(const struct json_t *value, const char *pointer,
                   struct span *text, struct faults *errors);

struct jsonread_range {
    int64_t least;
    int64_t most;
    const char *unit; /* in brackets, with a space in front; or "" */
};

bool jsonread_integer(const struct json_t *value, const char *pointer,
                      struct jsonread_range range, int64_t *number,
                      struct faults *errors);

/* Adds the error that the object at within, a pointer, has only known members.
 */
void jsonread_refuse_member(const char *within, const char *name,
                            const char *const known[], int count,
                            struct faults *errors);

#endif
