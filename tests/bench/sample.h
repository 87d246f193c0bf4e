/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_SAMPLE_H
#define TESTS_BENCH_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Latencies of cycles. Ends the process when out of memory. */
struct sample {
    uint32_t *us;
    size_t count, capacity;
};

/* Microseconds of CLOCK_MONOTONIC. */
int64_t sample_now_us(void);

void sample_add(struct sample *sample, int64_t us);

/* Moves what `other` holds behind what `sample` holds, and frees it. */
void sample_merge(struct sample *sample, struct sample *other);

/* The value below which `percent` of the latencies lie; sorts them; 0 if there
 * are none. */
uint32_t sample_percentile(struct sample *sample, double percent);

/* One line of "name value" pairs: of what `sample` holds, which is `seconds`
 * long, and of all cycles since the start of the process. */
void sample_report(struct sample *sample, double seconds, uint64_t cycles,
                   uint64_t failures);

void sample_fini(struct sample *sample);

/* The CPU time of processes between two moments. */
struct cost {
    const char *name; /* of what they are together */
    const char *pids; /* with commas between; 0: this process */
    long long begin_us;
};

/* NAME=PID,PID…; ends the process if it is something else. */
struct cost cost_of(char *text);

void cost_begin(struct cost *cost);

/* Prints "NAME_cpu_us VALUE " of the time since cost_begin. */
void cost_report(const struct cost *cost);

#endif
