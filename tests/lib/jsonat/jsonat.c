/* SPDX-License-Identifier: MIT */
#include "jsonat.h"

#include <ctype.h>
#include <stdlib.h>

#include "../suite/suite.h"

json_t *json_at(json_t *root, const char *path)
{
    json_t *at = root;
    while (at != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");
        const char *name = textf("%.*s", (int)len, path);
        at = isdigit((unsigned char)*name)
                 ? json_array_get(at, (size_t)atoi(name))
                 : json_object_get(at, name);
        path += len + (path[len] == '.');
    }
    return at;
}
