/* SPDX-License-Identifier: MIT */
/*
 * A text as a resource, as several with a blank in between, and as an id. Each
 * list of resources has one id, each id is that of one list, and both are told
 * alike to clients.
 */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "../../api/message/id.h"
#include "../../server/lock/names.h"
#include "input.h"

/* By another reader of UTF-8. */
static bool is_utf8(struct span text)
{
    json_t *string = json_stringn(text.ptr, text.len);
    json_decref(string);
    return string != NULL;
}

/* Of these alone, so that neither clients nor proxies change it. */
static bool is_safe_in_path(struct span id)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789._:-~";
    for (size_t i = 0; i < id.len; i++)
        if (memchr(allowed, id.ptr[i], sizeof allowed - 1) == NULL)
            return false;
    return !span_is_same(id, span_of(".")) && !span_is_same(id, span_of(".."));
}

static void check_limits(struct span resource)
{
    assert(resource.len >= 1 && resource.len <= RESOURCE_MAX);
    assert(is_utf8(resource));
    for (size_t i = 0; i < resource.len; i++) {
        unsigned char c = (unsigned char)resource.ptr[i];
        assert(c >= 0x20 && c != 0x7f);
    }
    assert(memmem(resource.ptr, resource.len, RESERVED_NAME,
                  sizeof RESERVED_NAME - 1) == NULL);
}

static void check_names(struct span names)
{
    int count = 0, counted = names_count(names), slots = 0;
    struct span first = {NULL, 0};
    assert(names.len <= NAMES_LEN_MAX && names_are_sorted(names));
    for (; names.len > 0; count++) {
        struct span name = names_next(&names), pool;
        bool is_slot = names_slot(name, &pool) >= 0;
        slots += is_slot;
        assert(!is_slot || slots == 1 || span_is_same(pool, first));
        first = is_slot ? pool : first;
        check_limits(is_slot ? pool : name);
        assert(name.len <= RESOURCE_MAX);
    }
    assert(slots == 0 || slots == count); /* of one pool, or none at all */
    assert(count >= 1 && count <= NAMES_MAX && count == counted);
}

static void check_resource(struct span text)
{
    char id[ID_MAX], resource[NAMES_LEN_MAX];
    size_t len;
    const char *reason = id_check_resource(text);
    if (reason != NULL) {
        assert(strstr(reason, "UTF-8") == NULL || !is_utf8(text));
        return;
    }
    check_limits(text);
    struct span made = {id, id_encode(id, text)};
    assert(made.len <= ID_MAX && is_safe_in_path(made));
    bool is_id = id_decode(made, resource, &len);
    assert(is_id && span_is_same((struct span){resource, len}, text));
}

static void check_id(struct span text)
{
    char id[ID_MAX], resource[NAMES_LEN_MAX];
    size_t len;
    if (!id_decode(text, resource, &len))
        return;
    struct span found = {resource, len};
    assert(names_are_several(found) || id_is_name(found));
    check_names(found);
    assert(span_is_same((struct span){id, id_encode(id, found)}, text));
}

/* Whether the text stands in the list before this one. */
static bool is_listed(const struct span *list, int count, struct span text)
{
    for (int i = 0; i < count; i++)
        if (span_is_same(list[i], text))
            return true;
    return false;
}

/* Its words, if they may be the resources of one lock. */
static void check_several(struct span text)
{
    char names[NAMES_LEN_MAX], back[NAMES_LEN_MAX], id[ID_MAX];
    struct span list[NAMES_MAX];
    int count = 0;
    while (text.len > 0 && count < NAMES_MAX) {
        const char *end = memchr(text.ptr, ' ', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);
        struct span word = {text.ptr, len};
        size_t taken = end == NULL ? len : len + 1;
        text = (struct span){text.ptr + taken, text.len - taken};
        if (id_check_resource(word) == NULL && !is_listed(list, count, word))
            list[count++] = word;
    }
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += list[i].len + 1;
    if (count < 2 || sum - 1 > NAMES_LEN_MAX)
        return;
    struct span joined = {names, names_join(names, list, count)};
    struct span made = {id, id_encode(id, joined)};
    assert(made.len <= ID_MAX && is_safe_in_path(made));
    size_t len;
    bool is_id = id_decode(made, back, &len);
    assert(is_id && span_is_same((struct span){back, len}, joined));
}

void fuzz(struct input *input)
{
    struct span text = input_rest(input);
    check_resource(text);
    check_several(text);
    check_id(text);
}
