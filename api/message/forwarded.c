#include "forwarded.h"

#include "../../server/base/networks.h"

/* Takes what stands behind the last comma off the list; false: it is empty. */
static bool take_last(struct span *list, struct span *entry)
{
    const char *comma =
        list->len > 0 ? memrchr(list->ptr, ',', list->len) : NULL;
    size_t before = comma != NULL ? (size_t)(comma - list->ptr) : 0;
    size_t skipped = comma != NULL ? before + 1 : 0;
    if (list->len == 0)
        return false;
    *entry = head_trim((struct span){list->ptr + skipped, list->len - skipped});
    list->len = before;
    return true;
}

struct span forwarded_client(const char *proxies, const char *peer,
                             const struct head *head)
{
    struct span client = {NULL, 0}, entry, address;
    if (!networks_read_address(span_of(peer), &address) ||
        !networks_have(proxies, address))
        return client;
    for (int i = 0; i < head->forwarded_count; i++) {
        struct span list = head->forwarded[i];
        while (take_last(&list, &entry)) {
            if (!networks_read_address(entry, &address))
                return client; /* the one before told nonsense */
            client = address;
            if (!networks_have(proxies, address))
                return client;
        }
    }
    return client;
}
