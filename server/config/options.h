/*
 * All options, from the environment and the command line: one table feeds
 * parsing, --help and --print-config.
 */
#ifndef REDLOCKD_OPTIONS_H
#define REDLOCKD_OPTIONS_H

#include <stdio.h>

#include "config.h"

/*
 * Fills config from defaults, then the environment (REDLOCKD_…), then argv.
 * False: error holds one line that names the option, the value and the fix, but
 * no secret. --help and --version are found before anything else is read; nodes
 * are required only to serve and to check.
 */
bool options_load(struct config *config, int argc, char **argv, char **envp,
                  char error[CONFIG_ERROR_MAX]);

/* The help text, and every value as --flag=value without secrets. */
void options_print_help(FILE *out);
void options_print(const struct config *config, FILE *out);

#endif
