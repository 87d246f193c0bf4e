/* SPDX-License-Identifier: MIT */
/*
 * Replies to batches; what the parts of a reply mean is check_script.c.
 */

#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"

#define FIELD(type, number, text)                                              \
    {                                                                          \
        SCRIPT_FIELD_##type, number,                                           \
        {                                                                      \
            (text), sizeof(text) - 1                                           \
        }                                                                      \
    }
#define ARRAY(elements) FIELD(ARRAY, elements, "")
#define STRING(text) FIELD(STRING, 0, text)
#define NUMBER(number) FIELD(INTEGER, number, "")

#define TIME NUMBER(1700000000123456)
#define GENERATION NUMBER(41)

SUITE(batch_replies);

TEST(each_call_has_its_part_of_the_reply)
{
    static const struct script_field fields[] = {
        ARRAY(6),
        TIME,
        GENERATION,
        STRING("G..F."),
        ARRAY(3),
        STRING("HELD"),
        NUMBER(7),
        STRING("x"),
        FIELD(ERROR, 0, "OOM no memory"),
        ARRAY(2),
        STRING("STALE"),
        NUMBER(1700000000000009),
    };
    struct batch_reader reader;
    batch_read(&reader, fields, (int)(sizeof fields / sizeof *fields), 5);
    struct call_reply reply = batch_next(&reader, CALL_ACQUIRE);
    ck_assert_int_eq(reply.vote, VOTE_GRANTED);
    ck_assert_int_eq(reply.node_now_us, 1700000000123456);
    ck_assert_int_eq(reply.generation, 41);
    reply = batch_next(&reader, CALL_RELEASE);
    ck_assert_int_eq(reply.vote, VOTE_HELD);
    ck_assert_int_eq(reply.node_now_us, 1700000000123456);
    ck_assert_int_eq(reply.generation, 41);
    ck_assert_int_eq(reply.pttl_ms, 7);
    ck_assert_uint_eq(reply.value.len, 1);
    reply = batch_next(&reader, CALL_EXTEND);
    ck_assert_int_eq(reply.state, STATE_OUT_OF_MEMORY);
    ck_assert_int_eq(batch_next(&reader, CALL_RELEASE).vote, VOTE_FREE);
    reply = batch_next(&reader, CALL_ACQUIRE);
    ck_assert_int_eq(reply.vote, VOTE_STALE);
    ck_assert_int_eq(reply.highest, 1700000000000009);
}

/* Of all calls or of one. */
TEST(letters_or_details_may_be_all_that_there_is)
{
    static const struct script_field letters[] = {ARRAY(3), TIME, GENERATION,
                                                  STRING("DQF")};
    static const struct script_field details[] = {
        ARRAY(5),   TIME,
        GENERATION, STRING(".."),
        ARRAY(2),   STRING("DELETED"),
        NUMBER(3),  FIELD(ERROR, 0, "OOM no memory")};
    struct batch_reader reader;
    batch_read(&reader, letters, 4, 3);
    ck_assert_int_eq(batch_next(&reader, CALL_RELEASE).vote, VOTE_DELETED);
    ck_assert_int_eq(batch_next(&reader, CALL_RELEASE).vote, VOTE_NOT_ADMITTED);
    ck_assert_int_eq(batch_next(&reader, CALL_RELEASE).vote, VOTE_FREE);
    batch_read(&reader, details, 8, 2);
    ck_assert_int_eq(batch_next(&reader, CALL_RELEASE).listeners, 3);
    ck_assert_int_eq(batch_next(&reader, CALL_RELEASE).state,
                     STATE_OUT_OF_MEMORY);
}

/* The others keep theirs. */
TEST(a_letter_that_its_kind_never_has_is_garbage)
{
    static const struct script_field fields[] = {ARRAY(3), TIME, GENERATION,
                                                 STRING("FGF")};
    struct batch_reader reader;
    batch_read(&reader, fields, 4, 3);
    ck_assert_int_eq(batch_next(&reader, CALL_INSPECT).vote, VOTE_FREE);
    ck_assert_int_eq(batch_next(&reader, CALL_INSPECT).vote, VOTE_UNREADABLE);
    ck_assert_int_eq(batch_next(&reader, CALL_INSPECT).vote, VOTE_FREE);
}

/* A dot stands for more than a letter. */
TEST(a_letter_in_place_of_a_detail_is_garbage)
{
    static const struct script_field fields[] = {ARRAY(4), TIME, GENERATION,
                                                 STRING("F."), STRING("F")};
    struct batch_reader reader;
    batch_read(&reader, fields, 5, 2);
    ck_assert_int_eq(batch_next(&reader, CALL_INSPECT).vote, VOTE_FREE);
    ck_assert_int_eq(batch_next(&reader, CALL_INSPECT).vote, VOTE_UNREADABLE);
}

TEST(an_error_of_the_batch_is_that_of_each_call)
{
    static const struct script_field error =
        FIELD(ERROR, 0, "NOSCRIPT No matching script.");
    struct batch_reader reader;
    batch_read(&reader, &error, 1, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(batch_next(&reader, CALL_ACQUIRE).state,
                         STATE_NO_SCRIPT);
}

/* To two calls. */
static const struct {
    struct script_field fields[6];
    int count;
} shapes[] = {
    /* too few letters, too many, none */
    {{ARRAY(3), TIME, GENERATION, STRING("F")}, 4},
    {{ARRAY(3), TIME, GENERATION, STRING("FFF")}, 4},
    {{ARRAY(3), TIME, GENERATION, STRING("")}, 4},
    {{ARRAY(3), TIME, GENERATION, NUMBER(2)}, 4},
    {{ARRAY(3), TIME, GENERATION, FIELD(NIL, 0, "FF")}, 4},
    {{ARRAY(3), TIME, GENERATION, FIELD(ERROR, 0, "FF")}, 4},
    {{ARRAY(3), TIME, GENERATION, ARRAY(2)}, 4},
    {{ARRAY(2), TIME, GENERATION}, 3},
    /* a detail without a dot, a dot without a detail */
    {{ARRAY(4), TIME, GENERATION, STRING("FF"), STRING("F")}, 5},
    {{ARRAY(5), TIME, GENERATION, STRING("F."), STRING("F"), STRING("F")}, 6},
    {{ARRAY(3), TIME, GENERATION, STRING("F.")}, 4},
    {{ARRAY(4), TIME, GENERATION, STRING(".."), STRING("F")}, 5},
    /* a dot too many */
    {{ARRAY(4), TIME, GENERATION, STRING("FF."), STRING("F")}, 5},
    /* no time, no generation */
    {{ARRAY(3), NUMBER(0), GENERATION, STRING("FF")}, 4},
    {{ARRAY(3), NUMBER(INT64_C(1) << 53), GENERATION, STRING("FF")}, 4},
    {{ARRAY(3), STRING("1700000000123456"), GENERATION, STRING("FF")}, 4},
    {{ARRAY(3), TIME, STRING("0"), STRING("FF")}, 4},
    {{ARRAY(3), TIME, NUMBER(-1), STRING("FF")}, 4},
    {{ARRAY(3), TIME, NUMBER((INT64_C(1) << 53) + 1), STRING("FF")}, 4},
    {{ARRAY(2), TIME, STRING("FF")}, 3},
    {{ARRAY(1), TIME}, 2},
    /* of an older script */
    {{ARRAY(4), TIME, GENERATION, STRING("FREE"), STRING("FREE")}, 5},
    /* no reply of a script */
    {{ARRAY(0)}, 1},
    {{STRING("FF")}, 1},
    {{FIELD(NIL, 0, "")}, 1},
    {{NUMBER(3), TIME, GENERATION, STRING("FF")}, 4},
    {{ARRAY(3), TIME, GENERATION}, 1}, /* what is cut off is not read */
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

TEST_RANGE(a_reply_of_another_shape_is_garbage_for_each_call, 0, SHAPES)
{
    struct batch_reader reader;
    batch_read(&reader, shapes[_i].fields, shapes[_i].count, 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(batch_next(&reader, CALL_INSPECT).vote,
                         VOTE_UNREADABLE);
}
