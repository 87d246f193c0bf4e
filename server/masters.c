#include "masters.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/port/port.h"
#include "node/link.h"
#include "node/subscription.h"

enum {
    SILENCE_US = 1000000,    /* a node may owe a reply at least this long */
    HEARTBEATS_US = 5000000, /* … and a heartbeat, which comes each second */
};

struct masters {
    struct engine *engine;
    struct trust *trust; /* NULL: no node speaks TLS */
    int count;
    struct link *links[NODES_MAX];
    struct subscription *subscriptions[NODES_MAX];
};

/* ---- the links' events -------------------------------------------------- */

static void on_up(void *ctx, int node, const struct node_facts *facts)
{
    struct masters *masters = ctx;
    engine_on_node_up(masters->engine, node, facts);
}

static void on_confirmed(void *ctx, int node, const struct node_facts *facts)
{
    struct masters *masters = ctx;
    engine_on_node_confirmed(masters->engine, node, facts);
}

static void on_down(void *ctx, int node, enum node_state reason,
                    const char *detail)
{
    struct masters *masters = ctx;
    engine_on_node_down(masters->engine, node, reason, detail);
}

static void on_reply(void *ctx, int node, uint64_t tag,
                     const struct call_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    struct masters *masters = ctx;
    engine_on_reply(masters->engine, node, tag, reply, sent_us, received_us);
}

/* ---- the subscriptions' events ------------------------------------------ */

static void on_listener_up(void *ctx, int node)
{
    struct masters *masters = ctx;
    engine_on_listener_up(masters->engine, node);
}

static void on_listener_down(void *ctx, int node)
{
    struct masters *masters = ctx;
    engine_on_listener_down(masters->engine, node);
}

static void on_subscribed(void *ctx, int node, struct span resource)
{
    struct masters *masters = ctx;
    engine_on_subscribed(masters->engine, node, resource);
}

static void on_announced(void *ctx, int node, struct span resource,
                         int64_t number)
{
    struct masters *masters = ctx;
    engine_on_announced(masters->engine, node, resource, number);
}

/* ---- at work ------------------------------------------------------------ */

enum vote masters_send(struct masters *masters, int node,
                       const struct call *call, uint64_t tag)
{
    return link_send(masters->links[node], call, tag);
}

void masters_listen(struct masters *masters, bool is_on)
{
    for (int i = 0; i < masters->count; i++)
        if (is_on)
            subscription_open(masters->subscriptions[i]);
        else
            subscription_close(masters->subscriptions[i]);
}

void masters_subscribe(struct masters *masters, int node, struct span resource,
                       bool is_on)
{
    subscription_set(masters->subscriptions[node], resource, is_on);
}

void masters_flush_calls(struct masters *masters)
{
    for (int i = 0; masters != NULL && i < masters->count; i++)
        link_flush(masters->links[i]);
}

void masters_flush(struct masters *masters)
{
    masters_flush_calls(masters);
    for (int i = 0; i < masters->count; i++)
        subscription_flush(masters->subscriptions[i]);
}

/* ---- TLS ---------------------------------------------------------------- */

static void warn_of_certificate(const struct masters *masters)
{
    const char *warning =
        masters->trust == NULL
            ? NULL
            : trust_warning(masters->trust, clock_wall_us() / US_PER_S);
    if (warning != NULL)
        log_write(LOG_WARN, "node_tls_certificate",
                  (struct log_field[]){LOG_S("detail", warning), LOG_END});
}

void masters_reload(struct masters *masters)
{
    char error[TRUST_TEXT_MAX];
    if (masters->trust == NULL)
        return;
    if (trust_reload(masters->trust, error)) {
        log_write(LOG_INFO, "node_tls_reloaded", NULL);
        warn_of_certificate(masters);
    } else {
        log_write(LOG_WARN, "node_tls_not_reloaded",
                  (struct log_field[]){LOG_S("detail", error), LOG_END});
    }
}

/* ---- begin and end ------------------------------------------------------ */

static bool start_links(struct masters *masters, struct dial_setup dialing,
                        const struct config *config)
{
    const struct link_events events = {on_up, on_confirmed, on_down, on_reply,
                                       masters};
    int64_t silence_us = config->node_timeout_ms * 2000;
    dialing.silence_us = at_least(silence_us, SILENCE_US);
    for (int i = 0; i < masters->count; i++) {
        dialing.config = &config->nodes[i];
        masters->links[i] = link_new(i, &dialing, config->key_prefix, &events);
        if (masters->links[i] == NULL)
            return false;
    }
    return true;
}

static bool start_subscriptions(struct masters *masters,
                                struct dial_setup dialing,
                                const struct config *config)
{
    const struct subscription_events events = {
        on_listener_up, on_listener_down, on_subscribed, on_announced, masters};
    dialing.silence_us = HEARTBEATS_US;
    for (int i = 0; i < masters->count; i++) {
        dialing.config = &config->nodes[i];
        masters->subscriptions[i] =
            subscription_new(i, &dialing, config->key_prefix, &events);
        if (masters->subscriptions[i] == NULL)
            return false;
    }
    return true;
}

struct masters *masters_new(struct loop *loop, const struct config *config,
                            struct engine *engine, char error[TRUST_TEXT_MAX])
{
    struct masters *masters = calloc(1, sizeof *masters);
    if (masters == NULL)
        return NULL;
    masters->engine = engine;
    masters->count = config->nodes_count;
    bool is_made = trust_make(&masters->trust, config, error);
    const struct dial_setup dialing = {.loop = loop, .trust = masters->trust};
    if (!is_made || !start_links(masters, dialing, config) ||
        !start_subscriptions(masters, dialing, config)) {
        masters_free(masters);
        return NULL;
    }
    warn_of_certificate(masters);
    return masters;
}

void masters_free(struct masters *masters)
{
    if (masters == NULL)
        return;
    for (int i = 0; i < masters->count; i++) {
        link_free(masters->links[i]);
        subscription_free(masters->subscriptions[i]);
    }
    trust_free(masters->trust);
    free(masters);
}
