/* SPDX-License-Identifier: MIT */
/*
 * Two lines: method and target. The path of an id leads back to what was
 * found, however it is written.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "../../api/message/http.h"
#include "input.h"

enum { PATH_MAX_LEN = 32 + 3 * ID_MAX };

static bool has_same_names(const struct route_match *a,
                           const struct route_match *b)
{
    char of_a[NAMES_LEN_MAX], of_b[NAMES_LEN_MAX];
    struct span names = route_names(a, of_a), others = route_names(b, of_b);
    return names.len == others.len &&
           (names.len == 0 || memcmp(of_a, of_b, names.len) == 0);
}

static bool is_same(const struct route_match *a, const struct route_match *b)
{
    return a->route == b->route &&
           (a->route != ROUTE_LOCK || a->call == b->call) &&
           strcmp(a->allow, b->allow) == 0 && has_same_names(a, b);
}

static bool has_id(const struct route_match *match)
{
    return match->route == ROUTE_LOCK && match->call != LOCK_ACQUIRE;
}

/* Whether the list, "GET, HEAD", has the method. */
static bool is_listed(const char *list, const char *method)
{
    size_t len = strlen(method);
    for (const char *at = list; *at != '\0'; at += strspn(at, ", ")) {
        size_t word = strcspn(at, ",");
        if (word == len && memcmp(at, method, len) == 0)
            return true;
        at += word;
    }
    return false;
}

/* The path, each byte of its id written so. */
static void print_path(char path[PATH_MAX_LEN], const struct route_match *match,
                       const char *format)
{
    char id[ID_MAX], names[NAMES_LEN_MAX];
    size_t id_len = id_encode(id, route_names(match, names));
    size_t len = (size_t)sprintf(path, "/locks/");
    for (size_t i = 0; i < id_len; i++)
        len += (size_t)sprintf(path + len, format, id[i]);
    (void)sprintf(path + len, match->call == LOCK_EXTEND ? "/extend" : "");
}

static void check_id(const struct route_match *match, const char *method)
{
    static const char *const formats[] = {"%c", "%%%02x", "%%%02X"};
    struct route_match again;
    char path[PATH_MAX_LEN];
    assert(match->id.len >= 1);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        print_path(path, match, formats[i]);
        route_find(&again, method, path);
        assert(is_same(&again, match));
    }
}

static void check_absolute(const struct route_match *match, const char *method,
                           const char *target)
{
    struct route_match again;
    char absolute[8192];
    int len = snprintf(absolute, sizeof absolute, "http://host%s", target);
    if (target[0] != '/' || len >= (int)sizeof absolute)
        return;
    route_find(&again, method, absolute);
    assert(is_same(&again, match));
}

void fuzz(struct input *input)
{
    struct route_match match;
    const char *method = input_text(input);
    const char *target = input_text(input);
    route_find(&match, method, target);
    assert(match.route <= ROUTE_BAD_ID && match.allow != NULL);
    if (match.route < ROUTE_NOT_FOUND)
        assert(is_listed(match.allow, method));
    if (match.route == ROUTE_NOT_ALLOWED)
        assert(!is_listed(match.allow, method));
    if (has_id(&match))
        check_id(&match, method);
    check_absolute(&match, method, target);
}
