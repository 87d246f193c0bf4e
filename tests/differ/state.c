#include "state.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../server/engine/port/fence.h"

enum {
    FIELDS_MAX = 10 + SIM_WITNESSES + SIM_RESOURCES,
    ENDS_MS = 100,
};

struct field {
    char name[CALL_NAME_LEN + 4];
    char text[CALL_STATE_MAX + 1];
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
    add_text(fields, "mark", memory->mark);
    add_text(fields, "durable", durable);
    add_number(fields, "max_ttl", memory->max_ttl_ms);
    add_number(fields, "beat", memory->beat);
    add_number(fields, "until", memory->until_us);
    add_number(fields, "bar", memory->bar);
    add_number(fields, "evicted", memory->evicted);
    add_number(fields, "listened_until", memory->listened_until_us);
    for (int i = 0; i < SIM_WITNESSES && memory->witnesses[i].name[0]; i++) {
        snprintf(name, sizeof name, "w:%s", memory->witnesses[i].name);
        add_text(fields, name, memory->witnesses[i].digits);
    }
    add_number(fields, "top", memory->top);
    for (int i = 0; i < SIM_RESOURCES; i++) {
        if (memory->highest[i] == 0)
            continue;
        snprintf(name, sizeof name, "%d",
                 fence_slot(span_of(simnode_resource(i))));
        add_number(fields, name, simnumber(memory->highest[i]));
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

/* It may end before the real node is asked. */
static bool is_about_to_end(const struct run *run, const struct simkey *key)
{
    return key->is_set && key->expires_ms < run->clock_us / 1000 + ENDS_MS;
}

static bool is_same_lock(const struct run *run, int resource,
                         const redisReply *real)
{
    const struct simkey *key = &run->memory.keys[resource];
    if (is_about_to_end(run, key))
        return true;
    if (!key->is_set)
        return real->type == REDIS_REPLY_NIL;
    return real->type == REDIS_REPLY_STRING && real->len == key->token_len &&
           memcmp(real->str, key->token, key->token_len) == 0;
}

bool state_has_same_locks(struct run *run)
{
    for (int i = 0; i < SIM_RESOURCES; i++) {
        const char *name = simnode_resource(i);
        redisReply *real =
            redisCommand(run->real->redis, "GET " REAL_PREFIX "%s", name);
        if (real == NULL || real->type == REDIS_REPLY_ERROR) {
            fprintf(stderr, "differ: GET: %s\n", run->real->redis->errstr);
            exit(EXIT_FAILURE);
        }
        bool is_it = is_same_lock(run, i, real);
        if (!is_it)
            printf("  lock left behind on %s\n  real: %s\n  sim : %.*s\n", name,
                   real->type == REDIS_REPLY_STRING ? real->str : "none",
                   run->memory.keys[i].is_set
                       ? (int)run->memory.keys[i].token_len
                       : 0,
                   run->memory.keys[i].token);
        freeReplyObject(real);
        if (!is_it)
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
