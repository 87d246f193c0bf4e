/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../../../api/message/id.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"

#define SLOT(pool, number) pool NAMES_SLOT number

static const struct {
    const char *resource, *id;
} pairs[] = {
    {"a", "a"},
    {"A.z_0-9:x", "A.z_0-9:x"},
    {"...", "..."},
    {"a.", "a."},
    {".a", ".a"},
    {".", "~Lg"},
    {"..", "~Li4"},
    {"a/b", "~YS9i"},
    {"a b", "~YSBi"},
    {"a ", "~YSA"},
    {"~a", "~fmE"},
    {"caf\xc3\xa9", "~Y2Fmw6k"},
    {"\xf0\x9f\x94\x92", "~8J-Ukg"},
    {"\xef\xbf\xbf?", "~77-_Pw"},
    {"redlockd", "redlockd"},
    {"Redlockd:x", "Redlockd:x"},
    {"a\nb", "~~YQpi"},
    {"order:42\norder:43", "~~b3JkZXI6NDIKb3JkZXI6NDM"},
    {"a/b\ncaf\xc3\xa9", "~~YS9iCmNhZsOp"},
    {"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np",
     "~~YQpiCmMKZAplCmYKZwpoCmkKagprCmwKbQpuCm8KcA"},
    {SLOT("p", "0"), "~cB8w"},
    {SLOT("exports", "999"), "~ZXhwb3J0cx85OTk"},
    {SLOT("a/b#", "12"), "~YS9iIx8xMg"},
    {SLOT("p", "0") "\n" SLOT("p", "1"), "~~cB8wCnAfMQ"},
    {SLOT("p", "10") "\n" SLOT("p", "9"), "~~cB8xMApwHzk"},
};

SUITE(id);

TEST_EACH(resource_and_id_name_each_other, pairs)
{
    struct span resource = span_of(pairs[_i].resource);
    char id[ID_MAX], back[NAMES_LEN_MAX];
    size_t len = id_encode(id, resource);

    ck_assert_uint_eq(len, strlen(pairs[_i].id));
    ck_assert_mem_eq(id, pairs[_i].id, len);
    ck_assert(id_decode((struct span){id, len}, back, &len));
    ck_assert_uint_eq(len, resource.len);
    ck_assert_mem_eq(back, resource.ptr, len);
}

static const char *const bad_ids[] = {
    "",
    "~",
    "~~",
    "~~YS9i",
    ".",
    "..",
    "a/b",
    "a b",
    "a+b",
    "a~b",
    "a%20b",
    "a\x01",
    "~YQ",
    "~YS9",
    "~YS9i=",
    "~AA",
    "~_w",
    "~YS9iAA",
    "~wK8",
    "redlockd:x",
    "a:redlockd:x",
    "~cmVkbG9ja2Q6IA",
    "~YS9yZWRsb2NrZDo",    /* a/redlockd: */
    "~YWIvcmVkbG9ja2Q6eA", /* ab/redlockd:x */
    "caf\xc3\xa9",
    "~7aCA",
    "~YS9i\n",
    /* of several */
    "~~YQ",               /* a: one is not several */
    "~YQpi",              /* several are not one */
    "~~Cg",               /* two empty ones */
    "~~YQo",              /* a, and an empty one */
    "~~CmE",              /* the same in the other order */
    "~~YQoKYg",           /* one of three */
    "~~Ygph",             /* b before a */
    "~~YQph",             /* a twice */
    "~~YQpyZWRsb2NrZDp4", /* a, redlockd:x */
    "~~YQpiAQ",           /* a, b\1 */
    "~~YQr_",             /* a, no UTF-8 */
    "~~YQpj=",
    "~~~YQpi",
    /* 17, a to q */
    "~~YQpiCmMKZAplCmYKZwpoCmkKagprCmwKbQpuCm8KcApx",
    /* of slots, U+001F being _ */
    "~cB8wMQ",          /* p_01 */
    "~cB8wMA",          /* p_00 */
    "~cB8xMDAw",        /* p_1000 */
    "~cB8",             /* p_ */
    "~cB94",            /* p_x */
    "~cB8tMQ",          /* p_-1 */
    "~HzE",             /* _1 */
    "~cB8xHzI",         /* p_1_2 */
    "~cmVkbG9ja2Q6HzE", /* redlockd:_1 */
    "~cAEfMQ",          /* p\1_1 */
    "p\0371",
    "~~cB8x",        /* p_1: one is not several */
    "~cB8xCnAfMg",   /* several are not one */
    "~~cApwHzE",     /* p, p_1 */
    "~~cB8xCnE",     /* p_1, q */
    "~~cB8xCnEfMQ",  /* two pools */
    "~~cB8xCnAfMDI", /* p_1, p_02 */
    "~~cB8yCnAfMQ",  /* p_2 before p_1 */
    "~~cB8xCnAfMQ",  /* p_1 twice */
    "~~HzEKHzI",     /* _1, _2 */
    /* 17, p_0 to p_16 */
    ("~~cB8wCnAfMQpwHzEwCnAfMTEKcB8xMgpwHzEzCnAfMTQKcB8xNQpwHzE2"
     "CnAfMgpwHzMKcB80CnAfNQpwHzYKcB83CnAfOApwHzk"),
};

TEST_EACH(other_spellings_are_refused, bad_ids)
{
    char resource[NAMES_LEN_MAX];
    size_t len;

    ck_assert_msg(!id_decode(span_of(bad_ids[_i]), resource, &len), "%s",
                  bad_ids[_i]);
}

static const struct {
    const char *resource;
    bool is_good;
} resources[] = {
    {"x", true},
    {"", false},
    {"a\nb", false},
    {"a\x1f", false},
    {"a\x7f", false},
    {" ", true},
    {"\xc2\x80", false},
    {"a\xc2\x9f", false},
    {"\xc2\xa0", true},
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): no text to show */
    {"\xe2\x80\xae", true}, /* redlockctl and the logs escape it */
    {"redlockd:", false},
    {"redlockd:x", false},
    {"a:redlockd:", false},
    {"redlockredlockd:x", false},
    {"\xc3\xa9redlockd:state", false},
    {"redlockd", true},
    {"redlockd;:", true},
    {"a:redlockd", true},
    {"Redlockd:", true},
    /* more of UTF-8 is in check_utf8.c */
    {"\x80", false},
    {"\xc0\xaf", false},        /* overlong */
    {"\xed\xa0\x80", false},    /* a surrogate */
    {"\xf4\x8f\xbf\xbf", true}, /* U+10FFFF */
    {"a\xc3", false},           /* cut */
};

TEST_EACH(resource_is_checked, resources)
{
    const char *reason = id_check_resource(span_of(resources[_i].resource));

    ck_assert_msg((reason == NULL) == resources[_i].is_good, "row %d: %s", _i,
                  reason);
}

TEST(resource_may_have_255_characters)
{
    char text[256 * 4];
    char id[ID_MAX], back[NAMES_LEN_MAX];
    size_t len;

    for (int i = 0; i < 256; i++)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
        memcpy(text + 4 * i, "\xf0\x9f\x94\x92", 4);
    struct span longest = {text, RESOURCE_MAX};
    ck_assert_ptr_null(id_check_resource(longest));
    ck_assert_ptr_nonnull(id_check_resource((struct span){text, 1024}));
    len = id_encode(id, longest);
    ck_assert_uint_eq(len, 1 + BASE64URL_LEN(RESOURCE_MAX));
    ck_assert(id_decode((struct span){id, len}, back, &len));
    ck_assert_uint_eq(len, RESOURCE_MAX);
    memset(text, 'x', 256);
    ck_assert_ptr_null(id_check_resource((struct span){text, 255}));
    ck_assert_ptr_nonnull(id_check_resource((struct span){text, 256}));
    ck_assert(!id_decode((struct span){text, 256}, back, &len));
    memset(text, 'x', sizeof text);
    ck_assert(!id_decode((struct span){text, sizeof text}, back, &len));
}

TEST(a_pool_may_have_251_characters)
{
    char text[256 * 2], name[256 * 2], id[ID_MAX], back[NAMES_LEN_MAX];
    for (int i = 0; i < 255; i++)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
        memcpy(text + 2 * i, "\xc3\xa9", 2);
    for (size_t chars = 251; chars <= 252; chars++) {
        struct span pool = {text, 2 * chars};
        size_t len = names_put_slot(name, pool, 0);
        struct span slot = {name, len};
        ck_assert_int_eq(id_check_pool(pool) == NULL, chars == 251);
        ck_assert_int_eq(id_is_name(slot), chars == 251);
        len = id_encode(id, slot);
        ck_assert_int_eq(id_decode((struct span){id, len}, back, &len),
                         chars == 251);
    }
    ck_assert(id_is_name(span_of("a#1")));
    ck_assert(!id_is_name(span_of("a\x1f")));
    ck_assert(!id_is_name(span_of(SLOT("a", "0") "\n" SLOT("a", "1"))));
}

/* Sixteen names, each 255 characters or less, with all the bytes allowed. */
TEST(several_may_have_4096_bytes)
{
    static char names[NAMES_LEN_MAX + 1], id[ID_MAX + 4], back[NAMES_LEN_MAX];
    size_t len;

    memset(names, 'x', sizeof names);
    for (int i = 0; i < NAMES_MAX; i++) {
        names[256 * i] = (char)('a' + i);
        names[256 * i + 255] = '\n';
    }
    names[NAMES_LEN_MAX - 1] = 'x'; /* the last: 256 are too many */
    struct span longest = {names, NAMES_LEN_MAX};
    len = id_encode(id, longest);
    ck_assert_uint_eq(len, ID_MAX);
    ck_assert(!id_decode((struct span){id, len}, back, &len));
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
    memcpy(names + NAMES_LEN_MAX - 2, "\xc3\xa9", 2);
    ck_assert_uint_eq(id_encode(id, longest), ID_MAX);
    ck_assert(id_decode((struct span){id, ID_MAX}, back, &len));
    ck_assert_uint_eq(len, NAMES_LEN_MAX);
    ck_assert_mem_eq(back, names, NAMES_LEN_MAX);
}

/* An id far longer than any must not be decoded past the buffer. */
TEST(overlong_id_is_refused)
{
    char *id = malloc(20000);
    char resource[NAMES_LEN_MAX];
    size_t len;

    ck_assert_ptr_nonnull(id);
    memset(id, 'A', 20000);
    for (int tildes = 1; tildes <= 2; tildes++) {
        id[tildes - 1] = '~';
        for (size_t at = ID_MAX - 3; at <= 20000; at++)
            ck_assert(!id_decode((struct span){id, at}, resource, &len));
    }
    free(id);
}
