#include "silence.h"

#include <inttypes.h>
#include <stdio.h>

int64_t silence_deadline_us(const struct silence *silence, int64_t owed_us,
                            int64_t now_us)
{
    int64_t since_us = owed_us;
    if (owed_us == 0)
        since_us = now_us;
    else if (silence->heard_us > owed_us)
        since_us = silence->heard_us;
    return since_us + silence->timeout_us;
}

void silence_explain(const struct silence *silence, const char *missing,
                     char text[SILENCE_TEXT_MAX])
{
    (void)snprintf(text, SILENCE_TEXT_MAX, "no %s for %" PRId64 " ms", missing,
                   silence->timeout_us / 1000);
}
