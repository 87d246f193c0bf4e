/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each prints to stdout and returns the exit status; watch prints
 * a line whenever one of the locks changes hands, until it fails.
 */
#ifndef REDLOCKCTL_COMMANDS_H
#define REDLOCKCTL_COMMANDS_H

#include "replicas.h"

/* What all of them need. */
struct command {
    struct options *options;
    struct credentials credentials;
    struct wake wake;               /* opened for run and acquire */
    struct replicas replicas;       /* run opens it when it has forked */
    char joined[NAMES_LEN_MAX + 1]; /* the resources, as in names.h */
    char id[ID_MAX + 1];            /* of their lock */
};

int commands_perform(struct command *command);

/* That of run.c, which opens the replicas itself. */
int command_run(struct command *command);

/* Whether something is missing on stdout: it has an error, or there was no
 * memory. main looks for it. */
bool commands_are_cut(void);

#endif
