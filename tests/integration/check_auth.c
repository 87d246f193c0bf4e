/*
 * Who asks, as heads over a socket say it, and the auth file: what is refused
 * of it, and how it is changed. tests/rights/matrix.py asks what each identity
 * may.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth.h"
#include "waiter.h"

enum { N = 3, SOON_MS = 9000 };

static char path[PATH_SIZE];

static void start(void)
{
    auth_start(N, path);
}

static void finish(void)
{
    auth_finish();
}

/* ---- 401 ---------------------------------------------------------------- */

SUITE(auth, .timeout_s = 60, .set_up_once = start, .tear_down_once = finish);

#define ASK(authorization)                                                     \
    "GET /nodes HTTP/1.1\r\nHost: x\r\n" authorization "\r\n"

/* ---- reload ------------------------------------------------------------- */

TEST(a_reload_changes_who_may_ask)
{
    char out[8192];
    static const char ask[] = ASK("Authorization: Bearer red\r\n");
    int fd = raw_connect(here);
    raw_send(fd, ask, sizeof ask - 1);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 200 ", 13) == 0, "%s", out);
    auth_reload(here, path, "blue " AUTH_BLUE " read,metrics prefix=*\n");
    ck_assert_int_eq(server_count_log(here, "identities=1"), 1);
    raw_send(fd, ask, sizeof ask - 1); /* the connection is as it was */
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 401 ", 13) == 0, "%s", out);
    close(fd);
    expect_ok(AUTH(here, "blue", .method = "GET", .path = "/nodes"));
    auth_reload(here, path, auth_standard);
    expect_ok(AUTH(here, "red", .method = "GET", .path = "/nodes"));
}

static const struct {
    const char *text, *says;
} bad_files[] = {
    {"", "names no identity"},
    {"# ok\n\nred " AUTH_RED " lock prefix=*\nred " AUTH_BLUE
     " lock prefix=*\n",
     ":4: the name"},
};

static double refused(void)
{
    return auth_metric(here, "blue", "\nredlockd_file_refused{file=\"auth\"} ");
}

static double last_read(void)
{
    return auth_metric(
        here, "blue", "\nredlockd_file_read_timestamp_seconds{file=\"auth\"} ");
}

TEST_EACH(a_bad_reload_changes_nothing, bad_files)
{
    double read_s = last_read();
    ck_assert(read_s > 0 && refused() == 0);
    int before = server_count_log(here, bad_files[_i].says);
    auth_reload(here, path, bad_files[_i].text);
    ck_assert_int_eq(server_count_log(here, bad_files[_i].says), before + 1);
    expect_ok(AUTH(here, "red", .method = "GET", .path = "/nodes"));
    ck_assert(last_read() == read_s && refused() == 1);
    auth_reload(here, path, auth_standard);
    ck_assert(last_read() >= read_s && refused() == 0);
}

/* The head of an acquire of red, with this body. */
static int send_head(const char *json, const char *fields)
{
    int fd = raw_connect(here);
    const char *text =
        textf("POST /locks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer red\r\n"
              "Content-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
              strlen(json), fields);
    raw_send(fd, text, strlen(text));
    return fd;
}

static int send_waiting(void)
{
    static const char json[] = "{\"resource\":\"r/w\",\"wait_ms\":45000}";
    int fd = send_head(json, "");
    raw_send(fd, json, sizeof json - 1);
    SOON(auth_metric(here, "blue", "\nredlockd_waiters ") == 1);
    return fd;
}

static void expect_start(int fd, const char *start)
{
    char out[8192];
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, start, strlen(start)) == 0, "%s", out);
    close(fd);
}

static const struct {
    const char *text, *answer;
} losses[] = {
    {"blue " AUTH_BLUE " lock,read,metrics prefix=*\n", "HTTP/1.1 401 "},
    {"red " AUTH_RED " lock prefix=g/\nblue " AUTH_BLUE
     " lock,read,metrics prefix=*\n",
     "HTTP/1.1 403 "},
};

/* The lock is not released before that is told. */
TEST_EACH(who_may_not_any_more_waits_no_longer, losses)
{
    struct lock lock;
    answer_expect(auth_acquire(here, "red", "{\"resource\":\"r/w\"}", &lock),
                  201, NULL);
    int fd = send_waiting();
    auth_reload(here, path, losses[_i].text);
    expect_start(fd, losses[_i].answer);
    ck_assert(auth_metric(here, "blue", "\nredlockd_waiters ") == 0);
    expect_ok(auth_release(here, "blue", &lock));
    auth_reload(here, path, auth_standard);
}

/* Its head was let in. */
TEST_EACH(a_request_is_judged_again_when_it_is_whole, losses)
{
    static const char json[] = "{\"resource\":\"r/b\"}";
    char out[512];
    int fd = send_head(json, "Expect: 100-continue\r\n");
    raw_read(fd, out, sizeof out, "\r\n\r\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 100 ", 13) == 0, "%s", out);
    auth_reload(here, path, losses[_i].text);
    raw_send(fd, json, sizeof json - 1);
    expect_start(fd, losses[_i].answer);
    answer_expect_free(
        AUTH(here, "blue", .method = "GET", .path = "/locks/~ci9i"));
    auth_reload(here, path, auth_standard);
}

/* ---- the start ---------------------------------------------------------- */

static int run(const char *file, const char *action, char **output)
{
    char *argv[] = {(char *)harness_binary(),
                    "--nodes",
                    "127.0.0.1:1",
                    "--auth-file",
                    (char *)file,
                    (char *)action,
                    NULL};
    return harness_run(argv, NULL, output);
}

TEST(a_file_that_others_may_read_is_told)
{
    char file[PATH_SIZE], *output;
    auth_make(file, auth_standard);
    ck_assert_int_eq(run(file, "--check-config", &output), 0);
    ck_assert_lacks(output, "auth_file_open");
    free(output);
    ck_assert_int_eq(chmod(file, 0644), 0);
    ck_assert_int_eq(run(file, "--check-config", &output), 0);
    ck_assert_has(output, "auth_file_open");
    ck_assert_has(output, "configuration ok");
    free(output);
}
