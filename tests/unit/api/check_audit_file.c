/* SPDX-License-Identifier: MIT */
/*
 * An audit log whose file takes no lines, is moved away, or cannot be.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "../said.h"
#include "../starve.h"
#include "../turns.h"
#include "audited.h"

static char error[400];

/* ---- a file that takes no lines ----------------------------------------- */

static void note(void)
{
    static const struct engine_result result = {.outcome = OUTCOME_RELEASED,
                                                .resource = {"order:42", 8}};
    ask.request.match.call = LOCK_RELEASE;
    ask.response.status = 200;
    audit_note(audited.audit, &ask.request.call, &result);
}

static bool is_written(void *arg)
{
    return audited_count(audited.path) >= *(int *)arg;
}

SUITE(audit_file, .timeout_s = 60, .set_up = audited_begin,
      .tear_down = audited_end);

TEST(what_was_not_written_is_written_later)
{
    int count = 4;
    audited_block();
    note();
    note();
    ck_assert_int_eq(audited_count(audited.path), 1);
    const char *log = said();
    ck_assert_has(log, "event=audit_not_written detail=\"File too large\"");
    ck_assert_str_eq(log + strcspn(log, "\n"), "\n");
    audited_limit(false);
    note();
    ck_assert_int_eq(audited_count(audited.path), count);
    ck_assert_has(said(), "event=audit_written_again");
    ck_assert_int_eq(truncate(audited.path, AUDITED_FILLED), 0);
    audited_limit(true);
    note();
    audited_limit(false);
    count = 2; /* without another line, too */
    turns_until(audited.loop, is_written, &count);
    ck_assert_uint_eq(play.metrics.audit_lost, 0);
}

/* In the file; there may be room for that, and not for a line. */
static int sum_of_lost(void)
{
    static const char form[] = "\"event\":\"lines_lost\",\"lost\":";
    int sum = 0;
    for (const char *at = audited_all(audited.path);
         (at = strstr(at, form)) != NULL;) {
        at += sizeof form - 1;
        sum += (int)strtol(at, NULL, 10);
    }
    return sum;
}

TEST(lost_lines_are_counted_and_told)
{
    int count = 1;
    audited_block();
    for (; play.metrics.audit_lost == 0; count++)
        note();
    for (int i = 0; i < 10; i++)
        note();
    count--; /* those that are kept, and the first */
    ck_assert_int_gt(count, 1000);
    ck_assert_has(said(), "level=error event=audit_lines_lost lost=1 ");
    audited_limit(false);
    turns_until(audited.loop, is_written, &count);
    note();
    note();
    ck_assert_int_eq(sum_of_lost(), 11);
    count = audited_count(audited.path);
    ck_assert_has(audited_line(audited.path, count - 3), "lines_lost");
    ck_assert_lacks(audited_line(audited.path, count - 2), "lines_lost");
    ck_assert_lacks(audited_line(audited.path, count - 1), "lines_lost");
    ck_assert_uint_eq(play.metrics.audit_lost, 11);
}

TEST(a_line_without_memory_is_lost)
{
    starve = (struct starve){.is_on = true, .left = 1};
    note();
    starve.is_on = false;
    ck_assert_uint_eq(play.metrics.audit_lost, 1);
    note();
    ck_assert_str_eq(audited_body(audited_line(audited.path, 0)),
                     "\"event\":\"lines_lost\",\"lost\":1}");
    ck_assert_int_eq(audited_count(audited.path), 2);
}

TEST(what_is_not_written_at_the_end_is_lost)
{
    audited_block();
    note();
    note();
    audit_free(audited.audit);
    audited.audit = NULL;
    ck_assert_uint_eq(play.metrics.audit_lost, 2);
    ck_assert_has(said(), "event=audit_lines_lost lost=2 ");
}

/* ---- the file ----------------------------------------------------------- */

TEST(a_rotation_that_fails_is_told)
{
    ck_assert_int_eq(rename(audited.path, audited.moved), 0);
    ck_assert_int_eq(mkdir(audited.path, 0700), 0);
    audit_reopen(audited.audit);
    ck_assert_has(
        said(),
        "level=error event=audit_not_reopened detail=\"Is a directory\"");
    note();
    ck_assert_int_eq(audited_count(audited.moved), 1);
    ck_assert_int_eq(rmdir(audited.path), 0);
}

TEST(a_file_that_cannot_be_opened_is_named)
{
    audited.setup.path = "/nowhere/audit";
    ck_assert_ptr_null(audit_open(&audited.setup, error, sizeof error));
    ck_assert_has(error, "--audit-log: \"/nowhere/audit\": No such file");
}

TEST_RANGE(without_memory_there_is_no_audit_log, 0, 4)
{
    starve = (struct starve){.is_on = true, .left = _i + 1};
    struct audit *other = audit_open(&audited.setup, error, sizeof error);
    starve.is_on = false;
    ck_assert_ptr_null(other);
    ck_assert_has(error,
                  _i == 0 || _i == 3 ? "out of memory" : strerror(ENOMEM));
}

TEST(without_an_audit_log_nothing_happens)
{
    audit_free(audited.audit);
    ask.service.audit = audited.audit = NULL;
    ck_assert(!ask_call(LOCK_RELEASE));
    audit_note_abandoned(NULL, &ask.request.call,
                         engine_peek(play.engine, ask.request.call.op));
    note();
    ask.response.status = 401;
    audit_note_refusal(NULL, &ask.request.call, (struct span){0});
    audit_reopen(NULL);
    audit_free(NULL);
    ck_assert(!ask.request.call.is_audited);
}
