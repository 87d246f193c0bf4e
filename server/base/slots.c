#include "slots.h"

#include <assert.h>
#include <stdlib.h>

enum { CHUNK = 64 };

void slots_init(struct slots *slots, size_t object_size, uint32_t limit)
{
    assert(object_size >= sizeof(struct slots_head));
    assert(limit < 1u << SLOTS_INDEX_BITS);
    /* each object of a chunk must be aligned for any type */
    size_t align = _Alignof(max_align_t);
    *slots = (struct slots){
        .object_size = (object_size + align - 1) / align * align,
        .limit = limit,
    };
}

static uint32_t chunks_of(uint32_t count)
{
    return (count + CHUNK - 1) / CHUNK;
}

void slots_fini(struct slots *slots)
{
    for (uint32_t i = 0; i < chunks_of(slots->count); i++)
        free(slots->chunks[i]);
    free(slots->chunks);
    *slots = (struct slots){0};
}

static struct slots_head *object_at(const struct slots *slots, uint32_t index)
{
    char *chunk = (char *)slots->chunks[index / CHUNK];
    return (struct slots_head *)(void *)(chunk +
                                         index % CHUNK * slots->object_size);
}

static bool add_chunk(struct slots *slots)
{
    uint32_t chunk = chunks_of(slots->count);
    struct slots_head **chunks =
        realloc(slots->chunks, (chunk + 1) * sizeof(struct slots_head *));
    if (chunks == NULL)
        return false;
    slots->chunks = chunks;
    chunks[chunk] = calloc(CHUNK, slots->object_size);
    if (chunks[chunk] == NULL)
        return false;
    uint32_t first = slots->count;
    slots->count += CHUNK;
    for (uint32_t i = CHUNK; i-- > 0;) { /* so the lowest is taken first */
        struct slots_head *head = object_at(slots, first + i);
        head->index = first + i;
        head->next_free = slots->free;
        slots->free = head;
    }
    return true;
}

void *slots_take(struct slots *slots)
{
    if (slots->used == slots->limit)
        return NULL;
    if (slots->free == NULL && !add_chunk(slots))
        return NULL;
    struct slots_head *head = slots->free;
    slots->free = head->next_free;
    slots->used++;
    head->generation++;
    assert(head->generation & 1);
    return head;
}

void slots_give(struct slots *slots, void *object)
{
    struct slots_head *head = object;
    assert(head->generation & 1);
    head->generation++;
    head->next_free = slots->free;
    slots->free = head;
    slots->used--;
}

uint64_t slots_handle(const void *object, unsigned user_bits)
{
    const struct slots_head *head = object;
    assert(head->generation & 1);
    assert(user_bits < 1u << SLOTS_USER_BITS);
    return (uint64_t)head->generation << 32 |
           (uint64_t)user_bits << SLOTS_INDEX_BITS | head->index;
}

void *slots_find(const struct slots *slots, uint64_t handle)
{
    uint32_t index = (uint32_t)handle & ((1u << SLOTS_INDEX_BITS) - 1);
    uint32_t generation = (uint32_t)(handle >> 32);
    if (index >= slots->count || !(generation & 1))
        return NULL;
    struct slots_head *head = object_at(slots, index);
    return head->generation == generation ? head : NULL;
}

void *slots_at(const struct slots *slots, uint32_t index)
{
    if (index >= slots->count)
        return NULL;
    struct slots_head *head = object_at(slots, index);
    return head->generation & 1 ? head : NULL;
}
