#include "port.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    DATA_VERSION = 6, /* of keys and scripts on the nodes */
    COUNT_LEN = 2,    /* digits of the number of nodes */
};

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

/* FNV-1a, 64 bits: finds mistakes, not attacks. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return (hash ^ '\n') * 0x100000001b3;
}

static void print_hash(char hex[FINGERPRINT_LEN + 1], uint64_t hash)
{
    snprintf(hex, FINGERPRINT_LEN + 1, "%016llx", (unsigned long long)hash);
}

void fingerprint_of_name(char hex[FINGERPRINT_LEN + 1], const char *name)
{
    print_hash(hex, hash_text(FNV_BASIS, name));
}

void fingerprint_make(char hex[FINGERPRINT_LEN + 1], const char *const names[],
                      int count, int quorum)
{
    const char *sorted[NODES_MAX];
    assert(count <= NODES_MAX);
    for (int i = 0; i < count; i++) {
        int at = i;
        /* cppcheck-suppress uninitvar; those below i are initialised */
        for (; at > 0 && strcmp(sorted[at - 1], names[i]) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = names[i];
    }
    char numbers[96];
    snprintf(numbers, sizeof numbers, "%d %d %d", DATA_VERSION, count, quorum);
    uint64_t hash = hash_text(FNV_BASIS, numbers);
    for (int i = 0; i < count; i++)
        hash = hash_text(hash, sorted[i]);
    print_hash(hex, hash);
    hex[FINGERPRINT_LEN - 2] = (char)('0' + count / 10);
    hex[FINGERPRINT_LEN - 1] = (char)('0' + count % 10);
}

int fingerprint_names(const char *hex)
{
    if (strlen(hex) != FINGERPRINT_LEN)
        return 0;
    const char *digits = hex + FINGERPRINT_LEN - COUNT_LEN;
    int64_t count = span_number((struct span){digits, COUNT_LEN}, COUNT_LEN);
    return count >= 1 && count <= NODES_MAX ? (int)count : 0;
}
