/* SPDX-License-Identifier: MIT */
/*
 * Memory that was replaced by REPLICAOF, or was not, on two real Redis servers.
 * High-water quarantines, generations and witnesses:
 * transcripts/high_waters.txt.
 */
#include <stdio.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "../tcp.h"
#include "live.h"

#define STATE "p:redlockd:state"

static const char *field(const char *name)
{
    return real_text(&live.real, "HGET " STATE " %s", name);
}

static enum call_probe_word probe_with(const char *nonce)
{
    struct call call = live_call(CALL_PROBE, "", "");
    call.nonce = span_of(nonce);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    return live.reply.probe.word;
}

static void probe(enum call_probe_word word)
{
    ck_assert_int_eq((int)probe_with(LIVE_NONCE), (int)word);
}

/* On a port of its own: REPLICAOF does not take a Unix path. */
static int listen_on_tcp(struct real *real)
{
    struct sockaddr_in address;
    close(tcp_bind(&address));
    int port = ntohs(address.sin_port);
    ck_assert_str_eq(
        real_text(real, "CONFIG SET port %d repl-diskless-sync-delay 0", port),
        "OK");
    return port;
}

/* Copies the data of that real, and follows its writes. */
static void follow(struct real *real, int port)
{
    real_text(real, "REPLICAOF 127.0.0.1 %d", port);
    for (int i = 0; i < 1000; i++) {
        const char *info = real_text(real, "INFO replication");
        if (strstr(info, "master_link_status:up") != NULL)
            return;
        usleep(10000);
    }
    ck_abort_msg("it does not copy the other one");
}

static void detach(struct real *real)
{
    real_text(real, "REPLICAOF NO ONE");
}

static struct real other;

static void setup_two(void)
{
    live_setup();
    real_start(&other);
}

static void teardown_two(void)
{
    real_stop(&other);
    live_teardown();
}

SUITE(memory, .timeout_s = 60, .set_up = setup_two, .tear_down = teardown_two);

/* Its only field of the state that is of this data, before and after. */
static void assert_follows(const char *before)
{
    char after[CALL_STATE_MAX + 1];
    size_t len = strlen(before) - strlen(live.of_this_life);
    live_learn_memory();
    snprintf(after, sizeof after, "%.*s%s", (int)len, before,
             live.of_this_life);
    ck_assert_str_ne(after, before);
    ck_assert_str_eq(field("admit"), after);
    strcpy(live.admission, after);
}

static void wait_for_other_id(void)
{
    for (int i = 0; i < 1000; i++) {
        const char *info = real_text(&live.real, "INFO replication");
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
    probe(PROBE_ADMITTED);
    strcpy(before, live.admission);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    follow(&other, listen_on_tcp(&live.real));
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq((int)probe_with(_i == 0 ? "" : LIVE_NONCE),
                     PROBE_ADMITTED);
    assert_follows(before);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_EXTENDED);
    strcpy(before, live.admission);
    real_text(&live.real, "CONFIG SET repl-backlog-ttl 1");
    detach(&other);
    wait_for_other_id();
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_NOT_ADMITTED);
    probe(PROBE_ADMITTED);
    assert_follows(before);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_EXTENDED);
}

/*
 * It was a replica, and has the data of its replica, which lacks a lock. Its
 * second replication ID tells so until it frees its backlog, and what it has
 * read until its statistics are reset: one of both is enough.
 */
TEST_RANGE(story_74_a_node_that_was_a_replica_is_quarantined, 0, 3)
{
    char before[CALL_STATE_MAX + 1], seen[CALL_TRACE_MAX + 1];
    follow(&other, listen_on_tcp(&live.real));
    live_learn_memory();
    live_admit();
    real_text(&live.real, "SET written later");
    ck_assert_int_eq(real_integer(&live.real, "WAIT 1 5000"), 1);
    detach(&other);
    probe(PROBE_ADMITTED);
    strcpy(before, live.admission);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    int port = listen_on_tcp(&other);
    probe(PROBE_ADMITTED);
    strcpy(seen, live.trace);
    real_text(&live.real, "CONFIG SET repl-backlog-ttl 1");
    follow(&live.real, port);
    detach(&live.real);
    ck_assert_str_eq(field("admit"), before);
    live_learn_memory();
    if (_i == 1)
        ck_assert_str_eq(real_text(&live.real, "CONFIG RESETSTAT"), "OK");
    if (_i == 2)
        wait_for_other_id();
    live_learn_memory();
    /* as if no time had passed */
    snprintf(strrchr(seen, ':') + 1, 17, "%lld", (long long)live_node_now_us());
    strcpy(live.trace, seen);
    probe(PROBE_CREATED);
    ck_assert_str_eq(live.admit, before); /* like that of an older life */
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "B"), VOTE_NOT_ADMITTED);
}

/* Whoever lets it write while it is a replica. */
TEST(story_74_a_replica_is_not_the_master_that_it_was)
{
    live_admit();
    probe(PROBE_ADMITTED);
    char admit[CALL_STATE_MAX + 1];
    strcpy(admit, live.admission);
    real_text(&live.real, "CONFIG SET replica-read-only no");
    follow(&live.real, listen_on_tcp(&other));
    real_integer(&live.real, "HSET " STATE " admit %s durable 1", admit);
    ck_assert_str_eq(real_text(&live.real, "CONFIG RESETSTAT"), "OK");
    live_learn_memory();
    probe(PROBE_CREATED);
}
