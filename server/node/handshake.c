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

static void add(struct handshake_command *command, const char *word)
{
    assert(command->count < HANDSHAKE_ARGS_MAX);
    command->args[command->count++] = span_of(word);
}

/* The words that are the same for each node, up to a NULL. */
static const char *const fixed[HANDSHAKE_STEPS][HANDSHAKE_ARGS_MAX + 1] = {
    [HANDSHAKE_SERVER] = {"INFO", "server"},
    [HANDSHAKE_REPLICATION] = {"INFO", "replication"},
    [HANDSHAKE_MEMORY] = {"INFO", "memory"},
    [HANDSHAKE_PERSISTENCE] = {"CONFIG", "GET"},
    [HANDSHAKE_RIGHTS] = {"ACL", "GETUSER", LOADER},
    [HANDSHAKE_NAME] = {"CLIENT", "SETNAME", "redlockd"},
    [HANDSHAKE_TIME] = {"TIME"},
    [HANDSHAKE_LOAD] = {"SCRIPT", "LOAD"},
};

void handshake_command(struct handshake_command *command,
                       enum handshake_step step,
                       const struct address_node *node)
{
    assert(step < HANDSHAKE_STEPS);
    command->count = 0;
    for (const char *const *word = fixed[step]; *word != NULL; word++)
        add(command, *word);
    if (step == HANDSHAKE_AUTH && node->password[0] != '\0') {
        add(command, "AUTH");
        if (node->user[0] != '\0')
            add(command, node->user);
        add(command, node->password);
    } else if (step == HANDSHAKE_SELECT && node->db != 0) {
        snprintf(command->digits, sizeof command->digits, "%d", node->db);
        add(command, "SELECT");
        add(command, command->digits);
    } else if (step == HANDSHAKE_PERSISTENCE) {
        for (int i = 0; i < PERSISTENCE_COUNT; i++)
            add(command, persistence[i][0]);
    } else if (step == HANDSHAKE_LOAD) {
        add(command, script_text().ptr);
    }
}

/* ---- replies ------------------------------------------------------------ */

static enum node_state refuse(struct handshake *handshake,
                              enum node_state state, const char *why)
{
    snprintf(handshake->detail, sizeof handshake->detail, "%s", why);
    return state;
}

static enum node_state refuse_garbage(struct handshake *handshake)
{
    return refuse(handshake, STATE_GARBAGE,
                  "the answers to the handshake are not those of Redis");
}

/* Copies what fits as a text for people, whatever the node put into it. */
static void copy_printable(char *to, size_t size, struct span from)
{
    size_t len = from.len < size - 1 ? from.len : size - 1;
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(from.ptr[i] >= ' ' && from.ptr[i] <= '~' ? from.ptr[i]
                                                                : '?');
    to[len] = '\0';
}

/*
 * The node's own words tell most. But an old or foreign server that does not
 * know AUTH repeats its arguments.
 */
static enum node_state refuse_error(struct handshake *handshake,
                                    enum handshake_step step, struct span words)
{
    struct ballot ballot = script_decode_error(words);
    enum node_state state =
        ballot.vote == VOTE_UNFIT ? ballot.state : STATE_NO_PERMISSION;
    if (step == HANDSHAKE_AUTH)
        return refuse(handshake, state,
                      state == STATE_FAILED ? "the node does not accept AUTH"
                                            : state_detail(state));
    copy_printable(handshake->detail, sizeof handshake->detail, words);
    return state;
}

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

static bool is_hex(struct span span)
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
    struct span version = find_info(info, "valkey_version");
    bool is_valkey = version.len > 0;
    if (!is_valkey)
        version = find_info(info, "redis_version");
    if (run_id.len != RUN_ID_LEN || !is_hex(run_id) || version.len == 0)
        return refuse_garbage(handshake);
    copy_printable(handshake->run_id, sizeof handshake->run_id, run_id);
    copy_printable(handshake->version, sizeof handshake->version, version);
    char *end;
    long major = strtol(handshake->version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    /* Valkey's numbers begin where it left Redis */
    if (major < 7 || (major == 7 && is_valkey && minor < 2)) {
        snprintf(handshake->detail, sizeof handshake->detail,
                 "version %s is too old: Redis 7 or Valkey 7.2 is needed",
                 handshake->version);
        return STATE_TOO_OLD;
    }
    if (span_is(find_info(info, "redis_mode"), "cluster"))
        return refuse(handshake, STATE_CLUSTER,
                      "is a node of a Redis Cluster: independent masters are "
                      "needed (cluster-enabled no)");
    if (span_is(find_info(info, "redis_mode"), "sentinel"))
        return refuse(handshake, STATE_FAILED, "is a Sentinel, not a master");
    return STATE_NONE;
}

static enum node_state take_replication(struct handshake *handshake,
                                        struct span info)
{
    char host[64], port[8];
    copy_printable(handshake->role, sizeof handshake->role,
                   find_info(info, "role"));
    if (strcmp(handshake->role, "master") == 0)
        return STATE_NONE;
    if (handshake->role[0] == '\0')
        return refuse_garbage(handshake);
    copy_printable(host, sizeof host, find_info(info, "master_host"));
    copy_printable(port, sizeof port, find_info(info, "master_port"));
    snprintf(handshake->detail, sizeof handshake->detail,
             "is a replica of %s:%s", host, port);
    return STATE_READ_ONLY;
}

/* An evicted lock would be granted to the next client that asks. */
static enum node_state take_memory(struct handshake *handshake,
                                   struct span info)
{
    char policy[32];
    struct span limit = find_info(info, "maxmemory");
    copy_printable(policy, sizeof policy, find_info(info, "maxmemory_policy"));
    if (limit.len == 0 || policy[0] == '\0')
        return refuse_garbage(handshake);
    if (span_is(limit, "0") || strcmp(policy, "noeviction") == 0)
        return STATE_NONE;
    snprintf(handshake->detail, sizeof handshake->detail,
             "would evict locks when memory is short (maxmemory-policy %s): "
             "CONFIG SET maxmemory-policy noeviction",
             policy);
    return STATE_EVICTS;
}

/* Each name is followed by its value; the pairs come in any order. */
static enum node_state take_persistence(struct handshake *handshake,
                                        const struct script_field *fields,
                                        int count)
{
    int as_needed = 0;
    for (int i = 0; i < count; i++)
        if (count % 2 != 0 || fields[i].type != SCRIPT_FIELD_STRING)
            return refuse_garbage(handshake);
    for (int i = 0; i < count; i += 2)
        for (int k = 0; k < PERSISTENCE_COUNT; k++)
            as_needed += span_is(fields[i].string, persistence[k][0]) &&
                         span_is(fields[i + 1].string, persistence[k][1]);
    handshake->is_durable = as_needed == PERSISTENCE_COUNT;
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

/*
 * The flags and passwords before these two are never called like them; the
 * selectors behind them may be, and only add rights.
 */
static void take_rights(struct handshake *handshake,
                        const struct script_field *fields, int count)
{
    handshake->is_durable =
        handshake->is_durable &&
        span_is(find_field(fields, count, "commands"), "+@all") &&
        span_is(find_field(fields, count, "keys"), "~*");
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
    if (step == HANDSHAKE_NAME)
        return STATE_NONE; /* the name only helps to read CLIENT LIST */
    if (step == HANDSHAKE_RIGHTS) {
        take_rights(handshake, fields, count);
        return STATE_NONE;
    }
    bool is_error = count == 1 && fields[0].type == SCRIPT_FIELD_ERROR;
    if (step == HANDSHAKE_PERSISTENCE && is_error)
        return STATE_NONE; /* not allowed to ask: counts as not durable */
    if (is_error)
        return refuse_error(handshake, step, fields[0].string);
    if (step == HANDSHAKE_TIME)
        return take_time(handshake, fields, count);
    if (step == HANDSHAKE_PERSISTENCE)
        return take_persistence(handshake, fields, count);
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
        if (text.len != SCRIPT_SHA_LEN || !is_hex(text))
            return refuse_garbage(handshake);
        handshake->sha[span_copy(handshake->sha, text)] = '\0';
        return STATE_NONE;
    }
}
