/* SPDX-License-Identifier: MIT */
/*
 * Nodes and servers: how they are started, hurt and ended.
 */
#include "harness.h"

#include <ctype.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "http.h"
#include "node.h"
#include "secure.h"
#include "tlsnode.h"

enum {
    STOP_MS = 20000,
    WORDS_MAX = 32,
    OWN_DESCRIPTORS = 64, /* that a server keeps for itself */
    LISTED_MAX = 9,       /* of --nodes */
    PRELOAD_SIZE = PATH_SIZE + 16,
};

struct world world;
struct server *const here = &world.servers[0], *const there = &world.servers[1];

/* For a process whose clock, connections or memory are not the true ones. */
static void write_preload(const char *shim, char preload[PRELOAD_SIZE])
{
    char path[PATH_SIZE];

    harness_tool(shim, path);
    snprintf(preload, PRELOAD_SIZE, "LD_PRELOAD=%s", path);
}

/* ---- nodes -------------------------------------------------------------- */

static bool is_answering(struct node *node)
{
    redisReply *reply = node_try(node, "PING");
    bool is_up = reply && reply->type == REDIS_REPLY_STATUS;

    if (reply)
        freeReplyObject(reply);
    return is_up;
}

enum { ARGS_MAX = 48 };

/* Arguments that outlive the call; they are few. */
struct args {
    char *word[ARGS_MAX];
    int count;
};

static void add(struct args *args, const char *option, const char *format, ...)
{
    va_list list;

    ck_assert_int_lt(args->count + 2, ARGS_MAX);
    args->word[args->count++] = strdup(option);
    va_start(list, format);
    if (vasprintf(&args->word[args->count++], format, list) < 0)
        abort();
    va_end(list);
}

static void free_args(struct args *args)
{
    for (int i = 0; i < args->count; i++)
        free(args->word[i]);
}

/* What its user default may do, from its start on. */
static void add_rights(struct args *args, const struct node *node)
{
    if (node->lacks == NULL)
        return;
    add(args, "--user", "default");
    add(args, "on", "nopass");
    add(args, "~*", "&*");
    add(args, "+@all", "%s", node->lacks);
    add(args, "--user", "full"); /* with any password */
    add(args, "on", "nopass");
    add(args, "~*", "&*");
    args->word[args->count++] = strdup("+@all");
}

static void add_renamed(struct args *args, const struct node *node)
{
    if (node->renamed == NULL)
        return;
    add(args, "--rename-command", "%s", node->renamed);
    args->word[args->count++] = strdup("");
}

static void add_ports(struct args *args, const struct node *node)
{
    bool is_tls = *node->tls;

    add(args, "--port", "%d", is_tls ? 0 : node->port);
    if (!is_tls)
        return;
    add(args, "--tls-port", "%d", node->port);
    add(args, "--unixsocket", "%s/socket", node->dir);
    add(args, "--tls-cert-file", "%s/" TLSNODE_CERT, node->tls);
    add(args, "--tls-key-file", "%s/" TLSNODE_KEY, node->tls);
    add(args, "--tls-ca-cert-file", "%s/" TLSNODE_CA, node->tls);
    add(args, "--tls-auth-clients", "no");
    add(args, "--tls-replication", "yes");
}

void node_start(struct node *node)
{
    char preload[PRELOAD_SIZE], clock[PATH_SIZE + 32];
    char *env[] = {preload, clock, NULL};
    struct args args = {.word = {strdup("redis-server")}, .count = 1};

    ck_assert_int_eq(node->pid, 0);
    add_ports(&args, node);
    add_rights(&args, node);
    add_renamed(&args, node);
    add(&args, "--bind", "127.0.0.1");
    add(&args, "--dir", "%s", node->dir);
    add(&args, "--save", "%s", "");
    add(&args, "--appendonly", node->is_durable ? "yes" : "no");
    add(&args, "--appendfsync", node->is_lazy ? "everysec" : "always");
    add(&args, "--enable-debug-command", "local");
    const char *log = textf("%s/log", node->dir);
    if (node->has_clock)
        write_preload("nemesis-shim.so", preload);
    PRINT_TO(clock, "NEMESIS_CLOCK=%s/clock", node->dir);
    node->pid = harness_spawn(args.word, node->has_clock ? env : NULL, log);
    free_args(&args);
    AWHILE(is_answering(node));
    /* tests are forked behind fixtures and must not share a connection */
    node_disconnect(node);
}

void node_kill(struct node *node)
{
    node_disconnect(node);
    if (node->pid == 0)
        return;
    kill(node->pid, SIGKILL);
    ck_assert_int_ge(harness_reap(node->pid, STOP_MS), 0);
    node->pid = 0;
}

static void pause_process(pid_t pid)
{
    kill(pid, SIGSTOP);
    AWHILE(harness_state(pid) == 'T');
}

static void resume_process(pid_t pid)
{
    kill(pid, SIGCONT);
    AWHILE(harness_state(pid) != 'T');
}

void node_pause(const struct node *node)
{
    pause_process(node->pid);
}

void node_resume(const struct node *node)
{
    resume_process(node->pid);
}

void world_restart_nodes(int from, int to)
{
    for (int i = from; i < to; i++)
        node_start(&world.nodes[i]);
}

void world_kill_nodes(int from, int to)
{
    for (int i = from; i < to; i++)
        node_kill(&world.nodes[i]);
}

void world_pause_nodes(int from, int to)
{
    for (int i = from; i < to; i++)
        node_pause(&world.nodes[i]);
}

void world_resume_nodes(int from, int to)
{
    for (int i = from; i < to; i++)
        node_resume(&world.nodes[i]);
}

void server_pause(const struct server *server)
{
    pause_process(server->pid);
}

void server_resume(const struct server *server)
{
    resume_process(server->pid);
}

int server_count_log(const struct server *server, const char *text)
{
    char *log = harness_read_file(server->log);
    int count = 0;
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
        count++;
    free(log);
    return count;
}

static void start_nodes(int count, bool is_durable)
{
    memset(&world, 0, sizeof world);
    world.nodes_count = count;
    for (int i = 0; i < count; i++) {
        struct node *node = &world.nodes[i];
        node->port = harness_free_port();
        node->is_durable = is_durable;
        if (tlsnode_is_usual())
            PRINT_TO(node->tls, "%s", tlsnode_dir());
        harness_make_dir(node->dir);
        node_start(node);
    }
}

void world_start_nodes(int count)
{
    start_nodes(count, true);
}

void world_start_forgetful_nodes(int count)
{
    start_nodes(count, false);
}

void server_route(struct server *server, const struct node *node, int port)
{
    size_t len = strlen(server->ports), room = sizeof server->ports - len;
    len = (size_t)snprintf(server->ports + len, room, "%s%d=%d",
                           len > 0 ? "," : "", node->port, port);
    ck_assert_uint_lt(len, room);
}

/* ---- servers ------------------------------------------------------------ */

/* If there are more than a server takes, its options name others. */
static void list_nodes(char *out, size_t size)
{
    size_t len = 0;

    for (int i = 0; i < world.nodes_count && i < LISTED_MAX; i++)
        len += (size_t)snprintf(
            out + len, size - len, "%s%s127.0.0.1:%d", i > 0 ? "," : "",
            *world.nodes[i].tls ? "rediss://" : "", world.nodes[i].port);
}

void world_start_server(int i, const char *options)
{
    struct server *server = &world.servers[i];
    char listen[32], nodes[512], copy[2048], trust[PATH_SIZE + 32] = "";
    char tls[1024] = "", *rest = NULL;
    char *argv[WORDS_MAX] = {(char *)harness_binary(), "--listen", listen,
                             "--nodes", nodes};
    char preload[PRELOAD_SIZE], ports[sizeof server->ports + 16];
    char starved[sizeof server->starved + 16];
    char names[sizeof server->names + 16];
    bool has_shim = *server->ports || *server->names || *server->starved;
    char *env[] = {"ASAN_OPTIONS=detect_leaks=1:verify_asan_link_order=0",
                   has_shim ? preload : NULL,
                   *server->starved ? starved : ports, names, NULL};
    int argc = 5;

    ck_assert_int_eq(server->pid, 0);
    if (server->port == 0)
        server->port = harness_free_port();
    if (!*server->log) {
        char dir[PATH_SIZE];
        harness_make_dir(dir);
        PRINT_TO(server->log, "%.200s/server.log", dir);
    }
    PRINT_TO(listen, "127.0.0.1:%d", server->port);
    list_nodes(nodes, sizeof nodes);
    if (strstr(nodes, "rediss://"))
        PRINT_TO(trust, "--node-ca %s/" TLSNODE_CA, tlsnode_dir());
    server->is_tls = secure_is_wanted() || strstr(options, "--tls-cert ");
    if (secure_is_wanted())
        secure_options(tls, sizeof tls);
    /* long node timeouts: a busy machine must not look like a silent node */
    PRINT_TO(copy,
             "--node-timeout-ms 400 --log-level debug --drain-ms 0 %s %s %s",
             trust, tls, options);
    for (char *word = strtok_r(copy, " ", &rest); word && argc < WORDS_MAX - 1;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    if (has_shim)
        write_preload(*server->starved ? "starved-shim.so" : "nemesis-shim.so",
                      preload);
    PRINT_TO(ports, "NEMESIS_PORTS=%s", server->ports);
    PRINT_TO(names, "NEMESIS_NAMES=%s", server->names);
    PRINT_TO(starved, "STARVED=%s", server->starved);
    server->pid = harness_spawn(argv, env, server->log);
}

/* A server that ended need not be waited for. */
static void check_alive(const struct server *server)
{
    siginfo_t info = {.si_pid = 0};

    if (waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) <
            0 ||
        info.si_pid == 0)
        return;
    ck_abort_msg("redlockd ended:\n%s", harness_read_file(server->log));
}

static bool is_ready(const struct server *server)
{
    check_alive(server);
    return http_probe(server, "/readyz") == 200;
}

/*
 * Ready is a quorum; the tests begin when every node votes. Anybody may ask
 * that, also where there is an auth file.
 */
static bool is_complete(int i)
{
    const struct answer *answer =
        HTTP(&world.servers[i], .method = "GET", .path = "/readyz");

    return answer->status == 200 &&
           answer_int(answer, "voting") == world.nodes_count;
}

void world_wait_ready(int i)
{
    AWHILE(is_ready(&world.servers[i]));
    AWHILE(is_complete(i));
    http_disconnect(); /* not to be shared either */
}

void world_await(int i, const char *path)
{
    AWHILE(http_probe(&world.servers[i], path) == 200);
}

void world_serve(int i, const char *options)
{
    world_start_server(i, options);
    world_wait_ready(i);
}

void world_serve_all(int count, const char *options)
{
    for (int i = 0; i < count; i++)
        world_start_server(i, options);
    for (int i = 0; i < count; i++)
        world_wait_ready(i);
}

/* Copies name and its value, if the options have it. */
static void copy_option(const char *options, const char *name, char out[64])
{
    const char *at = strstr(options, name);
    size_t len = strlen(name);

    *out = '\0';
    if (at)
        snprintf(out, 64, "%.*s", (int)(len + 1 + strcspn(at + len + 1, " ")),
                 at);
}

void world_admit_nodes(const char *options)
{
    enum { FIRST = WORLD_SERVERS - 1 };
    char same[320] = AT_SIGHT, max_ttl[64], default_ttl[64], prefix[64];

    copy_option(options, "--max-ttl-ms", max_ttl);
    copy_option(options, "--default-ttl-ms", default_ttl);
    copy_option(options, "--key-prefix", prefix);
    PRINT_TO(same, AT_SIGHT " %s %s %s", max_ttl, default_ttl, prefix);
    world_serve(FIRST, same);
    world_stop_server(FIRST);
    world.servers[FIRST] = (struct server){.pid = 0};
}

void world_start(int count, const char *options)
{
    world_start_nodes(count);
    if (!strstr(options, AT_SIGHT))
        world_admit_nodes(options);
    world_serve(0, options);
}

void world_start_two(int count, const char *options)
{
    world_start(count, options);
    world_serve(1, options);
}

void world_start_small(int connections, const char *options)
{
    rlim_t descriptors = (rlim_t)connections + OWN_DESCRIPTORS;
    const struct rlimit limit = {descriptors, descriptors};

    world_start_nodes(1);
    world_admit_nodes(options);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    world_serve(0, options);
}

/* ---- the end ------------------------------------------------------------ */

/* True if text has 16 digits, a dot and 40 hex digits: a token. */
static bool has_token(const char *text)
{
    int digits = 0;

    for (; *text; text++) {
        if (*text == '.' && digits >= 16 &&
            strspn(text + 1, "0123456789abcdef") >= 40)
            return true;
        digits = isdigit((unsigned char)*text) ? digits + 1 : 0;
    }
    return false;
}

/* NULL, or why a server's end is not a good one; the caller frees it. */
static char *judge_end(const struct server *server, int status)
{
    char *log = harness_read_file(server->log);
    char *verdict = NULL;
    const char *what = NULL;

    if (status < 0)
        what = "did not end after SIGTERM";
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        what = "crashed or did not exit with 0";
    else if (strstr(log, "Sanitizer") || strstr(log, "runtime error"))
        what = "has a sanitizer report";
    else if (has_token(log))
        what = "wrote a token into its log";
    if (what && asprintf(&verdict, "redlockd %s (wait status %d); its log:\n%s",
                         what, status, log) < 0)
        abort();
    free(log);
    return verdict;
}

/* The same of one that was told to end. */
static char *await_end(struct server *server)
{
    int status = harness_reap(server->pid, STOP_MS);
    if (status < 0)
        kill(server->pid, SIGKILL);
    server->pid = 0;
    return judge_end(server, status);
}

static char *stop_server(struct server *server)
{
    if (server->pid == 0)
        return NULL;
    kill(server->pid, SIGTERM);
    return await_end(server);
}

void server_await_end(struct server *server)
{
    char *verdict = await_end(server);

    ck_assert_msg(!verdict, "%s", verdict);
}

void world_stop_server(int i)
{
    char *verdict = stop_server(&world.servers[i]);

    ck_assert_msg(!verdict, "%s", verdict);
}

void world_kill_server(int i)
{
    http_disconnect();
    kill(world.servers[i].pid, SIGKILL);
    ck_assert_int_ge(harness_reap(world.servers[i].pid, STOP_MS), 0);
    world.servers[i].pid = 0;
}

void world_stop(void)
{
    http_disconnect();
    for (int i = 0; i < WORLD_SERVERS; i++)
        world_stop_server(i);
    world_kill_nodes(0, world.nodes_count);
}

void world_finish(void)
{
    http_disconnect();
    for (int i = 0; i < WORLD_SERVERS; i++) {
        char *verdict = stop_server(&world.servers[i]);
        if (verdict)
            harness_fail(verdict);
        free(verdict);
    }
    world_kill_nodes(0, world.nodes_count);
}

const char *world_name_nodes(const char *others, const char *names,
                             const int nodes[])
{
    static char options[500];
    int len = PRINT_TO(options, "%s --nodes ", others);
    for (int i = 0; names[i] != '\0'; i++)
        len += snprintf(options + len, sizeof options - (size_t)len,
                        "%s%c=127.0.0.1:%d", i > 0 ? "," : "", names[i],
                        world.nodes[nodes[i]].port);
    return options;
}
