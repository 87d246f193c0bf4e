/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"

#define SLOT(pool, number) pool NAMES_SLOT number

/* The names of a text, each in brackets, as names_next takes them off. */
static const char *split(const char *text)
{
    static char split[256];
    struct span rest = span_of(text);
    size_t len = 0;
    for (int left = names_count(rest); left > 0; left--) {
        struct span name = names_next(&rest);
        len += (size_t)snprintf(split + len, sizeof split - len, "[%.*s]",
                                (int)name.len, name.ptr);
    }
    ck_assert_uint_eq(rest.len, 0);
    return split;
}

SUITE(names);

TEST(names_are_taken_off_in_their_order)
{
    ck_assert_str_eq(split("order:42"), "[order:42]");
    ck_assert_str_eq(split("b\na\nc"), "[b][a][c]");
    ck_assert_str_eq(split("a\n"), "[a][]");
    ck_assert_str_eq(split("\n\na"), "[][][a]");
}

TEST(they_are_counted)
{
    ck_assert_int_eq(names_count(span_of("a")), 1);
    ck_assert_int_eq(names_count(span_of("a\nb")), 2);
    ck_assert_int_eq(names_count(span_of("a\nb\nc")), 3);
    ck_assert_int_eq(names_count((struct span){NULL, 0}), 1);
    ck_assert(!names_are_several(span_of("a/b c\r\t")));
    ck_assert(names_are_several(span_of("a\nb")));
    struct span cut = {"a\nb", 1};
    ck_assert(!names_are_several(cut));
    ck_assert_int_eq(names_count(cut), 1);
}

static const char *join(struct span *list, int count)
{
    static char text[256];
    text[names_join(text, list, count)] = '\0';
    return text;
}

TEST(they_are_joined_in_the_order_of_their_bytes)
{
    struct span one[] = {span_of("order:42")};
    ck_assert_str_eq(join(one, 1), "order:42");
    struct span several[] = {span_of("b"),  span_of("\xc3\xa4"), span_of("ab"),
                             span_of("B"),  span_of("a"),        span_of("a/b"),
                             span_of("abc")};
    ck_assert_str_eq(join(several, 7), "B\na\na/b\nab\nabc\nb\n\xc3\xa4");
    ck_assert_mem_eq(several[0].ptr, "B", 1);
    ck_assert_mem_eq(several[6].ptr, "\xc3\xa4", 2);
}

static const struct {
    const char *text;
    bool is_sorted;
} texts[] = {
    {"a", true},        {"a\nab\nb", true},     {"a\n\xc3\xa4", true},
    {"b\na", false},    {"a\na", false},        {"ab\na", false},
    {"a\nc\nb", false}, {"\xc3\xa4\na", false}, {"a\n", false},
    {"a\nb\n", false},
};

/* Each lock has one form only. */
TEST_EACH(no_other_text_is_sorted, texts)
{
    ck_assert_int_eq(names_are_sorted(span_of(texts[_i].text)),
                     texts[_i].is_sorted);
}

TEST(a_slot_is_told_from_its_name)
{
    static const struct {
        const char *name;
        int slot;
    } rows[] = {
        {SLOT("a", "0"), 0},
        {SLOT("a", "7"), 7},
        {SLOT("a", "42"), 42},
        {SLOT("a", "999"), 999},
        {SLOT("a", "1000"), -1},
        {SLOT("a", "01"), -1},
        {SLOT("a", "00"), -1},
        {SLOT("a", ""), -1},
        {SLOT("a", "1b"), -1},
        {SLOT("", "5"), 5},
        {SLOT("a#3", "12"), 12},
        {SLOT("a" NAMES_SLOT "12", "3"), 3},
        {"a#12", -1},
        {"a7", -1},
        {"7", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct span name = span_of(rows[i].name), pool = {NULL, 0};
        ck_assert_int_eq(names_slot(name, &pool), rows[i].slot);
        ck_assert(rows[i].slot < 0 || pool.ptr[pool.len] == NAMES_SLOT[0]);
    }
    struct span pool;
    (void)names_slot(span_of(SLOT("a" NAMES_SLOT "12", "3")), &pool);
    ck_assert(span_is(pool, "a" NAMES_SLOT "12"));
}

TEST(a_slot_is_named_by_its_pool_and_its_number)
{
    char name[16];
    size_t len = names_put_slot(name, span_of("a/b"), 0);
    ck_assert(span_is((struct span){name, len}, SLOT("a/b", "0")));
    len = names_put_slot(name, span_of("a"), POOL_SLOTS_MAX - 1);
    ck_assert_uint_eq(len, 1 + NAMES_SLOT_MAX);
    ck_assert(span_is((struct span){name, len}, SLOT("a", "999")));
}

TEST(slots_are_told_in_the_order_of_their_numbers)
{
    struct span pool;
    int slots[NAMES_MAX];
    const char *names = SLOT("a", "10") "\n" SLOT("a", "2") "\n" SLOT("a", "7");
    ck_assert_int_eq(names_slots(span_of(names), &pool, slots), 3);
    ck_assert(span_is(pool, "a"));
    ck_assert_int_eq(slots[0], 2);
    ck_assert_int_eq(slots[1], 7);
    ck_assert_int_eq(slots[2], 10);
}

static const char *const no_slots[] = {
    "",
    "a",
    "a#1",
    "a\n" SLOT("a", "1"),
    SLOT("a", "1") "\nb",
    SLOT("a", "1") "\n" SLOT("b", "1"),
    SLOT("a", "1") "\n" SLOT("a", "02"),
};

TEST_EACH(names_are_slots_of_one_pool_or_none, no_slots)
{
    struct span pool;
    int slots[NAMES_MAX];
    ck_assert_int_eq(names_slots(span_of(no_slots[_i]), &pool, slots), 0);
}

TEST(locks_overlap_if_a_name_is_in_both)
{
    static const struct {
        const char *left, *right;
        bool overlap;
    } rows[] = {
        {"a", "a", true},        {"a", "b", false},
        {"a", "ab", false},      {"a\nc", "b", false},
        {"a\nc", "c", true},     {"a\nc\ne", "b\nd\ne", true},
        {"a\nc", "b\nd", false}, {"b\nd\ne", "a\nc\ne\nf", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct span one = span_of(rows[i].left);
        struct span other = span_of(rows[i].right);
        ck_assert_int_eq(names_overlap(one, other), rows[i].overlap);
        ck_assert_int_eq(names_overlap(other, one), rows[i].overlap);
    }
}
