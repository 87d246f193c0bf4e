/*
 * The listening socket, and what is said when there is none.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/http/library.h"
#include "../../lib/suite/suite.h"
#include "../node/names.h"

static char error[200];

static int open_at(const char *host, int port, bool reuse_port)
{
    strcpy(error, "nothing");
    return library_listen(host, port, reuse_port, error, sizeof error);
}

/* A listener, with a port that the kernel chose. */
static int open_any(const char *host, bool reuse_port)
{
    int fd = open_at(host, 0, reuse_port);
    ck_assert_msg(fd >= 0, "%s", error);
    return fd;
}

static struct sockaddr_in address_of(int fd)
{
    struct sockaddr_in at = {0};
    socklen_t len = sizeof at;
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    ck_assert_int_eq(at.sin_family, AF_INET);
    return at;
}

static int port_of(int fd)
{
    return ntohs(address_of(fd).sin_port);
}

static int connect_to(const struct sockaddr_in *at)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)at, sizeof *at), 0);
    return fd;
}

SUITE(library);

TEST(clients_can_connect)
{
    int fd = open_any("127.0.0.1", false);
    struct sockaddr_in at = address_of(fd);
    ck_assert_int_eq((int)ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK);
    /* none waits, and it does not either */
    ck_assert_int_lt(accept(fd, NULL, NULL), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    int client = connect_to(&at);
    int server = accept(fd, NULL, NULL);
    ck_assert_int_ge(server, 0);
    close(server);
    close(client);
    close(fd);
}

TEST(a_port_that_is_taken_is_refused)
{
    int first = open_any("127.0.0.1", false);
    int lowest = dup(first); /* the next free descriptor */
    close(lowest);
    ck_assert_int_eq(open_at("127.0.0.1", port_of(first), false), -1);
    ck_assert_str_eq(error, textf("listen 127.0.0.1:%d: address already in use",
                                  port_of(first)));
    ck_assert_int_eq(dup(first), lowest); /* none is left open */
}

TEST(several_may_share_a_port_if_all_say_so)
{
    int first = open_any("127.0.0.1", true);
    ck_assert_int_ge(open_at("127.0.0.1", port_of(first), true), 0);
    ck_assert_int_eq(open_at("127.0.0.1", port_of(first), false), -1);
}

/* The side that closes first keeps the port for a while. */
TEST(a_restart_does_not_wait_for_old_connections)
{
    int fd = open_any("127.0.0.1", false);
    struct sockaddr_in at = address_of(fd);
    char byte;
    int client = connect_to(&at);
    close(accept(fd, NULL, NULL));
    ck_assert_int_eq(recv(client, &byte, 1, 0), 0);
    close(client);
    close(fd);
    fd = open_at("127.0.0.1", ntohs(at.sin_port), false);
    ck_assert_msg(fd >= 0, "%s", error);
}

TEST(a_name_is_resolved)
{
    names_resolve_to("127.0.0.1", 0);
    struct sockaddr_in at = address_of(open_any("here.test", false));
    ck_assert_int_eq((int)ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK);
    names_resolve_to("", 0);
    ck_assert_int_eq(open_at("nowhere.test", 7, false), -1);
    ck_assert_str_eq(error, "listen nowhere.test:7: name or service not known");
}

TEST(an_address_of_another_machine_is_refused)
{
    ck_assert_int_eq(open_at("192.0.2.1", 7, false), -1);
    ck_assert_str_eq(error,
                     "listen 192.0.2.1:7: cannot assign requested address");
    ck_assert_int_eq(open_at("2001:db8::1", 7, false), -1);
    ck_assert_int_eq(strncmp(error, "listen [2001:db8::1]:7: ", 24), 0);
}

TEST(a_long_reason_is_cut)
{
    char small[12];
    ck_assert_int_eq(library_listen("192.0.2.1", 7, false, small, sizeof small),
                     -1);
    ck_assert_str_eq(small, "listen 192.");
}
