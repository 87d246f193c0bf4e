/* SPDX-License-Identifier: MIT */
/*
 * What is refused before the engine is asked, and what is taken.
 */

#include "../../lib/suite/suite.h"
#include "ask.h"

#define OTHER_TOKEN "1795221642000000.00112233445566778899aabbccddeeff01234567"
#define IN_BODY "{'token':'" ASK_TOKEN "'}"

static const struct {
    const char *method, *target, *body;
    const char *type;  /* NULL: application/json */
    const char *token; /* X-Lock-Token */
    int status;        /* 0: it is taken */
    const char *pointer;
} refused[] = {
    {"POST", "/locks", "{}", "text/plain", NULL, 415, NULL},
    {"POST", "/locks", "{'resource':'a','ttl_ms':60001}", NULL, NULL, 400,
     "/ttl_ms"},
    {"POST", "/locks", "{'resource':'a','wait_ms':45000}", NULL, NULL, 0, NULL},
    {"POST", "/locks", "{'resource':'a'}", NULL, "", 0, NULL},
    {"POST", "/locks", "{'resource':'a','ttl_ms':60000}", NULL, NULL, 0, NULL},
    {"PUT", "/locks/a/extend", "{}", NULL, NULL, 400, "/token"},
    {"PUT", "/locks/a/extend", "{}", "text/plain", ASK_TOKEN, 415, NULL},
    {"PUT", "/locks/a/extend", "{'resource':'a'}", NULL, ASK_TOKEN, 400,
     "/resource"},
    {"PUT", "/locks/a/extend", NULL, NULL, "", 400, "/token"},
    {"PUT", "/locks/a/extend", IN_BODY, NULL, "1", 400, "/token"},
    {"DELETE", "/locks/a", "{'wait_ms':1}", NULL, ASK_TOKEN, 400, "/wait_ms"},
    {"DELETE", "/locks/a", "{'token':'1'}", NULL, ASK_TOKEN, 400, "/token"},
    {"DELETE", "/locks/a", IN_BODY, NULL, OTHER_TOKEN, 400, "/token"},
    {"DELETE", "/locks/a", IN_BODY, NULL, ASK_TOKEN ".me", 400, "/token"},
    {"DELETE", "/locks/a", "{'token':1}", NULL, ASK_TOKEN, 400, "/token"},
    /* however short it is */
    {"DELETE", "/locks/a", "{", NULL, ASK_TOKEN, 400, ""},
    {"DELETE", "/locks/a", IN_BODY, NULL, ASK_TOKEN, 0, NULL},
    {"DELETE", "/locks/a", NULL, NULL, ASK_TOKEN, 0, NULL},
    {"DELETE", "/locks/a", IN_BODY, NULL, NULL, 0, NULL},
    {"PUT", "/locks/a/extend", "{'ttl_ms':5000}", NULL, ASK_TOKEN, 0, NULL},
    {"GET", "/locks/a", NULL, NULL, NULL, 0, NULL},
};

SUITE(locks_input, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(input_is_refused_or_sent_to_the_nodes, refused)
{
    if (refused[_i].type != NULL)
        ask.request.content_type = span_of(refused[_i].type);
    if (refused[_i].token != NULL)
        ask.request.call.lock_token = span_of(refused[_i].token);
    bool is_answered =
        ask_send(refused[_i].method, refused[_i].target, refused[_i].body);
    ck_assert_int_eq(is_answered, refused[_i].status != 0);
    ck_assert_int_eq(ask.request.call.op == 0, is_answered);
    ck_assert_int_eq(play.sent_count == 0, is_answered);
    if (!is_answered)
        return;
    ask_expect(refused[_i].status, refused[_i].pointer != NULL
                                       ? "invalid_request"
                                       : "unsupported_media_type");
    ck_assert_int_eq(ask.response.retry_after_ms, 0);
    if (refused[_i].pointer == NULL)
        ck_assert_ptr_null(ask_member("errors"));
    else
        ask_expect_pointer(refused[_i].body != NULL &&
                                   strcmp(refused[_i].body, "{}") != 0
                               ? "body"
                               : "header",
                           refused[_i].pointer);
}

TEST(each_wrong_field_is_listed)
{
    ck_assert(ask_send("POST", "/locks", "{'resource':1,'owner':1}"));
    ck_assert_uint_eq(json_array_size(ask_member("errors")), 2);
}

/* The one in the body is in check_locks.c. */
TEST(the_token_of_the_head_is_sent)
{
    ask.request.call.lock_token = span_of(OTHER_TOKEN);
    ck_assert(!ask_send("PUT", "/locks/a/extend", "{'ttl_ms':5000}"));
    ck_assert_str_eq(play.sent[0].token, OTHER_TOKEN);
    ck_assert_int_eq(play.sent[0].call.ttl_ms, 5000);
}

static const struct {
    struct span key;
    const char *where;
} wrong_bytes[] = {
    {{"urn:uuid:6f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e", 45}, "its byte 4 is :;"},
    {{"0123456789abcde\xc3\xa9", 17}, "its byte 16 is 0xc3;"},
    {{"0123456789abcdef\0", 17}, "its byte 17 is 0x00;"},
    {{"x{", 2}, "its byte 2 is {;"},
    {{"", 0}, "Idempotency-Key"},
    {{"fifteen-letters", 15}, "16 to 64 characters"},
};

TEST_EACH(the_wrong_byte_of_an_idempotency_key_is_told, wrong_bytes)
{
    ask.request.call.idempotency_key = wrong_bytes[_i].key;
    ck_assert(ask_send("POST", "/locks", "{'resource':'a'}"));
    ask_expect(400, "invalid_request");
    ask_expect_detail(wrong_bytes[_i].where);
    ck_assert_int_eq(play.sent_count, 0);
    /* others take no notice of it */
    ask.request.call.lock_token = span_of(ASK_TOKEN);
    ask.request.body = (struct span){NULL, 0};
    ck_assert(!ask_send("DELETE", "/locks/a", NULL));
}

/* What stands behind "+" in the token that this acquire sets. */
static const char *hash_of(const char *key, const char *body)
{
    ask_anew();
    if (key != NULL)
        ask.request.call.idempotency_key = span_of(key);
    ck_assert(!ask_send("POST", "/locks", body));
    const char *hash = strchr(play.sent[0].token, '+');
    return hash == NULL ? NULL : hash + 1;
}

TEST(an_idempotency_key_is_hashed_into_the_token)
{
    static const char key[] = "0123456789abcdef";
    ck_assert_ptr_null(hash_of(NULL, "{'resource':'order:42'}"));
    ck_assert_str_eq(hash_of(key, "{'resource':'order:42'}"),
                     "HBvC3OTCJKRp830X6_MckQ");
    ck_assert_str_eq(hash_of(key, "{'resources':['order:42']}"),
                     "HBvC3OTCJKRp830X6_MckQ");
    ck_assert_str_eq(hash_of(key, "{'resources':['b','a'],'owner':'me'}"),
                     "96cfz9OaZ4GSpIOy1WDgCg.me");
}

TEST(a_drained_server_extends_releases_and_inspects)
{
    ask.service.is_drained = true;
    ask.request.call.lock_token = span_of(ASK_TOKEN);
    ck_assert(!ask_send("PUT", "/locks/a/extend", NULL));
    ask_anew();
    ask.request.call.lock_token = span_of(ASK_TOKEN);
    ck_assert(!ask_send("DELETE", "/locks/a", NULL));
    ask_anew();
    ck_assert(!ask_send("GET", "/locks/a", NULL));
}
