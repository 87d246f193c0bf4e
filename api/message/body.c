/* SPDX-License-Identifier: MIT */
#include "body.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"
#include "id.h"
#include "jsonload.h"

/* ---- values ------------------------------------------------------------- */

/* For people, as in "… is a string". */
static const char *type_of(const json_t *value)
{
    static const char *const types[] = {
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number with a fraction or an exponent",
        [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",
        [JSON_NULL] = "without a value",
    };
    return types[json_typeof(value)];
}

/*
 * Writes the JSON pointer of a member: '~' and '/' are escaped (RFC 6901 §3).
 * What does not fit is cut off.
 */
static void point_to(const char *name, char pointer[FAULT_POINTER_MAX + 1])
{
    size_t len = 0;
    pointer[len++] = '/';
    for (; *name != '\0' && len + 2 <= FAULT_POINTER_MAX; name++) {
        if (*name == '~' || *name == '/') {
            pointer[len++] = '~';
            pointer[len++] = *name == '~' ? '0' : '1';
        } else {
            pointer[len++] = *name;
        }
    }
    pointer[len] = '\0';
}

/* The text lies in value. False: an error was added, at the pointer. */
static bool read_text(const json_t *value, const char *pointer,
                      struct span *text, struct faults *errors)
{
    if (!json_is_string(value)) {
        faults_add(errors, pointer, "%s is %s; it must be a string",
                   pointer + 1, type_of(value));
        return false;
    }
    *text = (struct span){json_string_value(value), json_string_length(value)};
    return true;
}

/* ---- objects ------------------------------------------------------------ */

/* Adds the error that the object has only known members. */
static void refuse_member(const char *name, const char *const known[],
                          int count, struct faults *errors)
{
    char pointer[FAULT_POINTER_MAX + 1];
    char list[FAULT_DETAIL_MAX]; /* for people: "token and ttl_ms" */
    size_t len = 0;
    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                i == 0           ? ""
                                : i == count - 1 ? " and "
                                                 : ", ",
                                known[i]);
    point_to(name, pointer);
    faults_add(errors, pointer,
               "the field %s is unknown here; the fields are %s", pointer + 1,
               list);
}

/* What jansson's own text says too, but without a piece of the body. */
static const char *const reasons[] = {
    [json_error_duplicate_key] = "a field occurs twice",
    [json_error_invalid_utf8] = "the text is not valid UTF-8",
    [json_error_null_character] = "a string contains U+0000",
    [json_error_premature_end_of_input] = "the text ends too early",
    [json_error_end_of_input_expected] = "text follows the object",
    [json_error_stack_overflow] = "the nesting is too deep",
    [json_error_numeric_overflow] = "a number is too large",
};

static const char mark[] = "\xef\xbb\xbf";

/*
 * A byte order mark is left out, as RFC 8259 §8.1 allows. False: the text is in
 * UTF-16 or UTF-32, whose first characters, which are ASCII, have zeros.
 */
static bool take_mark(struct span *text)
{
    if (text->len >= 3 && memcmp(text->ptr, mark, 3) == 0)
        *text = span_behind(*text, 3);
    if (text->len == 0)
        return true;
    return memchr(text->ptr, '\0', text->len < 4 ? text->len : 4) == NULL &&
           (unsigned char)text->ptr[0] < 0xfe;
}

/* By what the text is compressed, as no JSON begins so; NULL: by nothing. */
static const char *find_compression(struct span text)
{
    static const struct {
        const char *begin, *name;
    } kinds[] = {
        {"\x1f\x8b", "gzip (1f 8b)"}, {"\x78\x01", "zlib (78 01)"},
        {"\x78\x5e", "zlib (78 5e)"}, {"\x78\x9c", "zlib (78 9c)"},
        {"\x78\xda", "zlib (78 da)"}, {"\x28\xb5", "zstd (28 b5)"},
    };
    for (size_t i = 0; text.len >= 2 && i < sizeof kinds / sizeof *kinds; i++)
        if (memcmp(text.ptr, kinds[i].begin, 2) == 0)
            return kinds[i].name;
    return NULL;
}

/* Whether a byte order mark stands before the text's first sign. */
static bool is_quarantined(struct span text)
{
    while (text.len > 0 && strchr(" \t\r\n", *text.ptr) != NULL &&
           *text.ptr != '\0')
        text = span_behind(text, 1);
    return text.len >= 3 && memcmp(text.ptr, mark, 3) == 0;
}

/* Adds why a text is none of JSON, whatever it has. False: it may be one. */
static bool refuse_text(struct span *text, struct faults *errors)
{
    const char *compression = find_compression(*text);
    if (compression != NULL)
        faults_add(errors, "",
                   "the body is compressed by %s; send it unencoded",
                   compression);
    else if (!take_mark(text))
        faults_add(errors, "", "the body is in UTF-16 or UTF-32; send UTF-8");
    else if (is_quarantined(*text))
        faults_add(errors, "",
                   "the body has a byte order mark (ef bb bf) after its first "
                   "character; send none");
    else if (text->len == 0)
        faults_add(errors, "", "the body is empty; send a JSON object");
    else
        return false;
    return true;
}

/* The object that the text is. NULL: errors has the reasons; if it reports
 * nothing, there is no memory. */
static json_t *load_object(struct span text, struct faults *errors)
{
    json_error_t error;
    if (refuse_text(&text, errors))
        return NULL;
    json_t *root = jsonload(text.ptr, text.len,
                            JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root != NULL && json_is_null(root)) {
        json_decref(root);
        root = jsonload("{}", 2, 0, &error);
    }
    if (jsonload_has_failed())
        return NULL;
    if (root == NULL) {
        size_t code = (size_t)json_error_code(&error);
        const char *reason =
            code < sizeof reasons / sizeof *reasons ? reasons[code] : NULL;
        faults_add(errors, "",
                   "the body is not valid JSON: %s, at line "
                   "%d, column %d",
                   reason != NULL ? reason : "the syntax is invalid",
                   error.line, error.column);
        return NULL;
    }
    if (!json_is_object(root)) {
        faults_add(errors, "", "the body is %s; it must be an object",
                   type_of(root));
        json_decref(root);
        return NULL;
    }
    return root;
}

/* Typed clients send null for a member that is not set. */
static void omit_null(json_t *object)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(object, name);
    }
}

/* Or an empty list; of an acquire, one that stands alone is refused. */
static void omit_empty(json_t *object, const char *name, enum lock_call call)
{
    const json_t *value = json_object_get(object, name);
    bool is_alone =
        call == LOCK_ACQUIRE && json_object_get(object, "resource") == NULL;
    if (json_is_array(value) && json_array_size(value) == 0 && !is_alone)
        (void)json_object_del(object, name);
}

/* ---- members ------------------------------------------------------------ */

/* Where a member may be: in a body of one call, in an operation of a batch. */
enum where { ALONE, AMONG };

struct reader {
    struct body *body;
    enum where where; /* it is */
    int64_t max_ttl_ms;
    struct faults *errors;
    const json_t *object;
};

struct member {
    const char *name;
    unsigned in; /* a bit for each call, and where it is */
    size_t at;   /* of a text or a number: in struct body; 0: it is not kept */
    void (*check)(struct reader *reader, struct span text); /* NULL: any text */
    int64_t least, most; /* of a number; most 0: it is a time to live */
    const char *unit;    /* likewise, in brackets; NULL: it is no number */
    void (*read_list)(struct reader *reader, const json_t *value);
};

static bool body_has(const struct reader *reader, const char *name)
{
    return json_object_get(reader->object, name) != NULL;
}

static void body_read_number(struct reader *reader, const struct member *member,
                             const json_t *value, const char *pointer)
{
    int64_t *number = (int64_t *)((char *)reader->body + member->at);
    int64_t most = member->most != 0 ? member->most : reader->max_ttl_ms;
    int64_t found = json_integer_value(value); /* 0: also of what is none */
    char what[DIGITS_MAX + 2];
    if (json_is_integer(value) && found >= member->least && found <= most) {
        *number = found;
        return;
    }
    (void)snprintf(what, sizeof what, "%lld", (long long)found);
    faults_add(reader->errors, pointer,
               "%s is %s; it must be an integer from %" PRId64 " to %" PRId64
               "%s",
               member->name, json_is_integer(value) ? what : type_of(value),
               member->least, most, member->unit);
}

static void read_value(struct reader *reader, const struct member *member,
                       const json_t *value)
{
    char pointer[FAULT_POINTER_MAX + 1];
    struct span text;
    point_to(member->name, pointer);
    if (member->read_list != NULL) {
        member->read_list(reader, value);
    } else if (member->unit != NULL) {
        body_read_number(reader, member, value, pointer);
    } else if (read_text(value, pointer, &text, reader->errors)) {
        if (member->at != 0)
            *(struct span *)((char *)reader->body + member->at) = text;
        if (member->check != NULL)
            member->check(reader, text);
    }
}

static void check_owner(struct reader *reader, struct span owner)
{
    if (!token_is_owner(owner))
        faults_add(reader->errors, "/owner",
                   "owner has %zu bytes, or a character that is not allowed; "
                   "use 1 to %d of A-Z a-z 0-9 . _ : @ / "
                   "-, or leave it out",
                   owner.len, OWNER_MAX);
}

/* That of a call alone may be in a header field, too, and is looked at with it.
 */
static void check_token(struct reader *reader, struct span token)
{
    if (reader->where == AMONG && !token_is_ours(token))
        faults_add(reader->errors, "/token",
                   "token is not a valid lock token; send the field token of "
                   "the response to POST /locks, unchanged");
}

static void check_mode(struct reader *reader, struct span mode)
{
    reader->body->is_shared = span_is(mode, "shared");
    if (!reader->body->is_shared && !span_is(mode, "exclusive"))
        faults_add(reader->errors, "/mode",
                   "mode must be \"exclusive\" or \"shared\"");
}

static void check_id(struct reader *reader, struct span id)
{
    struct body *body = reader->body;
    char names[NAMES_LEN_MAX];
    struct span found = id_find_names(id, names);
    if (found.len == 0) {
        faults_add(reader->errors, "/id",
                   "id names no lock; send the field id of the response to "
                   "POST /locks, unchanged");
    } else if (span_is_same(found, id)) {
        body->resource = id;
    } else if ((body->joined = jsonload_allocate(found.len)) != NULL) {
        body->resource =
            (struct span){body->joined, span_copy(body->joined, found)};
    }
}

static void check_resource(struct reader *reader, struct span resource)
{
    const char *reason = id_check_resource(resource);
    if (reason != NULL)
        faults_add(reader->errors, "/resource", "resource %s", reason);
}

/* The n-th of the array; false: an error was added. */
static bool body_read_name(struct reader *reader, const json_t *value,
                           struct span list[NAMES_MAX], size_t n)
{
    const json_t *item = json_array_get(value, n);
    const char *reason = NULL;
    char pointer[FAULT_POINTER_MAX + 1];
    (void)snprintf(pointer, sizeof pointer, "/resources/%zu", n);
    list[n] = (struct span){0};
    if (!json_is_string(item)) {
        faults_add(reader->errors, pointer,
                   "a resource is %s; it must be a string", type_of(item));
        return false;
    }
    list[n] = (struct span){json_string_value(item), json_string_length(item)};
    reason = id_check_resource(list[n]);
    for (size_t i = 0; i < n && reason == NULL; i++)
        if (list[i].len > 0 && span_is_same(list[i], list[n]))
            reason = "occurs twice; send each resource once";
    if (reason != NULL)
        faults_add(reader->errors, pointer, "a resource %s", reason);
    return reason == NULL;
}

/* Without memory jsonload_has_failed says so. */
static void join(struct reader *reader, struct span *list, int count)
{
    struct body *body = reader->body;
    size_t len = (size_t)count - 1;
    for (int i = 0; i < count; i++)
        len += list[i].len;
    if (len > NAMES_LEN_MAX) {
        faults_add(
            reader->errors, "/resources",
            "resources have %zu bytes in all, with a separator between every "
            "two; the limit is %d; send fewer or shorter resources",
            len, NAMES_LEN_MAX);
    } else if (count == 1) {
        body->resource = list[0];
    } else if ((body->joined = jsonload_allocate(len)) != NULL) {
        body->resource =
            (struct span){body->joined, names_join(body->joined, list, count)};
    }
}

static void body_read_resources(struct reader *reader, const json_t *value)
{
    struct span list[NAMES_MAX];
    size_t count = json_array_size(value); /* 0: also of what is no array */
    bool is_good = true;
    if (count < 1 || count > NAMES_MAX) {
        char what[32];
        (void)snprintf(what, sizeof what, "has %zu elements", count);
        faults_add(reader->errors, "/resources",
                   "resources %s%s; it must be an array of 1 to %d strings",
                   json_is_array(value) ? "" : "is ",
                   json_is_array(value) ? what : type_of(value), NAMES_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++)
        is_good &= body_read_name(reader, value, list, i);
    if (is_good)
        join(reader, list, (int)count);
}

#define IN(call, where) (1u << (2 * (call) + (where)))
#define ACQUIRES (IN(LOCK_ACQUIRE, ALONE) | IN(LOCK_ACQUIRE, AMONG))
#define EXTENDS (IN(LOCK_EXTEND, ALONE) | IN(LOCK_EXTEND, AMONG))
#define RELEASES (IN(LOCK_RELEASE, ALONE) | IN(LOCK_RELEASE, AMONG))
#define OTHERS_AMONG (IN(LOCK_EXTEND, AMONG) | IN(LOCK_RELEASE, AMONG))
#define AT(member) offsetof(struct body, member)
#define MS " (milliseconds)"

/* In the order in which they are reported. */
static const struct member members[] = {
    {.name = "operation",
     IN(LOCK_ACQUIRE, AMONG) | OTHERS_AMONG}, /* read_call */
    {"id", OTHERS_AMONG, .check = check_id},
    {"token", EXTENDS | RELEASES, .at = AT(token), check_token},
    {"resource", ACQUIRES, .at = AT(resource), check_resource},
    {"resources", ACQUIRES, .read_list = body_read_resources},
    {"ttl_ms", ACQUIRES | EXTENDS, .at = AT(ttl_ms), NULL, TTL_MIN_MS, 0, MS},
    {"wait_ms", IN(LOCK_ACQUIRE, ALONE), .at = AT(wait_ms), NULL, 0,
     WAIT_MAX_MS, MS},
    {"owner", ACQUIRES, .at = AT(owner), check_owner},
    {"mode", ACQUIRES | EXTENDS, .check = check_mode},
    {"limit", ACQUIRES, .at = AT(limit), NULL, 1, POOL_SLOTS_MAX, ""},
    {"permits", ACQUIRES, .at = AT(permits), NULL, 1, NAMES_MAX, ""},
    {"idempotency_key", IN(LOCK_ACQUIRE, AMONG), .at = AT(key)},
};

enum { MEMBERS = sizeof members / sizeof *members };

static const char *find_member(enum lock_call call, enum where where, int n)
{
    for (int i = 0; i < MEMBERS; i++)
        if ((members[i].in & IN(call, where)) != 0 && n-- == 0)
            return members[i].name;
    return NULL;
}

const char *body_member(enum lock_call call, int n)
{
    return find_member(call, ALONE, n);
}

const char *body_item_member(enum lock_call call, int n)
{
    return find_member(call, AMONG, n);
}

static void read_member(struct reader *reader, const char *name,
                        const json_t *value)
{
    const enum lock_call call = reader->body->call;
    for (int i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        if ((member->in & IN(call, reader->where)) == 0 ||
            strcmp(member->name, name) != 0)
            continue;
        read_value(reader, member, value);
        return;
    }
    if (call == LOCK_ACQUIRE && strcmp(name, "wait_ms") == 0) {
        faults_add(reader->errors, "/wait_ms",
                   "an acquire in a batch does not wait; leave wait_ms out, or "
                   "send the acquire alone, to POST /locks");
        return;
    }
    const char *known[MEMBERS];
    int count = 0;
    while ((known[count] = find_member(call, reader->where, count)) != NULL)
        count++;
    refuse_member(name, known, count, reader->errors);
}

/* ---- what goes together ------------------------------------------------- */

/* The name of a pool: there must be room for those of its slots. */
static void check_pool(struct reader *reader)
{
    const struct body *body = reader->body;
    const struct span name = body->resource;
    size_t each = name.len + NAMES_SLOT_MAX;
    size_t total = each * (size_t)body->permits + (size_t)body->permits - 1;
    if (id_check_resource(name) != NULL)
        return; /* that was refused */
    const char *reason = id_check_pool(name);
    if (reason != NULL)
        faults_add(reader->errors, "/resource", "resource %s if limit is sent",
                   reason);
    else if (total > NAMES_LEN_MAX)
        faults_add(reader->errors, "/permits",
                   "permits is too high for a resource of this length: the "
                   "names of the slots may have %d bytes in all; send fewer "
                   "permits, or a shorter resource",
                   NAMES_LEN_MAX);
}

static void check_permits(struct reader *reader)
{
    struct body *body = reader->body;
    bool has_permits = body_has(reader, "permits");
    if (!has_permits)
        body->permits = 1;
    if (!body_has(reader, "limit")) {
        if (has_permits)
            faults_add(reader->errors, "/permits",
                       "permits must be sent together with limit, the number "
                       "of permits of the pool");
        return;
    }
    if (body->has_resources)
        faults_add(
            reader->errors, "/limit",
            "limit must not be sent with resources; send resource instead");
    if (body->is_shared)
        faults_add(reader->errors, "/mode",
                   "mode must not be \"shared\" if limit is sent: a permit has "
                   "one holder");
    if (body->limit > 0 && body->permits > body->limit)
        faults_add(reader->errors, "/permits",
                   "permits is %" PRId64 ", but limit is %" PRId64
                   "; send at most limit",
                   body->permits, body->limit);
    if (body->has_resource && body->permits > 0)
        check_pool(reader);
}

static void check_members(struct reader *reader)
{
    struct body *body = reader->body;
    bool is_acquire = body->call == LOCK_ACQUIRE;
    body->has_mode = body_has(reader, "mode");
    /* one lock is about one resource, or about several */
    body->has_resource = is_acquire && body_has(reader, "resource");
    body->has_resources = is_acquire && body_has(reader, "resources");
    if (body->has_resource && body->has_resources)
        faults_add(reader->errors, "/resources",
                   "resource and resources must not be sent together; send "
                   "only one of them");
    if (is_acquire && !body->has_resource && !body->has_resources)
        faults_add(reader->errors, "/resource",
                   "resource, the name to lock, is missing; to lock "
                   "several, send resources instead");
    if (reader->where == AMONG && !is_acquire && !body_has(reader, "id"))
        faults_add(reader->errors, "/id",
                   "id is missing; send the field id of the response to POST "
                   "/locks, unchanged");
    if (reader->where == AMONG && !is_acquire && !body_has(reader, "token"))
        faults_add(reader->errors, "/token",
                   "token is missing; send the field token of the response to "
                   "POST /locks, unchanged");
    if (is_acquire)
        check_permits(reader);
}

/* False: errors has the reasons; if it reports nothing, there is no memory. */
static bool read_object(struct reader *reader, json_t *object)
{
    const char *name;
    json_t *value;
    reader->object = object;
    omit_null(object);
    omit_empty(object, "resources", reader->body->call);
    omit_empty(object, "slots", reader->body->call);
    json_object_foreach(object, name, value)
    {
        read_member(reader, name, value);
    }
    check_members(reader);
    if (jsonload_has_failed()) {
        reader->errors->count = 0;
        return false;
    }
    return reader->errors->count == 0;
}

static void begin_errors(struct faults *errors, int item)
{
    errors->in = "body";
    errors->item = item;
    errors->count = 0;
}

bool body_read(struct body *body, struct span text, enum lock_call call,
               int64_t max_ttl_ms, struct faults *errors)
{
    struct reader reader = {body, ALONE, max_ttl_ms, errors, NULL};
    *body = (struct body){.call = call};
    begin_errors(errors, 0);
    body->root = load_object(text, errors);
    return body->root != NULL && read_object(&reader, body->root);
}

void body_fini(struct body *body)
{
    json_decref(body->root); /* NULL is ignored */
    free(body->joined);
    body->root = NULL;
    body->joined = NULL;
}

/* ---- batches ------------------------------------------------------------ */

static void read_operations(struct body_list *it, const json_t *value,
                            struct faults *errors)
{
    size_t count = json_array_size(value); /* 0: also of what is no array */
    if (value == NULL)
        faults_add(errors, "/operations",
                   "operations is missing; send an array of 1 to %d objects, "
                   "each with the field operation",
                   BODY_LIST_MAX);
    else if (!json_is_array(value))
        faults_add(errors, "/operations",
                   "operations is %s; it must be an array of 1 to %d objects",
                   type_of(value), BODY_LIST_MAX);
    else if (count == 0)
        faults_add(errors, "/operations",
                   "operations is empty; it must have 1 to %d objects",
                   BODY_LIST_MAX);
    else if (count > BODY_LIST_MAX)
        faults_add(errors, "/operations",
                   "operations has %zu elements; the limit is %d; send the "
                   "rest in another request",
                   count, BODY_LIST_MAX);
    else
        it->count = (int)count;
}

bool body_list_read(struct body_list *it, struct span text,
                    struct faults *errors)
{
    static const char *const known[] = {"operations"};
    const char *name;
    const json_t *value;
    it->count = 0;
    begin_errors(errors, 0);
    it->root = load_object(text, errors);
    if (it->root == NULL)
        return false;
    omit_null(it->root);
    read_operations(it, json_object_get(it->root, known[0]), errors);
    json_object_foreach(it->root, name, value)
    {
        if (strcmp(name, known[0]) != 0)
            refuse_member(name, known, 1, errors);
    }
    return errors->count == 0;
}

void body_list_fini(struct body_list *it)
{
    json_decref(it->root); /* NULL is ignored */
    it->root = NULL;
}

/* False: an error was added. */
static bool read_call(const json_t *object, enum lock_call *call,
                      struct faults *errors)
{
    static const char *const names[] = {[LOCK_ACQUIRE] = "acquire",
                                        [LOCK_EXTEND] = "extend",
                                        [LOCK_RELEASE] = "release"};
    struct span text;
    const json_t *value = json_object_get(object, "operation");
    if (value == NULL || json_is_null(value)) {
        faults_add(errors, "/operation",
                   "operation is missing; send acquire, extend or release");
        return false;
    }
    if (!read_text(value, "/operation", &text, errors))
        return false;
    for (int i = LOCK_ACQUIRE; i <= LOCK_RELEASE; i++) {
        *call = (enum lock_call)i;
        if (span_is(text, names[i]))
            return true;
    }
    *call = LOCK_ACQUIRE;
    faults_add(errors, "/operation",
               "operation must be \"acquire\", \"extend\" or \"release\"");
    return false;
}

bool body_read_item(const struct body_list *it, int n, struct body *body,
                    int64_t max_ttl_ms, struct faults *errors)
{
    struct reader reader = {body, AMONG, max_ttl_ms, errors, NULL};
    json_t *object =
        json_array_get(json_object_get(it->root, "operations"), (size_t)n);
    *body = (struct body){.root = NULL};
    begin_errors(errors, n + 1);
    if (!json_is_object(object)) {
        faults_add(errors, "", "an operation is %s; it must be an object",
                   type_of(object));
        return false;
    }
    return read_call(object, &body->call, errors) &&
           read_object(&reader, object);
}
