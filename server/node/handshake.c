/* SPDX-License-Identifier: MIT */
#include "handshake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* The settings of a durable node, as CONFIG GET returns them. */
static const char *const persistence[][2] = {
    {"appendonly", "yes"},
    {"appendfsync", "always"},
    {"no-appendfsync-on-rewrite", "no"},
};

enum { PERSISTENCE_COUNT = sizeof persistence / sizeof *persistence };

/*
 * Redis loads its append-only file as this user. It silently drops writes of a
 * script that this user may not do.
 */
#define LOADER "default"

/* ---- commands ----------------------------------------------------------- */

static void handshake_add(struct handshake_command *command, const char *word)
{
    assert(command->count < HANDSHAKE_ARGS_MAX);
    command->args[command->count++] = span_of(word);
}

/* The words that are the same for each node, and the rule that grants the
 * command; NULL: who lacks it is told otherwise. */
static const struct {
    const char *words[HANDSHAKE_ARGS_MAX + 1]; /* up to a NULL */
    const char *rule;
} steps[HANDSHAKE_STEPS] = {
    [HANDSHAKE_AUTH] = {{"AUTH"}, NULL},
    [HANDSHAKE_SELECT] = {{"SELECT"}, "+select"},
    [HANDSHAKE_SERVER] = {{"INFO", "server"}, "+info"},
    [HANDSHAKE_REPLICATION] = {{"INFO", "replication"}, "+info"},
    [HANDSHAKE_MEMORY] = {{"INFO", "memory"}, "+info"},
    [HANDSHAKE_PERSISTENCE] = {{"CONFIG", "GET"}, NULL},
    [HANDSHAKE_LOADER] = {{"ACL", "GETUSER", LOADER}, NULL},
    [HANDSHAKE_NAME] = {{"CLIENT", "SETNAME", "redlockd"}, NULL},
    [HANDSHAKE_TIME] = {{"TIME"}, "+time"},
    [HANDSHAKE_LOAD_RIGHTS] = {{"SCRIPT", "LOAD"}, "+script|load"},
    [HANDSHAKE_RIGHTS] = {{"EVALSHA"}, "+evalsha"},
    [HANDSHAKE_LOAD] = {{"SCRIPT", "LOAD"}, "+script|load"},
};

/* The key is an argument: a node that refuses it must run the script. */
static void add_rights(struct handshake_command *command, struct span prefix)
{
    assert(prefix.len <= PREFIX_MAX); /* config_load refuses a longer one */
    size_t len = span_copy(command->state_key, prefix);
    len += span_copy(command->state_key + len, span_of(SCRIPT_STATE));
    command->args[command->count++] = script_rights_sha();
    handshake_add(command, "0");
    command->args[command->count++] = (struct span){command->state_key, len};
}

void handshake_command(struct handshake_command *command,
                       enum handshake_step step,
                       const struct address_node *node, const char *prefix)
{
    assert(step < HANDSHAKE_STEPS);
    command->count = 0;
    if ((step == HANDSHAKE_AUTH && node->password[0] == '\0') ||
        (step == HANDSHAKE_SELECT && node->db == 0))
        return;
    for (const char *const *word = steps[step].words; *word != NULL; word++)
        handshake_add(command, *word);
    if (step == HANDSHAKE_AUTH) {
        if (node->user[0] != '\0')
            handshake_add(command, node->user);
        handshake_add(command, node->password);
    } else if (step == HANDSHAKE_SELECT) {
        snprintf(command->digits, sizeof command->digits, "%d", node->db);
        handshake_add(command, command->digits);
    } else if (step == HANDSHAKE_PERSISTENCE) {
        for (int i = 0; i < PERSISTENCE_COUNT; i++)
            handshake_add(command, persistence[i][0]);
    } else if (step == HANDSHAKE_LOAD_RIGHTS) {
        command->args[command->count++] = script_rights_text();
    } else if (step == HANDSHAKE_RIGHTS) {
        add_rights(command, span_of(prefix));
    } else if (step == HANDSHAKE_LOAD) {
        command->args[command->count++] = script_text();
    }
}

/* ---- replies ------------------------------------------------------------ */

static enum node_state handshake_refuse(struct handshake *handshake,
                                        enum node_state state, const char *why)
{
    snprintf(handshake->detail, sizeof handshake->detail, "%s", why);
    return state;
}

static enum node_state refuse_garbage(struct handshake *handshake)
{
    return handshake_refuse(
        handshake, STATE_GARBAGE,
        "the replies to the handshake are not those of Redis");
}

/* Adds another reason why the node is not durable. */
static void add_reason(struct handshake *handshake, const char *what,
                       const char *value)
{
    char *to = handshake->not_durable;
    size_t len = strlen(to), size = sizeof handshake->not_durable;
    handshake->is_durable = false;
    snprintf(to + len, size - len, "%s%s%s", len > 0 ? ", " : "", what, value);
}

/* ---- rights -------------------------------------------------------------- */

/* Adds a word that is not there yet, if it fits. */
static void add_word(char words[SCRIPT_WORDS_MAX], struct span word)
{
    char text[SCRIPT_WORDS_MAX];
    size_t len = strlen(words);
    span_print(text, sizeof text, word);
    struct span rest = {words, len};
    while (rest.len > 0)
        if (span_is(span_take(&rest, ' '), text))
            return;
    if (text[0] == '\0' || len + 1 + strlen(text) >= SCRIPT_WORDS_MAX)
        return;
    if (len > 0)
        words[len++] = ' ';
    memcpy(words + len, text, strlen(text) + 1);
}

static bool is_rule(struct span word)
{
    return word.len > 0 && strchr("+~&", word.ptr[0]) != NULL;
}

/* Those words that are rules, or the others; at most twice as long. False:
 * there are none. */
static bool list(const char *words, bool are_rules, const char *between,
                 char *to)
{
    struct span rest = span_of(words);
    size_t len = 0;
    while (rest.len > 0) {
        struct span word = span_take(&rest, ' ');
        if (is_rule(word) != are_rules)
            continue;
        if (len > 0)
            len += span_copy(to + len, span_of(between));
        len += span_copy(to + len, word);
    }
    to[len] = '\0';
    return len > 0;
}

void handshake_explain(const char *words, char *to, size_t size)
{
    static_assert((int)SCRIPT_WORDS_MAX <= (int)NODE_DETAIL_MAX, "");
    char names[2 * NODE_DETAIL_MAX], rules[NODE_DETAIL_MAX];
    bool has_names = list(words, false, ", ", names);
    bool has_rules = list(words, true, " ", rules);
    snprintf(to, size, "%s%s%s%s%s%s", has_names ? "it does not know " : "",
             names, has_names ? " (rename-command?)" : "",
             has_names && has_rules ? ", and " : "",
             has_rules ? "its user lacks " : "", rules);
}

/*
 * Whether the node refuses this command to our user, or does not know it. Then
 * the handshake goes on, so that all that is missing can be named at once.
 */
static bool note_missing(struct handshake *handshake, enum handshake_step step,
                         struct span words)
{
    if (steps[step].rule == NULL)
        return false;
    if (span_begins(words, "NOPERM "))
        add_word(handshake->needs, span_of(steps[step].rule));
    else if (span_begins(words, "ERR unknown "))
        add_word(handshake->needs, span_of(steps[step].words[0]));
    else
        /* the script could not be loaded */
        return span_begins(words, "NOSCRIPT ") && handshake->needs[0] != '\0';
    return true;
}

static enum node_state judge_rights(struct handshake *handshake)
{
    if (handshake->needs[0] == '\0')
        return STATE_NONE;
    handshake_explain(handshake->needs, handshake->detail,
                      sizeof handshake->detail);
    return STATE_NO_PERMISSION;
}

static enum node_state take_rights(struct handshake *handshake,
                                   const struct script_field *fields, int count)
{
    if (count != 2 || fields[0].type != SCRIPT_FIELD_STRING ||
        fields[1].type != SCRIPT_FIELD_STRING)
        return refuse_garbage(handshake);
    struct span needs = fields[0].string, lacks = fields[1].string;
    while (needs.len > 0)
        add_word(handshake->needs, span_take(&needs, ' '));
    while (lacks.len > 0)
        add_word(handshake->lacks, span_take(&lacks, ' '));
    return judge_rights(handshake);
}

/* ---- errors -------------------------------------------------------------- */

/* An old server, or another program, that does not know AUTH may repeat the
 * password. */
static enum node_state refuse_auth(struct handshake *handshake,
                                   struct span words)
{
    struct ballot ballot = script_decode_error(words);
    const char *why = state_detail(ballot.state);
    if (span_begins(words, "WRONGPASS "))
        why = "WRONGPASS: the node does not accept the user and the password "
              "of --nodes";
    else if (span_begins(words,
                         "ERR AUTH <password> called without any password"))
        why = "the node does not accept AUTH: its user default has no password";
    else if (span_begins(words, "ERR unknown command "))
        why = "it does not know AUTH (rename-command?)";
    else if (ballot.state == STATE_FAILED)
        why = "the node does not accept AUTH";
    return handshake_refuse(handshake, ballot.state, why);
}

/* The node's own words tell most. */
static enum node_state take_error(struct handshake *handshake,
                                  enum handshake_step step, struct span words)
{
    char text[128];
    span_print(text, sizeof text, script_words(words));
    if (step == HANDSHAKE_NAME)
        return STATE_NONE; /* the name only helps to read CLIENT LIST */
    if (step == HANDSHAKE_PERSISTENCE)
        add_reason(handshake, "CONFIG GET is refused: ", text);
    else if (step == HANDSHAKE_LOADER)
        add_reason(handshake, "ACL GETUSER " LOADER " is refused: ", text);
    if (step == HANDSHAKE_PERSISTENCE || step == HANDSHAKE_LOADER)
        return STATE_NONE; /* not allowed to ask: counts as not durable */
    if (step == HANDSHAKE_AUTH)
        return refuse_auth(handshake, words);
    if (note_missing(handshake, step, words))
        return step < HANDSHAKE_RIGHTS ? STATE_NONE : judge_rights(handshake);
    struct ballot ballot = script_decode_error(words);
    span_print(handshake->detail, sizeof handshake->detail,
               script_words(words));
    return ballot.vote == VOTE_UNFIT ? ballot.state : STATE_NO_PERMISSION;
}

/* ---- facts --------------------------------------------------------------- */

/* The value of the line "name:value" of INFO; empty: there is none. */
static struct span find_info(struct span info, const char *name)
{
    while (info.len > 0) {
        struct span line = span_take(&info, '\n');
        if (line.len > 0 && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (span_is(span_take(&line, ':'), name))
            return line;
    }
    return (struct span){"", 0};
}

static bool handshake_is_hex(struct span span)
{
    for (size_t i = 0; i < span.len; i++)
        if (span.ptr[i] == '\0' ||
            strchr("0123456789abcdef", span.ptr[i]) == NULL)
            return false;
    return true;
}

static enum node_state take_server(struct handshake *handshake,
                                   struct span info)
{
    struct span run_id = find_info(info, "run_id");
    struct span found = find_info(info, "valkey_version");
    bool is_valkey = found.len > 0;
    if (!is_valkey)
        found = find_info(info, "redis_version");
    if (run_id.len != RUN_ID_LEN || !handshake_is_hex(run_id) || found.len == 0)
        return refuse_garbage(handshake);
    span_print(handshake->run_id, sizeof handshake->run_id, run_id);
    char version[32], *end;
    span_print(version, sizeof version, found);
    long major = strtol(version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    /* Valkey's numbers begin where it left Redis */
    if (major < 7 || (major == 7 && is_valkey && minor < 2)) {
        snprintf(handshake->detail, sizeof handshake->detail,
                 "version %s is too old: Redis 7 or Valkey 7.2 is needed",
                 version);
        return STATE_TOO_OLD;
    }
    struct span mode = find_info(info, "redis_mode");
    if (mode.len == 0) /* Valkey 8, unless extended-redis-compatibility is on */
        mode = find_info(info, "server_mode");
    if (span_is(mode, "cluster"))
        return handshake_refuse(
            handshake, STATE_CLUSTER,
            "is a node of a Redis Cluster: independent masters are "
            "needed (cluster-enabled no)");
    if (span_is(mode, "sentinel"))
        return handshake_refuse(handshake, STATE_FAILED,
                                "is a Sentinel, not a master");
    return STATE_NONE;
}

static enum node_state take_replication(struct handshake *handshake,
                                        struct span info)
{
    char host[64], port[8];
    struct span role = find_info(info, "role");
    if (span_is(role, "master"))
        return STATE_NONE;
    if (role.len == 0)
        return refuse_garbage(handshake);
    span_print(host, sizeof host, find_info(info, "master_host"));
    span_print(port, sizeof port, find_info(info, "master_port"));
    snprintf(handshake->detail, sizeof handshake->detail,
             "is a replica of %s:%s", host, port);
    return STATE_READ_ONLY;
}

/*
 * An evicted lock would be granted to the next client that asks. But what was
 * locked before can be released.
 */
static enum node_state take_memory(struct handshake *handshake,
                                   struct span info)
{
    char policy[32];
    struct span limit = find_info(info, "maxmemory");
    span_print(policy, sizeof policy, find_info(info, "maxmemory_policy"));
    if (limit.len == 0 || policy[0] == '\0')
        return refuse_garbage(handshake);
    if (span_is(limit, "0") || strcmp(policy, "noeviction") == 0)
        return STATE_NONE;
    snprintf(handshake->evicts, sizeof handshake->evicts,
             "would evict locks when memory is short (maxmemory-policy %s): "
             "CONFIG SET maxmemory-policy noeviction",
             policy);
    return STATE_NONE;
}

/* The value behind the first such name; empty: there is none. */
static struct span find_field(const struct script_field *fields, int count,
                              const char *name)
{
    for (int i = 0; i < count - 1; i++)
        if (fields[i].type == SCRIPT_FIELD_STRING &&
            span_is(fields[i].string, name) &&
            fields[i + 1].type == SCRIPT_FIELD_STRING)
            return fields[i + 1].string;
    return (struct span){"", 0};
}

/* Each name is followed by its value; the pairs come in any order. */
static enum node_state take_persistence(struct handshake *handshake,
                                        const struct script_field *fields,
                                        int count)
{
    for (int i = 0; i < count; i++)
        if (count % 2 != 0 || fields[i].type != SCRIPT_FIELD_STRING)
            return refuse_garbage(handshake);
    handshake->is_durable = true;
    for (int i = 0; i < PERSISTENCE_COUNT; i++) {
        char what[64], value[32];
        struct span found = {"", 0};
        for (int k = 0; k < count; k += 2)
            if (span_is(fields[k].string, persistence[i][0]))
                found = fields[k + 1].string;
        if (span_is(found, persistence[i][1]))
            continue;
        snprintf(what, sizeof what, "%s is ", persistence[i][0]);
        span_print(value, sizeof value, found);
        add_reason(handshake, what, value[0] != '\0' ? value : "not reported");
    }
    return STATE_NONE;
}

/*
 * The flags and passwords before these two are never called like them; the
 * selectors behind them may be, and only add rights.
 */
static void take_loader(struct handshake *handshake,
                        const struct script_field *fields, int count)
{
    if (!span_is(find_field(fields, count, "commands"), "+@all") ||
        !span_is(find_field(fields, count, "keys"), "~*"))
        add_reason(handshake,
                   "the user " LOADER
                   ", as which Redis loads its append-only file, lacks ",
                   "+@all ~*");
}

static enum node_state take_time(struct handshake *handshake,
                                 const struct script_field *fields, int count)
{
    enum { DIGITS = 10 };
    if (count != 2 || fields[0].type != SCRIPT_FIELD_STRING ||
        fields[1].type != SCRIPT_FIELD_STRING)
        return refuse_garbage(handshake);
    int64_t seconds = span_number(fields[0].string, DIGITS);
    int64_t micros = span_number(fields[1].string, DIGITS);
    handshake->node_now_us = seconds * 1000000 + micros;
    if (seconds <= 0 || micros < 0 || micros > 999999 ||
        handshake->node_now_us >= EXACT_MAX)
        return refuse_garbage(handshake);
    return STATE_NONE;
}

enum node_state handshake_take(struct handshake *handshake,
                               enum handshake_step step,
                               const struct script_field *fields, int count)
{
    bool is_array = fields[0].type == SCRIPT_FIELD_ARRAY;
    fields += is_array;
    count -= is_array;
    if (count == 1 && fields[0].type == SCRIPT_FIELD_ERROR)
        return take_error(handshake, step, fields[0].string);
    if (step == HANDSHAKE_NAME)
        return STATE_NONE;
    if (step == HANDSHAKE_TIME)
        return take_time(handshake, fields, count);
    if (step == HANDSHAKE_PERSISTENCE)
        return take_persistence(handshake, fields, count);
    if (step == HANDSHAKE_RIGHTS)
        return take_rights(handshake, fields, count);
    if (step == HANDSHAKE_LOADER) {
        take_loader(handshake, fields, count);
        return STATE_NONE;
    }
    if (count != 1 || fields[0].type != SCRIPT_FIELD_STRING)
        return refuse_garbage(handshake);
    struct span text = fields[0].string;
    switch (step) {
    case HANDSHAKE_AUTH:
    case HANDSHAKE_SELECT:
        return STATE_NONE;
    case HANDSHAKE_SERVER:
        return take_server(handshake, text);
    case HANDSHAKE_REPLICATION:
        return take_replication(handshake, text);
    case HANDSHAKE_MEMORY:
        return take_memory(handshake, text);
    default:
        if (text.len != SCRIPT_SHA_LEN || !handshake_is_hex(text))
            return refuse_garbage(handshake);
        handshake->sha[span_copy(handshake->sha, text)] = '\0';
        return STATE_NONE;
    }
}
