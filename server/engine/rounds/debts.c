#include "debts.h"

#include <assert.h>
#include <stdlib.h>

#include "../../base/log.h"
#include "../port/port.h"
#include "../port/token.h"

enum {
    STORE_BYTES = 256 * 1024 * 1024,
    PAUSE_US = 500000,
    MARGIN_US = 1000000, /* the moment of a disconnect is not known better */
    TELL_US = 10000000,
};

/* An item of a queue: its head, followed by resource and token. */
struct debt_head {
    int64_t until_us;
    uint16_t resource_len;
    uint8_t token_len;
    bool is_done;
};

struct debt_block {
    struct debt_block *next;
    size_t used;
    char bytes[DEBTS_BLOCK - sizeof(struct debt_block *) - sizeof(size_t)];
};

static_assert(sizeof(struct debt_block) == DEBTS_BLOCK, "");
static_assert(TOKEN_MAX <= UINT8_MAX && NAMES_LEN_MAX <= UINT16_MAX, "");

/* ---- the queues --------------------------------------------------------- */

static struct debt_head *head_at(struct debt_block *block, size_t at)
{
    return (struct debt_head *)(void *)(block->bytes + at);
}

/* The next head must be aligned. */
static size_t size_of(size_t resource_len, size_t token_len)
{
    size_t align = _Alignof(struct debt_head);
    size_t size = sizeof(struct debt_head) + resource_len + token_len;
    return (size + align - 1) / align * align;
}

static size_t size_of_head(const struct debt_head *head)
{
    return size_of(head->resource_len, head->token_len);
}

static struct span resource_of(const struct debt_head *head)
{
    return (struct span){(const char *)(head + 1), head->resource_len};
}

static struct span debts_token_of(const struct debt_head *head)
{
    const char *text = (const char *)(head + 1);
    return (struct span){text + head->resource_len, head->token_len};
}

static bool add_block(struct debts *debts, struct debt_queue *queue,
                      size_t most)
{
    if (debts->bytes + sizeof(struct debt_block) > most)
        return false;
    struct debt_block *block = malloc(sizeof *block);
    if (block == NULL)
        return false;
    debts->bytes += sizeof *block;
    block->next = NULL;
    block->used = 0;
    if (queue->last == NULL) { /* the queue was empty */
        queue->first = queue->next_block = block;
        queue->first_at = queue->next_at = 0;
    } else {
        queue->last->next = block;
    }
    queue->last = block;
    return true;
}

static void free_first(struct debts *debts, struct debt_queue *queue)
{
    struct debt_block *block = queue->first;
    queue->first = block->next;
    queue->first_at = 0;
    if (queue->next_block == block) {
        queue->next_block = queue->first;
        queue->next_at = 0;
    }
    if (queue->first == NULL)
        queue->last = NULL;
    debts->bytes -= sizeof *block;
    free(block);
}

void debts_init(struct debts *debts, struct nodes *nodes)
{
    memset(debts, 0, sizeof *debts);
    debts->env = nodes->env;
    debts->nodes = nodes;
    debts->limit = STORE_BYTES;
    for (int i = 0; i < NODES_MAX; i++) /* others may have granted until now */
        debts->seen_us[i] = environment_now(nodes->env);
}

void debts_fini(struct debts *debts)
{
    for (int i = 0; i < NODES_MAX; i++)
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            while (debts->queue[i][kind].first != NULL)
                free_first(debts, &debts->queue[i][kind]);
}

/* Room for an item at the end. NULL: no memory, or the queues already use most
 * bytes. */
static struct debt_head *reserve(struct debts *debts, struct debt_queue *queue,
                                 size_t size, size_t most)
{
    if ((queue->last == NULL ||
         size > sizeof queue->last->bytes - queue->last->used) &&
        !add_block(debts, queue, most))
        return NULL;
    struct debt_head *head = head_at(queue->last, queue->last->used);
    queue->last->used += size;
    debts->items++;
    return head;
}

static void drop_oldest(struct debts *debts, struct debt_queue *queue)
{
    queue->first_at += size_of_head(head_at(queue->first, queue->first_at));
    debts->items--;
    if (queue->first_at == queue->first->used)
        free_first(debts, queue);
}

static struct debt_head *next_head(struct debt_queue *queue)
{
    struct debt_block *block = queue->next_block;
    if (block != NULL && queue->next_at == block->used) {
        block = block->next;
        if (block != NULL) {
            queue->next_block = block;
            queue->next_at = 0;
        }
    }
    return block != NULL ? head_at(block, queue->next_at) : NULL;
}

static void pass_next(struct debt_queue *queue, struct debt_head *head)
{
    queue->next_at += size_of_head(head);
    queue->sent[queue->next_number++ % DEBTS_WINDOW] = head;
}

/* Drops answered ones. If none is under way, lost ones are next again. */
static void debts_settle(struct debts *debts, struct debt_queue *queue)
{
    while (queue->first_number != queue->next_number &&
           queue->sent[queue->first_number % DEBTS_WINDOW]->is_done) {
        drop_oldest(debts, queue);
        queue->first_number++;
    }
    if (queue->in_flight == 0) {
        queue->next_block = queue->first;
        queue->next_at = queue->first_at;
        queue->next_number = queue->first_number;
    }
}

/* The next one to send. NULL: there is none, or the window is full. */
static struct debt_head *find_due(struct debts *debts, struct debt_queue *queue,
                                  int64_t now_us)
{
    struct debt_head *head;
    while (queue->next_number - queue->first_number < DEBTS_WINDOW &&
           (head = next_head(queue)) != NULL) {
        if (!head->is_done && now_us < head->until_us)
            return head;
        head->is_done = true;
        pass_next(queue, head);
        if (queue->in_flight == 0)
            debts_settle(debts, queue);
    }
    return NULL;
}

/* Drops the oldest ones whose time has passed. */
static void debts_expire(struct debts *debts, struct debt_queue *queue,
                         int64_t now_us)
{
    while (queue->in_flight == 0 && queue->first != NULL &&
           now_us >= head_at(queue->first, queue->first_at)->until_us) {
        drop_oldest(debts, queue);
        debts_settle(debts, queue);
    }
}

/* ---- what is owed ------------------------------------------------------- */

/* A token's number is the median of the clocks at the time of its acquire. */
static enum debt_kind debts_kind_of(const struct debts *debts, int node,
                                    struct span token, int64_t now_us)
{
    const struct nodes *nodes = debts->nodes;
    struct token_parts parts;
    int64_t median_us = clocks_median_at(&nodes->clocks, now_us);
    if (nodes_refusal(nodes, node, CALL_RELEASE) == STATE_NONE ||
        median_us == 0 || !token_parse(token, &parts))
        return DEBT_SURE;
    int64_t away_us = now_us - debts->seen_us[node] - MARGIN_US;
    return parts.number <= median_us - away_us ? DEBT_SURE : DEBT_UNLIKELY;
}

static void note_dropped(struct debts *debts, enum debt_kind kind)
{
    struct metrics *metrics = debts->env->metrics;
    if (kind == DEBT_SURE)
        metrics->releases_dropped++;
    else
        metrics->releases_forgone++;
}

void debts_add(struct debts *debts, int node, struct span resource,
               struct span token, int64_t until_us)
{
    int64_t now_us = environment_now(debts->env);
    assert(resource.len <= NAMES_LEN_MAX && token.len <= TOKEN_MAX);
    if (now_us >= until_us)
        return;
    enum debt_kind kind = debts_kind_of(debts, node, token, now_us);
    struct debt_head *head = reserve(
        debts, &debts->queue[node][kind], size_of(resource.len, token.len),
        kind == DEBT_SURE ? debts->limit : debts->limit / 2);
    if (head == NULL) {
        note_dropped(debts, kind);
        return;
    }
    *head = (struct debt_head){
        .until_us = until_us,
        .resource_len = (uint16_t)resource.len,
        .token_len = (uint8_t)token.len,
    };
    char *text = (char *)(head + 1);
    text += span_copy(text, resource);
    (void)span_copy(text, token);
}

/* ---- calls -------------------------------------------------------------- */

/* False: nothing more can be sent now. */
static bool send_next(struct debts *debts, int node, enum debt_kind kind,
                      int64_t now_us)
{
    struct debt_queue *queue = &debts->queue[node][kind];
    struct debt_head *head = find_due(debts, queue, now_us);
    if (head == NULL)
        return false;
    struct call call =
        fence_call(CALL_RELEASE, resource_of(head), debts_token_of(head));
    if (nodes_send(debts->nodes, node, &call, 0,
                   tag_debt((unsigned)kind, queue->next_number))
            .vote != VOTE_PENDING)
        return false;
    queue->in_flight++;
    pass_next(queue, head);
    return true;
}

static void send_all(struct debts *debts, int node, int64_t now_us)
{
    if (nodes_refusal(debts->nodes, node, CALL_RELEASE) != STATE_NONE ||
        now_us < debts->paused_us[node])
        return;
    for (int kind = 0; kind < DEBT_KINDS; kind++)
        while (send_next(debts, node, (enum debt_kind)kind, now_us))
            continue;
}

/* ---- events ------------------------------------------------------------- */

/* At the end of the queue. False: no memory. */
static bool owe_again(struct debts *debts, struct debt_queue *queue,
                      const struct debt_head *head)
{
    size_t size = size_of_head(head);
    struct debt_head *copy = reserve(debts, queue, size, debts->limit);
    if (copy == NULL)
        return false;
    memcpy(copy, head, size);
    copy->is_done = false;
    return true;
}

void debts_on_reply(struct debts *debts, int node, uint64_t tag, enum vote vote,
                    int64_t now_us)
{
    enum debt_kind kind = (enum debt_kind)tag_debt_kind_of(tag);
    uint32_t number = tag_debt_number_of(tag);
    struct debt_queue *queue = &debts->queue[node][kind];
    struct debt_head *head = queue->sent[number % DEBTS_WINDOW];
    bool is_lost = vote == VOTE_DISCONNECTED; /* so are all under way */
    assert(number - queue->first_number <
           queue->next_number - queue->first_number);
    assert(queue->in_flight > 0);
    queue->in_flight--;
    head->is_done = !is_lost;
    if (!is_lost && !vote_ends_release(vote)) {
        debts->paused_us[node] = now_us + PAUSE_US;
        if (!owe_again(debts, queue, head))
            note_dropped(debts, kind);
    }
    debts_settle(debts, queue);
    send_all(debts, node, now_us);
}

void debts_on_up(struct debts *debts, int node, int64_t now_us)
{
    debts->paused_us[node] = 0;
    send_all(debts, node, now_us);
}

void debts_tick(struct debts *debts, int64_t now_us)
{
    for (int i = 0; i < debts->env->settings.nodes; i++) {
        if (nodes_refusal(debts->nodes, i, CALL_RELEASE) == STATE_NONE)
            debts->seen_us[i] = now_us;
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            debts_expire(debts, &debts->queue[i][kind], now_us);
        send_all(debts, i, now_us);
    }
    uint64_t dropped = debts->env->metrics->releases_dropped;
    if (dropped == debts->told || now_us < debts->told_us + TELL_US)
        return;
    log_write(
        LOG_WARN, "releases_dropped",
        (struct log_field[]){
            LOG_N("count", (int64_t)(dropped - debts->told)),
            LOG_S("detail", "too many releases wait for unreachable "
                            "nodes: these keys stay until their TTL ends"),
            LOG_END});
    debts->told = dropped;
    debts->told_us = now_us;
}
