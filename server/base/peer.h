/*
 * The address at the other end of a socket.
 */
#ifndef REDLOCKD_PEER_H
#define REDLOCKD_PEER_H

enum { PEER_MAX = 80 }; /* "[address%interface]:65535", with its NUL */

/* Writes address:port; "" if fd is no TCP socket, or is not connected. */
void peer_describe(char text[PEER_MAX], int fd);

#endif
