/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"
#include "../tcp.h"

enum { KINDS_AT = BATCH_HEAD_ARGS - 3 }; /* in an EVALSHA */

#define BULK(len, text) "$" #len "\r\n" text "\r\n"

/* Used if no rule of the test matches. */
static const struct fake_rule defaults[] = {
    {"INFO server", BULK(69, "redis_version:7.0.15\r\nrun_id:" FAKE_RUN_ID)},
    {"INFO replication", BULK(11, "role:master")},
    {"INFO memory", BULK(40, "maxmemory:0\r\nmaxmemory_policy:noeviction")},
    {"CONFIG GET",
     "*6\r\n" BULK(10, "appendonly") BULK(3, "yes") BULK(11, "appendfsync")
         BULK(6, "always") BULK(25, "no-appendfsync-on-rewrite") BULK(2, "no")},
    {"ACL GETUSER", "*4\r\n" BULK(8, "commands") BULK(5, "+@all")
                        BULK(4, "keys") BULK(2, "~*")},
    {"TIME", "*2\r\n" BULK(10, "1700000000") BULK(6, "123456")},
    {"SCRIPT LOAD", BULK(40, FAKE_SHA)},
    {FAKE_RIGHTS, "*2\r\n$0\r\n\r\n$0\r\n\r\n"},
    {"EVALSHA", EACH "F"},
    {"", "+OK\r\n"},
};

static void close_peer(struct fake_peer *peer)
{
    loop_watch_free(peer->watch);
    peer->watch = NULL;
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    peer->in_len = 0;
    peer->out_len = 0;
}

void fake_close(struct fake *fake)
{
    for (int i = 0; i < FAKE_PEERS_MAX; i++)
        close_peer(&fake->peers[i]);
}

static void drain(void *arg)
{
    struct fake_peer *peer = arg;
    bool is_sliced = peer->fake->is_sliced;
    size_t len = is_sliced && peer->out_len > 0 ? 1 : peer->out_len;
    if (peer->fd < 0 || len == 0)
        return;
    ssize_t sent = send(peer->fd, peer->out, len, MSG_NOSIGNAL);
    ck_assert_msg(sent == (ssize_t)len || !is_sliced, "send");
    if (sent <= 0)
        return;
    peer->out_len -= (size_t)sent;
    memmove(peer->out, peer->out + sent, peer->out_len);
    if (peer->out_len > 0)
        loop_timer_set(peer->timer, clock_now_us());
}

static void send_to(struct fake_peer *peer, const char *text)
{
    size_t len = strlen(text);
    ck_assert_uint_le(peer->out_len + len, sizeof peer->out);
    memcpy(peer->out + peer->out_len, text, len);
    peer->out_len += len;
    drain(peer);
}

void fake_send(struct fake *fake, const char *text)
{
    send_to(&fake->peers[0], text);
}

static const char *find_reply(const struct fake_rule *rules, size_t count,
                              const char *command)
{
    for (size_t i = count; i > 0; i--) {
        const struct fake_rule *rule = &rules[i - 1];
        if (rule->begin != NULL &&
            strncmp(command, rule->begin, strlen(rule->begin)) == 0)
            return rule->reply;
    }
    return NULL;
}

static const char *default_reply(const char *command)
{
    for (const struct fake_rule *rule = defaults;; rule++)
        if (strncmp(command, rule->begin, strlen(rule->begin)) == 0)
            return rule->reply;
}

static void send_each(struct fake_peer *peer, char letter, int calls)
{
    char letters[BATCH_CALLS_MAX + 1];
    memset(letters, letter, (size_t)calls);
    letters[calls] = '\0';
    send_to(peer, textf("*3\r\n:1700000000123456\r\n:0\r\n$%d\r\n%s\r\n", calls,
                        letters));
}

/* Their letters stand behind the deadline, and all have the same. */
static int count_calls(const char *command)
{
    if (strncmp(command, "EVALSHA", 7) != 0)
        return 0;
    for (int i = 0; i < KINDS_AT; i++)
        command = strchr(command, ' ') + 1;
    size_t calls = strspn(command, "i");
    ck_assert_int_eq(command[calls], ' ');
    ck_assert_uint_le(calls, BATCH_CALLS_MAX);
    return (int)calls;
}

/* The script that asks for rights has no keys. */
static bool asks_for_rights(const char *command)
{
    enum { COUNT_AT = sizeof "EVALSHA " - 1 + SCRIPT_SHA_LEN };
    return strncmp(command, "EVALSHA ", 8) == 0 &&
           strncmp(command + COUNT_AT, " 0 ", 3) == 0;
}

static void on_command(struct fake_peer *peer, const char *command)
{
    struct fake *fake = peer->fake;
    fake->commands++;
    if (asks_for_rights(command))
        command = FAKE_RIGHTS;
    int calls = count_calls(command);
    fake->batches += calls > 0;
    fake->calls += calls;
    fake->loads += strncmp(command, "SCRIPT LOAD --", 14) == 0;
    const char *reply = find_reply(fake->rules, FAKE_RULES_MAX, command);
    if (reply == NULL)
        reply = default_reply(command);
    if (reply[0] == EACH[0])
        send_each(peer, reply[1], calls);
    else
        send_to(peer, reply);
    if (calls > 0)
        usleep(fake->stops_process_us);
}

/* Copies the words of a complete command; returns its length, 0: incomplete. */
static size_t read_command(const char *in, const char *end, char *words)
{
    char *at = NULL;
    const char *begin = in;
    in = memchr(begin, '\n', (size_t)(end - begin));
    if (in++ == NULL)
        return 0;
    long count = strtol(begin + 1, NULL, 10);
    while (count-- > 0) {
        const char *eol = memchr(in, '\n', (size_t)(end - in));
        if (eol == NULL)
            return 0;
        size_t len = strtoul(in + 1, &at, 10);
        if ((size_t)(end - eol) < len + 3)
            return 0;
        memcpy(words, eol + 1, len);
        words += len;
        *words++ = count > 0 ? ' ' : '\0';
        in = eol + 1 + len + 2;
    }
    return (size_t)(in - begin);
}

static void take_commands(struct fake_peer *peer)
{
    static char words[FAKE_BUFFER];
    const char *end = peer->in + peer->in_len;
    const char *at = peer->in;
    size_t len;
    while (at < end && (len = read_command(at, end, words)) > 0) {
        on_command(peer, words);
        at += len;
    }
    peer->in_len = (size_t)(end - at);
    memmove(peer->in, at, peer->in_len);
}

static void on_readable(void *arg, int events)
{
    struct fake_peer *peer = arg;
    ck_assert_uint_lt(peer->in_len, sizeof peer->in);
    ssize_t got = recv(peer->fd, peer->in + peer->in_len,
                       sizeof peer->in - peer->in_len, 0);
    (void)events;
    if (got <= 0) {
        close_peer(peer);
        return;
    }
    peer->in_len += (size_t)got;
    take_commands(peer);
}

static struct fake_peer *find_free(struct fake *fake)
{
    for (int i = 0; i < FAKE_PEERS_MAX; i++)
        if (fake->peers[i].fd < 0)
            return &fake->peers[i];
    ck_abort_msg("too many connections");
}

static void on_accept(void *arg, int events)
{
    struct fake *fake = arg;
    struct fake_peer *peer = find_free(fake);
    (void)events;
    peer->fd = accept(fake->listener, NULL, NULL);
    ck_assert_int_ge(peer->fd, 0);
    fake->accepted++;
    if (fake->greeting != NULL) {
        send_to(peer, fake->greeting);
        close_peer(peer);
        return;
    }
    peer->watch = loop_watch_new(fake->loop, peer->fd, on_readable, peer);
    ck_assert_ptr_nonnull(peer->watch);
    fake_set_deaf(fake, fake->is_deaf);
}

void fake_set_deaf(struct fake *fake, bool is_deaf)
{
    fake->is_deaf = is_deaf;
    for (int i = 0; i < FAKE_PEERS_MAX; i++)
        if (fake->peers[i].watch != NULL)
            ck_assert(loop_watch_set(fake->peers[i].watch,
                                     is_deaf ? 0 : LOOP_READABLE));
}

void fake_say(struct fake *fake, const char *begin, const char *reply)
{
    for (int i = 0; i < FAKE_RULES_MAX; i++) {
        struct fake_rule *rule = &fake->rules[i];
        if (rule->begin == NULL || strcmp(rule->begin, begin) == 0) {
            *rule = (struct fake_rule){begin, reply};
            return;
        }
    }
    ck_abort_msg("too many rules");
}

void fake_start(struct fake *fake, struct loop *loop)
{
    struct sockaddr_in address;
    memset(fake, 0, sizeof *fake);
    fake->loop = loop;
    for (int i = 0; i < FAKE_PEERS_MAX; i++) {
        fake->peers[i].fake = fake;
        fake->peers[i].fd = -1;
        fake->peers[i].timer = loop_timer_new(loop, drain, &fake->peers[i]);
    }
    fake->listener = tcp_bind(&address);
    ck_assert_int_eq(listen(fake->listener, 8), 0);
    fake->port = ntohs(address.sin_port);
    fake->listener_watch =
        loop_watch_new(loop, fake->listener, on_accept, fake);
    ck_assert(loop_watch_set(fake->listener_watch, LOOP_READABLE));
}

void fake_stop(struct fake *fake)
{
    fake_close(fake);
    loop_watch_free(fake->listener_watch);
    for (int i = 0; i < FAKE_PEERS_MAX; i++)
        loop_timer_free(fake->peers[i].timer);
    close(fake->listener);
}
