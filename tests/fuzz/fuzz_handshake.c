/* SPDX-License-Identifier: MIT */
/*
 * A line that says how many bytes come at once, and then bytes as a node may
 * send them when it is asked who it is. Who passes is what Redis is; who does
 * not is told why, in words without a secret.
 */
#include <assert.h>
#include <string.h>

#include "../../server/node/handshake.h"
#include "input.h"
#include "peer.h"

enum { PIECES_MAX = 64 };

static struct address_node node = {
    .user = "alice", .password = "s3cret", .db = 3};

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static bool is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") == len && text[len] == '\0';
}

static void check_passed(const struct handshake *handshake,
                         enum handshake_step step)
{
    if (handshake->needs[0] != '\0') { /* goes on, to be refused for all */
        assert(step < HANDSHAKE_RIGHTS);
    } else if (step == HANDSHAKE_SERVER) {
        assert(is_hex(handshake->run_id, RUN_ID_LEN));
    } else if (step == HANDSHAKE_TIME) {
        assert(handshake->node_now_us > 0 &&
               handshake->node_now_us < INT64_C(1) << 53);
    } else if (step == HANDSHAKE_RIGHTS) {
        assert(is_printable(handshake->lacks));
    } else if (step == HANDSHAKE_LOADER) {
        assert(is_printable(handshake->not_durable));
    } else if (step == HANDSHAKE_LOAD) {
        assert(is_hex(handshake->sha, SCRIPT_SHA_LEN));
    }
}

/* A foreign server may repeat what it does not understand. */
static void check_refused(const struct handshake *handshake,
                          enum handshake_step step, enum node_state state)
{
    assert(state > STATE_NONE && state < STATE_KINDS);
    assert(memchr(handshake->detail, '\0', sizeof handshake->detail) != NULL);
    assert(is_printable(handshake->detail));
    if (step == HANDSHAKE_AUTH)
        assert(strstr(handshake->detail, node.password) == NULL);
}

/* False: all bytes are read, and none of them is a reply any more. */
static bool next_reply(struct peer *peer, const struct wire_reply **reply)
{
    enum wire_next next = wire_next(peer->wire, reply);
    for (; next == WIRE_NONE && peer->left.len > 0;
         next = wire_next(peer->wire, reply))
        peer_send_piece(peer);
    return next == WIRE_REPLY;
}

static void listen_to(struct span bytes, size_t piece)
{
    struct peer peer;
    struct handshake_command command;
    const struct wire_reply *reply;
    struct handshake handshake = {0};
    bool is_refused = false; /* then the line ends */
    peer_begin(&peer, bytes, piece);
    for (int i = 0; i < HANDSHAKE_STEPS; i++) {
        enum handshake_step step = (enum handshake_step)i;
        handshake_command(&command, step, &node, "p:");
        assert(command.count > 0 && command.count <= HANDSHAKE_ARGS_MAX);
        if (!next_reply(&peer, &reply))
            break;
        enum node_state state =
            handshake_take(&handshake, step, reply->fields, reply->count);
        if (state != STATE_NONE)
            check_refused(&handshake, step, state);
        else if (!is_refused)
            check_passed(&handshake, step);
        is_refused |= state != STATE_NONE;
    }
    peer_end(&peer);
}

void fuzz(struct input *input)
{
    size_t piece = (size_t)input_number(input);
    struct span bytes = input_rest(input);
    size_t least = bytes.len / PIECES_MAX + 1;
    listen_to(bytes, piece > least ? piece : least);
}
