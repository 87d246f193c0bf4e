/*
 * Lines: nodes, epoch, options, and then events, each a letter with the number
 * of a node behind it, and what the event tells in the lines that follow. What
 * nodes tell of admissions, marks and witnesses may be anything that
 * script_decode lets pass.
 *
 * No node votes that was not seen admitted, none is admitted before its time,
 * and whatever is told stays within what the next call can carry.
 */
#include <assert.h>
#include <string.h>

#include "../../server/engine/eligibility.h"
#include "../../server/node/script.h"
#include "input.h"

enum {
    EVENTS_MAX = 300,
    LOOK_FIELDS = 9,
    MAX_TTL_MS = 60000,
    TIMEOUT_US = 250000,
    PATIENCE_US = 30000000,
    WATCH_US = 3 * HEARTBEAT_US,
};

/* Of a day, the longest that a node's word may make of it. */
#define QUARANTINE_MOST_US (INT64_C(86400000) * 1010 + 10000000)

struct play {
    struct admission admission;
    int64_t now_us;
    bool is_pending[NODES_MAX];
    struct admission_action pending[NODES_MAX];
    bool was_admitted[NODES_MAX]; /* by the last look */
};

static const char *const names[NODES_MAX] = {"a:1", "b:2", "c:3", "d:4", "e:5",
                                             "f:6", "g:7", "h:8", "i:9"};
static const char memory[] = ":0123456789abcdef0123456789abcdef01234567";

/* Above 0, so that a sum of some of them does not overflow. */
static int64_t some(struct input *input)
{
    return input_number(input) & (EXACT_MAX - 1);
}

/* ---- looks -------------------------------------------------------------- */

/*
 * "=" is what the server expects, "~" that of an older life; the fuzzer would
 * not find them.
 */
static struct span expand(const struct play *play, int node, struct span text,
                          char room[2 * CALL_STATE_MAX])
{
    const struct admission_node *it = &play->admission.node[node];
    bool is_old = text.len == 1 && text.ptr[0] == '~';
    if (!is_old && (text.len != 1 || text.ptr[0] != '='))
        return text;
    size_t len = span_copy(room, span_of(it->admit));
    if (is_old && len > 0)
        room[len - 1] ^= 1;
    len += span_copy(room + len, span_of(memory));
    return (struct span){room, len};
}

static struct script_field field(enum script_field_type type, struct span text,
                                 int64_t number)
{
    return (struct script_field){type, number, text};
}

static bool is_look(const struct admission_action *action)
{
    return action->kind == ADMISSION_PROBE || action->kind == ADMISSION_LOOK;
}

static void look(struct play *play, struct input *input, int node)
{
    char admit[2 * CALL_STATE_MAX];
    struct script_field fields[LOOK_FIELDS];
    const struct admission_node *it = &play->admission.node[node];
    fields[0] = field(SCRIPT_FIELD_STRING, input_line(input), 0);
    fields[1] = field(SCRIPT_FIELD_STRING,
                      it->phase == ADMISSION_DOWN
                          ? input_line(input)
                          : expand(play, node, input_line(input), admit),
                      0);
    fields[2] = field(SCRIPT_FIELD_STRING, input_line(input), 0);
    for (int i = 3; i < LOOK_FIELDS - 1; i++)
        fields[i] =
            field(SCRIPT_FIELD_INTEGER, span_of(""), input_number(input));
    fields[LOOK_FIELDS - 1] = field(SCRIPT_FIELD_STRING, input_line(input), 0);
    struct call_reply reply = script_decode(CALL_LOOK, 1, fields, LOOK_FIELDS);
    if (!play->is_pending[node] || !is_look(&play->pending[node]) ||
        reply.vote != VOTE_DONE)
        return;
    admission_on_look(&play->admission, node, &reply.look, play->now_us,
                      play->now_us);
    play->was_admitted[node] = reply.look.word == LOOK_ADMITTED;
    play->is_pending[node] = false;
}

/* ---- actions ------------------------------------------------------------ */

static void check_action(const struct play *play,
                         const struct admission_action *action)
{
    const struct admission *admission = &play->admission;
    const struct admission_node *it = &admission->node[action->node];
    bool is_admission =
        action->kind == ADMISSION_ADMIT || action->kind == ADMISSION_READMIT;
    assert(it->phase != ADMISSION_DOWN && !play->is_pending[action->node]);
    if (!is_admission)
        return;
    assert(it->phase == ADMISSION_MARKED && it->mark[0] != '\0');
    assert(!eligibility_has_foreign(admission, play->now_us));
    assert(action->kind != ADMISSION_READMIT || it->is_restarted);
    if (action->kind == ADMISSION_ADMIT && !admission->settings.is_off &&
        !firststart_may_admit(&admission->start, action->node))
        assert(play->now_us >= it->sighted_us + WATCH_US);
}

static void act(struct play *play)
{
    struct admission_action action;
    while (admission_next(&play->admission, play->now_us, &action)) {
        check_action(play, &action);
        play->is_pending[action.node] = true;
        play->pending[action.node] = action;
    }
}

static void end_action(struct play *play, int node, bool is_done)
{
    const struct admission_action *action = &play->pending[node];
    if (!play->is_pending[node] || (is_done && is_look(action)))
        return;
    play->is_pending[node] = false;
    if (is_done)
        admission_on_done(&play->admission, action, play->now_us);
    else
        admission_on_failure(&play->admission, action, play->now_us);
}

/* ---- events ------------------------------------------------------------- */

static void come_up(struct play *play, struct input *input, int node)
{
    static const char run_ids[] = "0123456789abcdef0123456789abcdef01234567"
                                  "89abcdef";
    char run_id[41];
    size_t from = (size_t)some(input) % 8;
    memcpy(run_id, run_ids + from, 40);
    run_id[40] = '\0';
    admission_on_up(&play->admission, node, run_id, from % 2 == 0,
                    play->now_us);
    play->is_pending[node] = play->was_admitted[node] = false;
}

static void go_down(struct play *play, int node)
{
    admission_on_down(&play->admission, node);
    play->is_pending[node] = play->was_admitted[node] = false;
}

static void happen(struct play *play, struct input *input, char event, int node)
{
    struct admission *admission = &play->admission;
    bool is_up = admission->node[node].phase != ADMISSION_DOWN;
    switch (event) {
    case 'u':
        come_up(play, input, node);
        return;
    case 'd':
        go_down(play, node);
        return;
    case 't':
        play->now_us += some(input) >> 13;
        return;
    case 'l':
        look(play, input, node);
        return;
    case 'k':
    case 'f':
        end_action(play, node, event == 'k');
        return;
    case 'q':
        admission_on_quarantined(admission, node, play->now_us);
        return;
    case 's':
        if (is_up)
            admission_on_step(admission, node);
        return;
    case 'b':
        admission_on_beat(admission, node, some(input));
        return;
    case 'c':
        admission_on_clock(admission, node, some(input) % 2);
        return;
    case 'm': {
        int64_t ahead_us = some(input);
        admission_on_median(admission, ahead_us != 0, ahead_us,
                            some(input) >> 30);
        return;
    }
    default:
        return;
    }
}

/* ---- what must hold ------------------------------------------------------ */

static void check_node(const struct play *play, int node)
{
    const struct admission *admission = &play->admission;
    const struct admission_node *it = &admission->node[node];
    char text[CALL_WITNESSES_MAX + 1];
    if (admission_refusal(admission, node) == STATE_VOTING)
        assert(it->phase == ADMISSION_ADMITTED && !it->must_revoke &&
               play->was_admitted[node]);
    assert(strnlen(it->admit, sizeof it->admit) < sizeof it->admit);
    assert(strnlen(it->found, sizeof it->found) < sizeof it->found);
    assert(strnlen(it->mark, sizeof it->mark) < sizeof it->mark);
    int64_t left_us = eligibility_remaining_us(admission, node, play->now_us);
    assert(left_us >= 0 && left_us <= QUARANTINE_MOST_US + PATIENCE_US);
    int64_t floor = admission->witness.node[node].floor;
    assert(floor >= 0 && floor <= EXACT_MAX);
    struct span words =
        witness_text(&admission->witness, node, text, sizeof text);
    assert(words.len <= CALL_WITNESSES_MAX);
}

static void check(const struct play *play)
{
    int64_t quarantine_us = eligibility_quarantine_us(&play->admission);
    assert(quarantine_us >= 0 && quarantine_us <= QUARANTINE_MOST_US);
    for (int i = 0; i < play->admission.settings.nodes; i++)
        check_node(play, i);
}

static void begin(struct play *play, struct input *input)
{
    int nodes = (int)(some(input) % NODES_MAX) + 1;
    int epoch = (int)(some(input) % 1000000) + 1;
    int64_t options = some(input);
    struct admission_settings settings = {
        .nodes = nodes,
        .quorum = nodes / 2 + 1,
        .epoch = epoch,
        .fingerprint = "00112233445566ff",
        .max_ttl_ms = MAX_TTL_MS,
        .node_timeout_us = TIMEOUT_US,
        .first_start = (enum first_start)(options % 3),
        .has_take_over = options & 4,
        .is_off = options & 8,
    };
    memcpy(settings.names, names, sizeof names);
    memset(play, 0, sizeof *play);
    play->now_us = INT64_C(1000000000);
    admission_init(&play->admission, &settings);
}

void fuzz(struct input *input)
{
    static struct play play;
    begin(&play, input);
    for (int i = 0; i < EVENTS_MAX && input_has_more(input); i++) {
        struct span event = input_line(input);
        int node = event.len == 2 ? event.ptr[1] - '0' : 0;
        if (event.len == 0 || node < 0 || node >= play.admission.settings.nodes)
            continue;
        happen(&play, input, event.ptr[0], node);
        act(&play);
        check(&play);
    }
}
