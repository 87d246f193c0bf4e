/* SPDX-License-Identifier: MIT */
/*
 * Real processes for the tests: redis-server nodes, redlockd servers, and the
 * wait for what they should do. Whatever goes wrong fails the running test.
 *
 * Every child dies with the process that started it, so a failed test leaves
 * nothing behind; main removes the directory of the whole run.
 */
#ifndef REDLOCKD_TEST_HARNESS_H
#define REDLOCKD_TEST_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../lib/suite/suite.h"

enum { WORLD_NODES = 10, WORLD_SERVERS = 4, PATH_SIZE = 256 };

struct redisContext;

struct node {
    pid_t pid; /* 0: not running */
    int port;
    bool is_durable; /* AOF, fsync always … */
    bool is_lazy;    /* … or everysec, from the next start on */
    bool has_clock;  /* of its own, from the next start on: node_set_clock */
    char tls[PATH_SIZE]; /* folder of tlsnode.h; "": without TLS */
    const char *lacks; /* "-COMMAND" that its user default may not run; NULL */
    const char *renamed; /* COMMAND that it does not know; NULL */
    char dir[PATH_SIZE];
    struct redisContext *redis; /* connected when first used */
};

struct server {
    pid_t pid; /* 0: not running */
    int port;
    bool is_tls;             /* secure.h: who connects to it */
    char log[PATH_SIZE];     /* what it wrote to stderr */
    char ports[64];          /* "A=B": what it sends to port A goes to port B */
    char names[PATH_SIZE];   /* its DNS: the file of NEMESIS_NAMES; "": none */
    char starved[PATH_SIZE]; /* the file of starve.h; "": it has memory */
};

/* N nodes and the servers over them: those of the running test. */
extern struct world {
    int nodes_count;
    struct node nodes[WORLD_NODES];
    struct server servers[WORLD_SERVERS];
} world;

/* Its first server, and the second one. */
extern struct server *const here, *const there;

/* ---- the run: called by main ------------------------------------------- */

void harness_begin(void);

/* Removes what is left. The number of failures told to harness_fail. */
int harness_end(void);

/* For what fails outside of a test, where Check cannot report it. */
void harness_fail(const char *text);

/* ---- time --------------------------------------------------------------- */

int64_t harness_now_ms(void);
void pause_ms(int ms);

/* Looks every few milliseconds until condition holds; fails after ms. */
#define WAIT_UNTIL(ms, condition)                                              \
    do {                                                                       \
        int64_t wait_deadline_ms = harness_now_ms() + (ms);                    \
        while (!(condition)) {                                                 \
            ck_assert_msg(harness_now_ms() < wait_deadline_ms,                 \
                          "not within %d ms: %s", (int)(ms), #condition);      \
            pause_ms(5);                                                       \
        }                                                                      \
    } while (0)

/* What has to come, soon or after a while; SOON is less than most TTLs. */
#define SOON(condition) WAIT_UNTIL(9000, condition)
#define AWHILE(condition) WAIT_UNTIL(40000, condition)

/* What must not end: condition holds for ms, whenever it is looked at. */
#define STAYS(ms, condition)                                                   \
    do {                                                                       \
        int64_t stays_until_ms = harness_now_ms() + (ms);                      \
        while (harness_now_ms() < stays_until_ms) {                            \
            ck_assert_msg(condition, "not for %d ms: %s", (int)(ms),           \
                          #condition);                                         \
            pause_ms(20);                                                      \
        }                                                                      \
    } while (0)

/* ---- processes ---------------------------------------------------------- */

/* A port of loopback that nobody listens on. */
int harness_free_port(void);

/* A new directory of this run. */
void harness_make_dir(char path[PATH_SIZE]);

/* fork(2) whose child dies with this process; 0 in the child. */
pid_t harness_fork(void);

/* Zeros that this process shares with those that it forks. */
void *harness_share(size_t size);

/*
 * Processes that work beside the test, each with its number, from 0 on. The end
 * tells them, waits, and fails if one did not end well.
 */
void crowd_start(int count, void (*work)(int number));
bool crowd_is_over(void); /* asked by work */
void crowd_end(void);

/*
 * Starts argv with stdout and stderr in the file log (NULL: inherited), and
 * with env, a NULL-terminated list of NAME=value, on top of the environment.
 */
pid_t harness_spawn(char *const argv[], char *const env[], const char *log);

/* The state letter of /proc/PID/stat: T is stopped, Z has ended, ? is gone. */
char harness_state(pid_t pid);

/*
 * Waits for the end of pid; its wait status, 0 if another process started it,
 * -1 if it lives on after ms.
 */
int harness_reap(pid_t pid, int ms);

/*
 * Runs argv until it ends unaided. Returns its exit status; output, which the
 * caller frees, is all it wrote.
 */
int harness_run(char *const argv[], char *const env[], char **output);

/* The whole file, terminated; the caller frees it. */
char *harness_read_file(const char *path);

/* form with each '#' replaced by count units; the caller frees it. */
char *harness_repeat(const char *form, const char *unit, int count);

/* This process, and those that it starts, may have as many as the kernel lets.
 */
void harness_raise_descriptors(void);

/* The binary under test. */
const char *harness_binary(void);

/* A tool of the nemesis: its shim, or its proxy. */
void harness_tool(const char *name, char path[PATH_SIZE]);

/* ---- worlds ------------------------------------------------------------- */

/*
 * Starts count durable nodes and one server over them, and waits until it is
 * ready. options: further flags, separated by spaces; later ones win. There is
 * no first start: world_admit_nodes.
 */
void world_start(int count, const char *options);

/* The same with two servers, both ready. */
void world_start_two(int count, const char *options);

/* The same over one node, with room for so many connections only. */
void world_start_small(int connections, const char *options);

/*
 * For nodes that are not all there, or take their time: with the guard they
 * would wait in quarantine.
 */
#define AT_SIGHT "--restart-guard off"

/* Starts only the nodes; those that forget have no append-only file. */
void world_start_nodes(int count);
void world_start_forgetful_nodes(int count);

/*
 * Lets the nodes, which are new, vote for servers with these options: another
 * server admits them at sight and ends. A first start, which waits for two
 * seconds whether somebody objects, is thus left to the tests of first starts.
 */
void world_admit_nodes(const char *options);

/* Starts server i over all nodes; does not wait until it is ready. */
void world_start_server(int i, const char *options);

/*
 * The option --nodes, behind others: each letter of names is one, and has the
 * node of this number. Valid until the next call.
 */
const char *world_name_nodes(const char *others, const char *names,
                             const int nodes[]);

/* Until GET path, "/livez" or "/readyz", is answered with 200 there. */
void world_await(int i, const char *path);

/* Until it is ready, and all nodes vote for it. */
void world_wait_ready(int i);

/* Both. */
void world_serve(int i, const char *options);

/* The same for the first servers, which start together. */
void world_serve_all(int count, const char *options);

/*
 * Ends all. Each server must have lived, leave with 0 on SIGTERM, and have
 * written no token and no sanitizer report.
 */
void world_stop(void);

/* The same for an unchecked fixture: failures go to harness_fail. */
void world_finish(void);

/*
 * What all tests of a file share: WORLD(world_start, N, options), or with
 * another of these functions, and WORLD_ONCE in its SUITE.
 */
#define WORLD(start, count, options)                                           \
    static void world_set_up(void)                                             \
    {                                                                          \
        start(count, options);                                                 \
    }                                                                          \
    _Static_assert(1, "a semicolon follows")
#define WORLD_ONCE .set_up_once = world_set_up, .tear_down_once = world_finish

/* world_stop for one server; and its end by SIGKILL. */
void world_stop_server(int i);
void world_kill_server(int i);

/* It was told to end, and does so with 0; as with world_stop. */
void server_await_end(struct server *server);

void server_pause(const struct server *server); /* as node_pause */
void server_resume(const struct server *server);

/* What the server, not started yet, sends to the node goes to this port. */
void server_route(struct server *server, const struct node *node, int port);

/* How often its log, which must be there, contains this text. */
int server_count_log(const struct server *server, const char *text);

/* The node's part of world, and its ends. */
void node_start(struct node *node);
void node_kill(struct node *node); /* SIGKILL */
void node_pause(
    const struct node *node); /* SIGSTOP, and waits until it stands */
void node_resume(const struct node *node); /* SIGCONT */

/* The same for the nodes from <= i < to. */
void world_restart_nodes(int from, int to);
void world_kill_nodes(int from, int to);
void world_pause_nodes(int from, int to);
void world_resume_nodes(int from, int to);

#endif
