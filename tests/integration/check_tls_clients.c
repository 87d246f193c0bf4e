/*
 * Clients that leave over TLS, in each of its ways: what is granted to nobody
 * is released, and what was answered is held. check_clients.c and others run
 * over TLS as well (HTTP_TLS=1); here is what only TLS has.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node.h"
#include "secure.h"
#include "waiter.h"

enum { N = 3, TTL_MS = 60000, SOON_MS = 9000, TEXT_SIZE = 4096 };

static struct world world;
static struct server *const server = &world.servers[0];
static struct authority authority;

static void begin(const char *options)
{
    const struct subject subject = {.common = "localhost"};
    authority_make(&authority, "the clients' authority");
    struct pair pair = authority_issue(&authority, &subject);
    secure_set_client(&(struct secure_client){.authority = authority.path});
    const char *text = textf("--tls-cert %s --tls-key %s %s", pair.certificate,
                             pair.key, options);
    world_start(&world, N, text);
}

static void end(void)
{
    world_stop(&world);
    authority_free(&authority);
}

/* TLS 1.2 and 1.3 say goodbye in records of different kinds. */
static void speak(bool is_old)
{
    secure_set_client(&(struct secure_client){
        .authority = authority.path,
        .priorities = is_old ? "NORMAL:-VERS-ALL:+VERS-TLS1.2" : NULL});
}

/* ---- ways to leave ------------------------------------------------------- */

static void say_goodbye(int fd)
{
    secure_say_goodbye(fd); /* and keep the connection */
}

static void say_goodbye_and_close(int fd)
{
    secure_say_goodbye(fd);
    close(fd);
}

static void just_close(int fd)
{
    close(fd);
}

static void say_goodbye_behind_a_request(int fd)
{
    static const char more[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    raw_send(fd, more, sizeof more - 1);
    secure_say_goodbye(fd);
    close(fd);
}

static void half_close(int fd)
{
    secure_say_goodbye(fd);
    shutdown(fd, SHUT_WR);
}

static void (*const leavings[])(int fd) = {
    say_goodbye, say_goodbye_and_close,        just_close,
    raw_reset,   say_goodbye_behind_a_request, half_close};

enum { LEAVINGS = sizeof leavings / sizeof *leavings };

/* ---- before the answer --------------------------------------------------- */

static void expect_freed(const char *resource)
{
    WAIT_UNTIL(15000, world_count_keys(&world, resource) == 0);
    answer_expect_free(lock_inspect(server, resource));
}

SUITE(tls_clients, .timeout_s = 60);

/* i: a way to leave, with TLS 1.3 and then with 1.2. */
TEST_RANGE(who_leaves_while_it_waits_is_forgotten_at_once, 0, 2 * LEAVINGS)
{
    struct lock held;
    begin("");
    lock_take(server, "w", TTL_MS, &held);
    speak(_i >= LEAVINGS);
    int fd = waiter_send(server, "w", TTL_MS, 45000);
    waiter_expect_count(server, 1);
    harness_pause_ms(50 * (_i % 2) * 6); /* held, or suspended by then */
    leavings[_i % LEAVINGS](fd);
    waiter_expect_count(server, 0);
    answer_expect(lock_release(server, &held), 200, NULL);
    expect_freed("w");
    end();
}

/* The nodes that would decide are paused, so the operation is under way. */
TEST_RANGE(who_leaves_while_the_nodes_are_asked_leaves_no_lock, 0, 2 * LEAVINGS)
{
    begin("--node-timeout-ms 5000 --retry-count 0 " AT_SIGHT);
    speak(_i >= LEAVINGS);
    world_pause_nodes(&world, 1, 3);
    int fd = waiter_send(server, "r", TTL_MS, 0);
    WAIT_UNTIL(5000, node_integer(&world.nodes[0], "EXISTS r") == 1);
    leavings[_i % LEAVINGS](fd);
    /* seen at once, not when the round ends */
    WAIT_UNTIL(4000, node_integer(&world.nodes[0], "EXISTS r") == 0);
    world_resume_nodes(&world, 1, 3);
    world_wait_ready(&world, 0);
    expect_freed("r");
    end();
}

/* The votes lie in the server's sockets beside the goodbye. */
TEST_RANGE(who_left_before_the_answer_is_granted_nothing, 0, 2 * LEAVINGS)
{
    begin("--node-timeout-ms 5000 --retry-count 0 " AT_SIGHT);
    speak(_i >= LEAVINGS);
    world_pause_nodes(&world, 1, 3);
    int fd = waiter_send(server, "g", TTL_MS, 0);
    WAIT_UNTIL(5000, node_integer(&world.nodes[0], "EXISTS g") == 1);
    /* what is answered now is behind the turn that asked all nodes */
    ck_assert_int_eq(http_probe(server, "/livez"), 200);
    server_pause(server);
    world_resume_nodes(&world, 1, 3);
    WAIT_UNTIL(5000, world_count_keys(&world, "g") > N / 2);
    leavings[_i % LEAVINGS](fd);
    server_resume(server);
    expect_freed("g");
    end();
}

/* ---- behind the answer --------------------------------------------------- */

TEST_RANGE(what_was_answered_is_held_however_the_client_leaves, 0, 2 * LEAVINGS)
{
    char out[TEXT_SIZE];
    begin("");
    speak(_i >= LEAVINGS);
    for (int i = 0; i < 5; i++) {
        int fd = waiter_send(server, textf("a%d", i), TTL_MS, 0);
        raw_read(fd, out, sizeof out, "}\n", SOON_MS);
        ck_assert_has(out, " 201 ");
        leavings[_i % LEAVINGS](fd);
    }
    WAIT_UNTIL(SOON_MS, http_metric(server, "redlockd_connections") <= 1);
    for (int i = 0; i < 5; i++) {
        answer_expect(lock_acquire(server, textf("a%d", i), TTL_MS, NULL), 409,
                      "lock_held");
    }
    ck_assert_double_eq(
        http_metric(server, "redlockd_undelivered_grants_total"), 0);
    end();
}

/* ---- programs of others -------------------------------------------------- */

/* A program that asks for "w", which is held, and waits. Then it is ended. */
static void expect_forgotten(char *const argv[], int signal_number)
{
    struct lock held;
    begin("");
    lock_take(server, "w", TTL_MS, &held);
    char port[16], log[PATH_SIZE];
    char *env[] = {port, NULL};
    snprintf(port, sizeof port, "PORT=%d", server->port);
    harness_make_dir(log);
    strcat(log, "/log");
    pid_t pid = harness_spawn(argv, env, log);
    waiter_expect_count(server, 1);
    if (signal_number)
        kill(pid, signal_number);
    waiter_expect_count(server, 0);
    if (signal_number)
        harness_reap(pid, SOON_MS);
    answer_expect(lock_release(server, &held), 200, NULL);
    expect_freed("w");
    if (!signal_number)
        kill(pid, SIGKILL);
    end();
}

#define BODY "{\"resource\":\"w\",\"wait_ms\":45000}"

static char curl[] = "exec curl -sk https://127.0.0.1:$PORT/locks -H "
                     "'Content-Type: application/json' -d '" BODY "'";

/* OpenSSL's unwrap says goodbye, and would wait for ours. */
static char python[] =
    "exec python3 -c '\n"
    "import os, socket, ssl, time\n"
    "context = ssl._create_unverified_context()\n"
    "plain = socket.create_connection((\"127.0.0.1\", "
    "int(os.environ[\"PORT\"])))\n"
    "secure = context.wrap_socket(plain)\n"
    "body = b\"{\\\"resource\\\":\\\"w\\\",\\\"wait_ms\\\":45000}\"\n"
    "secure.sendall(b\"POST /locks HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: "
    "application/json\\r\\nContent-Length: %d\\r\\n\\r\\n\" % len(body) + "
    "body)\n"
    "time.sleep(4)\n"
    "secure.setblocking(False)\n"
    "try:\n"
    "    secure.unwrap()\n"
    "except ssl.SSLWantReadError:\n"
    "    pass\n"
    "time.sleep(60)\n"
    "'";

static char s_client[] =
    "(printf 'POST /locks HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: "
    "application/json\\r\\nContent-Length: 32\\r\\n\\r\\n" BODY "'; sleep 4) | "
    "openssl s_client -quiet -no_ign_eof -connect 127.0.0.1:$PORT";

static const struct program {
    char *text;
    int signal_number; /* 0: it leaves by itself, soon after its request */
} programs[] = {
    {curl, SIGTERM},   {curl, SIGKILL}, {python, 0},
    {python, SIGKILL}, {s_client, 0},
};

TEST_EACH(programs_of_others_that_leave_are_forgotten, programs)
{
    char *argv[] = {"sh", "-c", programs[_i].text, NULL};
    expect_forgotten(argv, programs[_i].signal_number);
}
