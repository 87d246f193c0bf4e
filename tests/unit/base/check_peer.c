#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../server/base/peer.h"
#include "../../lib/suite/suite.h"

/* The port of a new socket of this family that is bound to loopback. */
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

SUITE(peer);

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
