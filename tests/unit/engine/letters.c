/* SPDX-License-Identifier: MIT */
#include "letters.h"

#include <check.h>
#include <stdlib.h>

#include "../play.h"

static const struct {
    char letter;
    enum vote vote;
    const char *value;
} letters_of[] = {
    {'g', VOTE_GRANTED, ""},
    {'w', VOTE_GRANTED, ""},
    {'e', VOTE_EXTENDED, ""},
    {'d', VOTE_DELETED, ""},
    {'f', VOTE_FREE, ""},
    {'s', VOTE_STALE, ""},
    {'u', VOTE_DISCONNECTED, ""},
    {'q', VOTE_NOT_ADMITTED, ""},
    {'t', VOTE_UNANSWERED, ""},
    {'k', VOTE_KEY_REFUSED, ""},
    {'l', VOTE_LATE, ""},
    {'o', VOTE_UNFIT, ""},
    {'m', VOTE_UNFIT, ""},
    {'X', VOTE_HELD, ""},
    {'h', VOTE_HELD, ""},
    {'A', VOTE_HELD, PLAY_TOKEN_OF(1) ".me"},
    {'B', VOTE_HELD, PLAY_TOKEN_OF(2)},
    {'O', VOTE_HELD, PLAY_OWN(7) ".me"},
    {'F', VOTE_HELD, "value F"},
    {'G', VOTE_HELD, "value G"},
};

struct call_reply letters_reply(char letter)
{
    size_t i = 0;
    while (i + 1 < sizeof letters_of / sizeof *letters_of &&
           letters_of[i].letter != letter)
        i++;
    ck_assert_msg(letters_of[i].letter == letter, "letter %c", letter);
    return (struct call_reply){
        .vote = letters_of[i].vote,
        .state = letter == 'o'   ? STATE_LOADING
                 : letter == 'm' ? STATE_MISCONFIGURED
                                 : STATE_NONE,
        .value = span_of(letters_of[i].value),
        .pttl_ms = 1000,
        .was_free = letter == 'w',
        .holders = letter == 'h',
        /* of an extend: the one name is missing */
        .highest = letter == 's' ? 77 : letter == 'f',
    };
}

void letters_answer(enum call_kind kind, const char *letters)
{
    for (int node = 0; letters[node] != '\0'; node++)
        if (letters[node] != '.')
            play_reply(play_find(kind, node), letters_reply(letters[node]));
}

const char *letters_asked(enum call_kind kind)
{
    static char text[PLAY_CALLS_MAX + 1];
    size_t len = 0;
    for (int i = 0; i < play.sent_count; i++)
        if (play.sent[i].call.kind == kind)
            text[len++] = (char)('0' + play.sent[i].node);
    text[len] = '\0';
    return text;
}

/* ---- scenes -------------------------------------------------------------- */

enum { OPS_MAX = 4 };

static engine_op scene_ops[OPS_MAX];
static int scene_count;
static const char *scene_now; /* its rest, from the present word on */

static void expect(int64_t is, int64_t wanted)
{
    ck_assert_msg(is == wanted, "%lld at: %s", (long long)is, scene_now);
}

engine_op scene_op(void)
{
    ck_assert_int_gt(scene_count, 0);
    return scene_ops[scene_count - 1];
}

static engine_op extend(void)
{
    return play_extend(play_token(PLAY_EPOCH_US), 30000);
}

static engine_op release(void)
{
    return play_release(play_token(PLAY_EPOCH_US));
}

static engine_op inspect(void)
{
    return engine_inspect(play.engine, PLAY_RESOURCE, NULL);
}

static engine_op force(void)
{
    return engine_force(play.engine, PLAY_RESOURCE, 7, NULL);
}

static engine_op force_all(void)
{
    return engine_force(play.engine, PLAY_RESOURCE, 0, NULL);
}

/* With a key, it is granted in place of an earlier one. */
static engine_op ask_shared(struct span key_hash, int64_t wait_ms)
{
    const struct engine_acquire acquire = {.resource = PLAY_RESOURCE,
                                           .key_hash = key_hash,
                                           .ttl_ms = 30000,
                                           .wait_ms = wait_ms,
                                           .is_shared = true};
    return engine_acquire(play.engine, &acquire, NULL);
}

engine_op letters_read_again(int64_t wait_ms)
{
    return ask_shared(span_of(PLAY_KEY), wait_ms);
}

static engine_op read_shared(void)
{
    return ask_shared((struct span){0}, 0);
}

static engine_op read_again(void)
{
    return letters_read_again(0);
}

static const struct verb {
    const char *word;
    engine_op (*ask)(void);
    enum call_kind kind; /* what nodes are asked */
} verbs[] = {
    {"acquire", play_acquire, CALL_ACQUIRE},
    {"win", play_win, CALL_ACQUIRE},
    {"again", play_ask_again, CALL_ACQUIRE},
    {"repeat", NULL, CALL_REPEAT},
    {"extend", extend, CALL_EXTEND},
    {"replicate", NULL, CALL_REPLICATE},
    {"read", read_shared, CALL_ACQUIRE},
    {"read_again", read_again, CALL_REPEAT},
    {"release", release, CALL_RELEASE},
    {"inspect", inspect, CALL_INSPECT},
    {"force", force, CALL_TOKENS},
    {"force_all", force_all, CALL_TOKENS},
};

static const struct verb *find_verb(struct span word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (span_is(word, verbs[i].word))
            return &verbs[i];
    return NULL;
}

static enum outcome outcome_of(const char *name)
{
    int i = 0;
    while (strcmp(outcome_name((enum outcome)i), name) != 0)
        ck_assert_int_lt(++i, OUTCOME_KINDS);
    return (enum outcome)i;
}

static int64_t count_of(struct span what)
{
    if (span_is(what, "owed"))
        return (int64_t)play.metrics.releases_pending;
    if (span_is(what, "answers"))
        return play.answers;
    if (span_is(what, "votes"))
        return play_result(scene_op())->votes_for;
    if (span_is(what, "thin"))
        return (int64_t)play.metrics.locks_thin;
    return engine_in_flight(play.engine);
}

/* What becomes of these nodes. */
static void change_nodes(struct span what, const char *digits)
{
    for (; *digits != '\0'; digits++) {
        int node = *digits - '0';
        if (span_is(what, "down"))
            play_node_down(node);
        else if (span_is(what, "up"))
            play_node_up(node);
        else if (span_is(what, "connect"))
            play_node_connect(node);
        else
            play.is_refusing[node] = true;
    }
}

static void await(enum call_kind kind, int calls)
{
    for (int ms = 0; ms < 2000 && play_count(kind) < calls; ms++)
        play_advance(1000);
    expect(play_count(kind), calls);
}

static void play_call(enum call_kind kind, char sign, const char *arg)
{
    if (sign == ':')
        letters_answer(kind, arg);
    else if (sign == '#')
        expect(play_count(kind), atoi(arg));
    else if (sign == '~')
        await(kind, atoi(arg));
    else if (sign == '?')
        ck_assert_msg(strcmp(letters_asked(kind), arg) == 0, "%s at: %s",
                      letters_asked(kind), scene_now);
    for (; (sign == '@' || sign == '!') && *arg != '\0'; arg++)
        expect(play_find(kind, *arg - '0') != NULL, sign == '@');
}

static void play_word(const char *word)
{
    size_t len = strcspn(word, ":=#@!?~+");
    struct span head = {word, len};
    const struct verb *verb = find_verb(head);
    const char *arg = word + len + (word[len] != '\0');
    if (verb != NULL && word[len] == '\0') {
        ck_assert_int_lt(scene_count, OPS_MAX);
        scene_ops[scene_count++] = verb->ask();
    } else if (verb != NULL) {
        play_call(verb->kind, word[len], arg);
    } else if (word[len] == '=') {
        expect(play_outcome(len > 0 ? scene_ops[*word - '1'] : scene_op()),
               outcome_of(arg));
    } else if (word[len] == '#') {
        expect(count_of(head), atoi(arg));
    } else if (span_is(head, "leave")) {
        expect(engine_abandon(play.engine, scene_op()), word[len] == '+');
    } else if (span_is(head, "close")) {
        engine_close(play.engine, scene_op());
    } else if (span_is(head, "pass")) {
        play_advance(atol(arg));
    } else {
        change_nodes(head, arg);
    }
}

void scene(const char *text)
{
    scene_count = 0;
    scene_more(text);
}

void scene_more(const char *text)
{
    char words[512], *rest = words, *word;
    ck_assert_uint_lt(strlen(text), sizeof words);
    strcpy(words, text);
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word != '\0') {
            scene_now = text + (word - words);
            play_word(word);
        }
}
