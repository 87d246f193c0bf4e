/*
 * Addresses: how long each part may be, which characters it may have, and when
 * two are one server. More forms are in check_config.c.
 */
#include <stdio.h>
#include <string.h>

#include "../../../server/base/address.h"
#include "../../lib/suite/suite.h"

static struct config_node node;

static void allow(const char *text)
{
    const char *reason = address_parse_node(text, &node);
    ck_assert_msg(reason == NULL, "%s: %s", text, reason);
}

/* For a reason with this part. */
static void refuse(const char *text, const char *part)
{
    const char *reason = address_parse_node(text, &node);
    ck_assert_msg(reason != NULL, "accepted: %s", text);
    ck_assert_msg(strstr(reason, part) != NULL, "%s: %s", text, reason);
}

/* front, so many times 'a', behind. */
static const char *fill(const char *front, size_t count, const char *behind)
{
    static char text[4096];
    size_t len = strlen(front);
    ck_assert_uint_lt(len + count + strlen(behind), sizeof text);
    snprintf(text, sizeof text, "%s", front);
    memset(text + len, 'a', count);
    snprintf(text + len + count, sizeof text - len - count, "%s", behind);
    return text;
}

SUITE(address);

/* ---- numbers ------------------------------------------------------------- */

TEST(ports_and_databases_have_their_ends)
{
    allow("h:1");
    ck_assert_int_eq(node.port, 1);
    allow("h:65535");
    ck_assert_int_eq(node.port, 65535);
    allow("h:00080");
    ck_assert_int_eq(node.port, 80);
    refuse("h:0", "port");
    refuse("h:65536", "port");
    refuse("h:000080", "port");
    refuse("h:1/", "port");
    refuse("h:1:", "brackets");
    allow("redis://h/65535");
    ck_assert_int_eq(node.db, 65535);
    allow("redis://h:7/10");
    ck_assert_int_eq(node.port, 7);
    ck_assert_int_eq(node.db, 10);
    refuse("redis://h/65536", "database");
    refuse("redis://h/-1", "database");
    allow("unix:///r?db=0");
    ck_assert_int_eq(node.db, 0);
    refuse("unix:///r?db=", "database");
    refuse("unix:///r?", "db=n");
}

/* ---- hosts --------------------------------------------------------------- */

TEST(a_host_has_letters_digits_and_three_signs)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    for (int byte = 1; byte <= 255; byte++) {
        char text[] = {'x', (char)byte, 'y', '\0'};
        bool is_allowed = strchr(allowed, byte) != NULL;
        if (byte == ':') /* which begins a port */
            continue;
        ck_assert_msg((address_parse_node(text, &node) == NULL) == is_allowed,
                      "byte %d", byte);
    }
}

TEST(a_host_is_as_long_as_a_name_may_be)
{
    allow(fill("", CONFIG_HOST_MAX, ":7"));
    ck_assert_uint_eq(strlen(node.host), CONFIG_HOST_MAX);
    ck_assert_uint_eq(strlen(node.name), CONFIG_HOST_MAX + 2);
    refuse(fill("", CONFIG_HOST_MAX + 1, ":7"), "255");
    refuse(fill("[", CONFIG_HOST_MAX + 1, "]"), "255");
    refuse("", "missing");
    refuse(":7", "missing");
    refuse("[]:7", "missing");
}

TEST(what_stands_in_brackets_is_an_address_of_ipv6)
{
    allow("[0123:4567:89ab:cdef:0123:4567:123.123.123.123]:7");
    ck_assert_str_eq(node.host,
                     "0123:4567:89ab:cdef:0123:4567:123.123.123.123");
    ck_assert_int_eq(node.port, 7);
    allow("[fe80::1%en-0.1_a]");
    ck_assert_str_eq(node.host, "fe80::1%en-0.1_a");
    ck_assert_int_eq(node.port, 6379);
    refuse("[00000:4567:89ab:cdef:0123:4567:123.123.123.123]:7", "IPv6");
    refuse("[1.2.3.4]", "IPv6");
    refuse("[%eth0]", "IPv6");
    refuse("[fe80::1%]", "IPv6");
    refuse("[fe80::1%a%b]", "IPv6");
    refuse(fill("[", 100, "%eth0]"), "IPv6");
    refuse("[::1", "]");
    refuse("[::1]7", "port");
    refuse("[::1]:", "port");
    refuse("::1", "brackets");
}

/* ---- percent-encoding ---------------------------------------------------- */

TEST(an_escape_is_two_hex_digits)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    for (int byte = 1; byte <= 255; byte++) {
        char low[] = "unix:///r%1?", high[] = "unix:///r%?1";
        bool is_hex = strchr(hex, byte) != NULL;
        if (byte == '?' || byte == '@') /* the path ends there or begins */
            continue;
        low[11] = high[10] = (char)byte;
        ck_assert_msg((address_parse_node(low, &node) == NULL) == is_hex,
                      "byte %d behind", byte);
        ck_assert_msg((address_parse_node(high, &node) == NULL) == is_hex,
                      "byte %d in front", byte);
    }
    allow("unix:///%09%0a%0F%f0%A9%9f%01%10");
    ck_assert_str_eq(node.host, "/\x09\x0a\x0f\xf0\xa9\x9f\x01\x10");
    refuse("unix:///%", "percent");
    refuse("unix:///%4", "percent");
    refuse("unix:///a%00b", "percent");
}

TEST(user_and_password_have_room_for_their_decoded_bytes)
{
    char user[CONFIG_HOST_MAX + 1];
    memset(user, 'a', CONFIG_HOST_MAX);
    user[CONFIG_HOST_MAX] = '\0';
    allow(fill("redis://", CONFIG_HOST_MAX, ":p@h"));
    ck_assert_str_eq(node.user, user);
    ck_assert_str_eq(node.password, "p");
    refuse(fill("redis://", CONFIG_HOST_MAX + 1, ":p@h"), "255");
    allow(fill("redis://:", CONFIG_SECRET_MAX, "@h"));
    ck_assert_uint_eq(strlen(node.password), CONFIG_SECRET_MAX);
    refuse(fill("redis://:", CONFIG_SECRET_MAX + 1, "@h"), "511");
    allow(fill("redis://:%41", CONFIG_SECRET_MAX - 1, "@h"));
    ck_assert_uint_eq(strlen(node.password), CONFIG_SECRET_MAX);
    refuse("redis://u:%zz@h", "percent");
    refuse("redis://%zz:p@h", "percent");
}

TEST(what_stands_before_the_at_is_a_user_and_a_password)
{
    refuse("redis://u@h", "user:password");
    refuse("redis://u:@h", "user:password");
    refuse("redis://@h", "user:password");
    refuse("redis://u:p/w@h", "%2F");
    refuse("unix://u@/r", "user:password");
    refuse("u:p@h", "redis://");
    allow("redis://:p@h");
    ck_assert_str_eq(node.user, "");
    allow("redis://u:p@h:9/3");
    ck_assert_str_eq(node.user, "u");
    ck_assert_str_eq(node.name, "h:9");
    allow("unix://:p:q@/r");
    ck_assert_str_eq(node.password, "p:q");
}

TEST(a_socket_has_a_path_that_the_system_takes)
{
    allow(fill("unix:///", 106, ""));
    ck_assert_uint_eq(strlen(node.host), 107);
    refuse(fill("unix:///", 107, ""), "107");
    refuse(fill("unix:///", 300, ""), "107");
    refuse("unix://", "absolute");
    refuse("unix://r", "absolute");
    refuse("unix:///r?d=1", "db=n");
    refuse("redisss://h", "only redis");
    refuse("tcp://h", "only redis");
}

TEST(an_address_has_an_end)
{
    refuse(fill("redis://:", 1900, "@"), "511");
    refuse(fill("redis://:", 3000, "@"), "too long");
}

TEST(what_no_url_may_hold_is_escaped)
{
    char out[64];
    address_escape(out, sizeof out, "a!~ %\x7f\xff\n,b", "!,");
    ck_assert_str_eq(out, "a%21~%20%25%7f%ff%0a%2cb");
    address_escape(out, sizeof out, "", "");
    ck_assert_str_eq(out, "");
    address_escape(out, 7, "  ", ""); /* as long as it may get */
    ck_assert_str_eq(out, "%20%20");
    memset(out, 'x', sizeof out);
    address_escape(out, 8, "   ", "");
    ck_assert_str_eq(out, "%20%20");
    ck_assert_int_eq(out[8], 'x');
}

/* ---- one server ---------------------------------------------------------- */

static const struct {
    const char *a, *b;
    bool is_same;
} pairs[] = {
    {"h", "H:6379", true},
    {"redis://u:p@h/1", "h", true},
    {"h:1", "h:2", false},
    {"h", "i", false},
    {"unix:///r", "unix://:p@/r?db=3", true},
    {"unix:///r", "unix:///R", false},
    {"[::1]:7", "[::1]:7", true},
    {"[::1]:7", "h:7", false},
};

TEST_RANGE(one_server_may_have_several_addresses, 0,
           sizeof pairs / sizeof *pairs)
{
    struct config_node other;
    allow(pairs[_i].a);
    other = node;
    allow(pairs[_i].b);
    ck_assert_int_eq(address_is_same(&node, &other), pairs[_i].is_same);
    ck_assert_int_eq(address_is_same(&other, &node), pairs[_i].is_same);
}

TEST(a_socket_is_no_host)
{
    struct config_node socket;
    allow("unix:///r");
    socket = node;
    node.is_unix = false;
    ck_assert(!address_is_same(&node, &socket));
}
