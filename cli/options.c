#include "options.h"

#include <stdio.h>

#include "../server/base/types.h"
#include "../server/lock/lock.h"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

#define IN(command) (1u << COMMAND_##command)
#define IN_ALL ((1u << COMMANDS) - 1)

#define AT(member) .offset = offsetof(struct options, member)

const struct option_row option_rows[OPTION_ROWS] = {
    {'w', "wait", IS_TIME, IN(RUN) | IN(ACQUIRE), AT(wait_ms), 0, DAY_MS,
     "TIME", "wait at most this long for the lock; otherwise forever"},
    {'n', "nonblock", IS_NOWAIT, IN(RUN) | IN(ACQUIRE), .form = "",
     .help = "do not wait: the same as -w 0"},
    {'t', "ttl", IS_TIME, IN(RUN) | IN(ACQUIRE) | IN(EXTEND), AT(ttl_ms),
     TTL_MIN_MS, DAY_MS, "TIME",
     "how long the lock lasts if not extended; at most 60, unless the service "
     "allows more [30]"},
    {'s', "shared", IS_FLAG, IN(RUN) | IN(ACQUIRE) | IN(EXTEND), AT(is_shared),
     .form = "", .help = "share the lock with others who use --shared"},
    {'E', "conflict-exit-code", IS_NUMBER, IN(RUN) | IN(ACQUIRE),
     AT(conflict_code), 0, 255, "CODE",
     "exit status if somebody else holds the lock [1]"},
    {0, "again", IS_FLAG, IN(RUN), AT(is_again), .form = "",
     .help = "start COMMAND again when the lock was lost or COMMAND failed"},
    {0, "owner", IS_TEXT, IN(RUN) | IN(ACQUIRE), AT(owner), .form = "NAME",
     .help =
         "shown to clients that find the lock held [the name that the service "
         "knows us by, or USER@HOST:PID]"},
    {0, "limit", IS_NUMBER, IN(RUN) | IN(ACQUIRE) | IN(SHOW), AT(limit), 1,
     POOL_SLOTS_MAX, "NUMBER",
     "so many may hold RESOURCE at once, each with a slot of its own"},
    {0, "permits", IS_NUMBER, IN(RUN) | IN(ACQUIRE), AT(permits), 1, NAMES_MAX,
     "NUMBER", "with --limit: so many slots, all or none [1]"},
    {0, "grace", IS_TIME, IN(RUN), AT(grace_ms), 0, DAY_MS, "TIME",
     "from SIGTERM to SIGKILL [5, or a quarter of the TTL]"},
    {0, "token", IS_TEXT, IN(EXTEND) | IN(RELEASE), AT(token), .form = "TOKEN",
     .help = "from acquire [$REDLOCKD_TOKEN]"},
    {0, "force", IS_FORCE, IN(RELEASE), AT(force), 1, EXACT_MAX, "NUMBER",
     "release the lock with this fencing token, whoever holds it; all: release "
     "all readers"},
    {0, "prefix", IS_TEXT, IN(LIST), AT(prefix), .form = "TEXT",
     .help = "only resources that begin with TEXT"},
    {0, "url", IS_URLS, IN_ALL, .form = "URL",
     .help = "a replica; repeat --url for more [$REDLOCKD_URL, "
             "or " OPTIONS_DEFAULT_URL "]"},
    {0, "auth-token-file", IS_TEXT, IN_ALL, AT(auth_token_file), .form = "FILE",
     .help = "our token for the service, one line "
             "[$REDLOCKD_AUTH_TOKEN_FILE; the token: $REDLOCKD_AUTH_TOKEN]"},
    /* or getopt would take it for the one above */
    {0, "auth-token", IS_REFUSED, IN_ALL, .form = "TOKEN",
     .help = "everybody could see it in the process list; write it to a "
             "file for --auth-token-file, or set REDLOCKD_AUTH_TOKEN"},
    {0, "cacert", IS_TEXT, IN_ALL, AT(ca_file), .form = "FILE",
     .help = "for https: the CAs to trust [$REDLOCKD_CACERT, or the "
             "system's]"},
    {0, "cert", IS_TEXT, IN_ALL, AT(cert_file), .form = "FILE",
     .help = "for https: our certificate [$REDLOCKD_CERT]"},
    {0, "key", IS_TEXT, IN_ALL, AT(key_file), .form = "FILE",
     .help = "for https: its key [$REDLOCKD_KEY, or in FILE of --cert]"},
    {0, "json", IS_FLAG, IN_ALL & ~IN(RUN), AT(is_json), .form = "",
     .help = "print the service's answers, one JSON object per line"},
    {'h', "help", IS_HELP, IN_ALL, .form = "", .help = "show this"},
};

#define RUN_HELP                                                               \
    "Runs COMMAND under the lock, and extends the lock meanwhile.\n"           \
    "COMMAND finds REDLOCKD_RESOURCE, REDLOCKD_FENCING_TOKEN and\n"            \
    "REDLOCKD_TOKEN in its environment; with --limit also REDLOCKD_SLOT, "     \
    "and\n"                                                                    \
    "REDLOCKD_RESOURCE is RESOURCE#SLOT. If the lock is lost, or cannot be\n"  \
    "extended, COMMAND and all it has started get SIGTERM, and SIGKILL "       \
    "before\n"                                                                 \
    "somebody else can get the lock.\n"                                        \
    "With --shared, others may run at the same time, if they use it, too;\n"   \
    "nobody has the exclusive lock meanwhile.\n"                               \
    "With --again, redlockctl waits for the lock and starts COMMAND anew\n"    \
    "after each loss and each failure, until COMMAND exits with 0 or a\n"      \
    "signal ends it; if COMMAND lives for less than 10 seconds, after a\n"     \
    "pause of up to 30 seconds.\n"                                             \
    "\n"                                                                       \
    "Exit status: that of COMMAND, or 128 + the signal that ended it;\n"       \
    "  1    somebody else holds the lock; -E sets another one\n"               \
    "  64   the command line is wrong, or the service refuses the request\n"   \
    "  70   the lock was lost, or could not be extended\n"                     \
    "  71   the system refuses a process or memory\n"                          \
    "  75   no replica answers, or they have no quorum\n"                      \
    "  77   the service does not know us or forbids it, or has no\n"           \
    "       certificate that we trust\n"                                       \
    "  126  COMMAND cannot be run; 127: it is not found\n"                     \
    "\n"                                                                       \
    "Examples:\n"                                                              \
    "  redlockctl run -n backup -- pg_dump shop -f shop.sql\n"                 \
    "  redlockctl run -w 1m -t 45 --grace 10 deploy -- ./deploy.sh\n"          \
    "  redlockctl run account:1 account:2 -- ./transfer 1 2\n"                 \
    "  redlockctl run -s catalog -- ./export\n"                                \
    "  redlockctl run --limit 3 exports -- ./export\n"                         \
    "  redlockctl run --again -t 15 reports:leader -- ./export\n"

#define STATUS_HELP                                                            \
    "  64  the command line is wrong, or the service refuses the request\n"    \
    "  75  no replica answers, or they have no quorum\n"                       \
    "  77  the service does not know us or forbids it, or has no\n"            \
    "      certificate that we trust\n"

const struct command_row command_rows[COMMANDS] = {
    [COMMAND_RUN] = {"run", "RESOURCE... -- COMMAND [ARGUMENT]...",
                     "run a command under a lock", 1, NAMES_MAX, RUN_HELP},
    [COMMAND_ACQUIRE] = {"acquire", "RESOURCE...",
                         "acquire a lock and leave it to its TTL", 1, NAMES_MAX,
                         "Prints variables for a shell; extend and release "
                         "read them.\n\nExit status: 0, or\n"
                         "  1   somebody else holds the lock; -E sets another "
                         "one\n" STATUS_HELP "\nExample:\n"
                         "  eval \"$(redlockctl acquire -w 10 deploy)\"\n"},
    [COMMAND_EXTEND] = {"extend", "[RESOURCE]...",
                        "extend a lock that acquire has printed", 0, NAMES_MAX,
                        "Without RESOURCE it takes $REDLOCKD_RESOURCE.\n"
                        "With --shared, an exclusive lock becomes a shared "
                        "one, with another token:\n"
                        "the variables are printed, as by acquire. Should "
                        "it fail, try again with the\n"
                        "token you have.\n\n"
                        "Exit status: 0, or\n"
                        "  1   it cannot be extended for longer "
                        "(max_hold_reached)\n"
                        "  70  the lock is lost: stop work now\n" STATUS_HELP
                        "\nExample: what was written may now be read by "
                        "others, too\n"
                        "  eval \"$(redlockctl acquire catalog)\"; "
                        "eval \"$(redlockctl extend -s)\"\n"},
    [COMMAND_RELEASE] =
        {"release", "[RESOURCE]...", "release a lock that acquire has printed",
         0, NAMES_MAX,
         "Without RESOURCE it takes $REDLOCKD_RESOURCE.\n\n"
         "Exit status: 0, or\n"
         "  70  the lock was lost before, or somebody else "
         "holds it\n" STATUS_HELP
         "\nExample: release a dead client's lock, by the number "
         "that show prints\n"
         "  redlockctl release --force 1795221641865000 "
         "order:42\n"},
    [COMMAND_SHOW] = {"show", "RESOURCE...", "see who holds a lock", 1,
                      NAMES_MAX,
                      "Prints one line per RESOURCE; with --limit one per "
                      "slot that is held,\nand how many are free.\n\n"
                      "Exit status: 0 if one of them is held, or\n"
                      "  1   all are free\n" STATUS_HELP},
    [COMMAND_LIST] = {"list", "", "list the locks that are held", 0, 0,
                      "Exit status: 0, or\n" STATUS_HELP},
    [COMMAND_NODES] =
        {"nodes", "", "show the Redis masters", 0, 0,
         "Exit status: 0 if a quorum of them votes, or\n" STATUS_HELP},
    [COMMAND_WATCH] = {"watch", "RESOURCE...",
                       "print a line whenever a lock changes hands", 1,
                       NAMES_MAX,
                       "Goes on until interrupted. Misses no holder that has "
                       "a RESOURCE for a second.\n\n"
                       "Exit status:\n" STATUS_HELP},
};

/* ---- help ---------------------------------------------------------------- */

static void print_options(enum command_id id)
{
    enum { WIDTH = 34 };
    (void)puts("\nOptions:");
    for (int i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        char letter[] = {'-', row->letter, ',', ' ', '\0'};
        if (!(row->commands & 1u << id) || row->kind == IS_REFUSED)
            continue;
        int width = printf("  %s--%s%s%s", row->letter ? letter : "    ",
                           row->name, *row->form ? " " : "", row->form);
        (void)printf("%*s%s\n", width < WIDTH ? WIDTH - width : 1, "",
                     row->help);
    }
    (void)puts("\nA TIME is in seconds or has a unit: 30, 1.5, 500ms, 2m, 1h.");
}

void options_print_help(enum command_id id)
{
    if (id != COMMANDS) {
        const struct command_row *row = &command_rows[id];
        (void)printf("redlockctl %s: %s\n\nUsage: redlockctl %s [OPTION]... "
                     "%s\n",
                     row->name, row->summary, row->name, row->form);
        print_options(id);
        (void)printf("\n%s", row->more);
        return;
    }
    (void)puts("redlockctl: locks of redlockd for shells and scripts\n\n"
               "Usage: redlockctl COMMAND [OPTION]... [ARGUMENT]...\n\n"
               "Commands:");
    for (int i = 0; i < COMMANDS; i++)
        (void)printf("  %-9s %s\n", command_rows[i].name,
                     command_rows[i].summary);
    (void)puts("\nredlockctl COMMAND --help says more; --version prints "
               "the version.");
}
