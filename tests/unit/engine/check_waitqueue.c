#include <stdio.h>

#include "../../../server/engine/waiting/waitqueue.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"

enum { NAMES = 5, CLIENTS = 12, STEPS = 20000 };

static const char *const all_names[NAMES] = {"a", "b", "c", "d", "e"};

static struct waitqueues queues;
static struct client {
    struct waiter waiter;
    char text[2 * NAMES];
    struct span names;
    bool is_waiting;
} clients[CLIENTS];

static void setup(void)
{
    waitqueues_init(&queues);
    memset(clients, 0, sizeof clients);
}

static void join(struct client *it, const char *text)
{
    it->names = (struct span){it->text, (size_t)PRINT_TO(it->text, "%s", text)};
    ck_assert(waitqueues_enrol(&queues, &it->waiter, it->names));
    waitqueues_join(&queues, &it->waiter);
    it->is_waiting = true;
}

static void leave(struct client *it)
{
    waitqueues_leave(&queues, &it->waiter);
    waitqueues_dismiss(&queues, &it->waiter);
    it->is_waiting = false;
}

static void teardown(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].is_waiting)
            leave(&clients[i]);
    ck_assert(TAILQ_EMPTY(&queues.list));
    waitqueues_fini(&queues);
}

SUITE(waitqueue, .set_up = setup, .tear_down = teardown, .timeout_s = 60);

/* ---- any order ---------------------------------------------------------- */

static uint64_t state;

static unsigned pick(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void join_at_random(struct client *it)
{
    char text[2 * NAMES] = "";
    unsigned wanted = 1 + pick((1u << NAMES) - 1);
    if (pick(2) == 0)
        wanted &= ~wanted + 1; /* a single one */
    for (unsigned i = 0; i < NAMES; i++)
        if (wanted & 1u << i)
            sprintf(text + strlen(text), "%s%s", *text != '\0' ? "\n" : "",
                    all_names[i]);
    join(it, text);
}

static bool has(const struct client *it, const char *name)
{
    return memchr(it->names.ptr, *name, it->names.len) != NULL;
}

/* By the definition: in the order of arrival, whoever finds all free. */
static void check_contenders(void)
{
    bool is_taken[NAMES] = {false};
    const struct client *order[CLIENTS] = {NULL};
    int count = 0;
    for (int i = 0; i < CLIENTS; i++) {
        int at = count;
        if (!clients[i].is_waiting)
            continue;
        for (; at > 0 &&
               order[at - 1]->waiter.arrival > clients[i].waiter.arrival;
             at--)
            order[at] = order[at - 1];
        order[at] = &clients[i];
        count++;
    }
    for (int i = 0; i < count; i++) {
        bool is_free = true;
        for (int j = 0; j < NAMES; j++)
            is_free &= !has(order[i], all_names[j]) || !is_taken[j];
        for (int j = 0; j < NAMES; j++)
            is_taken[j] |= is_free && has(order[i], all_names[j]);
        for (int j = 0; j < order[i]->waiter.count; j++)
            ck_assert_int_eq(order[i]->waiter.places[j].queue->contender ==
                                 &order[i]->waiter,
                             is_free);
    }
}

TEST_RANGE(contenders_are_those_that_find_all_free_in_the_order_of_arrival, 1,
           5)
{
    state = (uint64_t)_i;
    for (int i = 0; i < STEPS; i++) {
        struct client *it = &clients[pick(CLIENTS)];
        if (it->is_waiting)
            leave(it);
        else
            join_at_random(it);
        check_contenders();
    }
}

/* ---- other facts -------------------------------------------------------- */

TEST(an_empty_key_is_nobodys)
{
    struct span key = span_of("0123456789abcdefghij-_");
    struct waiter *it = &clients[0].waiter;
    join(&clients[0], "a");
    ck_assert(!waiter_has_key(it, span_of("")));
    it->ticket.key_hash = key;
    ck_assert(waiter_has_key(it, key));
    ck_assert(!waiter_has_key(it, span_of("")));
    ck_assert(!waiter_has_key(it, span_of("0123456789abcdefghij-A")));
}
