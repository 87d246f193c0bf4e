/* SPDX-License-Identifier: MIT */
/*
 * All commands and options: what they ask for, and what --help says of them.
 */
#ifndef REDLOCKCTL_OPTIONS_H
#define REDLOCKCTL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum command_id {
    COMMAND_RUN,
    COMMAND_ACQUIRE,
    COMMAND_EXTEND,
    COMMAND_RELEASE,
    COMMAND_SHOW,
    COMMAND_LIST,
    COMMAND_NODES,
    COMMAND_WATCH,
    COMMAND_READY,
    COMMANDS
};

enum { OPTIONS_URLS_MAX = 16, OPTIONS_UNSET = -1, OPTIONS_ALL = -2 };

/* Exit statuses, as in <sysexits.h> where that has one. */
enum {
    EXIT_NOT_ACQUIRED = 1,
    EXIT_USAGE_ERROR = 64,
    EXIT_OS_ERROR = 71,
    EXIT_LOCK_LOST = 70,
    EXIT_NO_QUORUM = 75,
    EXIT_NOT_REDLOCKD = 76, /* what answers is no redlockd */
    EXIT_DENIED = 77,
    EXIT_CANNOT_RUN = 126, /* of run: the command */
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNALLED = 128, /* + the signal */
};

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

/* What was asked for. */
struct options {
    enum options_action action;
    enum command_id command_id; /* COMMANDS: none given, only with HELP */
    const char *urls[OPTIONS_URLS_MAX];
    int urls_count;
    bool is_json;
    bool is_shared;  /* the lock is for readers; extend: from now on */
    bool is_again;   /* run: not once */
    char **argv;     /* of main, as options_read has left it */
    int64_t wait_ms; /* OPTIONS_UNSET: without a limit */
    int64_t ttl_ms;
    int64_t grace_ms; /* OPTIONS_UNSET: a default that fits ttl_ms */
    int64_t conflict_code;
    const char *owner, *token, *prefix; /* NULL: not given */
    const char *slots; /* of a permit, parted by spaces; NULL: not given */
    const char *ca_file, *cert_file, *key_file, *auth_token_file; /* as well */
    int64_t force; /* a fencing token, or OPTIONS_ALL; 0: not given */
    int64_t limit; /* of a pool; 0: not given */
    int64_t permits;
    char **resources;
    int resources_count;
    char **command; /* what to run; ends with NULL */
};

/*
 * Reads argv, and the environment for what that does not give. Permutes argv,
 * and points into it. False: it has complained.
 */
bool options_read(struct options *options, int argc, char **argv);

/* Prints a message as complain does, with the resources in front of it, or the
 * command. */
void options_complain(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* COMMANDS: the list of all commands. */
void options_print_help(enum command_id id);

#endif
