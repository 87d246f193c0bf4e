#include "auditlog.h"

#include <stdio.h>

void auditlog_name(char dir[PATH_SIZE], char path[PATH_SIZE])
{
    harness_make_dir(dir);
    (void)snprintf(path, PATH_SIZE, "%.200s/audit", dir);
}

void auditlog_start(struct world *world, int nodes, const char *path,
                    const char *options)
{
    const char *text = textf("--audit-log %s %s", path, options);
    world_start(world, nodes, text);
}
