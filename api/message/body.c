#include "body.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"
#include "id.h"
#include "jsonload.h"
#include "jsonread.h"

/* ---- reading ------------------------------------------------------------ */

struct reader {
    struct body *body;
    int64_t max_ttl_ms;
    struct faults *errors;
};

typedef void member_fn(struct reader *reader, const json_t *value);

static void read_resource(struct reader *reader, const json_t *value)
{
    struct body *body = reader->body;
    body->has_resource = true;
    if (!jsonread_text(value, "/resource", &body->resource, reader->errors))
        return;
    const char *reason = id_check_resource(body->resource);
    if (reason != NULL)
        faults_add(reader->errors, "/resource", "resource %s", reason);
}

/* ---- several resources -------------------------------------------------- */

/* The n-th of the array; false: an error was added. */
static bool read_name(struct reader *reader, const json_t *value,
                      struct span list[NAMES_MAX], size_t n)
{
    const json_t *item = json_array_get(value, n);
    char pointer[FAULT_POINTER_MAX + 1];
    (void)snprintf(pointer, sizeof pointer, "/resources/%zu", n);
    if (!json_is_string(item)) {
        list[n] = (struct span){0};
        faults_add(reader->errors, pointer,
                   "a resource is %s; it must be a string",
                   jsonread_type(item));
        return false;
    }
    list[n] = (struct span){json_string_value(item), json_string_length(item)};
    const char *reason = id_check_resource(list[n]);
    if (reason != NULL) {
        faults_add(reader->errors, pointer, "a resource %s", reason);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (list[i].len == 0 || !span_is_same(list[i], list[n]))
            continue;
        faults_add(reader->errors, pointer,
                   "a resource occurs twice; send each one once");
        return false;
    }
    return true;
}

/* Without memory jsonload_has_failed tells. */
static void join(struct reader *reader, struct span *list, int count)
{
    struct body *body = reader->body;
    size_t len = (size_t)count - 1;
    for (int i = 0; i < count; i++)
        len += list[i].len;
    if (len > NAMES_LEN_MAX) {
        faults_add(reader->errors, "/resources",
                   "resources have %zu bytes with one between each two of "
                   "them; the limit is %d; send fewer or shorter ones",
                   len, NAMES_LEN_MAX);
    } else if (count == 1) {
        body->resource = list[0];
    } else if ((body->joined = jsonload_allocate(len)) != NULL) {
        body->resource =
            (struct span){body->joined, names_join(body->joined, list, count)};
    }
}

static void read_resources(struct reader *reader, const json_t *value)
{
    struct span list[NAMES_MAX];
    bool is_good = true;
    size_t count = json_array_size(value); /* 0: also of what is no array */
    reader->body->has_resources = true;
    if (!json_is_array(value)) {
        faults_add(reader->errors, "/resources",
                   "resources is %s; it must be an array of 1 to %d strings",
                   jsonread_type(value), NAMES_MAX);
        return;
    }
    if (count < 1 || count > NAMES_MAX) {
        faults_add(reader->errors, "/resources",
                   "resources has %zu elements; it must be an array of 1 to %d "
                   "strings",
                   count, NAMES_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++)
        is_good &= read_name(reader, value, list, i);
    if (is_good)
        join(reader, list, (int)count);
}

/* ---- the others --------------------------------------------------------- */

static void read_owner(struct reader *reader, const json_t *value)
{
    struct body *body = reader->body;
    if (!jsonread_text(value, "/owner", &body->owner, reader->errors))
        return;
    if (!token_is_owner(body->owner))
        faults_add(reader->errors, "/owner",
                   "owner has %zu bytes, or a character that is not allowed; "
                   "use 1 to %d of A-Z a-z 0-9 . _ : @ / "
                   "-, or leave it out",
                   body->owner.len, OWNER_MAX);
}

static void read_token(struct reader *reader, const json_t *value)
{
    (void)jsonread_text(value, "/token", &reader->body->token, reader->errors);
}

static void read_mode(struct reader *reader, const json_t *value)
{
    struct body *body = reader->body;
    struct span mode;
    body->has_mode = true;
    if (!jsonread_text(value, "/mode", &mode, reader->errors))
        return;
    body->is_shared = span_is(mode, "shared");
    if (!body->is_shared && !span_is(mode, "exclusive"))
        faults_add(reader->errors, "/mode",
                   "mode must be \"exclusive\" or \"shared\"");
}

static void read_ttl(struct reader *reader, const json_t *value)
{
    const struct jsonread_range range = {TTL_MIN_MS, reader->max_ttl_ms,
                                         " (milliseconds)"};
    (void)jsonread_integer(value, "/ttl_ms", range, &reader->body->ttl_ms,
                           reader->errors);
}

static void read_wait(struct reader *reader, const json_t *value)
{
    const struct jsonread_range range = {0, WAIT_MAX_MS, " (milliseconds)"};
    (void)jsonread_integer(value, "/wait_ms", range, &reader->body->wait_ms,
                           reader->errors);
}

/* ---- permits ------------------------------------------------------------ */

static void read_limit(struct reader *reader, const json_t *value)
{
    const struct jsonread_range range = {1, POOL_SLOTS_MAX, ""};
    struct body *body = reader->body;
    body->has_limit = true;
    if (!jsonread_integer(value, "/limit", range, &body->limit, reader->errors))
        body->limit = 0;
}

static void read_permits(struct reader *reader, const json_t *value)
{
    const struct jsonread_range range = {1, NAMES_MAX, ""};
    struct body *body = reader->body;
    body->has_permits = true;
    if (!jsonread_integer(value, "/permits", range, &body->permits,
                          reader->errors))
        body->permits = 0;
}

/* The name of a pool: each slot's must be a resource, and all of them fit. */
static void check_pool(struct reader *reader)
{
    const struct body *body = reader->body;
    const struct span name = body->resource;
    enum { SLOT_MAX = sizeof "#999" - 1 };
    char slot[RESOURCE_MAX + SLOT_MAX];
    if (name.len == 0 || name.len > RESOURCE_MAX)
        return; /* that was refused */
    size_t len = span_copy(slot, name);
    len += span_copy(slot + len, span_of("#999"));
    size_t total = len * (size_t)body->permits + (size_t)body->permits - 1;
    if (name.ptr[name.len - 1] == '#')
        faults_add(reader->errors, "/resource",
                   "resource must not end with \"#\" if limit is sent: # and a "
                   "number make the names of its slots");
    else if (len > RESOURCE_MAX || id_check_resource((struct span){slot, len}))
        faults_add(reader->errors, "/resource",
                   "resource must have %d characters less than the most if "
                   "limit is sent: # and a number make the names of its slots",
                   SLOT_MAX);
    else if (total > NAMES_LEN_MAX)
        faults_add(reader->errors, "/permits",
                   "permits is too many for so long a resource: the names of "
                   "the slots may have %d bytes in all",
                   NAMES_LEN_MAX);
}

static void check_permits(struct reader *reader)
{
    struct body *body = reader->body;
    if (!body->has_permits)
        body->permits = 1;
    if (body->has_permits && !body->has_limit)
        faults_add(reader->errors, "/permits",
                   "permits must be sent with limit, the number of permits "
                   "that there are");
    if (!body->has_limit)
        return;
    if (body->has_resources)
        faults_add(reader->errors, "/limit",
                   "limit must not be sent with resources; send resource");
    if (body->is_shared)
        faults_add(reader->errors, "/mode",
                   "mode must not be \"shared\" if limit is sent: a permit has "
                   "one holder");
    if (body->limit > 0 && body->permits > body->limit)
        faults_add(reader->errors, "/permits",
                   "permits is %" PRId64 ", but there are only %" PRId64
                   " (limit)",
                   body->permits, body->limit);
    if (body->has_resource && body->permits > 0)
        check_pool(reader);
}

static const struct member {
    enum lock_call call;
    const char *name;
    member_fn *read;
} members[] = {
    {LOCK_ACQUIRE, "resource", read_resource},
    {LOCK_ACQUIRE, "resources", read_resources},
    {LOCK_ACQUIRE, "ttl_ms", read_ttl},
    {LOCK_ACQUIRE, "wait_ms", read_wait},
    {LOCK_ACQUIRE, "owner", read_owner},
    {LOCK_ACQUIRE, "mode", read_mode},
    {LOCK_ACQUIRE, "limit", read_limit},
    {LOCK_ACQUIRE, "permits", read_permits},
    {LOCK_EXTEND, "token", read_token},
    {LOCK_EXTEND, "ttl_ms", read_ttl},
    {LOCK_EXTEND, "mode", read_mode},
    {LOCK_RELEASE, "token", read_token},
};

enum { MEMBERS = sizeof members / sizeof *members };

const char *body_member(enum lock_call call, int n)
{
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].call == call && n-- == 0)
            return members[i].name;
    return NULL;
}

static void read_member(struct reader *reader, enum lock_call call,
                        const char *name, const json_t *value)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].call == call && strcmp(members[i].name, name) == 0) {
            members[i].read(reader, value);
            return;
        }
    }
    const char *known[MEMBERS];
    int count = 0;
    while ((known[count] = body_member(call, count)) != NULL)
        count++;
    jsonread_refuse_member("", name, known, count, reader->errors);
}

bool body_read(struct body *body, struct span text, enum lock_call call,
               int64_t max_ttl_ms, struct faults *errors)
{
    struct reader reader = {body, max_ttl_ms, errors};
    *body = (struct body){0};
    errors->count = 0;
    body->root = jsonread_load(text, errors);
    if (body->root == NULL)
        return false;
    const char *name;
    json_t *value;
    json_object_foreach(body->root, name, value)
    {
        read_member(&reader, call, name, value);
    }
    /* one lock is about one resource, or about several */
    if (body->has_resource && body->has_resources)
        faults_add(errors, "/resources",
                   "resource and resources must not be sent together; send "
                   "only one of them");
    if (call == LOCK_ACQUIRE && !body->has_resource && !body->has_resources)
        faults_add(errors, "/resource",
                   "resource, the name to lock, is missing; to lock "
                   "several, send resources instead");
    check_permits(&reader);
    if (jsonload_has_failed()) {
        errors->count = 0;
        return false;
    }
    return errors->count == 0;
}

void body_fini(struct body *body)
{
    json_decref(body->root); /* NULL is ignored */
    free(body->joined);
    body->root = NULL;
    body->joined = NULL;
}
