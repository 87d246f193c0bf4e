/* SPDX-License-Identifier: MIT */
/*
 * Which answers are logged at which level, what a line says, what is counted.
 */
#include <string.h>

#include "../../../api/exchange.h"
#include "../../lib/suite/suite.h"
#include "../said.h"

enum { SECOND = 1000000 };

/* When a head was read. */
#define START INT64_C(5000000)

static struct metrics metrics;
static const struct service service = {.metrics = &metrics};
static struct exchange exchange;
static struct log_limit limit;
static struct http_request *const request = &exchange.request;
static struct http_response response;

static void set_up(void)
{
    said_begin();
    log_set_level(LOG_INFO);
    metrics = (struct metrics){0};
    limit = exchange_log_limit;
    exchange.service = &service;
    *request = (struct http_request){.id = "r-1",
                                     .method = "PUT",
                                     .target = "/locks/secret/extend",
                                     .call.lock_token = span_of("secret"),
                                     .call.response = &response,
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
    exchange_note_answer(&exchange, &limit, START + took_us);
}

SUITE(exchange_log, .set_up = set_up, .tear_down = said_end);

/* Its line, without what follows the client. */
static const char *line(const char *level, int status, const char *code,
                        int64_t took_us)
{
    return textf("level=%s event=request request_id=r-1 call=extend status=%d "
                 "code=%s took_us=%d client=- dropped=0",
                 level, status, code, (int)took_us);
}

TEST(at_debug_each_answer_has_its_line)
{
    log_set_level(LOG_DEBUG);
    note(200, 1234);
    ck_assert_str_eq(read_log(), textf("%s\n", line("debug", 200, "-", 1234)));
    response.code = "no_quorum";
    note(503, 2 * SECOND);
    ck_assert_str_eq(
        read_log(), textf("%s\n", line("debug", 503, "no_quorum", 2 * SECOND)));
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
    (void)strcpy(request->trace.id, "4bf92f3577b34da6a3ce929d0e0e4736");
    (void)strcpy(request->trace.parent, "00f067aa0ba902b7");
    note(500, 1);
    ck_assert_str_eq(read_log(),
                     textf("%s trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "
                           "parent_id=00f067aa0ba902b7\n",
                           line("info", 500, "-", 1)));
}

static const struct {
    enum log_level level;
    int counted_as, status;
    int64_t took_us, wait_ms, waited_ms;
    bool is_logged;
} answers[] = {
    {LOG_INFO, LOCK_EXTEND, 200, 0, 0, 0, false},
    {LOG_INFO, LOCK_EXTEND, 499, SECOND, 0, 0, false},
    {LOG_INFO, LOCK_EXTEND, 499, SECOND + 1, 0, 0, true},
    {LOG_INFO, LOCK_EXTEND, 500, 0, 0, 0, true},
    {LOG_INFO, LOCK_EXTEND, 503, SECOND + 1, 0, 0, true},
    {LOG_WARN, LOCK_EXTEND, 500, 2 * SECOND, 0, 0, false},
    /* what makes it so is told already: the quorum, or the end */
    {LOG_INFO, METRICS_PROBE, 503, 1, 0, 0, false},
    {LOG_INFO, METRICS_PROBE, 500, 1, 0, 0, true},
    {LOG_INFO, METRICS_PROBE, 503, SECOND + 1, 0, 0, true},
    /* as it was asked to; but what came on top of the wait was our time */
    {LOG_INFO, LOCK_ACQUIRE, 201, 21 * SECOND, 45000, 20000, false},
    {LOG_INFO, LOCK_ACQUIRE, 201, 21 * SECOND + 1, 45000, 20000, true},
};

TEST_EACH(our_errors_and_slow_answers_are_logged, answers)
{
    log_set_level(answers[_i].level);
    request->counted_as = answers[_i].counted_as;
    request->call.wait_ms = answers[_i].wait_ms;
    request->call.waited_ms = answers[_i].waited_ms;
    note(answers[_i].status, answers[_i].took_us);
    ck_assert_int_eq(*read_log() != '\0', answers[_i].is_logged);
    /* a wait is observed elsewhere */
    ck_assert_uint_eq(metrics.request_duration[request->counted_as].count,
                      answers[_i].wait_ms == 0);
    ck_assert_uint_eq(
        metrics.responses[request->counted_as][answers[_i].status], 1);
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
