/* SPDX-License-Identifier: MIT */
/*
 * The configuration: where values come from, what each option takes and how it
 * is printed, what people are told when it is something else, and what is
 * refused of several together. What an address is is in check_address.c.
 */
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/folder/folder.h"
#include "../../lib/suite/suite.h"
#include "words.h"

static struct config config;
static char error[CONFIG_ERROR_MAX];

static bool load(const char *env, const char *args)
{
    return words_load(&config, env, args, error);
}

/* The load fails, and its one line has each of two words. */
static void refuse(const char *env, const char *args, const char *word,
                   const char *other)
{
    ck_assert_msg(!load(env, args), "accepted: %s | %s", env, args);
    ck_assert_has(error, word);
    ck_assert_has(error, other);
    ck_assert_ptr_null(strchr(error, '\n'));
}

static void expect(const char *env, const char *args)
{
    ck_assert_msg(load(env, args), "refused: %s", error);
}

/* This value, whatever characters it has, beside another argument. */
static bool set_beside(const char *other, const char *flag, const char *value)
{
    char argument[5000];
    char *envp[] = {NULL};
    char *argv[] = {"redlockd", "--print-config", (char *)other, argument,
                    NULL};
    snprintf(argument, sizeof argument, "--%s=%s", flag, value);
    return config_load(&config, 4, argv, envp, error);
}

static bool set(const char *flag, const char *value)
{
    return set_beside("--nodes=a", flag, value);
}

static void take(const char *flag, const char *value)
{
    ck_assert_msg(set(flag, value), "%s", error);
}

/* All that config_print writes, or config_print_help. */
static const char *print(bool is_help)
{
    static char out[12000];
    FILE *file = fmemopen(out, sizeof out, "w");
    ck_assert_ptr_nonnull(file);
    if (is_help)
        config_print_help(file);
    else
        config_print(&config, file);
    int rc = fclose(file);
    ck_assert_int_eq(rc, 0);
    return out;
}

/* The value of this option in it. */
static const char *printed(const char *flag)
{
    const char *begin = textf("--%s=", flag);
    const char *at = strstr(print(false), begin);
    ck_assert_ptr_nonnull(at);
    at += strlen(begin);
    return textf("%.*s", (int)strcspn(at, "\n"), at);
}

SUITE(config);

/* ---- where values come from ---------------------------------------------- */

static const struct {
    const char *env, *args, *flag, *value;
} places[] = {
    {"REDLOCKD_RETRY_COUNT=7 REDLOCKD_NODES=a", "", "retry-count", "7"},
    {"REDLOCKD_MAX_TTL_MS=50000", "--nodes a --max-ttl-ms=40000", "max-ttl-ms",
     "40000"},
    {"", "--nodes a --retry-delay-ms 5", "retry-delay-ms", "5"},
    {"REDLOCKD_NODES=a,b", "--nodes c", "nodes", "c:6379"},
    {"REDLOCKD_NODE_CA=/a", "--nodes a --node-ca=", "node-ca", ""},
    {"", "--nodes a --retry-count 1 --retry-count 2", "retry-count", "2"},
    {"REDLOCKD_FIRST_START=yes", "--nodes a", "first-start", "yes"},
    {"REDLOCKD_FIRST_START=yes", "--nodes a --first-start no", "first-start",
     "no"},
    {"", "--nodes a --config-epoch 7 --take-over 7", "take-over", "7"},
    {"", "--nodes a --restart-guard=off", "restart-guard", "off"},
    {"REDLOCKD_REUSE_PORT=true", "--nodes a", "reuse-port", "on"},
    {"REDLOCKD_REUSE_PORT=1", "--nodes a --reuse-port=off", "reuse-port",
     "off"},
    {"", "--reuse-port --nodes a", "reuse-port", "on"},
    {"REDLOCKD_LOG_LEVEL=", "--nodes a", "log-level", "info"},
    {"", "--nodes a --key-prefix= --log-level off", "log-level", "off"},
    {"", "--nodes a --audit-log - --audit-required", "audit-required", "on"},
    {"", "--nodes a --audit-required off --audit-reads off", "audit-reads",
     "off"},
    {"", "--nodes a", "drain-ms", "12000"},
    {"", "--nodes a --max-ttl-ms 5000", "default-ttl-ms", "5000"},
    {"", "--nodes a --max-ttl-ms 7200000", "max-hold-ms", "0"},
    /* they may be equal */
    {"", "--nodes a --max-ttl-ms 7000 --default-ttl-ms 7000 --max-hold-ms 7000",
     "max-hold-ms", "7000"},
};

TEST_EACH(flag_beats_environment_beats_default, places)
{
    expect(places[_i].env, places[_i].args);
    ck_assert_str_eq(printed(places[_i].flag), places[_i].value);
}

static const struct {
    const char *args, *word, *other;
} bad_flags[] = {
    {"--nodes a --retry-count", "--retry-count", "needs a value"},
    {"--retry-count --nodes a", "--retry-count", "needs a value"},
    {"--nodes a --auth-file a\x01", "--auth-file", "control"},
    {"--nodes a --allowed-hosts a,b:80/", "--allowed-hosts", "ports"},
    {"--nodes a --trusted-proxies 10.0.0.0/33", "--trusted-proxies",
     "10.0.0.0/8"},
    {"--nodes a --listen 0.0.0.0:80", "--listen", "--allow-anonymous yes"},
    {"--nodes a --listen [::]:80", "--listen", "--auth-file"},
    {"--nodes a --check-config --listen h:80", "--listen", "--tls-client-ca"},
    {"--nodes a --key-prefix a:redlockd:b:", "a:redlockd:b:", "own keys"},
    {"--nodes a --listen h:0", "--listen", "1 to 65535"},
    {"--nodes a --listen h", "--listen", "port"},
    {"--nodes a --nope 3", "--nope", "no such option"},
    {"--nodes a --node-timeout 3", "--node-timeout:", "--node-timeout-ms"},
    {"--nodez=a", "--nodez:", "--nodes"},
    {"--nodes a --noxx", "--noxx:", "--help"}, /* by chance */
    {"--nodes a --take-over on", "--take-over", "whole number"},
    {"--nodes a --take-over --config-epoch 2", "--take-over", "EPOCH"},
    {"--nodes a --config-epoch 3 --take-over 2", "--take-over: 2",
     "--config-epoch (3)"},
    {"--nodes a --take-over 2", "--take-over: 2", "remove it"},
    {"--nodes a --", "--:", "no such option"},
    {"--nodes a -x", "argument 3:", "--help"},
    {"--nodes a --node-cert c", "--node-cert", "--node-key"},
    {"--nodes a --node-key k", "--node-key", "--node-cert"},
    {"--nodes a --check-config=1", "--check-config", "no value"},
    {"--nodes a --default-ttl-ms 60001", "60001", "--max-ttl-ms (60000)"},
    {"--nodes a --max-hold-ms 59999", "59999", "--max-ttl-ms (60000)"},
    {"", "--nodes", "REDLOCKD_NODES"},
    {"--check-config", "--nodes", "REDLOCKD_NODES"},
    {"--nodes b,a:6379x", "node 2:", "1 to 65535"},
    {"--nodes h:6379,password=hunter2,ssl=True", "node 2:", "another client"},
    {"--nodes a,b,c,d,e,f,g,h,i,j", "--nodes", "1 to 9"},
    {"--nodes a,b,c,B", "node 4 ", "same server as node 2"},
    {"--nodes ,", "--nodes", "rediss://"},
    {"--nodes a=h:1,b=h:2,a=h:3", "node 3 ", "name of node 1"},
    {"--nodes h:1=h:2,h:1", "node 2 ", "name of node 1"},
    {"--nodes a=h:1,b=h:1", "node 2 ", "same server as node 1"},
    {"--nodes a --audit-required", "--audit-required:", "--audit-log"},
    {"--nodes a --audit-reads", "--audit-reads:", "--audit-log"},
    {"--nodes a --first-start Yes", "\"Yes\"", "auto, yes or no"},
    {"--nodes a --log-level loud", "\"loud\"", "error or off"},
    {"--nodes a --log-level=", "--log-level: \"\"", "error or off"},
    {"--nodes a --log-level=a\nb\x1b\x7f", "\"a?b??\"", "error or off"},
    {"--nodes a --reuse-port ON", "\"ON\"", "on or off"},
    {"--nodes a --reuse-port=", "\"\"", "on or off"},
    {"--nodes a --drift-factor 0.1234567890123456", "0.1234567890123456\"",
     "17"},
};

TEST_EACH(bad_flag_is_refused_with_option_value_and_limit, bad_flags)
{
    refuse("", bad_flags[_i].args, bad_flags[_i].word, bad_flags[_i].other);
}

/* It is about both, whichever was read last. */
TEST(bad_environment_is_refused_by_its_name)
{
    refuse("REDLOCKD_MAX_TTL_MS=9", "--nodes a", "REDLOCKD_MAX_TTL_MS: \"9\"",
           "100 to");
    refuse("REDLOCKD_REUSE_PORT=maybe", "--nodes a", "REDLOCKD_REUSE_PORT",
           "on or off");
    refuse("REDLOCKD_MAX_TTL_MS=5000", "--default-ttl-ms 6000 --nodes a",
           "--default-ttl-ms: 6000", "--max-ttl-ms (5000)");
}

TEST(tls_is_known_of_all_nodes)
{
    expect("", "--nodes a,b");
    ck_assert(!config_has_tls_nodes(&config));
    expect("", "--nodes a,rediss://b");
    ck_assert(config_has_tls_nodes(&config));
}

/* ---- one value ----------------------------------------------------------- */

static const struct {
    const char *flag, *words;
    const int *chosen;
} choices[] = {{"first-start", "auto yes no", &config.first_start},
               {"ask", "all quorum", &config.ask},
               {"log-level", "debug info warn error off", &config.log_level},
               {"log-format", "logfmt json", &config.log_format}};

/* They are in the order of their enum. */
TEST_EACH(a_choice_takes_each_of_its_words, choices)
{
    struct span rest = span_of(choices[_i].words);
    for (int number = 0; rest.len > 0; number++) {
        struct span word = span_take(&rest, ' ');
        const char *value = textf("%.*s", (int)word.len, word.ptr);
        take(choices[_i].flag, value);
        ck_assert_int_eq(*choices[_i].chosen, number);
        ck_assert_str_eq(printed(choices[_i].flag), value);
    }
}

TEST(a_path_is_taken_as_it_is)
{
    static char path[CONFIG_PATH_MAX + 2];
    take("audit-log", "/var/log/a b.log");
    ck_assert_str_eq(config.audit_log, "/var/log/a b.log");
    ck_assert_str_eq(printed("audit-log"), "/var/log/a b.log");
    take("audit-log", "-");
    take("audit-log", "");
    ck_assert_str_eq(config.audit_log, "");
    memset(path, 'x', CONFIG_PATH_MAX);
    take("audit-log", path);
    ck_assert_str_eq(config.audit_log, path);
    path[CONFIG_PATH_MAX] = 'x';
    ck_assert(!set("audit-log", path));
}

TEST(a_switch_takes_four_words_for_each_of_its_two)
{
    static const char *const on[] = {"on", "yes", "true", "1"};
    static const char *const off[] = {"off", "no", "false", "0"};
    for (int i = 0; i < 4; i++) {
        take("reuse-port", on[i]);
        ck_assert(config.reuse_port);
        ck_assert_str_eq(printed("reuse-port"), "on");
        take("reuse-port", off[i]);
        ck_assert(!config.reuse_port);
        ck_assert_str_eq(printed("reuse-port"), "off");
    }
}

/* ---- numbers ------------------------------------------------------------- */

static const struct {
    const char *flag, *least, *below, *most, *above, *beside;
} ranges[] = {
    {"node-timeout-ms", "1", "0", "10000", "10001", "--nodes=a"},
    {"default-ttl-ms", "100", "99", "86400000", "86400001",
     "--max-ttl-ms=86400000"},
    {"max-ttl-ms", "100", "99", "86400000", "86400001", "--nodes=a"},
    {"max-hold-ms", "0", "-1", "2592000000", "2592000001", "--nodes=a"},
    {"retry-count", "0", "-1", "100", "101", "--nodes=a"},
    {"retry-delay-ms", "0", "-1", "10000", "10001", "--nodes=a"},
    {"config-epoch", "1", "0", "1000000", "1000001", "--nodes=a"},
    {"drain-ms", "0", "-1", "600000", "99999999999999999999999999",
     "--nodes=a"},
};

TEST_EACH(a_number_has_two_ends, ranges)
{
    static const char *const others[] = {"",   "+1",  "-1", " 1",
                                         "1 ", "0x1", "5e3"};
    const char *flag = ranges[_i].flag, *beside = ranges[_i].beside;
    ck_assert_msg(set_beside(beside, flag, ranges[_i].least), "%s", error);
    ck_assert_str_eq(printed(flag), ranges[_i].least);
    ck_assert_msg(set_beside(beside, flag, ranges[_i].most), "%s", error);
    ck_assert_str_eq(printed(flag), ranges[_i].most);
    ck_assert(!set(flag, ranges[_i].below));
    ck_assert_has(error,
                  textf("from %s to %s", ranges[_i].least, ranges[_i].most));
    ck_assert(!set(flag, ranges[_i].above));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!set(flag, others[i]), "%s", others[i]);
}

TEST(a_ratio_is_a_plain_decimal)
{
    static const char *const good[] = {"0", "0.5", "0.01", "0.25",
                                       "0.000000000000001"};
    static const char *const bad[] = {
        "0.51",  "0.5000001", "1",    ".5",  "-0.1", "0,1",   "1e-3",
        "0.1.1", "",          "0.1 ", "inf", "nan",  "0x1p-4"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        take("drift-factor", good[i]);
        ck_assert_double_eq(config.drift_factor, strtod(good[i], NULL));
        ck_assert_str_eq(printed("drift-factor"), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!set("drift-factor", bad[i]), "%s", bad[i]);
    take("drift-factor", "0.123456789012345"); /* 17 of them */
    take("drift-factor", "0.500");
    ck_assert_str_eq(printed("drift-factor"), "0.5");
}

/* ---- texts --------------------------------------------------------------- */

TEST(a_prefix_is_visible_and_not_too_long)
{
    char text[CONFIG_PREFIX_MAX + 2];
    for (int byte = 1; byte <= 255; byte++) {
        char value[] = {'x', (char)byte, 'x', '\0'};
        ck_assert_msg(set("key-prefix", value) == (byte > ' ' && byte <= '~'),
                      "byte %d", byte);
    }
    memset(text, 'x', sizeof text);
    text[CONFIG_PREFIX_MAX + 1] = '\0';
    ck_assert(!set("key-prefix", text));
    text[CONFIG_PREFIX_MAX] = '\0';
    take("key-prefix", text);
    ck_assert_str_eq(config.key_prefix, text);
    ck_assert_str_eq(printed("key-prefix"), text);
}

/* A resource could make it whole. */
TEST(a_prefix_does_not_end_as_our_own_keys_begin)
{
    static const char name[] = "redlockd:";
    for (size_t len = 1; len < sizeof name; len++) {
        const char *value = textf("a:%.*s", (int)len, name);
        ck_assert_msg(!set("key-prefix", value), "%s", value);
        ck_assert_msg(!set("key-prefix", value + 2), "%s", value + 2);
        value = textf("%.*sx", (int)len, name);
        ck_assert_msg(set("key-prefix", value) == (len < sizeof name - 1), "%s",
                      value);
    }
    take("key-prefix", "Redlockd:");
    take("key-prefix", "redlock:");
    take("key-prefix", "redlockd;");
    take("key-prefix", "redlockd-");
    take("key-prefix", "r:");
    ck_assert(!set("key-prefix", "my-redlockd"));
}

TEST(where_to_listen_is_a_host_and_a_port)
{
    take("listen", "[::1]:80");
    ck_assert_str_eq(config.listen_host, "::1");
    ck_assert_int_eq(config.listen_port, 80);
    ck_assert_str_eq(printed("listen"), "[::1]:80");
}

TEST(nodes_stand_one_behind_the_other)
{
    take("nodes", " a,\tb:7\r\nredis://:p@c/3,,");
    ck_assert_int_eq(config.nodes_count, 3);
    ck_assert_str_eq(config.nodes[1].name, "b:7");
    ck_assert_str_eq(printed("nodes"), "a:6379,b:7,redis://:***@c:6379/3");
    take("nodes", "a,b,c,d,e,f,g,h,i");
    ck_assert_int_eq(config.nodes_count, NODES_MAX);
}

/* The name is what all servers agree on; the address may change. */
TEST(nodes_have_names_apart_from_their_addresses)
{
    take("nodes", "a=10.0.0.1:6379,b=redis://u:x=y@h:7/2,h:1=[::1]:2,h:3,"
                  "s=unix:///r?db=1");
    ck_assert_int_eq(config.nodes_count, 5);
    ck_assert_str_eq(config.nodes[0].name, "a");
    ck_assert_str_eq(config.nodes[0].address, "10.0.0.1:6379");
    ck_assert_str_eq(config.nodes[1].password, "x=y");
    ck_assert_str_eq(config.nodes[2].name, "h:1");
    ck_assert_str_eq(config.nodes[2].address, "[::1]:2");
    ck_assert_str_eq(config.nodes[3].name, "h:3");
    ck_assert_str_eq(config.nodes[4].name, "s");
    ck_assert_str_eq(config.nodes[4].address, "unix:///r");
    ck_assert_str_eq(printed("nodes"),
                     "a=10.0.0.1:6379,b=redis://u:***@h:7/2,h:1=[::1]:2,h:3,"
                     "s=unix:///r?db=1");
}

TEST(an_error_shows_a_part_of_a_long_value)
{
    char value[4096];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    ck_assert(!set("reuse-port", value));
    ck_assert_has(error, textf("\"%.80s\"", value));
}

/* ---- all of them --------------------------------------------------------- */

TEST(print_shows_all_values_and_no_password)
{
    expect("", "--print-config --nodes a,redis://u:SECRET@b:1/2,"
               "redis://[::1]:5/7,unix://:SECRET@/r?db=3,rediss://c,"
               "rediss://u:SECRET@d/1 --listen [::]:80 --node-ca /ca.pem");
    ck_assert_int_eq(config.action, CONFIG_PRINT);
    const char *out = print(false);
    ck_assert_lacks(out, "SECRET");
    ck_assert_has(out, "--nodes=a:6379,redis://u:***@b:1/2,redis://[::1]:5/7,"
                       "unix://:***@/r?db=3,rediss://c:6379,"
                       "rediss://u:***@d:6379/1\n");
    ck_assert_has(out, "--node-ca=/ca.pem\n");
    ck_assert_has(out, "--node-key=\n");
    ck_assert_has(out, "--listen=[::]:80\n");
    ck_assert_has(out, "--drift-factor=0.01\n");
    ck_assert_has(out, "--key-prefix=\n");
    ck_assert_has(out, "--reuse-port=off\n");
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
    strcpy(out, print(false));
    strcpy(again, out);
    for (char *c = again; *c; c++)
        if (*c == '\n')
            *c = ' ';
    expect("", again);
    ck_assert_int_eq(config.nodes_count, count);
    ck_assert_str_eq(out, print(false));
}

TEST(help_and_version_are_answered_whatever_else_is_wrong)
{
    expect("REDLOCKD_X=1", "--nope --help");
    ck_assert_int_eq(config.action, CONFIG_HELP);
    expect("", "stray -h");
    ck_assert_int_eq(config.action, CONFIG_HELP);
    expect("", "--version");
    ck_assert_int_eq(config.action, CONFIG_VERSION);
    const char *out = print(true);
    ck_assert_has(out, "--max-ttl-ms MS");
    ck_assert_has(out, "[127.0.0.1:8080]");
}

TEST(each_action_has_its_flag)
{
    expect("", "--print-config");
    expect("", "--check-config --nodes a");
    ck_assert_int_eq(config.action, CONFIG_CHECK);
    expect("", "--plan --nodes a");
    ck_assert_int_eq(config.action, CONFIG_PLAN);
}

/* The variable that names a new file with this text; drop_file removes it. */
static char file_env[] = "REDLOCKD_NODES_FILE=/tmp/check_config.XXXXXX";

static void write_file(const char *text)
{
    char *path = strchr(file_env, '=') + 1;
    strcpy(path + strlen(path) - 6, "XXXXXX");
    close(mkstemp(path));
    folder_write(path, text);
}

static void drop_file(void)
{
    unlink(strchr(file_env, '=') + 1);
}

TEST(nodes_may_lie_in_a_file)
{
    write_file("a:1\nredis://:p@b:2\n");
    expect(file_env, "");
    ck_assert_int_eq(config.nodes_count, 2);
    ck_assert_str_eq(config.nodes[1].password, "p");
    const char *both = textf("%s REDLOCKD_NODES=a", file_env);
    refuse(both, "", "REDLOCKD_NODES", "REDLOCKD_NODES_FILE is set too");
    refuse("REDLOCKD_NODES_FILE=/nonexistent", "", "REDLOCKD_NODES_FILE",
           "/nonexistent");
    refuse("REDLOCKD_NODES_FILE=/tmp", "", "REDLOCKD_NODES_FILE", "text file");
    drop_file();
}

TEST(quorum_is_an_integer_majority)
{
    static const int quorums[] = {1, 2, 2, 3, 3, 4, 4, 5, 5};
    for (int n = 1; n <= NODES_MAX; n++)
        ck_assert_int_eq(quorum_of(n), quorums[n - 1]);
}

/* ---- the environment ----------------------------------------------------- */

/* What Kubernetes sets for a service: %s is its name in capitals. */
static const char *const family[] = {
    "%s_SERVICE_HOST=10.0.0.1",       "%s_SERVICE_PORT=8080",
    "%s_SERVICE_PORT_HTTP=8080",      "%s_SERVICE_PORT_HTTP_METRICS=9090",
    "%s_PORT=tcp://10.0.0.1:8080",    "%s_PORT_8080_TCP=tcp://10.0.0.1:8080",
    "%s_PORT_8080_TCP_PROTO=tcp",     "%s_PORT_8080_TCP_PORT=8080",
    "%s_PORT_8080_TCP_ADDR=10.0.0.1", "%s_PORT_53_UDP=udp://[fd00::1]:53",
    "%s_PORT_53_UDP_ADDR=fd00::1",    "%s_PORT_9_SCTP_PROTO=sctp",
};

enum { FAMILY = sizeof family / sizeof *family };

/* The last ones look like options: --nodes, --listen, --reuse-port. */
static const char *const services[] = {
    "REDLOCKD",        "REDLOCKD_METRICS", "REDLOCKD_HEADLESS_2",
    "REDLOCKD_NODES",  "REDLOCKD_LISTEN",  "REDLOCKD_REUSE",
    "REDLOCKD_SERVICE"};

static void write_family(const char *service, char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < FAMILY; i++) {
        const char *one = textf(family[i], service);
        len += (size_t)snprintf(out + len, size - len, "%s ", one);
    }
    ck_assert_uint_lt(len, size);
}

TEST_EACH(variables_of_a_kubernetes_service_are_not_ours, services)
{
    char env[3000];
    write_family(services[_i], env, sizeof env);
    expect(env, "--nodes a");
    ck_assert(!config.reuse_port);
    ck_assert_int_eq(config.nodes_count, 1);
    ck_assert_int_eq(config.listen_port, 8080);
    strcat(env, "REDLOCKD_REUSE_PORT=on REDLOCKD_LISTEN=[::]:81");
    expect(env, "--nodes a --allow-anonymous");
    ck_assert_int_eq(config.listen_port, 81);
    ck_assert(config.reuse_port);
}

/* A user who gives a port, but no service, meant --listen. */
static const char mistakes[] =
    "REDLOCKD_PORT=8080 REDLOCKD_PORTS=tcp://10.0.0.1:8080 "
    "REDLOCKD_LISTEN_PORT=8080 REDLOCKD_PORT_HTTP=8080 "
    "REDLOCKD_PORT_8080=tcp://10.0.0.1:8080 "
    "REDLOCKD_PORT_8080_TCPX=8080 REDLOCKD_METRICS_SERVICE=10.0.0.1 "
    "REDLOCKD_METRICS_SERVICE_HOSTS=10.0.0.1 "
    "REDLOCKD_XSERVICE_HOST=10.0.0.1 REDLOCKD_=1 "
    "REDLOCKD_NODES_FILES=/x REDLOCKD_LISTEN_FILE=/x "
    "REDLOCKD_MAX_TTL=9000";

TEST(variable_that_is_nearly_one_is_a_mistake)
{
    struct span rest = span_of(mistakes);
    while (rest.len > 0) {
        struct span one = span_take(&rest, ' ');
        const char *name = textf("%.*s:", (int)strcspn(one.ptr, "="), one.ptr);
        refuse(textf("%.*s", (int)one.len, one.ptr), "--nodes a", name,
               "no such environment variable");
    }
}

/* What redlockctl reads or sets, and what the compose file reads: a machine may
 * set it for all programs. */
static const char *const sources[] = {"docker-compose.yml", "cli/*.c"};

/* Calls check for each name of a variable in the file; returns their number. */
static int each_variable(const char *path, void (*check)(const char *variable))
{
    char line[4096];
    int count = 0;
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    while (fgets(line, sizeof line, file) != NULL)
        for (char *at = line; (at = strstr(at, "REDLOCKD_")) != NULL; at++) {
            size_t len = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
            bool is_macro = strncmp(at, "REDLOCKD_VERSION", len) == 0;
            if (len > strlen("REDLOCKD_") && !is_macro) {
                check(textf("%.*s", (int)len, at));
                count++;
            }
        }
    (void)fclose(file);
    return count;
}

static void let_pass(const char *variable)
{
    expect(textf("%s=", variable), "--nodes a");
}

TEST_EACH(variables_of_other_programs_of_ours_are_let_pass, sources)
{
    glob_t found;
    int count = 0;
    ck_assert_int_eq(glob(sources[_i], 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        count += each_variable(found.gl_pathv[i], let_pass);
    globfree(&found);
    ck_assert_int_ge(count, 6);
}

/* ---- secrets ------------------------------------------------------------- */

/* In the environment and in the arguments. */
static const char *const leaks[][2] = {
    {"", "--nodes redis://u:SECRET@h:x"},
    {"", "--nodes redis://:SEC,SECRET@h"},
    {"", "--nodes redis://:SECRET"},
    {"", "--nodes u:SECRET@h"},
    {"", "--nodes redis://:SECRET%zz@h"},
    {"", "--nodes a redis://u:SECRET@h"},
    {"", "--nodes h:6379,password=SECRET,ssl=True"},
    {"", "--nodes redis://h:6379?password=SECRET"},
    {"", "--nodse=redis://u:SECRET@h"},
    {"", "--nodes http://:SECRET@h"},
    {"", "--listen redis://u:SECRET@h --nodes a"},
    {"", "--log-level redis://u:SECRET@h --nodes a"},
    {"", "--nodes redis://u:SECRET@h,redis://u:SECRET@h"},
    {"", "--redis://u:SEC=RET@a:1"},
    {"", "--SECRET@a:1"},
    {"", "--nodes u:SECRET"},
    {"", "--nodes a SECRET"},
    {"REDLOCKD_redis://u:SECRET@h=1", ""},
    {"REDLOCKD_NODES:SECRET@h=1", ""},
    {"REDLOCKD_NODE=redis://u:SECRET@h", ""},
    {"REDLOCKD_NODES=redis://u:SEC,SECRET@h", ""},
    {"REDLOCKD_LISTEN=redis://u:SECRET@h", ""},
    {"REDLOCKD_NODES_FILE=redis://u:SECRET@h", ""}};

TEST_EACH(no_error_shows_a_password, leaks)
{
    ck_assert(!load(leaks[_i][0], leaks[_i][1]));
    ck_assert_msg(!strstr(error, "SEC"), "%s", error);
}

/* Somebody gave the file with the password instead of that with the nodes. */
static const char *const file_leaks[] = {"SECRET!", "u:SECRET",
                                         "SECRET SECRET"};

TEST_EACH(no_error_of_a_file_shows_what_it_holds, file_leaks)
{
    write_file(file_leaks[_i]);
    ck_assert(!load(file_env, ""));
    ck_assert_msg(!strstr(error, "SECRET"), "%s", error);
    drop_file();
}
