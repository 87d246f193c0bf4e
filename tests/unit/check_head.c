#include <check.h>

#include "../../api/head.h"

Suite *check_head(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { FIELDS_MAX = 4 };

static const struct {
    const char *fields[FIELDS_MAX][2];
    bool is_http_1_0;
    bool is_good;
} heads[] = {
    {{{"Host", "x"}}, false, true},
    {{{"host", ""}}, false, true},
    {{{NULL}}, false, false},
    {{{NULL}}, true, true},
    {{{"Host", "x"}, {"HOST", "x"}}, false, false},
    {{{"Host", "x"}, {"Host", "y"}}, true, false},
    {{{"Host", "x"}, {"Content-Length", "2"}}, false, true},
    {{{"Host", "x"}, {"Content-Length", "2"}, {"content-length", "2"}},
     false,
     false},
    {{{"Host", "x"}, {"Transfer-Encoding", "Chunked"}}, false, true},
    {{{"Host", "x"}, {"Transfer-Encoding", "chunked"}}, true, false},
    {{{"Host", "x"}, {"Transfer-Encoding", "gzip"}}, false, false},
    {{{"Host", "x"}, {"Transfer-Encoding", "gzip, chunked"}}, false, false},
    {{{"Host", "x"}, {"Transfer-Encoding", ""}}, false, false},
    {{{"Host", "x"}, {"Transfer-Encoding", "chunked"}, {"Content-Length", "2"}},
     false,
     false},
    {{{"Host", "x"},
      {"Transfer-Encoding", "chunked"},
      {"Transfer-Encoding", "chunked"}},
     false,
     false},
    {{{"Host", "x"}, {"Content-Length ", "2"}}, false, false},
    {{{"Host", "x"}, {"A\tb", "2"}}, false, false},
    {{{"Host", "x"}, {"", "2"}}, false, false},
    {{{"Host", "x"}, {"X-Lock-Token", "a"}, {"X-Lock-Token", "a"}},
     false,
     false},
    {{{"Host", "x"}, {"Accept", "a"}, {"Accept", "b"}}, false, true},
    {{{"Host", "x"}, {"X-Request-Id", "a"}, {"X-Request-Id", "b"}},
     false,
     true},
};

START_TEST(doubtful_framing_is_refused)
{
    struct head head;
    head_init(&head);
    for (int i = 0; i < FIELDS_MAX && heads[_i].fields[i][0] != NULL; i++)
        head_add(&head, span_of(heads[_i].fields[i][0]),
                 heads[_i].fields[i][1]);
    const char *reason = head_check(&head, heads[_i].is_http_1_0);
    ck_assert_msg((reason == NULL) == heads[_i].is_good, "row %d: %s", _i,
                  reason);
}
END_TEST

START_TEST(fields_are_picked_by_their_whole_name)
{
    struct head head;
    head_init(&head);
    head_add(&head, span_of("Content-Typ"), "short");
    head_add(&head, span_of("Content-Types"), "long");
    ck_assert_ptr_null(head.values[HEAD_CONTENT_TYPE]);
    head_add(&head, span_of("content-type"), "text");
    ck_assert_str_eq(head.values[HEAD_CONTENT_TYPE], "text");
    /* not terminated by NUL */
    head_add(&head, (struct span){"X-Request-Idle", 12}, "first");
    head_add(&head, span_of("X-Request-Id"), "second");
    ck_assert_str_eq(head.values[HEAD_REQUEST_ID], "first");
}
END_TEST

START_TEST(content_length_is_read)
{
    struct head head;
    head_init(&head);
    ck_assert_int_eq(head_content_length(&head), -1);
    head_add(&head, span_of("Content-Length"), "16385");
    ck_assert_int_eq(head_content_length(&head), 16385);
    head_init(&head);
    head_add(&head, span_of("Content-Length"), "18446744073709551615");
    ck_assert_int_eq(head_content_length(&head), INT64_MAX);
}
END_TEST

Suite *check_head(void)
{
    Suite *suite = suite_create("head");
    TCase *tc = tcase_create("head");
    tcase_add_loop_test(tc, doubtful_framing_is_refused, 0, COUNT(heads));
    tcase_add_test(tc, fields_are_picked_by_their_whole_name);
    tcase_add_test(tc, content_length_is_read);
    suite_add_tcase(suite, tc);
    return suite;
}
