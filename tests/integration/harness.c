/* SPDX-License-Identifier: MIT */
/*
 * Processes, ports, directories, time.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/folder/folder.h"

/*
 * Below the range from which the kernel picks ports of outgoing connections.
 * Each process has a slice of its own while it runs: no port is taken from a
 * process that is about to start again on it.
 */
enum { PORT_FIRST = 10000, PORT_LAST = 32000, SLICE = 2000 };

static char run_dir[PATH_SIZE];
static int slice_lock, first_port;
static int failures;

/* ---- the run ------------------------------------------------------------ */

/* The lock of a slice lasts until this process and its children end. */
static bool take_slice(int number)
{
    const char *path = textf("/tmp/redlockd-test-ports-%d", number);
    slice_lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    first_port = PORT_FIRST + number * SLICE;
    if (slice_lock < 0)
        return false;
    if (flock(slice_lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    close(slice_lock);
    return false;
}

/* Waits while all are taken. */
static void take_any_slice(void)
{
    int count = (PORT_LAST - PORT_FIRST) / SLICE;
    for (int i = 0; !take_slice(i % count); i++)
        if (i % count == count - 1)
            usleep(100000);
}

/*
 * In memory, if there is room: each node syncs each write, and a disk that all
 * suites share makes them wait for one another. No test cuts the power.
 */
static const char *parent_dir(void)
{
    static const uint64_t room = (uint64_t)1 << 30;
    struct statvfs info;

    if (statvfs("/dev/shm", &info) == 0 &&
        (uint64_t)info.f_bavail * info.f_frsize >= room &&
        access("/dev/shm", W_OK | X_OK) == 0)
        return "/dev/shm";
    return "/tmp";
}

void harness_begin(void)
{
    take_any_slice();
    PRINT_TO(run_dir, "%s/redlockd-test.XXXXXX", parent_dir());
    if (!mkdtemp(run_dir)) {
        perror(run_dir);
        exit(EXIT_FAILURE);
    }
    signal(SIGPIPE, SIG_IGN);
    srandom((unsigned)getpid());
}

void harness_fail(const char *text)
{
    fprintf(stderr, "FAILED outside of a test: %s\n", text);
    failures++;
}

int harness_end(void)
{
    if (!folder_remove(run_dir))
        harness_fail(run_dir);
    return failures;
}

/* ---- time --------------------------------------------------------------- */

int64_t harness_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

void pause_ms(int ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* ---- processes ---------------------------------------------------------- */

static bool is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool is_bound = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return is_bound;
}

/* Another one each time: who has the last may not listen on it yet. */
int harness_free_port(void)
{
    static bool is_given[SLICE];
    static unsigned seed;

    if (seed == 0)
        seed = (unsigned)harness_now_ms() ^ ((unsigned)getpid() << 16);
    for (int tries = 0; tries < 10 * SLICE; tries++) {
        int drawn = rand_r(&seed) % SLICE;
        if (is_given[drawn] || !is_free(first_port + drawn))
            continue;
        is_given[drawn] = true;
        return first_port + drawn;
    }
    ck_abort_msg("no free port");
    return 0;
}

void harness_make_dir(char path[PATH_SIZE])
{
    (void)snprintf(path, PATH_SIZE, "%.200s/XXXXXX", run_dir);
    ck_assert_msg(mkdtemp(path), "%s: %s", path, strerror(errno));
}

void *harness_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

pid_t harness_fork(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    return 0;
}

enum { CROWD_MAX = 64 };

static atomic_bool *is_crowd_over;
static pid_t crowd[CROWD_MAX];
static int crowd_count;

void crowd_start(int count, void (*work)(int number))
{
    ck_assert_int_le(count, CROWD_MAX);
    is_crowd_over = harness_share(sizeof *is_crowd_over);
    for (crowd_count = 0; crowd_count < count; crowd_count++) {
        crowd[crowd_count] = harness_fork();
        if (crowd[crowd_count] > 0)
            continue;
        work(crowd_count);
        _exit(EXIT_SUCCESS);
    }
}

bool crowd_is_over(void)
{
    return atomic_load(is_crowd_over);
}

void crowd_end(void)
{
    atomic_store(is_crowd_over, true);
    for (int i = 0; i < crowd_count; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(crowd[i], &status, 0), crowd[i]);
        ck_assert_msg(status == 0, "process %d of a crowd: %d", i, status);
    }
}

/* In the child: never returns. */
static void become(char *const argv[], char *const env[], const char *log)
{
    if (log) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
            dup2(fd, STDERR_FILENO) < 0)
            _exit(126);
    }
    for (; env && *env; env++)
        putenv(*env);
    /* Check and the tests ignore or handle these; a service starts clean */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    execvp(argv[0], argv);
    _exit(127);
}

pid_t harness_spawn(char *const argv[], char *const env[], const char *log)
{
    pid_t pid = harness_fork();

    if (pid == 0)
        become(argv, env, log);
    return pid;
}

/* '?': there is no such process. *threads: those that it still has. */
static char read_state(pid_t pid, int *threads)
{
    char state = '?';

    FILE *file = fopen(textf("/proc/%d/stat", (int)pid), "r");
    if (!file)
        return state;
    if (fscanf(file,
               "%*d %*s %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %*s %*s %*s %d",
               &state, threads) != 2)
        state = '?';
    (void)fclose(file); /* only read */
    return state;
}

char harness_state(pid_t pid)
{
    int threads;

    return read_state(pid, &threads);
}

/*
 * What a fixture started around all tests is no child of the test. Its ports
 * are free once all its threads have ended; the first may do so before others.
 */
static bool has_ended(pid_t pid, int *status)
{
    int threads = 0;
    pid_t ended = waitpid(pid, status, WNOHANG);
    if (ended >= 0)
        return ended > 0;
    char state = read_state(pid, &threads);
    return !strchr("RSDT", state) && (state != 'Z' || threads <= 1);
}

int harness_reap(pid_t pid, int ms)
{
    int64_t deadline_ms = harness_now_ms() + ms;
    int status = 0;

    while (!has_ended(pid, &status)) {
        if (harness_now_ms() > deadline_ms)
            return -1;
        pause_ms(5);
    }
    return status;
}

int harness_run(char *const argv[], char *const env[], char **output)
{
    char dir[PATH_SIZE], log[PATH_SIZE + 8];

    harness_make_dir(dir);
    PRINT_TO(log, "%s/output", dir);
    int status = harness_reap(harness_spawn(argv, env, log), 20000);
    *output = harness_read_file(log);
    ck_assert_msg(status >= 0 && WIFEXITED(status), "status %d\n%s", status,
                  *output);
    return WEXITSTATUS(status);
}

char *harness_read_file(const char *path)
{
    FILE *file = fopen(path, "r");

    ck_assert_msg(file, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    ck_assert_int_ge(size, 0);
    ck_assert_int_eq(fseek(file, 0, SEEK_SET), 0);
    char *text = malloc((size_t)size + 1);
    ck_assert_ptr_nonnull(text);
    size_t len = fread(text, 1, (size_t)size, file);
    text[len] = '\0';
    (void)fclose(file); /* only read */
    return text;
}

char *harness_repeat(const char *form, const char *unit, int count)
{
    size_t len = strlen(unit);
    char *text = malloc(strlen(form) + len * (size_t)count + 1);
    char *out = text;

    ck_assert_ptr_nonnull(text);
    for (; *form; form++) {
        if (*form != '#') {
            *out++ = *form;
            continue;
        }
        for (int i = 0; i < count; i++, out += len)
            memcpy(out, unit, len);
    }
    *out = '\0';
    return text;
}

void harness_raise_descriptors(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

const char *harness_binary(void)
{
    const char *path = getenv("REDLOCKD");

    return path ? path : "build/redlockd";
}

void harness_tool(const char *name, char path[PATH_SIZE])
{
    const char *folder = getenv("TOOLS");

    (void)snprintf(path, PATH_SIZE, "%.200s/%s",
                   folder ? folder : "build/release", name);
    ck_assert_msg(access(path, R_OK) == 0, "%s: %s", path, strerror(errno));
}
