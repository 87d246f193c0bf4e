/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <assert.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char sha[] = "0123456789abcdef0123456789abcdef01234567";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len = sizeof address;

static int listen_once(void)
{
    static int listener = -1;
    if (listener >= 0)
        return listener;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr *it = (struct sockaddr *)&address;
    /* without a path the system chooses a name */
    bool is_listening = listener >= 0 &&
                        bind(listener, it, sizeof address.sun_family) == 0 &&
                        listen(listener, 1) == 0 &&
                        getsockname(listener, it, &address_len) == 0;
    assert(is_listening);
    return listener;
}

void peer_begin(struct peer *peer, struct span bytes, size_t piece)
{
    int listener = listen_once();
    peer->wire = wire_new((struct sockaddr *)&address, address_len);
    assert(peer->wire != NULL && wire_error(peer->wire) == NULL);
    peer->fd = accept(listener, NULL, NULL);
    assert(peer->fd >= 0);
    peer->left = bytes;
    peer->piece = piece;
    pipeline_init(&peer->pipeline, span_of("p:"));
    pipeline_begin(&peer->pipeline, peer->wire, sha);
}

void peer_end(struct peer *peer)
{
    struct pipeline_reply reply;
    while (pipeline_drop(&peer->pipeline, &reply))
        assert(reply.script.vote == VOTE_DISCONNECTED);
    pipeline_fini(&peer->pipeline);
    wire_free(peer->wire);
    (void)close(peer->fd);
}

void peer_send_piece(struct peer *peer)
{
    bool has_read;
    size_t len = peer->piece < peer->left.len ? peer->piece : peer->left.len;
    ssize_t sent = send(peer->fd, peer->left.ptr, len, MSG_NOSIGNAL);
    assert(sent > 0);
    peer->left.ptr += sent;
    peer->left.len -= (size_t)sent;
    bool is_alive = wire_read(peer->wire, &has_read);
    assert(is_alive && has_read);
}

enum pipeline_next peer_next(struct peer *peer, struct pipeline_reply *reply)
{
    for (;;) {
        enum pipeline_next next =
            pipeline_next(&peer->pipeline, INT64_MAX, reply);
        if (next != PIPELINE_NONE || peer->left.len == 0)
            return next;
        peer_send_piece(peer);
    }
}
