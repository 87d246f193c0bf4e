/* SPDX-License-Identifier: MIT */
#include "id.h"

#include <assert.h>

#include "../../server/base/encoding.h"
#include "../../server/lock/names.h"

/* Would be taken for steps in a path by clients and proxies. */
static bool is_dots(struct span text)
{
    return span_is(text, ".") || span_is(text, "..");
}

static bool id_is_plain(struct span text)
{
    return text.len > 0 && text.len <= RESOURCE_MAX && !is_dots(text) &&
           span_has_only(text, "._:-");
}

static bool are_slots(struct span names)
{
    struct span pool;
    int slots[NAMES_MAX];
    return names_slots(names, &pool, slots) > 0 && id_check_pool(pool) == NULL;
}

/*
 * Whether they are several in the form that names_join gives: resources, or
 * slots of one pool. No acquire has locked others together.
 */
static bool are_several(struct span names)
{
    int count = names_count(names);
    if (count < 2 || count > NAMES_MAX || !names_are_sorted(names))
        return false;
    if (are_slots(names))
        return true;
    for (; names.len > 0; count--)
        if (id_check_resource(names_next(&names)) != NULL)
            return false;
    return count == 0; /* or the last one is empty */
}

size_t id_encode(char id[ID_MAX], struct span names)
{
    if (id_is_plain(names))
        return span_copy(id, names);
    size_t len = span_copy(id, span_of(names_are_several(names) ? "~~" : "~"));
    return len + base64url_encode(id + len, names);
}

bool id_decode(struct span id, char names[NAMES_LEN_MAX], size_t *len)
{
    if (id.len == 0 || id.ptr[0] != '~') {
        if (!id_is_plain(id) || id_check_resource(id) != NULL)
            return false;
        *len = span_copy(names, id);
        return true;
    }
    size_t mark_len = id.len >= 2 && id.ptr[1] == '~' ? 2 : 1;
    struct span text = span_behind(id, mark_len);
    if (text.len > BASE64URL_LEN(NAMES_LEN_MAX) ||
        !base64url_decode(text, names, len))
        return false;
    struct span decoded = {names, *len};
    return mark_len == 2 ? are_several(decoded)
                         : !id_is_plain(decoded) && id_is_name(decoded);
}

struct span id_find_names(struct span text, char names[NAMES_LEN_MAX])
{
    size_t len;
    if (id_decode(text, names, &len))
        return (struct span){names, len};
    if (text.len == 0 || text.ptr[0] == '~' || is_dots(text) ||
        id_check_resource(text) != NULL)
        return (struct span){0};
    return (struct span){names, span_copy(names, text)};
}

/* NULL, or why a name of at most so many characters may not be this. */
static const char *check_text(struct span name, size_t most,
                              const char *long_reason)
{
    static const char reserved[] = RESERVED_NAME;
    size_t chars = 0;
    if (name.len == 0)
        return "must not be empty";
    for (size_t i = 0; i < name.len; chars++) {
        struct span rest = span_behind(name, i);
        if (*rest.ptr >= ' ' && *rest.ptr <= '~') { /* most are */
            i++;
            continue;
        }
        size_t len = utf8_len(rest);
        if (len == 0)
            return "must be valid UTF-8";
        if (utf8_is_control(rest))
            return "must not contain control characters";
        i += len;
    }
    if (chars > most)
        return long_reason;
    /* not only in front: another installation's keys have its prefix */
    if (memmem(name.ptr, name.len, reserved, sizeof reserved - 1) != NULL)
        return "must not contain \"redlockd:\", which is reserved";
    return NULL;
}

const char *id_check_resource(struct span resource)
{
    return check_text(resource, RESOURCE_CHARS,
                      "must have at most 255 characters");
}

const char *id_check_pool(struct span name)
{
    static_assert(RESOURCE_CHARS - NAMES_SLOT_MAX == 251, "as the text says");
    return check_text(
        name, RESOURCE_CHARS - NAMES_SLOT_MAX,
        "must have at most 251 characters, 4 fewer than otherwise,");
}

bool id_is_name(struct span name)
{
    return id_check_resource(name) == NULL ||
           (!names_are_several(name) && are_slots(name));
}
