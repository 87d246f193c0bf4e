/*
 * One option: its row in the table of all, and how its value is read.
 */
#ifndef REDLOCKD_OPTION_H
#define REDLOCKD_OPTION_H

#include <stdio.h>

#include "config.h"

enum option_id {
    OPTION_LISTEN,
    OPTION_REUSE_PORT,
    OPTION_TLS_CERT,
    OPTION_TLS_KEY,
    OPTION_TLS_CLIENT_CA,
    OPTION_TLS_CLIENT_CRL,
    OPTION_NODES,
    OPTION_NODE_CA,
    OPTION_NODE_CERT,
    OPTION_NODE_KEY,
    OPTION_NODE_TIMEOUT_MS,
    OPTION_DEFAULT_TTL_MS,
    OPTION_MAX_TTL_MS,
    OPTION_MAX_HOLD_MS,
    OPTION_MAX_READERS,
    OPTION_DRIFT_FACTOR,
    OPTION_RETRY_COUNT,
    OPTION_RETRY_DELAY_MS,
    OPTION_KEY_PREFIX,
    OPTION_FIRST_START,
    OPTION_ASK,
    OPTION_CONFIG_EPOCH,
    OPTION_TAKE_OVER,
    OPTION_RESTART_GUARD,
    OPTION_DRAIN_MS,
    OPTION_AUTH_FILE,
    OPTION_ALLOW_ANONYMOUS,
    OPTION_ALLOWED_HOSTS,
    OPTION_TRUSTED_PROXIES,
    OPTION_LOG_LEVEL,
    OPTION_LOG_FORMAT,
    OPTION_AUDIT_LOG,
    OPTION_AUDIT_REQUIRED,
    OPTION_AUDIT_READS,
    OPTION_CHECK_CONFIG,
    OPTION_PRINT_CONFIG,
    OPTION_PLAN,
    OPTION_HEALTHCHECK,
    OPTION_VERSION,
    OPTION_HELP,
    OPTIONS
};

enum option_kind {
    OPTION_IS_LISTEN,
    OPTION_IS_NODES, /* secret: also from a file, never shown whole */
    OPTION_IS_SWITCH,
    OPTION_IS_INTEGER,
    OPTION_IS_RATIO,
    OPTION_IS_PREFIX,
    OPTION_IS_PATH,   /* of a file; empty: none */
    OPTION_IS_LIST,   /* with commas between */
    OPTION_IS_CHOICE, /* one of some words; the field is an enum */
    OPTION_IS_ACTION, /* a flag only: no value, no variable */
};

struct option {
    const char *flag; /* without the dashes */
    enum option_kind kind;
    const char *standard; /* the default, as text; NULL: none */
    int64_t min, max;     /* integer; prefix: bytes; ratio: in percent */
    size_t offset;        /* of the field in struct config */
    enum config_action action;
    const char *const *words; /* of a choice, by number; ends with NULL */
    bool (*is_list)(const char *text); /* of a list: whether it is one */
    const char *want;                  /* of a list: its form, for errors */
    const char *form;                  /* of the value, for people */
    const char *help;
};

extern const struct option option_table[OPTIONS];

enum { OPTION_NAME_SIZE = 64 };

/* Where values go, and what is being read. */
struct option_reader {
    struct config *config;
    char *error;                   /* CONFIG_ERROR_MAX bytes */
    char origin[OPTION_NAME_SIZE]; /* flag or variable; "": neither */
    bool is_given[OPTIONS];        /* by the environment or argv */
};

/* Writes a line that begins with the origin to error. Returns false. */
bool option_refuse(struct option_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value as an error line may show it: nothing that may hold a password. */
const char *option_show(const char *value);

/* Reads value into the config. False: error says why. */
bool option_set(struct option_reader *reader, const struct option *option,
                const char *value);

/* Writes the option's value as option_set would read it, secrets replaced. */
void option_print(const struct option *option, const struct config *config,
                  FILE *out);

#endif
