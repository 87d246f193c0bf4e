#include "cost.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
