#include "jsonload.h"

#include <jansson.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

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

json_t *jsonload(const char *text, size_t len, size_t flags,
                 json_error_t *error)
{
    json_t *root = NULL;
    const struct block *before = LIST_FIRST(&blocks); /* the parser keeps it */
    if (setjmp(outside) == 0) {
        is_inside = true;
        root = json_loadb(text, len, flags, error);
        is_inside = false;
        return root;
    }
    is_inside = false;
    while (LIST_FIRST(&blocks) != before)
        give_block(LIST_FIRST(&blocks) + 1);
    return NULL;
}
