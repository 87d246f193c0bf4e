/* SPDX-License-Identifier: MIT */
#include "suite.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct suite *first;

static void demand(bool is_so, const struct suite *suite, const char *rule)
{
    if (is_so)
        return;
    fprintf(stderr, "%s: SUITE(%s): %s\n", suite->file, suite->name, rule);
    abort();
}

static bool ends(const char *text, const char *format, const char *name)
{
    char end[80];
    snprintf(end, sizeof end, format, name);
    size_t len = strlen(text);
    return len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

/* suites.sh runs the suites that the files name: another would never run. */
static bool is_named_as_file(const struct suite *suite)
{
    return ends(suite->file, "/check_%s.c", suite->name) ||
           ends(suite->file, "/transcripts/%s.txt", suite->name);
}

void suite_begin(struct suite *suite)
{
    struct suite **at = &first;
    while (*at && strcmp((*at)->name, suite->name) < 0)
        at = &(*at)->next;
    demand(!*at || strcmp((*at)->name, suite->name) != 0, suite,
           "another file has a suite of that name");
    demand(is_named_as_file(suite), suite,
           "its file must be check_NAME.c, or NAME.txt of transcripts");
    suite->check = suite_create(suite->name);
    suite->next = *at;
    *at = suite;
}

void suite_begin_group(struct suite *suite, struct group *group)
{
    suite->group = group;
}

/* Check's, of the group; one without a test has none. */
static TCase *tcase_of(struct suite *suite, struct group *group)
{
    if (group->tcase)
        return group->tcase;
    group->tcase = tcase_create(group->name);
    if (group->set_up || group->tear_down)
        tcase_add_checked_fixture(group->tcase, group->set_up,
                                  group->tear_down);
    if (group->set_up_once || group->tear_down_once)
        tcase_add_unchecked_fixture(group->tcase, group->set_up_once,
                                    group->tear_down_once);
    if (group->timeout_s > 0)
        tcase_set_timeout(group->tcase, group->timeout_s);
    if (group->tags)
        tcase_set_tags(group->tcase, group->tags);
    suite_add_tcase(suite->check, group->tcase);
    return group->tcase;
}

void suite_add(struct suite *suite, const TTest *test, int from, int to)
{
    assert(from < to);
    for (struct group *it = suite->group; it; it = it->also)
        tcase_add_loop_test(tcase_of(suite, it), test, from, to);
}

int suites_run(void)
{
    SRunner *runner = srunner_create(NULL);
    for (struct suite *it = first; it; it = it->next) {
        demand(it->group->tcase != NULL, it, "its last group has no test");
        srunner_add_suite(runner, it->check);
    }
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

/* Without malloc, which some tests let fail; also called where no test runs. */
const char *textf(const char *format, ...)
{
    static char texts[4 << 20];
    static size_t used;
    va_list list;
    for (int tries = 0; tries < 2; tries++) {
        size_t room = sizeof texts - used;
        char *text = texts + used;
        va_start(list, format);
        int len = vsnprintf(text, room, format, list);
        va_end(list);
        if (len >= 0 && (size_t)len < room) {
            used += (size_t)len + 1;
            return text;
        }
        used = 0; /* the oldest texts make room */
    }
    fprintf(stderr, "textf: %s: the text is too long\n", format);
    abort();
}
