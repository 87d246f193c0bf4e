/*
 * No error of the configuration shows a password, whatever the typing mistake.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "words.h"

static struct config config;
static char error[CONFIG_ERROR_MAX];

static const char *const leaks[] = {
    "--nodes redis://u:SECRET@h:x",
    "--nodes redis://:SEC,SECRET@h",
    "--nodes redis://:SECRET",
    "--nodes redis://:SECRET/x@h",
    "--nodes u:SECRET@h",
    "--nodes redis://SECRET@h",
    "--nodes redis://:SECRET%zz@h",
    "--nodes redis://:SECRET%00@h",
    "--nodes a redis://u:SECRET@h",
    "--nodse=redis://u:SECRET@h",
    "--nodes http://:SECRET@h",
    "--listen redis://u:SECRET@h --nodes a",
    "--log-level redis://u:SECRET@h --nodes a",
    "--max-ttl-ms redis://u:SECRET@h --nodes a",
    "--nodes redis://u:SECRET@h,redis://u:SECRET@h",
    "--redis://u:SECRET@a:1",
    "--redis://u:SEC=RET@a:1",
    "--u:SEC=RET@a:1",
    "--SECRET@a:1",
    "--nodes redis://u:1,SECRET,SECRET,x@h",
    "--nodes u:SECRET",
    "--nodes a SECRET",
};

static const char *const env_leaks[] = {
    "REDLOCKD_redis://u:SECRET@h=1",
    "REDLOCKD_NODES:SECRET@h=1",
    "REDLOCKD_NODE=redis://u:SECRET@h",
    "REDLOCKD_NODES=redis://u:SEC,SECRET@h",
    "REDLOCKD_LISTEN=redis://u:SECRET@h",
    "REDLOCKD_NODES_FILE=redis://u:SECRET@h",
};

SUITE(secrets);

TEST_EACH(no_error_shows_a_password, leaks)
{
    ck_assert(!words_load(&config, "", leaks[_i], error));
    ck_assert_msg(!strstr(error, "SEC"), "%s", error);
}

TEST_EACH(no_error_of_the_environment_shows_a_password, env_leaks)
{
    ck_assert(!words_load(&config, env_leaks[_i], "", error));
    ck_assert_msg(!strstr(error, "SEC"), "%s", error);
}

/* Somebody gave the file with the password instead of that with the nodes. */
TEST(no_error_of_a_file_shows_what_it_holds)
{
    static const char *const texts[] = {"SECRET!", "u:SECRET", "SECRET SECRET"};
    char path[] = "/tmp/check_config.XXXXXX";
    char env[128];
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    snprintf(env, sizeof env, "REDLOCKD_NODES_FILE=%s", path);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ssize_t len = (ssize_t)strlen(texts[i]);
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_int_eq(pwrite(fd, texts[i], (size_t)len, 0), len);
        ck_assert(!words_load(&config, env, "", error));
        ck_assert_msg(!strstr(error, "SECRET"), "%s", error);
    }
    close(fd);
    unlink(path);
}
