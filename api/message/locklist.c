#include "locklist.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "../../server/lock/lock.h"
#include "jsonload.h"
#include "jsonread.h"

static const char *const members[] = {"ttl_ms", "locks"};
static const char *const lock_members[] = {"id", "token"};

enum {
    MEMBERS = sizeof members / sizeof *members,
    LOCK_MEMBERS = sizeof lock_members / sizeof *lock_members,
    WITHIN_MAX = sizeof "/locks/99",
    POINTER_MAX = sizeof "/locks/99/token",
};

const char *locklist_member(int n)
{
    return n < MEMBERS ? members[n] : NULL;
}

const char *locklist_lock_member(int n)
{
    return n < LOCK_MEMBERS ? lock_members[n] : NULL;
}

/* A member that must be there. */
static void read_text(const json_t *object, const char *within,
                      const char *name, struct span *text,
                      struct faults *errors)
{
    char pointer[POINTER_MAX];
    const json_t *value = json_object_get(object, name);
    (void)snprintf(pointer, sizeof pointer, "%s/%s", within, name);
    if (value == NULL)
        faults_add(errors, pointer, "%s is missing", pointer + 1);
    else
        (void)jsonread_text(value, pointer, text, errors);
}

static void read_lock(const json_t *value, size_t n, struct locklist_lock *lock,
                      struct faults *errors)
{
    char within[WITHIN_MAX];
    const char *name;
    const json_t *unused;
    (void)snprintf(within, sizeof within, "/locks/%d", (int)(n % LOCKLIST_MAX));
    *lock = (struct locklist_lock){.id = {0}};
    if (!json_is_object(value)) {
        faults_add(errors, within, "%s is %s; it must be an object", within + 1,
                   jsonread_type(value));
        return;
    }
    read_text(value, within, "id", &lock->id, errors);
    read_text(value, within, "token", &lock->token, errors);
    json_object_foreach((json_t *)value, name, unused)
    {
        if (strcmp(name, "id") != 0 && strcmp(name, "token") != 0)
            jsonread_refuse_member(within, name, lock_members, LOCK_MEMBERS,
                                   errors);
    }
}

static void read_locks(struct locklist *list, const json_t *value,
                       struct faults *errors)
{
    size_t count = json_array_size(value); /* 0: also of what is no array */
    if (value == NULL) {
        faults_add(errors, "/locks",
                   "locks, the locks to extend, is missing; send an array of "
                   "objects with id and token");
    } else if (!json_is_array(value)) {
        faults_add(errors, "/locks",
                   "locks is %s; it must be an array of 1 to %d objects",
                   jsonread_type(value), LOCKLIST_MAX);
    } else if (count == 0) {
        faults_add(errors, "/locks",
                   "locks is empty; it must have 1 to %d objects",
                   LOCKLIST_MAX);
    } else if (count > LOCKLIST_MAX) {
        faults_add(errors, "/locks",
                   "locks has %zu elements; the limit is %d; send the others "
                   "in another request",
                   count, LOCKLIST_MAX);
    } else {
        list->count = (int)count;
        for (size_t i = 0; i < count; i++)
            read_lock(json_array_get(value, i), i, &list->locks[i], errors);
    }
}

bool locklist_read(struct locklist *list, struct span text, int64_t max_ttl_ms,
                   struct faults *errors)
{
    const struct jsonread_range range = {TTL_MIN_MS, max_ttl_ms,
                                         " (milliseconds)"};
    const char *name;
    const json_t *value;
    list->ttl_ms = 0;
    list->count = 0;
    errors->count = 0;
    list->root = jsonread_load(text, errors);
    if (list->root == NULL)
        return false;
    read_locks(list, json_object_get(list->root, "locks"), errors);
    json_object_foreach(list->root, name, value)
    {
        if (strcmp(name, "ttl_ms") == 0)
            (void)jsonread_integer(value, "/ttl_ms", range, &list->ttl_ms,
                                   errors);
        else if (strcmp(name, "locks") != 0)
            jsonread_refuse_member("", name, members, MEMBERS, errors);
    }
    if (jsonload_has_failed()) {
        errors->count = 0;
        return false;
    }
    return errors->count == 0;
}

void locklist_fini(struct locklist *list)
{
    json_decref(list->root); /* NULL is ignored */
    list->root = NULL;
}
