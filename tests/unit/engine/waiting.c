/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- clients ------------------------------------------------------------ */

engine_op waiting_acquire(struct engine_acquire acquire)
{
    acquire.ttl_ms = 30000;
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    ck_assert(op != 0);
    return op;
}

void waiting_begin_limited(int most)
{
    struct engine_settings settings = play_settings;
    settings.waiters_max = most;
    play_begin_again(&settings);
    play_nodes_up();
}

engine_op waiting_ask_for(struct span resource, int64_t wait_ms)
{
    return waiting_acquire((struct engine_acquire){
        .resource = resource, .owner = span_of("web-3"), .wait_ms = wait_ms});
}

engine_op waiting_ask(void)
{
    return waiting_ask_for(PLAY_RESOURCE, WAITING_MS);
}

void waiting_check(engine_op op)
{
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
}

/* ---- nodes -------------------------------------------------------------- */

/* The oldest attempt that is under way. */
void waiting_find_held(void)
{
    play.now_us += WAITING_ROUND_TRIP_US;
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, WAITING_OTHERS);
}

void waiting_find(const char *value)
{
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) != NULL)
            play_answer_held(CALL_ACQUIRE, i, value);
}

void waiting_grant(void)
{
    play.now_us += WAITING_ROUND_TRIP_US;
    play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_GRANTED);
}

int waiting_attempts(void)
{
    return play_count(CALL_ACQUIRE) / PLAY_NODES;
}

/* Answers the listen calls, and the nodes announce from now on. */
void waiting_begin_to_announce(struct span resource, int nodes)
{
    for (int i = 0; i < nodes; i++) {
        engine_on_listener_up(play.engine, i);
        engine_on_subscribed(play.engine, i, span_of(""));
        engine_on_subscribed(play.engine, i, resource);
        engine_on_announced(play.engine, i, span_of(""), 0);
    }
}

/* One client waits, a quorum announces, and nothing is under way. */
engine_op waiting_for_news(void)
{
    engine_op op = waiting_ask();
    waiting_find_held();
    waiting_begin_to_announce(PLAY_RESOURCE, 3);
    ck_assert_int_eq(waiting_attempts(),
                     2); /* a release may have been missed */
    waiting_find_held();
    return op;
}

void waiting_announce(int node)
{
    engine_on_announced(play.engine, node, PLAY_RESOURCE, 1);
}

void waiting_heartbeats(int64_t us)
{
    for (int64_t passed_us = 0; passed_us < us; passed_us += 1000000) {
        for (int i = 0; i < 3; i++)
            engine_on_announced(play.engine, i, span_of(""), 0);
        play_advance(us - passed_us < 1000000 ? us - passed_us : 1000000);
    }
}

/* ---- permits ------------------------------------------------------------ */

void waiting_tell(int from, int to, const char *letters)
{
    for (int i = from; i < to; i++)
        PLAY_REPLY(CALL_SLOTS, i, .vote = VOTE_DONE, .pttl_ms = 5000,
                   .slots = span_of(letters));
}

int waiting_queries(void)
{
    return play_count(CALL_SLOTS) / PLAY_NODES;
}

const char *waiting_tried(void)
{
    for (int i = play.sent_count - 1; i >= 0; i--)
        if (play.sent[i].call.kind == CALL_ACQUIRE)
            return play.sent[i].resource;
    return "";
}

const char *waiting_win(int limit)
{
    static char names[8][64];
    static int next;
    char *name = names[next++ % 8];
    engine_op op = waiting_acquire((struct engine_acquire){
        .resource = span_of("pool"), .limit = limit, .permits = 1});
    waiting_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    struct span resource = play_result(op)->resource;
    snprintf(name, sizeof names[0], "%.*s", (int)resource.len, resource.ptr);
    engine_close(play.engine, op);
    return name;
}

/* ---- stories ------------------------------------------------------------ */

static engine_op story_ops['h' - 'a' + 1];
static const char *story_now; /* its rest, from the present word on */

engine_op waiting_op(char client)
{
    ck_assert_int_ge(client, 'a');
    ck_assert_int_le(client, 'h');
    return story_ops[client - 'a'];
}

static void expect(int64_t is, int64_t wanted)
{
    ck_assert_msg(is == wanted, "%lld at: %s", (long long)is, story_now);
}

/* The names of "1+2" behind this head, up to its end or a comma; in a buffer.
 */
static struct span names_of(const char *head, const char *digits)
{
    static char text[64];
    size_t len = 0;
    if (*digits == '\0' || *digits == ',')
        return PLAY_RESOURCE;
    for (; *digits != '\0' && *digits != ','; digits++)
        len += *digits == '+'
                   ? span_copy(text + len, span_of("\n"))
                   : (size_t)sprintf(text + len, "%s%c", head, *digits);
    text[len] = '\0';
    return (struct span){text, len};
}

static struct span resource_of(const char *digits)
{
    return names_of("order:", digits);
}

static struct span slots_of(const char *digits)
{
    return names_of(SLOT(), digits);
}

static void ask_as(char client, struct engine_acquire acquire, const char *how)
{
    acquire.owner = span_of("web-3");
    acquire.wait_ms = WAITING_MS;
    while ((how = strchr(how, ',')) != NULL) {
        how++;
        if (*how == 'r')
            acquire.is_shared = true;
        else if (*how == 'n')
            acquire.permits = atoi(how + 1);
        else if (*how == 'K')
            acquire.key_hash = span_of("-_0123456789abcdefghij");
        else if (*how == 'k' || *how == 'o')
            acquire.key_hash = span_of(PLAY_KEY);
        else
            acquire.wait_ms = strtol(how, NULL, 10);
        acquire.only_repeats |= *how == 'o';
    }
    story_ops[client - 'a'] = waiting_acquire(acquire);
}

static void ask(char client, const char *what)
{
    ask_as(client, (struct engine_acquire){.resource = resource_of(what)},
           what);
}

static void ask_permit(char client, const char *limit)
{
    ask_as(client,
           (struct engine_acquire){
               .resource = span_of("pool"), .limit = atoi(limit), .permits = 1},
           limit);
}

enum { NUMBER_DIGITS = 16 };

static const struct {
    const char *name;
    enum outcome outcome;
} outcomes[] = {
    {"repeated", OUTCOME_GRANTED}, /* and so for the second time */
    {"pending", OUTCOME_PENDING},
    {"granted", OUTCOME_GRANTED},
    {"held", OUTCOME_HELD},
    {"refused", OUTCOME_KEY_REFUSED},
    {"stopped", OUTCOME_STOPPED},
    {"no_quorum", OUTCOME_NO_QUORUM},
    {"full", OUTCOME_TOO_MANY_WAITERS},
};

static void watch(char client, const char *known)
{
    const char *wait = strchrnul(known, ',');
    story_ops[client - 'a'] = engine_watch(
        play.engine, PLAY_RESOURCE,
        (struct span){known, (size_t)(wait - known)},
        *wait == ',' ? strtol(wait + 1, NULL, 10) : WAITING_MS, NULL);
}

/* It is answered with this version, and reads it. */
static void expect_version(char client, const char *version)
{
    const struct engine_result *result = play_result(waiting_op(client));
    ck_assert_msg(strcmp(result->version.text, version) == 0, "%s at: %s",
                  result->version.text, story_now);
    engine_close(play.engine, waiting_op(client));
}

void waiting_await_inspection(int64_t within_us)
{
    int before = play_count(CALL_INSPECT);
    for (int64_t us = 0; us < within_us && play_count(CALL_INSPECT) == before;
         us += WAITING_TICK_US)
        play_advance(WAITING_TICK_US);
    expect(play_count(CALL_INSPECT), before + PLAY_NODES);
}

/* An inspection comes; all nodes tell the token of this digit, or '-': no lock.
 */
static void find(int64_t within_us, char digit)
{
    char value[] = PLAY_TOKEN_OF(0);
    waiting_await_inspection(within_us);
    value[NUMBER_DIGITS - 1] = digit;
    if (digit == '-')
        play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    else
        play_hold_range(CALL_INSPECT, 0, PLAY_NODES, value);
}

static void expect_outcome(char client, const char *name)
{
    size_t i = 0;
    while (strcmp(outcomes[i].name, name) != 0)
        ck_assert_uint_lt(++i, sizeof outcomes / sizeof *outcomes);
    expect(play_outcome(waiting_op(client)), outcomes[i].outcome);
    if (i == 0)
        expect(play_result(waiting_op(client))->is_repeat, true);
}

static void find_own(void)
{
    waiting_find(PLAY_OWN(1));
}

static void grant_repeat(void)
{
    play_answer_range(CALL_REPEAT, 0, PLAY_NODES, VOTE_GRANTED);
}

/* An inspection tells it. */
static void inspection_own(void)
{
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, PLAY_OWN(1));
}

static void inspection_in_vain(void)
{
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
}

static void stop(void)
{
    engine_stop_waiting(play.engine);
}

static const struct {
    const char *word;
    void (*act)(void);
} acts[] = {{"held", waiting_find_held},
            {"own", find_own},
            {"seen", inspection_own},
            {"nothing", inspection_in_vain},
            {"grant", waiting_grant},
            {"repeat", grant_repeat},
            {"stop", stop}};

static void expect_last(struct span resource)
{
    const struct play_call *last = &play.sent[play.sent_count - 1];
    expect(last->call.kind, CALL_ACQUIRE);
    ck_assert_msg(span_is(resource, last->resource), "%s at: %s",
                  last->resource, story_now);
}

/* A word about watches, with what stands behind its quarantine record. */
static bool play_watch_word(const char *word, size_t len, const char *arg)
{
    if (len == 1 && arg[-1] == '?')
        watch(*word, arg);
    else if (len == 1 && arg[-1] == '~')
        expect_version(*word, arg);
    else if (strncmp(word, "soon:", len + 1) == 0)
        find(100000, *arg);
    else if (strncmp(word, "later:", len + 1) == 0)
        find(1000000 + WAITING_TICK_US, *arg);
    else
        return false;
    return true;
}

/* "1*3" is "111"; in a buffer. */
static const char *letters_of(const char *arg)
{
    static char letters[POOL_SLOTS_MAX + 1];
    if (arg[1] != '*')
        return arg;
    size_t count = strtoul(arg + 2, NULL, 10);
    memset(letters, arg[0], count);
    letters[count] = '\0';
    return letters;
}

/* A word about permits, with what stands behind its quarantine record. */
static bool play_permit_word(const char *word, size_t len, const char *arg)
{
    int node = len > 0 ? word[len - 1] - '0' : 0;
    if (len == 1 && arg[-1] == '#')
        ask_permit(*word, arg);
    else if (strncmp(word, "full#", len + 1) == 0)
        for (int i = 0; i < atoi(arg); i++)
            (void)waiting_win(atoi(arg));
    else if (strncmp(word, "free#", len + 1) == 0)
        (void)engine_release(play.engine, slots_of(arg), play_token(7), NULL);
    else if (strncmp(word, "news#", len + 1) == 0)
        waiting_begin_to_announce(span_of(SLOT()), 3);
    else if (strncmp(word, "said", 4) == 0)
        engine_on_announced(play.engine, node, slots_of(arg),
                            PLAY_EPOCH_US * 2);
    else if (strncmp(word, "told", 4) == 0)
        waiting_tell(0, len == 5 ? node : PLAY_NODES, letters_of(arg));
    else if (strncmp(word, "from", 4) == 0)
        waiting_tell(node, node + 1, arg);
    else if (strncmp(word, "queries", len) == 0)
        expect(waiting_queries(), atoi(arg));
    else if (strncmp(word, "slots", len) == 0)
        ck_assert_msg(span_is(slots_of(arg), waiting_tried()), "%s at: %s",
                      waiting_tried(), story_now);
    else
        return false;
    return true;
}

static void play_word(const char *word)
{
    const char *arg = strpbrk(word, "@=:-.#?~");
    for (size_t i = 0; arg == NULL && i < sizeof acts / sizeof *acts; i++)
        if (strcmp(word, acts[i].word) == 0) {
            acts[i].act();
            return;
        }
    ck_assert_msg(arg != NULL, "no word: %s", word);
    size_t len = (size_t)(arg++ - word);
    if (play_watch_word(word, len, arg) || play_permit_word(word, len, arg))
        return;
    if (len == 1 && arg[-1] == '@')
        ask(*word, arg);
    else if (len == 1 && arg[-1] == '=')
        expect_outcome(*word, arg);
    else if (len == 1 && arg[-1] == '-')
        expect(engine_abandon(play.engine, waiting_op(*word)), false);
    else if (len == 1 && arg[-1] == '.')
        engine_close(play.engine, waiting_op(*word));
    else if (strncmp(word, "free", len) == 0)
        (void)engine_release(play.engine, resource_of(arg), span_of(PLAY_TOKEN),
                             NULL);
    else if (strncmp(word, "news", len) == 0)
        waiting_begin_to_announce(resource_of(arg), 3);
    else if (strncmp(word, "down", len) == 0)
        play_nodes_down(atoi(arg));
    else if (strncmp(word, "pass", len) == 0)
        play_advance(atol(arg));
    else if (strncmp(word, "round", len) == 0)
        play_await_round(atoi(arg) * PLAY_NODES);
    else if (strncmp(word, "tries", len) == 0)
        expect(waiting_attempts(), atoi(arg));
    else if (strncmp(word, "inspections", len) == 0)
        expect(play_count(CALL_INSPECT), atoi(arg) * PLAY_NODES);
    else if (strncmp(word, "for", len) == 0)
        expect_last(resource_of(arg));
    else if (strncmp(word, "waits", len) == 0)
        expect((int64_t)metrics_waiters(&play.metrics), atoi(arg));
    else if (strncmp(word, "answers", len) == 0)
        expect(play.answers, atoi(arg));
    else
        ck_abort_msg("no word: %s", word);
}

void waiting_play(const char *story)
{
    char text[512], *rest = text, *word;
    ck_assert_uint_lt(strlen(story), sizeof text);
    strcpy(text, story);
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word != '\0') {
            story_now = story + (word - text);
            play_word(word);
        }
}
