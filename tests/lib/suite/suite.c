#include "suite.h"

#include <assert.h>
#include <string.h>

static struct suite *first;

void suite_begin(struct suite *suite)
{
    struct suite **at = &first;
    while (*at && strcmp((*at)->name, suite->name) < 0)
        at = &(*at)->next;
    assert(!*at || strcmp((*at)->name, suite->name) != 0);
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
    for (struct suite *it = first; it; it = it->next)
        srunner_add_suite(runner, it->check);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}
