
#include "../../../server/node/fifo.h"
#include "../../lib/suite/suite.h"

SUITE(fifo);

TEST(entries_come_out_in_order_while_it_grows)
{
    struct fifo fifo = {0};
    struct fifo_entry entry;
    uint64_t in = 0, out = 0;
    ck_assert_ptr_null(fifo_first(&fifo));
    ck_assert(!fifo_pop(&fifo, &entry));
    for (int round = 1; round < 200; round++) {
        for (int i = 0; i < round; i++)
            ck_assert(fifo_push(&fifo, (struct fifo_entry){.tag = in++}));
        for (int i = 0; i < round - 1; i++) {
            ck_assert_uint_eq(fifo_first(&fifo)->tag, out);
            ck_assert(fifo_pop(&fifo, &entry));
            ck_assert_uint_eq(entry.tag, out++);
        }
    }
    ck_assert_uint_eq(fifo.count, 199);
    while (fifo_pop(&fifo, &entry))
        ck_assert_uint_eq(entry.tag, out++);
    ck_assert_uint_eq(out, in);
    fifo_fini(&fifo);
}

TEST(it_has_a_limit)
{
    struct fifo fifo = {0};
    struct fifo_entry entry = {0};
    for (int i = 0; i < FIFO_MAX; i++)
        ck_assert(fifo_push(&fifo, entry));
    ck_assert(!fifo_push(&fifo, entry));
    ck_assert(fifo_pop(&fifo, &entry));
    ck_assert(fifo_push(&fifo, entry));
    fifo_fini(&fifo);
}

TEST(a_reply_answers_up_to_the_next_first)
{
    static const int sizes[] = {1, 3, 1, 100, 2};
    struct fifo fifo = {0};
    struct fifo_entry entry;
    ck_assert_int_eq(fifo_answered(&fifo), 0);
    for (int i = 0; i < 5; i++)
        for (int n = 0; n < sizes[i]; n++)
            ck_assert(
                fifo_push(&fifo, (struct fifo_entry){.is_first = n == 0}));
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(fifo_answered(&fifo), sizes[i]);
        for (int n = 0; n < sizes[i]; n++)
            ck_assert(fifo_pop(&fifo, &entry));
    }
    fifo_fini(&fifo);
}
