/*
 * Preloaded: adds the microseconds in the file $CLOCK_STEP to what the process
 * is told of the wall clock. The file may change while the process runs.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step_us;

__attribute__((constructor)) static void clock_attach(void)
{
    const char *path = getenv("CLOCK_STEP");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *shared = mmap(NULL, sizeof *step_us, PROT_READ, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        step_us = shared;
    close(fd);
}

static int is_wall(clockid_t id)
{
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    /* the kernel itself: allocators ask before any constructor has run */
    int failed = (int)syscall(SYS_clock_gettime, clock_id, tp);

    if (!failed && is_wall(clock_id) && step_us) {
        int64_t ns = tp->tv_nsec + *step_us % 1000000 * 1000;
        tp->tv_sec += *step_us / 1000000 + (ns >= 1000000000) - (ns < 0);
        tp->tv_nsec = (ns + 1000000000) % 1000000000;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec wall;

    (void)tz;
    clock_gettime(CLOCK_REALTIME, &wall);
    tv->tv_sec = wall.tv_sec;
    tv->tv_usec = wall.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *timer)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    if (timer)
        *timer = wall.tv_sec;
    return wall.tv_sec;
}
