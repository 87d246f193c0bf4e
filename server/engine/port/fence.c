#include "fence.h"

#include <assert.h>

#include "../../lock/names.h"

/* Half a byte at a time. */
int fence_slot(struct span resource)
{
    static const uint16_t half[] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    unsigned crc = 0;
    for (size_t i = 0; i < resource.len; i++) {
        unsigned byte = (unsigned char)resource.ptr[i];
        crc = (crc << 4 ^ half[(crc >> 12 ^ byte >> 4) & 15]) & 0xffff;
        crc = (crc << 4 ^ half[(crc >> 12 ^ byte) & 15]) & 0xffff;
    }
    return (int)(crc % FENCE_SLOTS);
}

void fence_slots(struct span names, uint16_t slots[NAMES_MAX])
{
    for (int i = 0; names.len > 0; i++) {
        assert(i < NAMES_MAX);
        slots[i] = (uint16_t)fence_slot(names_next(&names));
    }
}

struct call fence_call(enum call_kind kind, struct span resource,
                       struct span token)
{
    struct call call = {.kind = kind, .resource = resource, .token = token};
    fence_slots(resource, call.slots);
    return call;
}

int64_t fence_next(int64_t time_us, int64_t above)
{
    assert(above >= 0);
    int64_t number = time_us > above ? time_us : above + 1;
    return number < FENCE_MAX ? number : FENCE_MAX;
}
