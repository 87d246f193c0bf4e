/* SPDX-License-Identifier: MIT */
/*
 * The option table; how the value of one is read and printed; and the three
 * places that values come from, each overriding those before it: the table's
 * defaults, the environment, argv.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdarg.h>

#include "../base/process.h"

enum {
    DAY_MS = 24 * 60 * 60 * 1000,
    RATIO_CHARS = 17,
    NAME_SIZE = 64,
    FILE_MAX = 8191,
};

enum option_kind {
    IS_LISTEN,
    IS_NODES, /* secret: also from a file, never shown whole */
    IS_SWITCH,
    IS_INTEGER,
    IS_RATIO,
    IS_PATH, /* of a file; empty: none */
    IS_TEXT,
    IS_CHOICE, /* one of some words; the field is an enum */
    IS_ACTION, /* a flag only: no value, no variable */
};

struct option {
    const char *flag; /* without the dashes */
    enum option_kind kind;
    const char *form;         /* of the value, for people */
    const char *help;         /* sentences; lines of up to 74 characters */
    size_t offset;            /* of the field in struct config */
    const char *standard;     /* the default, as text; NULL: none */
    int64_t min, max;         /* integer; ratio: in percent */
    const char *const *words; /* of a choice, by number; ends with NULL */
    enum config_action action;
    /* of a text: NULL, or what the value must be */
    const char *(*find_wrong)(const char *value);
    const char *group; /* that begins here; NULL: the one before goes on */
};

/* ---- texts --------------------------------------------------------------- */

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

static const char *find_wrong_prefix(const char *value)
{
    for (const char *c = value; *c; c++)
        if (!isgraph((unsigned char)*c))
            return "must be visible ASCII characters only";
    if (strlen(value) > CONFIG_PREFIX_MAX)
        return "must be at most 64 bytes long";
    return may_be_reserved(value, strlen(value))
               ? "must not contain \"" RESERVED_NAME "\", or end with the "
                 "beginning of it: redlockd's own keys have that name"
               : NULL;
}

/* Whether such a file can be used turns out when it is opened. */
static const char *find_wrong_path(const char *value)
{
    if (strlen(value) > CONFIG_PATH_MAX)
        return "must be a path of at most 1023 bytes";
    for (const char *c = value; *c; c++)
        if (iscntrl((unsigned char)*c))
            return "must be a path without control characters";
    return NULL;
}

static const char *find_wrong_hosts(const char *value)
{
    return strlen(value) <= CONFIG_LIST_MAX && hosts_are_valid(value)
               ? NULL
               : "must be names without ports, as in "
                 "locks.example.com,.example.net";
}

static const char *find_wrong_networks(const char *value)
{
    return strlen(value) <= CONFIG_LIST_MAX && networks_are_valid(value)
               ? NULL
               : "must be addresses or networks, as in "
                 "10.0.0.0/8,2001:db8::7";
}

/* ---- the table ----------------------------------------------------------- */

#define AT(member) .offset = offsetof(struct config, member)

static const char *const first_starts[] = {"auto", "yes", "no", NULL};
static const char *const asks[] = {"all", "quorum", NULL};
static const char *const levels[] = {"debug", "info", "warn",
                                     "error", "off",  NULL};
static const char *const log_formats[] = {"logfmt", "json", NULL};

static const struct option options[] = {
    {"nodes", IS_NODES, "NODE,NODE,...",
     "The 1 to 9 independent Redis masters; five are best.", AT(nodes),
     .group = "Nodes"},
    {"node-timeout-ms", IS_INTEGER, "MS",
     "How long a round waits for the nodes' votes. It costs time only if the\n"
     "nodes that vote in time are no quorum.",
     AT(node_timeout_ms), "250", 1, 10000},
    {"ask", IS_CHOICE, "quorum|all",
     "Which nodes an acquire queries first. quorum: only as many as it needs,\n"
     "a third less work for the nodes. all: use it if some replies are far\n"
     "later than others. With quorum, a lock in its first 100 ms may be lost\n"
     "with one more node; after that, it is replicated to all nodes.",
     AT(ask), "quorum", .words = asks},
    {"retry-count", IS_INTEGER, "N",
     "How many more rounds a request may run after the first.", AT(retry_count),
     "3", 0, 100},
    {"retry-delay-ms", IS_INTEGER, "MS",
     "The longest random delay before an acquire is retried after split votes.",
     AT(retry_delay_ms), "200", 0, 10000},
    {"key-prefix", IS_TEXT, "TEXT",
     "The prefix of every key on the nodes; the same on all servers.",
     AT(key_prefix), "", .find_wrong = find_wrong_prefix},
    {"node-ca", IS_PATH, "FILE",
     "The CAs that sign the certificates of rediss:// nodes (PEM). Without "
     "it,\n"
     "the system's CAs.",
     AT(node_ca)},
    {"node-cert", IS_PATH, "FILE",
     "The client certificate, with its chain, for rediss:// nodes that "
     "require\n"
     "one (PEM).",
     AT(node_cert)},
    {"node-key", IS_PATH, "FILE",
     "The private key of --node-cert (PEM), without a passphrase.",
     AT(node_key)},
    {"listen", IS_LISTEN, "HOST:PORT",
     "The address to serve. Beyond loopback, it needs --auth-file,\n"
     "--tls-client-ca or --allow-anonymous.",
     AT(listen_host), "127.0.0.1:8080", .group = "HTTP"},
    {"reuse-port", IS_SWITCH, "on|off",
     "Let several redlockd processes share the port.", AT(reuse_port), "off"},
    /* longer than the 10 s between two probes of Kubernetes; and together with
     * the last request within the 30 s that it waits */
    {"drain-ms", IS_INTEGER, "MS",
     "How long to keep serving after SIGTERM, with /readyz at 503. It must be\n"
     "longer than the interval between the probes of load balancers.",
     AT(drain_ms), "12000", 0, 600000},
    {"allowed-hosts", IS_TEXT, "HOST,HOST,...",
     "Host names of this server that web pages may use. .example.com allows "
     "all\n"
     "names below it. Without --auth-file, other names with a dot get 421.",
     AT(allowed_hosts), .find_wrong = find_wrong_hosts},
    {"trusted-proxies", IS_TEXT, "NET,NET,...",
     "Proxies, as addresses or networks. For their requests, logs name the\n"
     "client from X-Forwarded-For.",
     AT(trusted_proxies), .find_wrong = find_wrong_networks},
    {"tls-cert", IS_PATH, "FILE",
     "Serve HTTPS with this certificate, followed by its chain (PEM).",
     AT(tls_cert), .group = "TLS"},
    {"tls-key", IS_PATH, "FILE",
     "The private key of --tls-cert (PEM), without a passphrase.", AT(tls_key)},
    {"tls-client-ca", IS_PATH, "FILE",
     "Require client certificates that these CAs have signed (PEM).",
     AT(tls_client_ca)},
    {"tls-client-crl", IS_PATH, "FILE",
     "Refuse client certificates that these lists revoke (PEM).",
     AT(tls_client_crl)},
    {"auth-file", IS_PATH, "FILE",
     "Identities and their rights; SIGHUP reads it again. Without it, anybody\n"
     "who can connect may do anything.",
     AT(auth_file), .group = "Access"},
    {"allow-anonymous", IS_SWITCH, "on|off",
     "Listen beyond loopback without --auth-file and --tls-client-ca.",
     AT(allow_anonymous), "off"},
    {"default-ttl-ms", IS_INTEGER, "MS",
     "The TTL of a lock if the client sends none.", AT(default_ttl_ms), "30000",
     TTL_MIN_MS, DAY_MS, .group = "Limits"},
    {"max-ttl-ms", IS_INTEGER, "MS",
     "The longest TTL that a client may request.", AT(max_ttl_ms), "60000",
     TTL_MIN_MS, DAY_MS},
    {"max-hold-ms", IS_INTEGER, "MS",
     "How long a client can hold a lock by extending it; 0: without limit.",
     AT(max_hold_ms), "0", 0, 30LL * DAY_MS},
    {"max-readers", IS_INTEGER, "N",
     "How many clients can share a lock; the next one gets 409.",
     AT(max_readers), "1000", 1, READERS_MAX},
    {"drift-factor", IS_RATIO, "0...0.5",
     "The assumed clock drift, as a fraction of the TTL. It shortens the time\n"
     "for which a client may rely on its lock.",
     AT(drift_factor), "0.01", 0, 50, .group = "Data and safety"},
    {"first-start", IS_CHOICE, "auto|yes|no",
     "Whether nodes that were never used may vote at once. auto: only durable\n"
     "nodes. yes is unsafe if all nodes may have lost their data: two clients\n"
     "may then hold the same lock.",
     AT(first_start), "auto", .words = first_starts},
    {"restart-guard", IS_SWITCH, "on|off",
     "Let no node that lost its data vote before its locks have expired. off "
     "is\n"
     "unsafe: two clients may hold the same lock.",
     AT(restart_guard), "on"},
    {"config-epoch", IS_INTEGER, "N",
     "To change the names in --nodes, raise it by one, and keep a majority of\n"
     "the old names. Locking then pauses for the longest TTL and up to 10 s.",
     AT(config_epoch), "1", 1, 1000000},
    {"take-over", IS_INTEGER, "EPOCH",
     "Change the names without a majority of the old ones, for example "
     "because\n"
     "these nodes are lost for good. First stop all servers with the old "
     "names:\n"
     "if one still runs, two clients may hold the same lock. Use the number "
     "of\n"
     "--config-epoch, and remove the option once the log has take_over_done.",
     AT(take_over), "0", 0, 1000000},
    {"log-level", IS_CHOICE, "LEVEL",
     "What to log: debug, info, warn, error or off.", AT(log_level), "info",
     .words = levels, .group = "Logs and audit"},
    {"log-format", IS_CHOICE, "logfmt|json",
     "The format of the log; json: JSON lines.", AT(log_format), "logfmt",
     .words = log_formats},
    {"audit-log", IS_PATH, "FILE|-",
     "Append a JSON line to this file for each lock that is granted, "
     "extended,\n"
     "released or refused; - is standard output.",
     AT(audit_log)},
    {"audit-required", IS_SWITCH, "on|off",
     "Change no lock without a line in --audit-log: while none can be "
     "written,\n"
     "changes get 503.",
     AT(audit_required), "off"},
    {"audit-reads", IS_SWITCH, "on|off",
     "Also append a line for each inspection of a lock and each page of a "
     "list.",
     AT(audit_reads), "off"},
    {"check-config", IS_ACTION, NULL, "Check the configuration and exit.",
     .action = CONFIG_CHECK, .group = "Instead of serving"},
    {"print-config", IS_ACTION, NULL,
     "Print all values, without secrets, and exit.", .action = CONFIG_PRINT},
    {"plan", IS_ACTION, NULL,
     "Probe the nodes, print what a start with these options would do, and\n"
     "exit. It changes nothing.",
     .action = CONFIG_PLAN},
    {"version", IS_ACTION, NULL, "Print the version and exit.",
     .action = CONFIG_VERSION},
    {"help", IS_ACTION, NULL, "Print this help and exit (also -h).",
     .action = CONFIG_HELP},
};

enum { OPTIONS = sizeof options / sizeof *options };

/* ---- errors -------------------------------------------------------------- */

/* Where values go, and what is being read. */
struct reader {
    struct config *config;
    char *error;            /* CONFIG_ERROR_MAX bytes */
    char origin[NAME_SIZE]; /* flag or variable; "": neither */
    bool is_given[OPTIONS]; /* by the environment or argv */
};

/* Writes a line that begins with the origin to error. Returns false. */
__attribute__((format(printf, 2, 3))) static bool
config_refuse(struct reader *reader, const char *format, ...)
{
    char text[CONFIG_ERROR_MAX - NAME_SIZE - 8];
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

/* The value as an error line may show it: nothing that may hold a password. */
static const char *show(const char *value)
{
    return strchr(value, '@') || strstr(value, "://") ? "(not shown)" : value;
}

/* must: "must be …" */
static bool refuse_value(struct reader *reader, const char *value,
                         const char *must)
{
    return config_refuse(reader, "\"%.80s\" is not valid; it %s", show(value),
                         must);
}

/* ---- one value ----------------------------------------------------------- */

static void *member(struct config *config, const struct option *option)
{
    return (char *)config + option->offset;
}

static bool set_listen(struct reader *reader, const char *value)
{
    struct config *config = reader->config;
    config->listen_port = 0;
    const char *reason =
        address_parse(value, config->listen_host, &config->listen_port);
    if (!reason && config->listen_port == 0)
        reason = "the port is missing";
    if (reason)
        return config_refuse(
            reader,
            "\"%.80s\" is not valid: %s; it must be host:port, "
            "as in 127.0.0.1:8080",
            show(value), reason);
    return true;
}

static bool set_switch(struct reader *reader, bool *out, const char *value)
{
    static const char *const on[] = {"on", "yes", "true", "1"};
    static const char *const off[] = {"off", "no", "false", "0"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
        *out = strcmp(value, on[i]) == 0;
        if (*out || strcmp(value, off[i]) == 0)
            return true;
    }
    return refuse_value(reader, value, "must be on or off");
}

static bool set_integer(struct reader *reader, const struct option *option,
                        const char *value)
{
    int64_t number = 0;
    const char *c = value;
    for (; isdigit((unsigned char)*c) && number <= option->max; c++)
        number = number * 10 + (*c - '0');
    if (c == value || *c || number < option->min || number > option->max)
        return config_refuse(
            reader,
            "\"%.80s\" is not valid; it must be a whole number from "
            "%" PRId64 " to %" PRId64,
            show(value), option->min, option->max);
    *(int64_t *)member(reader->config, option) = number;
    return true;
}

/*
 * A plain decimal like 0.01: strtod alone would also accept nan and 0x1p-4. A
 * number of RATIO_CHARS is printed as it was read.
 */
static bool set_ratio(struct reader *reader, const struct option *option,
                      const char *value)
{
    bool is_plain =
        isdigit((unsigned char)*value) && !value[strspn(value, "0123456789.")];
    char *end = NULL;
    double ratio = is_plain ? strtod(value, &end) : 0;
    if (!is_plain || *end || ratio * 100 > (double)option->max ||
        strlen(value) > RATIO_CHARS)
        return refuse_value(
            reader, value,
            "must be a number from 0 to 0.5 in at most 17 characters");
    *(double *)member(reader->config, option) = ratio;
    return true;
}

/* wrong: NULL, or what the value must be. */
static bool set_text(struct reader *reader, const struct option *option,
                     const char *value, const char *wrong)
{
    if (wrong != NULL)
        return refuse_value(reader, value, wrong);
    memcpy(member(reader->config, option), value, strlen(value) + 1);
    return true;
}

static bool set_choice(struct reader *reader, const struct option *option,
                       const char *value)
{
    char must[64] = "must be ";
    size_t len = strlen(must);
    for (int i = 0; option->words[i]; i++) {
        if (strcmp(value, option->words[i]) == 0) {
            *(int *)member(reader->config, option) = i;
            return true;
        }
        const char *before = option->words[i + 1] ? ", " : " or ";
        len += (size_t)snprintf(must + len, sizeof must - len, "%s%s",
                                i > 0 ? before : "", option->words[i]);
    }
    return refuse_value(reader, value, must);
}

/* Identifies the node by its number: the text may hold a password. */
static bool config_add_node(struct reader *reader, const char *text)
{
    struct config *config = reader->config;
    int count = config->nodes_count;
    if (count == NODES_MAX)
        return config_refuse(reader,
                             "more than %d nodes are given; give 1 to %d",
                             NODES_MAX, NODES_MAX);
    struct address_node *node = &config->nodes[count];
    const char *reason = address_parse_node(text, node);
    if (reason)
        return config_refuse(reader, "node %d: %s; want " ADDRESS_NODE_FORMS,
                             count + 1, reason);
    for (int i = 0; i < count; i++)
        if (address_is_same(node, &config->nodes[i]))
            return config_refuse(reader,
                                 "node %d is the same server as node %d; each "
                                 "must be a separate master",
                                 count + 1, i + 1);
        else if (strcmp(node->name, config->nodes[i].name) == 0)
            return config_refuse(reader,
                                 "node %d has the name of node %d; each needs "
                                 "a name of its own",
                                 count + 1, i + 1);
    config->nodes_count++;
    return true;
}

static bool set_nodes(struct reader *reader, const char *value)
{
    static const char separators[] = ", \t\r\n";
    char *copy = strdup(value);
    char *rest = NULL;
    bool is_done = true;
    if (!copy)
        return config_refuse(reader, "out of memory");
    reader->config->nodes_count = 0;
    for (const char *text = strtok_r(copy, separators, &rest); text && is_done;
         text = strtok_r(NULL, separators, &rest))
        is_done = config_add_node(reader, text);
    free(copy);
    if (is_done && reader->config->nodes_count == 0)
        return config_refuse(reader, "no node given; want " ADDRESS_NODE_FORMS);
    return is_done;
}

/* Reads value into the config. False: error says why. */
static bool config_set_value(struct reader *reader, const struct option *option,
                             const char *value)
{
    switch (option->kind) {
    case IS_LISTEN:
        return set_listen(reader, value);
    case IS_NODES:
        return set_nodes(reader, value);
    case IS_SWITCH:
        return set_switch(reader, member(reader->config, option), value);
    case IS_INTEGER:
        return set_integer(reader, option, value);
    case IS_RATIO:
        return set_ratio(reader, option, value);
    case IS_PATH:
        return set_text(reader, option, value, find_wrong_path(value));
    case IS_TEXT:
        return set_text(reader, option, value, option->find_wrong(value));
    case IS_CHOICE:
        return set_choice(reader, option, value);
    case IS_ACTION:
        reader->config->action = option->action;
        return true;
    }
    return false;
}

/* ---- what was meant ------------------------------------------------------ */

static bool is_separator(char c)
{
    return c == '-' || c == '_';
}

/* How many first characters are the same; case, - and _ do not count. */
static int likeness(const char *name, size_t len, const char *flag)
{
    const char *end = name + len;
    int alike = 0;
    while (name < end && *flag) {
        if (is_separator(*name)) {
            name++;
        } else if (is_separator(*flag)) {
            flag++;
        } else if (tolower((unsigned char)*name) == *flag) {
            name++;
            flag++;
            alike++;
        } else {
            break;
        }
    }
    return alike;
}

/*
 * An unknown name of len bytes, as an error line may show it: it may be a
 * misplaced URL with a password.
 */
static const char *show_name(const char *name, size_t len, char out[NAME_SIZE])
{
    if (!span_has_only((struct span){name, len}, "-_"))
        return "(not shown)";
    (void)snprintf(out, NAME_SIZE, "%.*s", /* cut if too long */
                   (int)(len < NAME_SIZE ? len : NAME_SIZE), name);
    return out;
}

/* The flag that a mistyped name may have meant. */
static const char *closest_flag(const char *name, size_t len)
{
    const char *closest = "help";
    int best = 2; /* two letters in common are chance */
    for (int i = 0; i < OPTIONS; i++) {
        int alike = likeness(name, len, options[i].flag);
        if (alike > best) {
            best = alike;
            closest = options[i].flag;
        }
    }
    return closest;
}

/* ---- the environment ---------------------------------------------------- */

static const char env_prefix[] = "REDLOCKD_";
static const char nodes_file[] = "REDLOCKD_NODES_FILE";

/* max-ttl-ms becomes REDLOCKD_MAX_TTL_MS. */
static void env_name(const struct option *option, char out[NAME_SIZE])
{
    (void)snprintf(out, NAME_SIZE, "%s%s", env_prefix, option->flag);
    for (char *c = out; *c; c++)
        *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
}

/*
 * Kubernetes gives each pod variables for every service of its namespace. For a
 * service called redlockd-reuse, REDLOCKD_REUSE_PORT is one of them, so the
 * value counts, too.
 */
static bool env_is_unrelated(const char *entry)
{
    static const char form[] =
        "^REDLOCKD(_[A-Z0-9_]+)?_"
        "(SERVICE_HOST=|SERVICE_PORT(_[A-Z0-9_]+)?=|PORT=(tcp|udp|sctp)://|"
        "PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=)";
    regex_t regex;
    if (regcomp(&regex, form, REG_EXTENDED | REG_NOSUB) != 0)
        return false; /* no memory: it is treated as one of ours */
    bool is_unrelated = regexec(&regex, entry, 0, NULL, 0) == 0;
    regfree(&regex);
    return is_unrelated;
}

/* The value of name in envp; NULL if unset or empty. */
static const char *env_get(char **envp, const char *name)
{
    size_t len = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=' &&
            !env_is_unrelated(*envp))
            return (*envp)[len + 1] ? *envp + len + 1 : NULL;
    return NULL;
}

/* The file with the nodes, what redlockctl reads, or sets for commands, and
 * what the compose file reads. */
static const char other_variables[] =
    "NODES_FILE URL RESOURCE TOKEN AUTH_TOKEN AUTH_TOKEN_FILE CACERT CERT KEY "
    "FENCING_TOKEN SLOT PUBLISH IMAGE";

/* text begins with env_prefix. */
static bool env_is_known(struct span text)
{
    char name[NAME_SIZE];
    struct span bare = span_behind(text, sizeof env_prefix - 1);
    struct span others = span_of(other_variables);
    while (others.len > 0)
        if (span_is_same(bare, span_take(&others, ' ')))
            return true;
    for (int i = 0; i < OPTIONS; i++) {
        env_name(&options[i], name);
        if (options[i].kind != IS_ACTION && span_is(text, name))
            return true;
    }
    return false;
}

/* Catches typing errors: every REDLOCKD_ variable must be an option. */
static bool check_env(struct reader *reader, char **envp)
{
    *reader->origin = '\0';
    for (; *envp; envp++) {
        char shown[NAME_SIZE];
        struct span text = {*envp, strcspn(*envp, "=")};
        if (strncmp(*envp, env_prefix, sizeof env_prefix - 1) != 0 ||
            env_is_known(text) || env_is_unrelated(*envp))
            continue;
        const char *name = *envp + sizeof env_prefix - 1;
        return config_refuse(reader,
                             "%s: no such environment variable; each is named "
                             "after an option; see --%s",
                             show_name(*envp, text.len, shown),
                             closest_flag(name, strcspn(name, "=")));
    }
    return true;
}

/* The value of the nodes, from the file called path. */
static bool load_file(struct reader *reader, const struct option *option,
                      const char *path)
{
    size_t len;
    mode_t mode;
    char *text = process_read_file(path, 0, FILE_MAX, &len, &mode);
    if (!text && (mode == 0 || errno == ENOMEM))
        return config_refuse(reader, "%.200s: %s", show(path), strerror(errno));
    bool is_text = text && strlen(text) == len;
    bool is_set =
        is_text
            ? config_set_value(reader, option, text)
            : config_refuse(reader, "%.200s must be a text file below 8 KiB",
                            show(path));
    free(text);
    return is_set;
}

/* Nodes come from their variable, or from the file that another one names. */
static bool load_env_option(struct reader *reader, int i, char **envp)
{
    const struct option *option = &options[i];
    if (option->kind == IS_ACTION)
        return true;
    env_name(option, reader->origin);
    const char *value = env_get(envp, reader->origin);
    const char *path =
        option->kind == IS_NODES ? env_get(envp, nodes_file) : NULL;
    if (value && path)
        return config_refuse(reader, "%s is set too; give only one of them",
                             nodes_file);
    reader->is_given[i] = value || path;
    if (!path)
        return !value || config_set_value(reader, option, value);
    memcpy(reader->origin, nodes_file, sizeof nodes_file);
    (void)snprintf(reader->config->nodes_file, CONFIG_PATH_MAX + 1, "%s", path);
    return load_file(reader, option, path);
}

static bool load_env(struct reader *reader, char **envp)
{
    bool is_done = check_env(reader, envp);
    for (int i = 0; is_done && i < OPTIONS; i++)
        is_done = load_env_option(reader, i, envp);
    return is_done;
}

/* ---- the command line --------------------------------------------------- */

/* The option that arg, "--flag" or "--flag=value", names; -1: none. */
static int find_flag(const char *arg)
{
    size_t len = strcspn(arg, "=");
    for (int i = 0; i < OPTIONS && len > 2; i++)
        if (span_is((struct span){arg + 2, len - 2}, options[i].flag))
            return i;
    return -1;
}

/* Reads the flag at argv[*at], and the value after it if it needs one. */
static bool load_flag(struct reader *reader, char **argv, int *at)
{
    const char *arg = argv[*at];
    const char *equals = strchr(arg, '=');
    size_t name_len = strcspn(arg, "=");
    int i = find_flag(arg);
    *reader->origin = '\0';
    if (i < 0) {
        char shown[NAME_SIZE];
        return config_refuse(reader, "%s: no such option; see --%s",
                             show_name(arg, name_len, shown),
                             closest_flag(arg + 2, name_len - 2));
    }
    (void)snprintf(reader->origin, NAME_SIZE, "--%s", options[i].flag);
    reader->is_given[i] = true;
    if (equals && options[i].kind == IS_ACTION)
        return config_refuse(reader, "takes no value");
    if (equals)
        return config_set_value(reader, &options[i], equals + 1);
    bool is_alone = !argv[*at + 1] || strncmp(argv[*at + 1], "--", 2) == 0;
    if (options[i].kind == IS_ACTION ||
        (options[i].kind == IS_SWITCH && is_alone))
        return config_set_value(reader, &options[i], "on");
    if (is_alone)
        return config_refuse(reader, "needs a value: %s", options[i].form);
    return config_set_value(reader, &options[i], argv[++*at]);
}

static bool load_argv(struct reader *reader, int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        if (argv[at][0] == '-' && argv[at][1] == '-') {
            if (!load_flag(reader, argv, &at))
                return false;
            continue;
        }
        *reader->origin = '\0';
        return config_refuse(
            reader, "argument %d: options begin with --; see --help", at);
    }
    return true;
}

/* ---- the whole ---------------------------------------------------------- */

/* Whether the environment or argv gave it. */
static bool is_given(const struct reader *reader, const void *field)
{
    for (int i = 0; i < OPTIONS; i++)
        if (options[i].kind == IS_INTEGER &&
            member(reader->config, &options[i]) == field)
            return reader->is_given[i];
    return false;
}

/* A default outside of a limit is set to the limit; a given value is refused.
 */
static bool check_limits(struct reader *reader)
{
    struct config *config = reader->config;
    int64_t most = config->max_ttl_ms, epoch = config->config_epoch;
    if (config->default_ttl_ms > most) {
        if (is_given(reader, &config->default_ttl_ms))
            return config_refuse(reader,
                                 "--default-ttl-ms: %" PRId64
                                 " is above --max-ttl-ms (%" PRId64 ")",
                                 config->default_ttl_ms, most);
        config->default_ttl_ms = most;
    }
    if (config->max_hold_ms != 0 && config->max_hold_ms < most)
        return config_refuse(reader,
                             "--max-hold-ms: %" PRId64
                             " is below --max-ttl-ms (%" PRId64
                             "); 0: without limit",
                             config->max_hold_ms, most);
    /* It was said of one change, and must not stay for the next one. */
    return config->take_over == 0 || config->take_over == epoch ||
           config_refuse(reader,
                         "--take-over: %" PRId64
                         " is not --config-epoch (%" PRId64
                         "); remove it; or, if all servers of the old names "
                         "are stopped, give %" PRId64,
                         config->take_over, epoch, epoch);
}

/* A certificate proves nothing without its key. */
static bool check_pair(struct reader *reader, const char *whose,
                       const char *cert, const char *key)
{
    bool has_cert = *cert != '\0', has_key = *key != '\0';
    return has_cert == has_key ||
           config_refuse(reader,
                         "--%s-%s is given without --%s-%s; give both or none",
                         whose, has_cert ? "cert" : "key", whose,
                         has_cert ? "key" : "cert");
}

static bool check_files(struct reader *reader)
{
    const struct config *config = reader->config;
    if (!check_pair(reader, "node", config->node_cert, config->node_key) ||
        !check_pair(reader, "tls", config->tls_cert, config->tls_key))
        return false;
    if (*config->tls_client_ca && !*config->tls_cert)
        return config_refuse(reader, "--tls-client-ca: needs TLS; give "
                                     "--tls-cert and --tls-key too");
    if (*config->tls_client_crl && !*config->tls_client_ca)
        return config_refuse(reader, "--tls-client-crl: needs --tls-client-ca");
    return *config->audit_log ||
           !(config->audit_required || config->audit_reads) ||
           config_refuse(reader, "--audit-%s: needs --audit-log",
                         config->audit_required ? "required" : "reads");
}

/* What a process needs that is to serve, or is asked what it would do then. */
static bool check_serving(struct reader *reader)
{
    const struct config *config = reader->config;
    if (config->action != CONFIG_SERVE && config->action != CONFIG_CHECK &&
        config->action != CONFIG_PLAN)
        return true;
    if (config->nodes_count == 0)
        return config_refuse(
            reader, "--nodes: no Redis masters given, and REDLOCKD_NODES is "
                    "not set; for example --nodes "
                    "10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379");
    /* Redis' protected mode does the same. */
    return *config->auth_file || *config->tls_client_ca ||
           config->allow_anonymous ||
           address_is_loopback(config->listen_host) ||
           config_refuse(reader,
                         "--listen: %.100s can be reached from other machines, "
                         "where anybody could acquire, and force the release "
                         "of, every lock; set --auth-file or --tls-client-ca, "
                         "listen on 127.0.0.1, or give --allow-anonymous yes",
                         config->listen_host);
}

/* Help and version are answered even if the other options are wrong. */
static bool find_help(struct config *config, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            config->action = CONFIG_HELP;
        else if (strcmp(argv[i], "--version") == 0)
            config->action = CONFIG_VERSION;
    }
    return config->action != CONFIG_SERVE;
}

bool config_load(struct config *config, int argc, char **argv, char **envp,
                 char error[CONFIG_ERROR_MAX])
{
    struct reader reader = {.config = config, .error = error};
    memset(config, 0, sizeof *config);
    *error = '\0';
    if (find_help(config, argc, argv))
        return true;
    for (int i = 0; i < OPTIONS; i++)
        if (options[i].standard &&
            !config_set_value(&reader, &options[i], options[i].standard))
            return false;
    if (!load_env(&reader, envp) || !load_argv(&reader, argc, argv))
        return false;
    *reader.origin = '\0'; /* from now on it is about several options */
    return check_limits(&reader) && check_files(&reader) &&
           check_serving(&reader);
}

/* ---- printing ------------------------------------------------------------ */

static const char *scheme_of(const struct address_node *node)
{
    if (node->is_unix)
        return "unix://";
    return node->is_tls ? "rediss://" : "redis://";
}

static void config_print_nodes(const struct config *config, FILE *out)
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

/* As set_value would read it, secrets replaced. */
static void print_value(const struct option *option,
                        const struct config *config, FILE *out)
{
    const void *value = (const char *)config + option->offset;
    char address[ADDRESS_TEXT_MAX];
    switch (option->kind) {
    case IS_LISTEN:
        address_format(address, sizeof address, config->listen_host,
                       config->listen_port);
        (void)fputs(address, out);
        break;
    case IS_NODES:
        config_print_nodes(config, out);
        break;
    case IS_SWITCH:
        (void)fputs(*(const bool *)value ? "on" : "off", out);
        break;
    case IS_INTEGER:
        (void)fprintf(out, "%" PRId64, *(const int64_t *)value);
        break;
    case IS_RATIO:
        print_ratio(out, *(const double *)value);
        break;
    case IS_PATH:
    case IS_TEXT:
        (void)fputs(value, out);
        break;
    case IS_CHOICE:
        (void)fputs(option->words[*(const int *)value], out);
        break;
    case IS_ACTION:
        break;
    }
}

void config_print(const struct config *config, FILE *out)
{
    for (int i = 0; i < OPTIONS; i++) {
        if (options[i].kind == IS_ACTION)
            continue;
        (void)fprintf(out, "--%s=", options[i].flag);
        print_value(&options[i], config, out);
        (void)fputc('\n', out);
    }
}

static void print_option_help(const struct option *option, FILE *out)
{
    if (option->group)
        (void)fprintf(out, "\n%s:\n", option->group);
    (void)fprintf(out, "  --%s%s%s", option->flag, option->form ? " " : "",
                  option->form ? option->form : "");
    if (option->standard && *option->standard)
        (void)fprintf(out, " [%s]", option->standard);
    (void)fputs("\n      ", out);
    for (const char *c = option->help; *c; c++) {
        (void)fputc(*c, out);
        if (*c == '\n')
            (void)fputs("      ", out);
    }
    (void)fputc('\n', out);
}

void config_print_help(FILE *out)
{
    (void)fputs(
        "redlockd: distributed locks over HTTP, held on several Redis "
        "masters\n\nUsage: redlockd --nodes NODE,NODE,... [OPTION]...\n"
        "\nA NODE is host:port, redis://user:password@host:port/db, the same "
        "with\nrediss:// for TLS, or unix:///path?db=n. With name= before it, "
        "a node has a\nname of its own, and may move to another address. "
        "Brackets show defaults.\n",
        out);
    for (int i = 0; i < OPTIONS; i++)
        print_option_help(&options[i], out);
    (void)fputs("\nEach option is also an environment variable: --max-ttl-ms "
                "is\nREDLOCKD_MAX_TTL_MS. A flag overrides the variable; an "
                "empty variable counts as\nunset. REDLOCKD_NODES_FILE names a "
                "file with the nodes, which keeps passwords\nout of the "
                "process list.\n",
                out);
}
