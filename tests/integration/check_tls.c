/*
 * TLS for clients: what is refused at the start, who may connect, what a reload
 * changes, and that a probe gets through.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "../lib/folder/folder.h"
#include "auth.h"
#include "secure.h"
#include "waiter.h"

enum { SOON_MS = 9000, TEXT_SIZE = 4096, DAY_S = 86400 };

static const char livez[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
static const char nodes[] = "GET /nodes HTTP/1.1\r\nHost: x\r\n\r\n";

static struct authority ours, theirs;
static struct pair pair;

static void make_authorities(void)
{
    const struct subject subject = {.common = "localhost"};
    authority_make(&ours, "ours");
    authority_make(&theirs, "theirs");
    pair = authority_issue(&ours, &subject);
}

static void connect_as(const struct pair *client)
{
    secure_set_client(
        &(struct secure_client){.authority = ours.path, .pair = client});
}

static const char *options_with(const char *more)
{
    return textf("--tls-cert %s --tls-key %s %s", pair.certificate, pair.key,
                 more);
}

static void begin(void)
{
    make_authorities();
    connect_as(NULL);
    world_start(1, options_with(""));
}

/* The server trusts their clients, and this client is one. */
static void begin_mutual(void)
{
    static struct pair client;
    const struct subject subject = {.dns = "first.example", .is_client = true};
    make_authorities();
    client = authority_issue(&theirs, &subject);
    connect_as(&client);
    const char *more = textf("--tls-client-ca %s", theirs.path);
    world_start(1, options_with(more));
}

static void end(void)
{
    world_stop();
    authority_free(&ours);
    authority_free(&theirs);
}

static bool log_has(const char *text)
{
    return access(here->log, R_OK) == 0 && server_count_log(here, text) > 0;
}

/* Whether this text gets an answer on a new connection. */
static bool is_answered(const char *text)
{
    char out[TEXT_SIZE] = "";
    struct server plain = *here;
    plain.is_tls = false;
    int fd = raw_connect(&plain);
    if (secure_shake(fd) == 0) {
        raw_send(fd, text, strlen(text));
        raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    }
    close(fd);
    return strncmp(out, "HTTP/1.1 200 ", 13) == 0;
}

static double handshakes(const char *result)
{
    const char *sample =
        textf("redlockd_tls_handshakes_total{result=\"%s\"}", result);
    return http_metric(here, sample);
}

/* ---- the start ----------------------------------------------------------- */

SUITE(tls, .timeout_s = 60);

/* Operators must notice; but whoever does not verify it is served. */
TEST_RANGE(what_is_unwise_is_warned_of, 0, 2)
{
    static const struct subject subjects[] = {
        {.common = "old", .since_s = -2 * DAY_S, .until_s = -DAY_S},
        {.common = "new", .since_s = DAY_S, .until_s = 2 * DAY_S},
    };
    static const char *const events[] = {"event=tls_certificate_expired",
                                         "event=tls_certificate_not_yet_valid"};
    make_authorities();
    pair = authority_issue(&ours, &subjects[_i]);
    ck_assert_int_eq(chmod(pair.key, 0644), 0);
    connect_as(NULL);
    secure_set_client(&(struct secure_client){.authority = NULL});
    world_start_nodes(1);
    world_start_server(0, options_with(""));
    SOON(log_has("event=start"));
    ck_assert(log_has(events[_i]));
    ck_assert(log_has("event=tls_key_is_open"));
    ck_assert(is_answered(livez));
    end();
}

static const struct {
    const char *host;
    bool has_tls, has_auth;
} listeners[] = {
    {"127.0.0.1", false, false}, {"0.0.0.0", false, false},
    {"0.0.0.0", true, false},    {"0.0.0.0", false, true},
    {"0.0.0.0", true, true},
};

TEST_EACH(a_server_that_others_can_reach_warns_of_what_is_missing, listeners)
{
    const bool is_reached = strcmp(listeners[_i].host, "127.0.0.1") != 0;
    char options[12 * PATH_SIZE], auth[PATH_SIZE];
    make_authorities();
    connect_as(NULL);
    auth_make(auth, "blue " AUTH_BLUE " lock prefix=*\n");
    world_start_nodes(1);
    here->port = harness_free_port();
    PRINT_TO(options, "--listen %s:%d %s %s %s --allow-anonymous on",
             listeners[_i].host, here->port,
             listeners[_i].has_tls ? options_with("") : "",
             listeners[_i].has_auth ? "--auth-file" : "",
             listeners[_i].has_auth ? auth : "");
    world_admit_nodes("");
    world_serve(0, options);
    ck_assert_int_eq(server_count_log(here, "event=clients_in_the_clear"),
                     is_reached && !listeners[_i].has_tls);
    ck_assert_int_eq(server_count_log(here, "event=open_to_all"),
                     is_reached && !listeners[_i].has_auth);
    end();
}

/* ---- who may connect ----------------------------------------------------- */

TEST(plain_http_is_closed_and_counted)
{
    char out[TEXT_SIZE];
    begin();
    struct server plain = *here;
    plain.is_tls = false;
    ck_assert_int_eq(raw_status(&plain, livez, strlen(livez), out, sizeof out),
                     0);
    ck_assert_double_eq(handshakes("not_tls"), 1);
    ck_assert(log_has("the client does not speak TLS"));
    end();
}

static int count_warnings(void)
{
    return server_count_log(here, "level=warn") +
           server_count_log(here, "level=error");
}

/* Now, and not when the deadline for a head passes; and it is no error. */
TEST_RANGE(tls_to_the_plain_port_is_refused_at_once, 0, 2)
{
    static const char *const kinds[] = {NULL, "NORMAL:-VERS-ALL:+VERS-TLS1.2"};
    secure_set_client(&(struct secure_client){.priorities = kinds[_i]});
    world_start(1, "");
    int before = count_warnings();
    for (int i = 0; i < 20; i++) { /* a hello is random, in part */
        int fd = raw_connect(here);
        ck_assert_int_lt(secure_shake(fd), 0);
        close(fd);
    }
    ck_assert_double_eq(http_metric(here, "redlockd_connections_cut_total"), 0);
    ck_assert_int_eq(count_warnings(), before);
    lock_expect_cycle(here, "next");
    world_stop();
}

TEST(only_clients_with_a_good_certificate_are_served)
{
    const struct subject good = {.uri = "spiffe://x/a", .is_client = true};
    const struct subject old = {.dns = "old.example",
                                .since_s = -2 * DAY_S,
                                .until_s = -DAY_S,
                                .is_client = true};
    const struct subject early = {.dns = "early.example",
                                  .since_s = DAY_S,
                                  .until_s = 2 * DAY_S,
                                  .is_client = true};
    const struct subject no_client = {.dns = "server.example"};
    begin_mutual();
    struct pair client = authority_issue(&theirs, &good);
    connect_as(&client);
    ck_assert(is_answered(nodes));
    const struct pair bad[] = {
        authority_issue(&ours, &good), authority_issue(&theirs, &old),
        authority_issue(&theirs, &early), authority_issue(&theirs, &no_client)};
    for (int i = 0; i < 4; i++) {
        connect_as(&bad[i]);
        ck_assert_msg(!is_answered(nodes), "client %d", i);
    }
    connect_as(&client);
    /* the first is not of whom the server asks for: it shows none at all */
    ck_assert_double_eq(handshakes("bad_certificate"), 3);
    ck_assert(log_has("event=tls_refused"));
    end();
}

TEST(without_a_certificate_only_probes_of_this_machine_are_answered)
{
    begin_mutual();
    const struct pair *client = secure_client()->pair;
    connect_as(NULL);
    ck_assert(is_answered(livez));
    ck_assert(is_answered("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(!is_answered(nodes));
    connect_as(client);
    end();
}

/* ---- client certificates that expire ------------------------------------- */

enum { BRIEF_S = 5 }; /* long enough to connect and to ask */

static struct pair connect_briefly(void)
{
    const struct subject subject = {.dns = "brief.example",
                                    .since_s = -DAY_S,
                                    .until_s = BRIEF_S,
                                    .is_client = true};
    static struct pair brief;
    brief = authority_issue(&theirs, &subject);
    connect_as(&brief);
    return brief;
}

TEST(who_has_expired_is_not_served_any_more)
{
    char out[TEXT_SIZE];
    size_t len = 1;
    begin_mutual();
    const struct pair *good = secure_client()->pair;
    connect_briefly();
    int fd = raw_connect(here);
    connect_as(good);
    raw_send(fd, nodes, strlen(nodes));
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 200 ");
    for (int64_t end_ms = harness_now_ms() + SOON_MS; len > 0;) {
        ck_assert_int_lt(harness_now_ms(), end_ms);
        pause_ms(100);
        raw_send(fd, nodes, strlen(nodes));
        len = raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    }
    close(fd);
    ck_assert(log_has("the client certificate has expired"));
    end();
}

/* ---- reload -------------------------------------------------------------- */

static void reload(const char *event)
{
    kill(here->pid, SIGHUP);
    SOON(log_has(event));
}

TEST(a_reload_serves_the_new_certificate_and_keeps_connections)
{
    const struct subject subject = {.common = "localhost", .is_rsa = true};
    char out[TEXT_SIZE];
    begin();
    int fd = raw_connect(here);
    struct pair renewed = authority_issue(&theirs, &subject);
    authority_replace(&pair, &renewed);
    reload("event=tls_reloaded");
    ck_assert(!is_answered(livez)); /* it trusts ours */
    raw_send(fd, livez, strlen(livez));
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 200 ");
    close(fd);
    secure_set_client(&(struct secure_client){.authority = theirs.path});
    http_disconnect();
    ck_assert(is_answered(livez));
    end();
}

TEST(a_bad_reload_changes_nothing)
{
    begin();
    folder_write(pair.key, "nothing\n");
    reload("event=tls_reload_failed");
    ck_assert(log_has("holds no private key in PEM"));
    ck_assert_double_eq(
        http_metric(here, "redlockd_file_refused{file=\"certificates\"}"), 1);
    ck_assert(is_answered(livez));
    end();
}

/* Also on the connections that it has. */
TEST(who_is_not_trusted_any_more_is_not_served_any_more)
{
    char out[TEXT_SIZE];
    begin_mutual();
    int fd = raw_connect(here);
    raw_send(fd, nodes, strlen(nodes));
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 200 ");
    reload("event=tls_reloaded"); /* the same again: nothing changes */
    raw_send(fd, nodes, strlen(nodes));
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 200 ");
    ck_assert_int_eq(rename(ours.path, theirs.path), 0);
    kill(here->pid, SIGHUP);
    SOON(!is_answered(nodes));
    raw_send(fd, nodes, strlen(nodes));
    ck_assert_uint_eq(raw_read(fd, out, sizeof out, "}\n", SOON_MS), 0);
    close(fd);
    http_disconnect();
    end();
}
