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

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { N = 3, SOON_MS = 9000 };

static struct world world;
static struct server *const server = &world.servers[0];
static char path[PATH_SIZE];

static void start(void)
{
    auth_start(&world, N, path);
}

static void finish(void)
{
    auth_finish(&world);
}

/* ---- 401 ---------------------------------------------------------------- */

static const struct {
    const char *method, *path, *json;
} calls[] = {
    {"POST", "/locks", "{\"resource\":\"r/a\"}"},
    {"POST", "/locks", "{"},
    {"DELETE", "/locks/a", NULL},
    {"HEAD", "/locks/a", NULL},
    {"GET", "/locks", NULL},
};

SUITE(auth, .timeout_s = 60, .set_up_once = start, .tear_down_once = finish);

TEST_EACH(who_is_not_known_is_refused, calls)
{
    for (int i = 0; i < 2; i++) {
        const struct answer *a =
            AUTH(server, i == 0 ? NULL : "reds", .method = calls[_i].method,
                 .path = calls[_i].path, .json = calls[_i].json);
        ck_assert_int_eq(a->status, 401);
        ck_assert_str_eq(
            answer_header(a, "WWW-Authenticate"),
            i == 0 ? "Bearer realm=\"redlockd\""
                   : "Bearer realm=\"redlockd\", error=\"invalid_token\"");
        ck_assert_ptr_null(answer_header(a, "Connection"));
        if (a->json != NULL)
            answer_expect(a, 401, "unauthorized");
    }
}

static const char *const open_paths[] = {
    "/livez",   "/readyz",   "/",     "/page.css",
    "/page.js", "/page.svg", "/docs", "/openapi.yaml",
};

TEST_EACH(some_paths_are_open, open_paths)
{
    ck_assert_int_eq(http_probe(server, open_paths[_i]), 200);
}

#define ASK(authorization)                                                     \
    "GET /nodes HTTP/1.1\r\nHost: x\r\n" authorization "\r\n"

static const struct {
    const char *text;
    int status;
} heads[] = {
    {ASK("Authorization: Bearer red\r\n"), 200},
    {ASK("authorization:bearer red\r\n"), 200},
    {ASK("AUTHORIZATION: \tBEARER    red  \t \r\n"), 200},
    {ASK("Authorization: Bearer red\r\nAuthorization: Bearer red\r\n"), 400},
    {ASK("Authorization: Bearer red\r\nauthorization: Bearer x\r\n"), 400},
    {ASK("Authorization:\r\n"), 401},
    {ASK("Authorization: Bearer \r\n"), 401},
    {ASK("Authorization: Bearer red green\r\n"), 401},
    {ASK("Authorization: Bearer red,Bearer red\r\n"), 401},
    {ASK("Authorization: Bearer red\x01\r\n"), 400},
    {ASK("Authorization : Bearer red\r\n"), 400},
    {ASK("Proxy-Authorization: Bearer red\r\n"), 401},
    {"GET /nodes?access_token=red HTTP/1.1\r\nHost: x\r\n\r\n", 401},
    {"GET http://x/nodes HTTP/1.1\r\nHost: x\r\n\r\n", 401},
    {"GET /nodes HTTP/1.0\r\n\r\n", 401},
    {"GET //nodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
    {"GET /./nodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
    {"GET /livez/../nodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
    {"GET /%6eodes HTTP/1.1\r\nHost: x\r\n\r\n", 404},
};

TEST_EACH(a_head_is_read_in_one_way, heads)
{
    char out[8192];
    int status = raw_status(server, heads[_i].text, strlen(heads[_i].text), out,
                            sizeof out);
    ck_assert_msg(status == heads[_i].status, "%d for %s", status,
                  heads[_i].text);
}

/* Whatever the library makes of it, it is not another token. */
TEST(a_folded_head_opens_nothing)
{
    static const char *const folded[] = {
        ASK("Authorization: Bearer re\r\n d\r\n"),
        ASK("Authorization: Bearer\r\n x\r\n red\r\n"),
        ASK("X-A: b\r\n Authorization: Bearer red\r\n"),
        ASK("X-A: b\rAuthorization: Bearer red\r\n"),
        ASK("X-A: b\nAuthorization: Bearer red\r\n"),
    };
    char out[8192];
    for (size_t i = 0; i < COUNT(folded); i++) {
        int status =
            raw_status(server, folded[i], strlen(folded[i]), out, sizeof out);
        ck_assert_msg(status == 400 || status == 401, "%d for %s", status,
                      folded[i]);
    }
}

TEST(a_long_token_is_refused)
{
    static const int lengths[] = {64, 1000, 5000, 10000, 100000};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        char out[8192];
        char *text = harness_repeat(ASK("Authorization: Bearer red#\r\n"), "a",
                                    lengths[i]);
        int status = raw_status(server, text, strlen(text), out, sizeof out);
        ck_assert_msg(status == 401 || (lengths[i] > 5000 && status == 431),
                      "%d", status);
        free(text);
    }
}

/* ---- bodies of what is refused ------------------------------------------ */

static void ask_twice(int body_len, const char *fields, bool is_kept)
{
    static const char next[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    char head[256], out[8192];
    char *body = harness_repeat("#", "x", body_len);
    int fd = raw_connect(server);
    snprintf(head, sizeof head,
             "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n",
             body_len, fields);
    raw_send(fd, head, strlen(head));
    if (is_kept)
        raw_send(fd, body, (size_t)body_len);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 401 ", 13) == 0, "%s", out);
    ck_assert((strstr(out, "Connection: close") == NULL) == is_kept);
    raw_send(fd, next, sizeof next - 1);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg((strstr(out, "alive") != NULL) == is_kept, "%s", out);
    close(fd);
    free(body);
}

TEST(a_refusal_keeps_the_connection_if_the_body_is_small)
{
    ask_twice(0, "", true);
    ask_twice(2, "Content-Type: application/json\r\n", true);
    ask_twice(16384, "", true);
    ask_twice(16385, "", false);
    ask_twice(2000000, "", false);
    ask_twice(5, "Expect: 100-continue\r\n", false);
}

/* ---- 403 ---------------------------------------------------------------- */

TEST(a_locks_token_is_good_for_all_within_the_prefix)
{
    struct lock lock;
    answer_expect(
        auth_acquire(server, "red", "{\"resource\":\"shared /t\"}", &lock), 201,
        NULL);
    const char *target = textf("%s/extend", lock.path);
    answer_expect(AUTH(server, "green", .method = "PUT", .path = target,
                       .token = lock.token),
                  200, NULL);
    answer_expect(auth_release(server, "green", &lock), 200, NULL);
}

/* ---- lists -------------------------------------------------------------- */

static int count_listed(const char *token, const char *target)
{
    const struct answer *a = answer_expect(
        AUTH(server, token, .method = "GET", .path = target), 200, NULL);
    return (int)json_array_size(json_object_get(a->json, "locks"));
}

TEST(lists_show_what_lies_inside)
{
    static const char *const resources[] = {"r/l1", "r/l2", "g/l1", "shared /l",
                                            "l"};
    struct lock locks[COUNT(resources)];
    for (size_t i = 0; i < COUNT(resources); i++) {
        const char *json = textf("{\"resource\":\"%s\"}", resources[i]);
        answer_expect(auth_acquire(server, "blue", json, &locks[i]), 201, NULL);
    }
    WAIT_UNTIL(SOON_MS, count_listed("blue", "/locks") >= 5);
    WAIT_UNTIL(SOON_MS, count_listed("red", "/locks?prefix=r/l") == 2);
    const struct answer *a =
        AUTH(server, "red", .method = "GET", .path = "/locks");
    ck_assert_lacks(a->body, "\"g/");
    ck_assert_lacks(a->body, "\"l\"");
    ck_assert_has(a->body, "\"r/l1\"");
    ck_assert_has(a->body, "\"shared /l\"");
    ck_assert_int_eq(count_listed("green", "/locks?prefix=g"), 1);
    answer_expect(
        AUTH(server, "red", .method = "GET", .path = "/locks?prefix=g"), 403,
        "forbidden");
    answer_expect(
        AUTH(server, "red", .method = "GET", .path = "/locks?prefix=l"), 403,
        "forbidden");
    for (size_t i = 0; i < COUNT(resources); i++)
        answer_expect(auth_release(server, "blue", &locks[i]), 200, NULL);
}

/* ---- reload ------------------------------------------------------------- */

TEST(a_reload_changes_who_may_ask)
{
    char out[8192];
    static const char ask[] = ASK("Authorization: Bearer red\r\n");
    int fd = raw_connect(server);
    raw_send(fd, ask, sizeof ask - 1);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 200 ", 13) == 0, "%s", out);
    auth_reload(server, path, "blue " AUTH_BLUE " read,metrics prefix=*\n");
    ck_assert_int_eq(server_count_log(server, "identities=1"), 1);
    raw_send(fd, ask, sizeof ask - 1); /* the connection is as it was */
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 401 ", 13) == 0, "%s", out);
    close(fd);
    answer_expect(AUTH(server, "blue", .method = "GET", .path = "/nodes"), 200,
                  NULL);
    auth_reload(server, path, auth_standard);
    answer_expect(AUTH(server, "red", .method = "GET", .path = "/nodes"), 200,
                  NULL);
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
    return auth_metric(server, "blue",
                       "\nredlockd_file_refused{file=\"auth\"} ");
}

static double last_read(void)
{
    return auth_metric(
        server, "blue",
        "\nredlockd_file_read_timestamp_seconds{file=\"auth\"} ");
}

TEST_EACH(a_bad_reload_changes_nothing, bad_files)
{
    double read_s = last_read();
    ck_assert(read_s > 0 && refused() == 0);
    int before = server_count_log(server, bad_files[_i].says);
    auth_reload(server, path, bad_files[_i].text);
    ck_assert_int_eq(server_count_log(server, bad_files[_i].says), before + 1);
    answer_expect(AUTH(server, "red", .method = "GET", .path = "/nodes"), 200,
                  NULL);
    ck_assert(last_read() == read_s && refused() == 1);
    auth_reload(server, path, auth_standard);
    ck_assert(last_read() >= read_s && refused() == 0);
}

/* The head of an acquire of red, with this body. */
static int send_head(const char *json, const char *fields)
{
    int fd = raw_connect(server);
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
    WAIT_UNTIL(SOON_MS,
               auth_metric(server, "blue", "\nredlockd_waiters ") == 1);
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
    answer_expect(auth_acquire(server, "red", "{\"resource\":\"r/w\"}", &lock),
                  201, NULL);
    int fd = send_waiting();
    auth_reload(server, path, losses[_i].text);
    expect_start(fd, losses[_i].answer);
    ck_assert(auth_metric(server, "blue", "\nredlockd_waiters ") == 0);
    answer_expect(auth_release(server, "blue", &lock), 200, NULL);
    auth_reload(server, path, auth_standard);
}

TEST(who_may_wait_still_waits_on)
{
    struct lock lock;
    answer_expect(auth_acquire(server, "red", "{\"resource\":\"r/w\"}", &lock),
                  201, NULL);
    int fd = send_waiting();
    auth_reload(server, path,
                "red " AUTH_RED " lock prefix=r/w\n"
                "blue " AUTH_BLUE " lock,read,metrics prefix=*\n");
    answer_expect(auth_release(server, "blue", &lock), 200, NULL);
    struct verdict verdict = waiter_expect_grant(fd, "r/w", SOON_MS);
    ck_assert_int_eq(verdict.status, 201);
    answer_expect(auth_release(server, "blue", &verdict.lock), 200, NULL);
    auth_reload(server, path, auth_standard);
}

/* Its head was let in. */
TEST_EACH(a_request_is_judged_again_when_it_is_whole, losses)
{
    static const char json[] = "{\"resource\":\"r/b\"}";
    char out[512];
    int fd = send_head(json, "Expect: 100-continue\r\n");
    raw_read(fd, out, sizeof out, "\r\n\r\n", SOON_MS);
    ck_assert_msg(strncmp(out, "HTTP/1.1 100 ", 13) == 0, "%s", out);
    auth_reload(server, path, losses[_i].text);
    raw_send(fd, json, sizeof json - 1);
    expect_start(fd, losses[_i].answer);
    answer_expect_free(
        AUTH(server, "blue", .method = "GET", .path = "/locks/~ci9i"));
    auth_reload(server, path, auth_standard);
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

TEST_EACH(a_bad_file_is_one_line_and_no_start, bad_files)
{
    char file[PATH_SIZE], *output;
    auth_make(file, bad_files[_i].text);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(run(file, i == 0 ? "--check-config" : NULL, &output),
                         EXIT_FAILURE);
        ck_assert_msg(strncmp(output, "redlockd: --auth-file: ", 23) == 0 &&
                          strstr(output, bad_files[_i].says) != NULL &&
                          strchr(output, '\n') == output + strlen(output) - 1,
                      "%s", output);
        free(output);
    }
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

/* Here it is only this machine that could connect; 127.1 does not show it. */
TEST(an_open_server_is_told)
{
    struct server *open = &world.servers[1];
    open->port = harness_free_port();
    world_start_server(
        &world, 1, textf("--allow-anonymous --listen 127.1:%d", open->port));
    world_wait_ready(&world, 1);
    ck_assert_int_eq(server_count_log(open, "event=open_to_all"), 1);
    ck_assert_int_eq(server_count_log(server, "event=open_to_all"), 0);
    world_stop_server(&world, 1);
}
