/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int resolve_fn(const char *name, const char *service,
                       const struct addrinfo *hints, struct addrinfo **found);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char address[64];
static unsigned delay_us;
static bool is_held;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static int asked;

void names_resolve_to(const char *to, unsigned after_us)
{
    (void)pthread_mutex_lock(&lock);
    snprintf(address, sizeof address, "%s", to);
    delay_us = after_us;
    (void)pthread_mutex_unlock(&lock);
}

void names_hold(bool hold)
{
    (void)pthread_mutex_lock(&lock);
    is_held = hold;
    (void)pthread_cond_broadcast(&released);
    (void)pthread_mutex_unlock(&lock);
}

int names_asked(void)
{
    (void)pthread_mutex_lock(&lock);
    int count = asked;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static bool is_ours(const char *name, const struct addrinfo *hints)
{
    size_t len = name != NULL ? strlen(name) : 0;
    return len > 5 && strcmp(name + len - 5, ".test") == 0 && hints != NULL &&
           (hints->ai_flags & AI_NUMERICHOST) == 0;
}

/* Called instead of libc's, in any thread. */
int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *req, struct addrinfo **pai)
{
    char to[sizeof address];
    resolve_fn *resolve;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&resolve, &symbol, sizeof resolve); /* C has no cast for this */
    if (!is_ours(name, req))
        return resolve(name, service, req, pai);
    (void)pthread_mutex_lock(&lock);
    asked++;
    memcpy(to, address, sizeof to);
    unsigned pause_us = delay_us;
    while (is_held)
        (void)pthread_cond_wait(&released, &lock);
    (void)pthread_mutex_unlock(&lock);
    usleep(pause_us);
    return to[0] != '\0' ? resolve(to, service, req, pai) : EAI_NONAME;
}
