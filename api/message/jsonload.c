#include "jsonload.h"

#include <jansson.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "../../server/base/jsontext.h"

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

/* What is left of the text. */
struct scan {
    struct span rest;
    int depth;
};

static json_t *scan_value(struct scan *it);

/* The next byte behind blanks; 0: there is none. */
static char scan_look(struct scan *it)
{
    size_t len = 0;
    const char *at = it->rest.ptr;
    while (len < it->rest.len && (at[len] == ' ' || at[len] == '\n' ||
                                  at[len] == '\r' || at[len] == '\t'))
        len++;
    it->rest = span_behind(it->rest, len);
    return it->rest.len > 0 ? at[len] : '\0';
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
    bool is_whole = len < it->rest.len && strchr(",]} \t\n\r", at[len]) != NULL;
    if (len == 0 || (len > 1 && *at == '0') || !is_whole)
        return NULL;
    it->rest = span_behind(it->rest, len);
    return json_integer(number);
}

/* One that occurs twice is jansson's to refuse. */
static bool scan_member(struct scan *it, json_t *object)
{
    char name[NAME_MAX + 1];
    struct span text;
    if (!scan_text(it, &text) || text.len > NAME_MAX || !scan_take(it, ':'))
        return false;
    name[span_copy(name, text)] = '\0';
    return json_object_get(object, name) == NULL &&
           json_object_set_new_nocheck(object, name, scan_value(it)) == 0;
}

/* What stands between the marks; NULL: it is not as usual. Takes whole. */
static json_t *scan_list(struct scan *it, json_t *whole, char end)
{
    bool is_object = json_is_object(whole);
    bool is_good = ++it->depth <= DEPTH_MAX;
    bool is_over = is_good && scan_take(it, end);
    while (is_good && !is_over) {
        is_good = is_object ? scan_member(it, whole)
                            : json_array_append_new(whole, scan_value(it)) == 0;
        is_over = is_good && scan_take(it, end);
        is_good = is_over || (is_good && scan_take(it, ','));
    }
    it->depth--;
    if (is_over)
        return whole;
    json_decref(whole);
    return NULL;
}

/* NULL: it is not as usual. */
static json_t *scan_value(struct scan *it)
{
    struct span text;
    if (scan_look(it) == '"')
        return scan_text(it, &text) ? json_stringn_nocheck(text.ptr, text.len)
                                    : NULL;
    if (scan_take(it, '{'))
        return scan_list(it, json_object(), '}');
    if (scan_take(it, '['))
        return scan_list(it, json_array(), ']');
    return scan_integer(it);
}

/* An object that is the whole text. NULL: it is jansson's to read. */
static json_t *scan(const char *text, size_t len)
{
    struct scan it = {{text, len}, 0};
    if (scan_look(&it) != '{')
        return NULL;
    json_t *root = scan_value(&it);
    if (root == NULL || (scan_look(&it) == '\0' && it.rest.len == 0))
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
