#include "guarded.h"

#include <check.h>

struct guarded guarded;

static struct {
    enum script_look_word word;
    const char *admit;
    const char *mark;
} last[GUARDED_NODES];

void guarded_begin_again(void)
{
    guarded.now_us = 100 * GUARDED_SECOND;
    guard_init(&guarded.guard, &guarded.settings);
}

void guarded_begin(void)
{
    guarded = (struct guarded){
        .settings = {.nodes = GUARDED_NODES,
                     .epoch = 1,
                     .fingerprint = GUARDED_FINGERPRINT,
                     .max_ttl_ms = GUARDED_TTL_MS,
                     .node_timeout_us = 50000,
                     .first_start = FIRST_START_NO},
        .is_durable = true,
    };
    guarded_begin_again();
}

void guarded_up(int node)
{
    guard_on_up(&guarded.guard, node, GUARDED_RUN, guarded.is_durable,
                guarded.now_us);
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

void guarded_found(int node, enum script_look_word word, const char *admit,
                   const char *mark)
{
    int64_t node_now_us = GUARDED_EPOCH_US + guarded.now_us;
    const struct script_look look = {
        .word = word,
        .admit = span_of(admit),
        .mark = span_of(mark),
        .max_ttl_ms =
            guarded.max_ttl_ms != 0 ? guarded.max_ttl_ms : GUARDED_TTL_MS,
        .is_durable = guarded.is_durable,
        .beat_us = guarded.beat_us != 0 ? guarded.beat_us : node_now_us,
    };
    last[node].word = word;
    last[node].admit = admit;
    last[node].mark = mark;
    guard_on_look(&guarded.guard, node, &look, node_now_us, guarded.now_us,
                  guarded.now_us);
}

void guarded_do(enum guard_action_kind kind, int node, bool is_done)
{
    guarded_expect(kind, node);
    guard_on_done(&guarded.guard, &(struct guard_action){kind, node}, is_done,
                  GUARDED_EPOCH_US + guarded.now_us, guarded.now_us);
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
        guarded_found(action.node, last[action.node].word,
                      last[action.node].admit, last[action.node].mark);
    }
    ck_abort_msg("it looks for ever");
    return 0;
}

void guarded_all(enum script_look_word word, const char *admit,
                 const char *mark)
{
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_up(i);
        guarded_expect(GUARD_LOOK, i);
        guarded_found(i, word, admit, mark);
    }
}
