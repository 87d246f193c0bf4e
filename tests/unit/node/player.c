/* SPDX-License-Identifier: MIT */
/*
 * Plays the transcripts: calls to a node, what it answers and what it keeps,
 * each fact written once and checked on two nodes, the real one and the
 * simulator's (stage.h). transcripts/README.md is the language.
 */
#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>

#include "../../../server/base/types.h"
#include "../../../server/engine/port/token.h"
#include "../../../server/lock/names.h"
#include "../../lib/node/simholders.h"
#include "tokens.h"
#include "transcripts.h"

#define NAME "1:fingerprint:0123456789abcdef:"
#define NONCE "0011223344:"
#define OLD_INCARNATION "16000000000000001234567890"
#define OLD                                                                    \
    NAME OLD_INCARNATION ":3:old:"                                             \
                         "ffffffffffffffffffffffffffffffffffffffff"
#define MEDIAN_US INT64_C(1700000000000001)

enum {
    TTL_MS = 60000,
    TOMBSTONE_MS = 50000,
    WINDOW_US = 15000000,
    DEADLINE_US = 5000000,
    WORDS_MAX = 80,
    PLAYED_WORDS_MAX = 4096,
    LETS_MAX = 24,
};

/* The transcript that plays; a test has a process of its own, or begins anew.
 */
static struct {
    const struct take *take;
    const struct stage *stage;
    int line;
    struct {
        char name[32];
        const char *value;
    } lets[LETS_MAX];
    const char *record, *trace, *life, *admission;
    struct call calls[STAGE_CALLS_MAX];
    char **expected[STAGE_CALLS_MAX];
    int lines[STAGE_CALLS_MAX];
    int count, batches;
    char *words[PLAYED_WORDS_MAX]; /* of the lines so far */
    int words_count;
} play;

#define FAIL_LINE(...)                                                         \
    ck_abort_msg("%s:%d (%s node): %s", play.take->file->path, play.line + 1,  \
                 play.stage->name, textf(__VA_ARGS__))

/* Lasts for the test. */
static char *copy_of(const char *text)
{
    return (char *)textf("%s", text);
}

/* The letters a to f are resources of the simulated node; behind a colon stands
 * the slot of a pool; other names stay. */
static const char *resource_of(const char *name)
{
    bool is_letter = name[0] >= 'a' && name[0] <= 'f' && name[1] == '\0';
    const char *colon = strchr(name, ':');
    if (colon != NULL)
        return textf("%.*s" NAMES_SLOT "%s", (int)(colon - name), name,
                     colon + 1);
    return is_letter ? simnode_resource(name[0] - 'a') : name;
}

static const char *resources_of(const char *names)
{
    static char text[NAMES_LEN_MAX + 1];
    struct span list[NAMES_MAX];
    char *rest = copy_of(names);
    int count = 0;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        list[count++] = span_of(resource_of(name));
    return textf("%.*s", (int)names_join(text, list, count), text);
}

static const char *bucket_of(const char *name)
{
    return textf("%d", fence_bucket(span_of(resource_of(name))));
}

static const char *string_of(struct span span)
{
    return textf("%.*s", (int)span.len, span.ptr);
}

/* The token that a name stands for. */
static const char *token_of(const char *name)
{
    char text[TOKEN_MAX + 1];
    struct span span = span_of(name);
    struct span token =
        tokens_make(span, tokens_number(span, play.stage->now_us()), text);
    return string_of(token);
}

static const char *record_part(const char *record, enum call_state_part part)
{
    return string_of(call_state_part(span_of(record), part));
}

static const char *admission_of(const char *record, int64_t news)
{
    return textf(NAME "%s:%lld%s", record_part(record, CALL_STATE_INCARNATION),
                 (long long)news, play.life);
}

static const char *life_now(void)
{
    return textf(":run:%s", play.stage->replid());
}

static const char *base_value(const char *name)
{
    char *colon = strchr(name, ':');
    const char *of = colon != NULL ? colon + 1 : "";
    for (int i = 0; i < LETS_MAX && play.lets[i].value != NULL; i++)
        if (strcmp(play.lets[i].name, name) == 0)
            return play.lets[i].value;
    const char *const texts[][2] = {
        {"now", textf("%lld", (long long)play.stage->now_us())},
        {"median", textf("%lld", (long long)MEDIAN_US)},
        {"name", NAME},
        {"old", OLD},
        {"life", play.life},
        {"old_incarnation", OLD_INCARNATION},
        {"trace", play.trace},
        {"replid", play.stage->replid()},
        {"quarantined", play.record},
        {"admission", play.admission},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i][0], name) == 0)
            return texts[i][1];
    if (strcmp(name, "born") == 0)
        return record_part(play.record, CALL_STATE_INCARNATION);
    if (strncmp(name, "news:", 5) == 0)
        return admission_of(play.record, atoll(of));
    if (strncmp(name, "token:", 6) == 0)
        return token_of(of);
    if (strncmp(name, "number:", 7) == 0)
        return textf("%lld", (long long)tokens_number(span_of(of), 0));
    if (strncmp(name, "field:", 6) == 0)
        return play.stage->field(of);
    if (strncmp(name, "slot:", 5) == 0)
        return bucket_of(of);
    if (strncmp(name, "key:", 4) == 0)
        return textf("p:%s", resource_of(of));
    if (strncmp(name, "end:", 4) == 0) /* of a lock, in ms since 1970 */
        return textf("%lld", play.stage->lock(resource_of(of)).pttl_ms +
                                 (long long)play.stage->now_us() / 1000);
    if (strncmp(name, "x:", 2) == 0) /* so many times x */
        return textf("%.*s", atoi(of), textf("%0*d", atoi(of), 0));
    FAIL_LINE("nothing is called {%s}", name);
}

/* {name}, {name+5}, {name-5}: of a longer one, only the last digit changes. */
static const char *evaluate(const char *text)
{
    const char *sign = text + strlen(text);
    while (sign > text && isdigit((unsigned char)sign[-1]))
        sign--;
    if (sign == text || *sign == '\0' || strchr("+-", *--sign) == NULL)
        return base_value(text);
    const char *base = base_value(textf("%.*s", (int)(sign - text), text));
    if (strlen(base) <= 18)
        return textf("%lld", atoll(base) + atoll(sign));
    const char *last = base + strlen(base) - 1;
    return textf("%.*s%c", (int)(last - base), base, *last + atoi(sign));
}

static const char *expand(const char *word)
{
    const char *open, *close;
    while ((open = strchr(word, '{')) != NULL &&
           (close = strchr(open, '}')) != NULL)
        word = textf("%.*s%s%s", (int)(open - word), word,
                     evaluate(textf("%.*s", (int)(close - open - 1), open + 1)),
                     close + 1);
    return word;
}

/* ---- comparing ---------------------------------------------------------- */

static const char *between(const char *text, const char **high)
{
    const char *dots = strstr(text, "..");
    if (dots == NULL)
        return NULL;
    *high = dots + 2;
    return textf("%.*s", (int)(dots - text), text);
}

/* A quarantine record that was made just now, in this data. */
static bool is_new_quarantine(const char *record, const char *nonce)
{
    const char *incarnation = record_part(record, CALL_STATE_INCARNATION);
    int64_t born_us = span_number((struct span){incarnation, 16}, 16);
    int64_t now_us = play.stage->now_us();
    return born_us > now_us - WINDOW_US && born_us <= now_us + 1000000 &&
           strcmp(record, textf(NAME "%lld%s%s", (long long)born_us, nonce,
                                life_now())) == 0;
}

/* Expected: a text; !text: another one; from..to, each of which may be missing;
 * new:nonce: a quarantine record; -: nothing. */
static bool is_as(const char *is, const char *expected)
{
    const char *high = "", *low = between(expected, &high);
    if (strcmp(expected, "-") == 0)
        return is[0] == '\0';
    if (expected[0] == '!')
        return strcmp(is, strcmp(expected, "!-") == 0 ? "" : expected + 1) != 0;
    if (strncmp(expected, "new:", 4) == 0)
        return is_new_quarantine(is, expected + 4);
    if (low == NULL || is[0] == '\0')
        return strcmp(is, expected) == 0;
    return (low[0] == '\0' || atoll(is) >= atoll(low)) &&
           (high[0] == '\0' || atoll(is) <= atoll(high));
}

static void compare(const char *what, const char *is, const char *expected)
{
    expected = expand(expected);
    if (!is_as(is, expected))
        FAIL_LINE("%s is %s, not %s", what, is[0] != '\0' ? is : "nothing",
                  expected);
}

/* ---- calls -------------------------------------------------------------- */

enum member { SPAN, INT64, INT, BOOL };

#define OF(type, member) offsetof(struct type, member)

static const struct option {
    const char *name;
    enum member type;
    size_t at;
} options[] = {
    {"admit", SPAN, OF(call, admit)},
    {"nonce", SPAN, OF(call, nonce)},
    {"found", SPAN, OF(call, found)},
    {"quarantine", SPAN, OF(call, quarantine)},
    {"dead", SPAN, OF(call, dead)},
    {"witnesses", SPAN, OF(call, witnesses)},
    {"latest", SPAN, OF(call, latest)},
    {"trace", SPAN, OF(call, trace)},
    {"key", SPAN, OF(call, key_hash)},
    {"max_ttl", INT64, OF(call, max_ttl_ms)},
    {"high_water", INT64, OF(call, high_water)},
    {"median", INT64, OF(call, median_us)},
    {"durable", BOOL, OF(call, is_durable)},
    {"objecting", BOOL, OF(call, is_objecting)},
    {"renewing", BOOL, OF(call, is_renewing)},
    {"watching", BOOL, OF(call, is_watching)},
    {"established", BOOL, OF(call, is_established)},
    {"fill", BOOL, OF(call, is_early)},
    {"ttl", INT64, OF(call, ttl_ms)},
    {"number", INT64, OF(call, number)},
    {"deadline", INT64, OF(call, node_deadline_us)},
    {"seen", INT64, OF(call, seen)},
    {"most", INT, OF(call, readers_max)},
    {"tombstone", INT64, OF(call, tombstone_ms)},
    {"listen", INT64, OF(call, listen_us)},
    {"cursor", INT64, OF(call, cursor)},
    {"count", INT, OF(call, count)},
};

static const struct option answers[] = {
    {"pttl", INT64, OF(call_reply, pttl_ms)},
    {"highest", INT64, OF(call_reply, highest)},
    {"listeners", INT64, OF(call_reply, listeners)},
    {"holders", INT64, OF(call_reply, holders)},
    {"free", BOOL, OF(call_reply, was_free)},
    {"generation", INT64, OF(call_reply, generation)},
    {"left", INT64, OF(call_reply, left)},
    {"cursor", INT64, OF(call_reply, cursor)},
    {"value", SPAN, OF(call_reply, value)},
    {"slots", SPAN, OF(call_reply, slots)},
    {"admit", SPAN, OF(call_reply, probe.admit)},
    {"quarantine", SPAN, OF(call_reply, probe.quarantine)},
    {"taken", SPAN, OF(call_reply, probe.taken)},
    {"passed", SPAN, OF(call_reply, probe.passed)},
    {"witnesses", SPAN, OF(call_reply, probe.witnesses)},
    {"trace", SPAN, OF(call_reply, probe.trace)},
    {"max_ttl", INT64, OF(call_reply, probe.max_ttl_ms)},
    {"durable", BOOL, OF(call_reply, probe.is_durable)},
    {"its_generation", INT64, OF(call_reply, probe.generation)},
    {"rest", INT64, OF(call_reply, probe.rest_us)},
    {"number", INT64, OF(call_reply, probe.number)},
    {"full", BOOL, OF(call_reply, probe.is_full)},
};

static const struct option *option_of(const struct option *list, size_t count,
                                      const char *word, const char **value)
{
    const char *equals = strchr(word, '=');
    size_t len = equals != NULL ? (size_t)(equals - word) : 0;
    for (size_t i = 0; equals != NULL && i < count; i++) {
        *value = equals + 1;
        if (strlen(list[i].name) == len && memcmp(list[i].name, word, len) == 0)
            return &list[i];
    }
    return NULL;
}

static void set_option(struct call *call, const struct option *option,
                       const char *value)
{
    void *at = (char *)call + option->at;
    const char *text = expand(value);
    if (option->type == SPAN)
        *(struct span *)at = span_of(text);
    else if (option->type == BOOL)
        *(bool *)at = atoi(text) != 0;
    else if (option->type == INT)
        *(int *)at = atoi(text);
    else
        *(int64_t *)at = atoll(text);
}

static const char *answer_text(const struct call_reply *reply,
                               const struct option *option)
{
    const void *at = (const char *)reply + option->at;
    const struct span *span = at;
    if (option->type == SPAN)
        return textf("%.*s", (int)span->len, span->ptr ? span->ptr : "");
    if (option->type == BOOL)
        return *(const bool *)at ? "1" : "0";
    return textf("%lld", (long long)*(const int64_t *)at);
}

static bool is_setter(enum call_kind kind)
{
    return kind == CALL_ACQUIRE || kind == CALL_REPEAT ||
           kind == CALL_REPLICATE;
}

/* The number that a call has: of an acquire the time, of others that of the
 * token, whether it is a name or not. */
static int64_t number_of(enum call_kind kind, const char *token, int64_t now_us)
{
    struct token_parts parts;
    if (kind == CALL_ADMIT || kind == CALL_TOKENS)
        return 0;
    if (kind == CALL_ACQUIRE || kind == CALL_REPEAT)
        return now_us;
    if (token_parse(span_of(token), &parts))
        return parts.number;
    int64_t known = tokens_number(span_of(token), now_us);
    return known != 0 ? known : now_us;
}

/* One that is granted on a free lock, that probes, may quarantine and is
 * durable, and that admits what is quarantined. */
static struct call make_call(enum call_kind kind, const char *names,
                             const char *token)
{
    bool is_of_locks = kind >= CALL_ACQUIRE && kind != CALL_SCAN;
    int64_t now_us = play.stage->now_us();
    struct call call = {
        .kind = kind,
        .resource = span_of(kind == CALL_SCAN ? names : resources_of(names)),
        .token = span_of(token),
        .admit = span_of(kind < CALL_ACQUIRE ? NAME "run"
                         : kind == CALL_LISTEN || kind == CALL_SCAN
                             ? ""
                             : play.admission),
        .nonce = span_of(NONCE),
        .quarantine = span_of(play.record),
        .trace = span_of(kind == CALL_PROBE ? play.trace : ""),
        .median_us = MEDIAN_US,
        .max_ttl_ms = TTL_MS,
        .is_durable = true,
        .ttl_ms = TTL_MS,
        .number = number_of(kind, token, now_us),
        .seen = kind == CALL_REPLICATE ? (1 << NAMES_MAX) - 1 : 0,
        .readers_max = READERS_MAX,
        .tombstone_ms = kind == CALL_REPLICATE ? TOMBSTONE_MS : 0,
        /* calls whose deadlines are far apart share no batch */
        .node_deadline_us = play.count > 0 ? play.calls[0].node_deadline_us
                                           : now_us + DEADLINE_US,
        .window_us = WINDOW_US,
        .listen_us = CALL_LISTEN_US,
        .count = 100,
    };
    if (is_of_locks && kind != CALL_SLOTS)
        fence_buckets(call.resource, call.buckets);
    return call;
}

/* As its name stands for with its number. */
static void give_token(struct call *call)
{
    char text[TOKEN_MAX + 1];
    struct span name = call->token;
    int64_t number = is_setter(call->kind) ? call->number
                                           : tokens_number(name, call->number);
    struct span token = tokens_make(name, number, text);
    call->token = span_of(textf("%.*s", (int)token.len, token.ptr));
}

static const char *told(struct span rest)
{
    const char *text = "";
    struct span name;
    while (call_next_name(&rest, &name))
        text = textf("%s%s%s", text, text[0] != '\0' ? "," : "",
                     tokens_name(textf("%.*s", (int)name.len, name.ptr)));
    return text;
}

static int count_told(struct span rest)
{
    struct span name;
    int count = 0;
    while (call_next_name(&rest, &name))
        count++;
    return count;
}

/* What it says besides the vote. */
static void expect_field(const struct call_reply *reply, const char *word)
{
    const char *value;
    const struct option *option =
        option_of(answers, sizeof answers / sizeof *answers, word, &value);
    if (strncmp(word, "told=", 5) == 0)
        compare("told", told(reply->names), word + 5);
    else if (strncmp(word, "told_count=", 11) == 0)
        compare("told_count", textf("%d", count_told(reply->names)), word + 11);
    else if (option == NULL)
        FAIL_LINE("no reply has %s", word);
    else if (strcmp(option->name, "value") == 0)
        compare("value", tokens_name(answer_text(reply, option)), value);
    else
        compare(option->name, answer_text(reply, option), value);
}

static void expect_reply(const struct call *call,
                         const struct call_reply *reply, char **words)
{
    bool is_probe = call->kind == CALL_PROBE && reply->vote == VOTE_DONE;
    const char *is = is_probe ? simcall_probe_word(reply->probe.word)
                              : ballot_name(call_ballot(reply));
    const char *expected = words[0] != NULL ? words[0] : "";
    if (!is_as(is, expected))
        FAIL_LINE("%s %.*s: %s %.*s, not %s", simcall_name(call->kind),
                  (int)call->token.len, call->token.ptr, is,
                  (int)reply->value.len,
                  reply->value.ptr != NULL ? reply->value.ptr : "", expected);
    for (int i = 1; words[0] != NULL && words[i] != NULL; i++)
        expect_field(reply, words[i]);
}

/* What a test refers to later. */
static void note_reply(const struct call *call, const struct call_reply *reply)
{
    const struct call_probe *probe = &reply->probe;
    if (probe->quarantine.len > 0)
        play.record = string_of(probe->quarantine);
    if (probe->trace.len > 0)
        play.trace = string_of(probe->trace);
    if (reply->vote == VOTE_DONE &&
        (call->kind == CALL_ADMIT || call->kind == CALL_READMIT))
        play.admission = admission_of(string_of(call->quarantine), 0);
}

/* Asks what is gathered, as one. */
static void ask_all(void)
{
    static struct call_reply replies[STAGE_CALLS_MAX];
    struct span names[STAGE_CALLS_MAX];
    int count = play.count, line = play.line;
    play.count = 0;
    if (count == 0)
        return;
    for (int i = 0; i < count; i++) {
        names[i] = play.calls[i].token;
        if (count > 1 && is_setter(play.calls[i].kind))
            tokens_renumber(names[i], play.calls[i].number);
        give_token(&play.calls[i]);
    }
    play.batches = play.stage->ask(play.calls, count, replies);
    for (int i = 0; i < count; i++) {
        play.line = play.lines[i];
        if (replies[i].vote == VOTE_GRANTED)
            tokens_renumber(names[i], play.calls[i].number);
        note_reply(&play.calls[i], &replies[i]);
        expect_reply(&play.calls[i], &replies[i], play.expected[i]);
    }
    play.line = line;
}

/* slots=a,b: they have the slots of these. */
static void set_slots(struct call *call, const char *names)
{
    char *rest = copy_of(names);
    int i = 0;
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        call->buckets[i++] = (uint16_t)atoi(bucket_of(name));
}

static void gather_call(enum call_kind kind, char **words)
{
    const char *texts[2] = {"", ""}, *value;
    int given = 0, first = 1, at = 1;
    while (words[first] != NULL && strchr(words[first], '=') == NULL &&
           strcmp(words[first], "->") != 0) {
        if (given == 2)
            FAIL_LINE("what is %s?", words[first]);
        else
            texts[given++] = expand(words[first++]);
    }
    if (play.count == STAGE_CALLS_MAX)
        FAIL_LINE("too many calls");
    struct call call = make_call(kind, texts[0], texts[1]);
    for (at = first; words[at] != NULL && strcmp(words[at], "->") != 0; at++) {
        const struct option *option = option_of(
            options, sizeof options / sizeof *options, words[at], &value);
        if (strncmp(words[at], "slots=", 6) == 0)
            set_slots(&call, words[at] + 6);
        else if (option == NULL)
            FAIL_LINE("no call has %s", words[at]);
        else
            set_option(&call, option, value);
    }
    if (words[at] == NULL)
        FAIL_LINE("-> and what is answered are missing");
    play.calls[play.count] = call;
    play.lines[play.count] = play.line;
    play.expected[play.count++] = words + at + 1;
}

/* ---- other lines -------------------------------------------------------- */

static const char *need(char **words, int place)
{
    for (int i = 0; i <= place; i++)
        if (words[i] == NULL)
            FAIL_LINE("something is missing");
    return expand(words[place]);
}

static int64_t time_of(const char *text)
{
    return strcmp(text, "-") == 0 ? STAGE_ENDLESS_MS : atoll(text);
}

static void do_set(char **words)
{
    const char *ttl =
        words[2] != NULL && words[3] != NULL ? need(words, 3) : "60000";
    const char *value = words[2] != NULL ? need(words, 2) : "";
    play.stage->set(resource_of(need(words, 1)), token_of(value), time_of(ttl));
}

static void do_drop(char **words)
{
    for (int i = 1; words[i] != NULL; i++)
        play.stage->drop(resource_of(words[i]));
}

static void do_join(char **words)
{
    const char *token = need(words, 2);
    play.stage->join(resource_of(need(words, 1)),
                     strcmp(token, "intent") == 0 ? SIM_INTENT
                                                  : token_of(token),
                     words[3] != NULL ? atoll(need(words, 3)) : TTL_MS);
}

/* Behind "a = value" stands a time, and not the next name. */
static bool has_left(char **words)
{
    return words[4] != NULL && (words[5] == NULL || strcmp(words[5], "=") != 0);
}

/* lock a = value [how long it is left]; -: there is none. */
static void do_lock(char **words)
{
    struct stage_lock it = play.stage->lock(resource_of(need(words, 1)));
    const char *value = need(words, 3);
    if (strcmp(value, "-") == 0)
        compare("pttl", textf("%lld", it.pttl_ms), "-2");
    else if (strcmp(value, "?") != 0)
        compare("value", tokens_name(it.value), value);
    if (has_left(words))
        compare("pttl", textf("%lld", it.pttl_ms), words[4]);
}

/* readers a = ~A,~B [how long the lock is left] */
static void do_readers(char **words)
{
    struct stage_lock it = play.stage->lock(resource_of(need(words, 1)));
    char *rest = copy_of(it.members);
    const char *text = "";
    for (char *member; (member = strsep(&rest, " ")) != NULL;)
        if (strcmp(member, SIM_INTENT) != 0 && member[0] != '\0')
            text = textf("%s%s%s", text, text[0] != '\0' ? "," : "",
                         tokens_name(member));
    compare("readers", text, need(words, 3));
    if (has_left(words))
        compare("pttl", textf("%lld", it.pttl_ms), words[4]);
}

/* left a ~A = how long, in ms; below 0: it ended */
static void do_left(char **words)
{
    const char *lock = resource_of(need(words, 1)), *token = need(words, 2);
    bool is_intent = strcmp(token, "intent") == 0;
    int64_t ends_ms =
        play.stage->ends_ms(lock, is_intent ? SIM_INTENT : token_of(token));
    compare(
        "left",
        ends_ms == 0
            ? ""
            : textf("%lld", (long long)(ends_ms - play.stage->now_us() / 1000)),
        need(words, 4));
}

/* field name = value; field name value: writes it, "-" deletes it. #a is the
 * slot of a, and #a~ what readers recorded of it. */
static void do_field(char **words)
{
    const char *name = need(words, 1);
    bool is_probe = strcmp(need(words, 2), "=") == 0;
    if (name[0] == '#') {
        bool is_of_readers = name[strlen(name) - 1] == '~';
        name =
            textf("%s%s",
                  bucket_of(textf("%.*s", (int)strlen(name) - 1 - is_of_readers,
                                  name + 1)),
                  is_of_readers ? "s" : "");
    }
    if (is_probe)
        compare(words[1], play.stage->field(name), need(words, 3));
    else
        play.stage->write(name, need(words, 2));
}

static void do_let(char **words)
{
    const char *name = need(words, 1), *value = need(words, 3);
    for (int i = 0; i < LETS_MAX; i++)
        if (play.lets[i].value == NULL ||
            strcmp(play.lets[i].name, name) == 0) {
            PRINT_TO(play.lets[i].name, "%s", name);
            play.lets[i].value = value;
            return;
        }
    FAIL_LINE("too many names");
}

/* is X = Y */
static void do_is(char **words)
{
    compare(words[1], need(words, 1), need(words, 3));
}

/* number A 5: from then on, that of the name. */
static void do_number(char **words)
{
    tokens_renumber(span_of(need(words, 1)), atoll(need(words, 2)));
}

static void do_memory(char **words)
{
    play.stage->fill(strcmp(need(words, 1), "full") == 0);
}

/* The node's replication ID counts from now on. */
static void do_learn(char **words)
{
    (void)words;
    play.life = life_now();
}

static void do_wait(char **words)
{
    play.stage->pass(atoll(need(words, 1)));
}

static void do_hear(char **words)
{
    if (words[1] == NULL)
        play.stage->subscribe("");
    for (int i = 1; words[i] != NULL; i++)
        play.stage->subscribe(resource_of(words[i]));
}

/* heard a=A c=A: all that was announced since, with the names of numbers. */
static void do_heard(char **words)
{
    const char *heard = play.stage->heard();
    char *rest = copy_of(heard);
    int at = 1;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            continue;
        const char *name = tokens_named(atoll(equals + 1));
        const char *slot = strchr(equals, NAMES_SLOT[0]);
        const char *expected = words[at] != NULL ? expand(words[at]) : "-";
        *equals = '\0';
        const char *says =
            textf("%s=%s%s%s", word, name != NULL ? name : equals + 1,
                  name != NULL && slot != NULL ? ":" : "",
                  name != NULL && slot != NULL ? slot + 1 : "");
        const char *wanted = strchr(expected, '=');
        if (wanted == NULL ||
            strcmp(says, textf("%s%s",
                               resource_of(textf(
                                   "%.*s", (int)(wanted - expected), expected)),
                               wanted)) != 0)
            FAIL_LINE("heard %s, not %s", says, expected);
        at++;
    }
    if (words[at] != NULL)
        FAIL_LINE("did not hear %s", words[at]);
}

static void do_batches(char **words)
{
    compare("batches", textf("%d", play.batches), need(words, 2));
}

/* redis COMMAND … [-> reply]; what begins so. */
static void do_redis(char **words)
{
    const char *all[WORDS_MAX] = {0}, *expected = NULL;
    char reply[4096];
    int count = 0;
    if (play.stage->command == NULL)
        FAIL_LINE("the simulated node takes no commands");
    for (int i = 1; words[i] != NULL && expected == NULL; i++)
        if (strcmp(words[i], "->") == 0)
            expected = words[i + 1] != NULL ? words[i + 1] : "-";
        else
            all[count++] = expand(words[i]);
    play.stage->command(all, count, reply, sizeof reply);
    if (expected != NULL)
        compare("the reply", reply, expected);
}

static void tell_redis(const char *const *words, int count)
{
    char reply[200];
    play.stage->command(words, count, reply, sizeof reply);
    if (strcmp(reply, "OK") != 0)
        FAIL_LINE("%s: %s", words[0], reply);
}

/* deny zadd, allow zadd: the user may not run it any more, or may again. */
static void change_right(char **words, const char *sign)
{
    const char *all[] = {"ACL", "SETUSER", "default",
                         textf("%s%s", sign, need(words, 1))};
    tell_redis(all, 4);
}

static void do_deny(char **words)
{
    change_right(words, "-");
}

static void do_allow(char **words)
{
    change_right(words, "+");
}

/* keys all; keys a %R~b: besides the state, the user may use only these. */
static void do_keys(char **words)
{
    const char *all[WORDS_MAX] = {"ACL", "SETUSER", "default", "allkeys"};
    int count = 4;
    if (strcmp(need(words, 1), "all") != 0) {
        all[3] = "resetkeys";
        all[count++] = "~p:redlockd:state";
        for (int i = 1; words[i] != NULL; i++) {
            const char *name = words[i];
            const char *right = strncmp(name, "%R", 2) == 0 ? "%R" : "";
            all[count++] = textf("%s~p:%s", right,
                                 resource_of(expand(name + strlen(right))));
        }
    }
    tell_redis(all, count);
}

/* locks AB- [ms]: what a, b and c have; locks = AB-: whether they have it. */
static void do_locks(char **words)
{
    static const char *const names[] = {"a", "b", "c"};
    bool is_probe = strcmp(need(words, 1), "=") == 0;
    const char *values = need(words, 1 + is_probe);
    for (int i = 0; i < 3; i++) {
        const char *lock = resource_of(names[i]);
        const char *name = textf("%c", values[i]);
        if (is_probe && *name == '-')
            compare(names[i], textf("%lld", play.stage->lock(lock).pttl_ms),
                    "-2");
        else if (is_probe)
            compare(names[i], tokens_name(play.stage->lock(lock).value), name);
        else if (*name == '-')
            play.stage->drop(lock);
        else
            play.stage->set(lock, token_of(name),
                            words[2] != NULL ? atoll(need(words, 2)) : TTL_MS);
    }
}

/* A durable node after a restart, with this generation. */
static void do_restart(char **words)
{
    const struct stage *on = play.stage;
    on->write("quarantine", "-");
    on->write("admit", OLD);
    on->write("durable", "1");
    on->write("until", "0");
    on->write("max_token", "0");
    on->write("generation", need(words, 1));
    on->write("max_ttl", "60000");
    char *made[] = {copy_of("probe"), copy_of("->"), copy_of("CREATED"), NULL};
    gather_call(CALL_PROBE, made);
    ask_all();
}

static const struct {
    const char *word;
    void (*run)(char **words);
} verbs[] = {
    {"set", do_set},         {"drop", do_drop},       {"join", do_join},
    {"lock", do_lock},       {"readers", do_readers}, {"left", do_left},
    {"field", do_field},     {"let", do_let},         {"is", do_is},
    {"number", do_number},   {"memory", do_memory},   {"learn", do_learn},
    {"wait", do_wait},       {"hear", do_hear},       {"heard", do_heard},
    {"batches", do_batches}, {"redis", do_redis},     {"restart", do_restart},
    {"deny", do_deny},       {"allow", do_allow},     {"keys", do_keys},
    {"locks", do_locks},
};

/* ---- playing ------------------------------------------------------------ */

static bool is_call(const char *word, enum call_kind *kind)
{
    for (int i = 0; i < CALL_KINDS; i++) {
        *kind = (enum call_kind)i;
        if (strcmp(word, simcall_name(*kind)) == 0)
            return true;
    }
    return false;
}

/* Words that are functions of the stage. False: it is none of them. */
static bool play_plain(const char *word)
{
    static const struct {
        const char *word;
        size_t at;
    } plain[] = {{"flush", OF(stage, flush)},
                 {"evict", OF(stage, evict)},
                 {"follow", OF(stage, follow)},
                 {"lead", OF(stage, lead)}};
    void (*run)(void);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(word, plain[i].word) == 0) {
            memcpy(&run, (const char *)play.stage + plain[i].at, sizeof run);
            run();
            return true;
        }
    return false;
}

/* The next one of several in a line: "lock a = A b = B 5..9"; NULL: none. */
static char **next_check(char **words)
{
    if (words[1] == NULL || words[2] == NULL || strcmp(words[2], "=") != 0 ||
        words[3] == NULL)
        return NULL;
    words += 3 + has_left(words);
    return words[1] != NULL && words[2] != NULL ? words : NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a line has "only" */
static void play_words(char **words, bool is_gathered)
{
    enum call_kind kind;
    if (words[0] == NULL || strcmp(words[0], "-") == 0)
        return;
    if (!is_gathered)
        ask_all();
    if (strcmp(words[0], "only") == 0) { /* only - …: not in this row */
        if (strcmp(need(words, 1), "-") != 0)
            play_words(words + 2, is_gathered);
        return;
    }
    if (play_plain(words[0]))
        return;
    if (is_call(words[0], &kind)) {
        gather_call(kind, words);
        if (!is_gathered)
            ask_all();
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(words[0], verbs[i].word) == 0) {
            for (; words != NULL; words = next_check(words))
                verbs[i].run(words);
            return;
        }
    FAIL_LINE("what is %s?", words[0]);
}

/* "&call" is asked together with the next line, if that is another one. A
 * semicolon parts what a definition or a row says in one line. */
static void play_line(const char *line)
{
    const char *rest = transcripts_fill_in(play.take, line), *word = "";
    while (word != NULL) {
        char **words = play.words + play.words_count;
        if (play.words_count + WORDS_MAX >= PLAYED_WORDS_MAX)
            FAIL_LINE("the test is too long");
        rest += strspn(rest, " ");
        bool is_gathered = rest[0] == '&';
        rest += is_gathered;
        for (int i = 0; i < WORDS_MAX; i++) {
            word = words[i] = transcripts_word(&rest);
            play.words_count++;
            if (word == NULL || strcmp(word, ";") == 0)
                break;
        }
        for (int i = 0; word != NULL && words[i] != NULL; i++)
            if (words[i] == word)
                words[i] = NULL;
        play_words(words, is_gathered);
    }
}

void transcripts_play(int number)
{
    const struct take *take = transcripts_take(number);
    memset(&play, 0, sizeof play);
    play.take = take;
    play.stage = take->stage;
    play.line = take->line - 1;
    play.record = play.trace = "";
    tokens_begin();
    play.stage->begin();
    play.life = life_now();
    play.admission = textf(NAME "0:0%s", play.life); /* as no node has it */
    if (take->is_admitted) {
        play_line("probe -> FRESH");
        play_line("admit -> done");
    }
    for (int at = take->line; at < take->file->count; at++) {
        const char *line = take->file->lines[at];
        play.line = at;
        if (transcripts_begins(line, "test"))
            break;
        if (!transcripts_is_skipped(line))
            play_line(line);
    }
    ask_all();
    play.stage->end();
}
