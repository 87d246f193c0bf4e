#include "resolver.h"

#include <assert.h>
#include <netdb.h>
#include <sys/un.h>

#include "../base/clock.h"

static struct resolver_address make_address(const void *bytes, socklen_t len)
{
    struct resolver_address address = {.len = len};
    assert(len <= sizeof address.storage);
    memcpy(&address.storage, bytes, len);
    return address;
}

/*
 * A name may have several addresses, and the first may be one where nobody
 * listens (localhost: ::1 before 127.0.0.1): each failure moves on to another.
 */
static struct resolver_address choose(const struct resolver *resolver,
                                      const struct addrinfo *found)
{
    unsigned count = 0;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        count++;
    if (count == 0)
        return (struct resolver_address){.len = 0};
    for (unsigned i = resolver->turn % count; i > 0; i--)
        found = found->ai_next;
    return make_address(found->ai_addr, found->ai_addrlen);
}

/* address: without length if there is none. */
static void answer(struct resolver *resolver, struct resolver_address address,
                   const char *error)
{
    resolver_fn *fn = resolver->fn;
    resolver->fn = NULL; /* fn may ask again */
    fn(resolver->arg, address.len > 0 ? &address : NULL, resolver->began_us,
       error);
}

static void on_lookup(void *arg, const struct addrinfo *found,
                      const char *error)
{
    struct resolver *resolver = arg;
    resolver->lookup = NULL;
    if (resolver->fn == NULL)
        resolver->late = choose(resolver, found);
    else
        answer(resolver, choose(resolver, found), error);
}

void resolver_ask(struct resolver *resolver, resolver_fn *fn, void *arg)
{
    const struct address_node *config = resolver->config;
    struct resolver_address late = resolver->late;
    assert(resolver->fn == NULL);
    resolver->fn = fn;
    resolver->arg = arg;
    resolver->late.len = 0;
    if (late.len > 0) {
        answer(resolver, late, NULL);
        return;
    }
    if (resolver->lookup != NULL)
        return;
    resolver->began_us = clock_now_us();
    if (config->is_unix) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t len = strlen(config->host);
        assert(len < sizeof address.sun_path); /* options_load refuses others */
        memcpy(address.sun_path, config->host, len);
        answer(resolver, make_address(&address, sizeof address), NULL);
        return;
    }
    resolver->lookup = loop_lookup_new(resolver->loop, config->host,
                                       config->port, on_lookup, resolver);
    if (resolver->lookup == NULL)
        answer(resolver, (struct resolver_address){.len = 0},
               "the name cannot be looked up");
}

void resolver_fini(struct resolver *resolver)
{
    loop_lookup_cancel(resolver->lookup);
    resolver->lookup = NULL;
}
