/* SPDX-License-Identifier: MIT */
#include "token.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../lock/names.h"
#include "port.h"

/* ---- fencing tokens ----------------------------------------------------- */

/* Half a byte at a time. */
int fence_bucket(struct span resource)
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
    return (int)(crc % FENCE_BUCKETS);
}

void fence_buckets(struct span names, uint16_t buckets[NAMES_MAX])
{
    for (int i = 0; names.len > 0; i++) {
        assert(i < NAMES_MAX);
        buckets[i] = (uint16_t)fence_bucket(names_next(&names));
    }
}

struct call fence_call(enum call_kind kind, struct span resource,
                       struct span token)
{
    struct call call = {.kind = kind, .resource = resource, .token = token};
    fence_buckets(resource, call.buckets);
    return call;
}

int64_t fence_next(int64_t time_us, int64_t above)
{
    assert(above >= 0);
    int64_t number = time_us > above ? time_us : above + 1;
    return number < FENCE_MAX ? number : FENCE_MAX;
}

/* ---- tokens -------------------------------------------------------------- */

enum {
    RANDOM_HEX = 2 * TOKEN_RANDOM_BYTES,
    FIXED_LEN = TOKEN_NUMBER_LEN + 1 + RANDOM_HEX,
};

static_assert(FIXED_LEN + 1 + KEY_HASH_LEN + 1 + OWNER_MAX == (int)TOKEN_MAX,
              "room for each part");

static char *put_number(char token[TOKEN_MAX], int64_t number)
{
    assert(number >= 0 && number < INT64_C(10000000000000000));
    for (int i = TOKEN_NUMBER_LEN - 1; i >= 0; i--, number /= 10)
        token[i] = (char)('0' + number % 10);
    return token + TOKEN_NUMBER_LEN;
}

size_t token_make(char token[TOKEN_MAX],
                  const unsigned char random[TOKEN_RANDOM_BYTES],
                  const struct token_parts *parts)
{
    static const char hex[] = "0123456789abcdef";
    assert(parts->number > 0); /* fence_next is above 0 */
    assert(parts->key_hash.len == 0 || parts->key_hash.len == KEY_HASH_LEN);
    assert(parts->owner.len <= OWNER_MAX);

    char *at = put_number(token, parts->number);
    *at++ = parts->is_shared ? TOKEN_SHARED : '.';
    for (int i = 0; i < TOKEN_RANDOM_BYTES; i++) {
        *at++ = hex[random[i] >> 4];
        *at++ = hex[random[i] & 15];
    }
    if (parts->key_hash.len > 0) {
        *at++ = '+';
        at += span_copy(at, parts->key_hash);
    }
    if (parts->owner.len > 0) {
        *at++ = '.';
        at += span_copy(at, parts->owner);
    }
    return (size_t)(at - token);
}

/* Without branches: nobody foresees random digits, the processor least. */
static unsigned is_in(char c, char first, char last)
{
    return (unsigned char)(c - first) <= (unsigned char)(last - first);
}

static bool token_is_hex(char c)
{
    return (is_in(c, '0', '9') | is_in(c, 'a', 'f')) != 0;
}

static bool is_base64url(char c)
{
    return (is_in(c, '0', '9') | is_in(c, 'a', 'z') | is_in(c, 'A', 'Z') |
            is_in(c, '-', '-') | is_in(c, '_', '_')) != 0;
}

static bool all_of(const char *text, size_t len, bool (*is_class)(char))
{
    bool are_all = true;
    for (size_t i = 0; i < len; i++)
        are_all &= is_class(text[i]);
    return are_all;
}

bool token_is_owner(struct span text)
{
    return text.len > 0 && text.len <= OWNER_MAX &&
           span_has_only(text, "._:@/-");
}

bool token_parse(struct span text, struct token_parts *parts)
{
    const char *at = text.ptr;
    parts->is_shared = token_is_shared(text);
    if (text.len < FIXED_LEN ||
        (at[TOKEN_NUMBER_LEN] != '.' && !parts->is_shared) ||
        !all_of(at + TOKEN_NUMBER_LEN + 1, RANDOM_HEX, token_is_hex))
        return false;
    parts->number =
        span_number((struct span){at, TOKEN_NUMBER_LEN}, TOKEN_NUMBER_LEN);
    if (parts->number < 1 || parts->number > FENCE_MAX)
        return false;

    at += FIXED_LEN;
    size_t left = text.len - FIXED_LEN;
    parts->key_hash = (struct span){NULL, 0};
    if (left > KEY_HASH_LEN && *at == '+') {
        if (!all_of(at + 1, KEY_HASH_LEN, is_base64url))
            return false;
        parts->key_hash = (struct span){at + 1, KEY_HASH_LEN};
        at += 1 + KEY_HASH_LEN;
        left -= 1 + KEY_HASH_LEN;
    }
    parts->owner = (struct span){at, 0};
    if (left == 0)
        return true;
    parts->owner = (struct span){at + 1, left - 1};
    return *at == '.' && token_is_owner(parts->owner);
}

bool token_is_ours(struct span text)
{
    struct token_parts parts;
    return token_parse(text, &parts);
}

/* ---- versions ------------------------------------------------------------ */

const struct version version_free = {"free"}, version_shared = {"shared"},
                     version_foreign = {"foreign"}, version_split = {"split"};

struct version version_of_number(int64_t number)
{
    struct version version;
    (void)snprintf(version.text, sizeof version.text, "%" PRId64, number);
    return version;
}

struct version version_of_value(struct span value)
{
    enum { READ_MOST = 256 }; /* of a value, by the scripts */
    /* of the random values that libraries use, no two collide by chance, and
       none can be told from its hash */
    struct version version = version_foreign;
    if (value.len > 0 && value.len < READ_MOST)
        (void)snprintf(version.text, sizeof version.text, "%s-%016" PRIx64,
                       version_foreign.text, hash_go_on(HASH_BASIS, value));
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
