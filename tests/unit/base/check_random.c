#include <string.h>

#include "../../../server/base/random.h"
#include "../../lib/suite/suite.h"

enum { GUARD = 0x5a, LONG = 2000, PIECES = 500, PIECE = 20 };

SUITE(random);

/* Whatever is left of the buffer in between. */
TEST(as_many_bytes_are_filled_as_were_asked_for)
{
    static unsigned char bytes[LONG + 1];
    for (size_t len = 0; len <= LONG; len += 37) {
        memset(bytes, GUARD, sizeof bytes);
        random_fill(bytes, len);
        for (size_t i = len; i < sizeof bytes; i++)
            ck_assert_msg(bytes[i] == GUARD, "%zu of %zu", i, len);
        size_t same = 0, empty = 0;
        for (size_t i = 0; i < len; i++) {
            same += bytes[i] == GUARD;
            empty += bytes[i] == 0;
        }
        /* one in 256 by chance */
        ck_assert_msg(same <= 20 + len / 64, "%zu of %zu", same, len);
        ck_assert_msg(empty <= 20 + len / 64, "%zu of %zu", empty, len);
    }
}

TEST(no_token_is_like_another)
{
    static unsigned char pieces[PIECES][PIECE];
    for (int i = 0; i < PIECES; i++)
        random_fill(pieces[i], PIECE);
    for (int i = 0; i < PIECES; i++)
        for (int j = 0; j < i; j++)
            ck_assert(memcmp(pieces[i], pieces[j], PIECE) != 0);
}
