/* SPDX-License-Identifier: MIT */
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
        struct call call = {.kind = (enum call_kind)kind};
        char letter = script_letter_of(&call);
        ck_assert(letter >= 'a' && letter <= 'z');
        ck_assert_ptr_null(strchr(letters, letter));
        letters[kind] = letter;
        const char *line = textf(" %c %s", letter, simcall_name(call.kind));
        ck_assert_has(text.ptr, line);
    }
}

static struct script_field string(const char *text)
{
    return (struct script_field){SCRIPT_FIELD_STRING, 0, span_of(text)};
}

static struct script_field integer(int64_t number)
{
    return (struct script_field){SCRIPT_FIELD_INTEGER, number, {NULL, 0}};
}

#define OF(kind) (1u << CALL_##kind)
#define OF_SETTERS (OF(ACQUIRE) | OF(REPEAT) | OF(REPLICATE))
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
static const struct {
    enum call_kind kind;
    const char *letters;
} foreign[] = {{CALL_ACQUIRE, "OCEDFNR"},   {CALL_REPEAT, "OCEDFN"},
               {CALL_EXTEND, "OCGDFSNR"},   {CALL_REPLICATE, "OEDFNR"},
               {CALL_RELEASE, "OCGELSNR"},  {CALL_INSPECT, "OCGEDLSNR"},
               {CALL_LISTEN, "CGEDFQLSNR"}, {CALL_PROBE, "OCGEDFQLSNR"},
               {CALL_ADMIT, "GEDFQLSNR"},   {CALL_SCAN, "OCGEDFQLSR"},
               {CALL_SLOTS, "OCGEDFLSNR"}};

TEST_EACH(letters_of_other_kinds_are_garbage, foreign)
{
    for (const char *at = foreign[_i].letters; *at != '\0'; at++)
        ck_assert_int_eq(script_decode_letter(foreign[_i].kind, NOW, *at).vote,
                         VOTE_UNREADABLE);
}

/* ---- words and fields ---------------------------------------------------- */

enum { FIELDS_MAX = 4 };

/* The fields, parted by spaces: digits are an integer, "x" and digits a text of
 * so many x, "_" a text without any, ":" and the rest a text. */
static struct call_reply decode(enum call_kind kind, const char *line)
{
    struct script_field fields[FIELDS_MAX];
    struct span rest = span_of(line);
    int count = 0;
    for (; rest.len > 0; count++) {
        struct span word = span_take(&rest, ' ');
        const char *text = textf("%.*s", (int)word.len, word.ptr);
        ck_assert_int_lt(count, FIELDS_MAX);
        if (text[0] == 'x')
            fields[count] = string(textf("%0*d", atoi(text + 1), 0));
        else if (text[0] == ':')
            fields[count] = string(text + 1);
        else if (strspn(text, "-0123456789") == word.len)
            fields[count] = integer(strtoll(text, NULL, 10));
        else
            fields[count] = string(text[0] == '_' ? "" : text);
    }
    return script_decode(kind, NOW, fields, count);
}

/* With more to tell. */
static const struct {
    const char *fields;
    enum vote vote;
    unsigned kinds; /* that answer it */
} answers[] = {
    {"DELETED 5", VOTE_DELETED, OF(RELEASE)},
    {"FREE 5", VOTE_FREE, OF(EXTEND)},
    {"HELD 5 value", VOTE_HELD, OF_VOTERS | OF(RELEASE) | OF(INSPECT)},
    {"HELD 5 value 1", VOTE_HELD, OF(EXTEND)}, /* of several */
    {"STALE 5", VOTE_STALE, OF(ACQUIRE) | OF(REPEAT)},
    {"GRANTED", VOTE_GRANTED, 0}, /* of an older script */
    {"D 5", VOTE_DELETED, 0},
    {"G", VOTE_GRANTED, 0},
    {"ADMITTED", VOTE_DONE, 0},
    {"held 5 value", VOTE_HELD, 0},
    {"DELETED", VOTE_DELETED, 0},
    {"DELETED 5 value", VOTE_DELETED, 0},
    {"FREE", VOTE_FREE, 0},
    {"HELD 5", VOTE_HELD, 0},
    {"STALE 5 value", VOTE_STALE, 0},
    {"_", VOTE_GRANTED, 0},
    {"", VOTE_GRANTED, 0},
    {"1 1 v", VOTE_HELD, 0},
};

TEST_EACH(each_kind_has_its_words, answers)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        bool is_there = (answers[_i].kinds & 1u << kind) != 0;
        struct call_reply reply =
            decode((enum call_kind)kind, answers[_i].fields);
        ck_assert_int_eq(reply.vote,
                         is_there ? answers[_i].vote : VOTE_UNREADABLE);
        ck_assert_int_eq(reply.node_now_us, is_there ? NOW : 0);
    }
}

/* What a kind of call makes of fields that are as they should be, or nearly. */
static const struct {
    enum call_kind kind;
    const char *fields;
    enum vote vote;
} shapes[] = {
    {CALL_ACQUIRE, "HELD -1 _", VOTE_HELD},
    {CALL_ACQUIRE, "HELD -2 v", VOTE_UNREADABLE},
    {CALL_ACQUIRE, "HELD :1 v", VOTE_UNREADABLE},
    {CALL_ACQUIRE, "HELD 1 1", VOTE_UNREADABLE},
    {CALL_ACQUIRE, "HELD 1 x256", VOTE_HELD},
    {CALL_ACQUIRE, "HELD 1 x257", VOTE_UNREADABLE},
    {CALL_ACQUIRE, "SHARED 1 2", VOTE_HELD},
    {CALL_ACQUIRE, "SHARED 1 2 1700000000000006", VOTE_UNREADABLE},
    {CALL_REPEAT, "SHARED 1 2 0", VOTE_UNREADABLE},
    {CALL_ACQUIRE, "STALE :5", VOTE_UNREADABLE},
    {CALL_RELEASE, "DELETED 0", VOTE_DELETED},
    {CALL_RELEASE, "DELETED -1", VOTE_UNREADABLE},
    {CALL_RELEASE, "DELETED :7", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 _", VOTE_DONE},
    {CALL_SCAN, "KEYS _ _", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :-1 _", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS 1x _", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :123456789012345 _", VOTE_DONE},
    {CALL_SCAN, "KEYS :1234567890123456 _", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS 0 _", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 3:ab", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 ::a", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 1:ab", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 :x:a", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 a", VOTE_UNREADABLE},
    {CALL_SCAN, "KEYS :0 12345:a", VOTE_UNREADABLE},
    {CALL_TOKENS, "TOKENS 0 _", VOTE_HELD},
    {CALL_TOKENS, "TOKENS -1 _", VOTE_UNREADABLE},
    {CALL_TOKENS, "TOKENS 0 3:ab", VOTE_UNREADABLE},
    {CALL_TOKENS, "TOKENS :0 _", VOTE_UNREADABLE},
    {CALL_SLOTS, "SLOTS -1 :0", VOTE_DONE},
    {CALL_SLOTS, "SLOTS -2 :0", VOTE_UNREADABLE},
    {CALL_SLOTS, "SLOTS 0 :03", VOTE_UNREADABLE},
    {CALL_SLOTS, "SLOTS 0 /", VOTE_UNREADABLE},
    {CALL_SLOTS, "SLOTS 0 x1000", VOTE_DONE},
    {CALL_SLOTS, "SLOTS 0 x1001", VOTE_UNREADABLE},
    {CALL_SLOTS, "SLOTS :1 :0", VOTE_UNREADABLE},
    {CALL_SLOTS, "SLOTS 1 0", VOTE_UNREADABLE},
    {CALL_EXTEND, "FREE :5", VOTE_UNREADABLE},
    {CALL_EXTEND, "HELD 1 v :5", VOTE_UNREADABLE},
};

TEST_EACH(what_no_script_answers_is_garbage, shapes)
{
    ck_assert_int_eq(decode(shapes[_i].kind, shapes[_i].fields).vote,
                     shapes[_i].vote);
}

TEST(what_comes_with_an_answer_is_told)
{
    struct span name;
    struct call_reply reply = decode(CALL_ACQUIRE, "HELD 1234 token");
    ck_assert_int_eq(reply.pttl_ms, 1234);
    ck_assert(span_is(reply.value, "token"));
    reply = decode(CALL_REPEAT, "SHARED 1234 2");
    ck_assert_int_eq(reply.holders, 2);
    ck_assert_int_eq(reply.highest, 0);
    reply = decode(CALL_REPEAT, "SHARED 1234 2 1700000000000006");
    ck_assert_int_eq(reply.highest, 1700000000000006);
    ck_assert_int_eq(decode(CALL_ACQUIRE, "STALE 9007199254740991").highest,
                     9007199254740991);
    ck_assert_int_eq(decode(CALL_RELEASE, "DELETED 7").listeners, 7);
    reply = decode(CALL_SLOTS, "SLOTS 1500 :0120");
    ck_assert_int_eq(reply.pttl_ms, 1500);
    ck_assert(span_is(reply.slots, "0120"));
    reply = decode(CALL_TOKENS, "TOKENS 7 1:a2:bc");
    ck_assert_int_eq(reply.left, 7);
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, "a"));
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, "bc"));
    ck_assert(!call_next_name(&reply.names, &name));
    reply = decode(CALL_SCAN, "KEYS :42 3:a:b0:5:1:2:3");
    ck_assert_int_eq(reply.cursor, 42);
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, "a:b"));
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, ""));
    ck_assert(call_next_name(&reply.names, &name) && span_is(name, "1:2:3"));
    ck_assert(!call_next_name(&reply.names, &name));
}

static const struct {
    enum call_kind kind;
    const char *word;
    int most;
} lists[] = {{CALL_SCAN, "KEYS :0", RESOURCE_MAX},
             {CALL_TOKENS, "TOKENS 0", TOKEN_MAX}};

TEST_EACH(what_is_listed_has_a_limit, lists)
{
    for (int more = 0; more < 2; more++) {
        int len = lists[_i].most + more;
        const char *line = textf("%s %d:%0*d", lists[_i].word, len, len, 0);
        ck_assert_int_eq(decode(lists[_i].kind, line).vote == VOTE_UNREADABLE,
                         more);
    }
}

/* A bit for each of the lock's names that is missing, or has another value. */
TEST(it_is_told_which_names_have_not_the_token)
{
    static const char *const forms[] = {"FREE %lld", "HELD 1 v %lld",
                                        "SHARED 1 2 %lld"};
    static const long long masks[] = {1, 65535, 0, -1, 65536};
    for (int form = 0; form < 3; form++)
        for (int i = 0; i < 5; i++) {
            struct call_reply reply =
                decode(CALL_EXTEND, textf(forms[form], masks[i]));
            bool is_reported = i < 2 || (i == 2 && form > 0);
            ck_assert_int_eq(reply.vote, !is_reported ? VOTE_UNREADABLE
                                         : form == 0  ? VOTE_FREE
                                                      : VOTE_HELD);
            ck_assert_int_eq(reply.highest, is_reported ? masks[i] : 0);
        }
}

/* Somebody else wrote it: this slot fails, the connection stays. */
TEST(a_slot_with_a_number_that_is_none_of_ours_is_an_error)
{
    static const char *const strange[] = {"0", "-5", "9007199254740992",
                                          "9223372036854775807",
                                          "-9223372036854775808"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        ck_assert_int_eq(
            decode(CALL_ACQUIRE, textf("STALE %s", strange[i])).state,
            STATE_FAILED);
}

/* ---- probes -------------------------------------------------------------- */

enum { PROBE_COUNT = 13, PROBE_TEXTS = 5, PROBE_WITNESSES = 11 };

static enum vote probe_vote(const struct script_field *fields, int count)
{
    return script_decode(CALL_PROBE, NOW, fields, count).vote;
}

TEST_RANGE(what_a_probe_found_is_told, 0, PROBE_WORDS)
{
    const struct script_field fields[PROBE_COUNT] = {
        string(simcall_probe_word((enum call_probe_word)_i)),
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
    struct call_reply reply =
        script_decode(CALL_PROBE, NOW, fields, PROBE_COUNT);
    ck_assert_int_eq(reply.vote, VOTE_DONE);
    ck_assert_int_eq(reply.node_now_us, NOW);
    ck_assert_int_eq((int)reply.probe.word, _i);
    ck_assert_uint_eq(reply.probe.admit.len, 11);
    ck_assert_mem_eq(reply.probe.quarantine.ptr, "1:run:m:0:n", 11);
    ck_assert(span_is(reply.probe.taken, "1:taken"));
    ck_assert(span_is(reply.probe.passed, "2:passed:"));
    ck_assert_int_eq(reply.probe.max_ttl_ms, 60000);
    ck_assert_int_eq(reply.probe.is_durable, _i % 3 == 1);
    ck_assert_int_eq(reply.probe.generation, 5);
    ck_assert_int_eq(reply.probe.rest_us, 6);
    ck_assert_int_eq(reply.probe.number, NOW - 7);
    ck_assert_int_eq(reply.probe.is_full, _i % 2);
    ck_assert_uint_eq(reply.probe.witnesses.len, 9);
    ck_assert_mem_eq(reply.probe.witnesses.ptr, "ab=3 cd=4", 9);
    ck_assert(span_is(reply.probe.trace, "ab:0:7"));
    for (int kind = CALL_ADMIT; kind < CALL_KINDS; kind++)
        ck_assert_int_eq(
            script_decode((enum call_kind)kind, NOW, fields, PROBE_COUNT).vote,
            VOTE_UNREADABLE);
}

TEST(a_probe_of_another_shape_is_garbage)
{
    static char text[CALL_STATE_MAX + 2], witnesses[CALL_WITNESSES_MAX + 2],
        trace[CALL_TRACE_MAX + 2];
    memset(trace, 'x', sizeof trace - 1);
    memset(text, 'x', sizeof text - 1);
    memset(witnesses, 'x', sizeof witnesses - 1);
    const struct script_field good[PROBE_COUNT] = {string("QUARANTINED"),
                                                   string(text + 1),
                                                   string(text + 1),
                                                   string(text + 1),
                                                   string(text + 1),
                                                   integer(1),
                                                   integer(1),
                                                   integer(1),
                                                   integer(1),
                                                   integer(1),
                                                   integer(1),
                                                   string(witnesses + 1),
                                                   string(trace + 1)};
    struct script_field fields[PROBE_COUNT];
    memcpy(fields, good, sizeof good);
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_DONE);
    for (int count = 0; count < PROBE_COUNT; count++)
        ck_assert_int_eq(probe_vote(fields, count), VOTE_UNREADABLE);
    for (int i = 0; i < PROBE_COUNT; i++) {
        bool is_text = i < PROBE_TEXTS || i >= PROBE_WITNESSES;
        fields[i] = is_text ? integer(1) : string("1");
        ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_UNREADABLE);
        fields[i] = is_text ? string(i < PROBE_TEXTS        ? text
                                     : i == PROBE_WITNESSES ? witnesses
                                                            : trace)
                            : (struct script_field){0};
        ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_UNREADABLE);
        fields[i] = good[i];
    }
    fields[0] = string("PROBED");
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_UNREADABLE);
}

/* A server would take it for no quarantine record, and yet wait for its
 * quarantine. */
TEST_RANGE(who_says_that_it_is_quarantined_tells_the_quarantine, 0, 3)
{
    static const char *const words[] = {"FRESH", "CREATED", "QUARANTINED"};
    struct script_field fields[PROBE_COUNT] = {
        string(words[_i]), string(""), string("1:run:m:0:n"),
        string(""),        string(""), integer(1),
        integer(1),        integer(1), integer(1),
        integer(1),        integer(1), string(""),
        string("")};
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_DONE);
    fields[2].string = (struct span){"\0:run", 5};
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_UNREADABLE);
    fields[2] = string("");
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_UNREADABLE);
    fields[0] = string("BARE");
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_DONE);
}

/* The script returns no other numbers, and we add some of them to others. */
TEST(a_probe_with_a_number_that_lua_cannot_tell_is_garbage)
{
    const int64_t exact = INT64_C(1) << 53;
    struct script_field fields[PROBE_COUNT] = {
        string("BARE"), string(""),     string(""),     string(""),
        string(""),     integer(exact), integer(exact), integer(exact),
        integer(exact), integer(exact), integer(exact), string(""),
        string("")};
    ck_assert_int_eq(probe_vote(fields, PROBE_COUNT), VOTE_DONE);
    for (int i = PROBE_TEXTS; i < PROBE_WITNESSES; i++) {
        static const int64_t wrong[] = {-1, (INT64_C(1) << 53) + 1, INT64_MAX,
                                        INT64_MIN};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            struct script_field changed[PROBE_COUNT];
            memcpy(changed, fields, sizeof fields);
            changed[i].integer = wrong[k];
            ck_assert_int_eq(probe_vote(changed, PROBE_COUNT), VOTE_UNREADABLE);
        }
    }
}

/* ---- errors -------------------------------------------------------------- */

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
    {"ERR Unknown command called from script", UNFIT(NO_PERMISSION)},
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
    struct call_reply reply = script_decode(CALL_PROBE, NOW, &field, 1);
    ck_assert(span_is(reply.words, "ERR unknown command 'X'"));
    field.string = span_of("ERR no");
    reply = script_decode(CALL_PROBE, NOW, &field, 1);
    ck_assert(span_is(reply.words, "ERR no"));
}
