/*
 * The configuration: where values come from, and what is refused of them
 * together. What one option takes is in check_option.c, what an address is in
 * check_address.c.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../server/config/options.h"
#include "../../lib/suite/suite.h"
#include "words.h"

static struct config config;
static char error[CONFIG_ERROR_MAX];

static bool load(const char *env, const char *args)
{
    return words_load(&config, env, args, error);
}

/* The load fails, and its one line has each of two texts. */
static void refuse(const char *env, const char *args, const char *text,
                   const char *other)
{
    ck_assert_msg(!load(env, args), "accepted: %s | %s", env, args);
    ck_assert_msg(strstr(error, text) && strstr(error, other),
                  "\"%s\" lacks \"%s\" or \"%s\"", error, text, other);
    ck_assert_ptr_null(strchr(error, '\n'));
}

static void expect(const char *env, const char *args)
{
    ck_assert_msg(load(env, args), "refused: %s", error);
}

SUITE(options);

TEST(defaults_are_those_of_the_manual)
{
    expect("", "--nodes a,b,c");
    ck_assert_int_eq(config.action, CONFIG_SERVE);
    ck_assert_str_eq(config.listen_host, "127.0.0.1");
    ck_assert_int_eq(config.listen_port, 8080);
    ck_assert(!config.reuse_port);
    ck_assert_int_eq(config.nodes_count, 3);
    ck_assert_int_eq(config.node_timeout_ms, 250);
    ck_assert_int_eq(config.default_ttl_ms, 30000);
    ck_assert_int_eq(config.max_ttl_ms, 60000);
    ck_assert_int_eq(config.max_hold_ms, 3600000);
    ck_assert_double_eq(config.drift_factor, 0.01);
    ck_assert_int_eq(config.retry_count, 3);
    ck_assert_int_eq(config.retry_delay_ms, 200);
    ck_assert_str_eq(config.key_prefix, "");
    ck_assert_int_eq(config.first_start, FIRST_START_AUTO);
    ck_assert_int_eq(config.config_epoch, 1);
    ck_assert_int_eq(config.take_over, 0);
    ck_assert(config.restart_guard);
    ck_assert_int_eq(config.drain_ms, 12000);
    ck_assert_int_eq(config.log_level, LOG_INFO);
    ck_assert_int_eq(config.log_format, LOG_LOGFMT);
}

TEST(who_may_vote_is_configured)
{
    expect("REDLOCKD_FIRST_START=yes",
           "--nodes a --config-epoch 7 --take-over 7 --restart-guard=off");
    ck_assert_int_eq(config.first_start, FIRST_START_YES);
    ck_assert_int_eq(config.config_epoch, 7);
    ck_assert_int_eq(config.take_over, 7);
    ck_assert(!config.restart_guard);
    expect("REDLOCKD_FIRST_START=yes", "--nodes a --first-start no");
    ck_assert_int_eq(config.first_start, FIRST_START_NO);
}

TEST(flag_beats_environment_beats_default)
{
    expect("REDLOCKD_RETRY_COUNT=7 REDLOCKD_NODES=a REDLOCKD_MAX_TTL_MS=50000",
           "--max-ttl-ms=40000 --retry-delay-ms 5");
    ck_assert_int_eq(config.retry_count, 7);
    ck_assert_int_eq(config.max_ttl_ms, 40000);
    ck_assert_int_eq(config.retry_delay_ms, 5);
    expect("REDLOCKD_NODES=a,b", "--nodes c");
    ck_assert_int_eq(config.nodes_count, 1);
    ck_assert_str_eq(config.nodes[0].name, "c:6379");
    expect("REDLOCKD_NODE_CA=/a", "--nodes a --node-ca=");
    ck_assert_str_eq(config.node_ca, "");
    expect("", "--nodes a --retry-count 1 --retry-count 2");
    ck_assert_int_eq(config.retry_count, 2);
}

TEST(switches_and_empty_variables)
{
    expect("REDLOCKD_REUSE_PORT=true REDLOCKD_LOG_LEVEL=", "--nodes a");
    ck_assert(config.reuse_port);
    ck_assert_int_eq(config.log_level, LOG_INFO);
    expect("REDLOCKD_REUSE_PORT=1", "--nodes a --reuse-port=off");
    ck_assert(!config.reuse_port);
    expect("", "--reuse-port --nodes a --key-prefix= --log-level off");
    ck_assert(config.reuse_port);
    ck_assert_int_eq(config.log_level, LOG_OFF);
    refuse("REDLOCKD_REUSE_PORT=maybe", "--nodes a", "REDLOCKD_REUSE_PORT",
           "on or off");
}

static const struct {
    const char *args, *text, *other;
} bad[] = {
    {"--nodes a --max-ttl-ms x", "--max-ttl-ms: \"x\"", "100 to 86400000"},
    {"--nodes a --max-ttl-ms=", "--max-ttl-ms: \"\"", "whole number"},
    {"--nodes a --retry-count", "--retry-count", "needs a value"},
    {"--retry-count --nodes a", "--retry-count", "needs a value"},
    {"--nodes a --key-prefix \t", "--key-prefix", "visible"},
    {"--nodes a --auth-file a\x01", "--auth-file", "control characters"},
    {"--nodes a --allowed-hosts a,b:80/", "--allowed-hosts", "without ports"},
    {"--nodes a --allowed-hosts *", "--allowed-hosts", "without ports"},
    {"--nodes a --trusted-proxies 10.0.0.0/33", "--trusted-proxies",
     "10.0.0.0/8"},
    {"--nodes a --listen 0.0.0.0:80", "--listen", "--allow-anonymous yes"},
    {"--nodes a --listen [::]:80", "--listen", "--auth-file"},
    {"--nodes a --check-config --listen h:80", "--listen", "--tls-client-ca"},
    {"--nodes a --plan --listen h:80", "--listen", "--tls-client-ca"},
    {"--plan", "--nodes", "for example"},
    {"--nodes a --key-prefix a:redlockd:b:", "a:redlockd:b:", "own keys"},
    {"--nodes a --listen h:0", "--listen", "1 to 65535"},
    {"--nodes a --listen [::1]", "--listen", "port is missing"},
    {"--nodes a --nope 3", "--nope", "no such option"},
    {"--nodes a --node-timeout 3", "--node-timeout:", "see --node-timeout-ms"},
    {"--nodez=a", "--nodez:", "see --nodes"},
    {"--nodes a --noxx", "--noxx:", "see --help"}, /* by chance */
    {"--nodes a --nodxx", "--nodxx:", "see --nodes"},
    {"--nodes a --maxttl=3", "--maxttl:", "see --max-ttl-ms"},
    {"--nodes a --restart-guard 2", "--restart-guard", "on or off"},
    {"--nodes a --take-over on", "--take-over", "whole number"},
    {"--nodes a --take-over --config-epoch 2", "--take-over", "EPOCH"},
    {"--nodes a --config-epoch 3 --take-over 2", "--take-over: 2",
     "is not --config-epoch (3)"},
    {"--nodes a --config-epoch 3 --take-over 4", "--take-over: 4",
     "then give 3"},
    {"--nodes a --take-over 2", "--take-over: 2", "take it away"},
    {"--nodes a --", "--:", "no such option"},
    {"--nodes a -x", "argument 3:", "options begin with --"},
    {"--nodes a --node-cert c", "--node-cert", "without --node-key"},
    {"--nodes a --node-key k", "--node-key", "without --node-cert"},
    {"--nodes a stray", "argument 3:", "--help"},
    {"--nodes a --check-config=1", "--check-config", "no value"},
    {"--nodes a --default-ttl-ms 60001", "60001", "--max-ttl-ms (60000)"},
    {"--nodes a --max-hold-ms 59999", "59999", "--max-ttl-ms (60000)"},
    {"", "--nodes", "for example"},
    {"--check-config", "--nodes", "for example"},
    {"--nodes a/0,redis://a/1", "node 1", "letters"},
    {"--nodes b,a:6379x", "node 2:", "1 to 65535"},
};

TEST_EACH(bad_flag_is_refused_with_option_value_and_limit, bad)
{
    refuse("", bad[_i].args, bad[_i].text, bad[_i].other);
}

TEST(bad_environment_is_refused_by_its_name)
{
    refuse("REDLOCKD_MAX_TTL_MS=9", "--nodes a", "REDLOCKD_MAX_TTL_MS: \"9\"",
           "100 to");
}

TEST(lines_of_an_audit_log_need_one)
{
    refuse("", "--nodes a --audit-required",
           "--audit-required:", "needs --audit-log");
    refuse("", "--nodes a --audit-reads",
           "--audit-reads:", "needs --audit-log");
    expect("", "--nodes a --audit-required off --audit-reads off");
    expect("", "--nodes a --audit-log - --audit-required --audit-reads");
    ck_assert(config.audit_required && config.audit_reads);
}

TEST(tls_is_known_of_all_nodes)
{
    expect("", "--nodes a,b");
    ck_assert(!config_has_tls_nodes(&config));
    expect("", "--nodes a,rediss://b");
    ck_assert(config_has_tls_nodes(&config));
}

/* What options_print or options_print_help wrote. */
static void printed(bool is_help, char *out, size_t size)
{
    FILE *file = fmemopen(out, size, "w");

    ck_assert_ptr_nonnull(file);
    if (is_help)
        options_print_help(file);
    else
        options_print(&config, file);
    int rc = fclose(file);
    ck_assert_int_eq(rc, 0);
}

TEST(print_shows_all_values_and_no_password)
{
    char out[8192];

    expect("", "--print-config --nodes a,redis://u:SECRET@b:1/2,"
               "redis://[::1]:5/7,unix://:SECRET@/r?db=3,rediss://c,"
               "rediss://u:SECRET@d/1 --listen [::]:80 --node-ca /ca.pem");
    ck_assert_int_eq(config.action, CONFIG_PRINT);
    printed(false, out, sizeof out);
    ck_assert_ptr_null(strstr(out, "SECRET"));
    ck_assert_ptr_nonnull(
        strstr(out, "--nodes=a:6379,redis://u:***@b:1/2,redis://[::1]:5/7,"
                    "unix://:***@/r?db=3,rediss://c:6379,"
                    "rediss://u:***@d:6379/1\n"));
    ck_assert_ptr_nonnull(strstr(out, "--node-ca=/ca.pem\n"));
    ck_assert_ptr_nonnull(strstr(out, "--node-key=\n"));
    ck_assert_ptr_nonnull(strstr(out, "--listen=[::]:80\n"));
    ck_assert_ptr_nonnull(strstr(out, "--drift-factor=0.01\n"));
    ck_assert_ptr_nonnull(strstr(out, "--key-prefix=\n"));
    ck_assert_ptr_nonnull(strstr(out, "--reuse-port=off\n"));
}

static const char *const printable[] = {
    ("--print-config --nodes a,redis://b/1 --retry-count 9 --reuse-port "
     "--drift-factor 0.125 --log-level debug --log-format json "
     "--audit-log /a --audit-required --audit-reads on "
     "--auth-file /a/b --allowed-hosts a,.b "
     "--trusted-proxies ::1,10.0.0.0/8 "
     "--key-prefix x:"),
    "--print-config --nodes a --drift-factor 0.000000000000001",
    "--print-config --nodes a --drift-factor 0.123456789012345",
    "--print-config --nodes unix:///a%20b%2cc%40d%25e%3ff?db=1,b",
    "--print-config --nodes redis://a%3a%2f%40%2c%20:p@b,c",
    ("--print-config --nodes rediss://a,rediss://u:p@[::1]/3,b "
     "--node-ca ca --node-cert c --node-key k --tls-cert c --tls-key k "
     "--tls-client-ca a --tls-client-crl l"),
};

TEST_EACH(what_is_printed_can_be_read_again, printable)
{
    char out[8192], again[8192];

    expect("", printable[_i]);
    int count = config.nodes_count;
    printed(false, out, sizeof out);
    strcpy(again, out);
    for (char *c = again; *c; c++)
        if (*c == '\n')
            *c = ' ';
    expect("", again);
    ck_assert_int_eq(config.nodes_count, count);
    printed(false, again, sizeof again);
    ck_assert_str_eq(out, again);
}

TEST(help_and_version_are_answered_whatever_else_is_wrong)
{
    char out[8192];

    expect("REDLOCKD_X=1", "--nope --help");
    ck_assert_int_eq(config.action, CONFIG_HELP);
    expect("", "stray -h");
    ck_assert_int_eq(config.action, CONFIG_HELP);
    expect("", "--version");
    ck_assert_int_eq(config.action, CONFIG_VERSION);
    printed(true, out, sizeof out);
    ck_assert_ptr_nonnull(strstr(out, "--max-ttl-ms MS"));
    ck_assert_ptr_nonnull(strstr(out, "[127.0.0.1:8080]"));
}

TEST(defaults_follow_a_lower_max_ttl)
{
    expect("", "--nodes a --max-ttl-ms 5000");
    ck_assert_int_eq(config.default_ttl_ms, 5000);
    expect("", "--nodes a --max-ttl-ms 7200000");
    ck_assert_int_eq(config.max_hold_ms, 7200000);
    /* about both, whichever was read last */
    ck_assert(!load("REDLOCKD_MAX_TTL_MS=5000", "--default-ttl-ms 6000"
                                                " --nodes a"));
    ck_assert_str_eq(error, "--default-ttl-ms: 6000 is above --max-ttl-ms "
                            "(5000)");
    /* they may be equal */
    expect("", "--nodes a --max-ttl-ms 7000 --default-ttl-ms 7000 "
               "--max-hold-ms 7000");
    ck_assert_int_eq(config.default_ttl_ms, 7000);
    ck_assert_int_eq(config.max_hold_ms, 7000);
    expect("", "--nodes a --healthcheck");
    ck_assert_int_eq(config.action, CONFIG_HEALTHCHECK);
    expect("", "--healthcheck");
    expect("", "--print-config");
    expect("", "--check-config --nodes a");
    ck_assert_int_eq(config.action, CONFIG_CHECK);
    expect("", "--plan --nodes a");
    ck_assert_int_eq(config.action, CONFIG_PLAN);
}

TEST(nodes_may_lie_in_a_file)
{
    char path[] = "/tmp/check_config.XXXXXX";
    char env[128];
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "a:1\nredis://:p@b:2\n", 19), 19);
    snprintf(env, sizeof env, "REDLOCKD_NODES_FILE=%s", path);
    expect(env, "");
    ck_assert_int_eq(config.nodes_count, 2);
    ck_assert_str_eq(config.nodes[1].password, "p");
    snprintf(env, sizeof env, "REDLOCKD_NODES_FILE=%s REDLOCKD_NODES=a", path);
    refuse(env, "", "REDLOCKD_NODES", "REDLOCKD_NODES_FILE is set too");
    refuse("REDLOCKD_NODES_FILE=/nonexistent", "", "REDLOCKD_NODES_FILE",
           "/nonexistent");
    refuse("REDLOCKD_NODES_FILE=/tmp", "", "REDLOCKD_NODES_FILE", "text file");
    close(fd);
    unlink(path);
}

TEST(quorum_is_an_integer_majority)
{
    static const int quorums[] = {1, 2, 2, 3, 3, 4, 4, 5, 5};

    for (int n = 1; n <= NODES_MAX; n++)
        ck_assert_int_eq(quorum_of(n), quorums[n - 1]);
}
