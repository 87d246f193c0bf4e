#include <stdio.h>

#include "../../../api/access/holdings.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { CROWD = 3000, STEPS = 20000, NAMES = 24 };

static struct holdings *all;
static struct holder holder, other;
static struct holding *claim;

static void set_up(void)
{
    all = holdings_new();
    ck_assert_ptr_nonnull(all);
    holder = (struct holder){.name = "a", .most = 2};
    other = (struct holder){.name = "b", .most = 2};
}

static void tear_down(void)
{
    holdings_free(all);
}

static enum holdings_verdict try_claim(const char *names, int64_t now_us)
{
    return holdings_claim(all, &holder, span_of(names), now_us, &claim);
}

static void hold(const char *names, int64_t now_us, int64_t until_us)
{
    ck_assert_int_eq((int)try_claim(names, now_us), (int)HOLDINGS_CLAIMED);
    holdings_grant(all, claim, until_us);
    holdings_drop(all, claim, false);
}

SUITE(holdings, .set_up = set_up, .tear_down = tear_down);

TEST(no_more_than_the_most_are_held)
{
    hold("x", 0, 100);
    hold("y", 0, 100);
    ck_assert(holdings_is_full(all, &holder, 0));
    ck_assert_int_eq((int)try_claim("z", 0), (int)HOLDINGS_FULL);
    ck_assert_int_eq((int)try_claim("x\ny", 0), (int)HOLDINGS_FULL);
    ck_assert_int_eq(holder.count, 2);
}

TEST(each_holder_has_its_own)
{
    struct holding *its;
    hold("x", 0, 100);
    hold("y", 0, 100);
    ck_assert_int_eq((int)holdings_claim(all, &other, span_of("x"), 0, &its),
                     (int)HOLDINGS_CLAIMED);
    ck_assert_int_eq(other.count, 1);
    holdings_drop(all, its, false);
    holdings_release(all, &other, span_of("x"));
    ck_assert_int_eq(holder.count, 2);
    ck_assert_int_eq(other.count, 0);
}

TEST(what_expires_makes_room)
{
    hold("x", 0, 100);
    hold("y", 0, 200);
    ck_assert(holdings_is_full(all, &holder, 99));
    ck_assert(!holdings_is_full(all, &holder, 100));
    ck_assert_int_eq(holder.count, 1);
    ck_assert(!holdings_is_full(all, &holder, 200));
    ck_assert_int_eq(holder.count, 0);
}

TEST(what_is_released_makes_room)
{
    hold("x", 0, 100);
    holdings_release(all, &holder, span_of("y"));
    ck_assert_int_eq(holder.count, 1);
    holdings_release(all, &holder, span_of("x"));
    ck_assert_int_eq(holder.count, 0);
}

TEST(the_end_moves_only_forward)
{
    hold("x", 0, 100);
    hold("y", 0, 100);
    hold("x", 1, 300);
    hold("x", 2, 50);
    ck_assert(!holdings_is_full(all, &holder, 299));
    ck_assert_int_eq(holder.count, 1);
    ck_assert(!holdings_is_full(all, &holder, 300));
    ck_assert_int_eq(holder.count, 0);
}

TEST(a_repeat_counts_once)
{
    hold("x", 0, 100);
    hold("x", 0, 150);
    ck_assert_int_eq(holder.count, 1);
    hold("y", 0, 100);
    hold("x", 0, 170); /* though it is full */
    ck_assert_int_eq(holder.count, 2);
}

TEST(what_is_under_way_counts)
{
    struct holding *first, *second;
    ck_assert_int_eq((int)try_claim("x", 0), (int)HOLDINGS_CLAIMED);
    first = claim;
    ck_assert_int_eq((int)try_claim("x", 0), (int)HOLDINGS_CLAIMED);
    second = claim;
    ck_assert_int_eq(holder.count, 1);
    holdings_release(all, &holder, span_of("x"));
    ck_assert_int_eq(holder.count, 1);
    holdings_drop(all, first, false);
    ck_assert_int_eq(holder.count, 1);
    holdings_drop(all, second, false);
    ck_assert_int_eq(holder.count, 0);
}

TEST(what_is_undone_is_not_held)
{
    struct holding *waits;
    ck_assert_int_eq((int)try_claim("x", 0), (int)HOLDINGS_CLAIMED);
    waits = claim;
    ck_assert_int_eq((int)try_claim("x", 0), (int)HOLDINGS_CLAIMED);
    holdings_grant(all, claim, 100);
    holdings_drop(all, claim, true);
    ck_assert_int_eq(holder.count, 1);
    holdings_drop(all, waits, true);
    ck_assert_int_eq(holder.count, 0);
}

TEST(a_claim_outlives_what_expires_and_what_is_released)
{
    hold("x", 0, 100);
    ck_assert_int_eq((int)try_claim("x", 0), (int)HOLDINGS_CLAIMED);
    ck_assert(!holdings_is_full(all, &holder, 100));
    ck_assert_int_eq(holder.count, 1);
    holdings_grant(all, claim, 200);
    holdings_release(all, &holder, span_of("x"));
    ck_assert_int_eq(holder.count, 1);
    holdings_drop(all, claim, false);
    ck_assert_int_eq(holder.count, 0);
}

TEST(a_crowd_fits)
{
    char name[16];
    holder.most = CROWD;
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof name, "%d", i);
        hold(name, 0, 1000 + i * 7919 % CROWD);
    }
    ck_assert(holdings_is_full(all, &holder, 999));
    for (int i = 1; i <= CROWD; i++) {
        (void)holdings_is_full(all, &holder, 1000 + i - 1);
        ck_assert_int_eq(holder.count, CROWD - i);
    }
}

/* Beside a model that looks at each name. */
TEST(at_random_it_is_what_a_simple_one_is)
{
    int64_t until_us[NAMES] = {0};
    unsigned seed = 7;
    holder.most = NAMES / 2;
    for (int64_t now_us = 1; now_us < STEPS; now_us++) {
        int at = rand_r(&seed) % NAMES;
        int64_t end_us = now_us + rand_r(&seed) % 40;
        char name[2] = {(char)('a' + at), '\0'};
        int held = 0;
        for (int i = 0; i < NAMES; i++)
            held += until_us[i] > now_us;
        bool is_known = until_us[at] > now_us;
        switch (rand_r(&seed) % 4) {
        case 0:
            holdings_release(all, &holder, span_of(name));
            until_us[at] = 0;
            break;
        case 1:
            ck_assert(holdings_is_full(all, &holder, now_us) ==
                      (held >= holder.most));
            ck_assert_int_eq(holder.count, held);
            break;
        default:
            if (try_claim(name, now_us) == HOLDINGS_FULL) {
                ck_assert(!is_known && held >= holder.most);
                break;
            }
            ck_assert(is_known || held < holder.most);
            holdings_grant(all, claim, end_us);
            holdings_drop(all, claim, false);
            until_us[at] =
                is_known && until_us[at] > end_us ? until_us[at] : end_us;
        }
    }
}

TEST(without_memory_nothing_is_claimed)
{
    char name[16];
    holder.most = CROWD;
    starve.is_on = true;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%d", i);
        for (int left = 1; left <= 2; left++) {
            starve.left = left;
            enum holdings_verdict verdict = try_claim(name, 0);
            ck_assert_int_eq((int)verdict, (int)HOLDINGS_NO_MEMORY);
            ck_assert_int_eq(holder.count, i);
        }
        starve.left = 0;
        ck_assert_int_eq((int)try_claim(name, 0), (int)HOLDINGS_CLAIMED);
        holdings_grant(all, claim, 10 + i);
        holdings_drop(all, claim, false);
    }
    starve.left = 1;
    ck_assert_ptr_null(holdings_new());
    starve.is_on = false;
    ck_assert(!holdings_is_full(all, &holder, 10 + 199));
    ck_assert_int_eq(holder.count, 0);
}
