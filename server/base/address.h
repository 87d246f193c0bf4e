/* SPDX-License-Identifier: MIT */
/*
 * Addresses: those of nodes, lists of hosts and of networks, and who is at the
 * other end of a socket. Nothing is resolved.
 */
#ifndef REDLOCKD_ADDRESS_H
#define REDLOCKD_ADDRESS_H

#include <netdb.h>

#include "types.h"

enum {
    ADDRESS_HOST_MAX = 255,
    ADDRESS_NAME_MAX = 351, /* a socket's path, all of it percent-encoded */
    ADDRESS_SECRET_MAX = 511,
    ADDRESS_TEXT_MAX = ADDRESS_HOST_MAX + 9, /* "[host]:65535", with its NUL */
    ADDRESS_PORT_MAX = 12,                   /* any int, with its NUL */
};

/* A node of --nodes. */
struct address_node {
    char host[ADDRESS_HOST_MAX + 1]; /* name or address; a path if is_unix */
    char user[ADDRESS_HOST_MAX + 1]; /* "": none */
    char password[ADDRESS_SECRET_MAX + 1];
    char address[ADDRESS_NAME_MAX + 1]; /* host:port or a URL, no secret; ASCII;
                                           the same with and without TLS */
    char name[ADDRESS_NAME_MAX + 1];    /* as given, or else the address */
    int port;
    int db;
    bool is_unix;
    bool is_tls;
};

/* The forms of an address, for error lines. */
#define ADDRESS_NODE_FORMS                                                     \
    "host:port, redis://user:password@host:port/db, "                          \
    "rediss://user:password@host:port/db for TLS, or unix:///path?db=n; each " \
    "may begin with name="

/* Splits "host:port" or "[::1]:port"; port keeps its value if the text has
 * none. NULL, or why not: static, with nothing of the text. */
const char *address_parse(const char *text, char host[ADDRESS_HOST_MAX + 1],
                          int *port);

/* Reads one of ADDRESS_NODE_FORMS. NULL, or why not, as above. */
const char *address_parse_node(const char *text, struct address_node *node);

/* Writes host:port, the host in brackets if it is an IPv6 address. */
void address_format(char *out, size_t size, const char *host, int port);

/* Arguments of getaddrinfo(3) besides the host. */
struct address_query {
    char port[ADDRESS_PORT_MAX];
    struct addrinfo hints;
};

/* For stream sockets of any family; flags: additional AI_…, or 0. */
struct address_query address_query(int port, int flags);

/* Percent-encodes all but visible ASCII, and '%' and the special characters.
 * Cut if size is less than three times the length plus 1. */
void address_escape(char *out, size_t size, const char *text,
                    const char *special);

/* True if only processes of this machine can reach the host. */
bool address_is_loopback(const char *host);

/* True if both must be the same server, whatever their databases and TLS. */
bool address_is_same(const struct address_node *a,
                     const struct address_node *b);

/* ---- lists of hosts ------------------------------------------------------ */

/*
 * A list of hosts, as in "locks.example.com,.example.net": names and addresses,
 * without ports. One that begins with a dot stands for all names that end so.
 * Case does not count. The empty list is valid, too.
 */
bool hosts_are_valid(const char *list);
bool hosts_have(const char *list, struct span host);

/* ---- lists of networks --------------------------------------------------- */

enum { NETWORKS_ADDRESS_MAX = 46 }; /* the text of an address, with its NUL */

/*
 * A list of networks, as in "10.0.0.0/8,2001:db8::/32,192.0.2.1": addresses,
 * each with the length of its prefix (RFC 4632, RFC 4291 §2.3), or alone. The
 * empty list is valid, too.
 */
bool networks_are_valid(const char *list);

/* Whether one of them has the address, without a port; ::ffff:192.0.2.1 is an
 * IPv4 address. */
bool networks_have(const char *list, struct span address);

/* Takes the address out of it and a port, as in "[2001:db8::1]:80"; both may
 * stand alone. False: there is none. */
bool networks_read_address(struct span text, struct span *address);

/* ---- the other end of a socket ------------------------------------------- */

enum { PEER_MAX = 80 }; /* "[address%interface]:65535", with its NUL */

/* Writes address:port; "" if fd is no TCP socket, or is not connected. */
void peer_describe(char text[PEER_MAX], int fd);

#endif
