#include "histogram.h"

const struct histogram_bound histogram_bounds[METRICS_BUCKETS] = {
    {100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},  {1000, "0.001"},
    {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"},
    {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
    {1000000, "1"},   {2500000, "2.5"},
};

const struct histogram_bound histogram_wait_bounds[METRICS_BUCKETS] = {
    {1000, "0.001"},  {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"},
    {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
    {1000000, "1"},   {2500000, "2.5"}, {5000000, "5"},   {10000000, "10"},
    {25000000, "25"}, {60000000, "60"},
};

void histogram_observe(struct metrics_histogram *histogram,
                       const struct histogram_bound *bounds,
                       int64_t duration_us)
{
    int bucket = 0;
    while (bucket < METRICS_BUCKETS && duration_us > bounds[bucket].us)
        bucket++;
    histogram->buckets[bucket]++;
    histogram->count++;
    if (duration_us > 0)
        histogram->sum_us += (uint64_t)duration_us;
}
