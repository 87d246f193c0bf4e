#include <stdio.h>
#include <stdlib.h>

#include "rivals.h"

enum {
    SERVERS = RIVALS,
    NODES = RIVALS_NODES,
    SECOND = 1000000,
    /* so long every server that lives needs at most to tell the other nodes */
    COPY_LEAST_US = 6 * SECOND,
    COPY_EVERY_US = 2 * SECOND,
};

/* ---- faults -------------------------------------------------------------- */

static void empty(int node)
{
    struct rivals_node *it = &rivals.node[node];
    promises_on_loss(&rivals.promises, node, 0);
    it->has_stepped = false;
    it->memory = (struct simmemory){0};
}

static void lose_memory(int node)
{
    bool has_voted =
        rivals_is_admitted(node) || promises_has_voted(&rivals.promises, node);
    if (!has_voted || node != rivals.witness)
        empty(node);
}

void rivals_flush_all(void)
{
    for (int i = 0; i < NODES; i++)
        empty(i);
}

void rivals_give_to_others(int node)
{
    struct simmemory *memory = &rivals.node[node].memory;
    char name[FINGERPRINT_LEN + 1];
    fingerprint_of_name(name,
                        rivals.server[0].members.settings.node_names[node]);
    snprintf(memory->admit, sizeof memory->admit,
             "1:ffffffffffffff05:%s:%026d:0:%020d%020d:%020d%020d", name, 1,
             node, rivals.node[node].life, node, rivals.node[node].replid);
    memory->durable = '1';
    memory->beat = simnumber(SECOND);
    memory->max_ttl_ms = simnumber(5000);
}

static void restart_node(int node)
{
    rivals.node[node].life++;
    rivals.node[node].replid++;
    for (int i = 0; i < SERVERS; i++)
        rivals_drop(i, node);
}

/* A server loses some of its connections, for a moment or for a while. */
static void part(int server)
{
    int64_t most_us = rivals_chance(50) ? 20 * SECOND : SECOND;
    for (int i = 0; i < NODES; i++)
        if (rivals_chance(50)) {
            rivals_drop(server, i);
            rivals.server[server].to[i].up_us =
                rivals.now_us + rivals_draw(most_us);
        }
}

/* Its locks end too early, which both servers notice, wherever they are. */
static void step_clock(int node)
{
    struct rivals_node *it = &rivals.node[node];
    if (!rivals_is_admitted(node))
        return;
    it->has_stepped = true;
    memset(it->copy, 0, sizeof it->copy); /* its clock will tell */
    promises_on_step(&rivals.promises, node);
    for (int i = 0; i < SERVERS; i++)
        members_on_step(&rivals.server[i].members, node);
}

/* ---- older memory -------------------------------------------------------- */

void rivals_keep_copies(void)
{
    struct rivals_node *it = &rivals.node[rivals.victim];
    if (rivals.now_us < it->copied_us + COPY_EVERY_US)
        return;
    it->copied_us = rivals.now_us;
    it->copy[it->copies++ % RIVALS_COPIES] =
        (struct rivals_copy){rivals.now_us, it->memory};
}

/* From a backup, or by another server that it was a replica of for a moment. */
static void roll_back(int node)
{
    struct rivals_node *it = &rivals.node[node];
    const struct rivals_copy *copy = &it->copy[rivals_draw(RIVALS_COPIES)];
    if (copy->at_us == 0 || rivals.now_us - copy->at_us < COPY_LEAST_US)
        return;
    rivals.rollbacks++;
    promises_on_loss(&rivals.promises, node, copy->at_us);
    it->memory = copy->memory;
    it->replid++;
    if (rivals_chance(50))
        restart_node(node);
}

/* ---- the play ------------------------------------------------------------ */

static void strike(void)
{
    int node = (int)rivals_draw(NODES);
    int server = (int)rivals_draw(SERVERS);
    /* the servers live on: else a vote that only they knew of goes with them */
    switch (rivals.has_rollbacks ? rivals_draw(6) + 4 : rivals_draw(8)) {
    case 0:
    case 1:
        rivals.server[server].wakes_us =
            rivals.now_us + rivals_draw(20 * SECOND);
        break;
    case 2:
        rivals_restart_server(server);
        break;
    case 3:
        part(server);
        break;
    case 4:
        lose_memory(node); /* FLUSHALL */
        break;
    case 5:
        lose_memory(node);
        restart_node(node);
        break;
    case 6:
        restart_node(node); /* durable */
        break;
    case 7:
        step_clock(node);
        break;
    default:
        roll_back(rivals.victim);
        break;
    }
}

static int compare(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* While a first start may be under way; before any copy is old enough. */
static bool is_early(void)
{
    return !rivals.has_rollbacks && rivals_chance(60);
}

void rivals_play_faults(void)
{
    int64_t at_us[12] = {0};
    int count = (int)rivals_draw(13);
    for (int i = 0; i < count; i++)
        at_us[i] = SECOND + rivals_draw(is_early() ? 2 * SECOND : 38 * SECOND);
    qsort(at_us, (size_t)count, sizeof *at_us, compare);
    for (int i = 0; i < count; i++) {
        rivals_run_until(at_us[i]);
        strike();
    }
    rivals_run_until(RIVALS_FAULTS_END_US);
}
