#include "notify.h"

#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "clock.h"
#include "log.h"

/* A service manager that hears nothing may kill the process. */
static void check_sent(int rc)
{
    if (rc < 0)
        log_tell(LOG_WARN, "notify_failed", strerror(-rc));
}

void notify_ready(const char *status)
{
    check_sent(sd_notifyf(0, "READY=1\nSTATUS=%s", status));
}

void notify_reloading(void)
{
    check_sent(sd_notifyf(0,
                          "RELOADING=1\nMONOTONIC_USEC=%" PRId64
                          "\nSTATUS=reading its files again",
                          clock_monotonic_us()));
}

void notify_stopping(int64_t most_us, const char *status)
{
    check_sent(
        sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64 "\nSTATUS=%s",
                   most_us, status));
}
