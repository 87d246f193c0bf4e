#include "arguments.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../server/base/types.h"
#include "../server/lock/lock.h"
#include "complain.h"

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
            return complain("more than %d URLs", OPTIONS_URLS_MAX);
        char *url = strndup(at, kept);
        if (url == NULL) {
            complain("out of memory");
            exit(EXIT_OS_ERROR);
        }
        options->urls[options->urls_count++] = url;
        if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
            return complain("\"%.80s\" is not a URL such "
                            "as " OPTIONS_DEFAULT_URL,
                            strchr(url, '@') != NULL ? "(not shown)" : url);
    }
    return true;
}

static bool set_value(struct options *options, const struct option_row *row,
                      char *value)
{
    void *member = (char *)options + row->offset;
    int64_t number;
    switch (row->kind) {
    case IS_FLAG:
        *(bool *)member = true;
        return true;
    case IS_NOWAIT:
        options->wait_ms = 0;
        return true;
    case IS_HELP:
        options->action = OPTIONS_HELP;
        return true;
    case IS_REFUSED:
        return complain("--%s: %s", row->name, row->help);
    case IS_TEXT:
        *(const char **)member = value;
        return true;
    case IS_URLS:
        return add_urls(options, value);
    case IS_NUMBER:
        number = span_number(span_of(value), 16);
        *(int64_t *)member = number;
        return (number >= row->min && number <= row->max) ||
               complain("--%s: \"%.40s\" is not a whole number from %" PRId64
                        " to %" PRId64,
                        row->name, value, row->min, row->max);
    case IS_FORCE:
        number = strcmp(value, "all") == 0 ? OPTIONS_ALL
                                           : span_number(span_of(value), 16);
        *(int64_t *)member = number;
        return number == OPTIONS_ALL ||
               (number >= row->min && number <= row->max) ||
               complain("--%s: \"%.40s\" is neither a fencing token nor all",
                        row->name, value);
    case IS_TIME:
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
        if (!set_value(options, row, optarg))
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
           complain("--again: waits for the lock; not with --wait or "
                    "--nonblock");
}

static bool check_counts(const struct options *options)
{
    const struct command_row *row = &command_rows[options->command_id];
    if (options->resources_count < row->resources_min)
        return complain("%s: which resource? see redlockctl %s --help",
                        row->name, row->name);
    if (options->resources_count > row->resources_max)
        return complain("%s takes %d resources at most, not %d", row->name,
                        row->resources_max, options->resources_count);
    if (options->command_id == COMMAND_RUN &&
        (options->command == NULL || *options->command == NULL))
        return complain("run: put -- and a command behind the resources, as in "
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
        return complain("--permits: needs --limit, the number that there are");
    if (options->permits > options->limit)
        return complain("--permits: %" PRId64 " is more than --limit",
                        options->permits);
    if (options->is_shared && options->limit > 0)
        return complain("--shared: not with --limit: a permit has one holder");
    return options->limit == 0 || options->resources_count == 1 ||
           complain("--limit: needs one resource, not %d",
                    options->resources_count);
}

static bool read_environment(struct options *options)
{
    const char *urls = getenv("REDLOCKD_URL");
    if (options->urls_count == 0 && urls != NULL && *urls != '\0' &&
        !add_urls(options, urls))
        return false;
    if (options->urls_count == 0 && !add_urls(options, OPTIONS_DEFAULT_URL))
        return false;
    if (options->token == NULL)
        options->token = getenv("REDLOCKD_TOKEN");
    return true;
}

/* Without an argument: the names that acquire has printed, one per line. */
static bool read_resources(struct options *options)
{
    static char *list[NAMES_MAX];
    bool is_holder = options->command_id == COMMAND_EXTEND ||
                     options->command_id == COMMAND_RELEASE;
    const char *name = command_rows[options->command_id].name;
    char *rest = NULL;
    if (!is_holder)
        return true;
    if (options->token == NULL && options->force == 0)
        return complain("%s: no --token, and no REDLOCKD_TOKEN", name);
    if (options->resources_count > 0)
        return true;
    char *text = getenv("REDLOCKD_RESOURCE");
    if (text == NULL || *text == '\0')
        return complain("%s: no resource, and no REDLOCKD_RESOURCE", name);
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

bool arguments_read(struct options *options, int argc, char **argv)
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
           read_environment(options) && read_resources(options);
}
