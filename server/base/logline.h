/*
 * One line of the log, in one of two forms. It takes no memory, and whatever it
 * is given it ends up as one whole line.
 *
 *   logfmt   ts=2026-11-23T07:31:05.042Z level=info event=start port=8080
 *   JSON     {"ts":"2026-11-23T07:31:05.042Z","level":"info","event":"start",…}
 */
#ifndef REDLOCKD_LOGLINE_H
#define REDLOCKD_LOGLINE_H

#include <stddef.h>

#include "log.h"

enum { LOGLINE_MAX = 2048 }; /* with its newline */

struct logline {
    enum log_format format;
    size_t len;
    char text[LOGLINE_MAX];
};

void logline_begin(struct logline *line, enum log_format format);

/*
 * A text that is too long is cut, but not within an escape or a character. A
 * field that has no room at all is left out.
 */
void logline_add(struct logline *line, const struct log_field *field);

/* Ends it with a newline. */
void logline_end(struct logline *line);

#endif
