/*
 * Which answers are logged at which level, what a line says, what is counted.
 */
#include <string.h>

#include "../../../api/accesslog.h"
#include "../../lib/suite/suite.h"
#include "../said.h"

enum { SECOND = 1000000 };

/* When a head was read. */
#define START INT64_C(5000000)

static struct metrics metrics;
static struct accesslog accesslog;
static struct http_request request;
static struct http_response response;

static void set_up(void)
{
    said_begin();
    log_set_level(LOG_INFO);
    metrics = (struct metrics){0};
    accesslog_init(&accesslog, &metrics);
    request = (struct http_request){.id = "r-1",
                                    .method = "PUT",
                                    .target = "/locks/secret/extend",
                                    .call.lock_token = span_of("secret"),
                                    .body = span_of("secret"),
                                    .head_read_us = START,
                                    .counted_as = LOCK_EXTEND};
    http_response_init(&response);
    response.status = 200;
}

/* The lines that came since, each without its time stamp; "": none. */
static const char *read_log(void)
{
    static char lines[8192];
    lines[0] = '\0';
    for (const char *at = strstr(said(), "level="); at != NULL;
         at = strstr(at + 1, "level="))
        strncat(lines, at, strcspn(at, "\n") + 1);
    return lines;
}

static void note(int status, int64_t took_us)
{
    response.status = status;
    accesslog_note(&accesslog, &request, &response, START + took_us);
}

SUITE(accesslog, .set_up = set_up, .tear_down = said_end);

TEST(at_debug_each_answer_has_its_line)
{
    log_set_level(LOG_DEBUG);
    note(200, 1234);
    ck_assert_str_eq(read_log(),
                     "level=debug event=request request_id=r-1 call=extend "
                     "status=200 code=- took_us=1234 client=- dropped=0\n");
    response.code = "no_quorum";
    note(503, 2 * SECOND);
    ck_assert_str_eq(
        read_log(),
        "level=debug event=request request_id=r-1 call=extend "
        "status=503 code=no_quorum took_us=2000000 client=- dropped=0\n");
    for (int i = 0; i < 20; i++)
        note(200, 1);
    const char *lines = read_log();
    int count = 0;
    for (; (lines = strchr(lines, '\n')) != NULL; lines++)
        count++;
    ck_assert_int_eq(count, 20);
}

TEST(a_trace_is_told)
{
    (void)strcpy(request.trace.id, "4bf92f3577b34da6a3ce929d0e0e4736");
    (void)strcpy(request.trace.parent, "00f067aa0ba902b7");
    note(500, 1);
    ck_assert_str_eq(read_log(),
                     "level=info event=request request_id=r-1 call=extend "
                     "status=500 code=- took_us=1 client=- dropped=0 "
                     "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "
                     "parent_id=00f067aa0ba902b7\n");
}

static const struct {
    int status;
    int64_t took_us;
    bool is_logged;
} answers[] = {
    {200, 0, false}, {499, SECOND, false},    {499, SECOND + 1, true},
    {500, 0, true},  {503, SECOND + 1, true},
};

TEST_EACH(at_info_our_errors_and_slow_answers_are_logged, answers)
{
    const char *expected =
        textf("level=info event=request request_id=r-1 call=extend status=%d "
              "code=- took_us=%d client=- dropped=0\n",
              answers[_i].status, (int)answers[_i].took_us);
    note(answers[_i].status, answers[_i].took_us);
    ck_assert_str_eq(read_log(), answers[_i].is_logged ? expected : "");
}

/* What makes it so is told already: the quorum, or the end. */
TEST(at_info_a_probe_that_says_not_ready_is_not_logged)
{
    request.counted_as = METRICS_PROBE;
    note(503, 1);
    ck_assert_str_eq(read_log(), "");
    ck_assert_uint_eq(metrics.responses[METRICS_PROBE][503], 1);
    note(500, 1);
    ck_assert_has(read_log(), " status=500 ");
    note(503, SECOND + 1);
    ck_assert_has(read_log(), " status=503 ");
}

/* As it was asked to; but what came on top of the wait was our time. */
TEST(a_wait_is_not_slow)
{
    request.call.wait_ms = 45000;
    request.call.waited_ms = 20000;
    note(201, 21 * SECOND);
    ck_assert_str_eq(read_log(), "");
    note(201, 21 * SECOND + 1);
    ck_assert_has(read_log(), " took_us=21000001 ");
    request.call.waited_ms = 0;
    note(201, 1);
    ck_assert_uint_eq(metrics.responses[LOCK_EXTEND][201], 3);
    ck_assert_uint_eq(metrics.request_duration[LOCK_EXTEND].count, 0);
}

TEST(at_warn_nothing_is_logged)
{
    log_set_level(LOG_WARN);
    note(500, 2 * SECOND);
    ck_assert_str_eq(read_log(), "");
}

TEST(too_many_lines_are_dropped_and_counted)
{
    for (int i = 0; i < 10; i++) {
        note(500, 0);
        ck_assert_str_ne(read_log(), "");
    }
    for (int i = 0; i < 3; i++) {
        note(500, SECOND - 1);
        ck_assert_str_eq(read_log(), "");
    }
    note(200, SECOND);
    note(500, SECOND);
    ck_assert_has(read_log(), " dropped=3\n");
    note(500, SECOND);
    ck_assert_str_eq(read_log(), "");
}

/* An answer that is not logged takes no line from one that is. */
TEST(good_answers_use_up_no_lines)
{
    for (int i = 0; i < 20; i++)
        note(200, 0);
    note(500, 0);
    ck_assert_has(read_log(), " dropped=0\n");
}

TEST(each_answer_is_counted)
{
    note(200, 3);
    note(503, 4);
    note(503, 5);
    request.counted_as = METRICS_PROBE;
    note(200, 6);
    ck_assert_uint_eq(metrics.responses[LOCK_EXTEND][200], 1);
    ck_assert_uint_eq(metrics.responses[LOCK_EXTEND][503], 2);
    ck_assert_uint_eq(metrics.responses[METRICS_PROBE][200], 1);
    ck_assert_uint_eq(metrics.request_duration[LOCK_EXTEND].count, 3);
    ck_assert_uint_eq(metrics.request_duration[LOCK_EXTEND].sum_us, 12);
    ck_assert_uint_eq(metrics.request_duration[METRICS_PROBE].sum_us, 6);
}
