#include "peer.h"

#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "address.h"

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
