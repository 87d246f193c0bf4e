/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../../../server/node/handshake.h"
#include "../../lib/suite/suite.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define SHA "89abcdef0123456789abcdef0123456789abcdef"

static struct address_node node;
static struct handshake handshake;

static void setup(void)
{
    memset(&node, 0, sizeof node);
    memset(&handshake, 0, sizeof handshake);
}

static const char *words(enum handshake_step step)
{
    static char text[128 * 1024]; /* the script is long */
    struct handshake_command command;
    size_t len = 0;
    handshake_command(&command, step, &node, "p:");
    for (int i = 0; i < command.count; i++) {
        ck_assert_uint_lt(len + command.args[i].len, sizeof text);
        len += span_copy(text + len, command.args[i]);
        text[len++] = ' ';
    }
    text[len > 0 ? len - 1 : 0] = '\0';
    return text;
}

static struct script_field string(const char *text)
{
    return (struct script_field){SCRIPT_FIELD_STRING, 0, span_of(text)};
}

/* Takes one field as the reply. */
static enum node_state take(enum handshake_step step, const char *text)
{
    struct script_field field = string(text);
    if (text[0] == '-') {
        field.type = SCRIPT_FIELD_ERROR;
        field.string = span_of(text + 1);
    }
    return handshake_take(&handshake, step, &field, 1);
}

/* The words of an array. */
static enum node_state take_words(enum handshake_step step, const char *words)
{
    struct script_field fields[14];
    struct span rest = span_of(words);
    int count = 0;
    for (; rest.len > 0; count++)
        fields[count] = (struct script_field){.type = SCRIPT_FIELD_STRING,
                                              .string = span_take(&rest, ' ')};
    return handshake_take(&handshake, step, fields, count);
}

SUITE(handshake, .set_up = setup);

TEST(commands_depend_on_the_node)
{
    ck_assert_str_eq(words(HANDSHAKE_AUTH), "");
    ck_assert_str_eq(words(HANDSHAKE_SELECT), "");
    snprintf(node.password, sizeof node.password, "pass word");
    ck_assert_str_eq(words(HANDSHAKE_AUTH), "AUTH pass word");
    snprintf(node.user, sizeof node.user, "alice");
    ck_assert_str_eq(words(HANDSHAKE_AUTH), "AUTH alice pass word");
    node.db = 15;
    ck_assert_str_eq(words(HANDSHAKE_SELECT), "SELECT 15");
    ck_assert_str_eq(words(HANDSHAKE_MEMORY), "INFO memory");
    ck_assert_str_eq(words(HANDSHAKE_PERSISTENCE),
                     "CONFIG GET appendonly appendfsync "
                     "no-appendfsync-on-rewrite");
    ck_assert_str_eq(words(HANDSHAKE_LOADER), "ACL GETUSER default");
    ck_assert_str_eq(words(HANDSHAKE_NAME), "CLIENT SETNAME redlockd");
    ck_assert_str_eq(words(HANDSHAKE_TIME), "TIME");
    ck_assert_ptr_eq(strstr(words(HANDSHAKE_LOAD), "SCRIPT LOAD --"),
                     words(HANDSHAKE_LOAD));
    ck_assert_has(words(HANDSHAKE_LOAD), "STALE");
}

TEST(facts_are_learned)
{
    const struct script_field time[] = {string("1700000000"), string("000042")};
    ck_assert_int_eq(take(HANDSHAKE_SERVER,
                          "# Server\r\nredis_version:7.2.4\r\n"
                          "valkey_version:8.0.1\r\nrun_id:" RUN_ID "\r\n"),
                     STATE_NONE);
    ck_assert_str_eq(handshake.run_id, RUN_ID);
    ck_assert_int_eq(take(HANDSHAKE_REPLICATION, "role:master\r\nx:1\r\n"),
                     STATE_NONE);
    ck_assert_int_eq(take(HANDSHAKE_MEMORY,
                          "maxmemory:1\r\nmaxmemory_policy:noeviction\r\n"),
                     STATE_NONE);
    ck_assert_int_eq(take(HANDSHAKE_MEMORY,
                          "maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"),
                     STATE_NONE);
    ck_assert_str_eq(handshake.evicts, "");
    ck_assert_int_eq(handshake_take(&handshake, HANDSHAKE_TIME, time, 2),
                     STATE_NONE);
    ck_assert_int_eq(handshake.node_now_us, 1700000000000042);
    ck_assert_int_eq(take(HANDSHAKE_LOAD, SHA), STATE_NONE);
    ck_assert_str_eq(handshake.sha, SHA);
    ck_assert_int_eq(take(HANDSHAKE_NAME, "-NOPERM no"), STATE_NONE);
    ck_assert_int_eq(take(HANDSHAKE_AUTH, "OK"), STATE_NONE);
}

/* What was locked there before can be released. */
TEST(a_node_that_evicts_is_connected_to)
{
    ck_assert_int_eq(take(HANDSHAKE_MEMORY,
                          "used_memory:1\r\nmaxmemory:1000\r\n"
                          "maxmemory_policy:volatile-ttl\r\n"),
                     STATE_NONE);
    ck_assert_has(handshake.evicts, "volatile-ttl");
}

static const char *const fit[] = {
    "redis_version:7.0.0\n",
    "redis_version:7\n",
    "redis_version:10.0.0\n",
    "valkey_version:7.2.0\nredis_version:7.2.4\n",
    "valkey_version:7.10.1\nredis_version:7.2.4\n",
    "valkey_version:8.0.1\nredis_version:7.2.4\n",
    "valkey_version:8\nredis_version:7.2.4\n",
};

TEST_EACH(versions_from_redis_7_and_valkey_7_2_are_fit, fit)
{
    const char *info = textf("%srun_id:" RUN_ID "\n", fit[_i]);
    ck_assert_int_eq(take(HANDSHAKE_SERVER, info), STATE_NONE);
}

#define OF(info) "run_id:" RUN_ID "\r\n" info

/* What the node says, and a word of what people are told. */
static const struct {
    enum handshake_step step;
    const char *reply;
    enum node_state state;
    const char *word;
} refusals[] = {
    {HANDSHAKE_AUTH, "-WRONGPASS invalid username-password pair",
     STATE_NO_PERMISSION, "WRONGPASS"},
    {HANDSHAKE_AUTH, "-WRONGPASS 's3cret' is wrong", STATE_NO_PERMISSION, ""},
    {HANDSHAKE_AUTH, "-ERR unknown command 'AUTH', with args: 's3cret'",
     STATE_NO_PERMISSION, "rename-command"},
    {HANDSHAKE_AUTH, "-ERR s3cret", STATE_FAILED, "AUTH"},
    {HANDSHAKE_AUTH,
     "-ERR AUTH <password> called without any password configured for the "
     "default user. Are you sure your configuration is correct?",
     STATE_FAILED, "default"},
    {HANDSHAKE_AUTH, "-ERR max number of clients reached", STATE_TOO_MANY,
     "maxclients"},
    {HANDSHAKE_SELECT, "-ERR DB index is out of range", STATE_FAILED, "index"},
    {HANDSHAKE_SERVER, "-NOAUTH Authentication required.", STATE_NO_PERMISSION,
     "NOAUTH"},
    {HANDSHAKE_SERVER, "redis_version:7.0.0\r\n", STATE_GARBAGE, ""},
    {HANDSHAKE_SERVER, "run_id:" RUN_ID, STATE_GARBAGE, ""},
    {HANDSHAKE_SERVER, "redis_version:7\nrun_id:" RUN_ID "0", STATE_GARBAGE,
     ""},
    {HANDSHAKE_SERVER, "xrun_id:" RUN_ID "\nredis_version:7", STATE_GARBAGE,
     ""},
    {HANDSHAKE_SERVER, "", STATE_GARBAGE, ""},
    /* it is a part of the admission, between colons */
    {HANDSHAKE_SERVER,
     "redis_version:7.0.0\nrun_id:0123456789abcdef0123456789abcdef:1234567\n",
     STATE_GARBAGE, ""},
    {HANDSHAKE_SERVER, OF("redis_version:6.2.6\r\n"), STATE_TOO_OLD, "6.2.6"},
    {HANDSHAKE_SERVER, OF("redis_version:7.2.4\nvalkey_version:7.1.9\n"),
     STATE_TOO_OLD, "7.1.9"},
    {HANDSHAKE_SERVER, OF("redis_version:7.2.4\nvalkey_version:7\n"),
     STATE_TOO_OLD, " 7 "},
    {HANDSHAKE_SERVER, OF("redis_version:x\r\n"), STATE_TOO_OLD, "x"},
    {HANDSHAKE_SERVER, OF("redis_version:7.0.0\r\nredis_mode:cluster\r\n"),
     STATE_CLUSTER, "cluster-enabled"},
    {HANDSHAKE_SERVER, OF("redis_version:7.0.0\r\nredis_mode:sentinel\r\n"),
     STATE_FAILED, "Sentinel"},
    {HANDSHAKE_SERVER, OF("valkey_version:8.1.1\r\nserver_mode:cluster\r\n"),
     STATE_CLUSTER, "cluster-enabled"},
    {HANDSHAKE_SERVER, OF("valkey_version:8.1.1\r\nserver_mode:sentinel\r\n"),
     STATE_FAILED, "Sentinel"},
    {HANDSHAKE_MEMORY, "maxmemory:0\r\n", STATE_GARBAGE, ""},
    {HANDSHAKE_MEMORY, "maxmemory_policy:noeviction\r\n", STATE_GARBAGE, ""},
    {HANDSHAKE_MEMORY, "-ERR a proxy's words, with args 's3cret'", STATE_FAILED,
     "proxy's words"},
    {HANDSHAKE_RIGHTS, "-ERR user_script:1: attempt to call field",
     STATE_FAILED, "user_script"},
    {HANDSHAKE_RIGHTS, "-NOPERM no", STATE_NO_PERMISSION, "+evalsha"},
    {HANDSHAKE_RIGHTS, "-NOSCRIPT it was flushed", STATE_NO_SCRIPT, "NOSCRIPT"},
    {HANDSHAKE_RIGHTS,
     "-ERR unknown command 'EVALSHA', with args beginning with: 'abc' ",
     STATE_NO_PERMISSION, "EVALSHA (rename-command?)"},
    {HANDSHAKE_LOAD, "-NOPERM no", STATE_NO_PERMISSION, "+script|load"},
    {HANDSHAKE_PERSISTENCE, "OK", STATE_GARBAGE, ""},
    {HANDSHAKE_REPLICATION,
     "role:slave\r\nmaster_host:10.1.2.3\r\nmaster_port:6379\r\n",
     STATE_READ_ONLY, "10.1.2.3:6379"},
    {HANDSHAKE_REPLICATION, "role:x", STATE_READ_ONLY, ""},
    {HANDSHAKE_REPLICATION, "role:\r\n", STATE_GARBAGE, ""},
    {HANDSHAKE_REPLICATION, "rolf:master", STATE_GARBAGE, ""},
    {HANDSHAKE_TIME, "1700000000", STATE_GARBAGE, ""},
    {HANDSHAKE_LOAD, "abc", STATE_GARBAGE, ""},
    {HANDSHAKE_LOAD, "89abcdef0123456789abcdef0123456789abcde\n", STATE_GARBAGE,
     ""},
    {HANDSHAKE_LOAD, "-BUSY Redis is busy", STATE_BUSY, "BUSY"},
    {HANDSHAKE_LOAD, "-LOADING \x01\x1b[31m", STATE_LOADING, "LOADING ??[31m"},
};

TEST_EACH(refusals_are_named, refusals)
{
    ck_assert_int_eq(take(refusals[_i].step, refusals[_i].reply),
                     refusals[_i].state);
    ck_assert_has(handshake.detail, refusals[_i].word);
    ck_assert_str_ne(handshake.detail, "");
    ck_assert_lacks(handshake.detail, "s3cret");
}

/* What CONFIG GET or ACL GETUSER return, and a word of why it is not durable;
 * "": it is. */
static const struct {
    enum handshake_step step;
    const char *fields, *why;
} memories[] = {
    {HANDSHAKE_PERSISTENCE,
     "appendonly yes appendfsync always no-appendfsync-on-rewrite no", ""},
    {HANDSHAKE_PERSISTENCE,
     "no-appendfsync-on-rewrite no appendfsync always appendonly yes", ""},
    {HANDSHAKE_PERSISTENCE,
     "appendonly no appendfsync always no-appendfsync-on-rewrite no",
     "appendonly is no"},
    {HANDSHAKE_PERSISTENCE,
     "appendonly yes appendfsync everysec no-appendfsync-on-rewrite no",
     "appendfsync is everysec"},
    {HANDSHAKE_PERSISTENCE,
     "appendonly no appendfsync every\nsec no-appendfsync-on-rewrite yes",
     "is no, appendfsync is every?sec, no-appendfsync-on-rewrite is yes"},
    {HANDSHAKE_PERSISTENCE, "appendonly yes appendfsync always",
     "no-appendfsync-on-rewrite is not"},
    {HANDSHAKE_PERSISTENCE, "", "appendonly is not"},
    {HANDSHAKE_LOADER, "flags on passwords commands +@all keys ~*", ""},
    {HANDSHAKE_LOADER,
     "commands +@all keys ~* commands -@all keys %R~x selectors", ""},
    {HANDSHAKE_LOADER, "commands -@all keys ~* commands +@all keys ~*",
     "+@all ~*"},
    {HANDSHAKE_LOADER, "commands +@all keys - commands +@all keys ~*",
     "+@all ~*"},
    {HANDSHAKE_LOADER, "commands +@all,-set keys ~*", "+@all ~*"},
    {HANDSHAKE_LOADER, "commands +@all keys %R~*", "+@all ~*"},
    {HANDSHAKE_LOADER, "commands +@all channels &*", "+@all ~*"},
    {HANDSHAKE_LOADER, "keys ~* commands", "+@all ~*"},
    {HANDSHAKE_LOADER, "", "+@all ~*"},
};

TEST_EACH(durable_is_what_forgets_nothing_and_may_be_loaded, memories)
{
    bool is_durable = memories[_i].why[0] == '\0';
    handshake.is_durable = true;
    ck_assert_int_eq(take_words(memories[_i].step, memories[_i].fields),
                     STATE_NONE);
    ck_assert_int_eq(handshake.is_durable, is_durable);
    ck_assert_int_eq(handshake.not_durable[0] == '\0', is_durable);
    ck_assert_has(handshake.not_durable, memories[_i].why);
    handshake.is_durable = false;
    (void)take_words(HANDSHAKE_LOADER, "commands +@all keys ~*");
    ck_assert(!handshake.is_durable);
}

/* Nor are rights that are not told. */
TEST(who_may_not_ask_takes_it_for_not_durable)
{
    ck_assert_int_eq(take(HANDSHAKE_PERSISTENCE,
                          "-ERR unknown command 'CONFIG', with args beginning "
                          "with: 'GET' 'appendonly' "),
                     STATE_NONE);
    ck_assert(!handshake.is_durable);
    handshake.is_durable = true;
    ck_assert_int_eq(take(HANDSHAKE_LOADER, "-NOPERM no 'acl|getuser'"),
                     STATE_NONE);
    ck_assert(!handshake.is_durable);
    ck_assert_has(handshake.not_durable, "unknown command 'CONFIG', ACL");
    ck_assert_has(handshake.not_durable, "'acl|getuser'");
}

/* What a node says to each step of the handshake; "": what a good one says. */
struct lack {
    enum handshake_step step;
    const char *reply;
};

static const struct {
    struct lack lack[5];
    const char *found; /* what rights.lua finds */
    const char *needs;
} lacking[] = {
    {{{HANDSHAKE_SELECT, "-NOPERM no"}}, "", "+select"},
    {{{0}}, "+del +pexpire ~app:*", "+del +pexpire ~app:*"},
    {{{0}}, "DEL PEXPIRE", "DEL PEXPIRE"},
    {{{0}}, "", ""},
    /* once each, in their order */
    {{{HANDSHAKE_SERVER, "-NOPERM no"},
      {HANDSHAKE_REPLICATION, "-NOPERM no"},
      {HANDSHAKE_MEMORY, "-ERR unknown command 'INFO', with args"},
      {HANDSHAKE_TIME, "-NOPERM no"}},
     "+time +info +set",
     "+info INFO +time +set"},
    {{{HANDSHAKE_LOAD_RIGHTS, "-NOPERM no"},
      {HANDSHAKE_RIGHTS, "-NOSCRIPT no"}},
     "",
     "+script|load"},
    {{{HANDSHAKE_LOAD_RIGHTS, "-ERR unknown subcommand 'LOAD'. Try SCRIPT"},
      {HANDSHAKE_RIGHTS, "-NOPERM no"}},
     "",
     "SCRIPT +evalsha"},
    {{{0}}, "+a\x1b[31m", "+a?[31m"},
};

/* Before its first vote, and all at once. */
TEST_EACH(what_is_missing_is_named_at_once, lacking)
{
    enum node_state state = STATE_NONE;
    const struct script_field found[] = {string(lacking[_i].found),
                                         string("+scan CONFIG")};
    bool has_asked = false, is_fit = lacking[_i].needs[0] == '\0';
    for (int i = 0; lacking[_i].lack[i].reply != NULL; i++) {
        ck_assert_int_eq(state, STATE_NONE);
        state = take(lacking[_i].lack[i].step, lacking[_i].lack[i].reply);
        has_asked |= lacking[_i].lack[i].step == HANDSHAKE_RIGHTS;
    }
    if (!has_asked)
        state = handshake_take(&handshake, HANDSHAKE_RIGHTS, found, 2);
    ck_assert_str_eq(handshake.needs, lacking[_i].needs);
    ck_assert_int_eq(state, is_fit ? STATE_NONE : STATE_NO_PERMISSION);
    ck_assert_int_eq(handshake.detail[0] == '\0', is_fit);
    ck_assert_str_eq(handshake.lacks, has_asked ? "" : "+scan CONFIG");
}

static const struct {
    const char *words, *names, *rules;
} explained[] = {
    {"+hset DEL ~p:* GET", " DEL, GET ", " +hset ~p:*"},
    {"+hset", "", " +hset"},
    {"DEL", " DEL ", ""},
};

TEST_EACH(commands_are_told_from_rights, explained)
{
    char text[NODE_DETAIL_MAX];
    handshake_explain(explained[_i].words, text, sizeof text);
    ck_assert_has(text, explained[_i].names);
    ck_assert_has(text, explained[_i].rules);
    ck_assert_int_eq(strstr(text, "rename-command") != NULL,
                     explained[_i].names[0] != '\0');
    ck_assert_int_eq(strstr(text, "user lacks") != NULL,
                     explained[_i].rules[0] != '\0');
}

/* It may be no Redis. */
TEST(a_node_that_lacks_too_much_is_cut)
{
    char many[2 * SCRIPT_WORDS_MAX], without[NODE_DETAIL_MAX];
    for (int sort = 0; sort < 2; sort++) {
        setup();
        for (size_t i = 0; i < sizeof many - 2; i += 2)
            snprintf(many + i, 3, "%c ",
                     sort == 0 ? '!' + (char)(i / 2 % 80) : '+');
        const struct script_field fields[] = {string(many), string(many)};
        ck_assert_int_eq(
            handshake_take(&handshake, HANDSHAKE_RIGHTS, fields, 2),
            STATE_NO_PERMISSION);
        handshake_explain(handshake.lacks, without, sizeof without);
        ck_assert_str_eq(handshake.detail, without);
        memset(many, 'x', sizeof many - 1);
        many[0] = sort == 0 ? '+' : 'x';
        many[sizeof many - 1] = '\0';
        const struct script_field word[] = {string(many), string(many)};
        (void)handshake_take(&handshake, HANDSHAKE_RIGHTS, word, 2);
    }
}

static const char *const times[][2] = {
    {"-5", "0"},          {"0", "0"},         {"1700000000", "1000000"},
    {"9999999999", "0"},  {"", ""},           {"1700000000", "x"},
    {"17000000000", "0"}, {"1700000000", ""}, {"+1700000000", "1"},
};

TEST_EACH(times_that_are_none_are_garbage, times)
{
    const struct script_field fields[] = {string(times[_i][0]),
                                          string(times[_i][1])};
    ck_assert_int_eq(handshake_take(&handshake, HANDSHAKE_TIME, fields, 2),
                     STATE_GARBAGE);
}

TEST(replies_of_another_shape_are_garbage)
{
    const struct script_field fields[] = {{.type = SCRIPT_FIELD_INTEGER},
                                          {.type = SCRIPT_FIELD_NIL}};
    for (int step = 0; step < HANDSHAKE_STEPS; step++)
        for (int count = step == HANDSHAKE_PERSISTENCE;
             step != HANDSHAKE_LOADER && step != HANDSHAKE_NAME && count <= 2;
             count++)
            ck_assert_int_eq(handshake_take(&handshake,
                                            (enum handshake_step)step, fields,
                                            count),
                             STATE_GARBAGE);
}
