#include "resolver.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/clock.h"

struct place {
    struct loop *loop;
    const struct config_node *config;
    struct loop_lookup *lookup; /* NULL: none runs */
    int64_t began_us;           /* when the last lookup began */
    place_fn *fn;               /* who asks; NULL: nobody */
    void *arg;
    unsigned turn;                /* which of a name's addresses is tried */
    char late[PLACE_ADDRESS_MAX]; /* found when nobody asked; "": nothing */
    char good[PLACE_ADDRESS_MAX]; /* "": none */
};

/*
 * A name may have several addresses, and the first may be one where nobody
 * listens (localhost: ::1 before 127.0.0.1): each failure moves on to another.
 */
static bool choose(const struct place *place, const struct addrinfo *found,
                   char address[PLACE_ADDRESS_MAX])
{
    const struct addrinfo *chosen = found;
    unsigned count = 0;
    for (const struct addrinfo *it = found; it != NULL; it = it->ai_next)
        count++;
    for (unsigned i = count > 0 ? place->turn % count : 0; i > 0; i--)
        chosen = chosen->ai_next;
    return chosen != NULL &&
           getnameinfo(chosen->ai_addr, chosen->ai_addrlen, address,
                       PLACE_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST) == 0;
}

static void answer(struct place *place, const char *address, const char *error)
{
    place_fn *fn = place->fn;
    place->fn = NULL; /* it may ask again */
    fn(place->arg, address, place->began_us, error);
}

static void on_lookup(void *arg, const struct addrinfo *found,
                      const char *error)
{
    struct place *place = arg;
    char address[PLACE_ADDRESS_MAX];
    place->lookup = NULL;
    bool is_found = choose(place, found, address);
    if (place->fn == NULL)
        snprintf(place->late, sizeof place->late, "%s",
                 is_found ? address : "");
    else if (is_found)
        answer(place, address, NULL);
    else
        answer(place, NULL, error ? error : "the name has no usable address");
}

void place_ask(struct place *place, place_fn *fn, void *arg)
{
    assert(place->fn == NULL);
    place->fn = fn;
    place->arg = arg;
    if (place->late[0] != '\0') {
        char address[PLACE_ADDRESS_MAX];
        memcpy(address, place->late, sizeof address);
        place->late[0] = '\0';
        answer(place, address, NULL);
        return;
    }
    if (place->lookup != NULL)
        return;
    place->began_us = clock_now_us();
    place->lookup = loop_lookup_new(place->loop, place->config->host,
                                    place->config->port, on_lookup, place);
    if (place->lookup == NULL)
        answer(place, NULL, "the name cannot be looked up");
}

void place_leave(struct place *place)
{
    place->fn = NULL;
}

void place_refuse(struct place *place)
{
    place->turn++;
}

void place_keep(struct place *place, const char *address)
{
    snprintf(place->good, sizeof place->good, "%s", address);
}

const char *place_last(const struct place *place)
{
    return place->good[0] != '\0' ? place->good : NULL;
}

struct place *place_new(struct loop *loop, const struct config_node *config)
{
    struct place *place = calloc(1, sizeof *place);
    if (place == NULL)
        return NULL;
    place->loop = loop;
    place->config = config;
    return place;
}

void place_free(struct place *place)
{
    if (place == NULL)
        return;
    loop_lookup_cancel(place->lookup);
    free(place);
}
