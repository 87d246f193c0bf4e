/* SPDX-License-Identifier: MIT */
#include "../../../server/engine/permits/pool.h"

#include "../../lib/suite/suite.h"
#include "../starve.h"

static struct pools pools;
static struct pool *pool;

static void begin(void)
{
    pools_init(&pools);
    pool = pools_use(&pools, span_of("a"));
    ck_assert_ptr_nonnull(pool);
}

static void end(void)
{
    pools_fini(&pools);
}

static struct slotset one(int slot)
{
    struct slotset set = {{0}};
    slotset_add(&set, slot);
    return set;
}

static void tell(const char *letters)
{
    query_init(&pool->query, 3, (int)strlen(letters), 1);
    for (int i = 0; i < 2; i++)
        query_note_reply(&pool->query, i,
                         &(struct call_reply){.vote = VOTE_DONE,
                                              .pttl_ms = 40,
                                              .slots = span_of(letters)});
}

static void expect_taken(const char *letters)
{
    for (int i = 0; letters[i] != '\0'; i++)
        ck_assert_int_eq(slotset_has(&pool->taken, i), letters[i] == '1');
}

SUITE(pool, .set_up = begin, .tear_down = end);

/* ---- all pools ---------------------------------------------------------- */

TEST(each_name_has_a_pool_of_its_own)
{
    ck_assert_ptr_eq(pools_find(&pools, span_of("a")), pool);
    ck_assert_ptr_null(pools_find(&pools, span_of("b")));
    ck_assert_ptr_eq(pools_use(&pools, span_of("a")), pool);
    ck_assert_int_eq(pool->users, 2);
    ck_assert_ptr_ne(pools_use(&pools, span_of("b")), pool);
}

TEST(what_is_known_of_a_pool_without_users_is_kept)
{
    slotset_add(&pool->taken, 7);
    pools_unuse(&pools, pool);
    ck_assert_ptr_eq(pools_find(&pools, span_of("a")), pool);
    ck_assert_ptr_eq(pools_use(&pools, span_of("a")), pool);
    ck_assert(slotset_has(&pool->taken, 7));
    ck_assert_int_eq(pools.idle_count, 0);
}

TEST(not_of_any_number_of_them)
{
    pools_unuse(&pools, pool);
    for (int i = 0; i < 1000; i++) {
        ck_assert_ptr_nonnull(pools_find(&pools, span_of("a")));
        pools_unuse(&pools, pools_use(&pools, span_of(textf("b%d", i))));
    }
    ck_assert_ptr_null(pools_find(&pools, span_of("a")));
    ck_assert_ptr_nonnull(pools_find(&pools, span_of("b0")));
    ck_assert_int_eq(pools.idle_count, 1000);
}

/* ---- hints -------------------------------------------------------------- */

TEST(a_slot_that_is_tried_is_taken_until_the_try_has_ended)
{
    const struct slotset slots = one(2);
    pool_try(pool, &slots);
    expect_taken("0010");
    pool_note_free(pool, 2); /* by the one before */
    expect_taken("0010");
    pool_note_tried(pool, &slots, true);
    expect_taken("0010");
    pool_note_free(pool, 2);
    expect_taken("0000");
    pool_try(pool, &slots);
    pool_note_tried(pool, &slots, false);
    expect_taken("0000");
}

TEST(a_query_tells_what_is_taken)
{
    slotset_add(&pool->taken, 0);
    slotset_add(&pool->taken, 9);
    tell("0110");
    pool->queried = 5;
    pool_note_query(pool, 1000000);
    expect_taken("0110000001");
    ck_assert_uint_eq(pool->informed, 5);
    ck_assert_int_eq(pool->free_from_us, 1040000);
}

/* The answers may be older than what happened here. */
TEST(what_happened_since_a_query_began_is_newer)
{
    const struct slotset tried = one(0);
    slotset_add(&pool->taken, 1);
    pool_try(pool, &tried);
    pool_note_tried(pool, &tried, true);
    pool_note_free(pool, 1);
    tell("011");
    pool_note_query(pool, 0);
    expect_taken("101");
}

TEST(hints_are_trusted_while_most_of_them_are_right)
{
    ck_assert(pool_is_trusted(pool));
    int wrong = 0;
    while (pool_is_trusted(pool) && wrong++ < 100)
        pool_note_first_try(pool, false);
    ck_assert_int_lt(wrong, 20);
    for (int i = 0; i < 100; i++)
        pool_note_first_try(pool, false);
    int right = 0;
    while (!pool_is_trusted(pool) && right++ < 100)
        pool_note_first_try(pool, true);
    ck_assert_int_lt(right, 20);
}

/* Without it, a server that does not trust its hints would never try again. */
TEST(a_query_shows_whether_hints_were_right)
{
    for (int i = 0; i < 20; i++)
        pool_note_first_try(pool, false);
    for (int i = 0; i < 20; i++) {
        tell("0001");
        pool_note_query(pool, 0);
    }
    ck_assert(pool_is_trusted(pool));
    for (int i = 0; i < 20; i++) {
        pool->taken = (struct slotset){{0}};
        tell("1110");
        pool_note_query(pool, 0);
    }
    ck_assert(!pool_is_trusted(pool));
}

/* ---- news --------------------------------------------------------------- */

TEST(news_have_room_for_the_largest_limit)
{
    pool_want_news(pool, 3);
    ck_assert_int_eq(pool->news_count, 3);
    pool->news[2].number = 7;
    pool_want_news(pool, 2);
    pool_want_news(pool, 5);
    ck_assert_int_eq(pool->news_count, 5);
    ck_assert_int_eq(pool->news[2].number, 7);
    ck_assert_int_eq(pool->news[4].number, 0);
    starve = (struct starve){.is_on = true, .left = 1};
    pool_want_news(pool, 6);
    starve.is_on = false;
    ck_assert_int_eq(pool->news_count, 5);
    pool_drop_news(pool);
    ck_assert_int_eq(pool->news_count, 0);
}

TEST(slots_are_free_from_the_earliest_moment_on)
{
    pool_free_later(pool, 1, 500);
    pool_free_later(pool, 2, 700);
    ck_assert_int_eq(pool->later_us, 500);
    pool_free_later(pool, 3, 400);
    ck_assert_int_eq(pool->later_us, 400);
    ck_assert_int_eq(slotset_count(&pool->later), 3);
    const struct slotset tried = one(2);
    pool_try(pool, &tried);
    ck_assert_int_eq(slotset_count(&pool->later), 2);
}

/* Otherwise the timer, which frees all such slots, would never be done. */
TEST(a_slot_that_is_tried_is_not_free_later)
{
    const struct slotset tried = one(2);
    pool_try(pool, &tried);
    pool_free_later(pool, 2, 500);
    ck_assert_int_eq(slotset_count(&pool->later), 0);
    pool_note_tried(pool, &tried, true);
    pool_free_later(pool, 2, 500);
    ck_assert_int_eq(slotset_count(&pool->later), 1);
}
