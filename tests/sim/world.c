/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients.h"
#include "faults.h"
#include "messages.h"
#include "news.h"
#include "plan.h"

int64_t world_random(struct world *world, int64_t below)
{
    /* splitmix64 */
    uint64_t z = (world->random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}

bool world_chance(struct world *world, int percent)
{
    return world_random(world, 100) < percent;
}

void world_at(struct world *world, int64_t delay_us, struct event event)
{
    assert(delay_us >= 0); /* time must not run backwards */
    event.at_us = world->now_us + delay_us;
    heap_push(&world->heap, event);
}

void world_trace(const struct world *world, const char *format, ...)
{
    if (!world->is_tracing)
        return;
    va_list args;
    va_start(args, format);
    printf("%10.6f ", (double)world->now_us / 1e6);
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

/* ---- events ------------------------------------------------------------- */

/* The server that handles the event; -1: none. */
static int server_of(const struct world *world, const struct event *event)
{
    switch ((enum event_kind)event->kind) {
    case EVENT_REPLY:
    case EVENT_CONNECT:
    case EVENT_CONNECTED:
    case EVENT_CONFIRM:
    case EVENT_CONFIRMED:
    case EVENT_SILENCE:
    case EVENT_BROKEN:
    case EVENT_LISTENER:
    case EVENT_SUBSCRIBED:
    case EVENT_ANNOUNCED:
    case EVENT_TIMER:
    case EVENT_TERMINATE:
    case EVENT_DRAIN:
        return event->a;
    case EVENT_CLIENT:
        return clients_server_of(world, event);
    default:
        return -1;
    }
}

void world_handle(struct world *world, const struct event *event)
{
    switch ((enum event_kind)event->kind) {
    case EVENT_DELIVER:
        message_deliver(world, event->object);
        break;
    case EVENT_REPLY:
        message_reply(world, event->object);
        break;
    case EVENT_CONNECT:
    case EVENT_CONNECTED:
    case EVENT_CONFIRM:
    case EVENT_CONFIRMED:
    case EVENT_SILENCE:
    case EVENT_BROKEN:
        simlink_on_event(world, event);
        break;
    case EVENT_LISTENER:
    case EVENT_SUBSCRIBED:
    case EVENT_ANNOUNCED:
        news_on_event(world, event);
        break;
    case EVENT_TIMER:
        server_on_timer(world, event);
        break;
    case EVENT_CLIENT:
        clients_on_event(world, event);
        break;
    case EVENT_TERMINATE:
        server_terminate(world, event->a);
        break;
    case EVENT_DRAIN:
        server_on_drain(world, event);
        break;
    case EVENT_RESUME_SERVER:
        server_resume(world, event->a);
        break;
    case EVENT_RESUME_MACHINE:
    case EVENT_START_MACHINE:
    case EVENT_HEAL_MACHINE:
    case EVENT_START_SERVER:
    case EVENT_FAULT:
    case EVENT_FAULT_ENDS:
        faults_on_event(world, event);
        break;
    }
}

void world_run(struct world *world, int64_t us)
{
    int64_t until_us = world->now_us + us;
    while (heap_next_us(&world->heap) <= until_us) {
        if (ledger_is_violated(world))
            return; /* what follows means nothing */
        struct event event = heap_pop(&world->heap);
        world->now_us = event.at_us;
        int server = server_of(world, &event);
        if (server < 0 || !server_defer(world, server, &event))
            world_handle(world, &event);
    }
    world->now_us = until_us;
}

/* ---- begin and end ------------------------------------------------------ */

void world_init(struct world *world, uint64_t seed, struct clients *clients,
                struct faults *faults)
{
    bool is_tracing = world->is_tracing;
    uint64_t only = world->only;
    bool has_lists =
        only != 0 ? (only & fault_bit(FAULT_LISTS)) != 0 : seed % 10 == 3;
    *world = (struct world){
        .random = seed,
        .now_us = 1000000,
        .node_timeout_us = seed % 4 == 0 ? 1000000 : 50000,
        .is_mute = seed % 5 == 0,
        .has_changes = seed % 5 == 2,
        .has_full = seed % 7 == 2 || seed % 7 == 4,
        .has_lists = has_lists,
        .has_backups = (seed % 7 == 2 || seed % 7 == 4) && !has_lists,
        .has_visitors = seed % 2 == 0 && !has_lists,
        .has_permits = seed % 10 == 0 || seed % 10 == 4 || seed % 10 == 7,
        .readers_max = seed % 4 == 3 ? 1000 : 2 + (int)(seed / 10 % 3),
        .has_shared = seed % 10 == 1 || seed % 10 == 4 || seed % 10 == 8,
        .is_busy = seed % 3 == 1,
        .is_tracing = is_tracing,
        .only = only,
        .clients = clients,
        .faults = faults,
    };
    for (int i = 0; i < SIM_MACHINES; i++)
        TAILQ_INIT(&world->backlog[i]);
    servers_init(world);
    plan_init(world);
}

void world_fini(struct world *world)
{
    servers_fini(world);
    for (int i = 0; i < SIM_MACHINES; i++)
        messages_clear_backlog(world, i);
    while (world->heap.count > 0) {
        struct event event = heap_pop(&world->heap);
        if (event.kind == EVENT_DELIVER || event.kind == EVENT_REPLY)
            message_forget(world, event.object);
    }
    heap_fini(&world->heap);
    while (world->spare != NULL) {
        struct message *message = world->spare;
        world->spare = message->next;
        free(message);
    }
}
