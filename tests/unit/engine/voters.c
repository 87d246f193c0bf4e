/* SPDX-License-Identifier: MIT */
#include "voters.h"

#include <check.h>
#include <stdio.h>

struct voters voters;

static struct {
    enum call_probe_word word;
    const char *admit;
    const char *quarantine;
} last[VOTERS_NODES];

void voters_know_clocks(bool is_known)
{
    voters.members.has_median = is_known;
    voters.members.median_ahead_us = VOTERS_EPOCH_US;
}

void voters_begin_again(void)
{
    members_init(&voters.members, &voters.settings);
    voters.members.is_queried = true; /* so it may quarantine at once */
    for (int i = 0; i < VOTERS_NODES; i++)
        voters.members.node[i].is_known = true;
    voters_know_clocks(true);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters.members.node[i].is_clock_good = true;
}

void voters_begin(void)
{
    voters = (struct voters){
        .settings = {.nodes = VOTERS_NODES,
                     .node_names = {"a:1", "b:1", "c:1", "d:1", "e:1"},
                     .config_epoch = 1,
                     .fingerprint = VOTERS_FINGERPRINT,
                     .max_ttl_ms = VOTERS_TTL_MS,
                     .node_timeout_us = VOTERS_TIMEOUT_US,
                     .first_start = FIRST_START_NO},
        .now_us = 100 * VOTERS_SECOND,
        .is_durable = true,
    };
    voters_begin_again();
}

void voters_up(int node)
{
    char run_id[] = VOTERS_RUN;
    run_id[0] = (char)('0' + node);
    const struct node_facts facts = {.run_id = run_id,
                                     .is_durable = voters.is_durable,
                                     .has_moved = voters.has_moved};
    members_on_up(&voters.members, node, &facts, voters.now_us);
    voters.has_moved = false;
}

void voters_down(int node)
{
    members_on_down(&voters.members, node);
}

void voters_pass(int64_t us)
{
    voters.now_us += us;
}

void voters_expect(enum member_action_kind kind, int node)
{
    struct member_action action;
    ck_assert(members_next(&voters.members, voters.now_us, &action));
    ck_assert_int_eq((int)action.kind, (int)kind);
    ck_assert_int_eq(action.node, node);
}

void voters_expect_nothing(void)
{
    struct member_action action;
    bool is_any = members_next(&voters.members, voters.now_us, &action);
    ck_assert_msg(!is_any, "action %d on node %d", (int)action.kind,
                  action.node);
}

/* ---- probes -------------------------------------------------------------- */

/* With the node's name and incarnation where @ and # stand. */
static struct span complete(int node, const char *admit,
                            char text[2 * CALL_STATE_MAX])
{
    const char *incarnation = voters.members.node[node].incarnation;
    size_t len = 0;
    for (; *admit != '\0'; admit++) {
        struct span part = {admit, 1};
        if (*admit == '@')
            part = span_of(voters.members.witness.node[node].name);
        else if (*admit == '#')
            part = span_of(incarnation[0] != '\0' ? incarnation
                                                  : VOTERS_INCARNATION(1));
        len += span_copy(text + len, part);
    }
    return (struct span){text, len};
}

/* As a node whose memory counts: it stores what the server knows. */
static void hear(int node)
{
    struct voters_memory *memory = &voters.memory[node];
    for (int i = 0; i < voters.settings.nodes && !memory->is_deaf; i++) {
        const char *latest = voters.members.witness.node[i].latest;
        if (i != node && strcmp(latest, memory->latest[i]) > 0)
            strcpy(memory->latest[i], latest);
    }
}

/* In the order of the nodes, as a node answers. */
static struct span print_heard(int node, char *text, size_t size)
{
    const struct voters_memory *memory = &voters.memory[node];
    size_t len = 0;
    for (int i = 0; i < voters.settings.nodes; i++) {
        const char *latest = memory->latest[i];
        if (i != node)
            len += (size_t)snprintf(text + len, size - len, "%026lld%s",
                                    (long long)memory->high_water[i],
                                    latest[0] != '\0' ? latest : VOTERS_NONE);
    }
    return (struct span){text, len};
}

/* What a quarantine record would take from it, or has taken. */
static const char *taken_of(int node, enum call_probe_word word,
                            const char *admit)
{
    bool is_lower = strtol(admit, NULL, 10) < voters.members.epoch;
    if (word == PROBE_BARE && is_lower && strchr(admit, '@') != NULL &&
        strstr(admit, VOTERS_LIFE) != NULL)
        return admit;
    return word == PROBE_ADMITTED || voters.memory[node].taken == NULL
               ? ""
               : voters.memory[node].taken;
}

void voters_found(int node, enum call_probe_word word, const char *admit,
                  const char *quarantine)
{
    const struct voters_memory *memory = &voters.memory[node];
    char completed[2 * CALL_STATE_MAX], taken[2 * CALL_STATE_MAX];
    char heard[CALL_WITNESSES_MAX + 1];
    bool is_durable = voters.is_durable && !memory->is_fleeting;
    if (word == PROBE_ADMITTED || (strchr(admit, '@') != NULL && is_durable))
        hear(node);
    const struct call_probe probe = {
        .word = word,
        .admit = complete(node, admit, completed),
        .quarantine = span_of(quarantine),
        .max_ttl_ms = memory->has_never_voted  ? 0
                      : voters.max_ttl_ms != 0 ? voters.max_ttl_ms
                                               : VOTERS_TTL_MS,
        .is_durable = is_durable,
        .generation = memory->generation,
        .rest_us = memory->rest_us,
        .number = memory->number,
        .witnesses = print_heard(node, heard, sizeof heard),
        .taken = complete(node, taken_of(node, word, admit), taken),
        .passed = span_of(memory->passed != NULL ? memory->passed : ""),
    };
    last[node].word = word;
    last[node].admit = admit;
    last[node].quarantine = quarantine;
    members_on_probe(&voters.members, node, &probe,
                     voters.now_us - voters.trip_us, voters.now_us);
}

void voters_come(int node, enum call_probe_word word, const char *admit,
                 const char *quarantine)
{
    struct member_action action;
    voters_up(node);
    ck_assert(members_next(&voters.members, voters.now_us, &action));
    ck_assert(action.kind == MEMBER_PROBE || action.kind == MEMBER_OBSERVE);
    ck_assert_int_eq(action.node, node);
    voters_found(node, word, admit, quarantine);
}

void voters_all(enum call_probe_word word, const char *admit,
                const char *quarantine)
{
    for (int i = 0; i < voters.settings.nodes; i++)
        voters_come(i, word, admit, quarantine);
}

int voters_probe_around(void)
{
    for (int probes = 0; probes < 100; probes++) {
        struct members before = voters.members;
        struct member_action action;
        if (!members_next(&voters.members, voters.now_us, &action))
            return probes;
        if (action.kind != MEMBER_OBSERVE && action.kind != MEMBER_PROBE) {
            voters.members = before;
            return probes;
        }
        voters.quarantining[action.node] += action.kind == MEMBER_PROBE;
        ck_assert_ptr_nonnull(last[action.node].admit);
        enum call_probe_word word = last[action.node].word;
        if (word == PROBE_FRESH || word == PROBE_CREATED)
            word = PROBE_QUARANTINED; /* by the last probe */
        if (word == PROBE_BARE && action.kind == MEMBER_PROBE)
            continue; /* it would be quarantined: no answer comes */
        voters_found(action.node, word, last[action.node].admit,
                     last[action.node].quarantine);
    }
    ck_abort_msg("it searches for ever");
    return 0;
}

void voters_wait(void)
{
    (void)voters_probe_around();
    voters_expect_nothing();
}

void voters_expect_probes_only(int probes)
{
    for (int i = 0; i < 200; i++) {
        voters_pass(VOTERS_SECOND);
        ck_assert_int_eq(voters_probe_around(), probes);
        voters_expect_nothing();
    }
}

void voters_pass_without(enum member_action_kind kind, int64_t us)
{
    for (int64_t until_us = voters.now_us + us;;) {
        struct member_action action;
        struct members before;
        (void)voters_probe_around();
        before = voters.members;
        bool is_any = members_next(&voters.members, voters.now_us, &action);
        ck_assert_msg(!is_any || action.kind != kind,
                      "action %d on node %d, %lld us too early",
                      (int)action.kind, action.node,
                      (long long)(until_us - voters.now_us));
        voters.members = before;
        if (voters.now_us == until_us)
            return;
        int64_t step_us = until_us - voters.now_us;
        voters_pass(step_us < HEARTBEAT_US / 2 ? step_us : HEARTBEAT_US / 2);
    }
}

void voters_pass_until(enum member_action_kind kind, int64_t us)
{
    voters_pass_without(kind, us - 1);
    voters_pass(1);
    for (int i = 0; i < voters.settings.nodes; i++)
        members_want_probe(&voters.members, i, voters.now_us);
    (void)voters_probe_around();
}

/* ---- other actions ------------------------------------------------------- */

void voters_do(enum member_action_kind kind, int node)
{
    voters_expect(kind, node);
    members_on_done(&voters.members, &(struct member_action){kind, node},
                    voters.now_us);
}

void voters_fail(enum member_action_kind kind, int node)
{
    const struct member_action action = {kind, node};
    members_on_failure(&voters.members, &action, voters.now_us);
}

void voters_give(enum member_action_kind kind, int node)
{
    struct member_action action;
    voters_do(kind, node);
    ck_assert(members_next(&voters.members, voters.now_us, &action));
    ck_assert(action.kind == MEMBER_OBSERVE || action.kind == MEMBER_PROBE);
    ck_assert_int_eq(action.node, node);
    voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT, "");
    VOTERS_ASSERT_REFUSAL(node, STATE_NONE);
    ck_assert_int_eq(voters_remaining_us(node), 0);
}

int64_t voters_remaining_us(int node)
{
    return rules_remaining_us(&voters.members, node, voters.now_us);
}

void voters_admit_from(int first)
{
    for (int i = first; i < voters.settings.nodes; i++)
        voters_come(i, PROBE_ADMITTED, VOTERS_ADMIT, "");
}
