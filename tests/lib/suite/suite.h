/* SPDX-License-Identifier: MIT */
/*
 * Tests of Check that register themselves where they are defined:
 *
 *     SUITE(bucket, .set_up = fill);
 *
 *     TEST(a_full_bucket_lets_all_pass)
 *     {
 *         ...
 *     }
 *
 * A file has one SUITE, above its tests, which run in the order in which they
 * stand there; check_bucket.c has bucket. GROUP begins a Check TCase of its
 * own, with fixtures and limits of its own, for the tests below it.
 */
#ifndef REDLOCKD_SUITE_H
#define REDLOCKD_SUITE_H

#include <check.h>
#include <stdio.h>
#include <string.h>

/* The tests of a TCase; SUITE and GROUP set the first members by name. */
struct group {
    const char *name;
    void (*set_up)(void); /* for each test */
    void (*tear_down)(void);
    void (*set_up_once)(void); /* before the first one */
    void (*tear_down_once)(void);
    double timeout_s;   /* 0: as CK_DEFAULT_TIMEOUT says */
    const char *tags;   /* for CK_EXCLUDE_TAGS; NULL: none */
    struct group *also; /* its tests run in that group, too; NULL: no other */
    TCase *tcase;
};

struct suite {
    const char *name;
    const char *file;
    struct group *group; /* of the tests that follow */
    Suite *check;
    struct suite *next;
};

/* Called before main; a mistake ends the program. A test runs once for each
 * number from <= _i < to. */
void suite_begin(struct suite *suite);
void suite_begin_group(struct suite *suite, struct group *group);
void suite_add(struct suite *suite, const TTest *test, int from, int to);

/* Runs the suites of this program, or those that the environment picks, as
 * Check's manual tells. Returns how many tests failed. */
int suites_run(void);

/* One text is somewhere in the other, or nowhere; both are shown if not. */
#define ck_assert_has(text, part)                                              \
    do {                                                                       \
        const char *has_text = (text), *has_part = (part);                     \
        ck_assert_msg(strstr(has_text, has_part) != NULL,                      \
                      "\"%s\" is not in \"%s\"", has_part, has_text);          \
    } while (0)
#define ck_assert_lacks(text, part)                                            \
    do {                                                                       \
        const char *lacks_text = (text), *lacks_part = (part);                 \
        ck_assert_msg(strstr(lacks_text, lacks_part) == NULL,                  \
                      "\"%s\" is in \"%s\"", lacks_part, lacks_text);          \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* As snprintf, into an array. */
#define PRINT_TO(array, ...) snprintf(array, sizeof(array), __VA_ARGS__)

/* As printf. The text lasts for the test, or for 4 MiB of later ones. */
const char *textf(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#define SUITE(id, ...)                                                         \
    static struct suite suite_here = {.name = #id, .file = __FILE__};          \
    static __attribute__((constructor)) void suite_register(void)              \
    {                                                                          \
        suite_begin(&suite_here);                                              \
    }                                                                          \
    GROUP(id, __VA_ARGS__)

#define GROUP(id, ...)                                                         \
    static struct group group_##id = {.name = #id, __VA_ARGS__};               \
    static __attribute__((constructor)) void group_register_##id(void)         \
    {                                                                          \
        suite_begin_group(&suite_here, &group_##id);                           \
    }                                                                          \
    _Static_assert(1, "a semicolon follows")

#define TEST(name) TEST_RANGE(name, 0, 1)

/* Once for each row of the array; _i is its index. */
#define TEST_EACH(name, rows) TEST_RANGE(name, 0, (int)COUNT(rows))

/* Once for each number from <= _i < to. */
#define TEST_RANGE(name, from, to)                                             \
    static void name(int _i);                                                  \
    static __attribute__((constructor)) void register_##name(void)             \
    {                                                                          \
        static const TTest test = {#name, name, __FILE__, __LINE__};           \
        suite_add(&suite_here, &test, from, to);                               \
    }                                                                          \
    static void name(int _i __attribute__((unused)))

#endif
