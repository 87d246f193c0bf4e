#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../api/access/identities.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "authtext.h"

#define GOOD "a " AUTHTEXT_SECRET " lock prefix=*\n"

static char error[IDENTITIES_TEXT_MAX];

static void tear_down(void)
{
    starve.is_on = false;
    authtext_remove();
}

static void expect(const char *path, const char *reason)
{
    char line[IDENTITIES_TEXT_MAX];
    struct identities *all = identities_load(path, error);
    ck_assert_ptr_null(all);
    snprintf(line, sizeof line, "--auth-file: %s:%s", path, reason);
    ck_assert_str_eq(error, line);
}

SUITE(authfile, .tear_down = tear_down);

TEST(a_good_file_is_read)
{
    struct identities *all = identities_load(authtext_write(GOOD), error);
    ck_assert_msg(all != NULL, "%s", error);
    ck_assert_int_eq(all->count, 1);
    identities_free(all);
}

TEST(an_error_has_file_and_line)
{
    expect(authtext_write(GOOD "b\n"),
           "2: the second word must be sha256: and 64 hex digits, the SHA-256 "
           "of the token, or cert:, dns:, uri:, email: or cn:, and the name "
           "in a client certificate");
    expect(authtext_write(""),
           " it names no identity, so every request would be refused; "
           "without --auth-file anybody may do anything");
}

TEST(what_is_no_file_is_refused_at_once)
{
    char path[64];
    expect("/nonexistent/auth", " no such file or directory");
    expect("/tmp", " it is not a regular file");
    expect("/dev/zero", " it is not a regular file");
    snprintf(path, sizeof path, "%s.fifo", authtext_write(GOOD));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect(path, " it is not a regular file");
    ck_assert_int_eq(unlink(path), 0);
}

TEST(a_mebibyte_and_no_more)
{
    const char *path = authtext_write(GOOD "#\n");
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    size_t len = sizeof GOOD "#\n" - 1;
    for (; len < IDENTITIES_SIZE_MAX; len++)
        fputc('\n', file);
    ck_assert_int_eq(fflush(file), 0);
    struct identities *all = identities_load(path, error);
    ck_assert_msg(all != NULL, "%s", error);
    identities_free(all);
    fputc('\n', file);
    (void)fclose(file);
    expect(path, " it is larger than 1 MiB");
}

TEST(a_long_path_is_cut)
{
    char path[600];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    ck_assert_ptr_null(identities_load(path, error));
    ck_assert_ptr_nonnull(strstr(error, "xxx: file name too long"));
}

TEST(without_memory_it_says_so)
{
    const char *path = authtext_write(GOOD);
    starve.is_on = true;
    for (int left = 1; left <= 4; left++) {
        starve.left = left;
        expect(path, " no memory");
    }
}
