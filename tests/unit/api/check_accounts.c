/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../../../api/access/accounts.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "authtext.h"

#define A "a " AUTHTEXT_SECRET " lock prefix=* locks=5\n"
#define A_LESS "a " AUTHTEXT_SECRET " lock prefix=* locks=1\n"
#define B "b " AUTHTEXT_OTHER " lock prefix=* rate=2\n"

static struct accounts all;
static struct holdings *holdings;

static struct identities *parse(const char *text)
{
    char error[IDENTITIES_ERROR_MAX];
    struct identities *identities = identities_parse(span_of(text), error);
    ck_assert_msg(identities != NULL, "%s", error);
    return identities;
}

static void set(const char *text)
{
    ck_assert(accounts_set(&all, parse(text), 0));
}

static void set_up(void)
{
    all = (struct accounts){.list = NULL};
    holdings = holdings_new();
    set(A B);
}

static void tear_down(void)
{
    holdings_free(holdings);
    accounts_fini(&all);
}

static void hold(struct account *it, const char *name)
{
    struct holding *reservation;
    const struct holding_lock lock = {.names = span_of(name)};
    ck_assert_int_eq(
        (int)holdings_reserve(holdings, it, &lock, 0, &reservation),
        (int)HOLDINGS_RESERVED);
    holdings_grant(holdings, reservation, 1, 100);
    holdings_drop(holdings, reservation);
}

SUITE(accounts, .set_up = set_up, .tear_down = tear_down);

TEST(a_reload_keeps_what_was_done)
{
    const struct account *a = all.list[0], *b = all.list[1];
    all.list[1]->results[ACCOUNT_LIMITED] = 7;
    all.list[1]->requests.level = 5;
    hold(all.list[0], "x");
    set(B A_LESS);
    ck_assert_ptr_eq(all.list[0], a);
    ck_assert_ptr_eq(all.list[1], b);
    ck_assert_int_eq(b->requests.level, 5);
    ck_assert_uint_eq(b->results[ACCOUNT_LIMITED], 7);
    ck_assert_int_eq(a->locks, 1);
    ck_assert_int_eq(a->locks_most, 1);
    ck_assert_ptr_eq(a->identity, &all.identities->list[0]);
}

/* By it, the engine tells apart what they have asked for. */
TEST(a_number_stays_the_same_though_others_come_and_go)
{
    int a = all.list[0]->number, b = all.list[1]->number;
    ck_assert_int_gt(a, 0);
    ck_assert_int_ne(a, b);
    set(B);
    ck_assert_int_eq(all.list[0]->number, b);
    for (int i = 0; i < IDENTITIES_MAX - 2;
         i++) { /* others have had them all */
        set(B "c " AUTHTEXT_SECRET " lock prefix=*\n");
        ck_assert_int_eq(all.list[0]->number, b);
        ck_assert_int_ne(all.list[1]->number, a);
        ck_assert_int_ne(all.list[1]->number, b);
        set(B);
    }
    set(A B);
    ck_assert_int_eq(all.list[0]->number, a);
    ck_assert_int_eq(all.list[1]->number, b);
    ck_assert_int_le(at_least(a, b), IDENTITIES_MAX);
}

TEST(who_comes_back_to_its_locks_has_a_number_of_its_own)
{
    int a = all.list[0]->number;
    hold(all.list[0], "x");
    set(B);
    all.last_number = 0;
    set(B "c " AUTHTEXT_SECRET " lock prefix=*\n");
    ck_assert_int_eq(all.list[1]->number, a);
    set(B "c " AUTHTEXT_SECRET " lock prefix=*\n"
          "a " AUTHTEXT_THIRD " lock prefix=*\n");
    ck_assert_str_eq(all.list[0]->name, "a");
    ck_assert_int_eq(all.list[0]->locks, 1);
    ck_assert_int_ne(all.list[0]->number, a);
    ck_assert_int_ne(all.list[0]->number, all.list[1]->number);
    ck_assert_int_eq(all.list[2]->number, a);
}

TEST(who_is_removed_and_holds_locks_is_kept)
{
    struct account *a = all.list[0];
    hold(a, "x");
    set(B);
    ck_assert_ptr_eq(all.gone, a);
    ck_assert_ptr_null(a->identity);
    set(B);
    ck_assert_ptr_eq(all.gone, a);
    set(A B);
    ck_assert_ptr_null(all.gone);
    ck_assert_ptr_eq(all.list[0], a);
    ck_assert_int_eq(a->locks, 1);
    set(B);
    ck_assert(!holdings_is_full(holdings, a, 100));
    set(B);
    ck_assert_ptr_null(all.gone);
}

TEST(without_memory_nothing_changes)
{
    struct account *a = all.list[0];
    struct identities *three =
        parse(A B "c cert:dns:x read prefix=*\nd cert:dns:y read prefix=*\n");
    hold(a, "x");
    set(B);
    starve.is_on = true;
    for (int left = 1; left <= 3; left++) {
        starve.left = left;
        ck_assert(!accounts_set(&all, three, 0));
        ck_assert_ptr_eq(all.gone, a);
        ck_assert_int_eq(all.identities->count, 1);
    }
    starve.is_on = false;
    ck_assert(accounts_set(&all, three, 0));
    ck_assert_ptr_eq(all.list[0], a);
}

/* ---- token buckets ------------------------------------------------------- */

static struct bucket bucket;
static int64_t wait_us;

/* How many it gives in a row at this moment. */
static int count(int64_t rate, int64_t burst, int64_t now_us)
{
    int taken = 0;
    while (bucket_take(&bucket, rate, burst, 1, now_us, &wait_us))
        taken++;
    return taken;
}

GROUP(buckets);

TEST(it_gives_its_burst_and_then_its_rate)
{
    bucket_init(&bucket, 20, 1000);
    ck_assert_int_eq(count(10, 20, 1000), 20);
    ck_assert_int_eq(wait_us, 100000);
    ck_assert_int_eq(count(10, 20, 1000 + 99999), 0);
    ck_assert_int_eq(wait_us, 1);
    ck_assert_int_eq(count(10, 20, 1000 + 100000), 1);
    ck_assert_int_eq(count(10, 20, 1000 + 1100000), 10);
}

TEST(it_never_holds_more_than_its_burst)
{
    bucket_init(&bucket, 3, 0);
    ck_assert_int_eq(count(IDENTITY_RATE_MAX, 3, INT64_MAX / 2), 3);
    ck_assert_int_eq(count(1, 3, INT64_MAX / 2 + 3000000), 3);
    ck_assert_int_eq(count(1, 3, INT64_MAX / 2 + 6000001), 3);
}

TEST(the_largest_numbers_fit)
{
    bucket_init(&bucket, IDENTITY_RATE_MAX, 0);
    ck_assert_int_eq(count(IDENTITY_RATE_MAX, IDENTITY_RATE_MAX, 0),
                     IDENTITY_RATE_MAX);
    ck_assert_int_eq(wait_us, 1);
    ck_assert_int_eq(count(IDENTITY_RATE_MAX, IDENTITY_RATE_MAX, 999999),
                     999999);
    ck_assert_int_eq(count(1, IDENTITY_RATE_MAX, INT64_MAX), IDENTITY_RATE_MAX);
}

TEST(what_a_reload_takes_away_is_gone)
{
    bucket_init(&bucket, 100, 0);
    ck_assert_int_eq(count(10, 5, 0), 5);
    ck_assert_int_eq(count(10, 100, 1000000), 10);
}

TEST(time_that_stands_still_gives_nothing)
{
    bucket_init(&bucket, 1, 5000);
    ck_assert_int_eq(count(1, 1, 4000), 1);
    ck_assert_int_eq(count(1, 1, 5000), 0);
    ck_assert_int_eq(wait_us, 1000000);
}

/* Taking as often as possible gives the rate, whatever it is. */
TEST(over_time_it_gives_its_rate)
{
    static const int64_t rates[] = {1, 3, 7, 999, 1001, 999999};
    for (size_t i = 0; i < COUNT(rates); i++) {
        int64_t taken = 0;
        bucket_init(&bucket, 1, 0);
        for (int64_t now_us = 0; now_us <= 10000000; now_us += 11)
            taken += bucket_take(&bucket, rates[i], 1000, 1, now_us, &wait_us);
        int64_t most = rates[i] * 10 + 1;
        if (most > 10000000 / 11 + 1)
            most = 10000000 / 11 + 1;
        ck_assert_int_ge(taken, most - 1);
        ck_assert_int_le(taken, most);
    }
}
