/* SPDX-License-Identifier: MIT */
/*
 * The simulator: sim [--seeds N] [--seed FIRST] [--fresh N] [--kept FILE]
 *                    [--seconds S] [--faults NAME,...] [--trace]
 *
 * Runs the seeds of a file, N from FIRST on, and N that are new each time, S
 * simulated seconds each. A violation prints its seed; the same seed repeats
 * the same run, and --trace shows what happened in it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../server/base/log.h"
#include "../lib/seeds/seeds.h"
#include "clients.h"
#include "endings.h"
#include "faults.h"
#include "plan.h"

struct totals {
    uint64_t rounds;
    uint64_t watched;  /* of them, all but releases; and of these … */
    uint64_t impaired; /* … those that met a fault */
    uint64_t left, lost, doubled, repeated, windfalls, excused;
    uint64_t permits, full, queries, permit_rounds;
    uint64_t asked[ASKS], listed, revived, spreads, sames;
    uint64_t outcomes[OUTCOME_KINDS];
    uint64_t votes[BALLOT_KINDS];   /* in the deciding rounds */
    uint64_t replies[BALLOT_KINDS]; /* all, including late ones */
    uint64_t faults[FAULTS];
};

static const char *const ask_names[ASKS] = {
    "acquire", "extend", "release", "inspect", "watch", "force", "list", "pool",
};

static void add_totals(struct totals *totals, const struct world *world)
{
    const struct clients *clients = world->clients;
    totals->left += clients->left;
    totals->lost += clients->lost;
    totals->doubled += clients->doubled;
    totals->repeated += clients->repeated;
    totals->windfalls += clients->ledger.windfall_count;
    totals->excused += clients->ledger.excused;
    totals->listed += clients->listed;
    totals->spreads += clients->ledger.spreads;
    totals->sames += clients->ledger.sames;
    totals->revived += clients->ledger.revived;
    for (int i = 0; i < ASKS; i++)
        totals->asked[i] += clients->asked[i];
    for (int i = 0; i < OUTCOME_KINDS; i++)
        totals->outcomes[i] += clients->outcomes[i];
    for (int i = 0; i < BALLOT_KINDS; i++)
        totals->votes[i] += clients->votes[i];
    for (int i = 0; i < FAULTS; i++)
        totals->faults[i] += world->faults->count[i];
    for (int i = 0; i < SIM_SERVERS; i++) {
        const struct simserver *server = &world->servers[i];
        const struct metrics_histogram *rounds_of =
            server->metrics.round_duration;
        uint64_t rounds = rounds_of[LOCK_ACQUIRE].count +
                          rounds_of[LOCK_EXTEND].count +
                          rounds_of[LOCK_INSPECT].count;
        totals->rounds += rounds + rounds_of[LOCK_RELEASE].count;
        totals->watched += rounds;
        totals->permits += server->metrics.permit_grants;
        totals->full += server->metrics.permit_refusals;
        totals->queries += server->metrics.permit_queries;
        totals->permit_rounds += world->has_permits ? rounds : 0;
        for (int j = 0; j < SIM_NODES; j++)
            for (int k = 0; k < BALLOT_KINDS; k++)
                totals->replies[k] += server->metrics.votes[j][k];
        totals->impaired += server->rounds_impaired;
        if (rounds > server->rounds_sent) /* nobody could be asked */
            totals->impaired += rounds - server->rounds_sent;
    }
}

struct arguments {
    struct seeds seeds;
    int64_t seconds;
    bool is_tracing;
    uint64_t only; /* bit per fault; 0: each seed chooses */
};

struct run {
    const struct arguments *arguments;
    struct totals totals;
};

static bool run_seed(void *ctx, uint64_t seed)
{
    struct run *run = ctx;
    const struct arguments *arguments = run->arguments;
    static struct world world;
    static struct clients clients;
    static struct faults faults;
    clients = (struct clients){0};
    world.is_tracing = arguments->is_tracing;
    world.only = arguments->only;
    world_init(&world, seed, &clients, &faults);
    clients_start(&world);
    world_run(&world, arguments->seconds * 1000000);
    faults_calm(&world);
    endings_check(&world);
    add_totals(&run->totals, &world);
    world_fini(&world);
    if (clients.ledger.violation[0] != '\0')
        printf("seed %llu: %s\n", (unsigned long long)seed,
               clients.ledger.violation);
    return clients.ledger.violation[0] == '\0';
}

static void print_count(const char *name, uint64_t count)
{
    printf("  %-20s %llu\n", name, (unsigned long long)count);
}

static void print_totals(const struct totals *totals)
{
    printf("rounds %llu, %.1f%% of them with a fault\n",
           (unsigned long long)totals->rounds,
           100.0 * (double)totals->impaired / (double)totals->watched);
    printf("requests\n");
    for (int i = 0; i < ASKS; i++)
        print_count(ask_names[i], totals->asked[i]);
    print_count("listed locks", totals->listed);
    print_count("revived locks", totals->revived);
    print_count("spread locks", totals->spreads);
    print_count("permits repeated", totals->sames);
    printf("outcomes\n");
    for (int i = OUTCOME_PENDING + 1; i < OUTCOME_KINDS; i++)
        print_count(outcome_name((enum outcome)i), totals->outcomes[i]);
    print_count("client left", totals->left);
    print_count("server lost", totals->lost);
    print_count("asked twice", totals->doubled);
    print_count("repeated grants", totals->repeated);
    print_count("permits granted", totals->permits);
    print_count("permits refused", totals->full);
    print_count("queries", totals->queries);
    print_count("permit rounds", totals->permit_rounds);
    print_count("votes of evictors", totals->windfalls);
    print_count("excused by that", totals->excused);
    printf("votes, and replies of all kinds\n");
    for (int i = 0; i < BALLOT_KINDS; i++)
        printf("  %-20s %-12llu %llu\n", ballot_name(ballot_of_number(i)),
               (unsigned long long)totals->votes[i],
               (unsigned long long)totals->replies[i]);
    printf("faults\n");
    for (int i = 0; i < FAULTS; i++)
        print_count(fault_kinds[i].name, totals->faults[i]);
}

/* The bits of the faults in text, "step,restart"; exits on an unknown name. */
static uint64_t parse_faults(char *text)
{
    uint64_t bits = 0;
    char *rest = NULL;
    for (const char *name = strtok_r(text, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        int i = 0;
        while (i < FAULTS && strcmp(name, fault_kinds[i].name) != 0)
            i++;
        if (i == FAULTS) {
            fprintf(stderr, "sim: no such fault: %s\n", name);
            exit(EXIT_FAILURE);
        }
        bits |= fault_bit((enum fault)i);
    }
    return bits;
}

static void parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"fresh", required_argument, NULL, 'r'},
        {"kept", required_argument, NULL, 'k'},
        {"seconds", required_argument, NULL, 't'},
        {"faults", required_argument, NULL, 'f'},
        {"trace", no_argument, NULL, 'v'},
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'n':
            arguments->seeds.count = strtoull(optarg, NULL, 10);
            break;
        case 's':
            arguments->seeds.first = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            arguments->seeds.fresh = strtoull(optarg, NULL, 10);
            break;
        case 'k':
            arguments->seeds.kept = optarg;
            break;
        case 't':
            arguments->seconds = strtoll(optarg, NULL, 10);
            break;
        case 'f':
            arguments->only = parse_faults(optarg);
            break;
        case 'v':
            arguments->is_tracing = true;
            break;
        default:
            fprintf(stderr, "usage: sim [--seeds N] [--seed FIRST] "
                            "[--fresh N] [--kept FILE] [--seconds S] [--faults "
                            "NAME,...] [--trace]\n");
            exit(EXIT_FAILURE);
        }
    }
}

/* What repeats a run, but for its seed. */
static void print_replay(char *text, size_t size, const char *program,
                         const struct arguments *arguments)
{
    size_t len = (size_t)snprintf(text, size, "%s --seconds %lld", program,
                                  (long long)arguments->seconds);
    const char *before = " --faults ";
    for (int i = 0; i < FAULTS; i++)
        if ((arguments->only & fault_bit((enum fault)i)) != 0 && len < size) {
            len += (size_t)snprintf(text + len, size - len, "%s%s", before,
                                    fault_kinds[i].name);
            before = ",";
        }
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.seeds = {.first = 1, .count = 100},
                                  .seconds = 60};
    char replay[1000];
    struct run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) {
        perror("sim");
        return EXIT_FAILURE;
    }
    parse(argc, argv, &arguments);
    print_replay(replay, sizeof replay, argv[0], &arguments);
    arguments.seeds.replay = replay;
    arguments.seeds.are_apart = !arguments.is_tracing; /* for a debugger */
    run->arguments = &arguments;
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* traces and logs in order */
    log_set_level(arguments.is_tracing ? LOG_DEBUG : LOG_OFF);
    struct seeds_played played = seeds_play(&arguments.seeds, run_seed, run);
    print_totals(&run->totals);
    printf("sim: %llu passed, %llu failed\n", (unsigned long long)played.passed,
           (unsigned long long)played.failed);
    return played.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
