#include "hosts.h"

static bool is_entry(struct span entry)
{
    return span_has_only(entry, "-_.:[]") &&
           (entry.len > 1 || (entry.len == 1 && entry.ptr[0] != '.'));
}

bool hosts_are_valid(const char *list)
{
    struct span entry;
    if (*list == '\0')
        return true;
    while (span_next_entry(&list, &entry))
        if (!is_entry(entry))
            return false;
    return true;
}

static bool is_host(struct span entry, struct span host)
{
    if (*entry.ptr == '.' && host.len > entry.len) {
        host.ptr += host.len - entry.len;
        host.len = entry.len;
    }
    return span_is_like(host, entry);
}

bool hosts_have(const char *list, struct span host)
{
    struct span entry;
    while (span_next_entry(&list, &entry))
        if (entry.len > 0 && is_host(entry, host))
            return true;
    return false;
}
