/*
 * The commands that are one call, or the same one again and again. Each prints
 * to stdout and returns the exit status.
 */
#ifndef REDLOCKCTL_COMMANDS_H
#define REDLOCKCTL_COMMANDS_H

#include "../server/lock/lock.h"
#include "options.h"
#include "service.h"

/* What all of them need. */
struct command {
    const struct options *options;
    struct service service;
    char joined[NAMES_LEN_MAX + 1]; /* the resources, as in names.h */
    char id[ID_MAX + 1];            /* of their lock */
};

/*
 * Asks about one resource: each of several may have another holder. after: the
 * holder that is known, as GET /locks/<id>?after= has it, to wait for another
 * one for wait_ms; "": the answer comes at once. VERDICT_DONE: it is held;
 * VERDICT_LOST: it is free; else it has complained.
 */
enum verdict command_look(struct command *command, const char *resource,
                          const char *after, int64_t wait_ms, json_t **answer);

int command_acquire(struct command *command);
int command_extend(struct command *command);
int command_release(struct command *command);
int command_show(struct command *command);
int command_list(struct command *command);
int command_nodes(struct command *command);

#endif
