/*
 * Loads the configuration from three places, each overriding those before it:
 * the option table's defaults, the environment, argv.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <string.h>

#include "../base/address.h"
#include "option.h"

static const char env_prefix[] = "REDLOCKD_";
static const char file_suffix[] = "_FILE";

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
static const char *show_name(const char *name, size_t len,
                             char out[OPTION_NAME_SIZE])
{
    if (!span_has_only((struct span){name, len}, "-_"))
        return "(not shown)";
    (void)snprintf(out, OPTION_NAME_SIZE, "%.*s", /* cut if too long */
                   (int)(len < OPTION_NAME_SIZE ? len : OPTION_NAME_SIZE),
                   name);
    return out;
}

/* The flag that a mistyped name may have meant. */
static const char *closest_flag(const char *name, size_t len)
{
    const char *closest = "help";
    int best = 2; /* two letters in common are chance */

    for (int i = 0; i < OPTIONS; i++) {
        int alike = likeness(name, len, option_table[i].flag);
        if (alike > best) {
            best = alike;
            closest = option_table[i].flag;
        }
    }
    return closest;
}

/* ---- the environment ---------------------------------------------------- */

/* max-ttl-ms becomes REDLOCKD_MAX_TTL_MS. */
static void env_name(const struct option *option, char out[OPTION_NAME_SIZE])
{
    (void)snprintf(out, OPTION_NAME_SIZE, "%s%s", env_prefix, option->flag);
    for (char *c = out; *c; c++)
        *c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
}

/*
 * Kubernetes gives each pod variables for every service of its namespace. For a
 * service called redlockd-reuse, REDLOCKD_REUSE_PORT is one of them, so the
 * value counts, too.
 */
static bool env_is_foreign(const char *entry)
{
    static const char form[] =
        "^REDLOCKD(_[A-Z0-9_]+)?_"
        "(SERVICE_HOST=|SERVICE_PORT(_[A-Z0-9_]+)?=|PORT=(tcp|udp|sctp)://|"
        "PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=)";
    regex_t regex;

    if (regcomp(&regex, form, REG_EXTENDED | REG_NOSUB) != 0)
        return false; /* no memory: it is treated as one of ours */
    bool is_foreign = regexec(&regex, entry, 0, NULL, 0) == 0;
    regfree(&regex);
    return is_foreign;
}

/* The value of name in envp; NULL if unset or empty. */
static const char *env_get(char **envp, const char *name)
{
    size_t len = strlen(name);

    for (; *envp; envp++)
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=' &&
            !env_is_foreign(*envp))
            return (*envp)[len + 1] ? *envp + len + 1 : NULL;
    return NULL;
}

/* The name of the variable that holds a secret's file name. */
static void env_file_name(const struct option *option,
                          char out[OPTION_NAME_SIZE])
{
    env_name(option, out);
    size_t len = strlen(out);
    (void)snprintf(out + len, OPTION_NAME_SIZE - len, "%s", file_suffix);
}

/* Variables that redlockctl reads, or sets for its commands. */
static bool env_is_of_client(struct span text)
{
    static const char *const names[] = {"REDLOCKD_URL",
                                        "REDLOCKD_RESOURCE",
                                        "REDLOCKD_TOKEN",
                                        "REDLOCKD_AUTH_TOKEN",
                                        "REDLOCKD_AUTH_TOKEN_FILE",
                                        "REDLOCKD_CACERT",
                                        "REDLOCKD_CERT",
                                        "REDLOCKD_KEY",
                                        "REDLOCKD_FENCING_TOKEN"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (span_is(text, names[i]))
            return true;
    return false;
}

static bool env_is_known(struct span text)
{
    char name[OPTION_NAME_SIZE];

    for (int i = 0; i < OPTIONS; i++) {
        const struct option *option = &option_table[i];
        if (option->kind == OPTION_IS_ACTION)
            continue;
        env_name(option, name);
        if (span_is(text, name))
            return true;
        env_file_name(option, name);
        if (option->kind == OPTION_IS_NODES && span_is(text, name))
            return true;
    }
    return false;
}

/* Catches typing errors: every REDLOCKD_ variable must be an option. */
static bool check_env(struct option_reader *reader, char **envp)
{
    *reader->origin = '\0';
    for (; *envp; envp++) {
        char shown[OPTION_NAME_SIZE];
        struct span text = {*envp, strcspn(*envp, "=")};
        if (strncmp(*envp, env_prefix, sizeof env_prefix - 1) != 0 ||
            env_is_known(text) || env_is_of_client(text) ||
            env_is_foreign(*envp))
            continue;
        const char *name = *envp + sizeof env_prefix - 1;
        return option_refuse(
            reader, "%s: no such variable; each mirrors an option; see --%s",
            show_name(*envp, text.len, shown),
            closest_flag(name, strcspn(name, "=")));
    }
    return true;
}

/* Reads the value of a secret from the file called path. */
static bool load_file(struct option_reader *reader, const struct option *option,
                      const char *path)
{
    char text[8192];
    FILE *file = fopen(path, "r");

    if (!file)
        return option_refuse(reader, "%.200s: %s", option_show(path),
                             strerror(errno));
    size_t len = fread(text, 1, sizeof text - 1, file);
    bool is_whole = !ferror(file) && feof(file) && !memchr(text, '\0', len);
    (void)fclose(file); /* only read: nothing can be lost */
    if (!is_whole)
        return option_refuse(reader, "%.200s must be a text file below 8 KiB",
                             option_show(path));
    text[len] = '\0';
    return option_set(reader, option, text);
}

/* A secret comes from its variable, or from the file that another one names. */
static bool load_env_secret(struct option_reader *reader, int i, char **envp)
{
    const struct option *option = &option_table[i];
    char file_name[OPTION_NAME_SIZE];

    env_name(option, reader->origin);
    env_file_name(option, file_name);
    const char *value = env_get(envp, reader->origin);
    const char *path = env_get(envp, file_name);
    if (value && path)
        return option_refuse(reader, "%s is set too; give only one of them",
                             file_name);
    reader->is_given[i] = value || path;
    if (!path)
        return !value || option_set(reader, option, value);
    memcpy(reader->origin, file_name, sizeof file_name);
    (void)snprintf(reader->config->nodes_file, CONFIG_PATH_MAX + 1, "%s", path);
    return load_file(reader, option, path);
}

static bool load_env_option(struct option_reader *reader, int i, char **envp)
{
    const struct option *option = &option_table[i];

    if (option->kind == OPTION_IS_ACTION)
        return true;
    if (option->kind == OPTION_IS_NODES)
        return load_env_secret(reader, i, envp);
    env_name(option, reader->origin);
    const char *value = env_get(envp, reader->origin);
    reader->is_given[i] = value != NULL;
    return !value || option_set(reader, option, value);
}

static bool load_env(struct option_reader *reader, char **envp)
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
        if (span_is((struct span){arg + 2, len - 2}, option_table[i].flag))
            return i;
    return -1;
}

/* Reads the flag at argv[*at], and the value after it if it needs one. */
static bool load_flag(struct option_reader *reader, char **argv, int *at)
{
    const char *arg = argv[*at];
    const char *equals = strchr(arg, '=');
    size_t name_len = strcspn(arg, "=");
    int i = find_flag(arg);

    *reader->origin = '\0';
    if (i < 0) {
        char shown[OPTION_NAME_SIZE];
        return option_refuse(reader, "%s: no such option; see --%s",
                             show_name(arg, name_len, shown),
                             closest_flag(arg + 2, name_len - 2));
    }
    (void)snprintf(reader->origin, OPTION_NAME_SIZE, "--%s",
                   option_table[i].flag);
    reader->is_given[i] = true;
    if (equals && option_table[i].kind == OPTION_IS_ACTION)
        return option_refuse(reader, "takes no value");
    if (equals)
        return option_set(reader, &option_table[i], equals + 1);
    bool is_alone = !argv[*at + 1] || strncmp(argv[*at + 1], "--", 2) == 0;
    if (option_table[i].kind == OPTION_IS_ACTION ||
        (option_table[i].kind == OPTION_IS_SWITCH && is_alone))
        return option_set(reader, &option_table[i], "on");
    if (is_alone)
        return option_refuse(reader, "needs a value: %s", option_table[i].form);
    return option_set(reader, &option_table[i], argv[++*at]);
}

static bool load_argv(struct option_reader *reader, int argc, char **argv)
{
    for (int at = 1; at < argc; at++) {
        if (argv[at][0] == '-' && argv[at][1] == '-') {
            if (!load_flag(reader, argv, &at))
                return false;
            continue;
        }
        *reader->origin = '\0';
        return option_refuse(
            reader, "argument %d: options begin with --; see --help", at);
    }
    return true;
}

/* ---- the whole ---------------------------------------------------------- */

/* A default outside of a limit is set to the limit; a given value is refused.
 */
static bool check_limits(struct option_reader *reader)
{
    struct config *config = reader->config;

    if (config->default_ttl_ms > config->max_ttl_ms) {
        if (reader->is_given[OPTION_DEFAULT_TTL_MS])
            return option_refuse(reader,
                                 "--default-ttl-ms: %" PRId64
                                 " is above --max-ttl-ms (%" PRId64 ")",
                                 config->default_ttl_ms, config->max_ttl_ms);
        config->default_ttl_ms = config->max_ttl_ms;
    }
    if (config->max_hold_ms < config->max_ttl_ms) {
        if (reader->is_given[OPTION_MAX_HOLD_MS])
            return option_refuse(reader,
                                 "--max-hold-ms: %" PRId64
                                 " is below --max-ttl-ms (%" PRId64 ")",
                                 config->max_hold_ms, config->max_ttl_ms);
        config->max_hold_ms = config->max_ttl_ms;
    }
    return true;
}

/* It was said of one change, and must not stay for the next one. */
static bool check_take_over(struct option_reader *reader)
{
    const struct config *config = reader->config;

    return config->take_over == 0 ||
           config->take_over == config->config_epoch ||
           option_refuse(
               reader,
               "--take-over: %" PRId64 " is not --config-epoch (%" PRId64
               "); take it away, unless all servers of the "
               "old names are stopped: then give %" PRId64,
               config->take_over, config->config_epoch, config->config_epoch);
}

/* A certificate proves nothing without its key. */
static bool check_pair(struct option_reader *reader, const char *whose,
                       const char *cert, const char *key)
{
    bool has_cert = *cert != '\0', has_key = *key != '\0';

    return has_cert == has_key ||
           option_refuse(reader,
                         "--%s-%s is given without --%s-%s; give both or none",
                         whose, has_cert ? "cert" : "key", whose,
                         has_cert ? "key" : "cert");
}

static bool check_tls(struct option_reader *reader)
{
    const struct config *config = reader->config;

    if (!check_pair(reader, "node", config->node_cert, config->node_key) ||
        !check_pair(reader, "tls", config->tls_cert, config->tls_key))
        return false;
    if (*config->tls_client_ca && !*config->tls_cert)
        return option_refuse(reader, "--tls-client-ca: needs TLS; give "
                                     "--tls-cert and --tls-key too");
    return *config->tls_client_ca || !*config->tls_client_crl ||
           option_refuse(reader, "--tls-client-crl: needs --tls-client-ca");
}

static bool check_audit(struct option_reader *reader)
{
    const struct config *config = reader->config;

    return *config->audit_log ||
           !(config->audit_required || config->audit_reads) ||
           option_refuse(reader, "--audit-%s: needs --audit-log",
                         config->audit_required ? "required" : "reads");
}

/* Whether the process is to serve, or what it would do then is asked. */
static bool is_for_serving(const struct config *config)
{
    return config->action == CONFIG_SERVE || config->action == CONFIG_CHECK ||
           config->action == CONFIG_PLAN;
}

/* Redis' protected mode does the same. */
static bool check_anonymous(struct option_reader *reader)
{
    const struct config *config = reader->config;

    return *config->auth_file || *config->tls_client_ca ||
           config->allow_anonymous || !is_for_serving(config) ||
           address_is_loopback(config->listen_host) ||
           option_refuse(reader,
                         "--listen: %.100s is not only this machine: whoever "
                         "connects could take, and force the release of, every "
                         "lock; set --auth-file or --tls-client-ca, listen on "
                         "127.0.0.1, or say --allow-anonymous yes",
                         config->listen_host);
}

static bool check_nodes(struct option_reader *reader)
{
    if (reader->config->nodes_count > 0 || !is_for_serving(reader->config))
        return true;
    return option_refuse(
        reader, "--nodes: no Redis masters given, and REDLOCKD_NODES is not "
                "set; for example --nodes "
                "10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379");
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

bool options_load(struct config *config, int argc, char **argv, char **envp,
                  char error[CONFIG_ERROR_MAX])
{
    struct option_reader reader = {.config = config, .error = error};

    memset(config, 0, sizeof *config);
    *error = '\0';
    if (find_help(config, argc, argv))
        return true;
    for (int i = 0; i < OPTIONS; i++)
        if (option_table[i].standard &&
            !option_set(&reader, &option_table[i], option_table[i].standard))
            return false;
    if (!load_env(&reader, envp) || !load_argv(&reader, argc, argv))
        return false;
    *reader.origin = '\0'; /* from now on it is about several options */
    return check_limits(&reader) && check_take_over(&reader) &&
           check_tls(&reader) && check_nodes(&reader) && check_audit(&reader) &&
           check_anonymous(&reader);
}

void options_print(const struct config *config, FILE *out)
{
    for (int i = 0; i < OPTIONS; i++) {
        if (option_table[i].kind == OPTION_IS_ACTION)
            continue;
        (void)fprintf(out, "--%s=", option_table[i].flag);
        option_print(&option_table[i], config, out);
        (void)fputc('\n', out);
    }
}

void options_print_help(FILE *out)
{
    (void)fputs(
        "redlockd: distributed locks over HTTP, held on several Redis "
        "masters\n\nUsage: redlockd --nodes NODE,NODE,... [OPTION]...\n"
        "\nA NODE is host:port, redis://user:password@host:port/db, the same "
        "with rediss://\nfor TLS, or unix:///path?db=n. With name= before it, "
        "it has a name of its own, and\nmay move to another address under "
        "that name.\n\nOptions:\n",
        out);
    for (int i = 0; i < OPTIONS; i++) {
        const struct option *option = &option_table[i];
        int width = fprintf(out, "  --%s %s", option->flag,
                            option->form ? option->form : "");
        (void)fprintf(out, "%*s%s", width < 28 ? 28 - width : 1, "",
                      option->help);
        if (option->standard)
            (void)fprintf(out, " [%s]", option->standard);
        (void)fputc('\n', out);
    }
    (void)fputs("\nEach may also be an environment variable: --max-ttl-ms is "
                "REDLOCKD_MAX_TTL_MS.\nREDLOCKD_NODES_FILE names a file with "
                "the nodes, to keep passwords out of the\nprocess list. A flag "
                "beats a variable; an empty variable counts as unset.\n",
                out);
}
