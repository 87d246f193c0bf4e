/* SPDX-License-Identifier: MIT */

#include "../../../server/engine/port/port.h"
#include "../../lib/suite/suite.h"

static const char *const names[] = {"a:1/0", "b:1/0", "c:1/0"};

SUITE(port);

TEST(depends_on_the_set_of_nodes_not_on_its_order)
{
    static const char *const turned[] = {"c:1/0", "a:1/0", "b:1/0"};
    char first[FINGERPRINT_LEN + 1], second[FINGERPRINT_LEN + 1];
    fingerprint_make(first, names, 3, 2);
    fingerprint_make(second, turned, 3, 2);
    ck_assert_uint_eq(strlen(first), FINGERPRINT_LEN);
    ck_assert_str_eq(first, second);
}

static const struct {
    const char *names[3];
    int count, quorum;
} others[] = {
    {{"a:1/0", "b:1/0", "c:2/0"}, 3, 2}, {{"a:1/0", "b:1/0", "c:1/1"}, 3, 2},
    {{"a:1/0", "b:1/0c:1/0", ""}, 3, 2}, {{"a:1/0", "b:1/0", "c:1/0"}, 2, 2},
    {{"a:1/0", "b:1/0", "c:1/0"}, 3, 3},
};

TEST_EACH(story_10_depends_on_nodes_and_quorum, others)
{
    char first[FINGERPRINT_LEN + 1], second[FINGERPRINT_LEN + 1];
    fingerprint_make(first, names, 3, 2);
    fingerprint_make(second, others[_i].names, others[_i].count,
                     others[_i].quorum);
    ck_assert_str_ne(first, second);
}

TEST(stories_37_and_38_each_node_has_a_name_of_its_own)
{
    static const char *const all[] = {"a:1/0", "b:1/0", "a:1/1", "a:1", ""};
    char hashes[5][FINGERPRINT_LEN + 1];
    for (int i = 0; i < 5; i++) {
        fingerprint_of_name(hashes[i], all[i]);
        ck_assert_uint_eq(strlen(hashes[i]), FINGERPRINT_LEN);
        ck_assert_uint_eq(strspn(hashes[i], "0123456789abcdef"),
                          FINGERPRINT_LEN); /* as the script reads it */
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(hashes[i], hashes[j]);
    }
    char again[FINGERPRINT_LEN + 1];
    fingerprint_of_name(again, "a:1/0");
    ck_assert_str_eq(again, hashes[0]);
}
