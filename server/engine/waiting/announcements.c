#include "announcements.h"

#include "../port/tag.h"

enum {
    LISTEN_US = 1000000, /* between two listen calls */
    LINGER_US = 2000000, /* an empty queue stays subscribed */
    UNUSED_US = 4000000, /* unused connections stay open */
    LEAST_US = 1000,     /* between two tries that no event woke */
    SLOW_US = 5000000,   /* the same, while a quorum announces */
};

static int nodes_of(const struct announcements *it)
{
    return it->env->settings.nodes;
}

static uint16_t bit(int node)
{
    return (uint16_t)(1u << node);
}

/* ---- calls -------------------------------------------------------------- */

static void subscribe(const struct announcements *it, int node,
                      const struct waitqueue *queue, bool is_on)
{
    const struct engine_port *port = &it->env->port;
    port->subscribe(port->ctx, node, queue->resource, is_on);
}

static void send_listen(const struct announcements *it, int node)
{
    const struct engine_port *port = &it->env->port;
    const struct call call = {.kind = CALL_LISTEN, .listen_us = CALL_LISTEN_US};
    (void)port->send(port->ctx, node, &call, tag_forgotten());
}

static void send_listens(struct announcements *it, int64_t now_us)
{
    for (int i = 0; i < nodes_of(it); i++)
        send_listen(it, i);
    it->listen_us = now_us + LISTEN_US;
}

void announcements_want(struct announcements *it, struct waitqueue *queue,
                        int64_t now_us)
{
    const struct engine_port *port = &it->env->port;
    it->wanted_us = now_us;
    if (!it->is_listening) {
        it->is_listening = true;
        port->listen(port->ctx, true);
        send_listens(it, now_us);
    }
    if (queue->is_subscribed)
        return;
    queue->is_subscribed = true;
    for (int i = 0; i < nodes_of(it); i++)
        subscribe(it, i, queue, true);
}

/* ---- events ------------------------------------------------------------- */

static bool is_heard(const struct announcements *it, int node, int64_t now_us)
{
    return it->heard_us[node] != 0 &&
           now_us - it->heard_us[node] < CALL_LISTEN_US;
}

bool announcements_cover(const struct announcements *it,
                         const struct waitqueue *queue, int64_t now_us)
{
    int announcing = 0;
    for (int i = 0; i < nodes_of(it); i++)
        announcing +=
            (queue->subscribed & bit(i)) != 0 && is_heard(it, i, now_us);
    return announcing >= quorum_of(nodes_of(it));
}

int64_t announcements_pause_us(const struct announcements *it,
                               bool is_announced)
{
    uint64_t delays = (uint64_t)it->env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(it->env) % delays);
    return is_announced ? SLOW_US + delay_us : at_least(delay_us, LEAST_US);
}

void announcements_on_up(struct announcements *it, int node)
{
    const struct waitqueue *queue;
    for (queue = TAILQ_FIRST(&it->queues->list); queue != NULL;
         queue = TAILQ_NEXT(queue, link))
        if (queue->is_subscribed)
            subscribe(it, node, queue, true);
}

void announcements_on_down(struct announcements *it, int node)
{
    struct waitqueue *queue;
    it->heard_us[node] = 0;
    for (queue = TAILQ_FIRST(&it->queues->list); queue != NULL;
         queue = TAILQ_NEXT(queue, link))
        queue->subscribed &= (uint16_t)~bit(node);
}

struct waitqueue *announcements_on_subscribed(struct announcements *it,
                                              int node, struct span resource)
{
    if (resource.len == 0) {
        send_listen(it, node); /* its heartbeat proves that it announces */
        return NULL;
    }
    struct waitqueue *queue = waitqueues_find(it->queues, resource);
    if (queue == NULL || !queue->is_subscribed)
        return NULL;
    queue->subscribed |= bit(node);
    return queue;
}

bool announcements_on_heartbeat(struct announcements *it, int node,
                                int64_t now_us)
{
    bool was_heard = is_heard(it, node, now_us);
    it->heard_us[node] = now_us;
    return !was_heard;
}

/* ---- the end ------------------------------------------------------------ */

static void unsubscribe(struct announcements *it, struct waitqueue *queue)
{
    for (int i = 0; i < nodes_of(it); i++)
        subscribe(it, i, queue, false);
    queue->is_subscribed = queue->is_covered = false;
    queue->subscribed = 0;
    waitqueues_drop(it->queues, queue);
}

void announcements_tick(struct announcements *it, int64_t now_us)
{
    const struct engine_port *port = &it->env->port;
    struct waitqueue *queue = TAILQ_FIRST(&it->queues->list), *next;
    if (!it->is_listening)
        return;
    for (; queue != NULL; queue = next) {
        next = TAILQ_NEXT(queue, link);
        if (queue->count > 0)
            it->wanted_us = now_us;
        else if (queue->is_subscribed && now_us - queue->empty_us >= LINGER_US)
            unsubscribe(it, queue);
    }
    if (now_us - it->wanted_us > UNUSED_US) {
        it->is_listening = false;
        port->listen(port->ctx, false);
        for (int i = 0; i < nodes_of(it); i++)
            announcements_on_down(it, i);
    } else if (now_us >= it->listen_us) {
        send_listens(it, now_us);
    }
}
