/*
 * The timeout of a node that owes something. Pure.
 *
 * Read what is in the socket before judging: if the process was stopped, the
 * reply may be there. A loop_timer always runs after such a reading.
 */
#ifndef REDLOCKD_SILENCE_H
#define REDLOCKD_SILENCE_H

#include <stdint.h>

enum { SILENCE_TEXT_MAX = 64 };

struct silence {
    int64_t timeout_us;
    int64_t heard_us; /* when something was read last; 0: never */
};

/*
 * When the node times out: timeout_us after it began to owe something, at
 * owed_us, and after it was heard last. owed_us 0: it owes nothing, and times
 * out timeout_us after now_us at the earliest.
 */
int64_t silence_deadline_us(const struct silence *silence, int64_t owed_us,
                            int64_t now_us);

/* Writes "no reply for 1000 ms", when a "reply" is missing. */
void silence_explain(const struct silence *silence, const char *missing,
                     char text[SILENCE_TEXT_MAX]);

#endif
