/*
 * The command line: what it asks for. table.h has all that it may have.
 */
#ifndef REDLOCKCTL_OPTIONS_H
#define REDLOCKCTL_OPTIONS_H

#include <stdbool.h>
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
    COMMANDS
};

enum { OPTIONS_URLS_MAX = 16, OPTIONS_UNSET = -1 };

/* Exit statuses, as in <sysexits.h> where that has one. */
enum {
    EXIT_NOT_ACQUIRED = 1,
    EXIT_USAGE_ERROR = 64,
    EXIT_OS_ERROR = 71,
    EXIT_LOCK_LOST = 70,
    EXIT_NO_QUORUM = 75,
    EXIT_DENIED = 77,
    EXIT_SIGNALLED = 128, /* + the signal */
};

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

struct options {
    enum options_action action;
    enum command_id command_id; /* COMMANDS: none given, only with HELP */
    const char *urls[OPTIONS_URLS_MAX];
    int urls_count;
    bool is_json;
    int64_t wait_ms; /* OPTIONS_UNSET: for ever */
    int64_t ttl_ms;
    int64_t grace_ms; /* OPTIONS_UNSET: a default that fits ttl_ms */
    int64_t conflict_code;
    const char *owner, *token, *prefix; /* NULL: not given */
    const char *ca_file, *cert_file, *key_file, *auth_token_file; /* as well */
    int64_t force; /* a fencing token; 0: not given */
    char **resources;
    int resources_count;
    char **command; /* what to run; ends with NULL */
};

/*
 * Reads argv, and the environment for what that does not give. Permutes argv,
 * and points into it. False: something is wrong, and was told.
 */
bool options_read(struct options *options, int argc, char **argv);

#endif
