/* SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../../api/message/problem.h"
#include "../../lib/jsonat/jsonat.h"
#include "../../lib/suite/suite.h"
#include "../play.h"

static struct http_response response;
static const struct http_request request = {.id = "r"};
static const struct http_call call = {.request = &request,
                                      .response = &response};

static void set_up(void)
{
    http_response_init(&response);
}

static void tear_down(void)
{
    free(response.body);
}

/* The body as text, which must be what is expected and end with a newline. */
static void expect_body(const char *expected)
{
    ck_assert_ptr_nonnull(response.body);
    ck_assert_str_eq(response.content_type, "application/problem+json");
    ck_assert_uint_eq(response.body_len, strlen(response.body));
    ck_assert_str_eq(response.body, expected);
}

SUITE(problem, .set_up = set_up, .tear_down = tear_down);

TEST(plain_problem_has_the_standard_members)
{
    problem_respond_plain(&call, PROBLEM_NOT_FOUND, "no \"such\" path");
    ck_assert_int_eq(response.status, 404);
    ck_assert_str_eq(response.code, "not_found");
    ck_assert_int_eq(response.retry_after_ms, 0);
    expect_body("{\"type\":\"urn:redlockd:problem:not_found\","
                "\"title\":\"No such path\",\"status\":404,"
                "\"code\":\"not_found\",\"detail\":\"no \\\"such\\\" path\","
                "\"request_id\":\"r\"}\n");
}

TEST(overloaded_tells_when_to_try_again)
{
    problem_respond_overloaded(&call, "nothing was done");
    ck_assert_int_eq(response.status, 503);
    ck_assert_str_eq(response.code, "overloaded");
    ck_assert(response.retry_after_ms >= 1 && response.retry_after_ms <= 1000);
    ck_assert_has(response.body,
                  textf("\"request_id\":\"r\",\"retry_after_ms\":%d}\n",
                        (int)response.retry_after_ms));
}

/* A vote that speaks of the node's state has the state's own reason. */
TEST(votes_are_told_by_node)
{
    struct engine_result result = {.total = 3,
                                   .votes = {{.vote = VOTE_UNANSWERED},
                                             {.vote = VOTE_GRANTED},
                                             {VOTE_UNFIT, STATE_QUARANTINED}}};
    play_begin();
    for (int i = 0; i < 3; i++) /* too few others can be asked */
        play_lose_memory(i);
    struct problem problem = {.code = PROBLEM_NO_QUORUM,
                              .detail = "d",
                              .votes = &result,
                              .engine = play.engine};
    problem_respond(&call, &problem);
    json_t *root = json_loads(response.body, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_at(root, "nodes")), 3);
    ck_assert_str_eq(json_string_value(json_at(root, "nodes.0.node")), "a");
    ck_assert_str_eq(json_string_value(json_at(root, "nodes.0.vote")),
                     "silent");
    ck_assert_has(json_string_value(json_at(root, "nodes.0.detail")),
                  "the node timeout");
    ck_assert_str_eq(json_string_value(json_at(root, "nodes.2.vote")),
                     "quarantined");
    ck_assert_has(json_string_value(json_at(root, "nodes.2.detail")),
                  "votes again in 67 s");
    json_decref(root);
    play_end();
}

/* A text is cut between characters, or the problem could not be rendered. */
TEST_RANGE(long_texts_are_cut_between_characters, 0, 4)
{
    static const char *const units[] = {"x", "\xc3\xa9", "\xe2\x82\xac",
                                        "\xf0\x9f\x94\x92"};
    for (int shift = 0; shift < 4; shift++) {
        struct faults errors = {.count = 0};
        char text[1000] = "";
        for (int i = 0; i < shift; i++)
            strcat(text, "y");
        while (strlen(text) + 5 < sizeof text)
            strcat(text, units[_i]);
        faults_add(&errors, text, "%s", text);
        struct problem problem = {.code = PROBLEM_INVALID_REQUEST,
                                  .detail = errors.list[0].detail,
                                  .errors = &errors};
        problem_respond(&call, &problem);
        ck_assert_ptr_nonnull(response.body);
        ck_assert_has(response.body,
                      "\"errors\":[{\"in\":\"body\",\"pointer\"");
        free(response.body);
        response.body = NULL;
    }
}

/* ---- when to try again --------------------------------------------------- */

enum { DRAWS = 20000 };

/* What the draws of a call have been. */
static int64_t least, most, sum;

static void note(int64_t ms)
{
    if (sum == 0 || ms < least)
        least = ms;
    if (ms > most)
        most = ms;
    sum += ms;
}

/* All over the range, and evenly. */
static void expect_range(int64_t range_ms)
{
    ck_assert_int_ge(least, 1);
    ck_assert_int_le(least, 1 + range_ms / 20);
    ck_assert_int_le(most, range_ms);
    ck_assert_int_ge(most, range_ms - range_ms / 20);
    ck_assert_int_ge(sum / DRAWS, range_ms * 9 / 20);
    ck_assert_int_le(sum / DRAWS, range_ms * 11 / 20 + 1);
    least = most = sum = 0;
}

GROUP(retries);

static const struct {
    int64_t held_ms, remaining_ms, range_ms;
} locks[] = {
    {600, 30000, 600},    /* for as long as it has been held */
    {30000, 400, 400},    /* or will be at most */
    {50000, 50000, 1000}, /* nobody waits longer than a second */
    {-1, -1, 1000},       /* another library's, without end */
    {-1, 700, 700},
    {2, 30000, 40}, /* not so often that asking is what keeps it busy */
    {500, 0, 40},
};

TEST_EACH(a_held_lock_is_asked_for_in_a_part_of_what_is_known, locks)
{
    for (int i = 0; i < DRAWS; i++)
        note(retry_held_ms(locks[_i].held_ms, locks[_i].remaining_ms));
    expect_range(locks[_i].range_ms);
}

TEST(an_extension_is_tried_again_within_its_validity)
{
    for (int i = 0; i < DRAWS; i++)
        note(retry_extend_ms(3000));
    expect_range(300);
    for (int i = 0; i < DRAWS; i++)
        note(retry_extend_ms(30000));
    expect_range(1000);
    ck_assert_int_eq(retry_extend_ms(1), 1);
    ck_assert_int_eq(retry_extend_ms(10), 1);
    for (int i = 0; i < DRAWS; i++)
        note(retry_extend_ms(20));
    ck_assert_int_eq(least, 1);
    ck_assert_int_eq(most, 2);
}
