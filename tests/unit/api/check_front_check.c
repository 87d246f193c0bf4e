/*
 * What a check of the configuration reads, and leaves.
 */
#include <stdio.h>
#include <string.h>

#include "../../../api/front.h"
#include "../../../server/base/log.h"
#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "authtext.h"

static struct config config;
static char error[FRONT_ERROR_MAX];

static void set_up(void)
{
    log_set_level(LOG_OFF);
    (void)snprintf(config.auth_file, sizeof config.auth_file, "%s",
                   authtext_write("a " AUTHTEXT_SECRET " read prefix=*\n"));
}

SUITE(front_check, .set_up = set_up, .tear_down = authtext_remove);

static void check(void)
{
    ck_assert_msg(front_check(&config, error), "%s", error);
}

static void check_in_vain(void)
{
    ck_assert(!front_check(&config, error));
}

TEST(a_check_leaves_nothing)
{
    growth_expect_none(check);
    strcpy(config.tls_cert, "/none");
    growth_expect_none(check_in_vain);
    ck_assert_has(error, "\"/none\"");
    (void)authtext_write("half");
    growth_expect_none(check_in_vain);
    ck_assert_has(error, config.auth_file);
}
