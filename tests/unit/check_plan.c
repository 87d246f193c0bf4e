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

static void come(int node, enum call_look_word word, const char *admit,
                 const char *mark)
{
    play_node_connect(node);
    play_answer_look(node, word, admit[0] != '\0' ? complete(node, admit) : "",
                     mark);
}

static void come_all(int from, enum call_look_word word, const char *admit,
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

/* The plan has this line. */
static void expect_line(const char *line)
{
    char whole[TEXT_SIZE + 2];
    PRINT_TO(whole, "\n%s", text);
    ck_assert_msg(strstr(whole, textf("\n%s\n", line)) != NULL,
                  "no line \"%s\" in\n%s", line, text);
}

static void expect_no_line(const char *begin)
{
    const char *found = textf("\n%s", begin);
    ck_assert_msg(strstr(text, found) == NULL, "a line \"%s\" in\n%s", begin,
                  text);
}

/* ---- nothing changes ----------------------------------------------------- */

TEST(all_vote)
{
    come_all(0, LOOK_ADMITTED, "", "");
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    ck_assert_str_eq(text, "node a at h:1: votes; goes on\n"
                           "node b at h:2: votes; goes on\n"
                           "node c: votes; goes on\n"
                           "node d: votes; goes on\n"
                           "node e: votes; goes on\n"
                           "votes: 5 of 5, and 3 are needed\n"
                           "epoch: 1\n"
                           "held: nothing\n"
                           "pause: none; acquires and extends go on\n");
    ck_assert_int_eq(play_count(CALL_LOOK), 5);
    for (int i = 0; i < play.sent_count; i++) {
        ck_assert(play.sent[i].call.is_watching);
        ck_assert_int_eq((int)play.sent[i].call.nonce.len, 0);
    }
}

TEST(what_is_held)
{
    play.rest_us = 29 * SECOND + 1;
    come_all(0, LOOK_ADMITTED, "", "");
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    expect_line("held: the locks that were granted so far end within 30 s");
    play.now_us += 31 * SECOND;
    (void)plan();
    expect_line("held: nothing");
}

/* ---- one node ------------------------------------------------------------ */

static const struct {
    enum call_look_word word;
    const char *admit, *mark, *line, *without;
} ones[] = {
    {LOOK_EMPTY, "", "",
     "node a at h:1: is new, or has lost its memory; votes within 31 s",
     "without a vote: a (within 31 s)"},
    {LOOK_BARE, "1:" PLAY_FINGERPRINT ":@:" PLAY_INCARNATION(1) ":0:older:m",
     "",
     "node a at h:1: was restarted, and has all its memory; votes within 3 s",
     "without a vote: a (within 3 s)"},
    {LOOK_MARKED, "", PLAY_MARK(2),
     "node a at h:1: waits, as it may have forgotten locks; votes within 1 s",
     "without a vote: a (within 1 s)"},
    {LOOK_MISNAMED, "1:" PLAY_FINGERPRINT ":&:" PLAY_INCARNATION(1) ":0:+", "",
     "node a at h:1: this machine is used under the name e; does not vote, and "
     "is left alone",
     "without a vote: a"},
    {LOOK_BARE, "1:" PLAY_FINGERPRINT ":&:" PLAY_INCARNATION(1) ":0:older:m",
     "",
     "node a at h:1: this machine was used under the name e; does not vote, "
     "and is left alone",
     "without a vote: a"},
    {LOOK_FOREIGN, "1:" OTHERS ":&:" PLAY_INCARNATION(1) ":0:+", "",
     "node a at h:1: carries other names, of epoch 1, and is e there; does not "
     "vote, and is left alone",
     "without a vote: a"},
    {LOOK_SUPERSEDED, "7:" OTHERS ":@:" PLAY_INCARNATION(1) ":0:+", "",
     "node a at h:1: carries other names, of epoch 7; does not vote, and is "
     "left alone",
     "without a vote: a"},
    {LOOK_SUPERSEDED, "", "7:" OTHERS ":x:" PLAY_INCARNATION(1) "::run:m",
     "node a at h:1: carries other names, of epoch 7; does not vote, and is "
     "left alone",
     "without a vote: a"},
};

/* Beside four that vote, with locks of 30 s: nothing is interrupted. */
TEST_EACH(one_node_is_another, ones)
{
    play.rest_us = 30 * SECOND;
    come_all(1, LOOK_ADMITTED, "", "");
    come(0, ones[_i].word, ones[_i].admit, ones[_i].mark);
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    expect_line(ones[_i].line);
    expect_line("votes: 4 of 5, and 3 are needed");
    expect_line(ones[_i].without);
    expect_line("epoch: 1");
    expect_line("held: the locks that were granted so far end within 30 s");
    expect_line("pause: none; acquires and extends go on");
}

TEST(a_restarted_node_that_was_not_durable)
{
    come_all(1, LOOK_ADMITTED, "", "");
    play_node_connect(0);
    struct call_reply reply = {
        .vote = VOTE_DONE,
        .look = {.word = LOOK_BARE,
                 .admit = span_of(play_admission(0, true)),
                 .mark = span_of(""),
                 .witnesses = span_of("")},
    };
    play_reply(play_find(CALL_LOOK, 0), reply);
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    expect_line("node a at h:1: was restarted, and may have forgotten locks; "
                "votes within 2 s");
}

/* ---- all nodes ----------------------------------------------------------- */

/* The node carries its name among others, with all its memory. */
static void come_with(int node, const char *names, int64_t rest_us)
{
    char admit[CALL_STATE_MAX + 1];
    PRINT_TO(admit, "1:%s:%s:%s:0:run:" PLAY_MEMORY, names, play_name(node),
             PLAY_INCARNATION(1));
    struct call_reply reply = {
        .vote = VOTE_DONE,
        .look = {.word = LOOK_BARE,
                 .admit = span_of(admit),
                 .taken = span_of(admit),
                 .mark = span_of(""),
                 .rest_us = rest_us,
                 .witnesses = play_heard(node, 0, 0, PLAY_NONE)},
    };
    play_node_connect(node);
    play_reply(play_find(CALL_LOOK, node), reply);
}

/* What a letter stands for. */
static void come_as(int node, char letter)
{
    static const char ours[] =
        "1:" PLAY_FINGERPRINT ":@:" PLAY_INCARNATION(1) ":0:+";
    static const char under_e[] =
        "1:" PLAY_FINGERPRINT ":&:" PLAY_INCARNATION(1) ":0:+";
    if (letter == 'v' || letter == 'x')
        come(node, LOOK_ADMITTED, "", "");
    else if (letter == 'e')
        come(node, LOOK_EMPTY, "", "");
    else if (letter == 'b') /* restarted */
        come(node, LOOK_BARE, ours, "");
    else if (letter == 'm')
        come(node, LOOK_MISNAMED, under_e, "");
    else if (letter == 'f') /* other names, of the epoch that was given, */
        come(node, LOOK_FOREIGN, OTHERS_ADMIT, "");
    else if (letter == 'g') /* of a lower one, */
        come(node, LOOK_BARE, OTHERS_ADMIT, "");
    else if (letter == 's') /* of a higher one */
        come(node, LOOK_SUPERSEDED,
             "5:" OTHERS ":x:" PLAY_INCARNATION(1) ":0:+", "");
    else if (letter == 'o' || letter == 'O') /* of five others; with locks */
        come_with(node, OTHERS, letter == 'O' ? 30 * SECOND : 0);
    else if (letter == 't' || letter == 'T') /* of three others */
        come_with(node, "ffffffffffffff03", letter == 'T' ? 30 * SECOND : 0);
    if (letter == 'x' || letter == 'd') /* after a look, or before it */
        engine_on_node_down(play.engine, node, STATE_UNREACHABLE, "refused");
}

#define REFUSED                                                                \
    ". Nothing is changed, this server grants no lock, and the old ones go "   \
    "on. Keep a majority of the old names in the list, and change it in "      \
    "several steps; or stop all old servers, and give --take-over 2"
#define WRONG_EPOCH                                                            \
    "pause: 67 s at most with that epoch; with this one, nothing is "          \
    "replaced, and this server grants no lock"
#define TAKE_OVER                                                              \
    "; meanwhile no server grants or extends a lock, and those of the old "    \
    "names never again"

enum { LINES_MAX = 5 };

static const struct scene {
    const char *nodes; /* as above; -: it has not come */
    enum plan_status status;
    const char *lines[LINES_MAX];
    const char *absent; /* no line begins so */
    int epoch;          /* given; 0: 1 */
    enum first_start first_start;
    bool has_take_over;
} scenes[] = {
    {"bbbbb", PLAN_PAUSE,
     .lines = {"epoch: 1, which the nodes carry; 20, which was given, does not "
               "count"},
     .epoch = 20},
    /* a lower epoch of a few nodes does not count: names between may have
     * taken the others */
    {"bbeee", PLAN_PAUSE,
     .lines = {"epoch: 3 is too high to replace these names, which carry 1; if "
               "the addresses are right, give --config-epoch 2"},
     .epoch = 3, .first_start = FIRST_START_NO},
    {"dvvvv", PLAN_GOES_ON,
     .lines = {"node a at h:1: is out of reach (refused); does not vote before "
               "it is reached",
               "without a vote: a"}},
    {"---vv", PLAN_UNKNOWN,
     .lines = {"cannot tell: 2 of 5 nodes were reached, and 3 are needed"},
     .absent = "pause"},
    {"eeevv", PLAN_PAUSE,
     .lines =
         {"node c: is new, or has lost its memory; votes within 67 s",
          "without a vote: a (within 67 s), b (within 67 s), c (within 67 s)",
          "pause: 67 s at most; nothing is granted or extended then"}},
    {"mmxvv", PLAN_PAUSE,
     .lines = {"votes: 2 of 5, and 3 are needed", "without a vote: a, b, c",
               "pause: nothing is granted or extended until more nodes vote"}},
    /* nothing is admitted beside nodes of other names */
    {"fevvv", PLAN_GOES_ON,
     .lines = {"node b at h:2: is new, or has lost its memory; is not admitted "
               "beside a node that carries other names",
               "without a vote: a, b"}},
    {"eeeee", PLAN_PAUSE,
     .lines =
         {"pause: 4 s at most; all nodes are new, and are admitted together"},
     .absent = "note", .first_start = FIRST_START_YES},
    {"eeeee", PLAN_PAUSE,
     .lines = {"pause: 67 s at most; nothing is granted or extended then",
               "note: all nodes are empty; if they were never used, "
               "--first-start yes admits them at once"},
     .first_start = FIRST_START_NO},
    /* other names need the next epoch */
    {"fffff", PLAN_PAUSE,
     .lines = {"epoch: 1 is too low to replace other names, which carry 1; if "
               "the addresses are right, give --config-epoch 2",
               WRONG_EPOCH},
     .absent = "missing"},
    {"ggggg", PLAN_PAUSE,
     .lines = {"epoch: 7 is too high to replace other names, which carry 1; if "
               "the addresses are right, give --config-epoch 2",
               WRONG_EPOCH},
     .absent = "missing", .epoch = 7},
    {"sssss", PLAN_PAUSE,
     .lines = {"epoch: 2 is too low to replace other names, which carry 5; if "
               "the addresses are right, give --config-epoch 6",
               WRONG_EPOCH},
     .absent = "missing", .epoch = 2},
    {"ggggg", PLAN_REFUSED,
     .lines = {"epoch: 2 replaces other names, which carry 1",
               "refused: of the 5 old names, 0 are here with all their memory, "
               "and 3 are needed: the others may go on without these" REFUSED},
     .absent = "missing", .epoch = 2},
    /* A majority of the old names tells what they promised: that is waited for.
     * If these are a majority of the new ones, it is all. */
    {"eeOOO", PLAN_PAUSE,
     .lines = {"pause: 31 s if it begins now, 67 s at most" TAKE_OVER},
     .epoch = 2},
    {"eeOOO", PLAN_PAUSE, .lines = {"pause: 67 s at most" TAKE_OVER},
     .epoch = 2, .has_take_over = true},
    /* three nodes become five: the new ones ask those that were taken */
    {"eettt", PLAN_PAUSE,
     .lines =
         {"pause: 2 s if it begins now, 67 s at most" TAKE_OVER,
          "node a at h:1: is new, or has lost its memory; votes within 4 s",
          "node c: carries other names, of epoch 1; is taken from them, and "
          "votes within 2 s"},
     .epoch = 2},
    {"eeett", PLAN_PAUSE, .lines = {"pause: 69 s at most" TAKE_OVER},
     .epoch = 2},
    /* whichever of two lists is counted */
    {"OOOtt", PLAN_PAUSE,
     .lines = {"pause: 31 s if it begins now, 67 s at most" TAKE_OVER},
     .epoch = 2},
    {"oooTT", PLAN_PAUSE,
     .lines = {"pause: 31 s if it begins now, 67 s at most" TAKE_OVER},
     .epoch = 2},
    {"-oooo", PLAN_PAUSE,
     .lines = {"missing: a",
               "pause: 2 s if it begins now, 67 s at most" TAKE_OVER},
     .epoch = 2},
    /* story 65: the old names could go on, unless somebody says otherwise */
    {"eeeoo", PLAN_REFUSED,
     .lines = {"node d: carries other names, of epoch 1; does not vote, and is "
               "left alone",
               "refused: of the 5 old names, 2 are here with all their memory, "
               "and 3 are needed: the others may go on without these" REFUSED},
     .absent = "pause", .epoch = 2},
    {"eeeoo", PLAN_PAUSE, .lines = {"pause: 67 s at most" TAKE_OVER},
     .epoch = 2, .has_take_over = true},
    /* story 65: no old name is here */
    {"eeeee", PLAN_REFUSED,
     .lines = {"refused: no node carries the names that epoch 2 is to "
               "replace" REFUSED},
     .epoch = 2, .first_start = FIRST_START_NO},
    /* story 65: it was said of a change that is over */
    {"vvvvv", PLAN_GOES_ON,
     .lines = {"note: --take-over is not needed any more: take it away"},
     .has_take_over = true},
    {"vvvvv", PLAN_GOES_ON, .lines = {"held: nothing"}, .absent = "note: "},
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
    for (int i = 0; i < LINES_MAX && scene->lines[i] != NULL; i++)
        expect_line(scene->lines[i]);
    if (scene->absent != NULL)
        expect_no_line(scene->absent);
}

/* ---- two looks ----------------------------------------------------------- */

static void tell_of_a(int64_t generation)
{
    for (int i = 1; i < PLAY_NODES; i++) {
        struct call_reply reply = {
            .vote = VOTE_DONE,
            .look = {.word = LOOK_ADMITTED,
                     .admit = span_of(play_admission(i, false)),
                     .mark = span_of(""),
                     .witnesses =
                         play_heard(i, 0, generation, PLAY_INCARNATION(2))},
        };
        play_reply(play_find(CALL_LOOK, i), reply);
    }
}

/* Its generations tell whether a server uses the other machine; this one is
 * empty, or was admitted earlier. */
TEST_RANGE(another_machine_of_the_name_is_in_use_or_not, 0, 4)
{
    enum call_look_word word = _i / 2 == 0 ? LOOK_EMPTY : LOOK_ADMITTED;
    bool is_in_use = _i % 2 == 1;
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_connect(i);
    play_answer_look(0, word, "", "");
    tell_of_a(INT64_C(100000000000000));
    engine_outlook(play.engine, 0, &outlook);
    ck_assert(outlook.is_settled);
    int64_t since_us = play.now_us;
    engine_outlook(play.engine, since_us, &outlook);
    ck_assert(!outlook.is_settled);
    play_advance(SECOND);
    play_answer_look(0, word, "", "");
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
        play_answer_look(i, LOOK_ADMITTED, "", "");
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
    come_all(0, LOOK_ADMITTED, "", "");
    engine_on_node_down(play.engine, 0, STATE_NO_PERMISSION,
                        "its user lacks +del +pexpire");
    facts.lacks = "its user lacks +scan";
    facts.is_durable = false;
    facts.not_durable = "appendonly is no";
    engine_on_node_confirmed(play.engine, 1, &facts);
    ck_assert_int_eq(plan(), PLAN_GOES_ON);
    expect_line("node a at h:1: may not vote (its user lacks +del +pexpire); "
                "does not vote");
    expect_line("note: b: not durable: appendonly is no; its user lacks +scan");
    expect_no_line("note: c");
}
