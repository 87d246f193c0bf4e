/* SPDX-License-Identifier: MIT */
/*
 * TLS for clients: who may connect, what a reload changes, also on connections
 * that are there, and what is warned of.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/folder/folder.h"
#include "auth.h"
#include "secure.h"
#include "waiter.h"

enum { DAY_S = 86400, BRIEF_S = 5 /* long enough to connect and to ask */ };

static struct authority ours, theirs; /* of the server, of its clients */
static struct pair pair, good, bad;
static char list[PATH_SIZE]; /* of those that are revoked */

static void connect_as(const struct pair *client)
{
    secure_set_client(
        &(struct secure_client){.authority = ours.path, .pair = client});
}

static void set_up(void)
{
    static const struct subject subjects[] = {
        {.common = "localhost"},
        {.dns = "good.example", .is_client = true},
        {.dns = "bad.example", .is_client = true},
    };
    char dir[PATH_SIZE];
    harness_make_dir(dir);
    PRINT_TO(list, "%.200s/list.pem", dir);
    authority_make(&ours, "ours");
    authority_make(&theirs, "theirs");
    pair = authority_issue(&ours, &subjects[0]);
    good = authority_issue(&theirs, &subjects[1]);
    bad = authority_issue(&theirs, &subjects[2]);
    connect_as(&good);
}

static void tear_down(void)
{
    world_stop();
    authority_free(&ours);
    authority_free(&theirs);
}

static const char *options_with(const char *more)
{
    return textf("--tls-cert %s --tls-key %s %s", pair.certificate, pair.key,
                 more);
}

static const char *mutual(void)
{
    return options_with(textf("--tls-client-ca %s", theirs.path));
}

static void write_list(bool is_bad)
{
    const struct pair *const revoked[] = {&bad};
    authority_revoke(&theirs, list, revoked, is_bad, 0);
}

/* The list has the bad one, or nobody yet. */
static void begin_with_list(bool is_bad)
{
    write_list(is_bad);
    world_start(1, textf("%s --tls-client-crl %s", mutual(), list));
}

static bool log_has(const char *text)
{
    return access(here->log, R_OK) == 0 && server_count_log(here, text) > 0;
}

static void reload(const char *event)
{
    int before = server_count_log(here, event);
    kill(here->pid, SIGHUP);
    SOON(server_count_log(here, event) > before);
}

static bool is_served(int fd, const char *text)
{
    char out[4096] = "";
    raw_send(fd, text, strlen(text));
    raw_read(fd, out, sizeof out, "}\n", 9000);
    return strncmp(out, "HTTP/1.1 200 ", 13) == 0;
}

/* Whether this client, on a connection of its own, gets an answer. */
static bool is_answered(const struct pair *client, const char *text)
{
    struct server plain = *here;
    plain.is_tls = false;
    connect_as(client);
    int fd = raw_connect(&plain);
    bool is_in = secure_shake(fd) == 0 && is_served(fd, text);
    close(fd);
    connect_as(&good);
    return is_in;
}

static bool is_let_in(const struct pair *client)
{
    return is_answered(client, RAW_NODES);
}

/* A connection of this client, which stays. */
static int connect_by(const struct pair *client)
{
    connect_as(client);
    int fd = raw_connect(here);
    connect_as(&good);
    return fd;
}

static void expect_handshakes(const char *result, int count)
{
    ck_assert_double_eq(
        http_metric(here, textf("redlockd_tls_handshakes_total{result=\"%s\"}",
                                result)),
        count);
}

static void expect_refused_files(const char *file, int count)
{
    ck_assert_double_eq(
        http_metric(here, textf("redlockd_file_refused{file=\"%s\"}", file)),
        count);
}

SUITE(tls, .timeout_s = 60, .set_up = set_up, .tear_down = tear_down);

/* ---- warnings ------------------------------------------------------------ */

/* Operators must notice; but whoever does not verify it is served. */
TEST_RANGE(what_is_unwise_is_warned_of, 0, 2)
{
    static const struct subject subjects[] = {
        {.common = "old", .since_s = -2 * DAY_S, .until_s = -DAY_S},
        {.common = "new", .since_s = DAY_S, .until_s = 2 * DAY_S},
    };
    static const char *const events[] = {"event=tls_certificate_expired",
                                         "event=tls_certificate_not_yet_valid"};
    pair = authority_issue(&ours, &subjects[_i]);
    ck_assert_int_eq(chmod(pair.key, 0644), 0);
    world_start_nodes(1);
    world_start_server(0, options_with(""));
    SOON(log_has("event=start"));
    ck_assert(log_has(events[_i]));
    ck_assert(log_has("event=tls_key_is_open"));
    secure_set_client(&(struct secure_client){.authority = NULL});
    ck_assert(is_served(raw_connect(here), RAW_LIVEZ));
}

static const struct {
    const char *host;
    bool has_tls, has_auth;
} listeners[] = {
    {"127.0.0.1", false, false},
    {"127.1", false, false}, /* which does not look so */
    {"0.0.0.0", false, true},
    {"0.0.0.0", true, false},
};

TEST_EACH(a_server_that_others_can_reach_warns_of_what_is_missing, listeners)
{
    const bool is_reached = _i > 0;
    char auth[PATH_SIZE];
    auth_make(auth, "blue " AUTH_BLUE " lock prefix=*\n");
    world_start_nodes(1);
    here->port = harness_free_port();
    world_start_server(
        0,
        textf("--listen %s:%d %s %s --allow-anonymous on", listeners[_i].host,
              here->port, listeners[_i].has_tls ? options_with("") : "",
              listeners[_i].has_auth ? textf("--auth-file %s", auth) : ""));
    SOON(log_has("event=start") && log_has("event=node "));
    ck_assert_int_eq(server_count_log(here, "event=clients_in_the_clear"),
                     is_reached && !listeners[_i].has_tls);
    ck_assert_int_eq(server_count_log(here, "event=open_to_all"),
                     is_reached && !listeners[_i].has_auth);
}

/* ---- who may connect ----------------------------------------------------- */

TEST(plain_http_is_closed_and_counted)
{
    world_start(1, options_with(""));
    struct server plain = *here;
    plain.is_tls = false;
    raw_expect(raw_ask(&plain, RAW_LIVEZ), "");
    expect_handshakes("not_tls", 1);
    ck_assert(log_has("the client does not speak TLS"));
}

/* Now, and not when the deadline for a head passes; and it is no error. */
TEST(tls_to_the_plain_port_is_refused_at_once)
{
    world_start(1, "");
    int before = server_count_log(here, "level=warn");
    for (int i = 0; i < 20; i++) { /* a hello is random, in part */
        int fd = raw_connect(here);
        ck_assert_int_lt(secure_shake(fd), 0);
        close(fd);
    }
    ck_assert_double_eq(http_metric(here, "redlockd_connections_cut_total"), 0);
    ck_assert_int_eq(server_count_log(here, "level=warn"), before);
    ck_assert_int_eq(server_count_log(here, "level=error"), 0);
    lock_expect_cycle(here, "next");
}

TEST(only_clients_with_a_good_certificate_are_served)
{
    static const struct subject old = {.dns = "old.example",
                                       .since_s = -2 * DAY_S,
                                       .until_s = -DAY_S,
                                       .is_client = true};
    static const struct subject early = {.dns = "early.example",
                                         .since_s = DAY_S,
                                         .until_s = 2 * DAY_S,
                                         .is_client = true};
    static const struct subject no_client = {.dns = "server.example"};
    static const struct subject foreign = {.dns = "x", .is_client = true};
    const struct pair refused[] = {
        authority_issue(&ours, &foreign), authority_issue(&theirs, &old),
        authority_issue(&theirs, &early), authority_issue(&theirs, &no_client)};
    world_start(1, mutual());
    ck_assert(is_let_in(&good));
    for (int i = 0; i < 4; i++)
        ck_assert_msg(!is_let_in(&refused[i]), "client %d", i);
    /* the first is not of whom the server asks for: it shows none at all */
    expect_handshakes("bad_certificate", 3);
    ck_assert(log_has("event=tls_refused"));
    /* without one only probes of this machine are answered */
    ck_assert(is_answered(NULL, RAW_LIVEZ));
    ck_assert(is_answered(NULL, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(!is_let_in(NULL));
}

/* Nor is it granted what it waits for. */
TEST(who_has_expired_is_not_served_any_more)
{
    static const struct subject subject = {.dns = "brief.example",
                                           .since_s = -DAY_S,
                                           .until_s = BRIEF_S,
                                           .is_client = true};
    struct lock lock;
    world_start(1, mutual());
    lock_take(here, "w", 60000, &lock);
    struct pair brief = authority_issue(&theirs, &subject);
    int fd = connect_by(&brief);
    connect_as(&brief);
    int waiting = waiter_send(here, "w", 60000, 45000);
    connect_as(&good);
    ck_assert(is_served(fd, RAW_NODES));
    SOON(!is_served(fd, RAW_NODES));
    close(fd);
    waiter_expect_count(here, 1);
    lock_drop(here, &lock);
    raw_expect(waiting, "");
    lock_expect_cycle(here, "w");
    ck_assert(log_has("the client certificate has expired"));
}

/* ---- reload -------------------------------------------------------------- */

TEST(a_reload_serves_the_new_certificate_and_keeps_connections)
{
    static const struct subject subject = {.common = "localhost",
                                           .is_rsa = true};
    world_start(1, options_with(""));
    int fd = raw_connect(here);
    struct pair renewed = authority_issue(&theirs, &subject);
    authority_replace(&pair, &renewed);
    reload("event=tls_reloaded");
    ck_assert(!is_answered(&good, RAW_LIVEZ)); /* it trusts ours */
    ck_assert(is_served(fd, RAW_LIVEZ));
    close(fd);
    secure_set_client(&(struct secure_client){.authority = theirs.path});
    http_disconnect();
    expect_ok(HTTP(here, .method = "GET", .path = "/livez"));
}

TEST(a_bad_reload_changes_nothing)
{
    world_start(1, options_with(""));
    folder_write(pair.key, "nothing\n");
    reload("event=tls_reload_failed");
    ck_assert(log_has("contains no private key in PEM"));
    expect_refused_files("certificates", 1);
    ck_assert(is_answered(&good, RAW_LIVEZ));
}

/* Also on the connections that it has. */
TEST(who_is_not_trusted_any_more_is_not_served_any_more)
{
    world_start(1, mutual());
    int fd = raw_connect(here);
    ck_assert(is_served(fd, RAW_NODES));
    reload("event=tls_reloaded"); /* the same again: nothing changes */
    ck_assert(is_served(fd, RAW_NODES));
    ck_assert_int_eq(rename(ours.path, theirs.path), 0);
    reload("event=tls_reloaded");
    ck_assert(!is_served(fd, RAW_NODES));
    close(fd);
    http_disconnect();
}

/* ---- those that are revoked ---------------------------------------------- */

TEST(who_is_revoked_loses_its_connection_and_what_it_waits_for)
{
    struct lock lock;
    begin_with_list(false);
    lock_take(here, "w", 60000, &lock);
    int idle = connect_by(&bad);
    connect_as(&bad);
    int waiting = waiter_send(here, "w", 60000, 45000);
    connect_as(&good);
    ck_assert(is_served(idle, RAW_NODES));
    waiter_expect_count(here, 1);
    write_list(true);
    reload("event=tls_reloaded");
    raw_expect(waiting, "");
    ck_assert(!is_served(idle, RAW_NODES));
    waiter_expect_count(here, 0);
    ck_assert(is_let_in(&good) && !is_let_in(&bad));
    ck_assert_double_gt(
        http_metric(here,
                    "redlockd_tls_client_crl_next_update_timestamp_seconds"),
        0);
    close(idle);
    close(waiting);
}

/* Its head was let in. An extend would not be undone. */
TEST(who_is_revoked_is_not_served_with_half_a_request)
{
    static const char json[] = "{\"ttl_ms\":60000}";
    char out[512];
    struct lock lock;
    begin_with_list(false);
    lock_take(here, "h", 20000, &lock);
    int fd = connect_by(&bad);
    const char *head = textf("PUT %s/extend HTTP/1.1\r\nHost: x\r\n"
                             "X-Lock-Token: %s\r\nContent-Length: %zu\r\n"
                             "Content-Type: application/json\r\n"
                             "Expect: 100-continue\r\n\r\n",
                             lock.path, lock.token, strlen(json));
    raw_send(fd, head, strlen(head));
    raw_read(fd, out, sizeof out, "\r\n\r\n", 9000);
    ck_assert_has(out, "HTTP/1.1 100 ");
    write_list(true);
    reload("event=tls_reloaded");
    raw_send(fd, json, strlen(json));
    raw_expect(fd, "");
    close(fd);
    const struct answer *a = answer_expect_held(lock_inspect(here, "h"));
    ck_assert_int_le(answer_int(a, "remaining_ms"), 20000);
}

/* It is better than none. */
TEST(an_outdated_list_counts_and_is_warned_of)
{
    const struct pair *const revoked[] = {&bad};
    begin_with_list(false);
    authority_revoke(&theirs, list, revoked, 1, -10);
    reload("event=tls_client_crl_outdated");
    ck_assert(is_let_in(&good) && !is_let_in(&bad));
}

TEST(a_bad_list_changes_nothing)
{
    struct authority other;
    begin_with_list(true);
    folder_write(list, "");
    reload("contains no list of revoked certificates in PEM");
    authority_make(&other, "theirs"); /* the same name, another key */
    authority_revoke(&other, list, NULL, 0, 0);
    reload("is not signed by a CA of --tls-client-ca");
    authority_free(&other);
    ck_assert(is_let_in(&good) && !is_let_in(&bad));
    expect_refused_files("crl", 1);
    write_list(false);
    reload("event=tls_reloaded");
    ck_assert(is_let_in(&bad));
    expect_refused_files("crl", 0);
}
