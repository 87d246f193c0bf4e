#include "fence.h"

#include <assert.h>

#include "../base/names.h"

int fence_slot(struct span resource)
{
    unsigned crc = 0;
    for (size_t i = 0; i < resource.len; i++) {
        crc ^= (unsigned)(unsigned char)resource.ptr[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
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

int64_t fence_next(int64_t time_us, int64_t above)
{
    int64_t number = time_us > above ? time_us : above + 1;
    return number < FENCE_MAX ? number : FENCE_MAX;
}

int64_t fence_window_us(int64_t max_ttl_ms)
{
    int64_t window_us = max_ttl_ms * 1000 / 4;
    return window_us < 1000000 ? 1000000 : window_us;
}
