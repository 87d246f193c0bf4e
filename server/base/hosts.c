#include "hosts.h"

#include <ctype.h>
#include <string.h>

static bool is_entry(struct span entry)
{
    for (size_t i = 0; i < entry.len; i++)
        if (!isalnum((unsigned char)entry.ptr[i]) &&
            strchr("-_.:[]", entry.ptr[i]) == NULL)
            return false;
    return entry.len > 1 || (entry.len == 1 && entry.ptr[0] != '.');
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
