#ifndef TESTS_BENCH_COST_H
#define TESTS_BENCH_COST_H

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
