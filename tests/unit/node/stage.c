/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/engine/port/token.h"
#include "../../lib/node/real.h"
#include "../../lib/node/simholders.h"
#include "../../lib/suite/suite.h"

#define STATE REAL_PREFIX "redlockd:state"

/* ---- a real node --------------------------------------------------------- */

static struct real real;

static redisReply *real_say(int count, const char **words)
{
    redisReply *reply = redisCommandArgv(real.redis, count, words, NULL);
    ck_assert_msg(reply != NULL, "%s: %s", words[0], real.redis->errstr);
    return reply;
}

/* An integer in digits, a text, the elements of an array with spaces; an error
 * ends the test if it must_do. */
static const char *reply_text(const redisReply *reply)
{
    const char *text = "";
    if (reply->type == REDIS_REPLY_INTEGER)
        return textf("%lld", reply->integer);
    for (size_t i = 0; i < reply->elements; i++)
        text =
            textf("%s%s%s", text, i > 0 ? " " : "",
                  reply->element[i]->str != NULL ? reply->element[i]->str : "");
    return reply->str != NULL ? textf("%s", reply->str) : text;
}

#define REAL_DO(...)                                                           \
    real_do(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),            \
            (const char *[]){__VA_ARGS__})

static const char *real_do(size_t count, const char **words)
{
    redisReply *reply = real_say((int)count, words);
    ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s: %s", words[0],
                  reply->str);
    const char *text = reply_text(reply);
    freeReplyObject(reply);
    return text;
}

static const char *real_key(const char *lock)
{
    return textf(REAL_PREFIX "%s", lock);
}

static void real_begin(void)
{
    real_start(&real);
}

static void real_end(void)
{
    real_stop(&real);
}

static int64_t real_now_us(void)
{
    redisReply *reply = redisCommand(real.redis, "TIME");
    ck_assert(reply != NULL && reply->elements == 2);
    int64_t now_us =
        atoll(reply->element[0]->str) * 1000000 + atoll(reply->element[1]->str);
    freeReplyObject(reply);
    return now_us;
}

static const char *real_replid(void)
{
    static char id[SIM_REPLID_LEN + 1];
    real_info(&real, "replication", "master_replid:", id);
    return id;
}

static int real_calls(const struct call *calls, int count,
                      struct call_reply *replies)
{
    return real_ask(&real, calls, count, replies);
}

static void real_set(const char *lock, const char *value, int64_t ttl_ms)
{
    if (ttl_ms == STAGE_ENDLESS_MS)
        REAL_DO("SET", real_key(lock), value);
    else
        REAL_DO("SET", real_key(lock), value, "PX",
                textf("%lld", (long long)ttl_ms));
}

static void real_drop(const char *lock)
{
    REAL_DO("DEL", real_key(lock));
}

static void real_join(const char *lock, const char *token, int64_t left_ms)
{
    const char *key = real_key(lock), *plus = strchr(token, '+');
    const char *ends = textf("%lld", (long long)real_now_us() / 1000 + left_ms);
    REAL_DO("ZADD", key, ends, token);
    if (plus != NULL)
        REAL_DO(
            "HSET",
            textf(REAL_PREFIX "redlockd:repeat:%.*s", KEY_HASH_LEN, plus + 1),
            key, token);
    const char *last = REAL_DO("ZRANGE", key, "0", "0", "REV", "WITHSCORES");
    if (left_ms > 0)
        REAL_DO("PEXPIREAT", key, strrchr(last, ' ') + 1);
}

static struct stage_lock real_lock(const char *lock)
{
    const char *key = real_key(lock), *type = REAL_DO("TYPE", key);
    bool is_shared = strcmp(type, "zset") == 0;
    return (struct stage_lock){
        .value = strcmp(type, "string") == 0 ? REAL_DO("GET", key) : "",
        .members = is_shared ? REAL_DO("ZRANGE", key, "0", "-1") : "",
        .pttl_ms = atoll(REAL_DO("PTTL", key)),
    };
}

static int64_t real_ends_ms(const char *lock, const char *member)
{
    return atoll(REAL_DO("ZSCORE", real_key(lock), member));
}

static const char *real_field(const char *name)
{
    return REAL_DO("HGET", STATE, name);
}

static void real_write(const char *name, const char *text)
{
    if (strcmp(text, "-") == 0)
        REAL_DO("HDEL", STATE, name);
    else
        REAL_DO("HSET", STATE, name, text);
}

static void real_flush(void)
{
    REAL_DO("FLUSHALL");
}

static void real_fill(bool is_full)
{
    REAL_DO("CONFIG", "SET", "maxmemory", is_full ? "1" : "0");
}

static void real_evict(void)
{
    char value[1001] = "";
    memset(value, 'v', sizeof value - 1);
    for (int i = 0; i < 10; i++)
        REAL_DO("SET", textf("filler:%d", i), value, "PX", "60000");
    REAL_DO("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy",
            "volatile-ttl");
    const char *refused[] = {"SET", "x", "y"}; /* when all is gone */
    freeReplyObject(real_say(3, refused));
    REAL_DO("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy",
            "noeviction");
    ck_assert_str_eq(REAL_DO("EXISTS", "filler:0", "filler:9"), "0");
}

static void real_follow(void)
{
    REAL_DO("REPLICAOF", "127.0.0.1", "1");
    REAL_DO("REPLICAOF", "NO", "ONE");
}

static void real_lead(void)
{
    REAL_DO("DEBUG", "CHANGE-REPL-ID"); /* as Redis does then */
}

static void real_pass(int64_t ms)
{
    (void)usleep((unsigned)ms * 1000);
}

static void real_listen(const char *resource)
{
    real_subscribe(&real, resource, true);
}

static const char *real_heard(void)
{
    static char text[REAL_HEARD_MAX];
    real_hear(&real, text);
    return text;
}

static void real_other(const char *const *words, int count, char *reply,
                       size_t size)
{
    redisReply *said = real_say(count, (const char **)words);
    snprintf(reply, size, "%s", reply_text(said));
    freeReplyObject(said);
}

const struct stage stage_real = {
    "real",     real_begin,  real_end,   real_now_us, real_replid,  real_calls,
    real_set,   real_drop,   real_join,  real_lock,   real_ends_ms, real_field,
    real_write, real_flush,  real_fill,  real_evict,  real_follow,  real_lead,
    real_pass,  real_listen, real_heard, real_other,
};

/* ---- the simulator's ----------------------------------------------------- */

static struct {
    struct simmemory memory;
    struct simprocess process;
    int64_t clock_us;
    bool is_heard[SIM_POOL + 2]; /* first the heartbeat */
    char heard[REAL_HEARD_MAX];
    struct simreply replies[STAGE_CALLS_MAX];
} sim;

static void sim_begin(void)
{
    memset(&sim, 0, sizeof sim);
    sim.clock_us = INT64_C(1800000000000000);
    memset(sim.process.replid, 'a', SIM_REPLID_LEN);
}

static void sim_end(void)
{
}

static int64_t sim_now_us(void)
{
    return sim.clock_us++; /* no two names get the same number */
}

static const char *sim_replid(void)
{
    return sim.process.replid;
}

static int sim_announce(void *ctx, int resource, struct span message)
{
    size_t len = strlen(sim.heard);
    (void)ctx;
    if (!sim.is_heard[resource + 1])
        return 0;
    snprintf(sim.heard + len, sizeof sim.heard - len, " %s=%.*s",
             resource < 0 ? "" : simnode_resource(resource), (int)message.len,
             message.ptr);
    return 1;
}

static int sim_ask(const struct call *calls, int count,
                   struct call_reply *replies)
{
    struct simcall call;
    sim.clock_us += 100;
    struct simbatch batch = {.memory = &sim.memory,
                             .process = &sim.process,
                             .clock_us = sim.clock_us,
                             .listeners = {sim_announce, NULL}};
    for (int i = 0; i < count; i++) {
        simcall_copy(&call, &calls[i]);
        simnode_execute(&batch, &call, &sim.replies[i]);
    }
    for (int i = 0; i < count; i++) {
        sim.replies[i].reply.generation = batch.generation;
        replies[i] = sim.replies[i].reply;
    }
    return 1;
}

static struct simkey *sim_key(const char *lock)
{
    return &sim.memory.keys[simnode_resource_number(span_of(lock))];
}

static void sim_set(const char *lock, const char *value, int64_t ttl_ms)
{
    struct simkey *key = sim_key(lock);
    *key = (struct simkey){.is_set = true,
                           .expires_ms = ttl_ms == STAGE_ENDLESS_MS
                                             ? SIM_ENDLESS
                                             : sim.clock_us / 1000 + ttl_ms,
                           .token_len = strlen(value)};
    ck_assert_uint_le(key->token_len, SIM_TOKEN_MAX);
    memcpy(key->token, value, key->token_len);
}

static void sim_drop(const char *lock)
{
    sim_key(lock)->is_set = false;
}

static void sim_join(const char *lock, const char *token, int64_t left_ms)
{
    int resource = simnode_resource_number(span_of(lock));
    struct simkey *key = sim_key(lock);
    bool was_set = key->is_set && key->is_shared;
    struct simholder *it =
        simholders_find(&sim.memory, resource, span_of(token));
    int64_t ends_ms = sim.clock_us / 1000 + left_ms;
    const char *plus = strchr(token, '+');
    if (it != NULL)
        it->ends_ms = ends_ms;
    else
        simholders_add(&sim.memory, resource, span_of(token), ends_ms);
    if (!was_set)
        key->expires_ms = SIM_ENDLESS;
    if (left_ms > 0)
        key->expires_ms = simholders_last(&sim.memory, resource)->ends_ms;
    if (plus == NULL)
        return;
    struct simrepeat *repeat = sim.memory.repeats;
    while (repeat->token_len > 0)
        repeat++;
    *repeat = (struct simrepeat){.until_ms = SIM_ENDLESS,
                                 .resource = (uint8_t)resource,
                                 .token_len = (uint8_t)strlen(token)};
    memcpy(repeat->token, token, strlen(token));
}

static struct stage_lock sim_lock(const char *lock)
{
    int resource = simnode_resource_number(span_of(lock));
    const struct simkey *key = simnode_key(&sim.memory, resource, sim.clock_us);
    const struct simholder *it = NULL;
    const char *members = "";
    if (key == NULL)
        return (struct stage_lock){"", "", STAGE_GONE_MS};
    while (key->is_shared &&
           (it = simholders_next(&sim.memory, resource, it)) != NULL)
        members = textf("%s%s%.*s", members, members[0] != '\0' ? " " : "",
                        it->token_len, it->token);
    return (struct stage_lock){
        .value = key->is_shared
                     ? ""
                     : textf("%.*s", (int)key->token_len, key->token),
        .members = members,
        .pttl_ms = key->expires_ms == SIM_ENDLESS
                       ? STAGE_ENDLESS_MS
                       : key->expires_ms - sim.clock_us / 1000,
    };
}

static int64_t sim_ends_ms(const char *lock, const char *member)
{
    int resource = simnode_resource_number(span_of(lock));
    const struct simholder *it =
        simholders_find(&sim.memory, resource, span_of(member));
    return it != NULL ? it->ends_ms : 0;
}

static struct simnumber *sim_number(const char *name)
{
    const struct {
        const char *name;
        struct simnumber *number;
    } numbers[] = {
        {"max_token", &sim.memory.max_token},
        {"min_token", &sim.memory.min_token},
        {"until", &sim.memory.until_us},
        {"max_ttl", &sim.memory.max_ttl_ms},
        {"generation", &sim.memory.generation},
        {"evicted", &sim.memory.evicted},
        {"listened_until", &sim.memory.listened_until_us},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return numbers[i].number;
    return NULL;
}

static char *sim_state_text(const char *name)
{
    return strcmp(name, "admit") == 0        ? sim.memory.admit
           : strcmp(name, "quarantine") == 0 ? sim.memory.quarantine
           : strcmp(name, "taken") == 0      ? sim.memory.taken
           : strcmp(name, "passed") == 0     ? sim.memory.passed
           : strcmp(name, "dead") == 0       ? sim.memory.dead
                                             : NULL;
}

/* The one of this name; NULL: there is none, and no room if it is to be new. */
static struct simwitness *sim_witness(const char *name, bool is_new)
{
    for (int i = 0; i < SIM_WITNESSES; i++) {
        struct simwitness *it = &sim.memory.witnesses[i];
        if (it->name[0] == '\0' && is_new)
            snprintf(it->name, sizeof it->name, "%s", name);
        if (strcmp(it->name, name) == 0)
            return it;
    }
    return NULL;
}

/* The resource whose slot this is; the field may have an "s" behind it. */
static int sim_slot(const char *name, bool *is_of_readers)
{
    char *end;
    long slot = strtol(name, &end, 10);
    *is_of_readers = strcmp(end, "s") == 0;
    ck_assert_msg(end > name && (*end == '\0' || *is_of_readers),
                  "the simulated node has no field %s", name);
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (fence_bucket(span_of(simnode_resource(i))) == slot)
            return i;
    ck_abort_msg("the simulated node has no slot %s", name);
}

static const char *sim_field(const char *name)
{
    const struct simnumber *number = sim_number(name);
    const char *text = sim_state_text(name);
    bool is_of_readers;
    if (text != NULL)
        return textf("%s", text);
    if (number != NULL)
        return number->is_there ? textf("%lld", (long long)number->it) : "";
    if (strcmp(name, "durable") == 0)
        return textf("%.1s", &sim.memory.durable);
    if (strncmp(name, "w:", 2) == 0) {
        const struct simwitness *it = sim_witness(name + 2, false);
        return it != NULL ? textf("%s", it->digits) : "";
    }
    int slot = sim_slot(name, &is_of_readers);
    const struct simwriters *writers = &sim.memory.writers[slot];
    if (is_of_readers)
        return writers->of == 0 ? ""
                                : textf("%lld:%lld", (long long)writers->of,
                                        (long long)writers->number);
    return sim.memory.highest[slot] == 0
               ? ""
               : textf("%lld", (long long)sim.memory.highest[slot]);
}

static void sim_write(const char *name, const char *text)
{
    bool is_there = strcmp(text, "-") != 0, is_of_readers;
    struct simnumber *number = sim_number(name);
    char *to = sim_state_text(name);
    if (!is_there)
        text = "";
    if (to != NULL) {
        ck_assert_uint_le(strlen(text), CALL_STATE_MAX);
        strcpy(to, text);
    } else if (strcmp(name, "durable") == 0) {
        sim.memory.durable = text[0];
    } else if (strncmp(name, "w:", 2) == 0) {
        struct simwitness *it = sim_witness(name + 2, true);
        snprintf(it->digits, sizeof it->digits, "%s", text);
    } else {
        ck_assert_msg(strspn(text, "0123456789") == strlen(text),
                      "the simulated node keeps no %s in %s", text, name);
        if (number != NULL)
            *number = (struct simnumber){is_there, atoll(text)};
        else
            sim.memory.highest[sim_slot(name, &is_of_readers)] = atoll(text);
    }
}

static void sim_flush(void)
{
    sim.memory = (struct simmemory){0};
}

static void sim_fill(bool is_full)
{
    sim.process.is_full = is_full;
}

static void sim_evict(void)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (sim.memory.keys[i].expires_ms != SIM_ENDLESS)
            sim.memory.keys[i].is_set = false;
    sim.process.evicted += 10;
}

static void sim_follow(void)
{
    sim.process.replid[0]++;
    sim.process.was_replica = true;
}

static void sim_lead(void)
{
    sim.process.replid[0]++;
}

static void sim_pass(int64_t ms)
{
    sim.clock_us += ms * 1000;
}

static void sim_listen(const char *resource)
{
    int number =
        resource[0] == '\0' ? -1 : simnode_resource_number(span_of(resource));
    sim.is_heard[number + 1] = true;
}

static const char *sim_heard(void)
{
    const char *text = textf("%s", sim.heard);
    sim.heard[0] = '\0';
    return text;
}

const struct stage stage_sim = {
    "simulated", sim_begin,  sim_end,   sim_now_us, sim_replid,  sim_ask,
    sim_set,     sim_drop,   sim_join,  sim_lock,   sim_ends_ms, sim_field,
    sim_write,   sim_flush,  sim_fill,  sim_evict,  sim_follow,  sim_lead,
    sim_pass,    sim_listen, sim_heard, NULL,
};
