/* SPDX-License-Identifier: MIT */
/*
 * The text of --plan, and what it comes to, from what an observer has seen of
 * five nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../server/plan.h"
#include "../lib/suite/suite.h"
#include "play.h"

enum { SECOND = 1000000, TEXT_SIZE = 4000 };

#define OTHERS "ffffffffffffff05"
#define OTHERS_ADMIT "1:" OTHERS ":x:" PLAY_INCARNATION(1) ":0:+"

static struct engine_settings settings;
static struct outlook outlook;
static char text[TEXT_SIZE];

static void begin_again(void)
{
    play_begin_again(&settings);
}

static void set_up(void)
{
    settings = play_settings;
    settings.is_observer = true;
    play_begin_with(&settings);
}

SUITE(plan, .set_up = set_up, .tear_down = play_end);

/* ---- what was seen ------------------------------------------------------- */

/* In what the nodes tell, @ is the name of node a, … and & that of node e; +
 * is the run_id and memory of the node itself. */
static const char *complete(int node, const char *admit)
{
    static char out[2 * CALL_STATE_MAX];
    const char *own = strchr(play_admission(node, false), ':');
    size_t len = 0;
    for (int colons = 1; colons < 5; own++)
        colons += *own == ':';
    for (; *admit != '\0'; admit++) {
        char one[2] = {*admit, '\0'};
        const char *part = one;
        if (*admit == '@' || *admit == '&')
            part = play_name(*admit == '@' ? 0 : PLAY_NODES - 1);
        else if (*admit == '+')
            part = own;
        len += (size_t)snprintf(out + len, sizeof out - len, "%s", part);
    }
    return out;
}

static void come(int node, enum call_probe_word word, const char *admit,
                 const char *mark)
{
    play_node_connect(node);
    play_answer_probe(node, word, admit[0] != '\0' ? complete(node, admit) : "",
                      mark);
}

static void come_all(int from, enum call_probe_word word, const char *admit,
                     const char *mark)
{
    for (int i = from; i < PLAY_NODES; i++)
        come(i, word, admit, mark);
}

/* The plan as it is now. */
static enum plan_status plan(void)
{
    static struct config config;
    FILE *out = fmemopen(text, sizeof text, "w");
    ck_assert_ptr_nonnull(out);
    config.nodes_count = PLAY_NODES;
    config.take_over = settings.has_take_over ? settings.config_epoch : 0;
    for (int i = 0; i < PLAY_NODES; i++) {
        PRINT_TO(config.nodes[i].name, "%c", 'a' + i);
        PRINT_TO(config.nodes[i].address, i < 2 ? "h:%c" : "%c",
                 i < 2 ? '1' + i : 'a' + i);
    }
    engine_outlook(play.engine, 0, &outlook);
    enum plan_status status = plan_print(&outlook, &config, out);
    ck_assert_int_eq(fclose(out), 0);
    return status;
}

/* The plan has each of these, up to a NULL. */
static void expect_has(const char *const words[])
{
    for (; *words != NULL; words++)
        ck_assert_has(text, *words);
}

/* ---- nothing changes ----------------------------------------------------- */

TEST(all_vote)
{
    come_all(0, PROBE_ADMITTED, "", "");
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    expect_has((const char *const[]){"node a at h:1: votes;", "node e: votes;",
                                     "votes: 5 of 5", "epoch: 1\n",
                                     "held: nothing\n", "pause: none", NULL});
    ck_assert_int_eq(play_count(CALL_PROBE), 5);
    for (int i = 0; i < play.sent_count; i++) {
        ck_assert(play.sent[i].call.is_watching);
        ck_assert_int_eq((int)play.sent[i].call.nonce.len, 0);
    }
}

TEST(what_is_held)
{
    play.rest_us = 29 * SECOND + 1;
    come_all(0, PROBE_ADMITTED, "", "");
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    ck_assert_has(text, "within 30 s\n");
    play.now_us += 31 * SECOND;
    (void)plan();
    ck_assert_has(text, "held: nothing\n");
}

/* ---- one node ------------------------------------------------------------ */

/* Of a node a that was seen so. */
static const struct {
    enum call_probe_word word;
    const char *admit, *mark;
    enum outlook_kind kind;
    int under;       /* that name; -1: none */
    int wait_s;      /* until it votes; 0: it will not */
    const char *has; /* its line */
} ones[] = {
    {PROBE_EMPTY, "", "", OUTLOOK_EMPTY, -1, 31, "within 31 s"},
    {PROBE_BARE, "1:" PLAY_FINGERPRINT ":@:" PLAY_INCARNATION(1) ":0:older:m",
     "", OUTLOOK_RESTARTED, -1, 3, "has all its data"},
    {PROBE_QUARANTINED, "", PLAY_QUARANTINE(2), OUTLOOK_QUARANTINED, -1, 1,
     "within 1 s"},
    {PROBE_MISNAMED, "1:" PLAY_FINGERPRINT ":&:" PLAY_INCARNATION(1) ":0:+", "",
     OUTLOOK_MISPLACED, 4, 0, "is used under"},
    {PROBE_BARE, "1:" PLAY_FINGERPRINT ":&:" PLAY_INCARNATION(1) ":0:older:m",
     "", OUTLOOK_MISPLACED, 4, 0, "was used under"},
    {PROBE_OTHER, "1:" OTHERS ":&:" PLAY_INCARNATION(1) ":0:+", "",
     OUTLOOK_OTHERS, 4, 0, "other names, of epoch 1, and is e"},
    {PROBE_SUPERSEDED, "7:" OTHERS ":@:" PLAY_INCARNATION(1) ":0:+", "",
     OUTLOOK_OTHERS, 0, 0, "other names, of epoch 7;"},
    {PROBE_SUPERSEDED, "", "7:" OTHERS ":x:" PLAY_INCARNATION(1) "::run:m",
     OUTLOOK_OTHERS, -1, 0, "other names, of epoch 7;"},
};

/* Beside four that vote, with locks of 30 s: nothing is interrupted. */
TEST_EACH(one_node_is_another, ones)
{
    const struct outlook_node *it = &outlook.node[0];
    play.rest_us = 30 * SECOND;
    come_all(1, PROBE_ADMITTED, "", "");
    come(0, ones[_i].word, ones[_i].admit, ones[_i].mark);
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    ck_assert_int_eq(it->kind, ones[_i].kind);
    ck_assert_int_eq(it->under, ones[_i].under);
    ck_assert_int_eq(it->will_vote, ones[_i].wait_s > 0);
    const char *without =
        it->will_vote ? textf("vote: a (within %d s)\n", ones[_i].wait_s)
                      : "vote: a\n";
    expect_has((const char *const[]){"node a at h:1: ", ones[_i].has, without,
                                     "votes: 4 of 5", "epoch: 1\n",
                                     "within 30 s\n", "pause: none", NULL});
}

TEST(a_restarted_node_that_was_not_durable)
{
    come_all(1, PROBE_ADMITTED, "", "");
    play_node_connect(0);
    struct call_reply reply = {
        .vote = VOTE_DONE,
        .probe = {.word = PROBE_BARE,
                  .admit = span_of(play_admission(0, true)),
                  .quarantine = span_of(""),
                  .witnesses = span_of("")},
    };
    play_reply(play_find(CALL_PROBE, 0), reply);
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    ck_assert_int_eq(outlook.node[0].kind, OUTLOOK_RESTARTED);
    ck_assert(!outlook.node[0].is_whole);
    ck_assert_has(text, "a (within 2 s)");
}

/* ---- all nodes ----------------------------------------------------------- */

/* The node carries its name among others, with all its data. */
static void come_with(int node, const char *names, int64_t rest_us)
{
    char admit[CALL_STATE_MAX + 1];
    PRINT_TO(admit, "1:%s:%s:%s:0:run:" PLAY_MEMORY, names, play_name(node),
             PLAY_INCARNATION(1));
    struct call_reply reply = {
        .vote = VOTE_DONE,
        .probe = {.word = PROBE_BARE,
                  .admit = span_of(admit),
                  .taken = span_of(admit),
                  .quarantine = span_of(""),
                  .rest_us = rest_us,
                  .witnesses = play_heard(node, 0, 0, PLAY_NONE)},
    };
    play_node_connect(node);
    play_reply(play_find(CALL_PROBE, node), reply);
}

#define OF_OURS(name)                                                          \
    "1:" PLAY_FINGERPRINT ":" name ":" PLAY_INCARNATION(1) ":0:+"

static const struct {
    char letter;
    enum call_probe_word word;
    const char *admit;
} looks[] = {
    {'v', PROBE_ADMITTED, ""},
    {'x', PROBE_ADMITTED, ""}, /* down after the look */
    {'e', PROBE_EMPTY, ""},
    {'b', PROBE_BARE, OF_OURS("@")}, /* restarted */
    {'m', PROBE_MISNAMED, OF_OURS("&")},
    {'f', PROBE_OTHER, OTHERS_ADMIT}, /* names of the epoch that was given, */
    {'g', PROBE_BARE, OTHERS_ADMIT},  /* of a lower one, */
    {'s', PROBE_SUPERSEDED, "5:" OTHERS ":x:" PLAY_INCARNATION(1) ":0:+"},
};

/* One of looks; o: of five others, t: of three others, O and T: with locks; d:
 * down before the look. */
static void come_as(int node, char letter)
{
    bool has_locks = letter == 'O' || letter == 'T';
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        if (letter == looks[i].letter)
            come(node, looks[i].word, looks[i].admit, "");
    if (letter != '\0' && strchr("oOtT", letter) != NULL)
        come_with(node, strchr("oO", letter) ? OTHERS : "ffffffffffffff03",
                  has_locks ? 30 * SECOND : 0);
    if (letter == 'x' || letter == 'd')
        engine_on_node_down(play.engine, node, STATE_UNREACHABLE, "refused");
}

enum { WORDS_MAX = 5 };

#define LATER "31 s if it"
#define SOON "2 s if it"
#define NEXT "give --config-epoch 2"
#define REFUSED "--take-over 2\n"

static const struct scene {
    const char *nodes; /* as above; -: it has not come */
    enum plan_status status;
    const char *has[WORDS_MAX];
    const char *lacks;
    int epoch; /* given; 0: 1 */
    enum first_start first_start;
    bool has_take_over;
} scenes[] = {
    {"bbbbb", PLAN_PAUSE, .has = {"epoch: 1, ", "20"}, .epoch = 20},
    /* a lower epoch of a few nodes does not count: names between may have
     * taken the others */
    {"bbeee", PLAN_PAUSE, .has = {"epoch: 3 is too high", "these names", NEXT},
     .epoch = 3, .first_start = FIRST_START_NO},
    {"dvvvv", PLAN_GOES_ON,
     .has = {"h:1: is unreachable (refused)", "vote: a\n"}},
    {"---vv", PLAN_UNKNOWN, .has = {"2 of 5"}, .lacks = "pause"},
    {"eeevv", PLAN_PAUSE,
     .has = {"vote: a (within 67 s), b (within 67 s), c (within 67 s)\n",
             "pause: 67 s"}},
    {"mmxvv", PLAN_PAUSE,
     .has = {"votes: 2 of 5", "vote: a, b, c\n", "until more"}},
    /* nothing is admitted beside nodes of other names */
    {"fevvv", PLAN_GOES_ON, .has = {"is not admitted while", "vote: a, b\n"}},
    {"eeeee", PLAN_PAUSE, .has = {"pause: 4 s", "together"}, .lacks = "note",
     .first_start = FIRST_START_YES},
    {"eeeee", PLAN_PAUSE, .has = {"pause: 67 s", "--first-start yes"},
     .first_start = FIRST_START_NO},
    /* other names need the next epoch */
    {"fffff", PLAN_PAUSE,
     .has = {"epoch: 1 is too low", "other names", NEXT, "67 s"},
     .lacks = "missing"},
    {"ggggg", PLAN_PAUSE, .has = {"epoch: 7 is too high", NEXT, "67 s"},
     .lacks = "missing", .epoch = 7},
    {"sssss", PLAN_PAUSE,
     .has = {"epoch: 2 is too low", "have epoch 5", "--config-epoch 6", "67 s"},
     .lacks = "missing", .epoch = 2},
    {"ggggg", PLAN_REFUSED,
     .has = {"epoch: 2 replaces other", "5 old names, 0",
             "3 are needed: ", REFUSED},
     .lacks = "missing", .epoch = 2},
    /* A majority of the old names tells what they promised: that is waited for.
     * If these are a majority of the new ones, it is all. */
    {"eeOOO", PLAN_PAUSE, .has = {LATER, "67 s", "meanwhile no server"},
     .epoch = 2},
    {"eeOOO", PLAN_PAUSE, .has = {"pause: 67 s"}, .epoch = 2,
     .has_take_over = true},
    /* three nodes become five: the new ones ask those that were taken */
    {"eettt", PLAN_PAUSE,
     .has = {SOON, "67 s", "a (within 4 s)", "is taken", "c (within 2 s)"},
     .epoch = 2},
    {"eeett", PLAN_PAUSE, .has = {"pause: 69 s"}, .epoch = 2},
    /* whichever of two lists is counted */
    {"OOOtt", PLAN_PAUSE, .has = {LATER, "67 s"}, .epoch = 2},
    {"oooTT", PLAN_PAUSE, .has = {LATER, "67 s"}, .epoch = 2},
    {"-oooo", PLAN_PAUSE, .has = {"missing: a\n", SOON}, .epoch = 2},
    /* story 65: the old names could go on, unless somebody says otherwise */
    {"eeeoo", PLAN_REFUSED,
     .has = {"is not changed", "5 old names, 2", REFUSED}, .lacks = "pause",
     .epoch = 2},
    {"eeeoo", PLAN_PAUSE, .has = {"pause: 67 s"}, .epoch = 2,
     .has_take_over = true},
    /* story 65: no old name is here */
    {"eeeee", PLAN_REFUSED, .has = {"epoch 2 is to replace", REFUSED},
     .epoch = 2, .first_start = FIRST_START_NO},
    /* story 65: it was said of a change that is over */
    {"vvvvv", PLAN_GOES_ON, .has = {"note: --take-over"},
     .has_take_over = true},
    {"vvvvv", PLAN_GOES_ON, .has = {"held: nothing"}, .lacks = "note: "},
};

TEST_EACH(a_start_is_foretold, scenes)
{
    const struct scene *scene = &scenes[_i];
    settings.config_epoch = scene->epoch > 0 ? scene->epoch : 1;
    settings.first_start = scene->first_start;
    settings.has_take_over = scene->has_take_over;
    begin_again();
    for (int i = 0; i < PLAY_NODES; i++)
        come_as(i, scene->nodes[i]);
    ck_assert_int_eq(plan(), scene->status);
    for (int i = 0; i < WORDS_MAX && scene->has[i] != NULL; i++)
        ck_assert_has(text, scene->has[i]);
    if (scene->lacks != NULL)
        ck_assert_lacks(text, textf("\n%s", scene->lacks));
}

/* ---- two looks ----------------------------------------------------------- */

static void tell_of_a(int64_t generation)
{
    for (int i = 1; i < PLAY_NODES; i++) {
        struct call_reply reply = {
            .vote = VOTE_DONE,
            .probe = {.word = PROBE_ADMITTED,
                      .admit = span_of(play_admission(i, false)),
                      .quarantine = span_of(""),
                      .witnesses =
                          play_heard(i, 0, generation, PLAY_INCARNATION(2))},
        };
        play_reply(play_find(CALL_PROBE, i), reply);
    }
}

/* Its generations tell whether a server uses the other machine; this one is
 * empty, or was admitted earlier. */
TEST_RANGE(another_machine_of_the_name_is_in_use_or_not, 0, 4)
{
    enum call_probe_word word = _i / 2 == 0 ? PROBE_EMPTY : PROBE_ADMITTED;
    bool is_in_use = _i % 2 == 1;
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_connect(i);
    play_answer_probe(0, word, "", "");
    tell_of_a(INT64_C(100000000000000));
    engine_outlook(play.engine, 0, &outlook);
    ck_assert(outlook.is_settled);
    int64_t since_us = play.now_us;
    engine_outlook(play.engine, since_us, &outlook);
    ck_assert(!outlook.is_settled);
    play_advance(SECOND);
    play_answer_probe(0, word, "", "");
    tell_of_a(INT64_C(100000000000000) + is_in_use);
    engine_outlook(play.engine, since_us, &outlook);
    ck_assert_int_eq(outlook.node[0].kind, OUTLOOK_OUTDATED);
    ck_assert(outlook.node[0].is_in_use == is_in_use);
    ck_assert(outlook.is_settled == is_in_use);
    ck_assert(outlook.node[0].will_vote);
    ck_assert_int_eq(outlook.voting, 4);
    ck_assert_int_eq(outlook.node[0].wait_us, 12 * SECOND);
    if (is_in_use)
        return;
    play_advance(2 * SECOND); /* nothing is heard of it for so long */
    engine_outlook(play.engine, since_us, &outlook);
    ck_assert_int_eq(outlook.node[0].kind, OUTLOOK_OUTDATED);
    ck_assert(!outlook.node[0].is_in_use);
}

TEST(a_node_that_does_not_answer_is_waited_for)
{
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_connect(i);
    for (int i = 1; i < PLAY_NODES; i++)
        play_answer_probe(i, PROBE_ADMITTED, "", "");
    engine_outlook(play.engine, 0, &outlook);
    ck_assert(!outlook.is_settled);
    play_node_down(0);
    engine_outlook(play.engine, 0, &outlook);
    ck_assert(outlook.is_settled);
}

/* ---- what nodes lack ----------------------------------------------------- */

TEST(all_that_is_missing_is_told)
{
    struct node_facts facts = play_facts(1);
    come_all(0, PROBE_ADMITTED, "", "");
    engine_on_node_down(play.engine, 0, STATE_NO_PERMISSION,
                        "its user lacks +del +pexpire");
    facts.lacks = "its user lacks +scan";
    facts.is_durable = false;
    facts.not_durable = "appendonly is no";
    engine_on_node_confirmed(play.engine, 1, &facts);
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    ck_assert_int_eq(outlook.node[0].kind, OUTLOOK_UNFIT);
    expect_has((const char *const[]){"(its user lacks +del +pexpire)",
                                     "note: b: ", "appendonly is no",
                                     "its user lacks +scan", NULL});
    ck_assert_lacks(text, "note: c");
}
