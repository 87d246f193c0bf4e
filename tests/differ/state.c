/* SPDX-License-Identifier: MIT */
#include "state.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../server/engine/port/token.h"
#include "../lib/node/simholders.h"

enum {
    FIELDS_MAX = 12 + SIM_WITNESSES + 2 * SIM_RESOURCES,
    ENDS_MS = 100,
    DOUBT_MS = 2,
};

struct field {
    char name[CALL_NAME_LEN + 4];
    char text[SIM_PASSED_MAX + 1];
};

struct fields {
    int count;
    struct field field[FIELDS_MAX];
};

/* ---- of the simulated node ---------------------------------------------- */

static struct field *add(struct fields *fields, const char *name)
{
    struct field *field = &fields->field[fields->count++];
    snprintf(field->name, sizeof field->name, "%s", name);
    return field;
}

static void add_text(struct fields *fields, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    struct field *field = add(fields, name);
    snprintf(field->text, sizeof field->text, "%s", text);
}

static void add_number(struct fields *fields, const char *name,
                       struct simnumber number)
{
    if (!number.is_there)
        return;
    struct field *field = add(fields, name);
    snprintf(field->text, sizeof field->text, "%lld", (long long)number.it);
}

static void list(const struct simmemory *memory, struct fields *fields)
{
    char name[CALL_NAME_LEN + 4];
    const char durable[] = {memory->durable, '\0'};
    add_text(fields, "admit", memory->admit);
    add_text(fields, "quarantine", memory->quarantine);
    add_text(fields, "taken", memory->taken);
    add_text(fields, "passed", memory->passed);
    add_text(fields, "dead", memory->dead);
    add_text(fields, "durable", durable);
    add_number(fields, "max_ttl", memory->max_ttl_ms);
    add_number(fields, "generation", memory->generation);
    add_number(fields, "until", memory->until_us);
    add_number(fields, "min_token", memory->min_token);
    add_number(fields, "evicted", memory->evicted);
    add_number(fields, "listened_until", memory->listened_until_us);
    for (int i = 0; i < SIM_WITNESSES && memory->witnesses[i].name[0]; i++) {
        snprintf(name, sizeof name, "w:%s", memory->witnesses[i].name);
        add_text(fields, name, memory->witnesses[i].digits);
    }
    add_number(fields, "max_token", memory->max_token);
    for (int i = 0; i < SIM_RESOURCES; i++) {
        if (memory->highest[i] == 0)
            continue;
        snprintf(name, sizeof name, "%d",
                 fence_bucket(span_of(simnode_resource(i))));
        add_number(fields, name, simnumber(memory->highest[i]));
        if (memory->writers[i].of == 0)
            continue;
        char text[48];
        snprintf(text, sizeof text, "%lld:%lld",
                 (long long)memory->writers[i].of,
                 (long long)memory->writers[i].number);
        snprintf(name, sizeof name, "%ds",
                 fence_bucket(span_of(simnode_resource(i))));
        add_text(fields, name, text);
    }
}

/* ---- of both ------------------------------------------------------------ */

/* The value of this field in a reply to HGETALL; NULL: none. */
static const char *find(const redisReply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        if (strcmp(reply->element[i]->str, name) == 0)
            return reply->element[i + 1]->str;
    return NULL;
}

static bool is_same(const redisReply *reply, const struct fields *fields)
{
    if (reply->elements != 2 * (size_t)fields->count)
        return false;
    for (int i = 0; i < fields->count; i++) {
        const char *value = find(reply, fields->field[i].name);
        if (value == NULL || strcmp(value, fields->field[i].text) != 0)
            return false;
    }
    return true;
}

static void print(const redisReply *reply, const struct fields *fields)
{
    printf("  state left behind\n  real:");
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        printf(" %s %s", reply->element[i]->str, reply->element[i + 1]->str);
    printf("\n  sim :");
    for (int i = 0; i < fields->count; i++)
        printf(" %s %s", fields->field[i].name, fields->field[i].text);
    printf("\n");
}

/* ---- locks -------------------------------------------------------------- */

/* Asked behind the real node: who knows whether it had ended there already. */
static bool is_over(int64_t ends_ms)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return ends_ms < now_ms + ENDS_MS;
}

static bool may_have_ended(const struct simkey *key)
{
    return key->is_set && is_over(key->expires_ms);
}

/* NULL: it is no value, or there is none. */
static redisReply *ask(struct run *run, const char *command, const char *name)
{
    redisReply *reply = redisCommand(run->real->redis, command, name);
    if (reply == NULL) {
        fprintf(stderr, "differ: %s: %s\n", command, run->real->redis->errstr);
        exit(EXIT_FAILURE);
    }
    return reply;
}

static bool is_same_text(const redisReply *real, struct span text)
{
    return real->type == REDIS_REPLY_STRING && real->len == text.len &&
           memcmp(real->str, text.ptr, text.len) == 0;
}

static bool is_same_value(struct run *run, int resource)
{
    const struct simkey *key = &run->memory.keys[resource];
    redisReply *real =
        ask(run, "GET " REAL_PREFIX "%s", simnode_resource(resource));
    bool is_it =
        may_have_ended(key) ||
        (key->is_set
             ? is_same_text(real, (struct span){key->token, key->token_len})
             : real->type == REDIS_REPLY_NIL);
    if (!is_it)
        printf("  real: %s\n  sim : %.*s\n",
               real->str != NULL ? real->str : "none",
               key->is_set ? (int)key->token_len : 0, key->token);
    freeReplyObject(real);
    return is_it;
}

/* The real node reads its clock again when it sets a key, which may become a
 * shared lock. */
static bool is_near(int64_t real_ms, int64_t sim_ms)
{
    return llabs(real_ms - sim_ms) <= DOUBT_MS;
}

static bool has_member(struct run *run, int resource, const redisReply *member,
                       const redisReply *score)
{
    const struct simholder *it = simholders_find(
        &run->memory, resource, (struct span){member->str, member->len});
    return it != NULL && is_near(atoll(score->str), it->ends_ms);
}

/* The same members with the same scores. */
static bool is_same_set(struct run *run, int resource)
{
    redisReply *real = ask(run, "ZRANGE " REAL_PREFIX "%s 0 -1 WITHSCORES",
                           simnode_resource(resource));
    const struct simholder *it = NULL;
    int count = simholders_members(&run->memory, resource);
    bool is_it = real->elements == 2 * (size_t)count;
    for (size_t i = 0; is_it && i < real->elements; i += 2)
        is_it =
            has_member(run, resource, real->element[i], real->element[i + 1]);
    is_it = is_it || may_have_ended(&run->memory.keys[resource]);
    if (!is_it) {
        printf("  real:%s", real->str != NULL ? real->str : "");
        for (size_t i = 0; i < real->elements; i++)
            printf(" %s", real->element[i]->str);
        printf("\n  sim :");
        while ((it = simholders_next(&run->memory, resource, it)) != NULL)
            printf(" %.*s %lld", it->token_len, it->token,
                   (long long)it->ends_ms);
        printf("\n");
    }
    freeReplyObject(real);
    return is_it;
}

static bool is_same_end(struct run *run, int resource)
{
    const struct simkey *key = &run->memory.keys[resource];
    redisReply *real =
        ask(run, "PEXPIRETIME " REAL_PREFIX "%s", simnode_resource(resource));
    long long end_ms =
        key->expires_ms == SIM_ENDLESS ? -1 : (long long)key->expires_ms;
    bool is_it = may_have_ended(key) || is_near(real->integer, end_ms);
    if (!is_it)
        printf("  real: ends at %lld\n  sim : ends at %lld\n", real->integer,
               end_ms);
    freeReplyObject(real);
    return is_it;
}

/* A reader whose lock ended between the two nodes' clocks may be known to one
   of them only. */
static bool is_repeat_over(struct run *run, const char *key_hash)
{
    redisReply *real =
        ask(run, "PEXPIRETIME " REAL_PREFIX "redlockd:repeat:%s", key_hash);
    bool is_it = is_over(real->integer);
    freeReplyObject(real);
    return is_it;
}

/* The latest reader of the lock with this key hash. */
static bool is_same_repeat(struct run *run, const char *key_hash, int resource)
{
    char command[128];
    snprintf(command, sizeof command,
             "HGET " REAL_PREFIX "redlockd:repeat:%s " REAL_PREFIX "%%s",
             key_hash);
    redisReply *real = ask(run, command, simnode_resource(resource));
    const struct simrepeat *it =
        simnode_with_key(&run->memory, span_of(key_hash), resource,
                         run->clock_us - ENDS_MS * 1000);
    struct span sim =
        it != NULL ? (struct span){it->token, it->token_len} : (struct span){0};
    bool is_it = it != NULL ? is_same_text(real, sim) || is_over(it->until_ms)
                            : real->type == REDIS_REPLY_NIL ||
                                  is_repeat_over(run, key_hash);
    if (!is_it)
        printf("  reader with the key %s of %s\n  real: %s\n  sim : %.*s\n",
               key_hash, simnode_resource(resource),
               real->str != NULL ? real->str : "none", (int)sim.len, sim.ptr);
    freeReplyObject(real);
    return is_it;
}

static bool are_same_repeats(struct run *run)
{
    for (int i = 0; i < HANDS_KEYS; i++)
        for (int k = 0; k < SIM_RESOURCES; k++)
            if (!is_same_repeat(run, hands_keys[i], k))
                return false;
    return true;
}

bool state_has_same_locks(struct run *run)
{
    if (!are_same_repeats(run))
        return false;
    for (int i = 0; i < SIM_RESOURCES; i++) {
        const struct simkey *key = &run->memory.keys[i];
        if (key->is_set && key->is_shared
                ? is_same_set(run, i) && is_same_end(run, i)
                : is_same_value(run, i))
            continue;
        printf("  lock left behind on %s\n", simnode_resource(i));
        return false;
    }
    return true;
}

/* ---- the state hash ----------------------------------------------------- */

bool state_is_same(struct run *run)
{
    struct fields fields = {.count = 0};
    redisReply *reply =
        redisCommand(run->real->redis, "HGETALL " HANDS_STATE_KEY);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        fprintf(stderr, "differ: HGETALL: %s\n", run->real->redis->errstr);
        exit(EXIT_FAILURE);
    }
    list(&run->memory, &fields);
    bool is_it = is_same(reply, &fields);
    if (!is_it)
        print(reply, &fields);
    freeReplyObject(reply);
    return is_it;
}
