/*
 * The command line: what it asks for.
 */
#ifndef REDLOCKCTL_ARGUMENTS_H
#define REDLOCKCTL_ARGUMENTS_H

#include "options.h"

/*
 * Reads argv, and the environment for what that does not give. Permutes argv,
 * and points into it. False: it has complained.
 */
bool arguments_read(struct options *options, int argc, char **argv);

#endif
