/*
 * The differential test: differ [--seeds N] [--seed FIRST] [--batches B]
 *
 * Runs random batches of calls through a simulated node and through a real
 * redis-server with the real script, and compares what they reply, what they
 * announce and what state they leave behind, so that the two cannot drift
 * apart. Between the batches other hands change the memory.
 *
 * The simulated node's clock shows what the real one told. Near the end of a
 * lock the two may tell its last milliseconds apart: that is waited for.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../server/base/names.h"
#include "../../server/engine/fence.h"
#include "hands.h"
#include "state.h"

enum {
    CALLS_MAX = 5,
    WINDOW_US = 1000000,
    MARGIN_MS = 4, /* around the end of a lock */
    DOUBT_MS = 2,  /* the real node reads its clock twice */
};

static struct span any_text(struct run *run, const char *const *texts,
                            int count)
{
    return span_of(texts[hands_pick(run, count)]);
}

/* ---- random calls ------------------------------------------------------- */

static const char *const nonces[] = {"0000000000000001", "0000000000000002",
                                     "00000000000000ff",
                                     "first-0000000000000003"};
static const char *const others[] = {"00000000000000a1", "00000000000000b2",
                                     "m00000000000000b2", "00000000000000c3"};

enum { NONCES = 4, OTHERS = 4 };

static int64_t any_number(struct run *run, int resource)
{
    static const int64_t offsets_us[] = {0,      -500000, 500000,
                                         900000, 1100000, -1200000};
    int64_t highest = run->memory.highest[resource];
    if (highest != 0 && hands_pick(run, 3) == 0)
        return highest + hands_pick(run, 3) - 1;
    return run->clock_us + offsets_us[hands_pick(run, 6)];
}

/* A text of our own, for as long as the batch is made. */
typedef char state_text[CALL_STATE_MAX + 1];

static struct span make_admission(struct run *run, state_text text)
{
    snprintf(text, sizeof(state_text), "%s:%s", hands_admit(run),
             hands_replid(run));
    return span_of(text);
}

static struct span make_mark(struct run *run, state_text text)
{
    static const char *const lives[] = {"1:r1", "1:r2", "2:r1", "3:r2"};
    snprintf(text, sizeof(state_text), "%s:%s:%lld:%s",
             lives[hands_pick(run, 4)], hands_replid(run),
             (long long)hands_pick(run, 2) * run->clock_us,
             nonces[hands_pick(run, NONCES)]);
    return span_of(text);
}

/* The admission that is there, whole or without the end, or another. */
static struct span any_admit(struct run *run, bool is_whole, state_text text)
{
    const char *replid = strrchr(run->memory.admit, ':');
    if (replid != NULL && hands_pick(run, 6) != 0)
        return (struct span){run->memory.admit,
                             is_whole ? strlen(run->memory.admit)
                                      : (size_t)(replid - run->memory.admit)};
    if (is_whole && hands_pick(run, 2) == 0)
        return make_admission(run, text);
    return span_of(hands_admit(run));
}

/* The admission that is there, or another, or none. */
static struct span any_found(struct run *run, state_text text)
{
    if (hands_pick(run, 4) != 0)
        return span_of(run->memory.admit);
    if (hands_pick(run, 2) == 0)
        return span_of("");
    return make_admission(run, text);
}

/* The mark that is there, or another, or none. */
static struct span any_mark(struct run *run, state_text text)
{
    if (hands_pick(run, 4) != 0)
        return span_of(run->memory.mark);
    if (hands_pick(run, 4) == 0)
        return span_of("");
    return make_mark(run, text);
}

/* The greatest beat that a caller knows: about that of the node, or less. */
static int64_t any_floor(struct run *run)
{
    int64_t beat = run->memory.beat.it + (hands_pick(run, 4) == 0);
    int64_t floor = beat - hands_pick(run, 3);
    return floor < 0 || hands_pick(run, 8) == 0 ? 0 : floor;
}

/* What the nodes' clocks show: not known, about now, or long ago. */
static int64_t any_median(struct run *run)
{
    switch (hands_pick(run, 8)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return 5 + hands_pick(run, 3);
    default:
        return run->clock_us + hands_pick(run, 3) * 1000000;
    }
}

/* Around the moment when the mark that is there was made, or none. */
static int64_t any_latest_us(struct run *run)
{
    const char *born = run->memory.mark;
    for (int i = 0; i < 3 && born != NULL; i++) {
        born = strchr(born, ':');
        born = born != NULL ? born + 1 : NULL;
    }
    if (born == NULL || hands_pick(run, 2) == 0)
        return 0;
    int64_t latest_us = atoll(born) + hands_pick(run, 3) - 1;
    return latest_us > 0 ? latest_us : 0;
}

/* "name=number name=number…", of some. */
static struct span any_witnesses(struct run *run,
                                 char text[CALL_WITNESSES_MAX + 1])
{
    size_t len = 0;
    text[0] = '\0';
    for (int i = 0; i < OTHERS; i++)
        if (hands_pick(run, 3) != 0)
            len += (size_t)snprintf(text + len, CALL_WITNESSES_MAX + 1 - len,
                                    "%s%s=%d", len > 0 ? " " : "", others[i],
                                    (int)hands_pick(run, 9));
    return (struct span){text, len};
}

/* That of the lock that is there, or another. */
static struct span any_token(struct run *run, int resource)
{
    const struct simkey *key = &run->memory.keys[resource];
    if (key->is_set && hands_pick(run, 2) == 0)
        return (struct span){key->token, key->token_len};
    return span_of(hands_token(run));
}

/* What all calls of a batch have in common. */
struct shared {
    bool is_of_locks; /* none looks at the permission or changes it */
    struct span admit;
    state_text admit_text;
    int64_t median_us;
};

/* What its spans may borrow from. */
struct texts {
    char names[SIM_NAMES_MAX];
    state_text found, mark;
    char witnesses[CALL_WITNESSES_MAX + 1];
};

/* The names of one to three resources, of which first is one. */
static struct span any_names(struct run *run, int first,
                             char text[SIM_NAMES_MAX])
{
    int numbers[] = {first, (first + 1) % SIM_RESOURCES,
                     (first + 2) % SIM_RESOURCES};
    int count = 1 + (int)hands_pick(run, 3);
    return (struct span){text, simnode_join(text, numbers, count)};
}

/* Of a repair: mostly what the slots say. Of a repeat: about a token's number.
 */
static int64_t any_seen(struct run *run, const struct call *call)
{
    if (call->kind == CALL_REPEAT)
        return INT64_C(1700000000000000) + hands_pick(run, 5);
    int64_t seen =
        simnode_seen(&run->memory, call->slots, names_count(call->resource)) -
        (hands_pick(run, 4) == 0);
    return seen > 0 ? seen : 0;
}

static void make_call(struct run *run, const struct shared *shared,
                      struct call *call, struct texts *texts)
{
    bool has_lock = shared->is_of_locks || hands_pick(run, 9) == 0;
    enum call_kind kind =
        has_lock ? (enum call_kind)(CALL_ACQUIRE +
                                    hands_pick(run, CALL_KINDS - CALL_ACQUIRE))
                 : (enum call_kind)hands_pick(run, CALL_ACQUIRE);
    /* mostly the first ones, so that calls meet */
    int resource = (int)hands_pick(run, 1 + hands_pick(run, SIM_RESOURCES));
    bool has_names = has_lock && kind != CALL_LISTEN;
    static const int64_t ttls_ms[] = {1, 10, 30, 500, 60000, 90000};
    *call = (struct call){
        .kind = kind,
        .resource = has_names ? any_names(run, resource, texts->names)
                              : (struct span){0},
        .token = has_lock ? any_token(run, resource) : (struct span){0},
        .admit = shared->admit,
        .nonce = any_text(run, nonces, NONCES),
        .found = any_found(run, texts->found),
        .mark = any_mark(run, texts->mark),
        .witnesses = any_witnesses(run, texts->witnesses),
        .max_ttl_ms = 1000 + 1000 * hands_pick(run, 3),
        .floor = any_floor(run),
        .latest_us = any_latest_us(run),
        .median_us = shared->median_us,
        .is_durable = hands_pick(run, 3) != 0,
        .is_objecting = hands_pick(run, 2) != 0,
        .ttl_ms = ttls_ms[hands_pick(run, 6)],
        .number = any_number(run, resource),
        .node_deadline_us = run->clock_us + (hands_pick(run, 12) - 1) * 1000000,
        .window_us = WINDOW_US,
    };
    if (has_names) {
        fence_slots(call->resource, call->slots);
        call->seen = any_seen(run, call);
    }
    if (kind == CALL_LISTEN)
        call->listen_us = hands_pick(run, 3) * (CALL_LISTEN_US / 2);
    if (kind == CALL_LOOK && hands_pick(run, 3) == 0)
        call->nonce = (struct span){0};
}

/* ---- comparing ---------------------------------------------------------- */

static bool is_same_text(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool is_same_look(const struct call_look *a, const struct call_look *b)
{
    return a->word == b->word && is_same_text(a->admit, b->admit) &&
           is_same_text(a->mark, b->mark) && a->max_ttl_ms == b->max_ttl_ms &&
           a->is_durable == b->is_durable && a->beat == b->beat &&
           a->seen_us == b->seen_us && a->voted_us == b->voted_us &&
           is_same_text(a->witnesses, b->witnesses);
}

static bool is_same(const struct call_reply *real, const struct call_reply *sim)
{
    return real->vote == sim->vote && real->state == sim->state &&
           real->node_now_us == sim->node_now_us &&
           llabs(real->pttl_ms - sim->pttl_ms) <= DOUBT_MS &&
           real->highest == sim->highest && real->beat == sim->beat &&
           real->listeners == sim->listeners &&
           is_same_text(real->value, sim->value) &&
           is_same_look(&real->look, &sim->look);
}

static void print_reply(const char *whose, const struct call_reply *reply)
{
    const struct call_look *look = &reply->look;
    printf("  %s: %s now %lld beat %lld pttl %lld highest %lld listeners %lld "
           "value %.*s "
           "look %d admit %.*s mark %.*s max_ttl %lld durable %d beat %lld "
           "seen %lld voted %lld witnesses %.*s\n",
           whose, ballot_name(call_ballot(reply)),
           (long long)reply->node_now_us, (long long)reply->beat,
           (long long)reply->pttl_ms, (long long)reply->highest,
           (long long)reply->listeners, (int)reply->value.len, reply->value.ptr,
           (int)look->word, (int)look->admit.len, look->admit.ptr,
           (int)look->mark.len, look->mark.ptr, (long long)look->max_ttl_ms,
           look->is_durable, (long long)look->beat, (long long)look->seen_us,
           (long long)look->voted_us, (int)look->witnesses.len,
           look->witnesses.ptr);
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

/* Random calls, and copies of them: they borrow from the memory. */
static void make_batch(struct run *run, int count, struct call calls[CALLS_MAX],
                       struct simcall copies[CALLS_MAX])
{
    bool is_of_locks = hands_pick(run, 4) != 0;
    struct shared shared = {
        .is_of_locks = is_of_locks,
        .median_us = any_median(run),
    };
    shared.admit = any_admit(run, is_of_locks, shared.admit_text);
    for (int i = 0; i < count; i++) {
        struct texts texts;
        make_call(run, &shared, &calls[i], &texts);
        simcall_copy(&copies[i], &calls[i]);
        calls[i] = copies[i].call;
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

static bool has_heard_the_same(struct run *run)
{
    char real[REAL_HEARD_MAX];
    real_hear(run->real, real);
    if (strcmp(real, run->heard) == 0)
        return true;
    printf("  announced\n  real:%s\n  sim :%s\n", real, run->heard);
    return false;
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
    for (int i = 0; i < count; i++)
        simnode_execute(&batch, &copies[i], &replies[i]);
    for (int i = 0; i < count; i++)
        replies[i].reply.beat = batch.beat;
}

static bool has_done(enum vote vote)
{
    return vote == VOTE_GRANTED || vote == VOTE_EXTENDED ||
           vote == VOTE_DELETED;
}

static bool run_batch(struct run *run)
{
    struct call calls[CALLS_MAX];
    struct simcall copies[CALLS_MAX];
    struct simreply real[CALLS_MAX], sim[CALLS_MAX];
    int count = 1 + (int)hands_pick(run, CALLS_MAX);
    wait_for_ends(run);
    make_batch(run, count, calls, copies);
    int64_t began_ms = real_now_ms();
    real_run(run->real, calls, count, real);
    if (real_now_ms() - began_ms > DOUBT_MS) {
        run->undecided++; /* it was stopped in between, who knows where */
        real_hear(run->real, run->heard);
        hands_forget(run);
        return true;
    }
    simulate(run, count, copies, real[0].reply.node_now_us, sim);
    for (int i = 0; i < count; i++) {
        run->calls[calls[i].kind]++;
        if (calls[i].kind < CALL_ACQUIRE)
            run->done[calls[i].kind] += sim[i].reply.vote == VOTE_DONE;
        run->votes[ballot_number(
            (struct ballot){sim[i].reply.vote, sim[i].reply.state})]++;
        run->several[calls[i].kind] +=
            copies[i].names > 1 && has_done(sim[i].reply.vote);
        if (calls[i].kind == CALL_LOOK)
            run->words[sim[i].reply.look.word]++;
        if (is_same(&real[i].reply, &sim[i].reply))
            continue;
        printf("  call %d of %d: %s\n", i + 1, count,
               script_name(calls[i].kind));
        print_reply("real", &real[i].reply);
        print_reply("sim ", &sim[i].reply);
        return false;
    }
    return has_heard_the_same(run) && state_is_same(run) &&
           state_has_same_locks(run);
}

static bool run_seed(struct run *run, uint64_t seed, int batches)
{
    run->random = seed;
    hands_begin(run);
    for (int i = 0; i < batches; i++) {
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

static void print_counts(const struct run *run)
{
    static const char *const words[LOOK_WORDS] = {
        "admitted", "superseded", "foreign", "empty",
        "bare",     "fresh",      "created", "marked"};
    for (int i = 0; i < CALL_KINDS; i++)
        printf("  %-20s %llu\n", script_name((enum call_kind)i),
               (unsigned long long)run->calls[i]);
    for (int i = CALL_LOOK; i < CALL_ACQUIRE; i++)
        printf("  done: %-14s %llu\n", script_name((enum call_kind)i),
               (unsigned long long)run->done[i]);
    for (int i = CALL_ACQUIRE; i < CALL_INSPECT; i++)
        printf("  several: %-11s %llu\n", script_name((enum call_kind)i),
               (unsigned long long)run->several[i]);
    printf("replies\n");
    for (int i = 0; i < BALLOT_KINDS; i++)
        if (run->votes[i] > 0)
            printf("  %-20s %llu\n", ballot_name(ballot_of_number(i)),
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
    printf("announced %llu\n", (unsigned long long)run.announced);
    printf("undecided batches %llu\n", (unsigned long long)run.undecided);
    printf("differ: %llu passed, %llu failed\n",
           (unsigned long long)(count - failed), (unsigned long long)failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
