/* SPDX-License-Identifier: MIT */
#include "entries.h"

#include <assert.h>
#include <stdlib.h>

enum { CHUNK = 64 };

void entries_init(struct entries *entries, size_t object_size, uint32_t limit)
{
    assert(object_size >= sizeof(struct entries_head));
    assert(limit < 1u << ENTRIES_INDEX_BITS);
    /* each object of a chunk must be aligned for any type */
    size_t align = _Alignof(max_align_t);
    *entries = (struct entries){
        .object_size = (object_size + align - 1) / align * align,
        .limit = limit,
    };
}

static uint32_t chunks_of(uint32_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

void entries_fini(struct entries *entries)
{
    for (uint32_t i = 0; i < chunks_of(entries->count); i++)
        free(entries->chunks[i]);
    free(entries->chunks);
    *entries = (struct entries){0};
}

static struct entries_head *object_at(const struct entries *entries,
                                      uint32_t index)
{
    char *chunk = (char *)entries->chunks[index / CHUNK];
    return (struct entries_head *)(void *)(chunk + index % CHUNK *
                                                       entries->object_size);
}

static bool add_chunk(struct entries *entries)
{
    uint32_t chunk = chunks_of(entries->count);
    struct entries_head **chunks =
        realloc(entries->chunks, (chunk + 1) * sizeof(struct entries_head *));
    if (chunks == NULL)
        return false;
    entries->chunks = chunks;
    chunks[chunk] = calloc(CHUNK, entries->object_size);
    if (chunks[chunk] == NULL)
        return false;
    uint32_t first = entries->count;
    entries->count += CHUNK;
    for (uint32_t i = CHUNK; i-- > 0;) { /* so the lowest is taken first */
        struct entries_head *head = object_at(entries, first + i);
        head->index = first + i;
        head->next_free = entries->free;
        entries->free = head;
    }
    return true;
}

void *entries_take(struct entries *entries)
{
    if (entries->used == entries->limit)
        return NULL;
    if (entries->free == NULL && !add_chunk(entries))
        return NULL;
    struct entries_head *head = entries->free;
    entries->free = head->next_free;
    entries->used++;
    head->generation++;
    assert(head->generation & 1);
    return head;
}

void entries_give(struct entries *entries, void *object)
{
    struct entries_head *head = object;
    assert(head->generation & 1);
    head->generation++;
    head->next_free = entries->free;
    entries->free = head;
    entries->used--;
}

uint64_t entries_handle(const void *object, unsigned user_bits)
{
    const struct entries_head *head = object;
    assert(head->generation & 1);
    assert(user_bits < 1u << ENTRIES_USER_BITS);
    return (uint64_t)head->generation << 32 |
           (uint64_t)user_bits << ENTRIES_INDEX_BITS | head->index;
}

void *entries_find(const struct entries *entries, uint64_t handle)
{
    uint32_t index = (uint32_t)handle & ((1u << ENTRIES_INDEX_BITS) - 1);
    uint32_t generation = (uint32_t)(handle >> 32);
    if (index >= entries->count || !(generation & 1))
        return NULL;
    struct entries_head *head = object_at(entries, index);
    return head->generation == generation ? head : NULL;
}

void *entries_at(const struct entries *entries, uint32_t index)
{
    if (index >= entries->count)
        return NULL;
    struct entries_head *head = object_at(entries, index);
    return head->generation & 1 ? head : NULL;
}
