/* SPDX-License-Identifier: MIT */
/*
 * What a client's next lock is.
 */
#include <stdio.h>

#include "clients.h"

void client_choose(struct client *client, int resource)
{
    client->count = 1;
    client->resources[0] = resource;
    client->is_shared = false;
    client->limit = 0;
    client->is_denied = false;
    client->key = 0;
    client->is_unheard = false;
    client->only_repeats = false;
}

void client_choose_permits(struct client *client, int limit, int permits)
{
    client_choose(client, SIM_PLAIN);
    client->count = 0; /* its answer tells which */
    client->limit = limit;
    client->permits = permits;
}

void client_choose_mode(struct client *client, bool is_shared)
{
    client->is_shared = is_shared;
}

void client_choose_also(struct client *client, int resource)
{
    client->resources[client->count++] = resource;
}

bool client_has_resource(const struct client *client, int resource)
{
    for (int i = 0; i < client->count; i++)
        if (client->resources[i] == resource)
            return true;
    return false;
}

bool client_shares_resource(const struct client *a, const struct client *b)
{
    for (int i = 0; i < a->count; i++)
        if (client_has_resource(b, a->resources[i]))
            return true;
    return false;
}

struct span client_key_hash(const struct client *client,
                            char hash[KEY_HASH_LEN + 1])
{
    (void)snprintf(hash, KEY_HASH_LEN + 1, "%0*llu", (int)KEY_HASH_LEN,
                   (unsigned long long)client->key);
    return (struct span){hash, client->key != 0 ? (size_t)KEY_HASH_LEN : 0};
}
