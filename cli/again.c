#include "again.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/random.h"
#include "../server/base/types.h"
#include "complain.h"

enum {
    SHORT_US = 10 * US_PER_S, /* a run in which the command lived for less */
    DELAY_MIN_MS = 1000,
    DELAY_MAX_MS = 30000,
};

/* From one run to the next: how long it waits, in ms. */
static const char variable[] = "REDLOCKCTL_AGAIN_MS";

static int64_t delay_ms;

/* Many may have lost their locks at the same moment. */
static int64_t some_of(int64_t ms)
{
    uint32_t chance;
    random_fill(&chance, sizeof chance);
    return ms / 2 + chance % (uint32_t)(ms / 2 + 1);
}

void again_wait(void)
{
    const char *text = getenv(variable);
    int64_t told_ms = text != NULL ? span_number(span_of(text), 5) : 0;
    delay_ms = told_ms > 0 && told_ms <= DELAY_MAX_MS ? told_ms : 0;
    (void)unsetenv(variable); /* the command is to have none of it */
    if (delay_ms == 0)
        return;
    int64_t wait_ms = some_of(delay_ms);
    struct timespec left = {wait_ms / MS_PER_S,
                            wait_ms % MS_PER_S * 1000 * US_PER_MS};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ; /* it was stopped, and went on */
}

void again_start(const struct options *options, int64_t lived_us)
{
    char text[24];
    int64_t next_ms =
        at_most(at_least(2 * delay_ms, DELAY_MIN_MS), DELAY_MAX_MS);
    if (lived_us >= SHORT_US)
        next_ms = 0;
    complain_of_lock(options, next_ms == 0 ? "starting again"
                                           : "starting again in a moment");
    (void)snprintf(text, sizeof text, "%lld", (long long)next_ms);
    if (setenv(variable, text, 1) == 0) {
        (void)execv("/proc/self/exe", options->argv);
        (void)execvp(options->argv[0], options->argv);
    }
}
