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

/* A first replica makes another replication ID: the admission was given to a
 * memory that had no copy. */
TEST(a_node_that_gets_its_first_replica_loses_its_admission)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    follow(&other, listen_on_tcp(&live.master));
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "s", "A"), VOTE_NOT_ADMITTED);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
}
