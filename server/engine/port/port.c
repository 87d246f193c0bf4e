/* SPDX-License-Identifier: MIT */
#include "port.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    DATA_VERSION = 6, /* of keys and scripts on the nodes */
    COUNT_LEN = 2,    /* digits of the number of nodes */
};

uint64_t hash_go_on(uint64_t hash, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ (unsigned char)bytes.ptr[i]) * 0x100000001b3;
    return hash;
}

static uint64_t hash_line(uint64_t hash, const char *text)
{
    return hash_go_on(hash_go_on(hash, span_of(text)), span_of("\n"));
}

static void print_hash(char hex[FINGERPRINT_LEN + 1], uint64_t hash)
{
    snprintf(hex, FINGERPRINT_LEN + 1, "%016llx", (unsigned long long)hash);
}

void fingerprint_of_name(char hex[FINGERPRINT_LEN + 1], const char *name)
{
    print_hash(hex, hash_line(HASH_BASIS, name));
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
    uint64_t hash = hash_line(HASH_BASIS, numbers);
    for (int i = 0; i < count; i++)
        hash = hash_line(hash, sorted[i]);
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
