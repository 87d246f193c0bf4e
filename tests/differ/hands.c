/* SPDX-License-Identifier: MIT */
#include "hands.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../server/engine/port/token.h"
#include "../lib/node/simholders.h"

int64_t hands_pick(struct run *run, int64_t below)
{
    uint64_t z = (run->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}

/* The later ones are rare. */
const char *hands_admit(struct run *run)
{
    static const char *const admits[] = {
        "1:one:n1:r1", "1:one:n1:r2", "1:one:n2:r1", "1:two:n1:r1",
        "2:one:n1:r1", "2:two:n2:r2", "3:two:n1:r2"};
    int64_t count = sizeof admits / sizeof *admits;
    return admits[hands_pick(run, 1 + hands_pick(run, count))];
}

#define HEX "0123456789abcdef0123456789abcdef01234567"

/* Some with a key hash, some that only resemble that. */
const char *hands_token(struct run *run)
{
    static const char *const tokens[] = {
        "1700000000000000.a",
        "b",
        "cc.dd.me",
        "1700000000000001." HEX "+abcdefghijklmnopqrst-_",
        "1700000000000002." HEX "+abcdefghijklmnopqrst-_.me",
        "1700000000000003." HEX "+ABCDEFGHIJKLMNOPQRST01",
        "1700000000000001." HEX ".owner",
        "17000000000000x1." HEX "+abcdefghijklmnopqrst-_",
        "1700000000000001." HEX "+abcdefghijklmnopqrst-_x",
    };
    return tokens[hands_pick(run, sizeof tokens / sizeof *tokens)];
}

const char *const hands_keys[HANDS_KEYS] = {"abcdefghijklmnopqrst-_",
                                            "ABCDEFGHIJKLMNOPQRST01"};

const char *hands_replid(struct run *run)
{
    return hands_pick(run, 6) != 0 ? run->process.replid : "00ff00ff00ff00ff";
}

const char *hands_incarnation(struct run *run, const char *known)
{
    static const char *const incarnations[] = {
        "16000000000000000000000001", "16000000000000000000000002",
        "17000000000000010000000001", "90000000000000000000000003"};
    if (known[0] != '\0' && hands_pick(run, 2) == 0)
        return known;
    return incarnations[hands_pick(run,
                                   sizeof incarnations / sizeof *incarnations)];
}

void hands_print_admission(struct run *run, char text[CALL_STATE_MAX + 1])
{
    const char *of_caller = hands_admit(run);
    const char *run_id = strrchr(of_caller, ':') + 1;
    if (hands_pick(run, 6) == 0)
        snprintf(text, CALL_STATE_MAX + 1, "%s:%s", of_caller,
                 hands_replid(run));
    else
        snprintf(text, CALL_STATE_MAX + 1, "%.*s%s:%d:%s:%s",
                 (int)(run_id - of_caller), of_caller,
                 hands_incarnation(run, ""), (int)hands_pick(run, 3), run_id,
                 hands_replid(run));
}

static void read_process(struct run *run)
{
    char evicted[SIM_REPLID_LEN + 1], read[SIM_REPLID_LEN + 1];
    char second[SIM_REPLID_LEN + 1];
    real_info(run->real, "replication", "master_replid:", run->process.replid);
    real_info(run->real, "replication", "master_replid2:", second);
    real_info(run->real, "stats", "evicted_keys:", evicted);
    real_info(run->real, "stats", "total_net_repl_input_bytes:", read);
    run->process.evicted = strtoll(evicted, NULL, 10);
    run->process.read = strtoll(read, NULL, 10);
    run->process.was_replica = strspn(second, "0") < SIM_REPLID_LEN;
}

static void delete_field(struct run *run, const char *name, void *field,
                         size_t size)
{
    real_command(run->real, "HDEL %s %s", HANDS_STATE_KEY, name);
    memset(field, 0, size);
}

static void write_admit(struct run *run)
{
    struct simmemory *memory = &run->memory;
    hands_print_admission(run, memory->admit);
    memory->max_token =
        simnumber(memory->max_token.it); /* which an admission begins */
    real_command(run->real, "HSET %s admit %s max_token %lld", HANDS_STATE_KEY,
                 memory->admit, (long long)memory->max_token.it);
}

static void write_state(struct run *run)
{
    struct simmemory *memory = &run->memory;
    bool has_admit = memory->admit[0] != '\0';
    if (!has_admit && hands_pick(run, 4) != 0) {
        write_admit(run);
        return;
    }
    switch (hands_pick(run, 6)) {
    case 0:
        write_admit(run);
        break;
    case 1:
        memory->durable = hands_pick(run, 2) != 0 ? '1' : '0';
        real_command(run->real, "HSET %s durable %s", HANDS_STATE_KEY,
                     memory->durable == '1' ? "1" : "0");
        break;
    case 2:
        memory->until_us =
            simnumber(run->clock_us + (hands_pick(run, 5) - 3) * 1000000);
        real_command(run->real, "HSET %s until %lld", HANDS_STATE_KEY,
                     (long long)memory->until_us.it);
        break;
    case 4:
        memory->min_token =
            simnumber(run->clock_us + (hands_pick(run, 5) - 2) * 500000);
        memory->max_token =
            memory->min_token; /* no number of a slot is above it */
        for (int i = 0; i < SIM_RESOURCES; i++)
            if (memory->highest[i] > memory->max_token.it)
                memory->max_token.it = memory->highest[i];
        real_command(run->real, "HSET %s min_token %lld max_token %lld",
                     HANDS_STATE_KEY, (long long)memory->min_token.it,
                     (long long)memory->max_token.it);
        break;
    case 3:
        memory->listened_until_us =
            simnumber(run->clock_us + (hands_pick(run, 3) - 1) * 1000000);
        real_command(run->real, "HSET %s listened_until %lld", HANDS_STATE_KEY,
                     (long long)memory->listened_until_us.it);
        break;
    default:
        memory->generation = simnumber(1 + hands_pick(run, 20));
        real_command(run->real, "HSET %s generation %lld", HANDS_STATE_KEY,
                     (long long)memory->generation.it);
    }
}

/* Makes it a replica for a moment; or what a first replica does, twice as
 * often. Without a draw of its own, so that the seeds that are kept stay. */
static void change_replid(struct run *run)
{
    if (run->memory.max_ttl_ms.it % 3 == 0) {
        real_command(run->real, "REPLICAOF 127.0.0.1 1");
        real_command(run->real, "REPLICAOF NO ONE");
    } else {
        real_command(run->real, "DEBUG CHANGE-REPL-ID");
    }
    read_process(run);
}

void hands_fill(struct run *run, bool is_full)
{
    real_command(run->real, "CONFIG SET maxmemory %d", is_full);
    run->process.is_full = is_full;
}

/* Evicts all locks, but not the state. */
static void evict(struct run *run)
{
    real_command(run->real, "CONFIG SET maxmemory-policy volatile-ttl");
    real_command(run->real, "CONFIG SET maxmemory 1");
    real_command(run->real, "PING");
    real_command(run->real, "CONFIG SET maxmemory 0");
    real_command(run->real, "CONFIG SET maxmemory-policy noeviction");
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (run->memory.keys[i].expires_ms != SIM_ENDLESS)
            run->memory.keys[i].is_set = false;
    memset(run->memory.tombstones, 0, sizeof run->memory.tombstones);
    memset(run->memory.repeats, 0, sizeof run->memory.repeats);
    read_process(run);
}

/* As after a restart, its data whole: it has thrown nothing away. */
static void begin_life(struct run *run)
{
    real_command(run->real, "CONFIG RESETSTAT");
    read_process(run);
}

static void set_key(struct run *run, int resource)
{
    struct simkey *key = &run->memory.keys[resource];
    struct span token = span_of(hands_token(run));
    int64_t expires_ms = run->clock_us / 1000 + 5000 + hands_pick(run, 60000);
    key->is_set = true;
    key->is_shared = false;
    key->token_len = span_copy(key->token, token);
    key->expires_ms = expires_ms;
    real_command(run->real, "SET %s%s %b PXAT %lld", REAL_PREFIX,
                 simnode_resource(resource), token.ptr, token.len,
                 (long long)expires_ms);
}

static void delete_key(struct run *run, int resource)
{
    real_command(run->real, "DEL %s%s", REAL_PREFIX,
                 simnode_resource(resource));
    run->memory.keys[resource].is_set = false;
}

/* A token in its shared form, or an intent; among others also what is none. And
 * when it ends. */
static struct span any_member(struct run *run, bool is_mixed,
                              char text[SIM_TOKEN_MAX])
{
    static const char *const foreign[] = {"x", "y", "17000000000000000000"};
    if (hands_pick(run, 3) == 0)
        return span_of(is_mixed ? foreign[hands_pick(run, 3)] : SIM_INTENT);
    size_t len = span_copy(text, span_of(hands_token(run)));
    if (len <= TOKEN_NUMBER_LEN)
        return span_of(is_mixed ? "b" : SIM_INTENT);
    token_share(text);
    return (struct span){text, len};
}

static int64_t any_end_ms(struct run *run)
{
    int64_t now_ms = run->clock_us / 1000;
    switch (hands_pick(run, 4)) {
    case 0:
        return 1 + hands_pick(run, 3);
    case 1:
        return now_ms - 1000 * (1 + hands_pick(run, 3));
    case 2:
        return 99999999999999;
    default:
        return now_ms + 5000 + hands_pick(run, 60000);
    }
}

/* A sorted set under the name of a lock, of tokens or of anything. */
static void set_members(struct run *run, int resource)
{
    struct simmemory *memory = &run->memory;
    struct simkey *key = &memory->keys[resource];
    int count = 1 + (int)hands_pick(run, 3);
    bool is_mixed = hands_pick(run, 2) == 0;
    delete_key(run, resource);
    for (int i = 0; i < count; i++) {
        char text[SIM_TOKEN_MAX];
        struct span member = any_member(run, is_mixed, text);
        int64_t ends_ms = any_end_ms(run);
        if (simholders_find(memory, resource, member) != NULL)
            continue;
        simholders_add(memory, resource, member, ends_ms);
        real_command(run->real, "ZADD %s%s %lld %b", REAL_PREFIX,
                     simnode_resource(resource), (long long)ends_ms, member.ptr,
                     member.len);
    }
    key->expires_ms = hands_pick(run, 3) == 0 ? SIM_ENDLESS
                                              : run->clock_us / 1000 + 5000 +
                                                    hands_pick(run, 60000);
    if (key->expires_ms != SIM_ENDLESS)
        real_command(run->real, "PEXPIREAT %s%s %lld", REAL_PREFIX,
                     simnode_resource(resource), (long long)key->expires_ms);
    run->foreign++;
}

struct span hands_holder(struct run *run, int resource)
{
    const struct simmemory *memory = &run->memory;
    int count = simholders_members(memory, resource);
    const struct simholder *it = NULL;
    int64_t more = hands_pick(run, count);
    do
        it = simholders_next(memory, resource, it);
    while (more-- > 0);
    return simholder_token(it);
}

void hands_make_room(struct run *run, int holders)
{
    for (int i = 0; i < SIM_RESOURCES; i++) {
        int count = 0;
        for (int k = 0; k < SIM_RESOURCES; k++)
            count += simholders_members(&run->memory, k);
        if (count <= SIM_HOLDERS - holders)
            return;
        delete_key(run, i);
    }
}

/* On both nodes: to a resource by number, 0 the heartbeat. */
static void change_subscription(struct run *run, int number)
{
    bool is_on = !run->is_heard[number];
    run->is_heard[number] = is_on;
    real_subscribe(run->real, number > 0 ? simnode_resource(number - 1) : "",
                   is_on);
}

void hands_forget(struct run *run)
{
    real_command(run->real, "FLUSHALL");
    run->memory = (struct simmemory){0};
    begin_life(run);
}

void hands_begin(struct run *run)
{
    real_hear(run->real, run->heard); /* what a failed run left unread */
    for (int i = 0; i <= SIM_POOL + 1; i++)
        if (run->is_heard[i])
            change_subscription(run, i);
    hands_forget(run);
}

void hands_interfere(struct run *run)
{
    struct simmemory *memory = &run->memory;
    int resource = (int)hands_pick(run, SIM_RESOURCES);
    if (memory->admit[0] == '\0' && hands_pick(run, 2) == 0) {
        write_admit(run); /* without it, calls do little */
        return;
    }
    switch (hands_pick(run, 18)) {
    case 0:
        hands_forget(run);
        break;
    case 8:
        change_replid(run);
        break;
    case 9:
        evict(run);
        break;
    case 10:
        begin_life(run);
        break;
    case 1:
        delete_field(run, "admit", memory->admit, sizeof memory->admit);
        break;
    case 2:
        delete_field(run, "quarantine", memory->quarantine,
                     sizeof memory->quarantine);
        break;
    case 3:
        delete_field(run, "durable", &memory->durable, sizeof memory->durable);
        break;
    case 4:
        delete_field(run, "generation", &memory->generation,
                     sizeof memory->generation);
        break;
    case 13:
        delete_field(run, "until", &memory->until_us, sizeof memory->until_us);
        delete_field(run, "min_token", &memory->min_token,
                     sizeof memory->min_token);
        break;
    case 5:
        delete_key(run, resource);
        break;
    case 16:
    case 17:
        hands_make_room(run, 3);
        set_members(run, resource);
        break;
    case 6:
    case 7:
        set_key(run, resource);
        break;
    case 11:
    case 12:
        change_subscription(run, (int)hands_pick(run, SIM_POOL + 2));
        break;
    default:
        write_state(run);
    }
}
