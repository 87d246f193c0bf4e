/* SPDX-License-Identifier: MIT */
/*
 * The command without a service: what it tells, and its exit status. The units
 * have every mistake; here is one of each kind.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "../lib/folder/folder.h"
#include "auth.h"
#include "authority.h"

#define NODES "--nodes 127.0.0.1:1 "
#define CERT "--tls-cert cert --tls-key "
#define MUTUAL CERT "key --tls-client-ca "
#define SECRET_NODES "--nodes rediss://:SECRET@127.0.0.1:1 "
#define CHECK "--check-config "

/* What follows the command in a shell, in a folder with the files below. */
static const struct {
    const char *options;
    int status;
    const char *says;
} runs[] = {
    {"--version", 0, "redlockd "},
    {"--help", 0, "--max-ttl-ms"},
    {"-h", 0, "--nodes"},
    {CHECK NODES, 0, "configuration ok"},
    {"--print-config " NODES, 0, "--nodes=127.0.0.1:1\n"},
    {"--print-config --nodes redis://u:SECRET@h:1", 0, "u:***@h:1"},
    /* ---- the output */
    {"--print-config >/dev/full", 1, "redlockd: standard output: "},
    {"--help >/dev/full", 1, "redlockd: standard output: "},
    {"--version >/dev/full", 1, "redlockd: standard output: "},
    {CHECK NODES ">/dev/full", 1, "redlockd: standard output: "},
    {"--version >&-", 1, "redlockd: standard output: "},
    /* ---- options */
    {"", EX_CONFIG, "REDLOCKD_NODES"},
    {CHECK NODES "--retry-count x", EX_CONFIG, "--retry-count"},
    {NODES "--listen 203.0.113.1:80", EX_CONFIG, "--allow-anonymous"},
    {NODES "--allow-anonymous --listen 203.0.113.1:80", 1, "203.0.113.1:80"},
    {NODES "--allow-anonymous --listen no-such-host.invalid:80", 1,
     "no-such-host.invalid"},
    /* ---- the audit log */
    {NODES "--audit-log /none/a", 1, "--audit-log: \"/none/a\": "},
    {NODES "--audit-log - >&-", 1, "--audit-log: \"-\": "},
    /* ---- the auth file */
    {NODES "--auth-file empty", 1, "it has no identity"},
    {CHECK NODES "--auth-file empty", 1, "it has no identity"},
    {NODES "--auth-file twice", 1, "--auth-file: twice:4: the name"},
    {CHECK NODES "--auth-file auth", 0, "configuration ok"},
    {CHECK NODES "--auth-file open", 0, "auth_file_open"},
    /* ---- TLS for clients */
    {NODES "--tls-cert x", EX_CONFIG, "given without --tls-key"},
    {NODES "--tls-key x", EX_CONFIG, "given without --tls-cert"},
    {NODES "--tls-client-ca x", EX_CONFIG, "--tls-client-ca: needs TLS"},
    {NODES "--tls-client-crl x", EX_CONFIG, "needs --tls-client-ca"},
    {NODES "--tls-cert none --tls-key key", 1, "--tls-cert \"none\": No such"},
    {NODES CERT "none", 1, "--tls-key \"none\": No such"},
    {NODES CERT "cert", 1, "contains no private key in PEM"},
    {NODES CERT "other", 1, "does not belong to the first certificate"},
    {NODES "--tls-cert key --tls-key key", 1, "contains no certificate in PEM"},
    {NODES MUTUAL "none", 1, "--tls-client-ca \"none\": No such"},
    {NODES MUTUAL "empty", 1, "contains no certificate in PEM"},
    {NODES MUTUAL "cert --tls-client-crl none", 1, "No such file"},
    {NODES MUTUAL "ca --tls-client-crl crl", 1, "is not signed by a CA of"},
    /* ---- TLS to the nodes */
    {SECRET_NODES "--node-ca none", 1, "--node-ca \"none\": No such"},
    {CHECK SECRET_NODES "--node-ca key", 1, "contains no certificate in PEM"},
    {SECRET_NODES "--node-cert cert", EX_CONFIG, "without --node-key"},
};

static char dir[PATH_SIZE], binary[PATH_MAX];

static void link_to(const char *name, const char *path)
{
    ck_assert_int_eq(symlink(path, textf("%s/%s", dir, name)), 0);
}

static void make_files(void)
{
    static const struct subject subject = {.common = "localhost"};
    struct authority ours, theirs;
    harness_make_dir(dir);
    ck_assert_ptr_nonnull(realpath(harness_binary(), binary));
    authority_make(&ours, "ours");
    authority_make(&theirs, "theirs");
    struct pair pair = authority_issue(&ours, &subject);
    struct pair other = authority_issue(&ours, &subject);
    link_to("ca", ours.path);
    link_to("cert", pair.certificate);
    link_to("key", pair.key);
    link_to("other", other.key);
    authority_revoke(&theirs, textf("%s/crl", dir), NULL, 0, 0);
    authority_free(&ours);
    authority_free(&theirs);
    folder_write(textf("%s/empty", dir), "");
    folder_write(textf("%s/twice", dir),
                 "# ok\n\nred " AUTH_RED " lock prefix=*\n"
                 "red " AUTH_BLUE " lock prefix=*\n");
    folder_write(textf("%s/auth", dir), auth_standard);
    folder_write(textf("%s/open", dir), auth_standard);
    ck_assert_int_eq(chmod(textf("%s/auth", dir), 0600), 0);
    ck_assert_int_eq(chmod(textf("%s/open", dir), 0644), 0);
}

SUITE(command, .timeout_s = 60, .set_up_once = make_files);

/* A refusal is one line, and no secret is told. */
TEST_EACH(it_tells_what_it_does, runs)
{
    char *output, *argv[] = {"sh", "-c", NULL, NULL};
    argv[2] =
        (char *)textf("cd %s && exec %s %s", dir, binary, runs[_i].options);
    ck_assert_int_eq(harness_run(argv, NULL, &output), runs[_i].status);
    ck_assert_has(output, runs[_i].says);
    ck_assert_lacks(output, "SECRET");
    if (runs[_i].status != 0)
        ck_assert_str_eq(strchr(output, '\n'), "\n");
    free(output);
}
