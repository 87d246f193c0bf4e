#include "owner.h"

#include <assert.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../server/lock/lock.h"

enum { NAME_LEN = 24, NUMBER_LEN = 10 }; /* at most */

static_assert(NAME_LEN + 1 + NAME_LEN + 1 + NUMBER_LEN <= OWNER_MAX, "");

/* Some of what an owner may contain; all that names are usually made of. */
static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789._-";

static void make_safe(char *name)
{
    while (*(name += strspn(name, allowed)) != '\0')
        *name = '-';
}

const char *owner_default(pid_t pid)
{
    static char owner[OWNER_MAX + 1];
    char user[NAME_LEN + 1] = "", host[256] = "";
    char texts[1024]; /* of the entry */
    struct passwd entry, *found = NULL;
    if (getpwuid_r(geteuid(), &entry, texts, sizeof texts, &found) == 0 &&
        found != NULL)
        (void)snprintf(user, sizeof user, "%s", entry.pw_name);
    (void)gethostname(host, sizeof host - 1);
    make_safe(user);
    make_safe(host);
    (void)snprintf(owner, sizeof owner, "%s@%.*s:%d", user, NAME_LEN, host,
                   (int)pid);
    return owner;
}
