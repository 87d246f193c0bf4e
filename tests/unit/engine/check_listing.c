/* SPDX-License-Identifier: MIT */
/*
 * A page of locks: a scan of one node, then an inspection of each name.
 */

#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "../starve.h"

#define HELD PLAY_TOKEN_OF(1) ".me"

static bool is_name(struct span name)
{
    return !span_is(name, "bad");
}

static engine_op list_some(struct list_cursor cursor, int limit)
{
    return engine_list(play.engine,
                       &(struct engine_list){.prefix = span_of("o"),
                                             .limit = limit,
                                             .cursor = cursor,
                                             .is_name = is_name},
                       NULL);
}

static engine_op list_from(struct list_cursor cursor)
{
    return list_some(cursor, 100);
}

static engine_op list(void)
{
    return list_from((struct list_cursor){0});
}

static void answer_scan(int node, int64_t cursor, const char *names)
{
    PLAY_REPLY(CALL_SCAN, node, .vote = VOTE_DONE, .cursor = cursor,
               .names = span_of(names));
}

/* Of the oldest inspection: h held, f free, s nothing. */
static void answer_inspect(const char *votes)
{
    for (int i = 0; votes[i] != '\0'; i++) {
        if (votes[i] == 'h')
            play_answer_held(CALL_INSPECT, i, HELD);
        else if (votes[i] == 'f')
            play_answer(CALL_INSPECT, i, VOTE_FREE);
    }
}

static const struct engine_page *page_of(engine_op op)
{
    return engine_take_page(play.engine, op);
}

static void end(engine_op op, enum list_outcome outcome)
{
    ck_assert_int_eq(page_of(op)->outcome, outcome);
    engine_close(play.engine, op);
}

/* A page of so many locks; where the next one begins. */
static struct list_cursor end_page(engine_op op, int count)
{
    struct list_cursor next = page_of(op)->next;
    ck_assert_int_eq(page_of(op)->count, count);
    end(op, LIST_PAGE);
    return next;
}

/* The cursor behind all of the first node. */
static struct list_cursor second_node(void)
{
    engine_op op = list_some((struct list_cursor){0}, 1);
    answer_scan(0, 0, "3:o:x");
    answer_inspect("hhh");
    answer_inspect("...hh");
    ck_assert(page_of(op)->has_next);
    struct list_cursor next = end_page(op, 1);
    ck_assert_int_eq(next.at, 1);
    return next;
}

SUITE(listing, .set_up = play_begin, .tear_down = play_end);

TEST(what_a_majority_has_is_shown)
{
    engine_op op = list();
    ck_assert_int_eq(play_count(CALL_SCAN), 1);
    ck_assert_int_eq(play_find(CALL_SCAN, 0)->call.count, 100);
    answer_scan(0, 5, "3:o:a3:bad3:o:b");
    ck_assert_int_eq(play_count(CALL_INSPECT), 10);
    answer_inspect("hhh");
    ck_assert_int_eq(page_of(op)->outcome, LIST_PENDING);
    ck_assert_int_eq(play.answers, 0);
    answer_inspect("...hh"); /* of o:a, too late */
    answer_inspect("hffff");
    ck_assert_int_eq(play.answers, 1);
    const struct engine_page *page = page_of(op);
    ck_assert_int_eq(page->outcome, LIST_PAGE);
    ck_assert_int_eq(page->count, 1);
    const struct engine_result *lock = engine_page_lock(play.engine, op, 0);
    ck_assert(span_is(lock->resource, "o:a"));
    ck_assert(span_is(lock->owner, "me"));
    ck_assert_int_eq(lock->number, 1);
    ck_assert(page->has_next);
    ck_assert_int_eq(page->next.at, 0);
    ck_assert_int_eq(page->next.scan, 5);
    ck_assert_int_eq(page->next.nodes, 7);
    engine_close(play.engine, op);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

TEST(few_locks_are_one_page)
{
    engine_op op = list();
    answer_scan(0, 0, "3:o:a");
    answer_inspect("hh.ff");
    answer_inspect("..h"); /* earlier nodes must not be missing */
    ck_assert_int_eq(play_find(CALL_SCAN, 1)->call.count, 99);
    answer_scan(1, 0, "3:o:a3:o:b");
    answer_inspect("hhhff");
    answer_inspect("fhhhf");
    answer_scan(2, 0, "");
    ck_assert(!page_of(op)->has_next);
    for (int i = 0; i < 2; i++)
        ck_assert(span_is(engine_page_lock(play.engine, op, i)->resource,
                          i == 0 ? "o:a" : "o:b"));
    ck_assert_int_eq(play.answers, 1);
    (void)end_page(op, 2);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

TEST(a_full_page_ends_with_its_node)
{
    struct list_cursor next = second_node();
    ck_assert_int_eq(next.scan, 0);
    engine_op op = list_from(next);
    answer_scan(1, 9, "");
    next = end_page(op, 0);
    ck_assert_int_eq(next.at, 1);
    ck_assert_int_eq(next.scan, 9);
}

TEST(a_next_node_that_is_away_is_left_to_the_next_page)
{
    engine_op op = list();
    answer_scan(0, 0, "3:o:a");
    play_node_down(1);
    answer_inspect("h.hhf");
    struct list_cursor next = end_page(op, 1);
    ck_assert_int_eq(next.at, 1);
    end(list_from(next), LIST_LOST);
}

TEST(what_an_earlier_node_has_was_shown_there)
{
    engine_op op = list_from(second_node());
    answer_scan(1, 0, "3:o:a3:o:b");
    answer_inspect(".hhhh");
    ck_assert_int_eq(page_of(op)->outcome, LIST_PENDING); /* it is waited for */
    answer_inspect("h");
    answer_inspect("f");
    answer_inspect(".hhhh");
    answer_scan(2, 0, "");
    ck_assert(span_is(engine_page_lock(play.engine, op, 0)->resource, "o:b"));
    (void)end_page(op, 1);
}

TEST(an_earlier_node_that_is_silent_ends_the_page)
{
    engine_op op = list_from(second_node());
    answer_scan(1, 0, "3:o:a");
    answer_inspect(".hhhh");
    play_advance(50000);
    end(op, LIST_NO_QUORUM);
}

TEST(the_nodes_that_vote_are_scanned)
{
    play_node_down(0);
    play_node_down(2);
    engine_op op = list();
    ck_assert_int_eq(play_find(CALL_SCAN, 1)->node, 1);
    answer_scan(1, 7, "3:o:a3:o:b");
    answer_inspect(".h.hh");
    answer_inspect(".h.ff"); /* others of it may be on those that are away */
    ck_assert_int_eq(end_page(op, 1).nodes, 2 + 8 + 16);
    play_node_down(3);
    end(list(), LIST_NO_QUORUM);
}

TEST(a_cursor_of_other_servers_is_lost)
{
    struct list_cursor cursor = second_node();
    struct list_cursor wrong[] = {cursor, cursor, cursor};
    wrong[0].runs++;
    wrong[1].nodes = 3;
    wrong[2].at = 3;
    for (int i = 0; i < 3; i++)
        end(list_from(wrong[i]), LIST_LOST);
    play_node_down(0);
    end(list_from(cursor), LIST_LOST);
}

TEST(a_scan_that_fails_ends_the_page)
{
    engine_op op = list();
    play_answer(CALL_SCAN, 0, VOTE_KEY_REFUSED);
    ck_assert_int_eq(page_of(op)->node, 0);
    end(op, LIST_REFUSED);
    op = list();
    play_answer(CALL_SCAN, 0, VOTE_DISCONNECTED);
    end(op, LIST_NO_QUORUM);
    op = list();
    play_advance(1000000);
    ck_assert_int_eq(page_of(op)->outcome, LIST_NO_QUORUM);
    answer_scan(0, 0, "3:o:a"); /* too late */
    end(op, LIST_NO_QUORUM);
}

TEST(its_client_may_leave_at_any_time)
{
    engine_op op = list();
    ck_assert(!engine_abandon(play.engine, op));
    answer_scan(0, 0, "3:o:a");
    ck_assert_int_eq(play_count(CALL_INSPECT), 0);
    op = list();
    answer_scan(0, 0, "3:o:a");
    ck_assert(!engine_abandon(play.engine, op));
    answer_inspect("hhhhh");
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    ck_assert_int_eq(play.answers, 0);
}

TEST(without_memory_a_page_fails)
{
    const struct call_reply reply = {.vote = VOTE_DONE,
                                     .names = span_of("3:o:a")};
    enum list_outcome outcome;
    int left = 0;
    do {
        engine_op op = list();
        struct play_call *scan = play_find(CALL_SCAN, 0);
        scan->is_answered = true;
        left++;
        starve = (struct starve){.is_on = true, .left = left};
        engine_on_reply(play.engine, 0, scan->tag, &reply, play.now_us,
                        play.now_us);
        starve.is_on = false;
        outcome = page_of(op)->outcome;
        ck_assert(outcome == LIST_NO_MEMORY || outcome == LIST_PENDING);
        engine_close(play.engine, op);
    } while (outcome == LIST_NO_MEMORY);
    ck_assert_int_gt(left, 2);
}

TEST(there_is_a_limit_of_lists_at_once)
{
    engine_op first = list(), op = first;
    int count = 0;
    while (op != 0) {
        ck_assert_int_lt(++count, 100);
        op = list();
    }
    engine_abandon(play.engine, first);
    ck_assert(list() != 0);
}

/* So many calls of one turn delay other calls. */
enum { TURN_MAX = 32 };

static void answer_scan_of(int node, int count)
{
    char names[1000] = "";
    size_t len = 0;
    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "4:o:%02d", i);
    answer_scan(node, 1, names);
}

/* Calls that are not answered. */
static int count_open(enum call_kind kind)
{
    int count = 0;
    for (int i = 0; i < play.sent_count; i++)
        count += play.sent[i].call.kind == kind && !play.sent[i].is_answered;
    return count;
}

TEST(many_inspections_are_begun_a_few_at_a_time)
{
    engine_op op = list();
    answer_scan_of(0, TURN_MAX + 1);
    ck_assert_int_eq(count_open(CALL_INSPECT), 5 * TURN_MAX);
    for (int i = 0; i < TURN_MAX - 1; i++)
        answer_inspect("hhhhh");
    ck_assert_int_eq(count_open(CALL_INSPECT), 5);
    answer_inspect("hhh");
    answer_inspect("...hh"); /* of that one, too late */
    ck_assert_int_eq(count_open(CALL_INSPECT), 5);
    ck_assert_int_eq(play.answers, 0);
    answer_inspect("hhh");
    ck_assert_int_eq(play.answers, 1);
    (void)end_page(op, TURN_MAX + 1);
}

/* Nothing is scanned: the names of its slots are known. */
TEST(so_are_those_of_a_pool)
{
    const struct engine_list slots = {.limit = TURN_MAX + 1,
                                      .pool = span_of("pool")};
    engine_op op = engine_list(play.engine, &slots, NULL);
    ck_assert_int_eq(count_open(CALL_INSPECT), 5 * TURN_MAX);
    for (int i = 0; i < TURN_MAX; i++)
        answer_inspect("fffff");
    ck_assert_int_eq(count_open(CALL_INSPECT), 5);
    answer_inspect("hhhhh");
    ck_assert(span_is(engine_page_lock(play.engine, op, 0)->resource,
                      "pool" NAMES_SLOT "32"));
    (void)end_page(op, 1);
    ck_assert_int_eq(play_count(CALL_SCAN), 0);
}

TEST(lists_take_turns)
{
    engine_op first = list();
    engine_op second = list();
    ck_assert_int_eq(count_open(CALL_SCAN), 1);
    answer_scan_of(0, TURN_MAX + 1);
    ck_assert_int_eq(count_open(CALL_INSPECT), 0);
    ck_assert_int_eq(count_open(CALL_SCAN), 1); /* the second's */
    answer_scan(0, 1, "3:o:x");
    ck_assert_int_eq(count_open(CALL_INSPECT), 5 * TURN_MAX);
    for (int i = 0; i < TURN_MAX; i++)
        answer_inspect("fffff");
    ck_assert_int_eq(count_open(CALL_INSPECT), 5);
    answer_inspect("hhhhh"); /* the second is done before the first */
    (void)end_page(second, 1);
    ck_assert_int_eq(page_of(first)->outcome, LIST_PENDING);
    answer_inspect("fffff");
    (void)end_page(first, 0);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

TEST(the_turn_of_one_that_ends_is_the_next_ones)
{
    engine_op gone = list();
    engine_op lost = list();
    engine_op last = list();
    ck_assert(!engine_abandon(play.engine, gone));
    answer_scan(0, 1, "3:o:x"); /* of the one that is gone */
    play_advance(60000);        /* the next gets no reply */
    ck_assert_int_eq(page_of(lost)->outcome, LIST_NO_QUORUM);
    answer_scan(0, 1, "3:o:y"); /* too late */
    answer_scan(0, 1, "3:o:z");
    answer_inspect("hhhhh");
    (void)end_page(last, 1);
    engine_close(play.engine, lost);
}
