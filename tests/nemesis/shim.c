/* SPDX-License-Identifier: MIT */
/* Preloaded into nodes and servers:
 *
 *   NEMESIS_CLOCK=FILE      wall clocks show what FILE says; monotonic clocks
 *                           are left alone
 *   NEMESIS_PORTS=A=B,…     connections to port A of loopback go to port B, so
 *                           that servers which know the nodes by the same names
 *                           reach them each in a way of its own
 *   NEMESIS_NAMES=FILE      "NAME PORT" in a line of FILE: NAME leads to this
 *                           port of loopback, for as long as FILE says so
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PORTS_MAX = 9 };

/* What a wall clock shows: the true time, offset, and rate since base. */
struct setting {
    int64_t base_ns;
    int64_t offset_ns;
    int64_t rate_ppb; /* parts in 10^9 */
};

/* The driver fills the setting that is not in use, then changes the index. */
struct page {
    uint32_t index; /* and four bytes of padding */
    struct setting settings[2];
};

static const volatile struct page *page;
static struct {
    uint16_t from, to;
} ports[PORTS_MAX];
static int port_count;
static const char *names; /* the file; NULL: none */

typedef int (*gettime_fn)(clockid_t, struct timespec *);
typedef int (*connect_fn)(int, const struct sockaddr *, socklen_t);
typedef int (*lookup_fn)(const char *, const char *, const struct addrinfo *,
                         struct addrinfo **);
static gettime_fn real_gettime;
static connect_fn real_connect;
static lookup_fn real_lookup;

/* ISO C knows no conversion from an object's pointer to a function's. */
static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

static void read_ports(const char *text)
{
    while (text && *text && port_count < PORTS_MAX) {
        char *end;
        ports[port_count].from = (uint16_t)strtoul(text, &end, 10);
        if (*end != '=')
            abort();
        ports[port_count++].to = (uint16_t)strtoul(end + 1, &end, 10);
        text = *end == ',' ? end + 1 : NULL;
    }
}

__attribute__((constructor)) static void begin(void)
{
    find(&real_gettime, "clock_gettime");
    find(&real_connect, "connect");
    find(&real_lookup, "getaddrinfo");
    read_ports(getenv("NEMESIS_PORTS"));
    names = getenv("NEMESIS_NAMES");
    const char *path = getenv("NEMESIS_CLOCK");
    if (!path)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || at == MAP_FAILED)
        abort();
    close(fd);
    page = at;
}

static int64_t distort(int64_t true_ns)
{
    if (!page)
        return true_ns;
    const volatile struct setting *setting = &page->settings[page->index & 1];
    double since_ns = (double)(true_ns - setting->base_ns);
    return true_ns + setting->offset_ns +
           (int64_t)(since_ns * (double)setting->rate_ppb / 1e9);
}

static bool find_name(const char *name, char port[8])
{
    char entry[64];
    bool is_found = false;
    FILE *file = names && *names && name ? fopen(names, "re") : NULL;
    if (!file)
        return false;
    while (!is_found && fscanf(file, "%63s %7s", entry, port) == 2)
        is_found = strcmp(entry, name) == 0;
    (void)fclose(file);
    return is_found;
}

/* The C library's own names for parameters are reserved.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

int clock_gettime(clockid_t id, struct timespec *now)
{
    /* somebody may ask before our constructor ran */
    int rc = real_gettime ? real_gettime(id, now)
                          : (int)syscall(SYS_clock_gettime, id, now);
    if (rc || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return rc;
    int64_t ns = distort((int64_t)now->tv_sec * 1000000000 + now->tv_nsec);
    now->tv_sec = ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec precise;
    int rc = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return rc;
}

time_t time(time_t *out)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    struct sockaddr_in to;
    if (port_count == 0 || address->sa_family != AF_INET || size < sizeof to)
        return real_connect(fd, address, size);
    memcpy(&to, address, sizeof to);
    for (int i = 0; i < port_count; i++) {
        if (to.sin_port == htons(ports[i].from)) {
            to.sin_port = htons(ports[i].to);
            break;
        }
    }
    return real_connect(fd, (const struct sockaddr *)&to, sizeof to);
}

int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **found)
{
    char port[8];
    return find_name(name, port) ? real_lookup("127.0.0.1", port, hints, found)
                                 : real_lookup(name, service, hints, found);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
