/*
 * The simulator: sim [--seeds N] [--seed FIRST] [--seconds S]
 *
 * Runs N seeds, S simulated seconds each. A violation prints its seed; the
 * same seed plays the same run again.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../server/log.h"
#include "clients.h"

struct totals {
    uint64_t rounds;
    uint64_t faults;
    uint64_t left;
    uint64_t outcomes[OUTCOME_KINDS];
};

static void add_totals(struct totals *totals, const struct world *world)
{
    totals->faults += world->faults;
    totals->left += world->clients->left;
    for (int i = 0; i < OUTCOME_KINDS; i++)
        totals->outcomes[i] += world->clients->outcomes[i];
    for (int i = 0; i < SIM_SERVERS; i++)
        for (int j = 0; j < METRICS_CALLS; j++)
            totals->rounds += world->servers[i].metrics.round_duration[j].count;
}

static bool run_seed(uint64_t seed, int64_t seconds, struct totals *totals)
{
    static struct world world;
    static struct clients clients;
    clients = (struct clients){0};
    world_init(&world, seed, &clients);
    clients_start(&world);
    world_run(&world, seconds * 1000000);
    world_calm(&world);
    world_run(&world, 4000000);
    clients.is_resting = true;
    for (int i = 0; i < 100 && !clients_are_idle(&clients); i++)
        world_run(&world, 1000000);
    world_run(&world, 3000000);
    clients_check_end(&world);
    add_totals(totals, &world);
    world_fini(&world);
    if (clients.violation[0] != '\0')
        printf("seed %llu: %s\n", (unsigned long long)seed, clients.violation);
    return clients.violation[0] == '\0';
}

static void print_totals(const struct totals *totals)
{
    printf("rounds %llu, faults %llu, clients that left %llu\n",
           (unsigned long long)totals->rounds,
           (unsigned long long)totals->faults,
           (unsigned long long)totals->left);
    for (int i = OUTCOME_PENDING + 1; i < OUTCOME_KINDS; i++)
        printf("  %-20s %llu\n", outcome_name((enum outcome)i),
               (unsigned long long)totals->outcomes[i]);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"seconds", required_argument, NULL, 't'},
        {0},
    };
    uint64_t first = 1;
    uint64_t count = 100;
    int64_t seconds = 20;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'n':
            count = strtoull(optarg, NULL, 10);
            break;
        case 's':
            first = strtoull(optarg, NULL, 10);
            break;
        case 't':
            seconds = strtoll(optarg, NULL, 10);
            break;
        default:
            fprintf(stderr, "usage: sim [--seeds N] [--seed FIRST] "
                            "[--seconds S]\n");
            return EXIT_FAILURE;
        }
    }
    log_set_level(LOG_OFF);
    static struct totals totals;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < count; i++)
        failed += !run_seed(first + i, seconds, &totals);
    print_totals(&totals);
    printf("sim: %llu passed, %llu failed\n",
           (unsigned long long)(count - failed), (unsigned long long)failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
