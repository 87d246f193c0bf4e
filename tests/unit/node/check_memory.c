/*
 * Memory that was replaced, rolled back or lost in part, on a real Redis
 * server: floors, beats, witnesses, and what REPLICAOF does.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

SUITE(memory, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

/* ---- the floor in a look ------------------------------------------------- */

TEST(story_42_a_look_takes_the_admission_of_an_older_memory)
{
    live_admit();
    permit_set("beat", "7");
    PERMIT_ASSERT_WORD(permit_look_above(7, LIVE_NONCE), LOOK_ADMITTED);
    PERMIT_ASSERT_WORD(permit_look_above(9, LIVE_NONCE), LOOK_CREATED);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(live.mark, permit_mark_of(LIVE_NONCE));
    ck_assert_int_eq(live.reply.look.beat, 9);
    ck_assert_int_eq(live.reply.beat, 0);
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_int_eq(permit_number("beat"), 9);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
}

/* Restarted from a backup: its state proves nothing to anyone. */
TEST(story_43_a_refusal_takes_the_evidence_of_an_older_life)
{
    permit_restart(7);
    PERMIT_ASSERT_WORD(permit_look_above(7, PERMIT_OTHER_NONCE), LOOK_MARKED);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    PERMIT_ASSERT_WORD(permit_look_above(8, ""), LOOK_MARKED); /* a probe */
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    PERMIT_ASSERT_WORD(permit_look_above(8, PERMIT_OTHER_NONCE), LOOK_CREATED);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(live.mark, permit_mark_of(PERMIT_OTHER_NONCE));
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_int_eq(permit_number("beat"), 8);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_CHANGED);
}

/* Each server that knows a greater beat restarts the quarantine: once, not in
 * turns. The admission that ends it has a beat above them all. */
TEST(story_45_whatever_is_heard_of_another_machine_makes_a_new_mark)
{
    char first[CALL_STATE_MAX + 1], mark[CALL_STATE_MAX + 1];
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    strcpy(first, live.mark);
    PERMIT_ASSERT_WORD(permit_look_above(20, PERMIT_OTHER_NONCE), LOOK_CREATED);
    strcpy(mark, live.mark);
    ck_assert_str_eq(mark, permit_mark_of(PERMIT_OTHER_NONCE));
    ck_assert_int_eq(permit_admit(first), VOTE_CHANGED);
    for (int floor = 12; floor <= 20;
         floor += 4) { /* a server that knows no greater beat */
        PERMIT_ASSERT_WORD(permit_look_above(floor, LIVE_NONCE), LOOK_MARKED);
        ck_assert_str_eq(live.mark, mark);
    }
    PERMIT_ASSERT_WORD(permit_look_above(21, LIVE_NONCE), LOOK_CREATED);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_look_above(21, LIVE_NONCE), LOOK_ADMITTED);
}

TEST(a_probe_knows_no_floor)
{
    PERMIT_ASSERT_WORD(permit_look_above(9, ""), LOOK_EMPTY);
    ck_assert(!permit_has_state());
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    PERMIT_ASSERT_WORD(permit_look_above(9, ""), LOOK_MARKED);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 1);
}

/* ---- votes --------------------------------------------------------------- */

TEST(what_promises_nothing_is_not_counted)
{
    static const struct {
        enum call_kind kind;
        const char *resource;
        enum vote vote;
    } rows[] = {
        {CALL_ACQUIRE, "r", VOTE_HELD},    {CALL_ACQUIRE, "s", VOTE_STALE},
        {CALL_EXTEND, "r", VOTE_HELD},     {CALL_EXTEND, "t", VOTE_FREE},
        {CALL_RELEASE, "t", VOTE_FREE},    {CALL_INSPECT, "r", VOTE_HELD},
        {CALL_RELEASE, "r", VOTE_DELETED},
    };
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    permit_set_number("7", live_node_now_us() + LIVE_WINDOW_US);
    permit_set_number("top", live_node_now_us() + LIVE_WINDOW_US);
    long long until_us = permit_number("until");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *token = rows[i].vote == VOTE_DELETED ? "A" : "B";
        ck_assert_int_eq(live_run(rows[i].kind, rows[i].resource, token),
                         rows[i].vote);
        ck_assert_int_eq(live.reply.beat, 0);
    }
    struct call late = live_call(CALL_ACQUIRE, "t", "A");
    late.node_deadline_us = 1;
    ck_assert_int_eq(live_ask(&late), VOTE_LATE);
    ck_assert_int_eq(permit_number("beat"), LIVE_MEDIAN_US + 2);
    ck_assert_int_eq(permit_number("until"), until_us);
}

/* ---- witnesses ----------------------------------------------------------- */

#define A "00000000000000aa"
#define B "00000000000000bb"
#define NONE "00000000000000000000000000"
#define BEAT(n) "0000000000000000000000000" #n
#define MOST "00000000009007199254740991"

TEST(an_admitted_node_keeps_the_greatest_of_what_it_is_told)
{
    live_admit();
    PERMIT_ASSERT_WORD(permit_tell(A "=" BEAT(5) " " B "=" NONE),
                       LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, BEAT(5) NONE);
    ck_assert_int_eq(permit_number("w:" A), 5);
    ck_assert_str_eq(permit_field("w:" B), "");
    PERMIT_ASSERT_WORD(permit_tell(A "=" BEAT(4) " " B "=" MOST),
                       LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, BEAT(5) MOST);
    PERMIT_ASSERT_WORD(permit_tell(B "=" BEAT(1)), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, MOST);
    ck_assert_int_eq(permit_number("w:" A), 5);
    PERMIT_ASSERT_WORD(permit_tell(""), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, "");
}

/* Its memory may be anyone's, so nobody will read there what it was told. */
TEST(a_node_whose_memory_does_not_count_answers_and_keeps_nothing)
{
    PERMIT_ASSERT_WORD(permit_tell(A "=5 " B "=6"), LOOK_FRESH);
    ck_assert_str_eq(live.witnesses, "00");
    permit_set("w:" A, "3");
    permit_set("until", "0");
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_MARKED);
    permit_set("admit", PERMIT_OLD);
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_MARKED);
    permit_set("durable", "0");
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_MARKED);
    permit_set("durable", "1");
    permit_set("admit",
               "1:fingerprint:fedcba9876543210:" PERMIT_OLD_BIRTH ":0:run:m");
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_MARKED);
    permit_set("admit", "2:f:n:" PERMIT_OLD_BIRTH ":0:run:m");
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_SUPERSEDED);
    ck_assert_str_eq(live.witnesses, "3");
    ck_assert_int_eq(permit_number("w:" A), 3);
}

/* When all nodes restart at once, a server must have a node to write to. */
TEST(a_node_that_was_restarted_whole_keeps_what_it_is_told)
{
    permit_restart(7);
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_MARKED);
    ck_assert_str_eq(live.witnesses, "5");
    ck_assert_int_eq(permit_number("w:" A), 5);
    struct call call = live_call(CALL_LOOK, "", "");
    call.witnesses = span_of(A "=6");
    call.is_durable = false; /* from now on */
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("w:" A), 5);
}

TEST(witnesses_outlive_a_quarantine)
{
    live_admit();
    PERMIT_ASSERT_WORD(permit_tell(A "=5"), LOOK_ADMITTED);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    ck_assert_int_eq(permit_admit(permit_mark_of(PERMIT_OTHER_NONCE)),
                     VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_tell(A "=1"), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, "5");
}

/* ---- another node's memory ----------------------------------------------- */

TEST(story_38_files_of_another_node_are_no_admission)
{
    static const char other[] =
        "1:fingerprint:fedcba9876543210:" PERMIT_OLD_BIRTH ":0:other:m";
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    permit_drop("mark");
    permit_set("until", "0");
    permit_set("admit", other);
    permit_set("durable", "1");
    permit_set("beat", "1000");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, other); /* and servers see whose it is */
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
}

/* On a port of its own: REPLICAOF does not take a Unix path. */
static int listen_on_tcp(struct master *master)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    int port = ntohs(address.sin_port);
    ck_assert_str_eq(
        master_text(master, "CONFIG SET port %d repl-diskless-sync-delay 0",
                    port),
        "OK");
    return port;
}

/* Copies the memory of that master, and follows its writes. */
static void follow(struct master *master, int port)
{
    master_text(master, "REPLICAOF 127.0.0.1 %d", port);
    for (int i = 0; i < 1000; i++) {
        const char *info = master_text(master, "INFO replication");
        if (strstr(info, "master_link_status:up") != NULL)
            return;
        usleep(10000);
    }
    ck_abort_msg("it does not copy the other one");
}

static void detach(struct master *master)
{
    master_text(master, "REPLICAOF NO ONE");
}

static struct master other;

static void setup_two(void)
{
    live_setup();
    master_start(&other);
}

static void teardown_two(void)
{
    master_stop(&other);
    live_teardown();
}

GROUP(copies, .timeout_s = 60, .set_up = setup_two, .tear_down = teardown_two);

/* For 31 ms: its run_id is the same, and so is its memory. */
TEST(a_node_that_was_a_replica_for_a_moment_has_no_vote)
{
    char before[CALL_STATE_MAX + 1];
    live_admit();
    strcpy(before, live.admission);
    master_text(&live.master, "REPLICAOF 127.0.0.1 1");
    master_text(&live.master, "REPLICAOF NO ONE");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    live_learn_memory();
    ck_assert_lacks(before, live.of_this_life);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, before); /* like that of an older life */
    ck_assert_str_eq(live.mark, permit_mark_of(LIVE_NONCE));
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(permit_readmit(before), VOTE_DONE);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
}

/* It now has the other node's state, with its admission and its beat. */
TEST(story_37_a_replica_of_another_lock_node_has_no_admission)
{
    static const char theirs[] =
        "1:fingerprint:fedcba9876543210:" PERMIT_OLD_BIRTH ":0:other:m";
    live_admit();
    master_integer(&other,
                   "HSET " PERMIT_STATE
                   " admit %s durable 1 beat 1000 until 0 top 0",
                   theirs);
    follow(&live.master, listen_on_tcp(&other));
    detach(&live.master);
    ck_assert_str_eq(permit_field("admit"), theirs);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    live_learn_memory();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, theirs);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
}

/* Its replica is detached, and becomes its master for a moment: the run_id
 * stays the same, and the admission is a moment old. */
TEST(story_41_an_old_copy_under_the_same_run_id_gives_no_vote)
{
    static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_EXTEND,
                                           CALL_RELEASE};
    char before[CALL_STATE_MAX + 1];
    follow(&other, listen_on_tcp(&live.master));
    live_learn_memory(); /* that it has a replica makes another ID, too */
    live_admit();
    master_text(&live.master,
                "SET written later"); /* and wait for the replica */
    ck_assert_int_eq(master_integer(&live.master, "WAIT 1 5000"), 1);
    detach(&other);
    strcpy(before, live.admission);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    follow(&live.master, listen_on_tcp(&other));
    detach(&live.master);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
    ck_assert_str_eq(permit_field("admit"), before);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(live_run(kinds[i], "r", "B"), VOTE_NOT_ADMITTED);
    live_learn_memory();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, before); /* like that of an older life */
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "B"), VOTE_GRANTED);
}

/* ---- another replication ID, and the same memory ------------------------- */

/* Its only field of the state that is of this memory, before and after. */
static void assert_follows(const char *before)
{
    char after[CALL_STATE_MAX + 1];
    size_t len = strlen(before) - strlen(live.of_this_life);
    live_learn_memory();
    snprintf(after, sizeof after, "%.*s%s", (int)len, before,
             live.of_this_life);
    ck_assert_str_ne(after, before);
    ck_assert_str_eq(permit_field("admit"), after);
    strcpy(live.admission, after);
}

static void wait_for_other_id(void)
{
    for (int i = 0; i < 1000; i++) {
        const char *info = master_text(&live.master, "INFO replication");
        if (strstr(info, strrchr(live.of_this_life, ':') + 1) == NULL)
            return;
        usleep(10000);
    }
    ck_abort_msg("it keeps its replication backlog");
}

/* Redis makes another replication ID for the first replica, be it a backup, and
 * when it frees the replication backlog. A probe sees that it is the same. */
TEST_RANGE(story_74_a_first_replica_and_a_freed_backlog_cost_no_vote, 0, 2)
{
    char before[CALL_STATE_MAX + 1];
    live_admit();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    strcpy(before, live.admission);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    follow(&other, listen_on_tcp(&live.master));
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_NOT_ADMITTED);
    PERMIT_ASSERT_WORD(_i == 0 ? permit_probe() : permit_look(), LOOK_ADMITTED);
    assert_follows(before);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_EXTENDED);
    strcpy(before, live.admission);
    master_text(&live.master, "CONFIG SET repl-backlog-ttl 1");
    detach(&other);
    wait_for_other_id();
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_NOT_ADMITTED);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    assert_follows(before);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_EXTENDED);
}

/* The mark of a node that waits, and what it was taken from, follow as well. */
TEST(story_74_a_first_replica_begins_no_new_quarantine)
{
    char mark[CALL_STATE_MAX + 1], taken[CALL_STATE_MAX + 1];
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    live_learn_memory();
    strcpy(mark, live.mark);
    snprintf(taken, sizeof taken, "%s", live.mark);
    permit_set("taken", taken);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    follow(&other, listen_on_tcp(&live.master));
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_str_ne(live.mark, mark);
    live_learn_memory();
    snprintf(mark + strlen(mark) - strlen(live.of_this_life),
             strlen(live.of_this_life) + 1, "%s", live.of_this_life);
    ck_assert_str_eq(live.mark, mark);
    ck_assert_str_eq(permit_field("taken"), mark);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
}

/* A look that has seen nothing leaves it to others, once: by then, they had
 * their heartbeat. */
TEST(story_74_a_look_without_a_trace_marks_nothing_at_once)
{
    char before[CALL_STATE_MAX + 1];
    live_admit();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    strcpy(before, live.admission);
    char seen[CALL_TRACE_MAX + 1];
    strcpy(seen, live.trace);
    follow(&other, listen_on_tcp(&live.master));
    live.trace[0] = '\0';
    PERMIT_ASSERT_WORD(permit_look(), LOOK_BARE);
    ck_assert_str_eq(live.admit, before);
    strcpy(live.trace, seen);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    assert_follows(before);
}

TEST(story_74_what_is_marked_meanwhile_waits)
{
    char before[CALL_STATE_MAX + 1], seen[CALL_TRACE_MAX + 1];
    live_admit();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    strcpy(before, live.admission);
    strcpy(seen, live.trace);
    follow(&other, listen_on_tcp(&live.master));
    live.trace[0] = '\0';
    PERMIT_ASSERT_WORD(permit_look(), LOOK_BARE);
    live_learn_memory();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    strcpy(live.trace, seen);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_str_eq(permit_field("admit"), before);
}

/* What does not show that the memory is the same: the trace with another ID,
 * other bytes, another time; or none of ours. */
static const struct {
    const char *id, *read;
    int64_t ago_us;
    const char *text;
    bool is_marked;
} useless[] = {
    {.ago_us = 0, .is_marked = false}, /* this one is as good as the true one */
    {.ago_us = 4000000, .is_marked = false},
    {.id = "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff", .is_marked = true},
    {.read = "1", .is_marked = true},
    {.read = "", .is_marked = true}, /* the node does not tell it */
    {.ago_us = 5000000, .is_marked = true},
    {.ago_us = -60000000, .is_marked = true},
    {.text = "x", .is_marked = true},
    {.text = "::", .is_marked = true},
};

TEST_EACH(story_74_only_a_recent_look_at_this_memory_counts, useless)
{
    live_admit();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    const char *id = strrchr(live.admission, ':') + 1;
    follow(&other, listen_on_tcp(&live.master));
    live_learn_memory();
    snprintf(live.trace, sizeof live.trace, "%s:%s:%lld",
             useless[_i].id != NULL ? useless[_i].id : id,
             useless[_i].read != NULL ? useless[_i].read : "0",
             (long long)(live_node_now_us() - useless[_i].ago_us));
    if (useless[_i].text != NULL)
        strcpy(live.trace, useless[_i].text);
    PERMIT_ASSERT_WORD(permit_look(),
                       useless[_i].is_marked ? LOOK_CREATED : LOOK_ADMITTED);
}

/*
 * It was a replica, and has the memory of its replica, which lacks a lock. Its
 * second replication ID tells so until it frees its backlog, and what it has
 * read until its statistics are reset: one of both is enough.
 */
TEST_RANGE(story_74_a_node_that_was_a_replica_is_marked, 0, 3)
{
    char before[CALL_STATE_MAX + 1], seen[CALL_TRACE_MAX + 1];
    follow(&other, listen_on_tcp(&live.master));
    live_learn_memory();
    live_admit();
    master_text(&live.master, "SET written later");
    ck_assert_int_eq(master_integer(&live.master, "WAIT 1 5000"), 1);
    detach(&other);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    strcpy(before, live.admission);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    int port = listen_on_tcp(&other);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    strcpy(seen, live.trace);
    master_text(&live.master, "CONFIG SET repl-backlog-ttl 1");
    follow(&live.master, port);
    detach(&live.master);
    ck_assert_str_eq(permit_field("admit"), before);
    live_learn_memory();
    if (_i == 1)
        ck_assert_str_eq(master_text(&live.master, "CONFIG RESETSTAT"), "OK");
    if (_i == 2)
        wait_for_other_id();
    live_learn_memory();
    /* as if no time had passed */
    snprintf(strrchr(seen, ':') + 1, 17, "%lld", (long long)live_node_now_us());
    strcpy(live.trace, seen);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, before); /* like that of an older life */
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "B"), VOTE_NOT_ADMITTED);
}

/* Whoever lets it write while it is a replica. */
TEST(story_74_a_replica_is_not_the_master_that_it_was)
{
    live_admit();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    char admit[CALL_STATE_MAX + 1];
    strcpy(admit, live.admission);
    master_text(&live.master, "CONFIG SET replica-read-only no");
    follow(&live.master, listen_on_tcp(&other));
    master_integer(&live.master, "HSET " PERMIT_STATE " admit %s durable 1",
                   admit);
    ck_assert_str_eq(master_text(&live.master, "CONFIG RESETSTAT"), "OK");
    live_learn_memory();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
}
