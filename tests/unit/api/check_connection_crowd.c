
#include "../../../api/http/connection.h"
#include "../../lib/suite/suite.h"

SUITE(connection_crowd);

TEST(a_few_are_no_crowd)
{
    struct crowd crowd = {0};
    ck_assert(!crowd_note(&crowd, 99));
    ck_assert(!crowd_note(&crowd, 10));
    ck_assert(!crowd_note(&crowd, 0));
    ck_assert(!crowd_note(&crowd, 0));
}

TEST(a_hundred_are_one_when_half_have_left)
{
    struct crowd crowd = {0};
    ck_assert(!crowd_note(&crowd, 60));
    ck_assert(!crowd_note(&crowd, 100));
    ck_assert(!crowd_note(&crowd, 51));
    ck_assert(crowd_note(&crowd, 50));
    ck_assert(crowd_note(&crowd, 10));
}

TEST(the_rest_that_stays_is_looked_at_once_more)
{
    struct crowd crowd = {0};
    ck_assert(!crowd_note(&crowd, 300));
    ck_assert(crowd_note(&crowd, 20));
    ck_assert(crowd_note(&crowd, 20));
    ck_assert(!crowd_note(&crowd, 20));
    ck_assert_uint_eq(crowd.most, 20);
    ck_assert(!crowd_note(&crowd, 0));
    ck_assert(!crowd_note(&crowd, 0));
    ck_assert_uint_eq(crowd.most, 0);
}

TEST(a_crowd_that_stays_keeps_its_memory)
{
    struct crowd crowd = {0};
    for (int i = 0; i < 5; i++)
        ck_assert(!crowd_note(&crowd, 300));
    ck_assert(!crowd_note(&crowd, 200));
    ck_assert(!crowd_note(&crowd, 200));
    ck_assert(crowd_note(&crowd, 150));
}
