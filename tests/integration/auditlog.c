#include "auditlog.h"

#include <stdio.h>

void auditlog_name(char dir[PATH_SIZE], char path[PATH_SIZE])
{
    harness_make_dir(dir);
    (void)snprintf(path, PATH_SIZE, "%.200s/audit", dir);
}

void auditlog_start(int nodes, const char *path, const char *options)
{
    const char *text = textf("--audit-log %s %s", path, options);
    world_start(nodes, text);
}
