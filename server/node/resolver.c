#include "resolver.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"

struct resolver {
    struct loop *loop;
    const struct config_node *config;
    struct loop_lookup *lookup; /* NULL: none runs */
    int64_t began_us;           /* when the last lookup began */
    resolver_fn *fn;            /* who asks; NULL: nobody */
    void *arg;
    unsigned turn;                   /* which of a name's addresses is tried */
    char late[RESOLVER_ADDRESS_MAX]; /* found when nobody asked; "": nothing */
    char good[RESOLVER_ADDRESS_MAX]; /* "": none */
};

/*
 * A name may have several addresses, and the first may be one where nobody
 * listens (localhost: ::1 before 127.0.0.1): each failure moves on to another.
 */
static bool choose(const struct resolver *resolver,
                   const struct addrinfo *found,
                   char address[RESOLVER_ADDRESS_MAX])
{
    const struct addrinfo *chosen = found;
    unsigned count = 0;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        count++;
    for (unsigned i = count > 0 ? resolver->turn % count : 0; i > 0; i--)
        chosen = chosen->ai_next;
    return chosen != NULL &&
           getnameinfo(chosen->ai_addr, chosen->ai_addrlen, address,
                       RESOLVER_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST) == 0;
}

static void answer(struct resolver *resolver, const char *address,
                   const char *error)
{
    resolver_fn *fn = resolver->fn;
    resolver->fn = NULL; /* it may ask again */
    fn(resolver->arg, address, resolver->began_us, error);
}

static void on_lookup(void *arg, const struct addrinfo *found,
                      const char *error)
{
    struct resolver *resolver = arg;
    char address[RESOLVER_ADDRESS_MAX];
    resolver->lookup = NULL;
    bool is_found = choose(resolver, found, address);
    if (resolver->fn == NULL)
        snprintf(resolver->late, sizeof resolver->late, "%s",
                 is_found ? address : "");
    else if (is_found)
        answer(resolver, address, NULL);
    else
        answer(resolver, NULL,
               error ? error : "the name has no usable address");
}

void resolver_ask(struct resolver *resolver, resolver_fn *fn, void *arg)
{
    assert(resolver->fn == NULL);
    resolver->fn = fn;
    resolver->arg = arg;
    if (resolver->late[0] != '\0') {
        char address[RESOLVER_ADDRESS_MAX];
        memcpy(address, resolver->late, sizeof address);
        resolver->late[0] = '\0';
        answer(resolver, address, NULL);
        return;
    }
    if (resolver->lookup != NULL)
        return;
    resolver->began_us = clock_now_us();
    resolver->lookup =
        loop_lookup_new(resolver->loop, resolver->config->host,
                        resolver->config->port, on_lookup, resolver);
    if (resolver->lookup == NULL)
        answer(resolver, NULL, "the name cannot be looked up");
}

void resolver_leave(struct resolver *resolver)
{
    resolver->fn = NULL;
}

void resolver_skip(struct resolver *resolver)
{
    resolver->turn++;
}

void resolver_keep(struct resolver *resolver, const char *address)
{
    snprintf(resolver->good, sizeof resolver->good, "%s", address);
}

const char *resolver_last(const struct resolver *resolver)
{
    return resolver->good[0] != '\0' ? resolver->good : NULL;
}

struct resolver *resolver_new(struct loop *loop,
                              const struct config_node *config)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return NULL;
    resolver->loop = loop;
    resolver->config = config;
    return resolver;
}

void resolver_free(struct resolver *resolver)
{
    if (resolver == NULL)
        return;
    loop_lookup_cancel(resolver->lookup);
    free(resolver);
}
