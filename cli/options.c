/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../server/base/types.h"
#include "../server/lock/lock.h"
#include "complain.h"

/* ---- the tables ---------------------------------------------------------- */

#define OPTIONS_DEFAULT_URL "http://127.0.0.1:8080"

enum value_kind {
    VALUE_FLAG,   /* bool; no value */
    VALUE_NOWAIT, /* sets wait_ms to 0; no value */
    VALUE_HELP,   /* no value */
    VALUE_TEXT,
    VALUE_URLS,
    VALUE_TIME,
    VALUE_NUMBER,
    VALUE_FORCE,   /* a number, or all */
    VALUE_REFUSED, /* not in --help; help says why it is refused */
};

/* An option of one command or more. */
struct option_row {
    char letter; /* 0: only the long name */
    const char *name;
    enum value_kind kind;
    unsigned commands; /* that have it: bits 1 << command_id */
    size_t offset;     /* in struct options */
    int64_t min, max;
    const char *form; /* of its value; "": it takes none */
    const char *help; /* sentences; lines of up to 74 characters */
};

/* A command. */
struct command_row {
    const char *name, *form, *summary;
    int resources_min, resources_max;
    const char *about, *status; /* of the help: before and behind the options */
};

enum { DAY_MS = 24 * 60 * 60 * 1000 };

#define IN(command) (1u << COMMAND_##command)
#define IN_ALL ((1u << COMMANDS) - 1)

#define AT(member) .offset = offsetof(struct options, member)

static const struct option_row option_rows[] = {
    {'w', "wait", VALUE_TIME, IN(RUN) | IN(ACQUIRE), AT(wait_ms), 0, DAY_MS,
     "TIME", "Wait at most TIME for the lock; by default forever."},
    {'n', "nonblock", VALUE_NOWAIT, IN(RUN) | IN(ACQUIRE), .form = "",
     .help = "Do not wait; the same as -w 0."},
    {'t', "ttl", VALUE_TIME, IN(RUN) | IN(ACQUIRE) | IN(EXTEND), AT(ttl_ms),
     TTL_MIN_MS, DAY_MS, "TIME",
     "The time until the lock expires unless it is extended; by default 30, "
     "at\n"
     "most 60 unless the service allows more."},
    {'s', "shared", VALUE_FLAG, IN(RUN) | IN(ACQUIRE) | IN(EXTEND),
     AT(is_shared), .form = "",
     .help = "Share the lock with others that use --shared."},
    {'E', "conflict-exit-code", VALUE_NUMBER, IN(RUN) | IN(ACQUIRE),
     AT(conflict_code), 0, 255, "CODE",
     "The exit status if another client holds the lock; by default 1."},
    {0, "again", VALUE_FLAG, IN(RUN), AT(is_again), .form = "",
     .help = "Start COMMAND again when the lock was lost or COMMAND failed."},
    {0, "owner", VALUE_TEXT, IN(RUN) | IN(ACQUIRE), AT(owner), .form = "NAME",
     .help = "The label that clients see when they find the lock held. By "
             "default, the\n"
             "name of our identity at the service, or USER@HOST:PID."},
    {0, "limit", VALUE_NUMBER, IN(RUN) | IN(ACQUIRE) | IN(SHOW), AT(limit), 1,
     POOL_SLOTS_MAX, "NUMBER",
     "At most NUMBER clients hold RESOURCE at once, each with its own slot."},
    {0, "permits", VALUE_NUMBER, IN(RUN) | IN(ACQUIRE), AT(permits), 1,
     NAMES_MAX, "NUMBER",
     "With --limit: how many slots to acquire, all or none; by default 1."},
    {0, "grace", VALUE_TIME, IN(RUN), AT(grace_ms), 0, DAY_MS, "TIME",
     "The time from SIGTERM to SIGKILL; by default 5, or a quarter of the TTL\n"
     "if that is less."},
    {0, "slot", VALUE_TEXT, IN(EXTEND) | IN(RELEASE), AT(slots),
     .form = "NUMBER",
     .help =
         "The slot of a permit, or several as in \"1 2\". Without RESOURCE, "
         "the\n"
         "default is $REDLOCKD_SLOT."},
    {0, "token", VALUE_TEXT, IN(EXTEND) | IN(RELEASE), AT(token),
     .form = "TOKEN",
     .help = "The lock token, from acquire; by default $REDLOCKD_TOKEN."},
    {0, "force", VALUE_FORCE, IN(RELEASE), AT(force), 1, EXACT_MAX, "NUMBER",
     "Release the lock with this fencing token, whoever holds it. The holder\n"
     "is not notified. The word all instead of NUMBER releases all readers."},
    {0, "prefix", VALUE_TEXT, IN(LIST), AT(prefix), .form = "TEXT",
     .help = "List only resources that begin with TEXT."},
    {0, "url", VALUE_URLS, IN_ALL, .form = "URL",
     .help = "A replica; repeat --url for more. By default $REDLOCKD_URL, "
             "or\n" OPTIONS_DEFAULT_URL "."},
    {0, "auth-token-file", VALUE_TEXT, IN_ALL & ~IN(READY), AT(auth_token_file),
     .form = "FILE",
     .help = "Our access token for the service, on one line. By default\n"
             "$REDLOCKD_AUTH_TOKEN_FILE, or the token in "
             "$REDLOCKD_AUTH_TOKEN."},
    /* or getopt would take it for the one above */
    {0, "auth-token", VALUE_REFUSED, IN_ALL, .form = "TOKEN",
     .help = "everybody could see it in the process list; write it to a "
             "file for --auth-token-file, or set REDLOCKD_AUTH_TOKEN"},
    {0, "cacert", VALUE_TEXT, IN_ALL, AT(ca_file), .form = "FILE",
     .help = "For https: the CAs to trust. By default $REDLOCKD_CACERT, or "
             "the\n"
             "system's CAs."},
    {0, "cert", VALUE_TEXT, IN_ALL, AT(cert_file), .form = "FILE",
     .help = "For https: our certificate; by default $REDLOCKD_CERT."},
    {0, "key", VALUE_TEXT, IN_ALL, AT(key_file), .form = "FILE",
     .help = "For https: the key of our certificate. By default $REDLOCKD_KEY, "
             "or in\n"
             "the file of --cert."},
    {0, "json", VALUE_FLAG, IN_ALL & ~IN(RUN) & ~IN(READY), AT(is_json),
     .form = "",
     .help = "Print the service's responses, one JSON object per line."},
    {'h', "help", VALUE_HELP, IN_ALL, .form = "", .help = "Show this help."},
};

enum { OPTION_ROWS = sizeof option_rows / sizeof *option_rows };

#define RUN_ABOUT                                                              \
    "Runs COMMAND under the lock, and extends the lock meanwhile. COMMAND\n"   \
    "has REDLOCKD_RESOURCE, REDLOCKD_FENCING_TOKEN and REDLOCKD_TOKEN in\n"    \
    "its environment; with --limit also REDLOCKD_SLOT.\n"                      \
    "\n"                                                                       \
    "If the lock is lost or cannot be extended, COMMAND and all processes\n"   \
    "that it has started get SIGTERM. They get SIGKILL before another\n"       \
    "client can get the lock.\n"                                               \
    "\n"                                                                       \
    "If the service limits how long a lock is held (--max-hold-ms), the\n"     \
    "lock is acquired again before that, without a gap, and COMMAND goes\n"    \
    "on.\n"                                                                    \
    "\n"                                                                       \
    "With --shared, others may run at the same time if they also use\n"        \
    "--shared; nobody has the exclusive lock meanwhile.\n"                     \
    "\n"                                                                       \
    "With --again, redlockctl waits for the lock and starts COMMAND again\n"   \
    "after each loss and each failure. It stops when COMMAND exits with 0,\n"  \
    "or when a signal such as Ctrl-C ends it. If COMMAND ran for less than\n"  \
    "10 seconds, it first pauses for up to 30 seconds.\n"

#define WRONG_STATUS                                                           \
    "  64  the command line is wrong, or the service refuses the request\n"

#define SERVICE_STATUS                                                         \
    "  75  no replica responds, or they have no quorum\n"                      \
    "  76  the server that responds is not redlockd\n"                         \
    "  77  the service does not know us or forbids the request, or has no\n"   \
    "      certificate that we trust\n"

#define CONFLICT_STATUS                                                        \
    "  1   another client holds the lock; -E sets another status\n"

#define RUN_STATUS                                                             \
    "Exit status: that of COMMAND, 128 + the signal that ended it, "           \
    "or\n" CONFLICT_STATUS WRONG_STATUS                                        \
    "  70  the lock was lost, or could not be extended\n"                      \
    "  71  the system refuses a process or memory\n" SERVICE_STATUS            \
    "  126 COMMAND cannot be run\n"                                            \
    "  127 COMMAND is not found\n"                                             \
    "\n"                                                                       \
    "Examples:\n"                                                              \
    "  redlockctl run -n backup -- pg_dump shop -f shop.sql\n"                 \
    "  redlockctl run -w 1m -t 45 --grace 10 deploy -- ./deploy.sh\n"          \
    "  redlockctl run account:1 account:2 -- ./transfer 1 2\n"                 \
    "  redlockctl run -s catalog -- ./export\n"                                \
    "  redlockctl run --limit 3 exports -- ./export\n"                         \
    "  redlockctl run --again -t 15 reports:leader -- ./export\n"

#define ACQUIRE_STATUS                                                         \
    "Exit status: 0, or\n" CONFLICT_STATUS WRONG_STATUS SERVICE_STATUS "\n"    \
    "Example:\n"                                                               \
    "  eval \"$(redlockctl acquire -w 10 deploy)\"\n"

#define EXTEND_ABOUT                                                           \
    "Without RESOURCE, extends $REDLOCKD_RESOURCE, and of a permit the\n"      \
    "slots in $REDLOCKD_SLOT.\n"                                               \
    "\n"                                                                       \
    "With --shared, an exclusive lock becomes shared and gets a new lock\n"    \
    "token: the variables are printed, as by acquire. If it fails, try\n"      \
    "again with the lock token that you have.\n"

#define EXTEND_STATUS                                                          \
    "Exit status: 0, or\n"                                                     \
    "  1   the lock cannot be extended for longer "                            \
    "(max_hold_reached)\n" WRONG_STATUS                                        \
    "  70  the lock is lost: stop work now\n" SERVICE_STATUS "\n"              \
    "Example: let others read what was written under the exclusive lock\n"     \
    "  eval \"$(redlockctl acquire catalog)\"; eval \"$(redlockctl extend "    \
    "-s)\"\n"

#define RELEASE_ABOUT                                                          \
    "Without RESOURCE, releases $REDLOCKD_RESOURCE, and of a permit the\n"     \
    "slots in $REDLOCKD_SLOT.\n"

#define RELEASE_STATUS                                                         \
    "Exit status: 0, or\n" WRONG_STATUS                                        \
    "  70  the lock had expired, or another client holds it\n" SERVICE_STATUS  \
    "\n"                                                                       \
    "Example: release a dead client's lock, by the fencing token of show\n"    \
    "  redlockctl release --force 1795221641865000 order:42\n"

#define SHOW_ABOUT                                                             \
    "Prints one line per RESOURCE. With --limit, prints one line per held\n"   \
    "slot, and how many slots are free.\n"

#define SHOW_STATUS                                                            \
    "Exit status: 0 if at least one is held, or\n"                             \
    "  1   all are free\n" WRONG_STATUS SERVICE_STATUS

#define WATCH_ABOUT                                                            \
    "Runs until it is interrupted. It misses no client that holds a\n"         \
    "RESOURCE for a second or longer.\n"

#define READY_ABOUT                                                            \
    "For container runtimes. Requests GET /readyz, without a token, and\n"     \
    "waits at most 5 seconds. Without --url, it probes the redlockd with\n"    \
    "the same environment: at $REDLOCKD_LISTEN, over TLS if\n"                 \
    "$REDLOCKD_TLS_CERT is set. Over loopback, it accepts any certificate.\n"

#define READY_STATUS                                                           \
    "Exit status: 0, or\n"                                                     \
    "  1   the server is not ready, or does not respond\n"                     \
    "  64  the command line is wrong\n"                                        \
    "  71  the system refuses memory\n"

static const struct command_row command_rows[COMMANDS] = {
    [COMMAND_RUN] = {"run", "RESOURCE... -- COMMAND [ARGUMENT]...",
                     "run a command under a lock", 1, NAMES_MAX, RUN_ABOUT,
                     RUN_STATUS},
    [COMMAND_ACQUIRE] =
        {"acquire", "RESOURCE...",
         "acquire a lock, which expires after its TTL", 1, NAMES_MAX,
         "Prints variables for a shell; extend and release read them.\n",
         ACQUIRE_STATUS},
    [COMMAND_EXTEND] = {"extend", "[RESOURCE]...",
                        "extend a lock that acquire has printed", 0, NAMES_MAX,
                        EXTEND_ABOUT, EXTEND_STATUS},
    [COMMAND_RELEASE] = {"release", "[RESOURCE]...",
                         "release a lock that acquire has printed", 0,
                         NAMES_MAX, RELEASE_ABOUT, RELEASE_STATUS},
    [COMMAND_SHOW] = {"show", "RESOURCE...", "see who holds a lock", 1,
                      NAMES_MAX, SHOW_ABOUT, SHOW_STATUS},
    [COMMAND_LIST] = {"list", "", "list the locks that are held", 0, 0, "",
                      "Exit status: 0, or\n" WRONG_STATUS SERVICE_STATUS},
    [COMMAND_NODES] =
        {"nodes", "", "show the Redis masters", 0, 0, "",
         "Exit status: 0 if a quorum of them votes, or\n" WRONG_STATUS
             SERVICE_STATUS},
    [COMMAND_WATCH] = {"watch", "RESOURCE...",
                       "print a line whenever a lock changes hands", 1,
                       NAMES_MAX, WATCH_ABOUT,
                       "Exit status:\n" WRONG_STATUS SERVICE_STATUS},
    [COMMAND_READY] = {"ready", "", "check whether one server is ready", 0, 0,
                       READY_ABOUT, READY_STATUS},
};

/* ---- help ---------------------------------------------------------------- */

static void print_options(enum command_id id)
{
    (void)puts("\nOptions:");
    for (int i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        char letter[] = {'-', row->letter, ',', ' ', '\0'};
        if (!(row->commands & 1u << id) || row->kind == VALUE_REFUSED)
            continue;
        (void)printf("  %s--%s%s%s\n      ", row->letter ? letter : "",
                     row->name, *row->form ? " " : "", row->form);
        for (const char *c = row->help; *c; c++) {
            (void)putchar(*c);
            if (*c == '\n')
                (void)fputs("      ", stdout);
        }
        (void)putchar('\n');
    }
    (void)puts("\nA TIME is in seconds or has a unit: 30, 1.5, 500ms, 2m, 1h.");
}

void options_print_help(enum command_id id)
{
    if (id != COMMANDS) {
        const struct command_row *row = &command_rows[id];
        (void)printf(
            "redlockctl %s: %s\n\nUsage: redlockctl %s [OPTION]...%s%s\n"
            "%s%s",
            row->name, row->summary, row->name, *row->form ? " " : "",
            row->form, *row->about ? "\n" : "", row->about);
        print_options(id);
        (void)printf("\n%s", row->status);
        return;
    }
    (void)puts("redlockctl: locks of redlockd for shells and scripts\n\n"
               "Usage: redlockctl COMMAND [OPTION]... [ARGUMENT]...\n\n"
               "Commands:");
    for (int i = 0; i < COMMANDS; i++)
        (void)printf("  %-9s %s\n", command_rows[i].name,
                     command_rows[i].summary);
    (void)puts("\nredlockctl COMMAND --help describes a command. --version "
               "prints the version.");
}

void options_complain(const struct options *options, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("redlockctl: ", stderr);
    if (options->resources_count == 0)
        (void)fputs(options->argv[1], stderr); /* the command */
    for (int i = 0; i < options->resources_count; i++) {
        (void)fputs(i > 0 ? ", " : "", stderr);
        shown_put(options->resources[i], stderr);
    }
    (void)fputs(": ", stderr);
    complain_end(format, args);
    va_end(args);
}

/* ---- values -------------------------------------------------------------- */

/* The milliseconds of a unit of time; 0: there is none of this name. */
static double unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", MS_PER_S},
                 {"s", MS_PER_S},
                 {"ms", 1},
                 {"m", 60000.0},
                 {"h", 60 * 60000.0}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

static bool read_time(const char *text, const struct option_row *row,
                      int64_t *out_ms)
{
    const char *unit = text + strspn(text, "0123456789.");
    char *end = NULL;
    double number = isdigit((unsigned char)*text) ? strtod(text, &end) : -1;
    double ms = number * unit_ms(unit);
    if (end != unit || ms < (double)row->min || ms > (double)row->max ||
        unit_ms(unit) <= 0)
        return false;
    *out_ms = (int64_t)(ms + 0.5);
    return true;
}

/* What would follow the ? or # may be a secret, and so may what is before @. */
static bool check_url(const char *url)
{
    size_t len = strcspn(url, "?#");
    const char *shown = strchr(url, '@') != NULL ? "(not shown)" : url;
    if (url[len] != '\0')
        return complain("\"%.*s\": a URL must not contain ? or #; give a token "
                        "with --auth-token-file",
                        shown == url ? (int)at_most((int64_t)len, 80) : 80,
                        shown);
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0)
        return true;
    return complain("\"%.80s\" is not a URL such as " OPTIONS_DEFAULT_URL,
                    shown);
}

/* A slash at the end of a URL is dropped. */
static bool add_urls(struct options *options, const char *text)
{
    static const char between[] = ", \t\n";
    size_t len;
    for (const char *at = text + strspn(text, between); *at != '\0';
         at += len, at += strspn(at, between)) {
        size_t kept = len = strcspn(at, between);
        while (kept > 0 && at[kept - 1] == '/')
            kept--;
        if (options->urls_count == OPTIONS_URLS_MAX)
            return complain("more than %d URLs; give fewer", OPTIONS_URLS_MAX);
        char *url = strndup(at, kept);
        if (url == NULL) {
            complain("out of memory");
            exit(EXIT_OS_ERROR);
        }
        options->urls[options->urls_count++] = url;
        if (!check_url(url))
            return false;
    }
    return true;
}

static bool options_set_value(struct options *options,
                              const struct option_row *row, char *value)
{
    void *member = (char *)options + row->offset;
    int64_t number;
    switch (row->kind) {
    case VALUE_FLAG:
        *(bool *)member = true;
        return true;
    case VALUE_NOWAIT:
        options->wait_ms = 0;
        return true;
    case VALUE_HELP:
        options->action = OPTIONS_HELP;
        return true;
    case VALUE_REFUSED:
        return complain("--%s: %s", row->name, row->help);
    case VALUE_TEXT:
        *(const char **)member = value;
        return true;
    case VALUE_URLS:
        return add_urls(options, value);
    case VALUE_NUMBER:
        number = span_number(span_of(value), 16);
        *(int64_t *)member = number;
        return (number >= row->min && number <= row->max) ||
               complain("--%s: \"%.40s\" is not a whole number from %" PRId64
                        " to %" PRId64,
                        row->name, value, row->min, row->max);
    case VALUE_FORCE:
        number = strcmp(value, "all") == 0 ? OPTIONS_ALL
                                           : span_number(span_of(value), 16);
        *(int64_t *)member = number;
        return number == OPTIONS_ALL ||
               (number >= row->min && number <= row->max) ||
               complain("--%s: \"%.40s\" is neither a fencing token nor all",
                        row->name, value);
    case VALUE_TIME:
        return read_time(value, row, member) ||
               complain("--%s: \"%.40s\" is not a time from %" PRId64
                        "ms to 24h, such as 30, 1.5, 500ms or 2m",
                        row->name, value, row->min);
    }
    return false;
}

/* ---- the command line ---------------------------------------------------- */

enum { FIRST_LONG = 256 }; /* what getopt_long returns for the first */

/* What getopt_long needs to know of the options of a command. */
static void make_getopt(enum command_id id,
                        struct option longs[OPTION_ROWS + 1],
                        char shorts[2 * OPTION_ROWS + 2])
{
    size_t len = 0;
    int count = 0;
    shorts[len++] = ':';
    for (int i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        if (!(row->commands & 1u << id))
            continue;
        bool has_value = *row->form != '\0';
        longs[count++] =
            (struct option){row->name, has_value, NULL, FIRST_LONG + i};
        if (row->letter != 0) {
            shorts[len++] = row->letter;
            if (has_value)
                shorts[len++] = ':';
        }
    }
    shorts[len] = '\0';
    longs[count] = (struct option){NULL, 0, NULL, 0};
}

/* Leaves optind at the first argument that is no option. */
static bool read_flags(struct options *options, int argc, char **argv)
{
    struct option longs[OPTION_ROWS + 1];
    char shorts[2 * OPTION_ROWS + 2];
    const char *name = command_rows[options->command_id].name;
    make_getopt(options->command_id, longs, shorts);
    opterr = 0;
    for (;;) {
        int found = getopt_long(argc, argv, shorts, longs, NULL);
        const struct option_row *row =
            found >= FIRST_LONG ? &option_rows[found - FIRST_LONG] : NULL;
        if (found == -1)
            return true;
        for (int i = 0; i < OPTION_ROWS && row == NULL; i++)
            if (option_rows[i].letter == found)
                row = &option_rows[i];
        if (row == NULL)
            return complain("%s %.40s: %s; see redlockctl %s --help", name,
                            argv[optind - 1],
                            found == ':' ? "needs a value" : "no such option",
                            name);
        if (!options_set_value(options, row, optarg))
            return false;
        if (options->action == OPTIONS_HELP)
            return true;
    }
}

/* ---- checks -------------------------------------------------------------- */

/* Who starts again waits for as long as it takes. */
static bool check_again(const struct options *options)
{
    return !options->is_again || options->wait_ms == OPTIONS_UNSET ||
           complain("--again always waits for the lock; leave out --wait and "
                    "--nonblock");
}

static bool check_counts(const struct options *options)
{
    const struct command_row *row = &command_rows[options->command_id];
    if (options->resources_count < row->resources_min)
        return complain("%s: a resource is missing; see redlockctl %s --help",
                        row->name, row->name);
    if (options->resources_count > row->resources_max)
        return complain("%s takes %d resources at most, not %d", row->name,
                        row->resources_max, options->resources_count);
    if (options->command_id == COMMAND_RUN &&
        (options->command == NULL || *options->command == NULL))
        return complain("run: add -- and a command after the resources, as in "
                        "redlockctl run %.40s -- make deploy",
                        options->resources[0]);
    return true;
}

/*
 * The grace is taken from the TTL: with too little before SIGTERM, one slow
 * answer to an extend would end the command.
 */
static bool check_grace(struct options *options)
{
    enum { USUAL_MS = 5000 };
    if (options->grace_ms == OPTIONS_UNSET)
        options->grace_ms = at_most(options->ttl_ms / 4, USUAL_MS);
    return options->grace_ms <= options->ttl_ms / 2 ||
           complain("--grace: %" PRId64 " ms is more than half of the TTL; "
                    "choose a longer --ttl",
                    options->grace_ms);
}

/* A limit is that of one pool, whose permits have one holder each. */
static bool check_limit(const struct options *options)
{
    if (options->permits > 0 && options->limit == 0)
        return complain(
            "--permits: needs --limit, the number of permits of the resource");
    if (options->permits > options->limit)
        return complain("--permits: %" PRId64 " is more than --limit",
                        options->permits);
    if (options->is_shared && options->limit > 0)
        return complain("--shared cannot be combined with --limit: a permit "
                        "has one holder");
    return options->limit == 0 || options->resources_count == 1 ||
           complain("--limit: needs one resource, not %d",
                    options->resources_count);
}

static const char *variable_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

/*
 * Of a probe: the redlockd that has the same environment, as in a container;
 * one that listens on every address is asked at loopback.
 */
static const char *own_url(const char *listen)
{
    static char url[160];
    static const char *const wildcards[][2] = {{"0.0.0.0:", "127.0.0.1:"},
                                               {"[::]:", "[::1]:"}};
    const char *scheme =
        variable_or("REDLOCKD_TLS_CERT", NULL) != NULL ? "https" : "http";
    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++) {
        size_t len = strlen(wildcards[i][0]);
        if (strncmp(listen, wildcards[i][0], len) == 0) {
            (void)snprintf(url, sizeof url, "%s://%s%s", scheme,
                           wildcards[i][1], listen + len);
            return url;
        }
    }
    (void)snprintf(url, sizeof url, "%s://%s", scheme, listen);
    return url;
}

static bool read_environment(struct options *options)
{
    bool is_probe = options->command_id == COMMAND_READY;
    const char *listen = is_probe ? variable_or("REDLOCKD_LISTEN", NULL) : NULL;
    const char *urls =
        listen != NULL ? own_url(listen) : variable_or("REDLOCKD_URL", "");
    if (options->urls_count == 0 && !add_urls(options, urls))
        return false;
    if (options->urls_count == 0 && !add_urls(options, OPTIONS_DEFAULT_URL))
        return false;
    if (is_probe && options->urls_count != 1)
        return complain("ready: checks one server, not %d; name it with --url",
                        options->urls_count);
    if (options->token == NULL)
        options->token = getenv("REDLOCKD_TOKEN");
    return true;
}

/* Without an argument: the names that acquire has printed, one per line, and
 * the slots if it is a permit. */
static bool options_read_resources(struct options *options)
{
    static char *list[NAMES_MAX];
    bool is_holder = options->command_id == COMMAND_EXTEND ||
                     options->command_id == COMMAND_RELEASE;
    const char *name = command_rows[options->command_id].name;
    char *rest = NULL;
    if (!is_holder)
        return true;
    if (options->token == NULL && options->force == 0)
        return complain(
            "%s: no lock token; give --token, or set REDLOCKD_TOKEN", name);
    if (options->resources_count > 0)
        return true;
    char *text = getenv("REDLOCKD_RESOURCE");
    if (text == NULL || *text == '\0')
        return complain("%s: no resource; give one, or set REDLOCKD_RESOURCE",
                        name);
    if (options->slots == NULL)
        options->slots = variable_or("REDLOCKD_SLOT", NULL);
    options->resources = list;
    for (char *one = strtok_r(text, "\n", &rest);
         one != NULL && options->resources_count < NAMES_MAX;
         one = strtok_r(NULL, "\n", &rest))
        list[options->resources_count++] = one;
    return true;
}

static bool read_first(struct options *options, const char *first)
{
    if (first == NULL)
        return complain("no command given; see redlockctl --help");
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        options->action = OPTIONS_HELP;
    else if (strcmp(first, "--version") == 0)
        options->action = OPTIONS_VERSION;
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(command_rows[i].name, first) == 0)
            options->command_id = (enum command_id)i;
    return options->action != OPTIONS_RUN || options->command_id != COMMANDS ||
           complain("%.40s: no such command; see redlockctl --help", first);
}

bool options_read(struct options *options, int argc, char **argv)
{
    *options = (struct options){
        .command_id = COMMANDS,
        .argv = argv,
        .wait_ms = OPTIONS_UNSET,
        .ttl_ms = 30000,
        .grace_ms = OPTIONS_UNSET,
        .conflict_code = EXIT_NOT_ACQUIRED,
    };
    if (!read_first(options, argc > 1 ? argv[1] : NULL))
        return false;
    if (options->action != OPTIONS_RUN)
        return true;
    /* getopt moves arguments, but not those of the command, behind its end */
    int end = argc;
    if (options->command_id == COMMAND_RUN)
        for (end = 1; end < argc && strcmp(argv[end], "--") != 0;)
            end++;
    if (end < argc)
        options->command = argv + end + 1;
    optind = 2;
    if (!read_flags(options, end, argv))
        return false;
    if (options->action != OPTIONS_RUN)
        return true;
    options->resources = argv + optind;
    options->resources_count = end - optind;
    return check_counts(options) && check_again(options) &&
           check_limit(options) && check_grace(options) &&
           read_environment(options) && options_read_resources(options);
}
