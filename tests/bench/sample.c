/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

int64_t sample_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void reserve(struct sample *sample, size_t count)
{
    if (count <= sample->capacity)
        return;
    size_t capacity =
        sample->capacity * 2 > count ? sample->capacity * 2 : count;
    uint32_t *us = reallocarray(sample->us, capacity, sizeof *us);
    if (!us)
        err(1, "bench");
    sample->us = us;
    sample->capacity = capacity;
}

void sample_add(struct sample *sample, int64_t us)
{
    reserve(sample, sample->count + 1);
    sample->us[sample->count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

void sample_merge(struct sample *sample, struct sample *other)
{
    if (other->count > 0) {
        reserve(sample, sample->count + other->count);
        memcpy(sample->us + sample->count, other->us,
               other->count * sizeof *other->us);
        sample->count += other->count;
    }
    sample_fini(other);
}

static int compare(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

uint32_t sample_percentile(struct sample *sample, double percent)
{
    if (sample->count == 0)
        return 0;
    qsort(sample->us, sample->count, sizeof *sample->us, compare);
    size_t rank = (size_t)((double)sample->count * percent / 100);
    return sample->us[rank < sample->count ? rank : sample->count - 1];
}

void sample_report(struct sample *sample, double seconds, uint64_t cycles,
                   uint64_t failures)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    int64_t cpu_us =
        (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
        used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    printf("cycles_per_s %.0f cycles %" PRIu64 " failures %" PRIu64
           " p50_us %" PRIu32 " p99_us %" PRIu32 " p999_us %" PRIu32
           " client_cpu_us %" PRId64 "\n",
           (double)sample->count / seconds, cycles, failures,
           sample_percentile(sample, 50), sample_percentile(sample, 99),
           sample_percentile(sample, 99.9), cpu_us);
}

void sample_fini(struct sample *sample)
{
    free(sample->us);
    *sample = (struct sample){0};
}

static long long used_us(const char *pids)
{
    long long sum_us = 0;
    for (const char *at = pids; at; at = strchr(at, ',')) {
        at += *at == ',';
        clockid_t clock;
        struct timespec used;
        if (clock_getcpuclockid((pid_t)atoi(at), &clock) ||
            clock_gettime(clock, &used))
            errx(1, "no such process among %s", pids);
        sum_us += (long long)used.tv_sec * 1000000 + used.tv_nsec / 1000;
    }
    return sum_us;
}

struct cost cost_of(char *text)
{
    char *pids = strchr(text, '=');
    if (!pids)
        errx(2, "not NAME=PID,PID…: %s", text);
    *pids++ = '\0';
    return (struct cost){.name = text, .pids = pids};
}

void cost_begin(struct cost *cost)
{
    cost->begin_us = used_us(cost->pids);
}

void cost_report(const struct cost *cost)
{
    printf("%s_cpu_us %lld ", cost->name, used_us(cost->pids) - cost->begin_us);
}
