/*
 * All commands and options: what the command line may have, and what --help
 * says of it.
 */
#ifndef REDLOCKCTL_TABLE_H
#define REDLOCKCTL_TABLE_H

#include <stddef.h>

#include "options.h"

#define TABLE_DEFAULT_URL "http://127.0.0.1:8080"

enum table_kind {
    IS_FLAG,   /* bool; no value */
    IS_NOWAIT, /* sets wait_ms to 0; no value */
    IS_HELP,   /* no value */
    IS_TEXT,
    IS_URLS,
    IS_TIME,
    IS_NUMBER,
    IS_REFUSED, /* not told by --help; help says why */
};

/* An option, of one command or more. */
struct table_option {
    char letter; /* 0: only the long name */
    const char *name;
    enum table_kind kind;
    unsigned commands; /* that have it */
    size_t offset;     /* in struct options */
    int64_t min, max;
    const char *form, *help;
};

/* A command. */
struct table_command {
    const char *name, *form, *summary;
    int resources_min, resources_max;
    const char *more; /* of the help */
};

enum { TABLE_OPTIONS = 17 };

extern const struct table_option table_options[TABLE_OPTIONS];
extern const struct table_command table_commands[COMMANDS];

/* Whether the option takes a value, and whether the command has it. */
bool table_has_value(const struct table_option *option);
bool table_is_of(const struct table_option *option, enum command_id command);

/* COMMANDS: the list of all commands. */
void table_print_help(enum command_id id);

#endif
