/* What a node owes: a queue that is sent in windows, and keeps what was lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../server/engine/rounds/owed.h"
#include "../../../server/lock/lock.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { NEVER_US = 1000000000 };

static struct owed_store store;
static struct owed owed;

static void setup(void)
{
    store = (struct owed_store){.limit = 64 * OWED_BLOCK};
    owed = (struct owed){.store = &store};
}

static void teardown(void)
{
    owed_fini(&owed);
    ck_assert_uint_eq(store.bytes, 0);
}

static bool push_until(int name, int64_t until_us)
{
    char resource[32], token[32];
    snprintf(resource, sizeof resource, "resource %d", name);
    snprintf(token, sizeof token, "token %d", name);
    return owed_push(
        &owed, &(struct owed_item){span_of(resource), span_of(token), until_us},
        SIZE_MAX);
}

static void push(int from, int to)
{
    for (int i = from; i <= to; i++)
        ck_assert(push_until(i, NEVER_US));
}

/* The next is of this name, and is sent; returns its number. */
static uint32_t expect(int name)
{
    struct owed_item item;
    char resource[32], token[32];
    int resource_len = snprintf(resource, sizeof resource, "resource %d", name);
    int token_len = snprintf(token, sizeof token, "token %d", name);
    uint32_t number;
    ck_assert(owed_next(&owed, 0, &item, &number));
    ck_assert_uint_eq(item.resource.len, (size_t)resource_len);
    ck_assert_mem_eq(item.resource.ptr, resource, item.resource.len);
    ck_assert_uint_eq(item.token.len, (size_t)token_len);
    ck_assert_mem_eq(item.token.ptr, token, item.token.len);
    owed_note_sent(&owed);
    return number;
}

static void expect_none(int64_t now_us)
{
    struct owed_item item;
    uint32_t number;
    ck_assert(!owed_next(&owed, now_us, &item, &number));
}

static void answer(uint32_t number, enum owed_answer how)
{
    ck_assert(owed_note_answer(&owed, number, how));
}

SUITE(owed, .timeout_s = 60, .set_up = setup, .tear_down = teardown);

TEST(it_is_sent_in_order_and_leaves_when_it_is_answered)
{
    uint32_t numbers[3];
    expect_none(0);
    push(1, 3);
    ck_assert_uint_eq(store.items, 3);
    for (int i = 0; i < 3; i++)
        numbers[i] = expect(i + 1);
    expect_none(0);
    answer(numbers[1], OWED_DONE);
    answer(numbers[0], OWED_DONE);
    ck_assert_uint_eq(store.items, 1);
    push(4, 4);
    ck_assert_uint_eq(expect(4), numbers[2] + 1);
    answer(numbers[2], OWED_DONE);
    answer(numbers[2] + 1, OWED_DONE);
    ck_assert(owed.first == NULL);
    ck_assert_uint_eq(store.items, 0);
    ck_assert_uint_eq(store.bytes, 0);
}

TEST(no_more_than_a_window_is_on_its_way)
{
    uint32_t first = 0;
    push(0, OWED_WINDOW);
    for (int i = 0; i < OWED_WINDOW; i++) {
        uint32_t number = expect(i);
        first = i == 0 ? number : first;
    }
    expect_none(0);
    answer(first + 1, OWED_DONE);
    expect_none(0);
    answer(first, OWED_DONE);
    (void)expect(OWED_WINDOW);
    expect_none(0);
}

TEST(what_was_lost_is_the_next_again_in_its_place)
{
    push(0, 9);
    uint32_t first = expect(0);
    for (int i = 1; i < 6; i++)
        (void)expect(i);
    answer(first + 2, OWED_DONE);
    for (uint32_t i = 0; i < 6; i++)
        if (i != 2)
            answer(first + i, OWED_LOST);
    static const int again[] = {0, 1, 3, 4, 5, 6, 7, 8, 9};
    for (size_t i = 0; i < sizeof again / sizeof *again; i++)
        (void)expect(again[i]);
    expect_none(0);
    ck_assert_uint_eq(store.items, 10); /* 2 leaves behind 0 and 1 */
}

TEST(what_was_refused_goes_to_the_end)
{
    push(0, 2);
    answer(expect(0), OWED_REFUSED);
    answer(expect(1), OWED_DONE);
    answer(expect(2), OWED_DONE);
    answer(expect(0), OWED_REFUSED);
    answer(expect(0), OWED_DONE);
    ck_assert(owed.first == NULL);
}

TEST(what_is_owed_no_longer_is_not_sent)
{
    ck_assert(push_until(0, 100));
    ck_assert(push_until(1, NEVER_US));
    ck_assert(push_until(2, 100));
    ck_assert(push_until(3, 50));
    struct owed_item item;
    uint32_t number;
    ck_assert(owed_next(&owed, 100, &item, &number));
    ck_assert_int_eq(item.until_us, NEVER_US);
    owed_note_sent(&owed);
    expect_none(100);
    answer(number, OWED_DONE);
    ck_assert(owed.first == NULL);
}

TEST(nor_kept_while_the_node_is_away)
{
    for (int i = 0; i < 10000; i++)
        ck_assert(push_until(i, i));
    size_t before = store.bytes;
    owed_expire(&owed, 5000);
    ck_assert_uint_eq(store.items, 4999);
    ck_assert_uint_lt(store.bytes, before);
    struct owed_item item;
    uint32_t number;
    ck_assert(owed_next(&owed, 5000, &item, &number));
    ck_assert_int_eq(item.until_us, 5001);
    owed_note_sent(&owed);
    owed_expire(&owed, NEVER_US); /* not what is on its way */
    answer(number, OWED_LOST);
    owed_expire(&owed, NEVER_US);
    ck_assert(owed.first == NULL);
}

TEST(memory_is_limited_and_given_back)
{
    int count = 0;
    while (push_until(count, NEVER_US))
        count++;
    ck_assert_uint_eq(store.bytes, store.limit);
    /* a release of a short name: less than 50 bytes more than its texts */
    ck_assert_int_gt(count, (int)(store.limit / 80));
    for (int i = 0; i < count; i++)
        answer(expect(i), OWED_DONE);
    ck_assert_uint_eq(store.bytes, 0);
}

TEST(what_finds_no_memory_leaves_the_queue_as_it_was)
{
    push(1, 1);
    uint64_t bytes = store.bytes;
    int count = 1;
    starve = (struct starve){.is_on = true, .left = 1};
    while (push_until(count + 1, NEVER_US)) /* in the first block */
        count++;
    starve.is_on = false;
    ck_assert_int_eq(starve.left, 0);
    ck_assert_uint_eq(store.bytes, bytes);
    ck_assert_uint_eq(store.items, (uint64_t)count);
    push(count + 1, count + 1);
    for (int i = 1; i <= count + 1; i++)
        answer(expect(i), OWED_DONE);
}

TEST(what_is_refused_is_given_up_without_memory)
{
    while (push_until(0, NEVER_US))
        continue;
    uint64_t items = store.items;
    ck_assert(!owed_note_answer(&owed, expect(0), OWED_REFUSED));
    ck_assert_uint_eq(store.items, items - 1);
}

TEST(the_longest_names_fit)
{
    static char resource[RESOURCE_MAX], token[TOKEN_MAX];
    memset(resource, 'r', sizeof resource);
    memset(token, 't', sizeof token);
    struct owed_item item = {
        {resource, sizeof resource}, {token, sizeof token}, NEVER_US};
    for (int i = 0; i < 100; i++)
        ck_assert(owed_push(&owed, &item, SIZE_MAX));
    for (int i = 0; i < 100; i++) {
        uint32_t number;
        ck_assert(owed_next(&owed, 0, &item, &number));
        ck_assert_uint_eq(item.resource.len, sizeof resource);
        ck_assert_mem_eq(item.token.ptr, token, sizeof token);
        owed_note_sent(&owed);
        answer(number, OWED_DONE);
    }
}

/* Against a plain list of names, of which each is there until it is done. */
enum { NAMES = 30000, STEPS = 200000 };

static struct {
    int names[NAMES + STEPS];
    int count, done;
    uint32_t numbers[OWED_WINDOW];
    int sent[OWED_WINDOW], sent_count;
} plain;

static uint64_t random_state;

static int draw(int below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (int)((random_state >> 33) % (unsigned)below);
}

static int name_of(struct span token)
{
    char text[32] = {0};
    (void)span_copy(text, token);
    return atoi(text + strlen("token "));
}

static void play_send(void)
{
    struct owed_item item;
    uint32_t number;
    while (plain.sent_count < OWED_WINDOW &&
           owed_next(&owed, 0, &item, &number)) {
        plain.sent[plain.sent_count] = name_of(item.token);
        plain.numbers[plain.sent_count++] = number;
        owed_note_sent(&owed);
        if (draw(8) == 0)
            break;
    }
}

static void play_answer_one(void)
{
    if (plain.sent_count == 0)
        return;
    int at = draw(plain.sent_count);
    bool is_done = draw(10) != 0;
    answer(plain.numbers[at], is_done ? OWED_DONE : OWED_REFUSED);
    if (is_done) {
        ck_assert_int_eq(plain.names[plain.sent[at]], 0);
        plain.names[plain.sent[at]] = 1;
        plain.done++;
    }
    plain.sent_count--;
    plain.sent[at] = plain.sent[plain.sent_count];
    plain.numbers[at] = plain.numbers[plain.sent_count];
}

static void play_lose(void)
{
    for (int i = 0; i < plain.sent_count; i++)
        answer(plain.numbers[i], OWED_LOST);
    plain.sent_count = 0;
}

static void play_step(void)
{
    int chance = draw(70);
    if (chance < 30)
        play_send();
    else if (chance < 69)
        play_answer_one();
    else
        play_lose();
}

TEST(each_is_done_once_whatever_happens)
{
    random_state = (uint64_t)getpid();
    printf("owed: seed %llu\n", (unsigned long long)random_state);
    memset(&plain, 0, sizeof plain);
    for (int i = 0; i < STEPS; i++) {
        if (plain.count < NAMES && draw(3) == 0)
            push(plain.count, plain.count), plain.count++;
        play_step();
    }
    while (owed.first != NULL)
        play_step();
    ck_assert_int_eq(plain.done, plain.count);
    ck_assert_uint_eq(store.items, 0);
}
