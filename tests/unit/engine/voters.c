#include "voters.h"

#include <check.h>
#include <stdio.h>

#include "../../../server/engine/eligibility.h"

struct voters voters;

static struct {
    enum call_look_word word;
    const char *admit;
    const char *mark;
} last[VOTERS_NODES];

void voters_spread_clocks(int64_t spread_us)
{
    admission_on_median(&voters.admission, true, VOTERS_EPOCH_US, spread_us);
}

void voters_begin_again(void)
{
    admission_init(&voters.admission, &voters.settings);
    voters_spread_clocks(0);
    for (int i = 0; i < VOTERS_NODES; i++)
        admission_on_clock(&voters.admission, i, true);
}

void voters_begin(void)
{
    voters = (struct voters){
        .settings = {.nodes = VOTERS_NODES,
                     .quorum = VOTERS_NODES / 2 + 1,
                     .names = {"a:1", "b:1", "c:1", "d:1", "e:1"},
                     .epoch = 1,
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
    admission_on_up(&voters.admission, node, run_id, voters.is_durable,
                    voters.now_us);
}

void voters_down(int node)
{
    admission_on_down(&voters.admission, node);
}

void voters_pass(int64_t us)
{
    voters.now_us += us;
}

void voters_expect(enum admission_action_kind kind, int node)
{
    struct admission_action action;
    ck_assert(admission_next(&voters.admission, voters.now_us, &action));
    ck_assert_int_eq((int)action.kind, (int)kind);
    ck_assert_int_eq(action.node, node);
}

void voters_expect_nothing(void)
{
    struct admission_action action;
    bool is_any = admission_next(&voters.admission, voters.now_us, &action);
    ck_assert_msg(!is_any, "action %d on node %d", (int)action.kind,
                  action.node);
}

/* ---- looks --------------------------------------------------------------- */

/* With the node's name where @ stands. */
static struct span name_in(int node, const char *admit,
                           char text[CALL_STATE_MAX + 1])
{
    const char *at = strchr(admit, '@');
    if (at == NULL)
        return span_of(admit);
    int len = snprintf(text, CALL_STATE_MAX + 1, "%.*s%s%s", (int)(at - admit),
                       admit, voters.admission.witness.node[node].name, at + 1);
    return (struct span){text, (size_t)len};
}

static int64_t by_median(int64_t moment_us)
{
    return moment_us > 0 ? VOTERS_EPOCH_US + moment_us : 0;
}

/* In the order of the nodes, as a node answers. */
static struct span print_heard(int node, char *text, size_t size)
{
    const struct voters_memory *memory = &voters.memory[node];
    size_t len = 0;
    for (int i = 0; i < VOTERS_NODES; i++) {
        const struct witness_node *it = &voters.admission.witness.node[i];
        if (i != node)
            len += (size_t)snprintf(
                text + len, size - len, "%s%s=%lld m%s=%lld",
                len > 0 ? " " : "", it->name, (long long)memory->floor[i],
                it->name, (long long)by_median(memory->latest_us[i]));
    }
    return (struct span){text, len};
}

void voters_found(int node, enum call_look_word word, const char *admit,
                  const char *mark)
{
    const struct voters_memory *memory = &voters.memory[node];
    char named[CALL_STATE_MAX + 1];
    char heard[CALL_WITNESSES_MAX + 1];
    const struct call_look look = {
        .word = word,
        .admit = name_in(node, admit, named),
        .mark = span_of(mark),
        .max_ttl_ms =
            voters.max_ttl_ms != 0 ? voters.max_ttl_ms : VOTERS_TTL_MS,
        .is_durable = voters.is_durable,
        .beat = memory->beat,
        .seen_us = by_median(memory->seen_us),
        .voted_us =
            by_median(memory->voted_us != 0 ? memory->voted_us : voters.now_us),
        .witnesses = print_heard(node, heard, sizeof heard),
    };
    last[node].word = word;
    last[node].admit = admit;
    last[node].mark = mark;
    admission_on_look(&voters.admission, node, &look, voters.now_us,
                      voters.now_us);
}

void voters_come(int node, enum call_look_word word, const char *admit,
                 const char *mark)
{
    voters_up(node);
    voters_expect(ADMISSION_LOOK, node);
    voters_found(node, word, admit, mark);
}

void voters_all(enum call_look_word word, const char *admit, const char *mark)
{
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_come(i, word, admit, mark);
}

int voters_look_around(void)
{
    for (int looks = 0; looks < 100; looks++) {
        struct admission before = voters.admission;
        struct admission_action action;
        if (!admission_next(&voters.admission, voters.now_us, &action))
            return looks;
        if (action.kind != ADMISSION_PROBE && action.kind != ADMISSION_LOOK) {
            voters.admission = before;
            return looks;
        }
        ck_assert_ptr_nonnull(last[action.node].admit);
        enum call_look_word word = last[action.node].word;
        if (word == LOOK_FRESH || word == LOOK_CREATED)
            word = LOOK_MARKED; /* by the last look */
        voters_found(action.node, word, last[action.node].admit,
                     last[action.node].mark);
    }
    ck_abort_msg("it looks for ever");
    return 0;
}

void voters_wait(void)
{
    (void)voters_look_around();
    voters_expect_nothing();
}

void voters_pass_without(enum admission_action_kind kind, int64_t us)
{
    for (int64_t until_us = voters.now_us + us;;) {
        struct admission_action action;
        struct admission before;
        (void)voters_look_around();
        before = voters.admission;
        bool is_any = admission_next(&voters.admission, voters.now_us, &action);
        ck_assert_msg(!is_any || action.kind != kind,
                      "action %d on node %d, %lld us too early",
                      (int)action.kind, action.node,
                      (long long)(until_us - voters.now_us));
        voters.admission = before;
        if (voters.now_us == until_us)
            return;
        int64_t step_us = until_us - voters.now_us;
        voters_pass(step_us < HEARTBEAT_US / 2 ? step_us : HEARTBEAT_US / 2);
    }
}

void voters_pass_until(enum admission_action_kind kind, int64_t us)
{
    voters_pass_without(kind, us - 1);
    voters_pass(1);
    (void)voters_look_around();
}

/* ---- other actions ------------------------------------------------------- */

void voters_do(enum admission_action_kind kind, int node)
{
    voters_expect(kind, node);
    admission_on_done(&voters.admission, &(struct admission_action){kind, node},
                      voters.now_us);
}

void voters_fail(enum admission_action_kind kind, int node)
{
    const struct admission_action action = {kind, node};
    admission_on_failure(&voters.admission, &action, voters.now_us);
}

void voters_give(enum admission_action_kind kind, int node)
{
    struct admission_action action;
    voters_do(kind, node);
    ck_assert(admission_next(&voters.admission, voters.now_us, &action));
    ck_assert(action.kind == ADMISSION_PROBE || action.kind == ADMISSION_LOOK);
    ck_assert_int_eq(action.node, node);
    voters_found(node, LOOK_ADMITTED, VOTERS_ADMIT, "");
    VOTERS_ASSERT_REFUSAL(node, STATE_VOTING);
}

int64_t voters_remaining_us(int node)
{
    return eligibility_remaining_us(&voters.admission, node, voters.now_us);
}

const char *voters_mark_of(int64_t born_us)
{
    static char marks[VOTERS_NODES][CALL_STATE_MAX + 1];
    static int next;
    char *mark = marks[next++ % VOTERS_NODES];
    snprintf(mark, sizeof marks[0], "1:" VOTERS_LIFE ":%lld:aaaaaaaaaaaaaaaa",
             (long long)by_median(born_us));
    return mark;
}

void voters_admit_from(int first, int64_t voted_us)
{
    for (int i = first; i < VOTERS_NODES; i++) {
        voters.memory[i].voted_us = voted_us;
        voters_come(i, LOOK_ADMITTED, VOTERS_ADMIT, "");
    }
}
