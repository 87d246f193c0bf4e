/*
 * One value of one option: what it may be, from end to end, and what people are
 * told when it is something else. How values come in is in check_options.c.
 */
#include <stdlib.h>
#include <string.h>

#include "../../../server/config/option.h"
#include "../../lib/suite/suite.h"

static struct config config;
static char error[CONFIG_ERROR_MAX];
static struct option_reader reader;

static void begin(void)
{
    memset(&config, 0, sizeof config);
    reader = (struct option_reader){.config = &config, .error = error};
}

static bool set(enum option_id id, const char *value)
{
    *error = '\0';
    return option_set(&reader, &option_table[id], value);
}

static void expect(enum option_id id, const char *value)
{
    ck_assert_msg(set(id, value), "%s", error);
}

static void refuse(enum option_id id, const char *value, const char *said)
{
    ck_assert_msg(!set(id, value), "accepted: %s", value);
    ck_assert_str_eq(error, said);
}

static const char *printed(enum option_id id)
{
    static char out[2048];
    FILE *file = fmemopen(out, sizeof out, "w");
    ck_assert_ptr_nonnull(file);
    option_print(&option_table[id], &config, file);
    ck_assert_int_eq(fclose(file), 0);
    return out;
}

/* ---- words --------------------------------------------------------------- */

static const struct {
    enum option_id id;
    const char *value;
    int number;
} words[] = {
    {OPTION_FIRST_START, "auto", FIRST_START_AUTO},
    {OPTION_FIRST_START, "yes", FIRST_START_YES},
    {OPTION_FIRST_START, "no", FIRST_START_NO},
    {OPTION_LOG_LEVEL, "debug", LOG_DEBUG},
    {OPTION_LOG_LEVEL, "info", LOG_INFO},
    {OPTION_LOG_LEVEL, "warn", LOG_WARN},
    {OPTION_LOG_LEVEL, "error", LOG_ERROR},
    {OPTION_LOG_LEVEL, "off", LOG_OFF},
    {OPTION_LOG_FORMAT, "logfmt", LOG_LOGFMT},
    {OPTION_LOG_FORMAT, "json", LOG_JSON},
};

static int chosen(enum option_id id)
{
    switch (id) {
    case OPTION_LOG_LEVEL:
        return config.log_level;
    case OPTION_LOG_FORMAT:
        return config.log_format;
    default:
        return config.first_start;
    }
}

SUITE(option, .set_up = begin);

TEST_EACH(a_choice_takes_each_of_its_words, words)
{
    expect(words[_i].id, words[_i].value);
    ck_assert_int_eq(chosen(words[_i].id), words[_i].number);
    ck_assert_str_eq(printed(words[_i].id), words[_i].value);
}

TEST(a_choice_lists_its_words)
{
    refuse(OPTION_FIRST_START, "Yes",
           "\"Yes\" is not valid; it must be auto, yes or no");
    refuse(OPTION_LOG_LEVEL, "loud",
           "\"loud\" is not valid; it must be debug, info, warn, error or off");
    refuse(OPTION_LOG_LEVEL, "",
           "\"\" is not valid; it must be debug, info, warn, error or off");
}

TEST(a_path_is_taken_as_it_is)
{
    static char path[CONFIG_PATH_MAX + 2];
    expect(OPTION_AUDIT_LOG, "/var/log/a b.log");
    ck_assert_str_eq(config.audit_log, "/var/log/a b.log");
    ck_assert_str_eq(printed(OPTION_AUDIT_LOG), "/var/log/a b.log");
    expect(OPTION_AUDIT_LOG, "-");
    expect(OPTION_AUDIT_LOG, "");
    ck_assert_str_eq(config.audit_log, "");
    memset(path, 'x', CONFIG_PATH_MAX);
    expect(OPTION_AUDIT_LOG, path);
    ck_assert_str_eq(config.audit_log, path);
    path[CONFIG_PATH_MAX] = 'x';
    ck_assert(!set(OPTION_AUDIT_LOG, path));
    ck_assert_ptr_nonnull(strstr(error, "a path of at most 1023 bytes"));
}

TEST(a_switch_takes_four_words_for_each_of_its_two)
{
    static const char *const on[] = {"on", "yes", "true", "1"};
    static const char *const off[] = {"off", "no", "false", "0"};
    for (int i = 0; i < 4; i++) {
        expect(OPTION_AUDIT_READS, on[i]);
        ck_assert(config.audit_reads);
        ck_assert_str_eq(printed(OPTION_AUDIT_READS), "on");
        expect(OPTION_AUDIT_READS, off[i]);
        ck_assert(!config.audit_reads);
        ck_assert_str_eq(printed(OPTION_AUDIT_READS), "off");
    }
    refuse(OPTION_AUDIT_READS, "ON",
           "\"ON\" is not valid; it must be on or off");
    refuse(OPTION_AUDIT_READS, "", "\"\" is not valid; it must be on or off");
}

/* ---- numbers ------------------------------------------------------------- */

static const struct {
    enum option_id id;
    const char *least, *below, *most, *above;
} ranges[] = {
    {OPTION_NODE_TIMEOUT_MS, "1", "0", "10000", "10001"},
    {OPTION_DEFAULT_TTL_MS, "100", "99", "86400000", "86400001"},
    {OPTION_MAX_TTL_MS, "100", "99", "86400000", "86400001"},
    {OPTION_MAX_HOLD_MS, "100", "99", "2592000000", "2592000001"},
    {OPTION_RETRY_COUNT, "0", "-1", "100", "101"},
    {OPTION_RETRY_DELAY_MS, "0", "-1", "10000", "10001"},
    {OPTION_CONFIG_EPOCH, "1", "0", "1000000", "1000001"},
    {OPTION_DRAIN_MS, "0", "-1", "600000", "99999999999999999999999999"},
};

TEST_EACH(a_number_has_two_ends, ranges)
{
    static const char *const others[] = {"",   "+1",  "-1", " 1",
                                         "1 ", "0x1", "5e3"};
    enum option_id id = ranges[_i].id;
    char said[CONFIG_ERROR_MAX];
    expect(id, ranges[_i].least);
    ck_assert_str_eq(printed(id), ranges[_i].least);
    expect(id, ranges[_i].most);
    ck_assert_str_eq(printed(id), ranges[_i].most);
    snprintf(said, sizeof said,
             "\"%s\" is not valid; it must be a whole number from %s to %s",
             ranges[_i].below, ranges[_i].least, ranges[_i].most);
    refuse(id, ranges[_i].below, said);
    ck_assert(!set(id, ranges[_i].above));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!set(id, others[i]), "%s", others[i]);
    ck_assert_str_eq(printed(id), ranges[_i].most); /* as it was */
}

TEST(a_ratio_is_a_plain_decimal)
{
    static const char *const good[] = {"0", "0.5", "0.01", "0.25",
                                       "0.000000000000001"};
    static const char *const bad[] = {
        "0.51",  "0.5000001", "1",    ".5",  "-0.1", "0,1",   "1e-3",
        "0.1.1", "",          "0.1 ", "inf", "nan",  "0x1p-4"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        expect(OPTION_DRIFT_FACTOR, good[i]);
        ck_assert_double_eq(config.drift_factor, strtod(good[i], NULL));
        ck_assert_str_eq(printed(OPTION_DRIFT_FACTOR), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!set(OPTION_DRIFT_FACTOR, bad[i]), "%s", bad[i]);
    expect(OPTION_DRIFT_FACTOR, "0.123456789012345"); /* 17 of them */
    refuse(OPTION_DRIFT_FACTOR, "0.1234567890123456",
           "\"0.1234567890123456\" is not valid; it must be a number from 0 to "
           "0.5 in at most 17 characters");
    expect(OPTION_DRIFT_FACTOR, "0.500");
    ck_assert_str_eq(printed(OPTION_DRIFT_FACTOR), "0.5");
}

/* ---- texts --------------------------------------------------------------- */

TEST(a_prefix_is_visible_and_not_too_long)
{
    char text[CONFIG_PREFIX_MAX + 2];
    for (int byte = 1; byte <= 255; byte++) {
        char value[] = {'x', (char)byte, 'x', '\0'};
        ck_assert_msg(set(OPTION_KEY_PREFIX, value) ==
                          (byte > ' ' && byte <= '~'),
                      "byte %d", byte);
    }
    memset(text, 'x', sizeof text);
    text[CONFIG_PREFIX_MAX + 1] = '\0';
    ck_assert(!set(OPTION_KEY_PREFIX, text));
    text[CONFIG_PREFIX_MAX] = '\0';
    expect(OPTION_KEY_PREFIX, text);
    ck_assert_str_eq(config.key_prefix, text);
    ck_assert_str_eq(printed(OPTION_KEY_PREFIX), text);
}

/* A resource could make it whole. */
TEST(a_prefix_does_not_end_as_our_own_keys_begin)
{
    static const char name[] = "redlockd:";
    for (size_t len = 1; len < sizeof name; len++) {
        char value[32];
        snprintf(value, sizeof value, "a:%.*s", (int)len, name);
        ck_assert_msg(!set(OPTION_KEY_PREFIX, value), "%s", value);
        ck_assert_msg(!set(OPTION_KEY_PREFIX, value + 2), "%s", value + 2);
        snprintf(value, sizeof value, "%.*sx", (int)len, name);
        ck_assert_msg(set(OPTION_KEY_PREFIX, value) == (len < sizeof name - 1),
                      "%s", value);
    }
    expect(OPTION_KEY_PREFIX, "Redlockd:");
    expect(OPTION_KEY_PREFIX, "redlock:");
    expect(OPTION_KEY_PREFIX, "redlockd;");
    expect(OPTION_KEY_PREFIX, "redlockd-");
    expect(OPTION_KEY_PREFIX, "r:");
    ck_assert(!set(OPTION_KEY_PREFIX, "my-redlockd"));
}

TEST(where_to_listen_is_a_host_and_a_port)
{
    expect(OPTION_LISTEN, "[::1]:80");
    ck_assert_str_eq(config.listen_host, "::1");
    ck_assert_int_eq(config.listen_port, 80);
    ck_assert_str_eq(printed(OPTION_LISTEN), "[::1]:80");
    refuse(OPTION_LISTEN, "h",
           "\"h\" is not valid: the port is missing; it must be host:port, as "
           "in 127.0.0.1:8080");
}

TEST(nodes_stand_one_behind_the_other)
{
    expect(OPTION_NODES, " a,\tb:7\r\nredis://:p@c/3,,");
    ck_assert_int_eq(config.nodes_count, 3);
    ck_assert_str_eq(config.nodes[1].name, "b:7");
    ck_assert_str_eq(printed(OPTION_NODES), "a:6379,b:7,redis://:***@c:6379/3");
    expect(OPTION_NODES, "a,b,c,d,e,f,g,h,i");
    ck_assert_int_eq(config.nodes_count, NODES_MAX);
    refuse(OPTION_NODES, "a,b,c,d,e,f,g,h,i,j",
           "more than 9 nodes; give 1 to 9");
    refuse(OPTION_NODES, "a,b,c,B",
           "node 4 is the same server as node 2; each must be a separate "
           "master");
    refuse(OPTION_NODES, " , ",
           "no node given; want host:port, "
           "redis://user:password@host:port/db, "
           "rediss://user:password@host:port/db for TLS, or "
           "unix:///path?db=n; each may begin with name=");
}

/* The name is what all servers agree on; the address may change. */
TEST(nodes_have_names_apart_from_their_addresses)
{
    expect(OPTION_NODES, "a=10.0.0.1,b=redis://u:x=y@h:7/2,h:1=[::1]:2,h:3,"
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
    ck_assert_str_eq(printed(OPTION_NODES),
                     "a=10.0.0.1:6379,b=redis://u:***@h:7/2,h:1=[::1]:2,h:3,"
                     "s=unix:///r?db=1");
    refuse(OPTION_NODES, "a=h:1,b=h:2,a=h:3",
           "node 3 has the name of node 1; each needs a name of its own");
    refuse(OPTION_NODES, "h:1=h:2,h:1",
           "node 2 has the name of node 1; each needs a name of its own");
    refuse(OPTION_NODES, "a=h:1,b=h:1",
           "node 2 is the same server as node 1; each must be a separate "
           "master");
}

/* ---- errors -------------------------------------------------------------- */

TEST(an_error_is_one_line_and_names_its_origin)
{
    snprintf(reader.origin, sizeof reader.origin, "--log-level");
    refuse(OPTION_LOG_LEVEL, "a\nb\x1b\x7f",
           "--log-level: \"a?b??\" is not valid; it must be debug, info, warn, "
           "error or off");
}

TEST(a_long_value_is_cut)
{
    char value[4096], said[CONFIG_ERROR_MAX];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    snprintf(said, sizeof said, "\"%.80s\" is not valid; it must be on or off",
             value);
    refuse(OPTION_AUDIT_READS, value, said);
    ck_assert(!option_refuse(&reader, "%s", value));
    ck_assert_uint_lt(strlen(error), CONFIG_ERROR_MAX);
    ck_assert_uint_gt(strlen(error), CONFIG_ERROR_MAX / 2);
}
