/*
 * The differential test: differ [--seeds N] [--seed FIRST] [--batches B]
 *
 * Runs random batches of calls through a simulated node and through a real
 * redis-server with the real script, and compares what they reply, so that the
 * two cannot drift apart. Between the batches other hands change the memory.
 *
 * The simulated node's clock shows what the real one told. Near the end of a
 * lock the two may tell its last milliseconds apart: that is waited for.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../server/fence.h"
#include "real.h"

enum {
    CALLS_MAX = 5,
    WINDOW_US = 1000000,
    MARGIN_MS = 4, /* around the end of a lock */
    DOUBT_MS = 2,  /* the real node reads its clock twice */
};

struct run {
    uint64_t random;
    struct real *real;
    struct simmemory memory;
    int64_t clock_us; /* the node's, when it last told */
    uint64_t calls[SCRIPT_KINDS];
    uint64_t votes[VOTE_KINDS];
    uint64_t words[LOOK_WORDS];
    uint64_t undecided;
};

static int64_t pick(struct run *run, int64_t below)
{
    uint64_t z = (run->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}

static struct span any_text(struct run *run, const char *const *texts,
                            int count)
{
    return span_of(texts[pick(run, count)]);
}

/* ---- random calls ------------------------------------------------------- */

static const char *const admits[] = {"1:one:r1", "1:one:r2", "1:two:r1",
                                     "2:one:r1", "2:two:r2", "3:two:r2"};
static const char *const tokens[] = {"1700000000000000.a", "b", "cc.dd.me"};
static const char *const nonces[] = {"0000000000000001", "0000000000000002",
                                     "00000000000000ff"};

enum { ADMITS = 6, TOKENS = 3, NONCES = 3 };

static int64_t any_number(struct run *run, int resource)
{
    static const int64_t offsets_us[] = {0,      -500000, 500000,
                                         900000, 1100000, -1200000};
    int64_t highest = run->memory.highest[resource];
    if (highest != 0 && pick(run, 3) == 0)
        return highest + pick(run, 3) - 1;
    return run->clock_us + offsets_us[pick(run, 6)];
}

/* The mark or the admission that is there, or another. */
static struct span any_found(struct run *run, enum script_kind kind)
{
    const char *there =
        kind == SCRIPT_READMIT ? run->memory.admit : run->memory.mark;
    if (pick(run, 4) != 0)
        return span_of(there);
    return pick(run, 2) == 0 ? (struct span){"", 0}
                             : any_text(run, admits, ADMITS);
}

static void make_call(struct run *run, struct span admit,
                      struct script_call *call)
{
    enum script_kind kind = (enum script_kind)pick(run, SCRIPT_KINDS);
    int resource = (int)pick(run, SIM_RESOURCES);
    struct span name = span_of(simnode_resource(resource));
    static const int64_t ttls_ms[] = {1, 10, 30, 500, 60000, 90000};
    bool has_lock = kind >= SCRIPT_ACQUIRE;
    *call = (struct script_call){
        .kind = kind,
        .resource = has_lock ? name : (struct span){0},
        .token = has_lock ? any_text(run, tokens, TOKENS) : (struct span){0},
        .admit = admit,
        .nonce = any_text(run, nonces, NONCES),
        .found = any_found(run, kind),
        .max_ttl_ms = 1000 + 1000 * pick(run, 3),
        .beat_us = run->memory.beat_us + pick(run, 3) - 1,
        .is_durable = pick(run, 3) != 0,
        .ttl_ms = ttls_ms[pick(run, 6)],
        .number = any_number(run, resource),
        .node_deadline_us = run->clock_us + (pick(run, 12) - 1) * 1000000,
        .window_us = WINDOW_US,
        .slot = fence_slot(name),
    };
    if (call->beat_us < 0)
        call->beat_us = 0;
    if (kind == SCRIPT_LOOK && pick(run, 3) == 0)
        call->nonce = (struct span){0};
}

/* ---- what other hands do ------------------------------------------------ */

static void delete_field(struct run *run, const char *name, void *field,
                         size_t size)
{
    real_command(run->real, "HDEL %s %s", REAL_PREFIX "redlockd:state", name);
    memset(field, 0, size);
}

static void write_state(struct run *run)
{
    static const char *const state = REAL_PREFIX "redlockd:state";
    struct simmemory *memory = &run->memory;
    struct span admit = any_text(run, admits, ADMITS);
    switch (pick(run, 3)) {
    case 0:
        memory->admit[span_copy(memory->admit, admit)] = '\0';
        real_command(run->real, "HSET %s admit %s", state, memory->admit);
        break;
    case 1:
        memory->durable = pick(run, 2) != 0 ? '1' : '0';
        real_command(run->real, "HSET %s durable %s", state,
                     memory->durable == '1' ? "1" : "0");
        break;
    default: /* long ago, just now, or to come */
        memory->beat_us = run->clock_us + (pick(run, 5) - 3) * 1000000;
        real_command(run->real, "HSET %s beat %lld", state,
                     (long long)memory->beat_us);
    }
}

static void set_key(struct run *run, int resource)
{
    struct simkey *key = &run->memory.keys[resource];
    struct span token = any_text(run, tokens, TOKENS);
    int64_t expires_ms = run->clock_us / 1000 + 5000 + pick(run, 60000);
    key->is_set = true;
    key->token_len = span_copy(key->token, token);
    key->expires_ms = expires_ms;
    real_command(run->real, "SET %s%s %b PXAT %lld", REAL_PREFIX,
                 simnode_resource(resource), token.ptr, token.len,
                 (long long)expires_ms);
}

static void forget_all(struct run *run)
{
    real_command(run->real, "FLUSHALL");
    run->memory = (struct simmemory){0};
}

static void interfere(struct run *run)
{
    struct simmemory *memory = &run->memory;
    int resource = (int)pick(run, SIM_RESOURCES);
    switch (pick(run, 14)) {
    case 0:
        forget_all(run);
        break;
    case 1:
        delete_field(run, "admit", memory->admit, sizeof memory->admit);
        break;
    case 2:
        delete_field(run, "mark", memory->mark, sizeof memory->mark);
        break;
    case 3:
        delete_field(run, "durable", &memory->durable, sizeof memory->durable);
        break;
    case 4:
        delete_field(run, "beat", &memory->beat_us, sizeof memory->beat_us);
        break;
    case 5:
        real_command(run->real, "DEL %s%s", REAL_PREFIX,
                     simnode_resource(resource));
        memory->keys[resource].is_set = false;
        break;
    case 6:
    case 7:
        set_key(run, resource);
        break;
    default:
        write_state(run);
    }
}

/* ---- comparing ---------------------------------------------------------- */

static bool is_same_text(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool is_same_look(const struct script_look *a,
                         const struct script_look *b)
{
    return a->word == b->word && is_same_text(a->admit, b->admit) &&
           is_same_text(a->mark, b->mark) && a->max_ttl_ms == b->max_ttl_ms &&
           a->is_durable == b->is_durable && a->beat_us == b->beat_us;
}

static bool is_same(const struct script_reply *real,
                    const struct script_reply *sim)
{
    return real->vote == sim->vote && real->node_now_us == sim->node_now_us &&
           llabs(real->pttl_ms - sim->pttl_ms) <= DOUBT_MS &&
           real->highest == sim->highest &&
           is_same_text(real->value, sim->value) &&
           is_same_look(&real->look, &sim->look);
}

static void print_reply(const char *whose, const struct script_reply *reply)
{
    printf("  %s: %s now %lld pttl %lld highest %lld value %.*s look %d "
           "admit %.*s mark %.*s max_ttl %lld durable %d beat %lld\n",
           whose, vote_name(reply->vote), (long long)reply->node_now_us,
           (long long)reply->pttl_ms, (long long)reply->highest,
           (int)reply->value.len, reply->value.ptr, (int)reply->look.word,
           (int)reply->look.admit.len, reply->look.admit.ptr,
           (int)reply->look.mark.len, reply->look.mark.ptr,
           (long long)reply->look.max_ttl_ms, reply->look.is_durable,
           (long long)reply->look.beat_us);
}

static int64_t real_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until no lock is about to end. */
static void wait_for_ends(struct run *run)
{
    for (int i = 0; i < SIM_RESOURCES; i++) {
        const struct simkey *key = &run->memory.keys[i];
        int64_t now_ms = real_now_ms();
        run->clock_us = now_ms * 1000;
        if (key->is_set && llabs(key->expires_ms - now_ms) <= MARGIN_MS) {
            usleep((2 * MARGIN_MS + 1) * 1000);
            i = -1; /* and what of the others by now? */
        }
    }
}

static bool run_batch(struct run *run)
{
    struct script_call calls[CALLS_MAX];
    struct simcall copies[CALLS_MAX];
    struct simreply real[CALLS_MAX];
    int count = 1 + (int)pick(run, CALLS_MAX);
    struct span admit = span_of(run->memory.admit);
    if (admit.len == 0 || pick(run, 3) == 0)
        admit = any_text(run, admits, ADMITS);
    wait_for_ends(run);
    for (int i = 0; i < count; i++) {
        make_call(run, admit, &calls[i]);
        simcall_copy(&copies[i], &calls[i]); /* it borrows from the memory */
    }
    int64_t began_ms = real_now_ms();
    real_run(run->real, calls, count, real);
    if (real_now_ms() - began_ms > DOUBT_MS) {
        run->undecided++; /* it was stopped in between, who knows where */
        forget_all(run);
        return true;
    }
    for (int i = 0; i < count; i++) {
        struct simreply sim;
        simnode_execute(&run->memory, &copies[i], real[i].reply.node_now_us,
                        &sim);
        run->calls[calls[i].kind]++;
        run->votes[sim.reply.vote]++;
        if (calls[i].kind == SCRIPT_LOOK)
            run->words[sim.reply.look.word]++;
        if (is_same(&real[i].reply, &sim.reply))
            continue;
        printf("  call %d of %d: %s\n", i + 1, count,
               script_name(calls[i].kind));
        print_reply("real", &real[i].reply);
        print_reply("sim ", &sim.reply);
        return false;
    }
    return true;
}

static bool run_seed(struct run *run, uint64_t seed, int batches)
{
    run->random = seed;
    forget_all(run);
    for (int i = 0; i < batches; i++) {
        if (!run_batch(run)) {
            printf("seed %llu: batch %d differs\n", (unsigned long long)seed,
                   i + 1);
            return false;
        }
        if (pick(run, 8) == 0)
            interfere(run);
    }
    return true;
}

static void print_counts(const struct run *run)
{
    static const char *const words[LOOK_WORDS] = {
        "admitted", "superseded", "foreign", "empty",
        "bare",     "fresh",      "created", "marked"};
    for (int i = 0; i < SCRIPT_KINDS; i++)
        printf("  %-20s %llu\n", script_name((enum script_kind)i),
               (unsigned long long)run->calls[i]);
    printf("replies\n");
    for (int i = 0; i < VOTE_KINDS; i++)
        if (run->votes[i] > 0)
            printf("  %-20s %llu\n", vote_name((enum vote)i),
                   (unsigned long long)run->votes[i]);
    for (int i = 0; i < LOOK_WORDS; i++)
        printf("  look: %-14s %llu\n", words[i],
               (unsigned long long)run->words[i]);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"batches", required_argument, NULL, 'b'},
        {0},
    };
    uint64_t first = 1, count = 40, failed = 0;
    int batches = 500;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'n') {
            count = strtoull(optarg, NULL, 10);
        } else if (c == 's') {
            first = strtoull(optarg, NULL, 10);
        } else if (c == 'b') {
            batches = atoi(optarg);
        } else {
            fprintf(stderr, "usage: differ [--seeds N] [--seed FIRST] "
                            "[--batches B]\n");
            return EXIT_FAILURE;
        }
    }
    static struct run run;
    static struct real real;
    real_start(&real);
    run.real = &real;
    for (uint64_t i = 0; i < count; i++)
        failed += !run_seed(&run, first + i, batches);
    real_stop(&real);
    print_counts(&run);
    printf("undecided batches %llu\n", (unsigned long long)run.undecided);
    printf("differ: %llu passed, %llu failed\n",
           (unsigned long long)(count - failed), (unsigned long long)failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
