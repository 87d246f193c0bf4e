/* SPDX-License-Identifier: MIT */
#include "jsonload.h"

#include <jansson.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "../../server/base/encoding.h"

/* In front of what jansson has: the latest first. */
struct block {
    union {
        LIST_ENTRY(block) link;
        max_align_t aligned; /* so is what follows */
    };
};

static LIST_HEAD(block_list, block) blocks = LIST_HEAD_INITIALIZER(blocks);
static jmp_buf outside; /* of the parser */
static bool is_inside;
static bool has_failed;

void *jsonload_allocate(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL)
        has_failed = true;
    return memory;
}

static void *take_block(size_t size)
{
    struct block *it = jsonload_allocate(sizeof *it + size);
    if (it == NULL && is_inside)
        longjmp(outside, 1);
    if (it == NULL)
        return NULL;
    LIST_INSERT_HEAD(&blocks, it, link);
    return it + 1;
}

static void give_block(void *memory)
{
    if (memory == NULL)
        return;
    struct block *it = (struct block *)memory - 1;
    LIST_REMOVE(it, link);
    free(it);
}

void jsonload_init(void)
{
    json_set_alloc_funcs(take_block, give_block);
}

bool jsonload_has_failed(void)
{
    bool it = has_failed;
    has_failed = false;
    return it;
}

/* ---- the usual shape ---------------------------------------------------- */

/*
 * jansson's lexer takes a hundred instructions for each byte. What clients
 * usually send needs none of its care: objects and arrays of texts without
 * escapes and of integers. This reads just that, into the same objects.
 */
enum {
    DEPTH_MAX = 4,   /* of objects and arrays in each other */
    NAME_MAX = 31,   /* bytes of a member's name */
    DIGITS_MOST = 15 /* of an integer: it fits in any case */
};

/* What is left of the text, and what is being filled. */
struct scan {
    struct span rest;
    json_t
        *open[DEPTH_MAX]; /* lists in each other; the first owns the others */
    int depth;
    bool needs_comma; /* the innermost has something in it */
};

/* The next byte behind blanks; 0: there is none. */
static char scan_look(struct scan *it)
{
    size_t len = 0;
    const char *at = it->rest.ptr;
    while (len < it->rest.len && (at[len] == ' ' || at[len] == '\n' ||
                                  at[len] == '\r' || at[len] == '\t'))
        len++;
    it->rest = span_behind(it->rest, len);
    if (it->rest.len == 0)
        return 0;
    return at[len];
}

static bool scan_take(struct scan *it, char mark)
{
    if (scan_look(it) != mark)
        return false;
    it->rest = span_behind(it->rest, 1);
    return true;
}

static bool scan_text(struct scan *it, struct span *text)
{
    if (!scan_take(it, '"'))
        return false;
    *text = it->rest;
    text->len = jsontext_plain_len(it->rest);
    if (text->len == it->rest.len || text->ptr[text->len] != '"')
        return false;
    it->rest = span_behind(it->rest, text->len + 1);
    return true;
}

/* Not a number with a sign, a fraction, an exponent or a zero in front. */
static json_t *scan_integer(struct scan *it)
{
    json_int_t number = 0;
    size_t len = 0;
    const char *at = it->rest.ptr;
    for (; len < it->rest.len && at[len] >= '0' && at[len] <= '9'; len++) {
        if (len == DIGITS_MOST)
            return NULL;
        number = number * 10 + at[len] - '0';
    }
    bool is_whole = len < it->rest.len && at[len] != '\0' &&
                    strchr(",]} \t\n\r", at[len]) != NULL;
    if (len == 0 || (len > 1 && *at == '0') || !is_whole)
        return NULL;
    it->rest = span_behind(it->rest, len);
    return json_integer(number);
}

/* Of a member. A name that occurs twice is jansson's to refuse. */
static bool scan_name(struct scan *it, const json_t *object,
                      char name[NAME_MAX + 1])
{
    struct span text;
    if (!scan_text(it, &text) || text.len > NAME_MAX || !scan_take(it, ':'))
        return false;
    name[span_copy(name, text)] = '\0';
    return json_object_get(object, name) == NULL;
}

/* A list is empty yet. NULL: it is not as usual, or there is no memory. */
static json_t *scan_value(struct scan *it)
{
    struct span text;
    switch (scan_look(it)) {
    case '"':
        return scan_text(it, &text) ? json_stringn_nocheck(text.ptr, text.len)
                                    : NULL;
    case '{':
        return scan_take(it, '{') ? json_object() : NULL;
    case '[':
        return scan_take(it, '[') ? json_array() : NULL;
    default:
        return scan_integer(it);
    }
}

/* One more for the innermost list, or its end. False: it is not as usual. */
static bool scan_step(struct scan *it)
{
    json_t *whole = it->open[it->depth - 1];
    bool is_object = json_is_object(whole);
    char name[NAME_MAX + 1];
    if (scan_take(it, is_object ? '}' : ']')) {
        it->depth--;
        it->needs_comma = true;
        return true;
    }
    if ((it->needs_comma && !scan_take(it, ',')) ||
        (is_object && !scan_name(it, whole, name)))
        return false;
    json_t *value = scan_value(it);
    int failure = is_object ? json_object_set_new_nocheck(whole, name, value)
                            : json_array_append_new(whole, value);
    bool is_list = json_is_object(value) || json_is_array(value);
    it->needs_comma = !is_list;
    if (failure != 0 || (is_list && it->depth == DEPTH_MAX))
        return false;
    if (is_list)
        it->open[it->depth++] = value;
    return true;
}

/* An object that is the whole text. NULL: it is jansson's to read. */
static json_t *scan(const char *text, size_t len)
{
    struct scan it = {.rest = {text, len}, .depth = 1};
    if (!scan_take(&it, '{'))
        return NULL;
    json_t *root = it.open[0] = json_object();
    bool is_usual = root != NULL;
    while (is_usual && it.depth > 0)
        is_usual = scan_step(&it);
    if (is_usual && scan_look(&it) == '\0' && it.rest.len == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* ---- all shapes --------------------------------------------------------- */

json_t *jsonload(const char *text, size_t len, size_t flags,
                 json_error_t *error)
{
    json_t *root = NULL;
    const struct block *before = LIST_FIRST(&blocks); /* the parser keeps it */
    if (setjmp(outside) == 0) {
        is_inside = true;
        root = scan(text, len);
        if (root == NULL)
            root = json_loadb(text, len, flags, error);
        is_inside = false;
        return root;
    }
    is_inside = false;
    while (LIST_FIRST(&blocks) != before)
        give_block(LIST_FIRST(&blocks) + 1);
    return NULL;
}
