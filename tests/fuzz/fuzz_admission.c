/* SPDX-License-Identifier: MIT */
/*
 * Lines: nodes, epoch, options, and then events, each a letter with the number
 * of a node behind it, and what the event tells in the lines that follow. What
 * nodes tell of admissions, quarantine records and witnesses may be anything
 * that script_decode lets pass; what the fuzzer would not find has a short
 * form.
 *
 * No node votes that was not seen admitted, none is admitted before its time or
 * before enough others were asked, and whatever is told stays within what the
 * next call can carry.
 */
#include <assert.h>
#include <string.h>

#include "../../server/engine/voting/members.h"
#include "../../server/node/script.h"
#include "input.h"

enum {
    EVENTS_MAX = 300,
    PROBE_FIELDS = 12,
    PROBE_TEXTS = 5,
    MAX_TTL_MS = 60000,
    TIMEOUT_US = 250000,
    PATIENCE_US = 30000000,
};

/* Of a day, the longest that a node's word may make of it. */
#define QUARANTINE_MOST_US (INT64_C(86400000) * 1010 + 10000000)
#define REST_MOST_US (EXACT_MAX + EXACT_MAX / 100 + 1)

struct play {
    struct members members;
    int64_t now_us;
    bool is_pending[NODES_MAX];
    struct member_action pending[NODES_MAX];
    bool was_admitted[NODES_MAX]; /* by the last probe */
    /* examines each node that told the latest incarnation of each, and that
     * incarnation */
    int told[NODES_MAX][NODES_MAX];
    char latest[NODES_MAX][INCARNATION_LEN + 1];
};

static const char *const names[NODES_MAX] = {"a:1", "b:2", "c:3", "d:4", "e:5",
                                             "f:6", "g:7", "h:8", "i:9"};
static const char memory[] = ":0123456789abcdef0123456789abcdef01234567";

/* Above 0, so that a sum of some of them does not overflow. */
static int64_t some(struct input *input)
{
    return input_number(input) & (EXACT_MAX - 1);
}

/* ---- probes -------------------------------------------------------------- */

static size_t put(char *room, size_t len, const char *text)
{
    return len + span_copy(room + len, span_of(text));
}

/* A digit and zeros: an incarnation, or a generation. */
static size_t put_number(char *room, size_t len, char digit)
{
    char text[] = "00000000000000000000000000";
    text[digit % 2 == 0 ? 15 : 25] = (char)('0' + (digit & 7));
    return put(room, len, text);
}

/* What the server expects of the node, with this incarnation and news. */
static size_t put_expected(const struct member *it, char *room,
                           struct span incarnation, const char *news)
{
    const char *run_id = strrchr(it->admit, ':');
    size_t len = span_copy(
        room, (struct span){it->admit, (size_t)(run_id - it->admit) + 1});
    len += span_copy(room + len, incarnation);
    len = put(room, len, news);
    len = put(room, len, run_id);
    return put(room, len, memory);
}

/*
 * "=" is an admission that the server expects, with the incarnation that it
 * knows, or that of a digit behind it; "~" that of an older life; "*" and a
 * digit, in a quarantine record, is one of this life with that incarnation.
 */
static struct span expand(const struct play *play, int node, struct span text,
                          const char *begins, char room[CALL_WITNESSES_MAX])
{
    const struct member *it = &play->members.node[node];
    /* cppcheck-suppress variableScope; the span is of it */
    char digits[INCARNATION_LEN + 1] = "";
    char sign = '\0';
    if (text.len == 1 || text.len == 2)
        sign = text.ptr[0];
    bool is_quarantine = sign == '*';
    if (sign == '\0' || strchr(begins, sign) == NULL || it->admit[0] == '\0' ||
        (is_quarantine && text.len == 1))
        return text;
    struct span incarnation = span_of(it->incarnation);
    if (text.len == 2)
        incarnation = (struct span){digits, put_number(digits, 0, text.ptr[1])};
    size_t len =
        put_expected(it, room, incarnation, is_quarantine ? ":" : ":0");
    if (sign == '~')
        room[len - sizeof memory] ^= 1;
    return (struct span){room, len};
}

/* "*" and digits: a generation and an incarnation of each other node in turn.
 */
static struct span expand_witnesses(const struct play *play, int node,
                                    struct span text,
                                    char room[CALL_WITNESSES_MAX])
{
    const struct witness *witness = &play->members.witness;
    size_t len = 0, at = 1;
    if (text.len == 0 || text.ptr[0] != '*')
        return text;
    for (int i = 0; i < witness->count && at + 1 < text.len; i++) {
        if (i == node)
            continue;
        for (int j = 0; j < 2; j++, at++)
            len = put_number(room, len, text.ptr[at]);
    }
    return (struct span){room, len};
}

static struct script_field field(enum script_field_type type, struct span text,
                                 int64_t number)
{
    return (struct script_field){type, number, text};
}

static bool is_check(const struct member_action *action)
{
    return action->kind == MEMBER_OBSERVE || action->kind == MEMBER_PROBE;
}

/*
 * Whom this probe, at a node that is admitted, counts for: those whose latest
 * incarnation it tells, even if the server has not seen it on the node itself
 * yet.
 */
static void note_reported(struct play *play, int node)
{
    const struct members *members = &play->members;
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct witness_node *known = &members->witness.node[i];
        if (strcmp(play->latest[i], known->latest) != 0)
            memset(play->told[i], 0, sizeof play->told[i]);
        strcpy(play->latest[i], known->latest);
        play->told[i][node] +=
            play->was_admitted[node] && (known->carriers & 1u << node);
    }
}

/* Takes what stands before the next "|" off the text. */
static struct span take_part(struct span *text)
{
    const char *bar = text->len > 0 ? memchr(text->ptr, '|', text->len) : NULL;
    size_t len = bar != NULL ? (size_t)(bar - text->ptr) : text->len;
    struct span part = {text->ptr, len};
    size_t used = bar != NULL ? len + 1 : len;
    *text = (struct span){text->ptr + used, text->len - used};
    return part;
}

/* The quarantine record's line may tell what was taken and passed as well. */
static void probe(struct play *play, struct input *input, int node)
{
    char admit[CALL_WITNESSES_MAX], quarantine[CALL_WITNESSES_MAX],
        heard[CALL_WITNESSES_MAX], taken[CALL_WITNESSES_MAX];
    struct script_field fields[PROBE_FIELDS];
    fields[0] = field(SCRIPT_FIELD_STRING, input_line(input), 0);
    fields[1] = field(SCRIPT_FIELD_STRING,
                      expand(play, node, input_line(input), "=~", admit), 0);
    struct span line = input_line(input);
    fields[2] = field(SCRIPT_FIELD_STRING,
                      expand(play, node, take_part(&line), "*", quarantine), 0);
    fields[3] = field(SCRIPT_FIELD_STRING,
                      expand(play, node, take_part(&line), "=~", taken), 0);
    fields[4] = field(SCRIPT_FIELD_STRING, line, 0);
    for (int i = PROBE_TEXTS; i < PROBE_FIELDS - 1; i++)
        fields[i] =
            field(SCRIPT_FIELD_INTEGER, span_of(""), input_number(input));
    fields[PROBE_FIELDS - 1] =
        field(SCRIPT_FIELD_STRING,
              expand_witnesses(play, node, input_line(input), heard), 0);
    struct call_reply reply =
        script_decode(CALL_PROBE, 1, fields, PROBE_FIELDS);
    if (!play->is_pending[node] || !is_check(&play->pending[node]) ||
        reply.vote != VOTE_DONE)
        return;
    members_on_probe(&play->members, node, &reply.probe, play->now_us,
                     play->now_us);
    play->was_admitted[node] = reply.probe.word == PROBE_ADMITTED;
    play->is_pending[node] = false;
    note_reported(play, node);
}

/* ---- actions ------------------------------------------------------------ */

/* A majority of others were seen to know of it twice; or it was quarantined for
 * a quarantine, and fewer of them vote. */
static void check_time(const struct play *play, int node)
{
    const struct members *members = &play->members;
    const struct member *it = &members->node[node];
    bool is_latest =
        strcmp(members->witness.node[node].latest, it->incarnation) == 0;
    int told_twice = 0, voting = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        bool is_other = i != node;
        told_twice += is_other && is_latest && play->told[node][i] >= 2;
        voting += is_other && members->node[i].is_clock_good &&
                  members_refusal(members, i) == STATE_NONE;
    }
    bool is_time =
        play->now_us >= it->sighted_us + rules_quarantine_us(members);
    assert(told_twice >= members->quorum ||
           (is_time && voting < members->quorum));
}

static void check_action(const struct play *play,
                         const struct member_action *action)
{
    const struct members *members = &play->members;
    const struct member *it = &members->node[action->node];
    bool is_admission =
        action->kind == MEMBER_ADMIT || action->kind == MEMBER_READMIT;
    assert(it->phase != MEMBER_DOWN && !play->is_pending[action->node]);
    if (!is_admission)
        return;
    assert(it->phase == MEMBER_QUARANTINED && it->quarantine[0] != '\0');
    assert(!rules_has_other(members, play->now_us));
    assert(action->kind != MEMBER_READMIT || it->is_restarted);
    assert(!it->is_outdated);
    /* an incarnation under other names may count instead */
    assert(
        it->incarnation[0] == '\0' ||
        !witness_knows_later(&members->witness, action->node, it->incarnation));
    if (action->kind == MEMBER_ADMIT && !members->settings.is_guard_off &&
        !firststart_may_admit(&members->start, action->node))
        check_time(play, action->node);
}

static void act(struct play *play)
{
    struct member_action action;
    while (members_next(&play->members, play->now_us, &action)) {
        check_action(play, &action);
        play->is_pending[action.node] = true;
        play->pending[action.node] = action;
    }
}

static void end_action(struct play *play, int node, bool is_done)
{
    const struct member_action *action = &play->pending[node];
    if (!play->is_pending[node] || (is_done && is_check(action)))
        return;
    play->is_pending[node] = false;
    if (is_done)
        members_on_done(&play->members, action, play->now_us);
    else
        members_on_failure(&play->members, action, play->now_us);
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
    const struct node_facts facts = {.run_id = run_id,
                                     .is_durable = from % 2 == 0};
    members_on_up(&play->members, node, &facts, play->now_us);
    play->is_pending[node] = play->was_admitted[node] = false;
}

static void go_down(struct play *play, int node)
{
    members_on_down(&play->members, node);
    play->is_pending[node] = play->was_admitted[node] = false;
}

static void happen(struct play *play, struct input *input, char event, int node)
{
    struct members *members = &play->members;
    bool is_up = members->node[node].phase != MEMBER_DOWN;
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
        probe(play, input, node);
        return;
    case 'k':
    case 'f':
        end_action(play, node, event == 'k');
        return;
    case 'q':
        members_on_quarantined(members, node, play->now_us);
        return;
    case 's':
        if (is_up)
            members_on_step(members, node);
        return;
    case 'b':
        members_on_generation(members, node, some(input));
        return;
    case 'c':
        members->node[node].is_clock_good = some(input) % 2;
        return;
    case 'm': {
        int64_t ahead_us = some(input);
        members->has_median = ahead_us != 0;
        members->median_ahead_us = ahead_us;
        return;
    }
    default:
        return;
    }
}

/* ---- what must hold ------------------------------------------------------ */

static void check_node(const struct play *play, int node)
{
    const struct members *members = &play->members;
    const struct member *it = &members->node[node];
    char text[CALL_WITNESSES_MAX + 1];
    if (members_refusal(members, node) == STATE_NONE)
        assert(it->phase == MEMBER_ADMITTED && !it->must_revoke &&
               play->was_admitted[node]);
    assert(strnlen(it->admit, sizeof it->admit) < sizeof it->admit);
    assert(strnlen(it->found, sizeof it->found) < sizeof it->found);
    assert(strnlen(it->quarantine, sizeof it->quarantine) <
           sizeof it->quarantine);
    int64_t left_us = rules_remaining_us(members, node, play->now_us);
    assert(left_us >= 0 && left_us <= REST_MOST_US);
    if (it->asked.again == 0)
        assert(left_us <= QUARANTINE_MOST_US + PATIENCE_US);
    int64_t high_water = members->witness.node[node].high_water;
    assert(high_water >= 0 && high_water <= EXACT_MAX);
    struct span words =
        witness_text(&members->witness, node, text, sizeof text);
    assert(words.len <= CALL_WITNESSES_MAX);
}

static void check(const struct play *play)
{
    int64_t quarantine_us = rules_quarantine_us(&play->members);
    assert(quarantine_us >= 0 && quarantine_us <= QUARANTINE_MOST_US);
    for (int i = 0; i < play->members.settings.nodes; i++)
        check_node(play, i);
}

static void begin(struct play *play, struct input *input)
{
    int nodes = (int)(some(input) % NODES_MAX) + 1;
    int epoch = (int)(some(input) % 1000000) + 1;
    int64_t options = some(input);
    struct engine_settings settings = {
        .nodes = nodes,
        .config_epoch = epoch,
        .fingerprint = "00112233445566ff",
        .max_ttl_ms = MAX_TTL_MS,
        .node_timeout_us = TIMEOUT_US,
        .first_start = (enum first_start)(options % 3),
        .has_take_over = options & 4,
        .is_guard_off = options & 8,
    };
    memcpy(settings.node_names, names, sizeof names);
    memset(play, 0, sizeof *play);
    play->now_us = INT64_C(1000000000);
    members_init(&play->members, &settings);
}

void fuzz(struct input *input)
{
    static struct play play;
    begin(&play, input);
    for (int i = 0; i < EVENTS_MAX && input_has_more(input); i++) {
        struct span event = input_line(input);
        int node = event.len == 2 ? event.ptr[1] - '0' : 0;
        if (event.len == 0 || node < 0 || node >= play.members.settings.nodes)
            continue;
        happen(&play, input, event.ptr[0], node);
        act(&play);
        check(&play);
    }
}
