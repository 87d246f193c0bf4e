#include "requestid.h"

bool requestid_is_valid(struct span text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789._-";
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\0' || strchr(allowed, text.ptr[i]) == NULL)
            return false;
    return text.len > 0 && text.len <= REQUESTID_MAX;
}

void requestid_make(struct requestid_source *source, char id[REQUESTID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    /* SplitMix64 is one to one: other counts, other ids. */
    uint64_t mixed = source->seed + ++source->made * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    for (int i = 0; i < REQUESTID_LEN; i++, mixed >>= 4)
        id[i] = digits[mixed & 15];
    id[REQUESTID_LEN] = '\0';
}
