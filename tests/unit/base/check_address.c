/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../server/base/address.h"
#include "../../lib/suite/suite.h"

static struct address_node node;

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

static const struct {
    const char *text, *host, *user, *password, *name;
    int port, db;
} nodes[] = {
    {"redis-1", "redis-1", "", "", "redis-1:6379", 6379, 0},
    {"10.0.0.1:7001", "10.0.0.1", "", "", "10.0.0.1:7001", 7001, 0},
    {"127.1:7001", "127.1", "", "", "127.1:7001", 7001, 0},
    {"h:1", "h", "", "", "h:1", 1, 0},
    {"h:65535", "h", "", "", "h:65535", 65535, 0},
    {"h:00080", "h", "", "", "h:80", 80, 0},
    {"[::1]:6380", "::1", "", "", "[::1]:6380", 6380, 0},
    {"[fe80::1%eth0]", "fe80::1%eth0", "", "", "[fe80::1%eth0]:6379", 6379, 0},
    {"[fe80::1%en-0.1_a]", "fe80::1%en-0.1_a", "", "",
     "[fe80::1%en-0.1_a]:6379", 6379, 0},
    {"[0123:4567:89ab:cdef:0123:4567:123.123.123.123]:7",
     "0123:4567:89ab:cdef:0123:4567:123.123.123.123", "", "",
     "[0123:4567:89ab:cdef:0123:4567:123.123.123.123]:7", 7, 0},
    {"redis://h", "h", "", "", "h:6379", 6379, 0},
    {"redis://h/", "h", "", "", "h:6379", 6379, 0},
    {"redis://h/65535", "h", "", "", "h:6379", 6379, 65535},
    {"redis://h:7/10", "h", "", "", "h:7", 7, 10},
    {"redis://:p@h", "h", "", "p", "h:6379", 6379, 0},
    {"redis://:p@h:1/2", "h", "", "p", "h:1", 1, 2},
    {"redis://u:p@h:9/3", "h", "u", "p", "h:9", 9, 3},
    {"redis://u:p%40%2f%3A:@[::1]", "::1", "u", "p@/::", "[::1]:6379", 6379, 0},
    {"redis://u:a@b@h", "h", "u", "a@b", "h:6379", 6379, 0},
    /* nobody's name changes when TLS is switched on */
    {"rediss://h", "h", "", "", "h:6379", 6379, 0},
    {"rediss://u:p%40@[::1]:7/2", "::1", "u", "p@", "[::1]:7", 7, 2},
    {"unix:///run/r%20s.sock", "/run/r s.sock", "", "",
     "unix:///run/r%20s.sock", 0, 0},
    {"unix:///r?db=0", "/r", "", "", "unix:///r", 0, 0},
    {"unix://u:p@/r?db=3", "/r", "u", "p", "unix:///r", 0, 3},
    {"unix://:p:q@/r", "/r", "", "p:q", "unix:///r", 0, 0},
    /* a name is told in JSON */
    {"unix:///r%23;&", "/r#;&", "", "", "unix:///r%23;&", 0, 0},
    {"redis://:a;b&c|d@h", "h", "", "a;b&c|d", "h:6379", 6379, 0},
    {"redis://:\"p'@h", "h", "", "\"p'", "h:6379", 6379, 0},
    {"a--b.c-1.example.:7", "a--b.c-1.example.", "", "", "a--b.c-1.example.:7",
     7, 0},
    {"1-2.3a", "1-2.3a", "", "", "1-2.3a:6379", 6379, 0},
    {"unix:///%ff%2F%25%3f", "/\xff/%?", "", "", "unix:///%ff/%25%3f", 0, 0},
    {"unix:///%09%0a%0F%f0%A9%9f%01%10", "/\x09\x0a\x0f\xf0\xa9\x9f\x01\x10",
     "", "", "unix:///%09%0a%0f%f0%a9%9f%01%10", 0, 0},
};

TEST_EACH(an_address_is_read, nodes)
{
    allow(nodes[_i].text);
    ck_assert_str_eq(node.host, nodes[_i].host);
    ck_assert_str_eq(node.user, nodes[_i].user);
    ck_assert_str_eq(node.password, nodes[_i].password);
    ck_assert_str_eq(node.name, nodes[_i].name);
    ck_assert_int_eq(node.port, nodes[_i].port);
    ck_assert_int_eq(node.db, nodes[_i].db);
    ck_assert_int_eq(node.is_unix, nodes[_i].host[0] == '/');
    ck_assert_int_eq(node.is_tls, strncmp(nodes[_i].text, "rediss", 6) == 0);
}

/* A word of the reason, and what is refused for it, with blanks in between. The
 * first sign that is wrong is blamed; other schemes are, whatever follows. */
static const char *const bad[][2] = {
    {"port", "h:0 h:65536 h:000080 h: h:6379x [::1]7 [::1]:"},
    {"database", "h:1/ redis://h/65536 redis://h/x unix:///r?db="},
    {"redis://host:port/n", "h:1/2 redis:/h"},
    {"after ? or #",
     "h:1?db=2 redis://h:1?db=2 redis://h:1/2?ssl_cert_reqs=none "
     "rediss://u:p@h:1/2#insecure "
     "redis://h1:6379/0?password=x&ssl=true rediss://h#a;b "
     "h:1?a=1&b=2"},
    {"%3F", "redis://h:1?password=p@x"},
    {"%23", "redis://:p#q@h"},
    {"comma", "h:1;i:2 h:1&i:2 redis://h:1;redis://i:2 h:1;i:2?x=1 "
              "h:1;redis://i:2 redis://:p@h:1;redis://:p@i:2 "
              "unix:///s;unix:///t"},
    {"more than one colon", "h:6379:0"},
    {"brackets", "h:1: ::1"},
    {"db=n", "unix:///r? unix:///r?d=1"},
    {"missing", "[]:7 redis:// rediss:///r.sock"},
    {"IPv6", "[00000:4567:89ab:cdef:0123:4567:123.123.123.123]:7 [1.2.3.4] "
             "[%eth0] [fe80::1%] [fe80::1%\xff]:1 [fe80::1%a\x1b[31m]:1 "
             "[fe80::1%a%b]"},
    {"]", "[::1"},
    {"percent", "unix:///% unix:///a%00b redis://u:%zz@h redis://%zz:p@h"},
    {"user:password", "redis://u@h redis://u:@h unix://u@/r"},
    {"%2F", "redis://u:p/w@h"},
    {"redis:// or rediss://", "u:p@h"},
    {"absolute path", "unix:// unix://r"},
    {"only redis", "redisss://h rediss+srv://h "
                   "redis-sentinel://p@h:26379/0#mymaster tcp://h:1?auth=x&y=z "
                   "tcp://h"},
    {"must not begin with -", "-a -aS&CRET --host=h:1 redis://-h:1 n=-h:1"},
    {"begin or end with -", "h-:1 a.-b"},
    {"between two dots", "a..b .a a.. ."},
    {"IPv4", "6379 10.0.0.256:1 redis://h.1"},
    {"another client", "port password:1234 redis-cli"},
    {"quotes", "\"h:1\" redis://:p@h:1' n=\"h:1\" \"n=h:1 [\"h:1\"] "
               "{\"host\":\"h\"}"},
    {"not a list", "[h:1"},
    {"comment", "#h:1"},
    {"unix:///run", "/run/redis.sock unix:/run/redis.sock"},
    {"only ?db=n", "unix:///s?db=0&password=x unix:///s?db=0#x unix:///s#0"},
};

TEST_EACH(any_other_is_refused_with_a_reason, bad)
{
    struct span rest = span_of(bad[_i][1]);
    while (rest.len > 0) {
        struct span one = span_take(&rest, ' ');
        refuse(textf("%.*s", (int)one.len, one.ptr), bad[_i][0]);
    }
    refuse("", "missing");
}

/* What follows host:port in the connection strings of other clients: a password
 * is no node, and must not be shown as the address of one. */
static const char options[] =
    "password=hunter2 password=hunter2:77 Password=hunter2 "
    "pwd=hunter2:1 pass=x:1 passwd=x:1 auth=x:1 token=x:1 accessKey=x:1 "
    "access_key=x:1 secret=x:1 ssl=True ssl=redis.x:6380 tls=true:1 "
    "user=app:1 username=app:1 name=app:1 defaultDatabase=0:1 "
    "abortConnect=False db=0 syncTimeout=5000:1 sslHost=redis.x:1 "
    "ssl-host=redis.x:1 host=h1:6379 port=hunter2:1 url=redis://:hunter2@h "
    "REDIS_PASSWORD=hunter2:1 redis-passwd=hunter2:1 "
    "REDISCLI_AUTH=hunter2:1 client_secret=hunter2:1 "
    "REDLOCKD_NODES=h1:6379 requirepass=hunter2:1";

TEST(an_option_of_another_client_is_no_node)
{
    struct span rest = span_of(options);
    while (rest.len > 0) {
        struct span option = span_take(&rest, ' ');
        const char *text = textf("%.*s", (int)option.len, option.ptr);
        const char *reason = address_parse_node(text, &node);
        ck_assert_msg(reason != NULL, "accepted: %s", text);
        ck_assert_msg(strstr(reason, "hunter2") == NULL, "%s", reason);
    }
}

TEST(a_node_with_a_name_has_its_port)
{
    refuse("a=10.0.0.1", "name=host:port");
    refuse("a=[::1]", "name=host:port");
    allow("a=10.0.0.1:6379");
    allow("a=[::1]:1");
    allow("a=redis://10.0.0.1");
    ck_assert_int_eq(node.port, 6379);
    allow("a=unix:///r");
    allow("name-1=h:1");
    allow("h:1=h:2");
}

/* ---- characters and lengths ---------------------------------------------- */

TEST(a_host_has_letters_digits_and_three_signs)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    for (int byte = 1; byte <= 255; byte++) {
        char text[] = {'x', (char)byte, 'y', '\0'};
        bool is_allowed = strchr(allowed, byte) != NULL;
        if (byte == ':' || byte == '=') /* begin a port, end a name */
            continue;
        ck_assert_msg((address_parse_node(text, &node) == NULL) == is_allowed,
                      "byte %d", byte);
    }
}

TEST(a_name_has_letters_digits_and_six_signs)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-:[]";
    for (int byte = 1; byte <= 255; byte++) {
        char text[] = {(char)byte, 'y', '=', 'h', ':', '1', '\0'};
        bool is_allowed = strchr(allowed, byte) != NULL && byte != '-';
        ck_assert_msg((address_parse_node(text, &node) == NULL) == is_allowed,
                      "byte %d", byte);
    }
    allow("y-=h:1");
    refuse("=h:1", "a name has 1 to 255");
    allow(fill("", 255, "=h:1"));
    ck_assert_uint_eq(strlen(node.name), 255);
    refuse(fill("", 256, "=h:1"), "a name has 1 to 255");
}

TEST(a_host_is_as_long_as_a_name_may_be)
{
    allow(fill("", ADDRESS_HOST_MAX, ":7"));
    ck_assert_uint_eq(strlen(node.host), ADDRESS_HOST_MAX);
    ck_assert_uint_eq(strlen(node.name), ADDRESS_HOST_MAX + 2);
    refuse(fill("", ADDRESS_HOST_MAX + 1, ":7"), "255");
    refuse(fill("[", ADDRESS_HOST_MAX + 1, "]"), "255");
    refuse(fill("[", 100, "%eth0]"), "IPv6");
}

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
}

TEST(user_and_password_have_room_for_their_decoded_bytes)
{
    char user[ADDRESS_HOST_MAX + 1];
    memset(user, 'a', ADDRESS_HOST_MAX);
    user[ADDRESS_HOST_MAX] = '\0';
    allow(fill("redis://", ADDRESS_HOST_MAX, ":p@h"));
    ck_assert_str_eq(node.user, user);
    ck_assert_str_eq(node.password, "p");
    refuse(fill("redis://", ADDRESS_HOST_MAX + 1, ":p@h"), "255");
    allow(fill("redis://:", ADDRESS_SECRET_MAX, "@h"));
    ck_assert_uint_eq(strlen(node.password), ADDRESS_SECRET_MAX);
    refuse(fill("redis://:", ADDRESS_SECRET_MAX + 1, "@h"), "511");
    allow(fill("redis://:%41", ADDRESS_SECRET_MAX - 1, "@h"));
    ck_assert_uint_eq(strlen(node.password), ADDRESS_SECRET_MAX);
}

TEST(a_socket_has_a_path_that_the_system_takes)
{
    allow(fill("unix:///", 106, ""));
    ck_assert_uint_eq(strlen(node.host), 107);
    refuse(fill("unix:///", 107, ""), "107");
    refuse(fill("unix:///", 300, ""), "107");
}

TEST(an_address_has_an_end)
{
    refuse(fill("redis://:", 1900, "@"), "511");
    refuse(fill("redis://:", 3000, "@"), "too long");
    refuse(fill("", 1900, ""), "255");
    refuse(fill("redis://:", 1900, ""), "host is missing");
    refuse(fill("unix:///", 1900, ""), "107");
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
    {"redis://h", "rediss://h", true},
    {"h:1", "h:2", false},
    {"h", "i", false},
    {"unix:///r", "unix://:p@/r?db=3", true},
    {"unix:///r", "unix:///R", false},
    {"[::1]:7", "[::1]:7", true},
    {"[::1]:7", "h:7", false},
};

TEST_EACH(one_server_may_have_several_addresses, pairs)
{
    struct address_node other;
    allow(pairs[_i].a);
    other = node;
    allow(pairs[_i].b);
    ck_assert_int_eq(address_is_same(&node, &other), pairs[_i].is_same);
    ck_assert_int_eq(address_is_same(&other, &node), pairs[_i].is_same);
}

TEST(a_socket_is_no_host)
{
    struct address_node socket;
    allow("unix:///r");
    socket = node;
    node.is_unix = false;
    ck_assert(!address_is_same(&node, &socket));
}

/* ---- hosts of this machine --------------------------------------------- */

static const struct {
    const char *host;
    bool is_loopback;
} hosts[] = {
    {"127.0.0.1", true},    {"127.255.0.9", true}, {"::1", true},
    {"localhost", true},    {"0.0.0.0", false},    {"::", false},
    {"10.0.0.5", false},    {"128.0.0.1", false},  {"::2", false},
    {"127.example", false}, {"", false},
};

TEST_EACH(loopback_is_told_from_elsewhere, hosts)
{
    ck_assert_msg(address_is_loopback(hosts[_i].host) == hosts[_i].is_loopback,
                  "%s", hosts[_i].host);
}

/* ---- hosts -------------------------------------------------------------- */

GROUP(hosts);

static const struct {
    const char *list;
    bool is_valid;
} host_lists[] = {
    {"", true},          {"a", true},    {"a.b,c-d,.e", true},
    {"[::1],::1", true}, {"a,", false},  {",a", false},
    {"a,,b", false},     {".", false},   {"a b", false},
    {"a/b", false},      {"a*", false},  {"*", false},
    {"http://a", false}, {"a@b", false},
};

TEST_EACH(a_list_has_names_only, host_lists)
{
    ck_assert(hosts_are_valid(host_lists[_i].list) == host_lists[_i].is_valid);
}

static const struct {
    const char *list, *host;
    bool is_there;
} listed_hosts[] = {
    {"", "a", false},           {"", "", false},
    {"a.b", "a.b", true},       {"a.b", "A.B", true},
    {"a.b,c", "c", true},       {"a.b,c", "a.b,c", false},
    {"a.b", "a.bc", false},     {"a.b", "x.a.b", false},
    {".b.c", "a.b.c", true},    {".b.c", "z.a.b.c", true},
    {".b.c", "ab.c", false},    {".b.c", "b.c", false},
    {".b.c", "a.b.c.d", false},
};

TEST_EACH(a_host_is_in_the_list_or_not, listed_hosts)
{
    ck_assert(
        hosts_have(listed_hosts[_i].list, span_of(listed_hosts[_i].host)) ==
        listed_hosts[_i].is_there);
}

/* ---- networks ----------------------------------------------------------- */

GROUP(networks);

static const char *const networks[] = {"", "192.0.2.1",
                                       "10.0.0.0/8,2001:db8::/32,::1",
                                       "0.0.0.0/0,::/0", "10.0.0.0/32,::1/128"};
static const char *const no_networks[] = {
    "10.0.0.0/33", "::1/129",       "10.0.0.0/",
    "10.0.0.0/-1", "10.0.0.0/0008", "10.0.0/8",
    "localhost",   "[::1]",         "10.0.0.1:80",
    "10.0.0.1,",   ",10.0.0.1",     "10.0.0.1, 10.0.0.2",
    "/8"};

TEST_EACH(a_list_has_networks, networks)
{
    ck_assert(networks_are_valid(networks[_i]));
}

TEST_EACH(nothing_else_is_a_network, no_networks)
{
    ck_assert(!networks_are_valid(no_networks[_i]));
}

/* A list, and an address behind a blank. */
static const char *const within[] = {"10.0.0.1 10.0.0.1",
                                     "10.0.0.0/8 10.255.255.255",
                                     "10.0.0.0/9 10.127.0.1",
                                     "10.1.2.3/8 10.0.0.1",
                                     "0.0.0.0/0 203.0.113.9",
                                     "::/0 2001:db8::1",
                                     "10.0.0.0/8 ::ffff:10.0.0.1",
                                     "::ffff:10.0.0.0/104 10.0.0.1",
                                     "2001:db8::/32 2001:db8:ffff::1",
                                     "192.0.2.0/24,::1 ::1",
                                     "192.0.2.0/24,::1 0:0:0:0:0:0:0:1"};
static const char *const outside[] = {" 10.0.0.1",
                                      "10.0.0.1 10.0.0.2",
                                      "10.0.0.0/8 11.0.0.0",
                                      "10.0.0.0/9 10.128.0.1",
                                      "0.0.0.0/0 2001:db8::1",
                                      "2001:db8::/32 2001:db9::1",
                                      "192.0.2.0/24 192.0.2.1:80",
                                      "192.0.2.0/24 ",
                                      "192.0.2.0/24 unknown"};

static bool has_address(const char *line)
{
    struct span address = span_of(line);
    struct span list = span_take(&address, ' ');
    return networks_have(textf("%.*s", (int)list.len, list.ptr), address);
}

TEST_EACH(an_address_is_in_one_of_them, within)
{
    ck_assert(has_address(within[_i]));
}

TEST_EACH(or_in_none, outside)
{
    ck_assert(!has_address(outside[_i]));
}

static const struct {
    const char *text, *address; /* NULL: it has none */
} texts[] = {
    {"192.0.2.1", "192.0.2.1"},
    {"192.0.2.1:80", "192.0.2.1"},
    {"2001:db8::1", "2001:db8::1"},
    {"[2001:db8::1]", "2001:db8::1"},
    {"[2001:db8::1]:80", "2001:db8::1"},
    {"", NULL},
    {"[", NULL},
    {"[]", NULL},
    {":80", NULL},
    {"unknown", NULL},
    {"_hidden", NULL},
    {"example.com", NULL},
    {"fe80::1%eth0", NULL},
    {"192.0.2.1\n", NULL},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", NULL},
};

TEST_EACH(an_address_may_have_a_port, texts)
{
    struct span address;
    bool is_there = networks_read_address(span_of(texts[_i].text), &address);
    ck_assert(is_there == (texts[_i].address != NULL));
    if (is_there)
        ck_assert(span_is(address, texts[_i].address));
}

/* ---- peer --------------------------------------------------------------- */

static int bind_loopback(int fd, int family)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof in6;
    if (family == AF_INET)
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    else if (bind(fd, (struct sockaddr *)&in6, sizeof in6) != 0)
        return 0; /* this machine has no IPv6 */
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in6, &len), 0);
    return ntohs(in6.sin6_port); /* at the same place in both */
}

static const struct {
    int family;
    const char *form;
} families[] = {{AF_INET, "127.0.0.1:%d"}, {AF_INET6, "[::1]:%d"}};

GROUP(peer);

TEST_RANGE(the_other_end_is_told, 0, 2)
{
    char text[PEER_MAX];
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    int listener = socket(families[_i].family, SOCK_STREAM, 0);
    if (listener < 0)
        return; /* as below */
    if (bind_loopback(listener, families[_i].family) == 0) {
        close(listener);
        return;
    }
    int client = socket(families[_i].family, SOCK_STREAM, 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    int port = bind_loopback(client, families[_i].family);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&at, len), 0);
    int fd = accept(listener, NULL, NULL);
    peer_describe(text, fd);
    ck_assert_str_eq(text, textf(families[_i].form, port));
    close(fd);
    close(client);
    close(listener);
}

TEST(what_has_no_address_has_no_text)
{
    char text[PEER_MAX] = "before";
    int ends[2];
    peer_describe(text, -1);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    peer_describe(text, ends[0]);
    ck_assert_str_eq(text, "");
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    peer_describe(text, fd);
    ck_assert_str_eq(text, "");
}
