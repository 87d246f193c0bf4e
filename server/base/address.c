/* SPDX-License-Identifier: MIT */
/*
 * Addresses: host:port, redis:// and unix:// URLs (RFC 3986 userinfo).
 *
 * Reasons are static texts: an address may hold a password, so no part of it is
 * ever repeated.
 */
#include "address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "encoding.h"

enum {
    REDIS_PORT = 6379,
    PORT_MAX = 65535,
    DB_MAX = 65535,
    DIGITS = 5, /* of either */
    TEXT_MAX = 2048,
    NAME_MAX_LEN = 255,
};

static const char port_reason[] = "the port must be 1 to 65535";
static const char options_reason[] = "options after ? or # are not supported; "
                                     "write a database as redis://host:port/n";

static const char separator_reason[] = "separate nodes by a comma or a space";
static const char dash_reason[] =
    "a host or a name must not begin with -; leave out list bullets and a "
    "command's options";
static const char quotes_reason[] =
    "an address contains no quotes; leave out the quotes around it, and the "
    "brackets of a list";
static const char dots_reason[] =
    "a host must have letters or digits between two dots, and before a dot";
static const char option_reason[] =
    "this is part of another client's command or connection string, not a node";

static const char *parse_port(const char *text, int *port)
{
    int64_t value = span_number(span_of(text), DIGITS);
    if (value < 1 || value > PORT_MAX)
        return port_reason;
    *port = (int)value;
    return NULL;
}

static bool is_host_name(const char *text)
{
    return span_has_only(span_of(text), "._-");
}

/* An IPv6 address, possibly with a zone: fe80::1%eth0. */
static bool is_ipv6(const char *text)
{
    char bare[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    size_t len = strcspn(text, "%");
    const char *zone = text + len;
    if (len >= sizeof bare || strcmp(zone, "%") == 0 ||
        (*zone && !is_host_name(zone + 1)))
        return false;
    memcpy(bare, text, len);
    bare[len] = '\0';
    return inet_pton(AF_INET6, bare, &ignored) == 1;
}

/* Also in short, as resolvers take it: 127.1. A number alone is a port. */
static bool is_address(const char *host)
{
    struct in_addr ignored;
    return strchr(host, '.') != NULL && inet_aton(host, &ignored) != 0;
}

/*
 * Why the name of a host is none (RFC 1123 section 2.1), or NULL. Some
 * resolvers take "6379" for 0.0.24.235: what ends with a number is an address.
 */
static const char *find_wrong_host(const char *host)
{
    struct span rest = span_of(host);
    struct span label;
    if (*host == '-')
        return dash_reason;
    if (!is_host_name(host))
        return "a host has only letters, digits and . _ -";
    if (rest.ptr[rest.len - 1] == '.') /* of the root */
        rest.len--;
    if (rest.len == 0 || rest.ptr[rest.len - 1] == '.')
        return dots_reason;
    do {
        label = span_take(&rest, '.');
        if (label.len == 0)
            return dots_reason;
        if (label.ptr[0] == '-' || label.ptr[label.len - 1] == '-')
            return "a part of a host must not begin or end with -";
    } while (rest.len > 0);
    if (strspn(label.ptr, "0123456789") >= label.len && !is_address(host))
        return "a host that ends with a number must be an IPv4 address, as in "
               "10.0.0.1; write a port after a colon";
    return NULL;
}

/* Copies the host, the first len bytes of text. */
static const char *take_host(const char *text, size_t len, char *host)
{
    if (len == 0)
        return "the host is missing";
    if (len > ADDRESS_HOST_MAX)
        return "the host is longer than 255 characters";
    memcpy(host, text, len);
    host[len] = '\0';
    return NULL;
}

static const char *parse_bracketed(const char *text, char *host, int *port)
{
    const char *end = strchr(text, ']');
    if (!end)
        return "the closing ] is missing: brackets hold one IPv6 address, not "
               "a list";
    const char *reason = take_host(text + 1, (size_t)(end - text) - 1, host);
    if (reason)
        return reason;
    if (!is_ipv6(host))
        return "the text in [ ] must be an IPv6 address, not a list";
    if (end[1] == '\0')
        return NULL;
    return end[1] == ':' ? parse_port(end + 2, port) : port_reason;
}

const char *address_parse(const char *text, char host[ADDRESS_HOST_MAX + 1],
                          int *port)
{
    if (*text == '[')
        return parse_bracketed(text, host, port);

    const char *colon = strchr(text, ':');
    if (colon && strchr(colon + 1, ':'))
        return "more than one colon: an IPv6 address needs brackets, as in "
               "[::1]:6379";
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    const char *reason = take_host(text, len, host);
    if (reason)
        return reason;
    reason = find_wrong_host(host);
    if (reason)
        return reason;
    return colon ? parse_port(colon + 1, port) : NULL;
}

/* Percent-decodes text into out. False: bad escape, %00, or too long. */
static bool address_decode(const char *text, char *out, size_t size)
{
    size_t len;
    if (!percent_decode(span_of(text), out, size - 1, &len))
        return false;
    out[len] = '\0';
    return strlen(out) == len;
}

void address_escape(char *out, size_t size, const char *text,
                    const char *special)
{
    size_t len = 0;
    for (; *text && len + 3 < size; text++) {
        bool is_plain = isgraph((unsigned char)*text) && *text != '%' &&
                        !strchr(special, *text);
        len +=
            (size_t)snprintf(out + len, size - len, is_plain ? "%c" : "%%%02x",
                             (unsigned char)*text);
    }
    out[len] = '\0';
}

/* user:password or :password; info is cut at the colon. */
static const char *parse_userinfo(char *info, struct address_node *node)
{
    char *colon = strchr(info, ':');
    if (!colon || colon[1] == '\0')
        return "the text before @ must be user:password or :password";
    *colon = '\0';
    if (!address_decode(info, node->user, sizeof node->user) ||
        !address_decode(colon + 1, node->password, sizeof node->password))
        return "user and password must be percent-encoded, and at most 255 "
               "and 511 bytes long";
    return NULL;
}

/* Splits the userinfo off rest; the authority ends at the first of "/?#". */
static const char *split_userinfo(char **rest, struct address_node *node)
{
    char *at = strrchr(*rest, '@');
    if (!at)
        return NULL;
    *at = '\0';
    char *info = *rest;
    *rest = at + 1;
    if (strstr(info, "://"))
        return separator_reason;
    if (strpbrk(info, "/?#"))
        return "a /, ? or # in the password must be written as %2F, %3F or %23";
    return parse_userinfo(info, node);
}

static const char *parse_db(const char *text, struct address_node *node)
{
    node->db = (int)span_number(span_of(text), DIGITS);
    return node->db < 0 || node->db > DB_MAX ? "the database must be 0 to 65535"
                                             : NULL;
}

/* Why what stands behind a password is no address; the first sign counts. */
static const char *find_stray(const char *text)
{
    const char *sign = strpbrk(text, ";|&?#\"'");
    if (!sign)
        return NULL;
    if (strchr("?#", *sign))
        return options_reason;
    return strchr(";|&", *sign) ? separator_reason : quotes_reason;
}

static const char *parse_redis(char *rest, struct address_node *node)
{
    const char *reason = split_userinfo(&rest, node);
    if (!reason)
        reason = find_stray(rest);
    if (reason)
        return reason;
    char *slash = strchr(rest, '/');
    if (slash)
        *slash = '\0';
    reason = address_parse(rest, node->host, &node->port);
    if (reason || !slash || slash[1] == '\0')
        return reason;
    return parse_db(slash + 1, node);
}

static const char *parse_unix(char *rest, struct address_node *node)
{
    const char *reason = split_userinfo(&rest, node);
    if (reason)
        return reason;
    if (strstr(rest, "://"))
        return separator_reason;
    char *query = strpbrk(rest, "?#");
    bool is_query_wrong =
        query && (strncmp(query, "?db=", 4) != 0 || strpbrk(query, "&#"));
    if (query)
        *query++ = '\0';
    if (*rest != '/')
        return "a socket needs an absolute path, as in unix:///run/redis.sock";
    if (!address_decode(rest, node->host, sizeof node->host) ||
        strlen(node->host) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return "the socket's path must be percent-encoded, and at most 107 "
               "bytes long";
    node->is_unix = true;
    node->port = 0;
    if (is_query_wrong)
        return "only ?db=n may follow the path";
    if (!query)
        return NULL;
    return parse_db(query + 3, node);
}

void address_format(char *out, size_t size, const char *host, int port)
{
    bool is_six = strchr(host, ':') != NULL;
    /* the callers' buffers hold the longest host and port */
    (void)snprintf(out, size, "%s%s%s:%d", is_six ? "[" : "", host,
                   is_six ? "]" : "", port);
}

struct address_query address_query(int port, int flags)
{
    struct address_query query = {
        .hints = {.ai_family = AF_UNSPEC,
                  .ai_socktype = SOCK_STREAM,
                  .ai_flags = AI_NUMERICSERV | flags},
    };
    (void)snprintf(query.port, sizeof query.port, "%d", port);
    return query;
}

/* As .env files, lists of JSON and of YAML have them. */
static bool is_quoted(const char *text)
{
    return strchr("\"'", text[strspn(text, "[{(")]) != NULL &&
           text[strspn(text, "[{(")] != '\0';
}

/*
 * Words of command lines and connection strings, without a = behind them: what
 * follows may be a secret.
 */
static bool is_word_of_others(const char *text)
{
    static const char *const words[] = {
        "auth", "masterauth", "pass",        "passwd",    "password",
        "port", "pwd",        "requirepass", "redis-cli", "valkey-cli",
    };
    size_t len = strcspn(text, ":");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_is_like((struct span){text, len}, span_of(words[i])))
            return true;
    return false;
}

/* Without a scheme. */
static const char *parse_bare(const char *text, struct address_node *node)
{
    if (*text == '#')
        return "a comment is not a node; leave it out";
    if (strchr(text, '@'))
        return "an address with a password must begin with redis:// or "
               "rediss://";
    const char *reason = find_stray(text);
    if (reason)
        return reason;
    if (*text == '/' || strncmp(text, "unix:/", 6) == 0)
        return "write a socket with its scheme, as in unix:///run/redis.sock";
    if (strchr(text, '/'))
        return "only a URL may contain a /; write a database as "
               "redis://host:port/n";
    if (is_word_of_others(text))
        return option_reason;
    return address_parse(text, node->host, &node->port);
}

static const char *parse_forms(char *text, struct address_node *node)
{
    const char *scheme_end = strstr(text, "://");
    if (is_quoted(text))
        return quotes_reason;
    if (strncmp(text, "redis://", 8) == 0)
        return parse_redis(text + 8, node);
    if (strncmp(text, "unix://", 7) == 0)
        return parse_unix(text + 7, node);
    if (strncmp(text, "rediss://", 9) == 0) {
        node->is_tls = true;
        return parse_redis(text + 9, node);
    }
    if (!scheme_end)
        return parse_bare(text, node);
    return text + strcspn(text, ";|&?#") < scheme_end
               ? find_stray(text)
               : "only redis://, rediss:// and unix:// are supported";
}

/* Without - and _; each between two blanks. */
static const char options[] =
    " "
    "abortconnect abortonconnectfail accesskey allowadmin asynctimeout "
    "auth authtoken channelprefix clientname configchannel connectretry "
    "connecttimeout credential credentials database db defaultdatabase "
    "keepalive key name pass passphrase passwd password poolsize prefix "
    "protocol proxy pw pwd resolvedns responsetimeout retry secret "
    "servicename ssl sslhost sslprotocols sslpassword synctimeout "
    "tiebreaker timeout tls token user username usessl version "
    "writebuffer id idletimeout maxpoolsize minpoolsize sentinel "
    "setclientlibrary connectionstring endpoint endpoints host hostname "
    "masterauth port rediscliauth redisurl redlockdnodes requirepass uri "
    "url ";

/*
 * Whether the name is an option in the connection strings of other clients,
 * "host:6379,password=…,ssl=True". A secret must not become the address of a
 * node, which everybody may read. Case, - and _ do not count.
 */
static bool is_option(struct span name)
{
    static const char *const ends[] = {"password", "passwd", "secret"};
    char word[34] = " ", *bare = word + 1;
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '-' || name.ptr[i] == '_')
            continue;
        if (len == sizeof word - 3)
            return false;
        bare[len++] = (char)tolower((unsigned char)name.ptr[i]);
    }
    memcpy(bare + len, " ", 2);
    if (len > 0 && strstr(options, word) != NULL)
        return true;
    bare[len] = '\0';
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end_len = strlen(ends[i]);
        if (len >= end_len && strcmp(bare + len - end_len, ends[i]) == 0)
            return true;
    }
    return false;
}

/*
 * Takes "name=" off the text, if it begins so. An address may have a = too, in
 * a password or a query, but always after one of "/?#"; names have none.
 */
static const char *take_name(const char **text, struct address_node *node)
{
    size_t len = strcspn(*text, "=/?#");
    if ((*text)[len] != '=')
        return NULL;
    if (len < 1 || len > NAME_MAX_LEN ||
        !span_has_only((struct span){*text, len}, "._-:[]"))
        return "a name has 1 to 255 letters, digits and . _ - : [ ]";
    if (is_option((struct span){*text, len}))
        return option_reason;
    memcpy(node->name, *text, len);
    *text += len + 1;
    return NULL;
}

const char *address_parse_node(const char *text, struct address_node *node)
{
    char copy[TEXT_MAX];
    memset(node, 0, sizeof *node);
    if (*text == '-')
        return dash_reason;
    if (is_quoted(text))
        return quotes_reason;
    const char *reason = take_name(&text, node);
    if (reason)
        return reason;
    size_t len = strlen(text);
    if (len >= sizeof copy)
        return "the address is too long";
    memcpy(copy, text, len + 1);
    reason = parse_forms(copy, node);
    if (reason)
        return reason;
    if (node->port == 0 && !node->is_unix) {
        if (node->name[0] != '\0' && strstr(text, "://") == NULL)
            return "a named node needs a port, too: name=host:port";
        node->port = REDIS_PORT;
    }
    if (node->is_unix) {
        size_t scheme_len = span_copy(node->address, span_of("unix://"));
        address_escape(node->address + scheme_len,
                       sizeof node->address - scheme_len, node->host, "?#,@");
    } else {
        address_format(node->address, sizeof node->address, node->host,
                       node->port);
    }
    if (node->name[0] == '\0')
        memcpy(node->name, node->address, sizeof node->name);
    return NULL;
}

bool address_is_loopback(const char *host)
{
    struct in6_addr v6;
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(host, "localhost") == 0;
}

bool address_is_same(const struct address_node *a, const struct address_node *b)
{
    if (a->is_unix != b->is_unix || a->port != b->port)
        return false;
    return (a->is_unix ? strcmp : strcasecmp)(a->host, b->host) == 0;
}

/* ---- lists of hosts ------------------------------------------------------ */

/*
 * Takes the entry in front of the next comma out of a list, which is NULL once
 * that was the last. False: there is none.
 */
static bool address_next_entry(const char **list, struct span *entry)
{
    if (*list == NULL)
        return false;
    *entry = (struct span){*list, strcspn(*list, ",")};
    const char *behind = *list + entry->len;
    *list = *behind == ',' ? behind + 1 : NULL;
    return true;
}

static bool is_entry(struct span entry)
{
    return span_has_only(entry, "-_.:[]") &&
           (entry.len > 1 || (entry.len == 1 && entry.ptr[0] != '.'));
}

bool hosts_are_valid(const char *list)
{
    struct span entry;
    if (*list == '\0')
        return true;
    while (address_next_entry(&list, &entry))
        if (!is_entry(entry))
            return false;
    return true;
}

static bool is_host(struct span entry, struct span host)
{
    if (*entry.ptr == '.' && host.len > entry.len) {
        host.ptr += host.len - entry.len;
        host.len = entry.len;
    }
    return span_is_like(host, entry);
}

bool hosts_have(const char *list, struct span host)
{
    struct span entry;
    while (address_next_entry(&list, &entry))
        if (entry.len > 0 && is_host(entry, host))
            return true;
    return false;
}

/* ---- lists of networks --------------------------------------------------- */

enum { BITS_V4 = 32, BITS_V6 = 128, MAPPED = BITS_V6 - BITS_V4 };

/* An IPv4 address is ::ffff:… in here. */
static bool networks_parse(struct span text, struct in6_addr *address,
                           bool *is_v4)
{
    char copy[NETWORKS_ADDRESS_MAX];
    unsigned char *bytes = address->s6_addr;
    if (text.len >= sizeof copy || memchr(text.ptr, '\0', text.len) != NULL)
        return false;
    copy[span_copy(copy, text)] = '\0';
    *is_v4 = inet_pton(AF_INET, copy, bytes + MAPPED / 8) == 1;
    if (!*is_v4)
        return inet_pton(AF_INET6, copy, bytes) == 1;
    memset(bytes, 0, MAPPED / 8 - 2);
    memset(bytes + MAPPED / 8 - 2, 0xff, 2);
    return true;
}

struct network {
    struct in6_addr address;
    int bits; /* of it that count */
};

static bool parse_network(struct span text, struct network *network)
{
    bool is_v4;
    const char *slash = memchr(text.ptr, '/', text.len);
    struct span address = {text.ptr, slash != NULL ? (size_t)(slash - text.ptr)
                                                   : text.len};
    network->bits = BITS_V6;
    if (!networks_parse(address, &network->address, &is_v4))
        return false;
    if (slash == NULL)
        return true;
    int64_t bits =
        span_number((struct span){slash + 1, text.len - address.len - 1}, 3);
    network->bits = (int)bits + (is_v4 ? MAPPED : 0);
    return bits >= 0 && network->bits <= BITS_V6;
}

bool networks_are_valid(const char *list)
{
    struct network network;
    struct span entry;
    if (*list == '\0')
        return true;
    while (address_next_entry(&list, &entry))
        if (!parse_network(entry, &network))
            return false;
    return true;
}

bool networks_have(const char *list, struct span address)
{
    struct in6_addr wanted = IN6ADDR_ANY_INIT;
    struct network network = {.bits = 0};
    struct span entry;
    bool is_v4;
    if (!networks_parse(address, &wanted, &is_v4))
        return false;
    const unsigned char *a = network.address.s6_addr, *b = wanted.s6_addr;
    while (address_next_entry(&list, &entry)) {
        bool is_network = parse_network(entry, &network);
        int whole = network.bits / 8, rest = network.bits % 8;
        if (is_network && memcmp(a, b, (size_t)whole) == 0 &&
            (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0))
            return true;
    }
    return false;
}

bool networks_read_address(struct span text, struct span *address)
{
    struct in6_addr ignored = IN6ADDR_ANY_INIT;
    bool is_v4;
    *address = text;
    if (text.len == 0)
        return false;
    const char *bracket = memchr(text.ptr, ']', text.len);
    const char *colon = memchr(text.ptr, ':', text.len);
    if (*text.ptr == '[' && bracket != NULL)
        *address =
            (struct span){text.ptr + 1, (size_t)(bracket - text.ptr) - 1};
    else if (colon != NULL && colon == memrchr(text.ptr, ':', text.len))
        address->len = (size_t)(colon - text.ptr); /* IPv6 has several */
    return networks_parse(*address, &ignored, &is_v4);
}

/* ---- the other end of a socket ------------------------------------------- */

enum { HOST_MAX = PEER_MAX - 8 };

void peer_describe(char text[PEER_MAX], int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    char host[HOST_MAX], port[ADDRESS_PORT_MAX];
    text[0] = '\0';
    if (getpeername(fd, (struct sockaddr *)&address, &len) != 0 ||
        (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return;
    if (getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        address_format(text, PEER_MAX, host,
                       (int)strtol(port, NULL, 10)); /* digits */
}
