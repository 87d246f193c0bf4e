/* SPDX-License-Identifier: MIT */
/*
 * Programs of others that leave over TLS while they wait. How our own clients
 * leave is in check_clients.c, which runs over TLS as well.
 */
#include <signal.h>
#include <stdio.h>

#include "node.h"
#include "secure.h"
#include "waiter.h"

static void start(void)
{
    static struct authority authority;
    static const struct subject subject = {.common = "localhost"};
    authority_make(&authority, "the clients' authority");
    struct pair pair = authority_issue(&authority, &subject);
    secure_set_client(&(struct secure_client){.authority = authority.path});
    world_start(
        3, textf("--tls-cert %s --tls-key %s", pair.certificate, pair.key));
}

SUITE(tls_clients, .timeout_s = 60, .set_up_once = start,
      .tear_down_once = world_finish);

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

/* Each asks for "w", which is held, and waits; then it leaves, or is ended. */
TEST_EACH(programs_of_others_that_leave_are_forgotten, programs)
{
    struct lock held;
    char port[16], dir[PATH_SIZE];
    char *env[] = {port, NULL};
    char *argv[] = {"sh", "-c", programs[_i].text, NULL};
    int signal_number = programs[_i].signal_number;
    lock_take(here, "w", 60000, &held);
    PRINT_TO(port, "PORT=%d", here->port);
    harness_make_dir(dir);
    pid_t pid = harness_spawn(argv, env, textf("%s/log", dir));
    waiter_expect_count(here, 1);
    if (signal_number)
        kill(pid, signal_number);
    waiter_expect_count(here, 0);
    kill(pid, SIGKILL);
    harness_reap(pid, 9000);
    lock_drop(here, &held);
    AWHILE(count_keys("w") == 0);
}
