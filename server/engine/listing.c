/* SPDX-License-Identifier: MIT */
/*
 * Lists the locks that a majority of the nodes has, a page at a time. Nothing
 * is kept between two pages: the cursor holds the position.
 *
 *   start ──→ SCANNING a node ──→ INSPECTING its keys ──→ SETTLED ──→ close
 *               ↑                        │
 *               └──── the next node ←────┘ if this one has no more keys, and
 *                                          the page is not full
 *
 * A lock on q of N nodes is on at least one of any N - q + 1. So only so many
 * nodes are scanned, one after the other. Each name found is inspected on all
 * nodes, as for a client; a lock that an earlier scanned node also has was
 * listed there, and is left out.
 *
 * Listings take turns: one at a time is active, with one scan or a few
 * inspections. So many of them delay other calls no more than one does, and a
 * short one does not wait for long ones to end.
 */
#include <assert.h>
#include <sys/queue.h>

#include "../lock/names.h"
#include "parts.h"

enum { INSPECTIONS_MAX = 32 }; /* begun in one turn */

enum listing_state { LISTING_SCANNING, LISTING_INSPECTING, LISTING_SETTLED };

struct listing {
    struct entries_head head;
    struct listings *listings;
    TAILQ_ENTRY(listing) link;
    enum listing_state state;
    void *client;
    struct engine_list asked; /* its prefix, or pool, is in the text below */
    char text[RESOURCE_MAX];
    int64_t deadline_us; /* of the scan */
    bool is_repeated;    /* the node had lost our script, and was asked again */
    uint16_t earlier;    /* bit per node: scanned before this one */
    struct list_cursor cursor;
    struct engine_page page;
    char *names;          /* malloc'ed: what the last scan found */
    struct span left;     /* the rest of names: not inspected yet */
    int slots_left;       /* of a pool: the same */
    int pending;          /* inspections without an outcome, and one more while
                             they are being started */
    int count;            /* operations: those of the locks on the page, then
                             those of the current node */
    uint64_t *operations; /* malloc'ed handles of inspections */
};

static void listing_on_settled(void *client);
static void give_turns(struct listings *listings);
static void listing_end(struct listing *it);

void listings_init(struct listings *listings, struct nodes *nodes,
                   struct operations *operations)
{
    *listings = (struct listings){.nodes = nodes, .operations = operations};
    entries_init(&listings->entries, sizeof(struct listing), ENGINE_LISTS_MAX);
    TAILQ_INIT(&listings->list);
    operations->on_settled[OWNER_LISTING] = listing_on_settled;
}

void listings_fini(struct listings *listings)
{
    listings->is_held = true;
    while (!TAILQ_EMPTY(&listings->list))
        listing_end(TAILQ_FIRST(&listings->list));
    entries_fini(&listings->entries);
}

static struct operation *operation_of(const struct listing *it, int i)
{
    struct operation *operation =
        operation_find(it->listings->operations, it->operations[i]);
    assert(operation != NULL); /* nobody else ends it */
    return operation;
}

static void drop_operations(struct listing *it)
{
    for (int i = 0; i < it->count; i++)
        operation_discard(operation_of(it, i));
    it->page.count = it->count = 0;
    free(it->operations);
    it->operations = NULL;
    free(it->names);
    it->names = NULL;
    it->left = (struct span){0};
}

static struct listing *listing_must_find(const struct listings *listings,
                                         uint64_t handle)
{
    assert(handle_kind_of(handle) == HANDLE_LISTING);
    struct listing *it = entries_find(&listings->entries, handle);
    assert(it != NULL); /* a request ends its listing once: exchange.c */
    return it;
}

const struct engine_page *listing_page(const struct listings *listings,
                                       uint64_t handle)
{
    return &listing_must_find(listings, handle)->page;
}

struct operation *listing_lock(const struct listings *listings, uint64_t handle,
                               int n)
{
    const struct listing *it = listing_must_find(listings, handle);
    assert(n >= 0 && n < it->page.count);
    return operation_of(it, n);
}

/* ---- which nodes --------------------------------------------------------- */

static int nodes_needed(const struct nodes *nodes)
{
    int total = nodes->env->settings.nodes;
    return total - quorum_of(total) + 1;
}

/* The n-th scanned node; -1: there are no more. */
static int nth_node(uint16_t nodes, int n)
{
    for (int i = 0; i < NODES_MAX; i++)
        if ((nodes & 1u << i) != 0 && n-- == 0)
            return i;
    return -1;
}

/*
 * Hash of the run IDs: after a restart a node's cursors are void, and keys that
 * were listed from it may be gone.
 */
static uint64_t hash_runs(const struct nodes *nodes, uint16_t scanned)
{
    uint64_t hash = HASH_BASIS;
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        if ((scanned & 1u << i) != 0)
            hash = hash_go_on(hash, span_of(nodes->members.node[i].run_id));
    return hash;
}

/* Chooses the first voting nodes. False: too few vote. */
static bool choose_nodes(const struct nodes *nodes, struct list_cursor *cursor)
{
    int needed = nodes_needed(nodes);
    for (int i = 0; i < nodes->env->settings.nodes && needed > 0; i++) {
        if (nodes->node[i].refusal != STATE_NONE)
            continue;
        cursor->nodes |= (uint16_t)(1u << i);
        needed--;
    }
    cursor->runs = hash_runs(nodes, cursor->nodes);
    return needed == 0;
}

/* True if all nodes of the cursor are connected and still the same servers. */
static bool is_usable(const struct nodes *nodes,
                      const struct list_cursor *cursor)
{
    int count = 0;
    for (int i = 0; i < NODES_MAX; i++) {
        if ((cursor->nodes & 1u << i) == 0)
            continue;
        if (i >= nodes->env->settings.nodes || !nodes->node[i].is_up)
            return false;
        count++;
    }
    return count == nodes_needed(nodes) && cursor->at < count &&
           cursor->runs == hash_runs(nodes, cursor->nodes);
}

/* ---- the scan ------------------------------------------------------------ */

/* Scans the cursor's current node. Returns LIST_PENDING, or why it cannot. */
static enum list_outcome send_scan(struct listing *it)
{
    struct nodes *nodes = it->listings->nodes;
    bool is_first = it->cursor.nodes == 0;
    if (is_first && !choose_nodes(nodes, &it->cursor))
        return LIST_NO_QUORUM;
    if (!is_first && !is_usable(nodes, &it->cursor))
        return LIST_LOST;
    int node = nth_node(it->cursor.nodes, it->cursor.at);
    assert(node >= 0);
    it->page.node = node;
    it->earlier = it->cursor.nodes & (uint16_t)((1u << node) - 1);
    it->deadline_us =
        environment_now(nodes->env) + nodes->env->settings.node_timeout_us;
    struct call call = {
        .kind = CALL_SCAN,
        .resource = it->asked.prefix,
        .cursor = it->cursor.scan,
        .count = it->asked.limit - it->page.count,
    };
    struct ballot ballot =
        nodes_send(nodes, node, &call, it->deadline_us,
                   entries_handle(it, tag_bits(TAG_SCAN, 0)));
    return ballot.vote == VOTE_PENDING ? LIST_PENDING : LIST_NO_QUORUM;
}

/* ---- the page ------------------------------------------------------------ */

static void end_turn(struct listing *it)
{
    struct listings *listings = it->listings;
    if (listings->active != it)
        return;
    listings->active = NULL;
    TAILQ_REMOVE(&listings->list, it, link);
    TAILQ_INSERT_TAIL(&listings->list, it, link);
}

static void listing_settle(struct listing *it, enum list_outcome outcome)
{
    const struct engine_port *port = &it->listings->nodes->env->port;
    /* one that has settled has no turn, and ignores replies */
    assert(it->state != LISTING_SETTLED);
    end_turn(it);
    it->state = LISTING_SETTLED;
    it->page.outcome = outcome;
    port->answer(port->ctx, it->client);
}

static void listing_fail(struct listing *it, enum list_outcome outcome)
{
    drop_operations(it);
    listing_settle(it, outcome);
}

enum judgement { SHOWN, LEFT_OUT, UNKNOWN };

static bool listing_has_quorum(const struct engine_result *result)
{
    int answers = 0;
    for (int i = 0; i < result->total; i++)
        answers += vote_is_answer(result->votes[i].vote);
    return answers >= result->quorum;
}

/*
 * A lock that would need unreachable nodes for its majority is left out:
 * otherwise there would be no list while two of five are unreachable.
 */
static enum judgement listing_judge(const struct listing *it,
                                    const struct engine_result *result)
{
    if (result->outcome == OUTCOME_NO_QUORUM)
        return listing_has_quorum(result) ? LEFT_OUT : UNKNOWN;
    if (result->outcome != OUTCOME_FOUND || result->votes_for < result->quorum)
        return LEFT_OUT;
    for (int i = 0; i < result->total; i++) {
        enum vote vote = result->votes[i].vote;
        if ((it->earlier & 1u << i) == 0)
            continue;
        if (vote == VOTE_HELD)
            return LEFT_OUT;
        if (vote != VOTE_FREE && vote != VOTE_KEY_REFUSED)
            return UNKNOWN;
    }
    return SHOWN;
}

/*
 * After all inspections: keeps those of locks that go on the page. False: the
 * outcome of some is unknown.
 */
static bool keep_shown(struct listing *it)
{
    bool is_known = true;
    for (int i = it->page.count; i < it->count; i++) {
        struct operation *operation = operation_of(it, i);
        enum judgement judgement = listing_judge(it, &operation->result);
        is_known &= judgement != UNKNOWN;
        if (judgement == SHOWN)
            it->operations[it->page.count++] = it->operations[i];
        else
            operation_discard(operation);
    }
    it->count = it->page.count;
    return is_known;
}

/*
 * A page goes on at the next node, so that few locks are one page. Within a
 * node it ends where the scan does: its cost to a node is bounded.
 */
static void finish(struct listing *it)
{
    bool goes_on = it->page.has_next && it->page.next.at > it->cursor.at;
    if (!keep_shown(it)) {
        listing_fail(it, LIST_NO_QUORUM);
    } else if (goes_on && it->page.count < it->asked.limit) {
        it->cursor = it->page.next;
        it->state = LISTING_SCANNING;
    } else {
        listing_settle(it, LIST_PAGE); /* the next page reports the error */
    }
}

/* ---- inspections --------------------------------------------------------- */

static bool begin_inspection(struct listing *it, struct span name)
{
    it->pending++;
    uint64_t handle =
        operation_start(it->listings->operations, &(struct request){
                                                      .call = LOCK_INSPECT,
                                                      .resource = name,
                                                      .awaited = it->earlier,
                                                      .owned_by = OWNER_LISTING,
                                                      .client = it,
                                                  });
    if (handle == 0) {
        it->pending--;
        return false;
    }
    it->operations[it->count++] = handle;
    return true;
}

/* Copies the names that a scan found. False: no memory. */
static bool keep_names(struct listing *it, struct span names)
{
    size_t count = (size_t)it->count;
    struct span rest = names, name;
    while (call_next_name(&rest, &name))
        count++;
    uint64_t *operations =
        reallocarray(it->operations, count + 1, sizeof *operations);
    if (operations == NULL)
        return false;
    it->operations = operations;
    free(it->names);
    it->names = malloc(names.len + 1);
    if (it->names == NULL)
        return false;
    it->left = (struct span){it->names, span_copy(it->names, names)};
    return true;
}

/* No inspection is under way: ends the turn, and the node if none is left. */
static void on_inspected(struct listing *it)
{
    end_turn(it);
    if (it->left.len == 0 && it->slots_left == 0)
        finish(it);
}

/* The next one to be inspected, perhaps in this text. False: none is left. */
static bool next_name(struct listing *it, char text[RESOURCE_MAX],
                      struct span *name)
{
    if (it->slots_left == 0)
        return call_next_name(&it->left, name);
    int slot = it->asked.limit - it->slots_left;
    it->slots_left--;
    *name = (struct span){text, names_put_slot(text, it->asked.pool, slot)};
    return true;
}

/* Starts the next few inspections. */
static void inspect(struct listing *it)
{
    char text[RESOURCE_MAX];
    struct span name;
    bool has_memory = true;
    it->pending++;
    for (int begun = 0;
         has_memory && begun < INSPECTIONS_MAX && next_name(it, text, &name);)
        if (it->asked.is_name == NULL || it->asked.is_name(name)) {
            has_memory = begin_inspection(it, name);
            begun++;
        }
    it->pending--;
    if (!has_memory)
        listing_fail(it, LIST_NO_MEMORY);
    else if (it->pending == 0)
        on_inspected(it);
}

/* ---- turns --------------------------------------------------------------- */

static void listing_on_settled(void *client)
{
    struct listing *it = client;
    struct listings *listings = it->listings;
    if (--it->pending > 0)
        return;
    on_inspected(it);
    give_turns(listings);
}

static void take_turn(struct listing *it)
{
    it->listings->active = it;
    if (it->state == LISTING_INSPECTING) {
        inspect(it);
        return;
    }
    enum list_outcome outcome = send_scan(it);
    if (outcome != LIST_PENDING && it->page.has_next)
        listing_settle(it, LIST_PAGE); /* the next page reports the error */
    else if (outcome != LIST_PENDING)
        listing_fail(it, outcome);
}

/* The listing that has waited longest for a turn; NULL: none waits. */
static struct listing *find_next(const struct listings *listings)
{
    struct listing *it;
    for (it = TAILQ_FIRST(&listings->list); it != NULL;
         it = TAILQ_NEXT(it, link))
        if (it->state != LISTING_SETTLED)
            return it;
    return NULL;
}

/* Gives turns until a listing stays active, or none waits. */
static void give_turns(struct listings *listings)
{
    struct listing *it;
    if (listings->is_held)
        return;
    listings->is_held = true; /* a turn may end at once, in here */
    while (listings->active == NULL && (it = find_next(listings)) != NULL)
        take_turn(it);
    listings->is_held = false;
}

static void listing_end(struct listing *it)
{
    struct listings *listings = it->listings;
    end_turn(it);
    drop_operations(it);
    TAILQ_REMOVE(&listings->list, it, link);
    entries_give(&listings->entries, it);
    give_turns(listings);
}

void listing_close(struct listings *listings, uint64_t handle)
{
    listing_end(listing_must_find(listings, handle));
}

/* ---- replies to scans ---------------------------------------------------- */

/* True while its scan is under way. */
static bool is_scanning(const struct listing *it)
{
    return it == it->listings->active && it->state == LISTING_SCANNING;
}

void listings_on_reply(struct listings *listings, uint64_t tag,
                       const struct call_reply *reply)
{
    struct listing *it = entries_find(&listings->entries, tag);
    if (it == NULL || !is_scanning(it))
        return; /* too late */
    if (reply->state == STATE_NO_SCRIPT && !it->is_repeated) {
        enum list_outcome outcome = send_scan(it);
        it->is_repeated = true;
        if (outcome == LIST_PENDING)
            return;
    }
    it->is_repeated = false;
    if (reply->vote == VOTE_KEY_REFUSED) {
        listing_fail(it, LIST_REFUSED);
    } else if (reply->vote != VOTE_DONE) {
        listing_fail(it, LIST_NO_QUORUM);
    } else if (!keep_names(it, reply->names)) {
        listing_fail(it, LIST_NO_MEMORY);
    } else {
        struct engine_page *page = &it->page;
        page->next = it->cursor;
        page->next.scan = reply->cursor;
        page->next.at += reply->cursor == 0;
        page->has_next = nth_node(it->cursor.nodes, page->next.at) >= 0;
        it->state = LISTING_INSPECTING;
        end_turn(it);
    }
    give_turns(listings);
}

void listings_tick(struct listings *listings, int64_t now_us)
{
    struct listing *it = listings->active;
    if (it == NULL || !is_scanning(it) || now_us < it->deadline_us)
        return;
    listing_fail(it, LIST_NO_QUORUM);
    give_turns(listings);
}

/* ---- begin --------------------------------------------------------------- */

/* Nothing need be scanned: the slots of a pool are known. False: no memory. */
static bool listing_begin_pool(struct listing *it)
{
    struct span pool = it->asked.pool;
    assert(pool.len + NAMES_SLOT_MAX <= RESOURCE_MAX); /* handler.c */
    it->state = LISTING_INSPECTING;
    it->asked.pool = (struct span){it->text, span_copy(it->text, pool)};
    it->slots_left = it->asked.limit;
    it->operations = calloc((size_t)it->slots_left, sizeof *it->operations);
    return it->operations != NULL;
}

uint64_t listing_start(struct listings *listings,
                       const struct engine_list *list, void *client)
{
    assert(list->limit > 0 && list->prefix.len <= RESOURCE_MAX);
    struct listing *it = entries_take(&listings->entries);
    if (it == NULL)
        return 0;
    *it = (struct listing){
        .head = it->head,
        .listings = listings,
        .state = LISTING_SCANNING,
        .client = client,
        .asked = *list,
        .cursor = list->cursor,
        .page = {.outcome = LIST_PENDING, .node = -1},
    };
    TAILQ_INSERT_TAIL(&listings->list, it, link);
    it->asked.prefix =
        (struct span){it->text, span_copy(it->text, list->prefix)};
    if (list->pool.len > 0 && !listing_begin_pool(it)) {
        listing_end(it);
        return 0;
    }
    uint64_t handle = entries_handle(it, HANDLE_LISTING);
    give_turns(listings);
    return handle;
}
