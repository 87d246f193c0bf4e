#include "guarded.h"

#include <check.h>
#include <stdio.h>

struct guarded guarded;

static struct {
    enum call_look_word word;
    const char *admit;
    const char *mark;
} last[GUARDED_NODES];

void guarded_spread_clocks(int64_t spread_us)
{
    guard_on_median(&guarded.guard, true, GUARDED_EPOCH_US, spread_us);
}

void guarded_begin_again(void)
{
    guard_init(&guarded.guard, &guarded.settings);
    guarded_spread_clocks(0);
    for (int i = 0; i < GUARDED_NODES; i++)
        guard_on_clock(&guarded.guard, i, true);
}

void guarded_begin(void)
{
    guarded = (struct guarded){
        .settings = {.nodes = GUARDED_NODES,
                     .quorum = GUARDED_NODES / 2 + 1,
                     .names = {"a:1", "b:1", "c:1", "d:1", "e:1"},
                     .epoch = 1,
                     .fingerprint = GUARDED_FINGERPRINT,
                     .max_ttl_ms = GUARDED_TTL_MS,
                     .node_timeout_us = GUARDED_TIMEOUT_US,
                     .first_start = FIRST_START_NO},
        .now_us = 100 * GUARDED_SECOND,
        .is_durable = true,
    };
    guarded_begin_again();
}

void guarded_up(int node)
{
    char run_id[] = GUARDED_RUN;
    run_id[0] = (char)('0' + node);
    guard_on_up(&guarded.guard, node, run_id, guarded.is_durable,
                guarded.now_us);
}

void guarded_down(int node)
{
    guard_on_down(&guarded.guard, node);
}

void guarded_pass(int64_t us)
{
    guarded.now_us += us;
}

void guarded_expect(enum guard_action_kind kind, int node)
{
    struct guard_action action;
    ck_assert(guard_next(&guarded.guard, guarded.now_us, &action));
    ck_assert_int_eq((int)action.kind, (int)kind);
    ck_assert_int_eq(action.node, node);
}

void guarded_expect_nothing(void)
{
    struct guard_action action;
    bool is_any = guard_next(&guarded.guard, guarded.now_us, &action);
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
                       admit, guarded.guard.witness.node[node].name, at + 1);
    return (struct span){text, (size_t)len};
}

/* In the order of the nodes, as a node answers. */
static struct span print_floors(int node, char *text, size_t size)
{
    size_t len = 0;
    for (int i = 0; i < GUARDED_NODES; i++)
        if (i != node)
            len += (size_t)snprintf(text + len, size - len, "%s%s=%lld",
                                    len > 0 ? " " : "",
                                    guarded.guard.witness.node[i].name,
                                    (long long)guarded.memory[node].floor[i]);
    return (struct span){text, len};
}

static int64_t by_median(int64_t moment_us)
{
    return moment_us > 0 ? GUARDED_EPOCH_US + moment_us : 0;
}

void guarded_found(int node, enum call_look_word word, const char *admit,
                   const char *mark)
{
    const struct guarded_memory *memory = &guarded.memory[node];
    char named[CALL_STATE_MAX + 1];
    char floors[CALL_WITNESSES_MAX + 1];
    const struct call_look look = {
        .word = word,
        .admit = name_in(node, admit, named),
        .mark = span_of(mark),
        .max_ttl_ms =
            guarded.max_ttl_ms != 0 ? guarded.max_ttl_ms : GUARDED_TTL_MS,
        .is_durable = guarded.is_durable,
        .beat = memory->beat,
        .seen_us = by_median(memory->seen_us),
        .voted_us = by_median(memory->voted_us != 0 ? memory->voted_us
                                                    : guarded.now_us),
        .witnesses = print_floors(node, floors, sizeof floors),
    };
    last[node].word = word;
    last[node].admit = admit;
    last[node].mark = mark;
    guard_on_look(&guarded.guard, node, &look, guarded.now_us, guarded.now_us);
}

void guarded_come(int node, enum call_look_word word, const char *admit,
                  const char *mark)
{
    guarded_up(node);
    guarded_expect(GUARD_LOOK, node);
    guarded_found(node, word, admit, mark);
}

void guarded_all(enum call_look_word word, const char *admit, const char *mark)
{
    for (int i = 0; i < GUARDED_NODES; i++)
        guarded_come(i, word, admit, mark);
}

int guarded_look_around(void)
{
    for (int looks = 0; looks < 100; looks++) {
        struct guard before = guarded.guard;
        struct guard_action action;
        if (!guard_next(&guarded.guard, guarded.now_us, &action))
            return looks;
        if (action.kind != GUARD_PEEK && action.kind != GUARD_LOOK) {
            guarded.guard = before;
            return looks;
        }
        ck_assert_ptr_nonnull(last[action.node].admit);
        enum call_look_word word = last[action.node].word;
        if (word == LOOK_FRESH || word == LOOK_CREATED)
            word = LOOK_MARKED; /* by the last look */
        guarded_found(action.node, word, last[action.node].admit,
                      last[action.node].mark);
    }
    ck_abort_msg("it looks for ever");
    return 0;
}

void guarded_wait(void)
{
    (void)guarded_look_around();
    guarded_expect_nothing();
}

void guarded_pass_without(enum guard_action_kind kind, int64_t us)
{
    for (int64_t until_us = guarded.now_us + us;;) {
        struct guard_action action;
        struct guard before;
        (void)guarded_look_around();
        before = guarded.guard;
        bool is_any = guard_next(&guarded.guard, guarded.now_us, &action);
        ck_assert_msg(!is_any || action.kind != kind,
                      "action %d on node %d, %lld us too early",
                      (int)action.kind, action.node,
                      (long long)(until_us - guarded.now_us));
        guarded.guard = before;
        if (guarded.now_us == until_us)
            return;
        int64_t step_us = until_us - guarded.now_us;
        guarded_pass(step_us < HEARTBEAT_US / 2 ? step_us : HEARTBEAT_US / 2);
    }
}

/* ---- other actions ------------------------------------------------------- */

void guarded_do(enum guard_action_kind kind, int node)
{
    guarded_expect(kind, node);
    guard_on_done(&guarded.guard, &(struct guard_action){kind, node},
                  guarded.now_us);
}

void guarded_give(enum guard_action_kind kind, int node)
{
    struct guard_action action;
    guarded_do(kind, node);
    ck_assert(guard_next(&guarded.guard, guarded.now_us, &action));
    ck_assert(action.kind == GUARD_PEEK || action.kind == GUARD_LOOK);
    ck_assert_int_eq(action.node, node);
    guarded_found(node, LOOK_ADMITTED, GUARDED_ADMIT, "");
    GUARDED_ASSERT_REFUSAL(node, STATE_VOTING);
}

const char *guarded_mark_of(int64_t born_us)
{
    static char marks[GUARDED_NODES][CALL_STATE_MAX + 1];
    static int next;
    char *mark = marks[next++ % GUARDED_NODES];
    snprintf(mark, sizeof marks[0], "1:" GUARDED_LIFE ":%lld:aaaaaaaaaaaaaaaa",
             (long long)by_median(born_us));
    return mark;
}

void guarded_admit_from(int first, int64_t voted_us)
{
    for (int i = first; i < GUARDED_NODES; i++) {
        guarded.memory[i].voted_us = voted_us;
        guarded_come(i, LOOK_ADMITTED, GUARDED_ADMIT, "");
    }
}
