/*
 * Runs every suite of this folder: check_NAME.c defines check_NAME().
 */
#include <check.h>
#include <stdlib.h>

#include "harness.h"

#define SUITE(name) Suite *name(void);
#include "integration_suites.h"
#undef SUITE

int main(void)
{
    SRunner *runner = srunner_create(NULL);

    harness_begin();
#define SUITE(name) srunner_add_suite(runner, name());
#include "integration_suites.h"
#undef SUITE
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner) + harness_end();
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
