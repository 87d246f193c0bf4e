/*
 * The option table, and how one value is read and printed.
 */
#include "option.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../base/address.h"
#include "../base/hosts.h"
#include "../base/networks.h"

enum { DAY_MS = 24 * 60 * 60 * 1000, RATIO_CHARS = 17 };

#define AT(member) .offset = offsetof(struct config, member)

static const char *const first_starts[] = {"auto", "yes", "no", NULL};
static const char *const asks[] = {"all", "quorum", NULL};
static const char *const levels[] = {"debug", "info", "warn",
                                     "error", "off",  NULL};
static const char *const log_formats[] = {"logfmt", "json", NULL};

const struct option option_table[OPTIONS] = {
    [OPTION_LISTEN] = {"listen", OPTION_IS_LISTEN, "127.0.0.1:8080",
                       .form = "HOST:PORT", .help = "where to serve HTTP"},
    [OPTION_REUSE_PORT] = {"reuse-port", OPTION_IS_SWITCH, "off",
                           AT(reuse_port), .form = "on|off",
                           .help = "let several processes share the port"},
    [OPTION_TLS_CERT] = {"tls-cert", OPTION_IS_PATH, AT(tls_cert),
                         .form = "FILE",
                         .help = "serve HTTPS with this certificate chain "
                                 "(PEM)"},
    [OPTION_TLS_KEY] = {"tls-key", OPTION_IS_PATH, AT(tls_key), .form = "FILE",
                        .help = "the private key of --tls-cert (PEM)"},
    [OPTION_TLS_CLIENT_CA] = {"tls-client-ca", OPTION_IS_PATH,
                              AT(tls_client_ca), .form = "FILE",
                              .help = "require client certificates signed by "
                                      "these CAs (PEM)"},
    [OPTION_TLS_CLIENT_CRL] = {"tls-client-crl", OPTION_IS_PATH,
                               AT(tls_client_crl), .form = "FILE",
                               .help = "refuse client certificates that these "
                                       "lists revoke (PEM)"},
    [OPTION_NODES] = {"nodes", OPTION_IS_NODES, .form = "NODE,NODE,...",
                      .help = "1 to 9 independent Redis masters; 5 are best"},
    [OPTION_NODE_CA] = {"node-ca", OPTION_IS_PATH, AT(node_ca), .form = "FILE",
                        .help = "PEM file of the CAs for rediss:// nodes; "
                                "without it, the system's"},
    [OPTION_NODE_CERT] = {"node-cert", OPTION_IS_PATH, AT(node_cert),
                          .form = "FILE",
                          .help = "PEM file of the certificate for rediss:// "
                                  "nodes that ask for one"},
    [OPTION_NODE_KEY] = {"node-key", OPTION_IS_PATH, AT(node_key),
                         .form = "FILE", .help = "PEM file of its key"},
    [OPTION_NODE_TIMEOUT_MS] = {"node-timeout-ms", OPTION_IS_INTEGER, "250", 1,
                                10000, AT(node_timeout_ms), .form = "MS",
                                .help = "how long a round waits for nodes"},
    [OPTION_DEFAULT_TTL_MS] = {"default-ttl-ms", OPTION_IS_INTEGER, "30000",
                               TTL_MIN_MS, DAY_MS, AT(default_ttl_ms),
                               .form = "MS",
                               .help = "the TTL if the client sends none"},
    [OPTION_MAX_TTL_MS] = {"max-ttl-ms", OPTION_IS_INTEGER, "60000", TTL_MIN_MS,
                           DAY_MS, AT(max_ttl_ms), .form = "MS",
                           .help = "the longest TTL a client may ask for"},
    [OPTION_MAX_HOLD_MS] = {"max-hold-ms", OPTION_IS_INTEGER, "3600000",
                            TTL_MIN_MS, 30LL * DAY_MS, AT(max_hold_ms),
                            .form = "MS",
                            .help =
                                "how long a lock can be held by extending it"},
    [OPTION_MAX_READERS] = {"max-readers", OPTION_IS_INTEGER, "1000", 1,
                            READERS_MAX, AT(max_readers), .form = "N",
                            .help = "how many clients can share a lock"},
    [OPTION_DRIFT_FACTOR] = {"drift-factor", OPTION_IS_RATIO, "0.01", 0, 50,
                             AT(drift_factor), .form = "0...0.5",
                             .help = "assumed clock drift, as part of the TTL"},
    [OPTION_RETRY_COUNT] = {"retry-count", OPTION_IS_INTEGER, "3", 0, 100,
                            AT(retry_count), .form = "N",
                            .help = "how many more rounds a request may take"},
    [OPTION_RETRY_DELAY_MS] = {"retry-delay-ms", OPTION_IS_INTEGER, "200", 0,
                               10000, AT(retry_delay_ms), .form = "MS",
                               .help =
                                   "longest random delay after split votes"},
    [OPTION_KEY_PREFIX] = {"key-prefix", OPTION_IS_PREFIX, "", 0,
                           CONFIG_PREFIX_MAX, AT(key_prefix), .form = "TEXT",
                           .help = "prefix of every key on the nodes"},
    [OPTION_FIRST_START] = {"first-start", OPTION_IS_CHOICE, "auto",
                            AT(first_start), .words = first_starts,
                            .form = "auto|yes|no",
                            .help = "admit empty nodes at once: only durable "
                                    "ones, all, or none"},
    [OPTION_ASK] = {"ask", OPTION_IS_CHOICE, "quorum", AT(ask), .words = asks,
                    .form = "quorum|all",
                    .help = "which nodes an acquire asks at first"},
    [OPTION_CONFIG_EPOCH] = {"config-epoch", OPTION_IS_INTEGER, "1", 1, 1000000,
                             AT(config_epoch), .form = "N",
                             .help = "raise it to change --nodes; locking "
                                     "stops for a while"},
    [OPTION_TAKE_OVER] = {"take-over", OPTION_IS_INTEGER, "0", 0, 1000000,
                          AT(take_over), .form = "EPOCH",
                          .help = "the old servers are stopped: change to "
                                  "this epoch without proof"},
    [OPTION_RESTART_GUARD] = {"restart-guard", OPTION_IS_SWITCH, "on",
                              AT(restart_guard), .form = "on|off",
                              .help = "off: nodes that lost locks vote at "
                                      "once; unsafe"},
    /* longer than the 10 s between two probes of Kubernetes; and together with
     * the last request within the 30 s that it waits */
    [OPTION_DRAIN_MS] = {"drain-ms", OPTION_IS_INTEGER, "12000", 0, 600000,
                         AT(drain_ms), .form = "MS",
                         .help = "how long to keep serving after SIGTERM, so "
                                 "that load balancers notice"},
    [OPTION_AUTH_FILE] = {"auth-file", OPTION_IS_PATH, AT(auth_file),
                          .form = "FILE",
                          .help = "identities and their rights; without it, "
                                  "anybody may do anything"},
    [OPTION_ALLOW_ANONYMOUS] = {"allow-anonymous", OPTION_IS_SWITCH, "off",
                                AT(allow_anonymous), .form = "on|off",
                                .help = "listen beyond loopback without "
                                        "--auth-file"},
    [OPTION_ALLOWED_HOSTS] = {"allowed-hosts", OPTION_IS_LIST,
                              AT(allowed_hosts), .is_list = hosts_are_valid,
                              .want = "names without ports, as in "
                                      "locks.example.com,.example.org",
                              .form = "HOST,HOST,...",
                              .help = "host names that web pages of this "
                                      "server may use; .example.com: all "
                                      "below it"},
    [OPTION_TRUSTED_PROXIES] = {"trusted-proxies", OPTION_IS_LIST,
                                AT(trusted_proxies),
                                .is_list = networks_are_valid,
                                .want = "addresses or networks, as in "
                                        "10.0.0.0/8,2001:db8::7",
                                .form = "NET,NET,...",
                                .help = "proxies whose X-Forwarded-For names "
                                        "the client in logs"},
    [OPTION_LOG_LEVEL] = {"log-level", OPTION_IS_CHOICE, "info", AT(log_level),
                          .words = levels, .form = "LEVEL",
                          .help = "debug, info, warn, error or off"},
    [OPTION_LOG_FORMAT] = {"log-format", OPTION_IS_CHOICE, "logfmt",
                           AT(log_format), .words = log_formats,
                           .form = "logfmt|json", .help = "format of the log"},
    [OPTION_AUDIT_LOG] = {"audit-log", OPTION_IS_PATH, AT(audit_log),
                          .form = "FILE|-",
                          .help = "append a line for each change of a "
                                  "lock; - is stdout"},
    [OPTION_AUDIT_REQUIRED] = {"audit-required", OPTION_IS_SWITCH, "off",
                               AT(audit_required), .form = "on|off",
                               .help = "change no lock without a line in "
                                       "--audit-log"},
    [OPTION_AUDIT_READS] = {"audit-reads", OPTION_IS_SWITCH, "off",
                            AT(audit_reads), .form = "on|off",
                            .help = "append a line for each read, too"},
    [OPTION_CHECK_CONFIG] = {"check-config", OPTION_IS_ACTION,
                             .action = CONFIG_CHECK,
                             .help = "check the configuration and exit"},
    [OPTION_PRINT_CONFIG] = {"print-config", OPTION_IS_ACTION,
                             .action = CONFIG_PRINT,
                             .help = "print all values, no secrets, and exit"},
    [OPTION_PLAN] = {"plan", OPTION_IS_ACTION, .action = CONFIG_PLAN,
                     .help = "look at the nodes, print what a start would do, "
                             "and exit"},
    [OPTION_HEALTHCHECK] = {"healthcheck", OPTION_IS_ACTION,
                            .action = CONFIG_HEALTHCHECK,
                            .help = "exit 0 if the server on --listen is "
                                    "ready, otherwise 1"},
    [OPTION_VERSION] = {"version", OPTION_IS_ACTION, .action = CONFIG_VERSION,
                        .help = "print the version and exit"},
    [OPTION_HELP] = {"help", OPTION_IS_ACTION, .action = CONFIG_HELP,
                     .help = "print this text and exit (also -h)"},
};

bool option_refuse(struct option_reader *reader, const char *format, ...)
{
    char text[CONFIG_ERROR_MAX - OPTION_NAME_SIZE - 8];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args); /* cut if too long */
    va_end(args);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    (void)snprintf(reader->error, CONFIG_ERROR_MAX, "%s%s%s", reader->origin,
                   *reader->origin ? ": " : "", text);
    return false;
}

const char *option_show(const char *value)
{
    return strchr(value, '@') || strstr(value, "://") ? "(not shown)" : value;
}

static bool refuse_value(struct option_reader *reader, const char *value,
                         const char *want)
{
    return option_refuse(reader, "\"%.80s\" is not valid; it must be %s",
                         option_show(value), want);
}

static void *member(struct config *config, const struct option *option)
{
    return (char *)config + option->offset;
}

static bool set_listen(struct option_reader *reader, const char *value)
{
    struct config *config = reader->config;
    config->listen_port = 0;
    const char *reason =
        address_parse(value, config->listen_host, &config->listen_port);
    if (!reason && config->listen_port == 0)
        reason = "the port is missing";
    if (reason)
        return option_refuse(
            reader,
            "\"%.80s\" is not valid: %s; it must be host:port, "
            "as in 127.0.0.1:8080",
            option_show(value), reason);
    return true;
}

static bool set_switch(struct option_reader *reader, bool *out,
                       const char *value)
{
    static const char *const on[] = {"on", "yes", "true", "1"};
    static const char *const off[] = {"off", "no", "false", "0"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        *out = strcmp(value, on[i]) == 0;
        if (*out || strcmp(value, off[i]) == 0)
            return true;
    }
    return refuse_value(reader, value, "on or off");
}

static bool set_integer(struct option_reader *reader,
                        const struct option *option, const char *value)
{
    int64_t number = 0;
    const char *c = value;
    for (; isdigit((unsigned char)*c) && number <= option->max; c++)
        number = number * 10 + (*c - '0');
    if (c == value || *c || number < option->min || number > option->max)
        return option_refuse(
            reader,
            "\"%.80s\" is not valid; it must be a whole number from "
            "%" PRId64 " to %" PRId64,
            option_show(value), option->min, option->max);
    *(int64_t *)member(reader->config, option) = number;
    return true;
}

/*
 * A plain decimal like 0.01: strtod alone would also accept nan and 0x1p-4. A
 * number of RATIO_CHARS is printed as it was read.
 */
static bool set_ratio(struct option_reader *reader, const struct option *option,
                      const char *value)
{
    bool is_plain =
        isdigit((unsigned char)*value) && !value[strspn(value, "0123456789.")];
    char *end = NULL;
    double ratio = is_plain ? strtod(value, &end) : 0;

    if (!is_plain || *end || ratio * 100 > (double)option->max ||
        strlen(value) > RATIO_CHARS)
        return refuse_value(reader, value,
                            "a number from 0 to 0.5 in at most 17 characters");
    *(double *)member(reader->config, option) = ratio;
    return true;
}

/* True if a key with this prefix may contain the reserved name. */
static bool may_be_reserved(const char *prefix, size_t len)
{
    static const char name[] = RESERVED_NAME;
    if (strstr(prefix, name) != NULL)
        return true;
    for (size_t part = 1; part < sizeof name - 1 && part <= len; part++)
        if (memcmp(prefix + len - part, name, part) == 0)
            return true; /* a resource may begin with the rest */
    return false;
}

static bool set_prefix(struct option_reader *reader,
                       const struct option *option, const char *value)
{
    size_t len = strlen(value);

    for (const char *c = value; *c; c++)
        if (!isgraph((unsigned char)*c))
            return refuse_value(reader, value, "visible ASCII characters only");
    if (len > (size_t)option->max)
        return refuse_value(reader, value, "at most 64 bytes long");
    if (may_be_reserved(value, len))
        return option_refuse(
            reader,
            "\"%.80s\" is not valid; it may neither contain \"" RESERVED_NAME
            "\" nor end with its beginning: that names redlockd's own keys",
            option_show(value));
    memcpy(member(reader->config, option), value, len + 1);
    return true;
}

/* Whether such a file can be used turns out when it is opened. */
static bool set_path(struct option_reader *reader, const struct option *option,
                     const char *value)
{
    size_t len = strlen(value);

    if (len > CONFIG_PATH_MAX)
        return refuse_value(reader, value, "a path of at most 1023 bytes");
    for (const char *c = value; *c; c++)
        if (iscntrl((unsigned char)*c))
            return refuse_value(reader, value,
                                "a path without control characters");
    memcpy(member(reader->config, option), value, len + 1);
    return true;
}

static bool set_list(struct option_reader *reader, const struct option *option,
                     const char *value)
{
    size_t len = strlen(value);

    if (len > CONFIG_LIST_MAX || !option->is_list(value))
        return refuse_value(reader, value, option->want);
    memcpy(member(reader->config, option), value, len + 1);
    return true;
}

static bool set_choice(struct option_reader *reader,
                       const struct option *option, const char *value)
{
    char want[64] = "";
    size_t len = 0;

    for (int i = 0; option->words[i]; i++) {
        if (strcmp(value, option->words[i]) == 0) {
            *(int *)member(reader->config, option) = i;
            return true;
        }
        const char *before = option->words[i + 1] ? ", " : " or ";
        len += (size_t)snprintf(want + len, sizeof want - len, "%s%s",
                                i > 0 ? before : "", option->words[i]);
    }
    return refuse_value(reader, value, want);
}

/* Identifies the node by its number: the text may hold a password. */
static bool add_node(struct option_reader *reader, const char *text)
{
    struct config *config = reader->config;
    int count = config->nodes_count;

    if (count == NODES_MAX)
        return option_refuse(reader, "more than %d nodes; give 1 to %d",
                             NODES_MAX, NODES_MAX);
    struct address_node *node = &config->nodes[count];
    const char *reason = address_parse_node(text, node);
    if (reason)
        return option_refuse(reader, "node %d: %s; want " ADDRESS_NODE_FORMS,
                             count + 1, reason);
    for (int i = 0; i < count; i++)
        if (address_is_same(node, &config->nodes[i]))
            return option_refuse(reader,
                                 "node %d is the same server as node %d; each "
                                 "must be a separate master",
                                 count + 1, i + 1);
        else if (strcmp(node->name, config->nodes[i].name) == 0)
            return option_refuse(reader,
                                 "node %d has the name of node %d; each needs "
                                 "a name of its own",
                                 count + 1, i + 1);
    config->nodes_count++;
    return true;
}

static bool set_nodes(struct option_reader *reader, const char *value)
{
    static const char separators[] = ", \t\r\n";
    char *copy = strdup(value);
    char *rest = NULL;
    bool is_done = true;

    if (!copy)
        return option_refuse(reader, "out of memory");
    reader->config->nodes_count = 0;
    for (const char *text = strtok_r(copy, separators, &rest); text && is_done;
         text = strtok_r(NULL, separators, &rest))
        is_done = add_node(reader, text);
    free(copy);
    if (is_done && reader->config->nodes_count == 0)
        return option_refuse(reader, "no node given; want " ADDRESS_NODE_FORMS);
    return is_done;
}

bool option_set(struct option_reader *reader, const struct option *option,
                const char *value)
{
    switch (option->kind) {
    case OPTION_IS_LISTEN:
        return set_listen(reader, value);
    case OPTION_IS_NODES:
        return set_nodes(reader, value);
    case OPTION_IS_SWITCH:
        return set_switch(reader, member(reader->config, option), value);
    case OPTION_IS_INTEGER:
        return set_integer(reader, option, value);
    case OPTION_IS_RATIO:
        return set_ratio(reader, option, value);
    case OPTION_IS_PREFIX:
        return set_prefix(reader, option, value);
    case OPTION_IS_PATH:
        return set_path(reader, option, value);
    case OPTION_IS_LIST:
        return set_list(reader, option, value);
    case OPTION_IS_CHOICE:
        return set_choice(reader, option, value);
    case OPTION_IS_ACTION:
        reader->config->action = option->action;
        return true;
    }
    return false;
}

static const char *scheme_of(const struct address_node *node)
{
    if (node->is_unix)
        return "unix://";
    return node->is_tls ? "rediss://" : "redis://";
}

static void print_nodes(const struct config *config, FILE *out)
{
    for (int i = 0; i < config->nodes_count; i++) {
        const struct address_node *node = &config->nodes[i];
        const char *scheme = scheme_of(node);
        char user[3 * ADDRESS_HOST_MAX + 1];

        (void)fputs(i > 0 ? "," : "", out);
        if (strcmp(node->name, node->address) != 0)
            (void)fprintf(out, "%s=", node->name);
        if (node->is_unix || node->is_tls || *node->password || node->db)
            (void)fputs(scheme, out);
        address_escape(user, sizeof user, node->user, ":/@,");
        if (*node->password)
            (void)fprintf(out, "%s:***@", user);
        (void)fputs(node->address + (node->is_unix ? strlen(scheme) : 0), out);
        if (node->db)
            (void)fprintf(out, node->is_unix ? "?db=%d" : "/%d", node->db);
    }
}

/* %g would write 1e-05, which set_ratio refuses. */
static void print_ratio(FILE *out, double ratio)
{
    char text[RATIO_CHARS + 8];
    int decimals = 0;

    do
        (void)snprintf(text, sizeof text, "%.*f", decimals, ratio);
    while (strtod(text, NULL) != ratio && ++decimals < RATIO_CHARS);
    (void)fputs(text, out);
}

/* Errors of out are for the caller, which checks ferror once, at the end. */
void option_print(const struct option *option, const struct config *config,
                  FILE *out)
{
    const void *value = (const char *)config + option->offset;
    char address[ADDRESS_TEXT_MAX];

    switch (option->kind) {
    case OPTION_IS_LISTEN:
        address_format(address, sizeof address, config->listen_host,
                       config->listen_port);
        (void)fputs(address, out);
        break;
    case OPTION_IS_NODES:
        print_nodes(config, out);
        break;
    case OPTION_IS_SWITCH:
        (void)fputs(*(const bool *)value ? "on" : "off", out);
        break;
    case OPTION_IS_INTEGER:
        (void)fprintf(out, "%" PRId64, *(const int64_t *)value);
        break;
    case OPTION_IS_RATIO:
        print_ratio(out, *(const double *)value);
        break;
    case OPTION_IS_PREFIX:
    case OPTION_IS_PATH:
    case OPTION_IS_LIST:
        (void)fputs(value, out);
        break;
    case OPTION_IS_CHOICE:
        (void)fputs(option->words[*(const int *)value], out);
        break;
    case OPTION_IS_ACTION:
        break;
    }
}
