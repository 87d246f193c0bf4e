/* SPDX-License-Identifier: MIT */
/*
 * Two lines, and then bytes as a node may send them. The first line has the
 * letter of each call, and a blank where a batch ends; the second says how
 * many bytes come at once.
 *
 * Each call has at most one reply, in its turn, and that one is within the
 * limits of script.h. How the bytes are cut makes no difference. What was read
 * can be said again, and means the same.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/engine/port/token.h"
#include "input.h"
#include "peer.h"

enum { CALLS_MAX = 200, PIECES_MAX = 64 };

struct heard {
    int count;
    enum pipeline_next end;
    enum call_kind kinds[CALLS_MAX];
    struct call_reply replies[CALLS_MAX];
    size_t text_len;
    char text[CALLS_MAX * (BATCH_CALL_TEXT_MAX + 4 * CALL_STATE_MAX) +
              BATCH_TEXT_MAX];
};

/* ---- asking ------------------------------------------------------------- */

static char letter_of(enum call_kind kind)
{
    const struct call call = {.kind = kind};
    return script_letter_of(&call);
}

/* CALL_KINDS: it is no kind's. */
static enum call_kind kind_of(char letter)
{
    int kind = 0;
    while (kind < CALL_KINDS && letter_of((enum call_kind)kind) != letter)
        kind++;
    return (enum call_kind)kind;
}

static int ask(struct peer *peer, struct span line,
               enum call_kind kinds[CALLS_MAX])
{
    struct call call = {
        .resource = span_of("order:42"),
        .token = span_of("token"),
        .admit = span_of("1:f:n:run"),
        .count = 10,
    };
    int count = 0;
    for (size_t i = 0; i < line.len && count < CALLS_MAX; i++) {
        call.kind = kind_of(line.ptr[i]);
        if (call.kind == CALL_KINDS) {
            bool is_sent = pipeline_append(&peer->pipeline);
            assert(is_sent);
            continue;
        }
        kinds[count] = call.kind;
        enum vote vote = pipeline_call(&peer->pipeline, &call, (uint64_t)count);
        assert(vote == VOTE_PENDING);
        count++;
    }
    bool is_sent = pipeline_append(&peer->pipeline);
    assert(is_sent);
    return count;
}

/* ---- what is heard ------------------------------------------------------ */

static bool is_within(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

static bool may_answer(enum call_kind kind, enum vote vote)
{
    switch (vote) {
    case VOTE_GRANTED:
        return kind == CALL_ACQUIRE || kind == CALL_REPEAT ||
               kind == CALL_REPLICATE;
    case VOTE_EXTENDED:
        return kind == CALL_EXTEND;
    case VOTE_DELETED:
        return kind == CALL_RELEASE;
    case VOTE_STALE:
        return kind == CALL_ACQUIRE || kind == CALL_REPEAT;
    case VOTE_DONE:
        return kind < CALL_ACQUIRE || kind >= CALL_LISTEN;
    case VOTE_CHANGED:
        return kind < CALL_ACQUIRE || kind == CALL_REPLICATE;
    case VOTE_HELD:
        return kind >= CALL_ACQUIRE && kind < CALL_LISTEN;
    case VOTE_FREE:
        return kind == CALL_EXTEND || kind == CALL_RELEASE ||
               kind == CALL_INSPECT || kind == CALL_TOKENS;
    default:
        return true;
    }
}

static void check_probe(const struct call_probe *probe)
{
    assert(probe->word < PROBE_WORDS);
    assert(probe->admit.len <= CALL_STATE_MAX &&
           probe->quarantine.len <= CALL_STATE_MAX &&
           probe->witnesses.len <= CALL_WITNESSES_MAX);
    assert(is_within(probe->max_ttl_ms, 0, EXACT_MAX));
    assert(is_within(probe->generation, 0, EXACT_MAX));
    assert(is_within(probe->rest_us, 0, EXACT_MAX));
    assert(is_within(probe->number, 0, EXACT_MAX));
}

static void check_reply(enum call_kind kind, const struct call_reply *reply)
{
    assert(reply->vote > VOTE_PENDING && reply->vote < VOTE_KINDS);
    assert(may_answer(kind, reply->vote));
    assert(reply->state < STATE_KINDS);
    assert((reply->vote == VOTE_UNFIT) == (reply->state != STATE_NONE));
    assert(is_within(reply->node_now_us, 0, EXACT_MAX));
    assert(is_within(reply->generation, 0, EXACT_MAX));
    if (reply->vote == VOTE_HELD) {
        assert(reply->pttl_ms >= -1);
        assert(reply->value.len <= VALUE_MAX);
    } else if (kind == CALL_SLOTS) {
        assert(reply->pttl_ms >= -1 && reply->slots.len <= POOL_SLOTS_MAX);
    } else {
        assert(reply->pttl_ms == 0 && reply->value.len == 0);
    }
    if (reply->vote == VOTE_STALE)
        assert(is_within(reply->highest, 1, FENCE_MAX));
    else
        assert(is_within(reply->highest, -1, FENCE_MAX));
    if (reply->vote == VOTE_DELETED)
        assert(is_within(reply->listeners, 0, EXACT_MAX));
    else
        assert(reply->listeners == 0);
    if (vote_is_answer(reply->vote))
        assert(reply->node_now_us > 0);
    if (kind == CALL_PROBE && reply->vote == VOTE_DONE)
        check_probe(&reply->probe);
}

/* The bytes are the wire's, and gone with the next reply. */
static void keep(struct heard *heard, struct span *bytes)
{
    char *copy = heard->text + heard->text_len;
    assert(bytes->len <= sizeof heard->text - heard->text_len);
    heard->text_len += span_copy(copy, *bytes);
    bytes->ptr = copy;
}

static void hear(struct heard *heard, struct span calls, struct span bytes,
                 size_t piece)
{
    struct peer peer;
    struct pipeline_reply reply;
    heard->count = 0;
    heard->text_len = 0;
    peer_begin(&peer, bytes, piece);
    int asked = ask(&peer, calls, heard->kinds);
    while ((heard->end = peer_next(&peer, &reply)) == PIPELINE_CALL) {
        assert(heard->count < asked && reply.tag == (uint64_t)heard->count);
        check_reply(heard->kinds[heard->count], &reply.script);
        struct call_reply *kept = &heard->replies[heard->count++];
        *kept = reply.script;
        keep(heard, &kept->value);
        keep(heard, &kept->probe.admit);
        keep(heard, &kept->probe.quarantine);
        keep(heard, &kept->probe.taken);
        keep(heard, &kept->probe.passed);
        keep(heard, &kept->probe.witnesses);
        keep(heard, &kept->probe.trace);
    }
    assert(heard->end != PIPELINE_LOADED);
    peer_end(&peer);
}

/* ---- the same again ------------------------------------------------------ */

static void check_same_probe(const struct call_probe *a,
                             const struct call_probe *b)
{
    assert(a->word == b->word && a->max_ttl_ms == b->max_ttl_ms &&
           a->is_durable == b->is_durable && a->generation == b->generation &&
           a->rest_us == b->rest_us && a->number == b->number &&
           a->is_full == b->is_full);
    assert(span_is_same(a->admit, b->admit) &&
           span_is_same(a->quarantine, b->quarantine) &&
           span_is_same(a->taken, b->taken) &&
           span_is_same(a->passed, b->passed) &&
           span_is_same(a->witnesses, b->witnesses) &&
           span_is_same(a->trace, b->trace));
}

static void check_same_reply(const struct call_reply *a,
                             const struct call_reply *b)
{
    assert(a->vote == b->vote && a->node_now_us == b->node_now_us &&
           a->generation == b->generation && a->pttl_ms == b->pttl_ms &&
           a->highest == b->highest && a->listeners == b->listeners);
    assert(span_is_same(a->value, b->value));
    check_same_probe(&a->probe, &b->probe);
}

static void check_same(const struct heard *a, const struct heard *b)
{
    assert(a->count == b->count && a->end == b->end);
    for (int i = 0; i < a->count; i++)
        check_same_reply(&a->replies[i], &b->replies[i]);
}

/* ---- saying it again ---------------------------------------------------- */

static void say_string(FILE *out, struct span bytes)
{
    (void)fprintf(out, "$%zu\r\n", bytes.len);
    (void)fwrite(bytes.ptr, 1, bytes.len, out); /* none may be 0 */
    (void)fputs("\r\n", out);
}

static void say_number(FILE *out, int64_t number)
{
    (void)fprintf(out, ":%lld\r\n", (long long)number);
}

static void say_probe(FILE *out, const struct call_probe *probe)
{
    static const char *const words[PROBE_WORDS] = {
        "ADMITTED", "SUPERSEDED", "OTHER",   "MISNAMED",   "EMPTY",
        "BARE",     "FRESH",      "CREATED", "QUARANTINED"};
    (void)fputs("*13\r\n", out);
    say_string(out, span_of(words[probe->word]));
    say_string(out, probe->admit);
    say_string(out, probe->quarantine);
    say_string(out, probe->taken);
    say_string(out, probe->passed);
    say_number(out, probe->max_ttl_ms);
    say_number(out, probe->is_durable);
    say_number(out, probe->generation);
    say_number(out, probe->rest_us);
    say_number(out, probe->number);
    say_number(out, probe->is_full);
    say_string(out, probe->witnesses);
    say_string(out, probe->trace);
}

/* The letter of this answer: '.' if there is a detail, '\0' if this one stands
 * for many. */
static char say_letter(enum call_kind kind, const struct call_reply *reply)
{
    static const char letters[VOTE_KINDS] = {
        [VOTE_GRANTED] = 'G', [VOTE_EXTENDED] = 'E',
        [VOTE_DELETED] = 'D', [VOTE_DONE] = 'O',
        [VOTE_CHANGED] = 'C', [VOTE_NOT_ADMITTED] = 'Q',
        [VOTE_LATE] = 'L',    [VOTE_OUT_OF_RANGE] = 'S',
        [VOTE_FREE] = 'F',    [VOTE_STALE] = '.',
        [VOTE_HELD] = '.'};
    bool has_detail = (kind == CALL_PROBE && reply->vote == VOTE_DONE) ||
                      (kind == CALL_EXTEND && reply->vote == VOTE_FREE) ||
                      reply->listeners > 0;
    if (has_detail)
        return '.';
    return letters[reply->vote];
}

static void say_detail(FILE *out, enum call_kind kind,
                       const struct call_reply *reply)
{
    if (kind == CALL_PROBE) {
        say_probe(out, &reply->probe);
    } else if (reply->vote == VOTE_HELD) {
        (void)fputs("*3\r\n$4\r\nHELD\r\n", out);
        say_number(out, reply->pttl_ms);
        say_string(out, reply->value);
    } else if (reply->vote == VOTE_DELETED) {
        (void)fputs("*2\r\n$7\r\nDELETED\r\n", out);
        say_number(out, reply->listeners);
    } else {
        (void)fputs("*2\r\n", out);
        say_string(out, span_of(reply->vote == VOTE_STALE ? "STALE" : "FREE"));
        say_number(out, reply->highest);
    }
}

/* Whether all of them may have come from one batch. */
static bool is_one_batch(const struct heard *heard)
{
    for (int i = 0; i < heard->count; i++)
        if (heard->replies[i].node_now_us != heard->replies[0].node_now_us ||
            heard->replies[i].generation != heard->replies[0].generation)
            return false;
    return heard->count > 0 && heard->count <= BATCH_CALLS_MAX;
}

/* In letters and details; false: not all of them can be said. */
static bool say_all(FILE *out, const struct heard *heard)
{
    char letters[BATCH_CALLS_MAX];
    int details = 0;
    for (int i = 0; i < heard->count; i++) {
        letters[i] = say_letter(heard->kinds[i], &heard->replies[i]);
        details += letters[i] == '.';
        if (letters[i] == '\0' || heard->replies[i].node_now_us == 0)
            return false;
    }
    (void)fprintf(out, "*%d\r\n", 3 + details);
    say_number(out, heard->replies[0].node_now_us);
    say_number(out, heard->replies[0].generation);
    say_string(out, (struct span){letters, (size_t)heard->count});
    for (int i = 0; i < heard->count; i++)
        if (letters[i] == '.')
            say_detail(out, heard->kinds[i], &heard->replies[i]);
    return true;
}

static void say_again(const struct heard *heard, struct heard *again)
{
    char *bytes = NULL;
    size_t len = 0;
    char calls[BATCH_CALLS_MAX];
    if (!is_one_batch(heard))
        return;
    FILE *out = open_memstream(&bytes, &len);
    assert(out != NULL);
    bool is_said = say_all(out, heard);
    int rc = fclose(out);
    assert(rc == 0);
    for (int i = 0; i < heard->count; i++)
        calls[i] = letter_of(heard->kinds[i]);
    if (is_said) {
        hear(again, (struct span){calls, (size_t)heard->count},
             (struct span){bytes, len}, len);
        assert(again->count == heard->count);
        for (int i = 0; i < again->count; i++)
            check_same_reply(&again->replies[i], &heard->replies[i]);
    }
    free(bytes);
}

void fuzz(struct input *input)
{
    static struct heard whole, cut, again;
    struct span calls = input_line(input);
    size_t piece = (size_t)input_number(input);
    struct span bytes = input_rest(input);
    size_t least = bytes.len / PIECES_MAX + 1;
    hear(&whole, calls, bytes, bytes.len);
    hear(&cut, calls, bytes, piece > least ? piece : least);
    check_same(&whole, &cut);
    say_again(&whole, &again);
}
