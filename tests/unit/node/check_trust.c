/* SPDX-License-Identifier: MIT */
/*
 * The files of TLS: each mistake has its sentence, and a reload that fails
 * leaves what was.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../lib/folder/folder.h"
#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "secure.h"

enum { HOUR_S = 3600 };

static char error[TRUST_TEXT_MAX];

static void refuse(const char *option, const char *reason)
{
    struct trust *trust;
    ck_assert(!trust_make(&trust, &secure.config, error));
    ck_assert_ptr_null(trust);
    ck_assert_msg(strstr(error, option) && strstr(error, reason), "%s", error);
    ck_assert_ptr_null(strchr(error, '\n'));
    ck_assert_lacks(error, "PRIVATE");
}

SUITE(trust, .set_up = secure_setup, .tear_down = secure_teardown);

TEST(without_tls_no_file_is_read)
{
    struct trust *trust;
    secure.config.nodes[0].is_tls = false;
    snprintf(secure.config.node_ca, sizeof secure.config.node_ca, "/none");
    ck_assert(trust_make(&trust, &secure.config, error));
    ck_assert_ptr_null(trust);
    trust_free(trust);
}

TEST(file_that_is_no_ca_is_refused)
{
    folder_write(secure.path[0], "");
    refuse("--node-ca \"/tmp/redlockd-tls", "PEM");
    folder_write(secure.path[0], "hello");
    refuse("--node-ca", "PEM");
    folder_write(secure.path[0], "-----BEGIN CERTIFICATE-----\nAAAA\n"
                                 "-----END CERTIFICATE-----\n");
    refuse("--node-ca", "");
    ck_assert_int_eq(unlink(secure.path[0]), 0);
    refuse("--node-ca", "No such file");
    snprintf(secure.config.node_ca, sizeof secure.config.node_ca, "/tmp");
    refuse("--node-ca \"/tmp\"", "directory");
}

TEST(pair_must_fit)
{
    struct trust *trust;
    struct certs *ours = certs_new(&(struct certs_wish){.name = "us"});
    struct certs *other = certs_new(&(struct certs_wish){.name = "us"});
    secure_give(ours, ours);
    ck_assert_msg(trust_make(&trust, &secure.config, error), "%s", error);
    trust_free(trust);
    secure_give(ours, other);
    refuse("--node-key", "to the first certificate");
    folder_write(secure.path[2], "hello");
    refuse("--node-key", "PEM");
    ck_assert_int_eq(unlink(secure.path[2]), 0);
    refuse("--node-key", "No such file");
    certs_write_key(ours, secure.path[2]);
    folder_write(secure.path[1], certs_key_pem(ours));
    refuse("--node-cert", "PEM");
    ck_assert_int_eq(unlink(secure.path[1]), 0);
    refuse("--node-cert", "No such file");
    certs_free(other);
    certs_free(ours);
}

TEST(key_with_a_passphrase_is_refused)
{
    struct certs *ours = certs_new(&(struct certs_wish){.name = "us"});
    secure_give(ours, ours);
    folder_write(
        secure.path[2],
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhdwC3tDmqK2QICCAAw\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n");
    refuse("--node-key", "");
    certs_free(ours);
}

TEST(bad_reload_leaves_what_was)
{
    secure_start();
    folder_write(secure.path[0], "hello");
    ck_assert(!trust_reload(secure.trust, error));
    ck_assert_has(error, "--node-ca");
    secure_start();
}

/* Who connected before goes on; who connects now goes by the new CA. */
TEST(reload_counts_for_new_sessions)
{
    char bytes[8];
    struct certs *old = certs_new_node(secure.ca);
    struct certs *other = certs_new_ca();
    secure_start();
    certs_write(other, secure.path[0]);
    ck_assert_msg(trust_reload(secure.trust, error), "%s", error);
    secure_say("+OK\r\n", 5);
    ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), 5);
    secure_connect(&(struct secure_server){.certs = old}, "localhost");
    secure_expect_broken(STATE_TLS_FAILED, "signed by an issuer");
    certs_free(other);
    certs_free(old);
}

static void reload(void)
{
    ck_assert_msg(trust_reload(secure.trust, error), "%s", error);
}

TEST(reload_leaves_nothing)
{
    struct certs *ours = certs_new(&(struct certs_wish){.name = "us"});
    secure_give(ours, ours);
    secure_trust();
    growth_expect_none(reload);
    certs_free(ours);
}

TEST(certificate_out_of_its_time_is_a_warning)
{
    int64_t now_s = time(NULL);
    struct certs *ours = certs_new(&(struct certs_wish){.name = "us"});
    ck_assert_ptr_null(trust_warning(secure.trust, now_s));
    secure_give(ours, ours);
    secure_trust();
    ck_assert_ptr_null(trust_warning(secure.trust, now_s));
    ck_assert_has(trust_warning(secure.trust, now_s + 2 * HOUR_S), "expired");
    ck_assert_has(trust_warning(secure.trust, now_s - 2 * HOUR_S), "not yet");
    certs_free(ours);
}
