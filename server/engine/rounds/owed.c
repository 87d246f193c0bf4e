#include "owed.h"

#include <assert.h>
#include <stdlib.h>

#include "../../lock/lock.h"

/* An item: its head, followed by resource and token. */
struct owed_head {
    int64_t until_us;
    uint16_t resource_len;
    uint8_t token_len;
    bool is_done;
};

struct owed_block {
    struct owed_block *next;
    size_t used;
    char bytes[OWED_BLOCK - sizeof(struct owed_block *) - sizeof(size_t)];
};

static_assert(sizeof(struct owed_block) == OWED_BLOCK, "");
static_assert(TOKEN_MAX <= UINT8_MAX && NAMES_LEN_MAX <= UINT16_MAX, "");

/* ---- memory ------------------------------------------------------------- */

static struct owed_head *head_at(struct owed_block *block, size_t at)
{
    return (struct owed_head *)(void *)(block->bytes + at);
}

/* The next head must be aligned. */
static size_t size_of(size_t resource_len, size_t token_len)
{
    size_t align = _Alignof(struct owed_head);
    size_t size = sizeof(struct owed_head) + resource_len + token_len;
    return (size + align - 1) / align * align;
}

static size_t size_of_head(const struct owed_head *head)
{
    return size_of(head->resource_len, head->token_len);
}

static bool add_block(struct owed *owed, size_t most)
{
    struct owed_store *store = owed->store;
    size_t limit = most < store->limit ? most : store->limit;
    if (store->bytes + sizeof(struct owed_block) > limit)
        return false;
    struct owed_block *block = malloc(sizeof *block);
    if (block == NULL)
        return false;
    store->bytes += sizeof *block;
    block->next = NULL;
    block->used = 0;
    if (owed->last == NULL) { /* the queue was empty */
        owed->first = owed->next_block = block;
        owed->first_at = owed->next_at = 0;
    } else {
        owed->last->next = block;
    }
    owed->last = block;
    return true;
}

static void free_first(struct owed *owed)
{
    struct owed_block *block = owed->first;
    owed->first = block->next;
    owed->first_at = 0;
    if (owed->next_block == block) {
        owed->next_block = owed->first;
        owed->next_at = 0;
    }
    if (owed->first == NULL)
        owed->last = NULL;
    owed->store->bytes -= sizeof *block;
    free(block);
}

void owed_fini(struct owed *owed)
{
    while (owed->first != NULL)
        free_first(owed);
}

/* ---- the queue ---------------------------------------------------------- */

bool owed_push(struct owed *owed, const struct owed_item *item, size_t most)
{
    size_t size = size_of(item->resource.len, item->token.len);
    assert(item->resource.len <= NAMES_LEN_MAX && item->token.len <= TOKEN_MAX);
    if ((owed->last == NULL ||
         size > sizeof owed->last->bytes - owed->last->used) &&
        !add_block(owed, most))
        return false;
    struct owed_head *head = head_at(owed->last, owed->last->used);
    owed->last->used += size;
    *head = (struct owed_head){
        .until_us = item->until_us,
        .resource_len = (uint16_t)item->resource.len,
        .token_len = (uint8_t)item->token.len,
    };
    char *text = (char *)(head + 1);
    text += span_copy(text, item->resource);
    (void)span_copy(text, item->token);
    owed->store->items++;
    return true;
}

static void drop_oldest(struct owed *owed)
{
    owed->first_at += size_of_head(head_at(owed->first, owed->first_at));
    owed->store->items--;
    if (owed->first_at == owed->first->used)
        free_first(owed);
}

/* ---- under way ---------------------------------------------------------- */

static struct owed_head *next_head(struct owed *owed)
{
    struct owed_block *block = owed->next_block;
    if (block != NULL && owed->next_at == block->used) {
        block = block->next;
        if (block != NULL) {
            owed->next_block = block;
            owed->next_at = 0;
        }
    }
    return block != NULL ? head_at(block, owed->next_at) : NULL;
}

static void pass_next(struct owed *owed, struct owed_head *head)
{
    owed->next_at += size_of_head(head);
    owed->sent[owed->next_number++ % OWED_WINDOW] = head;
}

/* Drops answered ones. If none is under way, lost ones are next again. */
static void settle(struct owed *owed)
{
    while (owed->first_number != owed->next_number &&
           owed->sent[owed->first_number % OWED_WINDOW]->is_done) {
        drop_oldest(owed);
        owed->first_number++;
    }
    if (owed->in_flight == 0) {
        owed->next_block = owed->first;
        owed->next_at = owed->first_at;
        owed->next_number = owed->first_number;
    }
}

static struct owed_item item_of(const struct owed_head *head)
{
    const char *text = (const char *)(head + 1);
    return (struct owed_item){
        .resource = {text, head->resource_len},
        .token = {text + head->resource_len, head->token_len},
        .until_us = head->until_us,
    };
}

bool owed_next(struct owed *owed, int64_t now_us, struct owed_item *item,
               uint32_t *number)
{
    struct owed_head *head;
    while (owed->next_number - owed->first_number < OWED_WINDOW &&
           (head = next_head(owed)) != NULL) {
        if (!head->is_done && now_us < head->until_us) {
            *item = item_of(head);
            *number = owed->next_number;
            return true;
        }
        head->is_done = true;
        pass_next(owed, head);
        if (owed->in_flight == 0)
            settle(owed);
    }
    return false;
}

void owed_note_sent(struct owed *owed)
{
    struct owed_head *head = next_head(owed);
    assert(head != NULL);
    owed->in_flight++;
    pass_next(owed, head);
}

bool owed_note_answer(struct owed *owed, uint32_t number,
                      enum owed_answer answer)
{
    struct owed_head *head = owed->sent[number % OWED_WINDOW];
    bool is_kept = true;
    assert(number - owed->first_number <
           owed->next_number - owed->first_number);
    assert(owed->in_flight > 0);
    owed->in_flight--;
    head->is_done = answer != OWED_LOST;
    if (answer == OWED_REFUSED) {
        struct owed_item item = item_of(head);
        is_kept = owed_push(owed, &item, SIZE_MAX);
    }
    settle(owed);
    return is_kept;
}

void owed_expire(struct owed *owed, int64_t now_us)
{
    while (owed->in_flight == 0 && owed->first != NULL &&
           now_us >= head_at(owed->first, owed->first_at)->until_us) {
        drop_oldest(owed);
        settle(owed);
    }
}
