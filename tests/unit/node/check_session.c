/* SPDX-License-Identifier: MIT */
/*
 * TLS with a node: who is believed, what is said if not, and bytes that come
 * and go in any pieces.
 */
#include <gnutls/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "secure.h"

enum { HOUR_S = 3600, BIG = 1024 * 1024 };

/* ---- who is believed ----------------------------------------------------- */

static const struct {
    struct certs_wish wish;
    const char *host;
} good[] = {
    {{.name = "localhost"}, "localhost"},
    {{.name = "localhost"}, "LOCALHOST."},
    {{.name = "*.redis.test"}, "a.redis.test"},
    {{.address = "127.0.0.1"}, "127.0.0.1"},
    {{.address = "fe80::1"}, "fe80::1%eth0"},
    {{.name = "a", .address = "::1"}, "::1"},
    {{.name = "a", .purpose = GNUTLS_KP_TLS_WWW_SERVER}, "a"},
};

SUITE(session, .set_up = secure_setup, .tear_down = secure_teardown);

TEST_EACH(node_that_proves_its_name_is_believed, good)
{
    secure_connect_as(good[_i].wish, good[_i].host);
    ck_assert_msg(secure_shake(), "%s", session_error(secure.session));
    ck_assert_ptr_null(session_error(secure.session));
    ck_assert_int_eq(session_shake(secure.session), SESSION_READY);
}

static const struct {
    struct certs_wish wish;
    const char *host, *text;
} bad[] = {
    {{.name = "a", .begins_s = -2 * HOUR_S, .ends_s = -HOUR_S}, "a", "expired"},
    {{.name = "a", .begins_s = HOUR_S / 2}, "a", "not yet valid"},
    {{.name = "a"}, "b", "name in --nodes: b"},
    {{.name = "*.redis.test"}, "a.b.redis.test", "nodes: a.b.redis.test"},
    {{.name = "127.0.0.1"}, "127.0.0.1", "not for the name"},
    {{.name = "a", .address = "127.0.0.1"}, "127.0.0.2", "not for the name"},
    {{.name = "a", .purpose = GNUTLS_KP_TLS_WWW_CLIENT}, "a", "not for serv"},
};

TEST_EACH(node_with_a_bad_certificate_is_refused_for_this_reason, bad)
{
    secure_connect_as(bad[_i].wish, bad[_i].host);
    secure_expect_broken(STATE_TLS_FAILED, bad[_i].text);
}

TEST(issuer_must_be_one_that_is_trusted)
{
    struct certs *ca = certs_new_ca();
    struct certs *other = certs_new_node(ca);
    struct certs *self = certs_new_node(NULL);
    secure_connect(&(struct secure_server){.certs = other}, "localhost");
    secure_expect_broken(STATE_TLS_FAILED, "signed by an issuer");
    secure_connect(&(struct secure_server){.certs = self}, "localhost");
    secure_expect_broken(STATE_TLS_FAILED, "self-signed");
    certs_write(self, secure.path[0]);
    secure_trust();
    secure_connect(&(struct secure_server){.certs = self}, "localhost");
    ck_assert(secure_shake());
    certs_free(self);
    certs_free(other);
    certs_free(ca);
}

/* What is trusted and no CA vouches for itself only. */
TEST(issuer_must_be_a_ca)
{
    struct certs *own = certs_new(&(struct certs_wish){.name = "us"});
    struct certs *other = certs_new_node(own);
    certs_write(own, secure.path[0]);
    secure_trust();
    secure_connect(&(struct secure_server){.certs = other}, "localhost");
    secure_expect_broken(STATE_TLS_FAILED, "that is not a CA's");
    certs_free(other);
    certs_free(own);
}

TEST(name_is_sent_but_no_address)
{
    char name[64];
    unsigned type;
    size_t len = sizeof name;
    secure_start();
    ck_assert_int_eq(
        gnutls_server_name_get(secure.server, name, &len, &type, 0), 0);
    ck_assert_str_eq(name, "localhost");
    secure_connect_as((struct certs_wish){.address = "127.0.0.1"}, "127.0.0.1");
    ck_assert(secure_shake());
    len = sizeof name;
    ck_assert_int_eq(
        gnutls_server_name_get(secure.server, name, &len, &type, 0),
        GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE);
}

/* ---- protocols ----------------------------------------------------------- */

TEST(tls_1_2_is_the_oldest)
{
    struct certs *certs = certs_new_node(secure.ca);
    secure_connect(&(struct secure_server){.certs = certs,
                                           .priority = "NORMAL:-VERS-ALL:"
                                                       "+VERS-TLS1.2"},
                   "localhost");
    ck_assert(secure_shake());
    secure_connect(
        &(struct secure_server){
            .certs = certs,
            .priority = "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0:"
                        "+SHA1:%VERIFY_ALLOW_SIGN_WITH_SHA1"},
        "localhost");
    secure_expect_broken(STATE_TLS_FAILED, "neither TLS 1.2 nor 1.3");
    certs_free(certs);
}

/* ---- our own certificate ------------------------------------------------- */

static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                       "NORMAL:-VERS-ALL:+VERS-TLS1.3"};

static void give(const struct certs *certs)
{
    secure_give(certs, certs);
    secure_trust();
}

TEST_RANGE(node_that_wants_a_certificate_gets_ours, 0, 2)
{
    struct certs *certs = certs_new_node(secure.ca);
    struct certs *ours =
        certs_new(&(struct certs_wish){.name = "us", .issuer = secure.ca});
    struct certs *stranger = certs_new(&(struct certs_wish){.name = "us"});
    const struct secure_server server = {
        .certs = certs, .priority = versions[_i], .asks = secure.ca};
    secure_connect(&server, "localhost");
    secure_expect_broken(STATE_TLS_FAILED, "give --node-cert");
    give(ours);
    secure_connect(&server, "localhost");
    ck_assert_msg(secure_shake(), "%s", session_error(secure.session));
    give(stranger);
    secure_connect(&server, "localhost");
    (void)secure_shake();
    certs_free(stranger);
    certs_free(ours);
    certs_free(certs);
}

/* Without an alert that says why. */
TEST_RANGE(node_that_misses_our_certificate_may_just_close, 0, 2)
{
    struct certs *certs = certs_new_node(secure.ca);
    int code = GNUTLS_E_AGAIN;
    secure_connect(&(struct secure_server){.certs = certs,
                                           .priority = versions[_i],
                                           .asks = secure.ca},
                   "localhost");
    while (code == GNUTLS_E_AGAIN) {
        (void)session_shake(secure.session);
        code = secure_step();
    }
    ck_assert(gnutls_error_is_fatal(code));
    ck_assert_int_eq(shutdown(secure.fds[1], SHUT_WR), 0);
    secure_expect_broken(STATE_TLS_FAILED, "requires a client certificate");
    certs_free(certs);
}

/* ---- what is no TLS ------------------------------------------------------ */

static void hear(const char *bytes, size_t len)
{
    ck_assert_int_eq(send(secure.fds[1], bytes, len, 0), (ssize_t)len);
}

TEST(server_without_tls_is_told_apart)
{
    static const char *const words[] = {
        "-ERR max number of clients reached\r\n", "HTTP/1.1 400 Bad\r\n\r\n",
        "+OK\r\n"};
    secure_start();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        secure_connect_usual();
        ck_assert_int_eq(session_shake(secure.session), SESSION_WANTS_READ);
        hear(words[i], strlen(words[i]));
        ck_assert_int_eq(session_shake(secure.session), SESSION_BROKEN);
        ck_assert_has(session_error(secure.session), "write redis://");
    }
}

/* One byte after the other: nothing is mistaken for the first. */
TEST(handshake_in_pieces_succeeds)
{
    char bytes[16384];
    int pair[2];
    secure_connect_usual();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                     0);
    gnutls_transport_set_int(secure.server, pair[1]);
    for (int turn = 0; turn < 8; turn++) {
        (void)session_shake(secure.session);
        ssize_t len = recv(secure.fds[1], bytes, sizeof bytes, 0);
        if (len > 0)
            ck_assert_int_eq(send(pair[0], bytes, (size_t)len, 0), len);
        (void)secure_step();
        len = recv(pair[0], bytes, sizeof bytes, 0);
        enum session_shake shake = SESSION_WANTS_READ;
        for (ssize_t i = 0; i < len && shake == SESSION_WANTS_READ; i++) {
            hear(bytes + i, 1);
            shake = session_shake(secure.session);
        }
        ck_assert_int_ne(shake, SESSION_BROKEN);
    }
    ck_assert_int_eq(session_shake(secure.session), SESSION_READY);
    close(pair[0]);
    close(pair[1]);
}

/* ---- bytes --------------------------------------------------------------- */

static void fill(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 7 + i / 251);
}

static bool is_readable(int fd)
{
    struct pollfd it = {.fd = fd, .events = POLLIN};
    return poll(&it, 1, 0) == 1;
}

/* Tickets come with the first data, and hide it from who stops at them. */
TEST(nothing_lies_unseen_behind_tickets)
{
    char bytes[64];
    secure_start();
    secure_say("+PONG\r\n", 7);
    ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), 7);
    ck_assert_int_eq(memcmp(bytes, "+PONG\r\n", 7), 0);
    ck_assert(!is_readable(secure.fds[0]));
    ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), 0);
    ck_assert_ptr_null(session_error(secure.session));
}

/* A short read means that the socket shows whatever is left. */
TEST(short_read_leaves_nothing_behind)
{
    static char sent[BIG], got[BIG];
    size_t said = 0, done = 0;
    secure_start();
    fill(sent, BIG);
    while (done < BIG) {
        ssize_t len =
            gnutls_record_send(secure.server, sent + said, BIG - said);
        if (len > 0)
            said += (size_t)len;
        ck_assert(is_readable(secure.fds[0]));
        ssize_t more = 1000;
        while (more == 1000 && done < BIG) {
            size_t room = BIG - done < 1000 ? BIG - done : 1000;
            more = session_read(secure.session, got + done, room);
            ck_assert_int_ge(more, 0);
            done += (size_t)more;
        }
        ck_assert(len != GNUTLS_E_AGAIN || done < said ||
                  !is_readable(secure.fds[0]));
    }
    ck_assert_int_eq(memcmp(sent, got, BIG), 0);
}

TEST(what_the_socket_does_not_take_is_written_later)
{
    static char sent[BIG], got[BIG];
    size_t written = 0, done = 0;
    int stops = 0;
    secure_start();
    fill(sent, BIG);
    while (done < BIG) {
        /* more stands behind it each time, and must not matter */
        size_t left = BIG - written;
        size_t len = left < 40000 ? left : 40000;
        ssize_t more = session_write(secure.session, sent + written, len);
        ck_assert_int_ge(more, 0);
        written += (size_t)more;
        if (more == (ssize_t)len && written < BIG)
            continue;
        stops++;
        more = gnutls_record_recv(secure.server, got + done, BIG - done);
        ck_assert(more > 0 || more == GNUTLS_E_AGAIN);
        done += more > 0 ? (size_t)more : 0;
    }
    ck_assert_int_gt(stops, 2);
    ck_assert_uint_eq(written, BIG);
    ck_assert_int_eq(memcmp(sent, got, BIG), 0);
}

TEST(keys_may_change)
{
    char bytes[64];
    secure_start();
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(
            gnutls_session_key_update(secure.server, GNUTLS_KU_PEER), 0);
        secure_say("+OK\r\n", 5);
        ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), 5);
        ck_assert_int_eq(session_write(secure.session, "PING", 4), 4);
        ssize_t got;
        do
            got = gnutls_record_recv(secure.server, bytes, sizeof bytes);
        while (got == GNUTLS_E_AGAIN);
        ck_assert_int_eq(got, 4);
    }
}

/* ---- ends ---------------------------------------------------------------- */

static void expect_end(enum node_state reason, const char *text)
{
    char bytes[64];
    ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), -1);
    ck_assert_has(session_error(secure.session), text);
    ck_assert_int_eq(session_reason(secure.session), reason);
    ck_assert_int_eq(session_write(secure.session, "x", 1), -1);
    ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), -1);
}

TEST(goodbye_is_a_close)
{
    char bytes[64];
    secure_start();
    ck_assert_int_eq(gnutls_bye(secure.server, GNUTLS_SHUT_WR), 0);
    expect_end(STATE_UNREACHABLE, "closed the connection");
    /* behind the last bytes, too, where no poll would show it */
    secure_start();
    secure_say("+OK\r\n", 5);
    ck_assert_int_eq(gnutls_bye(secure.server, GNUTLS_SHUT_WR), 0);
    ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), 5);
    ck_assert_ptr_nonnull(session_error(secure.session));
    expect_end(STATE_UNREACHABLE, "closed the connection");
}

TEST(cut_is_told_from_a_close)
{
    secure_start();
    ck_assert_int_eq(shutdown(secure.fds[1], SHUT_RDWR), 0);
    expect_end(STATE_UNREACHABLE, "cut off");
}

TEST(forged_bytes_end_it)
{
    secure_start();
    hear("\x17\x03\x03\x00 forgedforgedforgedforgedforgedfo", 37);
    expect_end(STATE_TLS_FAILED, "TLS failed: ");
    secure_start();
    hear("GET / HTTP/1.1\r\n\r\n", 18);
    expect_end(STATE_TLS_FAILED, "TLS failed: ");
}

TEST(we_say_goodbye)
{
    char bytes[16];
    secure_start();
    session_free(secure.session);
    ck_assert_int_eq(gnutls_record_recv(secure.server, bytes, sizeof bytes), 0);
    secure.session = session_new(secure.trust, "a", secure.fds[0]);
}
