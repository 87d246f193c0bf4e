/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../../../server/engine/waiting/waits.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"

enum { NAMES = 5, CLIENTS = 12, STEPS = 5000 };

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
    it->waiter = (struct waiter){0};
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

/* ---- many that leave ---------------------------------------------------- */

/* Whoever is next may go at once; the rest is as it was in the end. */
TEST_RANGE(without_checks_the_next_tick_finds_the_contenders, 1, 5)
{
    state = (uint64_t)_i;
    for (int i = 0; i < STEPS; i++) {
        struct client *it = &clients[pick(CLIENTS)];
        queues.checks = (int)pick(9);
        if (it->is_waiting)
            leave(it);
        else
            join_at_random(it);
        if (pick(4) != 0)
            continue;
        waitqueues_tick(&queues);
        ck_assert(TAILQ_EMPTY(&queues.vacant));
        check_contenders();
    }
}

TEST(without_checks_the_next_one_goes_at_once)
{
    join(&clients[0], "a\nb");
    join(&clients[1], "b");
    join(&clients[2], "a");
    queues.checks = 0;
    leave(&clients[0]);
    check_contenders();
    ck_assert(clients[1].waiter.plan->is_woken); /* it may be late */
}

TEST(a_newcomer_does_not_overtake_those_that_the_next_tick_finds)
{
    join(&clients[0], "a\nb");
    join(&clients[1], "a\nc");
    join(&clients[2], "b");
    join(&clients[3], "c\nd");
    join(&clients[4], "d\ne");
    queues.checks = 0;
    leave(&clients[0]); /* so the second goes, and the fourth does not */
    join(&clients[5], "d");
    ck_assert_ptr_null(clients[5].waiter.only.queue->contender);
    waitqueues_tick(&queues);
    check_contenders();
}

enum { MANY = 2000, OF_MANY = 16, NAMES_OF_MANY = 160 };

static struct crowd {
    struct waiter waiter;
    char text[OF_MANY * 8];
} crowd[MANY];

/* Each for a different choice of the names; or each for one that the one before
 * it wants, too. */
static void join_crowd(struct crowd *it, int i, bool is_chain)
{
    size_t len = 0;
    int used = 0;
    for (int name = 0; name < NAMES_OF_MANY && !is_chain; name++) {
        bool is_wanted =
            (int)pick((unsigned)(NAMES_OF_MANY - name)) < OF_MANY - used;
        if (is_wanted)
            len += (size_t)sprintf(it->text + len, "%sn%03d",
                                   used++ > 0 ? "\n" : "", name);
    }
    if (is_chain)
        len = (size_t)sprintf(it->text, "n%05d\nn%05d", i, i + 1);
    memset(&it->waiter, 0, sizeof it->waiter);
    ck_assert(
        waitqueues_enrol(&queues, &it->waiter, (struct span){it->text, len}));
    waitqueues_join(&queues, &it->waiter);
}

/* All leave between two ticks: how many checks that takes. */
static int checks_of_leavers(int count, bool is_chain)
{
    state = 1;
    for (int i = 0; i < count; i++)
        join_crowd(&crowd[i], i, is_chain);
    queues.checks = WAITQUEUES_CHECKS;
    for (int i = 0; i < count; i++) {
        waitqueues_leave(&queues, &crowd[i].waiter);
        waitqueues_dismiss(&queues, &crowd[i].waiter);
    }
    ck_assert(TAILQ_EMPTY(&queues.list));
    ck_assert(TAILQ_EMPTY(&queues.vacant));
    return WAITQUEUES_CHECKS - queues.checks;
}

/* Each examines those that are next, not at all that wait. */
TEST_RANGE(what_each_leaver_costs_does_not_grow_with_those_that_wait, 0, 2)
{
    int half = checks_of_leavers(MANY / 2, _i == 1);
    int all = checks_of_leavers(MANY, _i == 1);
    ck_assert_int_lt(all, 3 * half + WAITQUEUES_CHECKS);
    ck_assert_int_lt(all, WAITQUEUES_CHECKS + MANY * 2 * OF_MANY * OF_MANY);
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
