/*
 * What replies mean; what the script does on a node: transcripts/.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/node/simnode.h"
#include "../../lib/suite/suite.h"
#include "../ballot.h"

enum { NOW = 1700000000 };

SUITE(script);

TEST(the_text_knows_each_kind_by_its_letter)
{
    struct span text = script_text();
    char letters[CALL_KINDS + 1] = "";
    ck_assert_uint_eq(text.len, strlen(text.ptr));
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        char letter = script_letter((enum call_kind)kind);
        ck_assert(letter >= 'a' && letter <= 'z');
        ck_assert_ptr_null(strchr(letters, letter));
        letters[kind] = letter;
        const char *line =
            textf(" %c %s", letter, simcall_name((enum call_kind)kind));
        ck_assert_has(text.ptr, line);
    }
    ck_assert_int_eq(script_letter(CALL_ACQUIRE), 'a');
}

static struct script_field string(const char *text)
{
    return (struct script_field){SCRIPT_FIELD_STRING, 0, span_of(text)};
}

static struct script_field integer(int64_t number)
{
    return (struct script_field){SCRIPT_FIELD_INTEGER, number, {NULL, 0}};
}

static enum vote decode(enum call_kind kind, const char *word, int count)
{
    const struct script_field fields[] = {string(word), integer(5),
                                          string("value"), integer(0)};
    return script_decode(kind, NOW, fields, count).vote;
}

#define OF(kind) (1u << CALL_##kind)
#define OF_SETTERS (OF(ACQUIRE) | OF(REPEAT) | OF(REPAIR))
#define OF_VOTERS (OF_SETTERS | OF(EXTEND))

/* Any byte may come; which letters answer what: transcripts/. */
TEST_RANGE(other_letters_are_garbage, 0, CALL_KINDS)
{
    enum call_kind kind = (enum call_kind)_i;
    for (int letter = CHAR_MIN; letter <= CHAR_MAX; letter++) {
        struct call_reply reply = script_decode_letter(kind, NOW, (char)letter);
        bool is_there = reply.vote != VOTE_UNREADABLE;
        ck_assert(!is_there || strchr("OCGEDFQLSNR", letter) != NULL);
        ck_assert_int_eq(reply.node_now_us, is_there ? NOW : 0);
        ck_assert_int_eq(reply.state, STATE_NONE);
    }
}

/* A grant is only for who asked for one, and so on. */
TEST(letters_of_other_kinds_are_garbage)
{
    static const struct {
        enum call_kind kind;
        const char *letters;
    } rows[] = {{CALL_ACQUIRE, "OCEDFNR"},   {CALL_REPEAT, "OCEDFN"},
                {CALL_EXTEND, "OCGDFSNR"},   {CALL_REPAIR, "OEDFNR"},
                {CALL_RELEASE, "OCGELSNR"},  {CALL_INSPECT, "OCGEDLSNR"},
                {CALL_LISTEN, "CGEDFQLSNR"}, {CALL_LOOK, "OCGEDFQLSNR"},
                {CALL_ADMIT, "GEDFQLSNR"},   {CALL_SCAN, "OCGEDFQLSR"},
                {CALL_SLOTS, "OCGEDFLSNR"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (const char *at = rows[i].letters; *at != '\0'; at++)
            ck_assert_int_eq(script_decode_letter(rows[i].kind, NOW, *at).vote,
                             VOTE_UNREADABLE);
}

/* With more to tell. */
static const struct {
    const char *word;
    int count;
    enum vote vote;
    unsigned kinds; /* that answer it */
} answers[] = {
    {"DELETED", 2, VOTE_DELETED, OF(RELEASE)},
    {"FREE", 2, VOTE_FREE, OF(EXTEND)},
    {"HELD", 3, VOTE_HELD, OF_VOTERS | OF(RELEASE) | OF(INSPECT)},
    {"HELD", 4, VOTE_HELD, OF(EXTEND)}, /* of several */
    {"STALE", 2, VOTE_STALE, OF(ACQUIRE) | OF(REPEAT)},
    {"GRANTED", 1, VOTE_GRANTED, 0}, /* of an older script */
    {"D", 2, VOTE_DELETED, 0},
    {"G", 1, VOTE_GRANTED, 0},
    {"ADMITTED", 1, VOTE_DONE, 0},
    {"held", 3, VOTE_HELD, 0},
    {"", 1, VOTE_GRANTED, 0},
};

enum { ANSWERS = sizeof answers / sizeof *answers };

static enum vote expected(int kind, const char *word, int count)
{
    for (int i = 0; i < ANSWERS; i++)
        if (strcmp(answers[i].word, word) == 0 && answers[i].count == count &&
            (answers[i].kinds & 1u << kind) != 0)
            return answers[i].vote;
    return VOTE_UNREADABLE;
}

TEST_RANGE(each_kind_has_its_words, 0, ANSWERS)
{
    const char *word = answers[_i].word;
    for (int kind = 0; kind < CALL_KINDS; kind++)
        for (int count = 0; count <= 4; count++)
            ck_assert_int_eq(decode((enum call_kind)kind, word, count),
                             expected(kind, word, count));
}

TEST(what_comes_with_an_answer_is_told)
{
    struct script_field fields[] = {string("HELD"), integer(-1), string("")};
    struct call_reply reply = script_decode(CALL_INSPECT, NOW, fields, 3);
    ck_assert_int_eq(reply.node_now_us, NOW);
    ck_assert_int_eq(reply.pttl_ms, -1);
    ck_assert_uint_eq(reply.value.len, 0);
    fields[1] = integer(1234);
    fields[2] = string("token");
    reply = script_decode(CALL_ACQUIRE, NOW, fields, 3);
    ck_assert_int_eq(reply.pttl_ms, 1234);
    ck_assert_uint_eq(reply.value.len, 5);
    struct script_field shared[] = {string("SHARED"), integer(1234), integer(2),
                                    integer(1700000000000006)};
    reply = script_decode(CALL_REPEAT, NOW, shared, 3);
    ck_assert_int_eq(reply.holders, 2);
    ck_assert_int_eq(reply.highest, 0);
    reply = script_decode(CALL_REPEAT, NOW, shared, 4);
    ck_assert_int_eq(reply.vote, VOTE_HELD);
    ck_assert_int_eq(reply.highest, 1700000000000006);
    shared[3] = integer(0);
    reply = script_decode(CALL_REPEAT, NOW, shared, 4);
    ck_assert_int_eq(reply.vote, VOTE_UNREADABLE);
    reply = script_decode(CALL_ACQUIRE, NOW, shared, 4);
    ck_assert_int_eq(reply.vote, VOTE_UNREADABLE);
    fields[0] = string("STALE");
    fields[1] = integer(9007199254740991);
    reply = script_decode(CALL_ACQUIRE, NOW, fields, 2);
    ck_assert_int_eq(reply.vote, VOTE_STALE);
    ck_assert_int_eq(reply.highest, 9007199254740991);
}

static const char *const look_words[LOOK_WORDS] = {
    [LOOK_ADMITTED] = "ADMITTED", [LOOK_SUPERSEDED] = "SUPERSEDED",
    [LOOK_FOREIGN] = "FOREIGN",   [LOOK_MISNAMED] = "MISNAMED",
    [LOOK_EMPTY] = "EMPTY",       [LOOK_BARE] = "BARE",
    [LOOK_FRESH] = "FRESH",       [LOOK_CREATED] = "CREATED",
    [LOOK_MARKED] = "MARKED",
};

enum { LOOK_COUNT = 13, LOOK_TEXTS = 5, LOOK_WITNESSES = 11 };

static enum vote look_vote(const struct script_field *fields, int count)
{
    return script_decode(CALL_LOOK, NOW, fields, count).vote;
}

TEST_RANGE(what_a_look_found_is_told, 0, LOOK_WORDS)
{
    const struct script_field fields[LOOK_COUNT] = {string(look_words[_i]),
                                                    string("1:f:n:run:m"),
                                                    string("1:run:m:0:n"),
                                                    string("1:taken"),
                                                    string("2:passed:"),
                                                    integer(60000),
                                                    integer(_i % 3),
                                                    integer(5),
                                                    integer(6),
                                                    integer(NOW - 7),
                                                    integer(_i % 2),
                                                    string("ab=3 cd=4"),
                                                    string("ab:0:7")};
    struct call_reply reply = script_decode(CALL_LOOK, NOW, fields, LOOK_COUNT);
    ck_assert_int_eq(reply.vote, VOTE_DONE);
    ck_assert_int_eq(reply.node_now_us, NOW);
    ck_assert_int_eq((int)reply.look.word, _i);
    ck_assert_uint_eq(reply.look.admit.len, 11);
    ck_assert_mem_eq(reply.look.mark.ptr, "1:run:m:0:n", 11);
    ck_assert(span_is(reply.look.taken, "1:taken"));
    ck_assert(span_is(reply.look.passed, "2:passed:"));
    ck_assert_int_eq(reply.look.max_ttl_ms, 60000);
    ck_assert_int_eq(reply.look.is_durable, _i % 3 == 1);
    ck_assert_int_eq(reply.look.generation, 5);
    ck_assert_int_eq(reply.look.rest_us, 6);
    ck_assert_int_eq(reply.look.number, NOW - 7);
    ck_assert_int_eq(reply.look.is_full, _i % 2);
    ck_assert_uint_eq(reply.look.witnesses.len, 9);
    ck_assert_mem_eq(reply.look.witnesses.ptr, "ab=3 cd=4", 9);
    ck_assert(span_is(reply.look.trace, "ab:0:7"));
    for (int kind = CALL_ADMIT; kind < CALL_KINDS; kind++)
        ck_assert_int_eq(
            script_decode((enum call_kind)kind, NOW, fields, LOOK_COUNT).vote,
            VOTE_UNREADABLE);
}

static struct call_reply decode_scan(const char *cursor, const char *names)
{
    const struct script_field fields[] = {string("KEYS"), string(cursor),
                                          string(names)};
    return script_decode(CALL_SCAN, NOW, fields, 3);
}

TEST(a_scan_tells_names_and_cursor)
{
    struct call_reply reply = decode_scan("42", "3:a:b0:5:1:2:3");
    struct span name;
    ck_assert_int_eq(reply.vote, VOTE_DONE);
    ck_assert_int_eq(reply.cursor, 42);
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, "a:b"));
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, ""));
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, "1:2:3"));
    ck_assert(!call_next_name(&reply.names, &name));
    ck_assert_int_eq(decode_scan("0", "").vote, VOTE_DONE);
}

TEST(a_scan_of_another_shape_is_garbage)
{
    static const char *const bad[][2] = {
        {"", ""},      {"-1", ""},      {"1x", ""},    {"1234567890123456", ""},
        {"0", "3:ab"}, {"0", ":a"},     {"0", "1:ab"}, {"0", "x:a"},
        {"0", "a"},    {"0", "12345:a"}};
    const char *longer =
        textf("%d:%0*d", RESOURCE_MAX + 1, RESOURCE_MAX + 1, 0);
    ck_assert_int_eq(decode_scan("0", longer).vote, VOTE_UNREADABLE);
    ck_assert_int_eq(decode_scan("0", longer + 1).vote, VOTE_UNREADABLE);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(decode_scan(bad[i][0], bad[i][1]).vote,
                         VOTE_UNREADABLE);
    const struct script_field fields[] = {string("KEYS"), integer(0),
                                          string("")};
    ck_assert_int_eq(script_decode(CALL_SCAN, NOW, fields, 3).vote,
                     VOTE_UNREADABLE);
}

static struct call_reply decode_tokens(int64_t left, const char *tokens)
{
    const struct script_field fields[] = {string("TOKENS"), integer(left),
                                          string(tokens)};
    return script_decode(CALL_TOKENS, NOW, fields, 3);
}

TEST(tokens_are_told_with_how_many_are_left)
{
    struct call_reply reply = decode_tokens(7, "1:a2:bc");
    struct span token;
    ck_assert_int_eq(reply.vote, VOTE_HELD);
    ck_assert_int_eq(reply.left, 7);
    ck_assert(call_next_name(&reply.names, &token) && span_is(token, "a"));
    ck_assert(call_next_name(&reply.names, &token) && span_is(token, "bc"));
    ck_assert(!call_next_name(&reply.names, &token));
    ck_assert_int_eq(decode_tokens(0, "").vote, VOTE_HELD);
    ck_assert_int_eq(decode_tokens(-1, "").vote, VOTE_UNREADABLE);
    ck_assert_int_eq(decode_tokens(0, "3:ab").vote, VOTE_UNREADABLE);
    char longer[TOKEN_MAX + 8];
    int len = PRINT_TO(longer, "%d:%0*d", TOKEN_MAX + 1, TOKEN_MAX + 1, 0);
    ck_assert_int_eq(len, TOKEN_MAX + 5);
    ck_assert_int_eq(decode_tokens(0, longer).vote, VOTE_UNREADABLE);
    const struct script_field fields[] = {string("TOKENS"), string("0"),
                                          string("")};
    ck_assert_int_eq(script_decode(CALL_TOKENS, NOW, fields, 3).vote,
                     VOTE_UNREADABLE);
}

static struct call_reply decode_slots(int64_t rest, const char *text)
{
    const struct script_field fields[] = {string("SLOTS"), integer(rest),
                                          string(text)};
    return script_decode(CALL_SLOTS, NOW, fields, 3);
}

TEST(slots_are_told_with_a_letter_each)
{
    struct call_reply reply = decode_slots(1500, "0120");
    ck_assert_int_eq(reply.vote, VOTE_DONE);
    ck_assert_int_eq(reply.pttl_ms, 1500);
    ck_assert(span_is(reply.slots, "0120"));
    ck_assert_int_eq(decode_slots(-1, "0").vote, VOTE_DONE);
    ck_assert_int_eq(decode_slots(-2, "0").vote, VOTE_UNREADABLE);
    ck_assert_int_eq(decode_slots(0, "03").vote, VOTE_UNREADABLE);
    ck_assert_int_eq(decode_slots(0, "/").vote, VOTE_UNREADABLE);
    static char many[POOL_SLOTS_MAX + 2];
    memset(many, '1', POOL_SLOTS_MAX + 1);
    ck_assert_int_eq(decode_slots(0, many).vote, VOTE_UNREADABLE);
    ck_assert_int_eq(decode_slots(0, many + 1).vote, VOTE_DONE);
}

TEST(slots_of_another_shape_are_garbage)
{
    struct script_field fields[] = {string("SLOTS"), string("1"), string("0")};
    ck_assert_int_eq(script_decode(CALL_SLOTS, NOW, fields, 3).vote,
                     VOTE_UNREADABLE);
    fields[1] = integer(1);
    fields[2] = integer(0);
    ck_assert_int_eq(script_decode(CALL_SLOTS, NOW, fields, 3).vote,
                     VOTE_UNREADABLE);
}

TEST(a_look_of_another_shape_is_garbage)
{
    static char text[CALL_STATE_MAX + 2], witnesses[CALL_WITNESSES_MAX + 2],
        trace[CALL_TRACE_MAX + 2];
    memset(trace, 'x', sizeof trace - 1);
    memset(text, 'x', sizeof text - 1);
    memset(witnesses, 'x', sizeof witnesses - 1);
    const struct script_field good[LOOK_COUNT] = {
        string("MARKED"), string(text + 1), string(text + 1),
        string(text + 1), string(text + 1), integer(1),
        integer(1),       integer(1),       integer(1),
        integer(1),       integer(1),       string(witnesses + 1),
        string(trace + 1)};
    struct script_field fields[LOOK_COUNT];
    memcpy(fields, good, sizeof good);
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_DONE);
    for (int count = 0; count < LOOK_COUNT; count++)
        ck_assert_int_eq(look_vote(fields, count), VOTE_UNREADABLE);
    for (int i = 0; i < LOOK_COUNT; i++) {
        bool is_text = i < LOOK_TEXTS || i >= LOOK_WITNESSES;
        fields[i] = is_text ? integer(1) : string("1");
        ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_UNREADABLE);
        fields[i] = is_text ? string(i < LOOK_TEXTS        ? text
                                     : i == LOOK_WITNESSES ? witnesses
                                                           : trace)
                            : (struct script_field){0};
        ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_UNREADABLE);
        fields[i] = good[i];
    }
    fields[0] = string("LOOKED");
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_UNREADABLE);
}

/* A server would take it for no mark, and yet wait for its quarantine. */
TEST_RANGE(who_says_that_it_is_marked_tells_the_mark, 0, 3)
{
    static const char *const words[] = {"FRESH", "CREATED", "MARKED"};
    struct script_field fields[LOOK_COUNT] = {
        string(words[_i]), string(""), string("1:run:m:0:n"),
        string(""),        string(""), integer(1),
        integer(1),        integer(1), integer(1),
        integer(1),        integer(1), string(""),
        string("")};
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_DONE);
    fields[2].string = (struct span){"\0:run", 5};
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_UNREADABLE);
    fields[2] = string("");
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_UNREADABLE);
    fields[0] = string("BARE");
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_DONE);
}

/* The script returns no other numbers, and we add some of them to others. */
TEST(a_look_with_a_number_that_lua_cannot_tell_is_garbage)
{
    const int64_t exact = INT64_C(1) << 53;
    struct script_field fields[LOOK_COUNT] = {
        string("BARE"), string(""),     string(""),     string(""),
        string(""),     integer(exact), integer(exact), integer(exact),
        integer(exact), integer(exact), integer(exact), string(""),
        string("")};
    ck_assert_int_eq(look_vote(fields, LOOK_COUNT), VOTE_DONE);
    for (int i = LOOK_TEXTS; i < LOOK_WITNESSES; i++) {
        static const int64_t wrong[] = {-1, (INT64_C(1) << 53) + 1, INT64_MAX,
                                        INT64_MIN};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            struct script_field changed[LOOK_COUNT];
            memcpy(changed, fields, sizeof fields);
            changed[i].integer = wrong[k];
            ck_assert_int_eq(look_vote(changed, LOOK_COUNT), VOTE_UNREADABLE);
        }
    }
}

TEST(a_release_tells_how_many_it_was_announced_to)
{
    struct script_field fields[2] = {string("DELETED"), integer(7)};
    ck_assert_int_eq(script_decode(CALL_RELEASE, NOW, fields, 2).listeners, 7);
    fields[1] = integer(0);
    ck_assert_int_eq(script_decode(CALL_RELEASE, NOW, fields, 2).vote,
                     VOTE_DELETED);
    fields[1] = integer(-1);
    ck_assert_int_eq(script_decode(CALL_RELEASE, NOW, fields, 2).vote,
                     VOTE_UNREADABLE);
    fields[1] = string("7");
    ck_assert_int_eq(script_decode(CALL_RELEASE, NOW, fields, 2).vote,
                     VOTE_UNREADABLE);
}

static void expect_garbage(struct script_field a, struct script_field b,
                           struct script_field c)
{
    const struct script_field fields[] = {a, b, c};
    for (int count = 1; count <= 3; count++)
        ck_assert_int_eq(script_decode(CALL_ACQUIRE, NOW, fields, count).vote,
                         VOTE_UNREADABLE);
}

/* Somebody else wrote it: this slot fails, the connection stays. */
TEST(a_slot_with_a_number_that_is_none_of_ours_is_an_error)
{
    static const int64_t strange[] = {0, -5, INT64_C(1) << 53, INT64_MAX,
                                      INT64_MIN};
    struct script_field fields[2] = {string("STALE")};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        fields[1] = integer(strange[i]);
        ck_assert_int_eq(script_decode(CALL_ACQUIRE, NOW, fields, 2).state,
                         STATE_FAILED);
    }
    fields[1] = string("5");
    ck_assert_int_eq(script_decode(CALL_ACQUIRE, NOW, fields, 2).vote,
                     VOTE_UNREADABLE);
}

/* A bit for each of the lock's names. */
TEST(it_is_told_which_names_are_missing)
{
    static const int64_t masks[] = {1, 2, 65535, 0, -1, 65536};
    struct script_field fields[2] = {string("FREE")};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        fields[1] = integer(masks[i]);
        struct call_reply reply = script_decode(CALL_EXTEND, NOW, fields, 2);
        ck_assert_int_eq(reply.vote, i < 3 ? VOTE_FREE : VOTE_UNREADABLE);
        ck_assert_int_eq(reply.highest, i < 3 ? masks[i] : 0);
    }
    fields[1] = string("5");
    ck_assert_int_eq(script_decode(CALL_EXTEND, NOW, fields, 2).vote,
                     VOTE_UNREADABLE);
    ck_assert_int_eq(script_decode(CALL_EXTEND, NOW, fields, 1).vote,
                     VOTE_UNREADABLE);
}

/* … or have another value. */
TEST(it_is_told_which_names_have_not_the_token)
{
    static const int64_t masks[] = {1, 65535, 0, -1, 65536};
    struct script_field fields[] = {string("HELD"), integer(1), string("v"),
                                    integer(1)};
    struct script_field others[] = {string("SHARED"), integer(1), integer(2),
                                    integer(1)};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        fields[3] = others[3] = integer(masks[i]);
        struct call_reply reply = script_decode(CALL_EXTEND, NOW, fields, 4);
        ck_assert_int_eq(reply.vote, i < 3 ? VOTE_HELD : VOTE_UNREADABLE);
        ck_assert_int_eq(reply.highest, i < 3 ? masks[i] : 0);
        reply = script_decode(CALL_EXTEND, NOW, others, 4);
        ck_assert_int_eq(reply.vote, i < 3 ? VOTE_HELD : VOTE_UNREADABLE);
        ck_assert_int_eq(reply.holders, i < 3 ? 2 : 0);
    }
    fields[3] = string("5");
    ck_assert_int_eq(script_decode(CALL_EXTEND, NOW, fields, 4).vote,
                     VOTE_UNREADABLE);
}

TEST(what_no_script_answers_is_garbage)
{
    static char text[VALUE_MAX + 2];
    struct script_field held = string("HELD");
    memset(text, 'x', sizeof text - 1);
    expect_garbage(held, integer(1), string(text));
    expect_garbage(held, integer(-2), string("v"));
    expect_garbage(held, string("1"), string("v"));
    expect_garbage(held, integer(1), integer(1));
    expect_garbage(integer(1), integer(1), string("v"));
    struct script_field nil = {.type = SCRIPT_FIELD_NIL};
    for (int count = 0; count <= 1; count++)
        ck_assert_int_eq(script_decode(CALL_ACQUIRE, NOW, &nil, count).vote,
                         VOTE_UNREADABLE);
}

static const struct {
    const char *text;
    int ballot;
} errors[] = {
    {"LOADING Redis is loading the dataset in memory", UNFIT(LOADING)},
    {"READONLY You can't write against a read only replica.", UNFIT(READ_ONLY)},
    {"MISCONF Errors writing to the AOF file: No space", UNFIT(MISCONFIGURED)},
    {"OOM command not allowed when used memory > 'maxmemory'.",
     UNFIT(OUT_OF_MEMORY)},
    {"BUSY Redis is busy running a script.", UNFIT(BUSY)},
    {"NOPERM User x has no permissions", UNFIT(NO_PERMISSION)},
    {"ERR The user executing the script can't run this command or subcommand",
     UNFIT(NO_PERMISSION)},
    {"ERR The user executing the script can't access at least one of the keys "
     "mentioned in the command arguments",
     VOTE_KEY_REFUSED},
    {"ERR ACL failure in script: No permissions to access a key",
     VOTE_KEY_REFUSED},
    /* of the node's own state: nothing of the script ran */
    {"NOPERM No permissions to access a key", UNFIT(NO_PERMISSION)},
    {"ERR ACL failure in script: User x has no permissions",
     UNFIT(NO_PERMISSION)},
    {"ERR unknown command 'EVALSHA', with args", UNFIT(NO_PERMISSION)},
    {"ERR Unknown Redis command called from script", UNFIT(NO_PERMISSION)},
    {"NOAUTH Authentication required.", UNFIT(NO_PERMISSION)},
    {"WRONGPASS invalid username-password pair", UNFIT(NO_PERMISSION)},
    {"DENIED Redis is running in protected mode", UNFIT(NO_PERMISSION)},
    {"NOSCRIPT No matching script. Please use EVAL.", UNFIT(NO_SCRIPT)},
    {"ERR max number of clients reached", UNFIT(TOO_MANY)},
    {"ERR max number of clients + cluster connections reached",
     UNFIT(TOO_MANY)},
    {"ERR unknown command", UNFIT(FAILED)},
    {"BUSYKEY Target key name already exists.", UNFIT(FAILED)},
    {"WRONGTYPE Operation against a key", UNFIT(FAILED)},
    {"LOADING", UNFIT(FAILED)},
    {"", UNFIT(FAILED)},
};

TEST_EACH(errors_have_names, errors)
{
    struct script_field field = {SCRIPT_FIELD_ERROR, 0,
                                 span_of(errors[_i].text)};
    ck_assert_int_eq(ballot_number(script_decode_error(field.string)),
                     errors[_i].ballot);
    struct call_reply reply = script_decode(CALL_EXTEND, NOW, &field, 1);
    ck_assert_int_eq(ballot_of_reply(&reply), errors[_i].ballot);
}

/* A node may repeat what it was asked: tokens are no words of its own. */
TEST(words_of_an_error_are_without_arguments)
{
    struct script_field field = {
        SCRIPT_FIELD_ERROR, 0,
        span_of("ERR unknown command 'X', with args beginning with: 's3cret'")};
    struct call_reply reply = script_decode(CALL_LOOK, NOW, &field, 1);
    ck_assert(span_is(reply.words, "ERR unknown command 'X'"));
    field.string = span_of("ERR no");
    reply = script_decode(CALL_LOOK, NOW, &field, 1);
    ck_assert(span_is(reply.words, "ERR no"));
}
