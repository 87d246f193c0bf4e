#include "version.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct version version_free = {"free"}, version_shared = {"shared"},
                     version_foreign = {"foreign"}, version_split = {"split"};

struct version version_of_number(int64_t number)
{
    struct version version;
    (void)snprintf(version.text, sizeof version.text, "%" PRId64, number);
    return version;
}

/* FNV-1a, 64 bits: of the random values that libraries use, no two collide by
 * chance, and none can be told from its hash. */
static uint64_t hash_value(struct span value)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < value.len; i++)
        hash = (hash ^ (unsigned char)value.ptr[i]) * 0x100000001b3;
    return hash;
}

struct version version_of_value(struct span value)
{
    enum { READ_MOST = 256 }; /* of a value, by the scripts */
    struct version version = version_foreign;
    if (value.len > 0 && value.len < READ_MOST)
        (void)snprintf(version.text, sizeof version.text, "%s-%016" PRIx64,
                       version_foreign.text, hash_value(value));
    return version;
}

bool version_may_pass(const struct version *version)
{
    return version_is(version, span_of(version_foreign.text)) ||
           version_is(version, span_of(version_split.text));
}

bool version_is(const struct version *version, struct span text)
{
    return span_is(text, version->text);
}

bool version_is_wellformed(struct span text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    for (size_t i = 0; i < text.len; i++)
        if (memchr(allowed, text.ptr[i], sizeof allowed - 1) == NULL)
            return false;
    return text.len > 0 && text.len <= VERSION_MAX;
}
