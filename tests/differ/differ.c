/* SPDX-License-Identifier: MIT */
/*
 * The differential test: differ [--seeds N] [--seed FIRST] [--fresh N]
 *                               [--kept FILE] [--batches B]
 *
 * Runs random batches of calls through a simulated node and through a real
 * redis-server with the real script, and compares what they reply, what they
 * announce and what state they leave behind, so that the two cannot drift
 * apart. Between the batches other hands change the data.
 *
 * The simulated node's clock shows what the real one told. Near the end of a
 * lock the two may tell its last milliseconds apart: that is waited for.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"
#include "../lib/node/simholders.h"
#include "../lib/seeds/seeds.h"
#include "calls.h"
#include "state.h"

enum {
    MARGIN_MS = 4, /* around the end of a lock */
    DOUBT_MS = 2,  /* the real node reads its clock twice */
};

/* ---- comparing ---------------------------------------------------------- */

static bool is_same_probe(const struct call_probe *a,
                          const struct call_probe *b)
{
    return a->word == b->word && span_is_same(a->admit, b->admit) &&
           span_is_same(a->quarantine, b->quarantine) &&
           a->max_ttl_ms == b->max_ttl_ms && a->is_durable == b->is_durable &&
           a->generation == b->generation && a->rest_us == b->rest_us &&
           a->number == b->number && a->is_full == b->is_full &&
           span_is_same(a->witnesses, b->witnesses) &&
           span_is_same(a->taken, b->taken) &&
           span_is_same(a->passed, b->passed) &&
           span_is_same(a->trace, b->trace);
}

static bool is_same(const struct call_reply *real, const struct call_reply *sim)
{
    return real->vote == sim->vote && real->state == sim->state &&
           real->node_now_us == sim->node_now_us &&
           real->was_free == sim->was_free &&
           llabs(real->pttl_ms - sim->pttl_ms) <= DOUBT_MS &&
           real->highest == sim->highest &&
           real->generation == sim->generation &&
           real->listeners == sim->listeners && real->holders == sim->holders &&
           span_is_same(real->value, sim->value) &&
           span_is_same(real->slots, sim->slots) && real->left == sim->left &&
           span_is_same(real->names, sim->names) &&
           is_same_probe(&real->probe, &sim->probe);
}

static void print_reply(const char *whose, const struct call_reply *reply)
{
    const struct call_probe *probe = &reply->probe;
    printf("  %s: %s now %lld generation %lld free %d pttl %lld highest %lld "
           "listeners %lld holders %lld value %.*s slots %.*s left %lld tokens "
           "%.*s "
           "probe %d admit %.*s quarantine record %.*s max_ttl %lld durable %d "
           "generation %lld "
           "rest %lld number %lld full %d witnesses %.*s trace %.*s\n",
           whose, ballot_name(call_ballot(reply)),
           (long long)reply->node_now_us, (long long)reply->generation,
           reply->was_free, (long long)reply->pttl_ms,
           (long long)reply->highest, (long long)reply->listeners,
           (long long)reply->holders, (int)reply->value.len, reply->value.ptr,
           (int)reply->slots.len, reply->slots.ptr, (long long)reply->left,
           (int)reply->names.len, reply->names.ptr, (int)probe->word,
           (int)probe->admit.len, probe->admit.ptr, (int)probe->quarantine.len,
           probe->quarantine.ptr, (long long)probe->max_ttl_ms,
           probe->is_durable, (long long)probe->generation,
           (long long)probe->rest_us, (long long)probe->number, probe->is_full,
           (int)probe->witnesses.len, probe->witnesses.ptr,
           (int)probe->trace.len, probe->trace.ptr);
}

static int64_t real_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The key or one of its holders. */
static bool is_about_to_end(struct run *run, int resource, int64_t now_ms)
{
    const struct simkey *key = &run->memory.keys[resource];
    const struct simholder *it = NULL;
    if (key->is_set && llabs(key->expires_ms - now_ms) <= MARGIN_MS)
        return true;
    while ((it = simholders_next(&run->memory, resource, it)) != NULL)
        if (llabs(it->ends_ms - now_ms) <= MARGIN_MS)
            return true;
    return false;
}

static bool is_key_about_to_end(const struct run *run, int64_t now_ms)
{
    for (int i = 0; i < SIM_REPEATS; i++)
        if (llabs(run->memory.repeats[i].until_ms - now_ms) <= MARGIN_MS)
            return true;
    return false;
}

/* Until no lock is about to end. */
static void wait_for_ends(struct run *run)
{
    for (int i = 0; i < SIM_RESOURCES; i++) {
        int64_t now_ms = real_now_ms();
        run->clock_us = now_ms * 1000;
        if (is_about_to_end(run, i, now_ms) ||
            is_key_about_to_end(run, now_ms)) {
            usleep((2 * MARGIN_MS + 1) * 1000);
            i = -1; /* and what of the others by now? */
        }
    }
}

/* What the simulated node announces. */
static int announce(void *ctx, int resource, struct span message)
{
    struct run *run = ctx;
    size_t len = strlen(run->heard);
    if (!run->is_heard[resource + 1])
        return 0;
    snprintf(run->heard + len, sizeof run->heard - len, " %s=%.*s",
             resource < 0 ? "" : simnode_resource(resource), (int)message.len,
             message.ptr);
    run->announced++;
    return 1;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A row announces what it deletes after all readers that it released. */
static void sort_words(char text[REAL_HEARD_MAX])
{
    char copy[REAL_HEARD_MAX], *words[REAL_HEARD_MAX / 2], *rest;
    size_t count = 0;
    memcpy(copy, text, sizeof copy);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    /* cppcheck-suppress uninitvar; those below count are set */
    qsort(words, count, sizeof *words, compare_words);
    for (size_t i = 0; i < count; i++)
        text += sprintf(text, " %s", words[i]);
}

static bool has_heard_the_same(struct run *run)
{
    char real[REAL_HEARD_MAX];
    real_hear(run->real, real);
    sort_words(real);
    sort_words(run->heard);
    if (strcmp(real, run->heard) == 0)
        return true;
    printf("  announced\n  real:%s\n  sim :%s\n", real, run->heard);
    return false;
}

/* Whether a lock that it is about has the other form of its token. */
static bool has_other_form(struct run *run, const struct simcall *call,
                           int64_t clock_us)
{
    char text[SIM_TOKEN_MAX];
    struct span token = {text, span_copy(text, call->call.token)};
    if (token.len <= TOKEN_NUMBER_LEN)
        return false;
    /* cppcheck-suppress unreadVariable; the token is this text */
    text[TOKEN_NUMBER_LEN] = token_is_shared(token) ? '.' : TOKEN_SHARED;
    for (int i = 0; i < call->names; i++)
        if (call->resources[i] != SIM_POOL && /* of a call about its slots */
            simnode_has(&run->memory, call->resources[i], token, clock_us))
            return true;
    return false;
}

static bool has_done(enum vote vote)
{
    return vote == VOTE_GRANTED || vote == VOTE_EXTENDED ||
           vote == VOTE_DELETED;
}

static void count_shared(struct run *run, const struct simcall *call,
                         const struct call_reply *reply, bool finds_other)
{
    enum call_kind kind = call->call.kind;
    bool is_shared = token_is_shared(call->call.token);
    if (!has_done(reply->vote))
        return;
    run->shared[kind] += is_shared;
    run->replaced += is_shared && kind == CALL_REPEAT && !reply->was_free;
    run->downgrades += kind == CALL_EXTEND && finds_other;
    run->other_forms += kind == CALL_RELEASE && finds_other;
}

/* Its admission, if it has one, is with another replication ID. */
static bool has_other_id(const struct run *run)
{
    const char *id = strrchr(run->memory.admit, ':');
    return id != NULL && strcmp(id + 1, run->process.replid) != 0;
}

/* The same in the simulated node, when the clock showed clock_us. */
static void simulate(struct run *run, int count,
                     const struct simcall copies[CALLS_MAX], int64_t clock_us,
                     struct simreply replies[CALLS_MAX])
{
    struct simbatch batch = {.memory = &run->memory,
                             .process = &run->process,
                             .clock_us = clock_us,
                             .listeners = {announce, run}};
    run->heard[0] = '\0';
    for (int i = 0; i < count; i++) {
        bool finds_other = has_other_form(run, &copies[i], clock_us);
        bool was_other = has_other_id(run);
        simnode_execute(&batch, &copies[i], &replies[i]);
        run->followed += was_other && copies[i].call.kind == CALL_PROBE &&
                         run->memory.admit[0] != '\0' && !has_other_id(run);
        count_shared(run, &copies[i], &replies[i].reply, finds_other);
    }
    for (int i = 0; i < count; i++)
        replies[i].reply.generation = batch.generation;
}

/* What the node's clock showed; near it, if all answers are errors, which do
 * not tell. */
static int64_t clock_of(const struct run *run, int count,
                        const struct simreply replies[CALLS_MAX])
{
    for (int i = 0; i < count; i++)
        if (replies[i].reply.node_now_us != 0)
            return replies[i].reply.node_now_us;
    return run->clock_us;
}

/* Runs it on the real node, which may be full meanwhile. */
static void run_real(struct run *run, const struct call calls[CALLS_MAX],
                     int count, struct simreply replies[CALLS_MAX])
{
    bool is_full = hands_pick(run, 5) == 0;
    if (is_full)
        hands_fill(run, true);
    real_run(run->real, calls, count, replies);
    if (is_full)
        real_command(run->real, "CONFIG SET maxmemory 0");
}

static void note_probe(struct run *run, const struct call_probe *probe)
{
    run->words[probe->word]++;
    run->trace[span_copy(run->trace, probe->trace)] = '\0';
}

static bool run_batch(struct run *run)
{
    struct call calls[CALLS_MAX];
    struct simcall copies[CALLS_MAX];
    struct simreply real[CALLS_MAX], sim[CALLS_MAX];
    int count = 1 + (int)hands_pick(run, CALLS_MAX);
    wait_for_ends(run);
    calls_make(run, count, calls, copies);
    run_real(run, calls, count, real);
    if (real_now_ms() - run->clock_us / 1000 > DOUBT_MS) {
        run->process.is_full = false;
        run->undecided++; /* stopped since no lock was about to end, who knows
                             where */
        real_hear(run->real, run->heard);
        hands_forget(run);
        return true;
    }
    simulate(run, count, copies, clock_of(run, count, real), sim);
    run->process.is_full = false;
    for (int i = 0; i < count; i++) {
        run->calls[calls[i].kind]++;
        if (calls[i].kind < CALL_ACQUIRE)
            run->done[calls[i].kind] += sim[i].reply.vote == VOTE_DONE;
        run->votes[ballot_number(
            (struct ballot){sim[i].reply.vote, sim[i].reply.state})]++;
        run->several[calls[i].kind] +=
            copies[i].names > 1 && has_done(sim[i].reply.vote);
        if (calls[i].kind == CALL_PROBE)
            note_probe(run, &sim[i].reply.probe);
        if (is_same(&real[i].reply, &sim[i].reply))
            continue;
        printf("  call %d of %d: %s %.*s\n", i + 1, count,
               simcall_name(calls[i].kind), (int)calls[i].token.len,
               calls[i].token.ptr);
        print_reply("real", &real[i].reply);
        print_reply("sim ", &sim[i].reply);
        return false;
    }
    return has_heard_the_same(run) && state_is_same(run) &&
           state_has_same_locks(run);
}

static bool run_seed(void *ctx, uint64_t seed)
{
    struct run *run = ctx;
    run->random = seed;
    hands_begin(run);
    for (int i = 0; i < run->batches; i++) {
        if (!run_batch(run)) {
            printf("seed %llu: batch %d differs\n", (unsigned long long)seed,
                   i + 1);
            return false;
        }
        bool is_bare = run->memory.admit[0] == '\0';
        if (is_bare || hands_pick(run, 3) == 0)
            hands_interfere(run);
    }
    return true;
}

static void print_count(const char *what, const char *name, uint64_t count)
{
    printf("  %s%-*s %llu\n", what, 20 - (int)strlen(what), name,
           (unsigned long long)count);
}

static void print_calls(const char *what, const uint64_t counts[], int from,
                        int to)
{
    for (int i = from; i < to; i++)
        print_count(what, simcall_name((enum call_kind)i), counts[i]);
}

static void print_counts(const struct run *run)
{
    static const char *const words[PROBE_WORDS] = {
        "admitted", "superseded", "foreign", "misnamed",   "empty",
        "bare",     "fresh",      "created", "quarantined"};
    print_calls("", run->calls, 0, CALL_SCAN);
    print_calls("", run->calls, CALL_SLOTS, CALL_SLOTS + 1);
    print_calls("done: ", run->done, CALL_PROBE, CALL_ACQUIRE);
    print_calls("several: ", run->several, CALL_ACQUIRE, CALL_INSPECT);
    print_calls("shared: ", run->shared, CALL_ACQUIRE, CALL_INSPECT);
    print_count("shared: ", "replaced", run->replaced);
    print_count("shared: ", "downgrades", run->downgrades);
    print_count("shared: ", "other form", run->other_forms);
    print_count("shared: ", "by hand", run->foreign);
    print_count("probes: ", "other ID", run->followed);
    printf("replies\n");
    for (int i = 0; i < BALLOT_KINDS; i++)
        if (run->votes[i] > 0)
            print_count("", ballot_name(ballot_of_number(i)), run->votes[i]);
    for (int i = 0; i < PROBE_WORDS; i++)
        print_count("probe: ", words[i], run->words[i]);
}

static void parse(int argc, char **argv, struct seeds *seeds, int *batches)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"fresh", required_argument, NULL, 'r'},
        {"kept", required_argument, NULL, 'k'},
        {"batches", required_argument, NULL, 'b'},
        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'n') {
            seeds->count = strtoull(optarg, NULL, 10);
        } else if (c == 's') {
            seeds->first = strtoull(optarg, NULL, 10);
        } else if (c == 'r') {
            seeds->fresh = strtoull(optarg, NULL, 10);
        } else if (c == 'k') {
            seeds->kept = optarg;
        } else if (c == 'b') {
            *batches = atoi(optarg);
        } else {
            fprintf(stderr, "usage: differ [--seeds N] [--seed FIRST] "
                            "[--fresh N] [--kept FILE] [--batches B]\n");
            exit(EXIT_FAILURE);
        }
    }
}

int main(int argc, char **argv)
{
    struct seeds seeds = {.first = 1, .count = 40};
    static struct run run = {.batches = 500};
    static struct real real;
    char replay[1000];
    parse(argc, argv, &seeds, &run.batches);
    snprintf(replay, sizeof replay, "%s --batches %d", argv[0], run.batches);
    seeds.replay = replay;
    real_start(&real);
    run.real = &real;
    struct seeds_played played = seeds_play(&seeds, run_seed, &run);
    real_stop(&real);
    print_counts(&run);
    printf("announced %llu\n", (unsigned long long)run.announced);
    printf("undecided batches %llu\n", (unsigned long long)run.undecided);
    printf("differ: %llu passed, %llu failed\n",
           (unsigned long long)played.passed,
           (unsigned long long)played.failed);
    return played.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
