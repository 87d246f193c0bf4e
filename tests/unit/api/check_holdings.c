/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../../../api/access/accounts.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { CROWD = 3000, STEPS = 40000 };

static struct holdings *all;
static struct account holder, other;
static struct holding *reservation;

static void set_up(void)
{
    all = holdings_new();
    ck_assert_ptr_nonnull(all);
    holder = (struct account){.name = "a", .locks_most = 2};
    other = (struct account){.name = "b", .locks_most = 2};
}

static void tear_down(void)
{
    holdings_free(all);
}

static enum holdings_verdict try_reserve(const char *names, int64_t now_us)
{
    const struct holding_lock lock = {.names = span_of(names)};
    return holdings_reserve(all, &holder, &lock, now_us, &reservation);
}

static struct holding *reserve_lock(struct account *its,
                                    const struct holding_lock *lock,
                                    int64_t now_us)
{
    struct holding *reserved;
    ck_assert_int_eq(holdings_reserve(all, its, lock, now_us, &reserved),
                     HOLDINGS_RESERVED);
    return reserved;
}

static struct holding *reserve_x(void)
{
    const struct holding_lock lock = {.names = span_of("x")};
    return reserve_lock(&holder, &lock, 0);
}

static void grant(struct holding *reserved, int64_t number, int64_t until_us)
{
    holdings_grant(all, reserved, number, until_us);
    holdings_drop(all, reserved);
}

static void hold(const char *names, int64_t now_us, int64_t until_us)
{
    const struct holding_lock lock = {.names = span_of(names)};
    grant(reserve_lock(&holder, &lock, now_us), 1, until_us);
}

/* Without a number: with a high one. */
static void release_of(const struct account *its,
                       const struct holding_lock *lock)
{
    struct holding *known = holdings_reserve_known(all, its, lock);
    if (known == NULL)
        return;
    holdings_release(all, known, lock->number != 0 ? lock->number : 9);
    holdings_drop(all, known);
}

static void release(const char *names)
{
    release_of(&holder, &(struct holding_lock){.names = span_of(names)});
}

SUITE(holdings, .set_up = set_up, .tear_down = tear_down);

TEST(each_holder_has_its_own)
{
    const struct holding_lock x = {.names = span_of("x")};
    hold("x", 0, 100);
    hold("y", 0, 100);
    struct holding *its = reserve_lock(&other, &x, 0);
    ck_assert_int_eq(other.locks, 1);
    holdings_drop(all, its);
    release_of(&other, &x);
    ck_assert_int_eq(holder.locks, 2);
    ck_assert_int_eq(other.locks, 0);
}

TEST(what_is_under_way_counts)
{
    struct holding *first = reserve_x(), *second = reserve_x();
    ck_assert_int_eq(holder.locks, 1);
    release("x");
    ck_assert_int_eq(holder.locks, 1);
    holdings_drop(all, first);
    ck_assert_int_eq(holder.locks, 1);
    holdings_drop(all, second);
    ck_assert_int_eq(holder.locks, 0);
}

TEST(a_reservation_outlives_what_expires_and_what_is_released)
{
    hold("x", 0, 100);
    struct holding *reserved = reserve_x();
    ck_assert(!holdings_is_full(all, &holder, 100));
    ck_assert_int_eq(holder.locks, 1);
    holdings_grant(all, reserved, 1, 200);
    release("x");
    ck_assert_int_eq(holder.locks, 1);
    holdings_drop(all, reserved);
    ck_assert_int_eq(holder.locks, 0);
}

/* ---- readers ------------------------------------------------------------ */

/* Of "x"; reader NULL: a writer. */
static struct holding_lock lock_of(const char *reader, int64_t number)
{
    return (struct holding_lock){
        .names = span_of("x"),
        .reader = span_of(reader != NULL ? reader : ""),
        .number = number,
    };
}

static void read_x(const char *reader, int64_t number, int64_t until_us)
{
    const struct holding_lock lock = lock_of(reader, number);
    grant(reserve_lock(&holder, &lock, 0), number, until_us);
}

/* The lock that is granted then is not the one that was asked for. */
static void move(const struct holding_lock *asked,
                 const struct holding_lock *moved, int64_t until_us)
{
    reservation = holdings_move(all, reserve_lock(&holder, asked, 0), moved);
    ck_assert_ptr_nonnull(reservation);
    grant(reservation, moved->number, until_us);
}

static void expect_full(const char *reader)
{
    const struct holding_lock lock = lock_of(reader, 99);
    ck_assert_int_eq(holdings_reserve(all, &holder, &lock, 0, &reservation),
                     HOLDINGS_FULL);
}

/* The writer's token, with which a downgrade is asked for. */
static struct holding_lock either(const char *reader, int64_t number)
{
    struct holding_lock lock = lock_of(reader, number);
    lock.may_be_either = true;
    return lock;
}

TEST(a_downgraded_lock_is_one_of_both)
{
    const struct holding_lock lock = either("r", 5), shared = lock_of("r", 5);
    read_x(NULL, 5, 100);
    read_x("s", 6, 100);          /* full */
    for (int i = 0; i < 2; i++) { /* and again, as the answer was lost */
        move(&lock, &shared, 100);
        ck_assert_int_eq(holder.locks, 2);
    }
    expect_full(NULL);
    release_of(&holder, &lock); /* in either form */
    ck_assert_int_eq(holder.locks, 1);
    read_x(NULL, 7, 100);
    ck_assert_int_eq(holder.locks, 2);
}

/* Its release is told after the next grant. */
TEST(a_release_ends_no_later_grant)
{
    const struct holding_lock earlier = lock_of(NULL, 9);
    const struct holding_lock latest = lock_of(NULL, 10);
    hold("x", 0, 100);
    read_x(NULL, 10, 100);
    release_of(&holder, &earlier);
    ck_assert_int_eq(holder.locks, 1);
    release_of(&holder, &latest);
    ck_assert_int_eq(holder.locks, 0);
}

TEST(a_lock_that_another_server_shared_is_known_by_its_number)
{
    const struct holding_lock shared = lock_of("r", 5);
    read_x(NULL, 5, 100);
    read_x("s", 6, 100);
    expect_full("t"); /* of another number */
    move(&shared, &shared, 100);
    ck_assert_int_eq(holder.locks, 2);
}

/* A downgrade keeps the time that the writer was given. */
TEST(a_downgraded_lock_ends_no_earlier)
{
    const struct holding_lock lock = either("r", 5), shared = lock_of("r", 5);
    read_x(NULL, 5, 100);
    move(&lock, &shared, 50);
    holdings_expire(all, 99);
    ck_assert_int_eq(holder.locks, 1);
    holdings_expire(all, 100);
    ck_assert_int_eq(holder.locks, 0);
}

/* The limit does not matter any more: it is granted. */
TEST(what_is_moved_counts_whatever_is_held)
{
    const struct holding_lock shared = lock_of("r", 5);
    struct holding *moves = reserve_x(), *waits = reserve_x();
    holder.locks_most = 1;
    grant(holdings_move(all, moves, &shared), 5, 100);
    ck_assert_int_eq(holder.locks, 2);
    holdings_drop(all, waits);
    ck_assert_int_eq(holder.locks, 1);
}

static void hold_as(struct account *its, const char *names, const char *reader,
                    int64_t number)
{
    const struct holding_lock lock = {
        .names = span_of(names), .reader = span_of(reader), .number = number};
    grant(reserve_lock(its, &lock, 0), number, 100 + number);
}

TEST(what_is_forced_counts_for_nobody)
{
    holder.locks_most = other.locks_most = 9;
    hold_as(&holder, "x", "r", 1);
    hold_as(&other, "x", "s", 2);
    hold_as(&other, "x", "t", 3);
    hold_as(&holder, "y", "u", 3);
    hold_as(&other, "z", "", 4);
    holdings_force(all, span_of("x"), 3);
    ck_assert_int_eq(holder.locks, 2);
    ck_assert_int_eq(other.locks, 2);
    holdings_force(all, span_of("z"), 0); /* there are no readers */
    holdings_force(all, span_of("x"), 0);
    ck_assert_int_eq(holder.locks, 1);
    ck_assert_int_eq(other.locks, 1);
    holdings_expire(all, 103); /* y's: the heap is still one */
    ck_assert_int_eq(holder.locks, 0);
    holdings_force(all, span_of("z"), 4);
    ck_assert_int_eq(other.locks, 0);
}

TEST(what_is_forced_part_by_part_counts_until_the_last)
{
    hold_as(&holder, "x\ny\nz", "", 1);
    hold_as(&holder, "x\ny", "r", 2);
    holdings_force(all, span_of("y"), 1);
    holdings_force(all, span_of("x\nxx"), 1);
    holdings_force(all, span_of("y"), 1); /* again */
    ck_assert_int_eq(holder.locks, 2);
    holdings_force(all, span_of("z"), 1);
    ck_assert_int_eq(holder.locks, 1);
    holdings_force(all, span_of("x"), 0);
    ck_assert_int_eq(holder.locks, 1);
    holdings_force(all, span_of("y"), 0);
    ck_assert_int_eq(holder.locks, 0);
}

/* All of it. */
TEST(what_was_forced_in_part_is_granted_anew)
{
    hold_as(&holder, "x\ny", "", 1);
    holdings_force(all, span_of("x"), 1);
    hold_as(&holder, "x\ny", "", 2);
    holdings_force(all, span_of("y"), 2);
    ck_assert_int_eq(holder.locks, 1);
    holdings_force(all, span_of("x"), 2);
    ck_assert_int_eq(holder.locks, 0);
}

/* Reservations outlive it. */
TEST(what_is_forced_may_be_asked_for)
{
    read_x(NULL, 1, 100);
    struct holding *reserved = reserve_x();
    holdings_force(all, span_of("x"), 1);
    ck_assert_int_eq(holder.locks, 1);
    holdings_drop(all, reserved);
    ck_assert_int_eq(holder.locks, 0);
}

/* ---- at random, with readers -------------------------------------------- */

enum { READERS = 4, LOCKS = 6 * READERS };

/* What a simple model knows of one lock; the writer is that of READERS. */
static struct {
    int64_t until_us, number;
} known[6][READERS + 1];

static struct holding_lock drawn(int name, int reader, char text[2][2])
{
    text[0][0] = (char)('a' + name);
    text[0][1] = text[1][0] = text[1][1] = '\0';
    if (reader < READERS)
        text[1][0] = (char)('r' + reader);
    return (struct holding_lock){.names = span_of(text[0]),
                                 .reader = span_of(text[1])};
}

static int count_known(int64_t now_us)
{
    int count = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= READERS; j++)
            count += known[i][j].until_us > now_us;
    return count;
}

static void forget(int name, int reader, int64_t number)
{
    for (int j = 0; j <= READERS; j++)
        if (reader >= 0   ? j == reader && known[name][j].number <= number
            : number != 0 ? known[name][j].number == number
                          : j < READERS)
            known[name][j].until_us = 0;
}

/* The writer's lock becomes that of a reader. */
static void downgrade(int name, int reader, int64_t now_us)
{
    char text[2][2];
    struct holding_lock lock = drawn(name, reader, text);
    lock.may_be_either = true;
    lock.number = known[name][READERS].number;
    if (known[name][READERS].until_us <= now_us ||
        known[name][reader].until_us > now_us)
        return;
    reservation =
        holdings_move(all, reserve_lock(&holder, &lock, now_us), &lock);
    grant(reservation, lock.number, known[name][READERS].until_us);
    known[name][reader] = known[name][READERS];
    known[name][READERS].until_us = 0;
}

TEST(at_random_readers_are_what_a_simple_model_says)
{
    unsigned seed = 11;
    holder.locks_most = LOCKS / 2;
    for (int64_t now_us = 1; now_us < STEPS; now_us++) {
        char text[2][2];
        int name = rand_r(&seed) % 6, reader = rand_r(&seed) % (READERS + 1);
        struct holding_lock lock = drawn(name, reader, text);
        int64_t end_us = now_us + rand_r(&seed) % 60;
        int64_t number = known[name][reader].number;
        bool is_known = known[name][reader].until_us > now_us;
        holdings_expire(all, now_us);
        ck_assert_int_eq(holder.locks, count_known(now_us));
        switch (rand_r(&seed) % 8) {
        case 0:
            release_of(&holder, &lock);
            forget(name, reader, 9);
            lock.number = number;
            release_of(&holder, &lock);
            forget(name, reader, number);
            break;
        case 1:
            holdings_force(all, lock.names, number);
            forget(name, -1, number);
            break;
        case 2:
            downgrade(name, reader % READERS, now_us);
            break;
        default:
            if (holdings_reserve(all, &holder, &lock, now_us, &reservation) ==
                HOLDINGS_FULL) {
                ck_assert(!is_known && holder.locks >= holder.locks_most);
                break;
            }
            ck_assert(is_known || count_known(now_us) < holder.locks_most);
            number = now_us;
            grant(reservation, number, end_us);
            known[name][reader].number = number;
            if (!is_known || known[name][reader].until_us < end_us)
                known[name][reader].until_us = end_us;
        }
    }
}

TEST(without_memory_nothing_is_reserved)
{
    holder.locks_most = CROWD;
    starve.is_on = true;
    for (int i = 0; i < 200; i++) {
        const char *name = textf("%d", i);
        for (int left = 1; left <= 2; left++) {
            starve.left = left;
            enum holdings_verdict verdict = try_reserve(name, 0);
            ck_assert_int_eq((int)verdict, HOLDINGS_NO_MEMORY);
            ck_assert_int_eq(holder.locks, i);
        }
        starve.left = 0;
        ck_assert_int_eq(try_reserve(name, 0), HOLDINGS_RESERVED);
        holdings_grant(all, reservation, 1, 10 + i);
        holdings_drop(all, reservation);
    }
    const struct holding_lock reader = lock_of("r", 5);
    ck_assert_int_eq(try_reserve("x", 0), HOLDINGS_RESERVED);
    starve.left = 1;
    ck_assert_ptr_null(holdings_move(all, reservation, &reader));
    ck_assert_int_eq(holder.locks, 200);
    starve.left = 1;
    ck_assert_ptr_null(holdings_new());
    starve.is_on = false;
    ck_assert(!holdings_is_full(all, &holder, 10 + 199));
    ck_assert_int_eq(holder.locks, 0);
}
