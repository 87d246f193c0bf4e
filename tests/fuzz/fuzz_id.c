/*
 * A text as a resource, and as an id. Each resource has one id, each id is
 * that of one resource, and both are told alike to clients.
 */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "../../api/id.h"
#include "input.h"

static bool is_same(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

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
    return !is_same(id, span_of(".")) && !is_same(id, span_of(".."));
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

static void check_resource(struct span text)
{
    char id[ID_MAX], resource[RESOURCE_MAX];
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
    assert(is_id && is_same((struct span){resource, len}, text));
}

static void check_id(struct span text)
{
    char id[ID_MAX], resource[RESOURCE_MAX];
    size_t len;
    if (!id_decode(text, resource, &len))
        return;
    struct span found = {resource, len};
    assert(id_check_resource(found) == NULL);
    check_limits(found);
    assert(is_same((struct span){id, id_encode(id, found)}, text));
}

void fuzz(struct input *input)
{
    struct span text = input_rest(input);
    check_resource(text);
    check_id(text);
}
