/*
 * --tls-client-crl: clients whose certificate was revoked.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "../lib/folder/folder.h"
#include "secure.h"
#include "waiter.h"

enum { SOON_MS = 9000, TEXT_SIZE = 4096 };

static const char nodes[] = "GET /nodes HTTP/1.1\r\nHost: x\r\n\r\n";

static struct authority authority;
static struct pair ours, good, bad;
static char list[PATH_SIZE];

static void connect_as(const struct pair *client)
{
    secure_set_client(
        &(struct secure_client){.authority = authority.path, .pair = client});
}

static void make_all(void)
{
    const struct subject subjects[] = {
        {.common = "localhost"},
        {.dns = "good.example", .is_client = true},
        {.dns = "bad.example", .is_client = true},
    };
    char dir[PATH_SIZE];
    harness_make_dir(dir);
    PRINT_TO(list, "%.200s/list.pem", dir);
    authority_make(&authority, "the authority");
    ours = authority_issue(&authority, &subjects[0]);
    good = authority_issue(&authority, &subjects[1]);
    bad = authority_issue(&authority, &subjects[2]);
}

static const char *options(void)
{
    return textf("--tls-cert %s --tls-key %s --tls-client-ca %s "
                 "--tls-client-crl %s",
                 ours.certificate, ours.key, authority.path, list);
}

static void write_list(bool is_bad, int until_s)
{
    const struct pair *const revoked[] = {&bad};
    authority_revoke(&authority, list, revoked, is_bad, until_s);
}

/* The list has the bad one, or nobody yet. */
static void begin(bool is_revoked)
{
    make_all();
    write_list(is_revoked, 0);
    connect_as(&good);
    world_start(1, options());
}

static void end(void)
{
    world_stop();
    authority_free(&authority);
}

static void reload(const char *event)
{
    int before = server_count_log(here, event);
    kill(here->pid, SIGHUP);
    SOON(server_count_log(here, event) > before);
}

static bool is_served(int fd)
{
    char out[TEXT_SIZE] = "";
    raw_send(fd, nodes, sizeof nodes - 1);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    return strncmp(out, "HTTP/1.1 200 ", 13) == 0;
}

/* On a connection of its own. */
static bool is_let_in(const struct pair *client)
{
    struct server plain = *here;
    plain.is_tls = false;
    connect_as(client);
    int fd = raw_connect(&plain);
    bool is_in = secure_shake(fd) == 0 && is_served(fd);
    close(fd);
    connect_as(&good);
    return is_in;
}

SUITE(tls_revoked, .timeout_s = 60);

TEST(who_is_revoked_is_not_let_in)
{
    begin(true);
    ck_assert(is_let_in(&good));
    ck_assert(!is_let_in(&bad));
    ck_assert_double_eq(
        http_metric(here, "redlockd_tls_handshakes_total{result=\"bad_"
                          "certificate\"}"),
        1);
    ck_assert_double_gt(
        http_metric(here,
                    "redlockd_tls_client_crl_next_update_timestamp_seconds"),
        0);
    end();
}

TEST(who_is_revoked_loses_its_connection_and_what_it_waits_for)
{
    char out[TEXT_SIZE];
    struct lock lock;
    begin(false);
    lock_take(here, "w", 60000, &lock);
    connect_as(&bad);
    int idle = raw_connect(here);
    int waiting = waiter_send(here, "w", 60000, 45000);
    connect_as(&good);
    ck_assert(is_served(idle));
    waiter_expect_count(here, 1);
    write_list(true, 0);
    reload("event=tls_reloaded");
    ck_assert_uint_eq(raw_read(waiting, out, sizeof out, "}\n", SOON_MS), 0);
    ck_assert(!is_served(idle));
    waiter_expect_count(here, 0);
    ck_assert(is_let_in(&good) && !is_let_in(&bad));
    close(idle);
    close(waiting);
    end();
}

TEST(a_bad_list_changes_nothing)
{
    struct authority other;
    begin(true);
    folder_write(list, "");
    reload("holds no list of revoked certificates in PEM");
    authority_make(&other, "the authority"); /* the same name, another key */
    authority_revoke(&other, list, NULL, 0, 0);
    reload("is not signed by one of --tls-client-ca");
    authority_free(&other);
    ck_assert(is_let_in(&good) && !is_let_in(&bad));
    ck_assert_double_eq(
        http_metric(here, "redlockd_file_refused{file=\"crl\"}"), 1);
    write_list(false, 0);
    reload("event=tls_reloaded");
    ck_assert(is_let_in(&bad));
    ck_assert_double_eq(
        http_metric(here, "redlockd_file_refused{file=\"crl\"}"), 0);
    end();
}
