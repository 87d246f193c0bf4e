#include "networks.h"

#include <arpa/inet.h>
#include <string.h>

enum { BITS_V4 = 32, BITS_V6 = 128, MAPPED = BITS_V6 - BITS_V4 };

/* An IPv4 address is ::ffff:… in here. */
static bool networks_parse(struct span text, struct in6_addr *address,
                           bool *is_v4)
{
    char copy[NETWORKS_ADDRESS_MAX];
    unsigned char *bytes = address->s6_addr;
    if (text.len >= sizeof copy || memchr(text.ptr, '\0', text.len) != NULL)
        return false;
    copy[span_copy(copy, text)] = '\0';
    *is_v4 = inet_pton(AF_INET, copy, bytes + MAPPED / 8) == 1;
    if (!*is_v4)
        return inet_pton(AF_INET6, copy, bytes) == 1;
    memset(bytes, 0, MAPPED / 8 - 2);
    memset(bytes + MAPPED / 8 - 2, 0xff, 2);
    return true;
}

struct network {
    struct in6_addr address;
    int bits; /* of it that count */
};

static bool parse_network(struct span text, struct network *network)
{
    bool is_v4;
    const char *slash = memchr(text.ptr, '/', text.len);
    struct span address = {text.ptr, slash != NULL ? (size_t)(slash - text.ptr)
                                                   : text.len};
    network->bits = BITS_V6;
    if (!networks_parse(address, &network->address, &is_v4))
        return false;
    if (slash == NULL)
        return true;
    int64_t bits =
        span_number((struct span){slash + 1, text.len - address.len - 1}, 3);
    network->bits = (int)bits + (is_v4 ? MAPPED : 0);
    return bits >= 0 && network->bits <= BITS_V6;
}

bool networks_are_valid(const char *list)
{
    struct network network;
    struct span entry;
    if (*list == '\0')
        return true;
    while (span_next_entry(&list, &entry))
        if (!parse_network(entry, &network))
            return false;
    return true;
}

bool networks_have(const char *list, struct span address)
{
    struct in6_addr wanted;
    struct network network = {.bits = 0};
    struct span entry;
    bool is_v4;
    if (!networks_parse(address, &wanted, &is_v4))
        return false;
    const unsigned char *a = network.address.s6_addr, *b = wanted.s6_addr;
    while (span_next_entry(&list, &entry)) {
        bool is_network = parse_network(entry, &network);
        int whole = network.bits / 8, rest = network.bits % 8;
        if (is_network && memcmp(a, b, (size_t)whole) == 0 &&
            (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0))
            return true;
    }
    return false;
}

bool networks_read_address(struct span text, struct span *address)
{
    struct in6_addr ignored;
    bool is_v4;
    *address = text;
    if (text.len == 0)
        return false;
    const char *bracket = memchr(text.ptr, ']', text.len);
    const char *colon = memchr(text.ptr, ':', text.len);
    if (*text.ptr == '[' && bracket != NULL)
        *address =
            (struct span){text.ptr + 1, (size_t)(bracket - text.ptr) - 1};
    else if (colon != NULL && colon == memrchr(text.ptr, ':', text.len))
        address->len = (size_t)(colon - text.ptr); /* IPv6 has several */
    return networks_parse(*address, &ignored, &is_v4);
}
