/* SPDX-License-Identifier: MIT */
/*
 * From the command line to the command; and who holds a lock, if nothing else
 * is given.
 */
#include <assert.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../server/lock/names.h"
#include "commands.h"
#include "complain.h"
#include "credentials.h"

/* The id of a permit's slots. False: they are none. */
static bool name_slots(struct command *command)
{
    const struct options *options = command->options;
    char texts[NAMES_MAX][RESOURCE_MAX], joined[NAMES_MAX * RESOURCE_MAX];
    struct span rest = span_of(options->slots), names[NAMES_MAX];
    const struct span pool = span_of(options->resources[0]);
    const char *wrong = id_check_pool(pool);
    int count = 0;
    if (options->resources_count != 1)
        return complain("--slot: needs one resource, not %d",
                        options->resources_count);
    if (wrong != NULL)
        return complain("\"%.80s\": a resource with slots %s",
                        options->resources[0], wrong);
    do {
        int64_t slot = span_number(span_take(&rest, ' '), sizeof "999" - 1);
        if (slot < 0 || count == NAMES_MAX)
            return complain(
                "--slot: \"%.80s\" is not a number from 0 to %d, or "
                "up to %d of them",
                options->slots, POOL_SLOTS_MAX - 1, NAMES_MAX);
        size_t text_len = names_put_slot(texts[count], pool, (int)slot);
        names[count] = (struct span){texts[count], text_len};
        count++;
    } while (rest.len > 0);
    size_t len = names_join(joined, names, count);
    if (len > NAMES_LEN_MAX)
        return complain(
            "--slot: too many slots for a resource of this length; give fewer");
    len = id_encode(command->id, (struct span){joined, len});
    command->id[len] = '\0';
    return true;
}

/* Joins the resources and makes their id. False: one cannot be locked. */
static bool name_lock(struct command *command)
{
    const struct options *options = command->options;
    struct span names[NAMES_MAX];
    size_t len = 0;
    for (int i = 0; i < options->resources_count; i++) {
        names[i] = span_of(options->resources[i]);
        len += names[i].len + 1;
        const char *wrong = id_check_resource(names[i]);
        if (wrong == NULL && len > NAMES_LEN_MAX)
            wrong = "is too long together with the others; give fewer or "
                    "shorter resources";
        if (wrong != NULL)
            return complain("\"%.80s\": a resource %s", options->resources[i],
                            wrong);
    }
    len = names_join(command->joined, names, options->resources_count);
    assert(len <= NAMES_LEN_MAX);
    command->joined[len] = '\0';
    if (len > 0) /* or the command takes no resource */
        len = id_encode(command->id, (struct span){command->joined, len});
    assert(len <= ID_MAX);
    command->id[len] = '\0';
    return options->slots == NULL || name_slots(command);
}

/* ---- who we are --------------------------------------------------------- */

enum { NAME_LEN = 24, NUMBER_LEN = 10 }; /* at most */

static_assert(NAME_LEN + 1 + NAME_LEN + 1 + NUMBER_LEN <= OWNER_MAX, "");

/* Some of what an owner may contain; all that names are usually made of. */
static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789._-";

static void make_safe(char *name)
{
    while (*(name += strspn(name, allowed)) != '\0')
        *name = '-';
}

/*
 * USER@HOST:PID, for a process; what an owner may not contain is "-", and what
 * is too long is cut. Static.
 */
static const char *default_owner(pid_t pid)
{
    static char owner[OWNER_MAX + 1];
    char user[NAME_LEN + 1] = "", host[256] = "";
    char texts[1024]; /* of the entry */
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, texts, sizeof texts, &found) == 0 &&
        found != NULL)
        (void)snprintf(user, sizeof user, "%s", entry.pw_name);
    (void)gethostname(host, sizeof host - 1);
    make_safe(user);
    make_safe(host);
    (void)snprintf(owner, sizeof owner, "%s@%.*s:%d", user, NAME_LEN, host,
                   (int)pid);
    return owner;
}

/* If the service does not know us by a name, it is told one. */
static void find_owner(struct options *options,
                       const struct credentials *credentials)
{
    bool is_run = options->command_id == COMMAND_RUN;
    if (options->owner == NULL && !credentials_name_us(credentials))
        /* the shell outlives redlockctl acquire */
        options->owner = default_owner(is_run ? getpid() : getppid());
}

/* ---- the command --------------------------------------------------------- */

static int perform(struct options *options)
{
    struct command command = {.options = options};
    if (!name_lock(&command) ||
        !credentials_take(&command.credentials, options))
        return EXIT_USAGE_ERROR;
    find_owner(options, &command.credentials);
    return commands_perform(&command);
}

/* A script must not take cut output for all of it. */
static int flush_output(int status)
{
    if (ferror(stdout) || fflush(stdout) != 0)
        perror("redlockctl: standard output");
    else if (commands_are_cut())
        complain("out of memory");
    else
        return status;
    return EXIT_OS_ERROR;
}

/*
 * Keeps the numbers of streams that are closed from what is opened later: the
 * output would go to a socket. Writing to stdout still fails, and commands get
 * the streams closed. False: errno says why.
 */
static bool hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", O_RDONLY | O_CLOEXEC) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    static struct options options;
    if (!hold_streams()) {
        perror("redlockctl: /dev/null");
        return EXIT_OS_ERROR;
    }
    if (!options_read(&options, argc, argv))
        return EXIT_USAGE_ERROR;
    switch (options.action) {
    case OPTIONS_HELP:
        options_print_help(options.command_id);
        return flush_output(EXIT_SUCCESS);
    case OPTIONS_VERSION:
        (void)puts("redlockctl " REDLOCKD_VERSION);
        return flush_output(EXIT_SUCCESS);
    case OPTIONS_RUN:
        break;
    }
    return flush_output(perform(&options));
}
