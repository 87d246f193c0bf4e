/* SPDX-License-Identifier: MIT */
/*
 * A change of the names: whether the old ones are dead.
 */
#include "members.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPOCH_MOST = 1000000, /* one written by hand must not overflow */
    ABOVE_ALL = EPOCH_MOST + 1,
    /* "epoch:fingerprint:", with an epoch of 7 digits */
    CONFIGURATION_MAX = 7 + 1 + FINGERPRINT_LEN + 1,
};

/* ---- texts --------------------------------------------------------------- */

/* "epoch:fingerprint:" at the start of a text; empty: there is none. */
static struct span configuration_of(const char *text)
{
    const char *colon = strchr(text, ':');
    colon = colon != NULL ? strchr(colon + 1, ':') : NULL;
    return (struct span){text, colon != NULL ? (size_t)(colon + 1 - text) : 0};
}

static bool is_of(const char *text, const char *configuration)
{
    return span_is(configuration_of(text), configuration);
}

bool takeover_is_ours(const struct members *members, const char *state)
{
    return span_is(call_state_part(span_of(state), CALL_STATE_FINGERPRINT),
                   members->settings.fingerprint);
}

/* Of our names and epoch. */
static bool is_our_own(const struct members *members, const char *text)
{
    char ours[CALL_STATE_MAX + 1];
    snprintf(ours, sizeof ours, "%d:%s:", members->epoch,
             members->settings.fingerprint);
    return is_of(text, ours);
}

int takeover_epoch_of(const char *text)
{
    long epoch = strtol(text, NULL, 10);
    return epoch >= 1 && epoch <= EPOCH_MOST ? (int)epoch : 0;
}

int64_t takeover_end_of(const struct call_probe *probe, int64_t now_us)
{
    return now_us + probe->rest_us + probe->rest_us / 100 + 1;
}

void takeover_copy(char to[CALL_STATE_MAX + 1], struct span from)
{
    assert(from.len <= CALL_STATE_MAX); /* script.c reads no longer */
    to[span_copy(to, from)] = '\0';
}

/* How many names it has; 0: nobody knows. */
static int names_of(const char *configuration)
{
    char fingerprint[FINGERPRINT_LEN + 1];
    struct span part =
        call_state_part(span_of(configuration), CALL_STATE_FINGERPRINT);
    if (part.len != FINGERPRINT_LEN)
        return 0;
    fingerprint[span_copy(fingerprint, part)] = '\0';
    return fingerprint_names(fingerprint);
}

/* Whether that which a text begins with is in a list. */
static bool has(const char *list, const char *text)
{
    struct span wanted = configuration_of(text);
    for (struct span it = configuration_of(list); it.len > 0;
         it = configuration_of(list)) {
        if (it.len == wanted.len && memcmp(it.ptr, text, it.len) == 0)
            return true;
        list += it.len;
    }
    return false;
}

/* ---- what probes find ---------------------------------------------------- */

/* Those who are dead stay so: of what is told, all below this epoch. */
static void note_dead(struct takeover *takeover, struct span reported,
                      int epoch)
{
    char list[CALL_STATE_MAX + 1];
    takeover_copy(list, reported);
    for (const char *at = list; configuration_of(at).len > 0;) {
        struct span each = configuration_of(at);
        size_t len = strlen(takeover->dead);
        at += each.len;
        if (takeover_epoch_of(each.ptr) < epoch &&
            !has(takeover->dead, each.ptr) && len + each.len <= CALL_STATE_MAX)
            takeover->dead[len + span_copy(takeover->dead + len, each)] = '\0';
    }
}

void takeover_on_probe(struct members *members, int node,
                       const struct call_probe *probe, int64_t now_us)
{
    struct takeover *takeover = &members->takeover;
    struct takeover_node *it = &takeover->node[node];
    bool is_ours = takeover_is_ours(members, members->node[node].found);
    bool is_quarantined = members->node[node].phase == MEMBER_QUARANTINED;
    bool is_same = it->is_seen && span_is(probe->quarantine, it->quarantine);
    int64_t end_us = takeover_end_of(probe, now_us);
    if (!is_same)
        it->since_us = now_us;
    /* it promises nothing meanwhile, so each probe reports the same end */
    it->end_us =
        is_same && is_quarantined ? at_most(it->end_us, end_us) : end_us;
    it->is_seen = true;
    it->is_quarantined = is_quarantined;
    it->is_able = is_quarantined || probe->word == PROBE_BARE;
    it->number = probe->number;
    takeover_copy(it->quarantine, probe->quarantine);
    takeover_copy(it->taken, probe->taken);
    takeover_copy(it->passed, is_ours ? span_of("") : probe->passed);
    note_dead(takeover, probe->passed,
              is_ours ? ABOVE_ALL : takeover_epoch_of(it->taken));
    if (probe->passed.len > CALL_STATE_MAX - CONFIGURATION_MAX)
        it->taken[0] = '\0'; /* some may have been cut off */
    for (int i = 0; i < NODES_MAX; i++)
        witness_read(&members->witness, node, probe, i, it->learned[i]);
}

void takeover_on_lost(struct takeover *takeover, int node)
{
    struct takeover_node *it = &takeover->node[node];
    it->is_seen = it->is_quarantined = it->is_able = false;
}

void takeover_begin(struct takeover *takeover)
{
    takeover->is_over = false;
    takeover->end_us = takeover->number = 0;
    takeover->dead[0] = '\0';
    for (int i = 0; i < NODES_MAX; i++)
        takeover_on_lost(takeover, i);
}

bool takeover_reports(const struct takeover *takeover, int node)
{
    const struct takeover_node *it = &takeover->node[node];
    return it->is_seen && it->is_quarantined && it->taken[0] != '\0';
}

int takeover_epoch_below(const struct members *members, int node)
{
    const struct takeover_node *it = &members->takeover.node[node];
    int epoch = members->epoch, taken = takeover_epoch_of(it->taken);
    int below = taken < epoch ? taken : 0;
    for (const char *past = it->passed; configuration_of(past).len > 0;
         past += configuration_of(past).len)
        if (takeover_epoch_of(past) < epoch && takeover_epoch_of(past) > below)
            below = takeover_epoch_of(past);
    return below;
}

bool takeover_is_of_dead(const struct members *members, int node)
{
    return has(members->takeover.dead, members->node[node].found);
}

/* ---- the count ----------------------------------------------------------- */

/* Whether another one knows a later incarnation of its name: others have voted
 * in its place. */
static bool is_replaced(const struct takeover *takeover, int node,
                        uint16_t reporters)
{
    struct span incarnation = call_state_part(
        span_of(takeover->node[node].taken), CALL_STATE_INCARNATION);
    if (incarnation.len != INCARNATION_LEN)
        return true;
    for (int i = 0; i < NODES_MAX; i++) {
        const char *learned = takeover->node[i].learned[node];
        if ((reporters & 1u << i) != 0 && strlen(learned) == INCARNATION_LEN &&
            memcmp(learned, incarnation.ptr, INCARNATION_LEN) > 0)
            return true;
    }
    return false;
}

/* Those of the nodes that report this configuration. */
static uint16_t reporters_of(const struct takeover *takeover,
                             const char *configuration, uint16_t nodes)
{
    uint16_t reported = 0, reporters = 0;
    for (int i = 0; i < NODES_MAX; i++)
        if ((nodes & 1u << i) != 0 &&
            is_of(takeover->node[i].taken, configuration))
            reported |= nodeset_of(i);
    for (int i = 0; i < NODES_MAX; i++)
        if ((reported & 1u << i) != 0 && !is_replaced(takeover, i, reported))
            reporters |= nodeset_of(i);
    return reporters;
}

static bool takeover_is_majority(const char *configuration, uint16_t reporters)
{
    int names = names_of(configuration);
    return names > 0 && nodeset_count(reporters) >= quorum_of(names);
}

/* Those that tell, and tell that they carried its quarantine record. */
static int count_carriers(const struct takeover *takeover,
                          const struct takeover_count *count,
                          const char *configuration)
{
    int carriers = 0;
    for (int i = 0; i < NODES_MAX; i++) {
        const struct takeover_node *it = &takeover->node[i];
        carriers += (count->reporters & 1u << i) != 0 &&
                    (has(it->passed, configuration) ||
                     is_of(it->quarantine, configuration));
    }
    return carriers;
}

/*
 * Whether a configuration that was seen with a quarantine record only has not
 * voted, and will not. It needed more nodes of the base than it can have had:
 * those that carried its quarantine record, and all that do not tell; a first
 * start, of epoch 1, needs none of them. Or so many carry our quarantine record
 * instead of its lower one that the rest of its own names are no majority.
 */
static bool is_harmless(const struct members *members,
                        const struct takeover_count *count,
                        const char *configuration)
{
    int names = names_of(configuration);
    int carriers = count_carriers(&members->takeover, count, configuration);
    int silent = count->names - nodeset_count(count->reporters);
    return (takeover_epoch_of(configuration) > 1 &&
            carriers + silent < quorum_of(count->names)) ||
           (names > 0 && names - carriers < quorum_of(names) &&
            takeover_epoch_of(configuration) < members->epoch);
}

/*
 * A configuration that some node carries, or has carried. If it was seen with a
 * quarantine record only, it may have counted the base as we do, or be a first
 * start, which counts none; otherwise it was admitted. One of a lower epoch
 * goes on unless it is dead, too: it may be that of another installation.
 */
static void compare(const struct members *members, uint16_t nodes,
                    struct takeover_count *count, const char *text,
                    bool is_quarantine)
{
    const struct takeover *takeover = &members->takeover;
    struct span found = configuration_of(text);
    char other[CALL_STATE_MAX + 1];
    if (found.len == 0 || is_our_own(members, text) ||
        span_is(found, count->base))
        return;
    takeover_copy(other, found);
    bool is_alive = !has(takeover->dead, other);
    bool counts =
        is_quarantine
            ? takeover_epoch_of(other) >= takeover_epoch_of(count->base) ||
                  (is_alive && takeover_epoch_of(other) == 1)
            : is_alive;
    if (counts &&
        !takeover_is_majority(other, reporters_of(takeover, other, nodes)) &&
        !(is_quarantine && is_harmless(members, count, other)))
        count->has_others = true;
}

static void find_base(const struct members *members, char *base)
{
    for (int i = 0; i < NODES_MAX; i++) {
        const char *const found[] = {members->node[i].found,
                                     members->takeover.node[i].taken};
        for (size_t k = 0; k < sizeof found / sizeof *found; k++)
            if (configuration_of(found[k]).len > 0 &&
                !is_our_own(members, found[k]) &&
                takeover_epoch_of(found[k]) > takeover_epoch_of(base))
                takeover_copy(base, configuration_of(found[k]));
    }
}

static uint16_t possible_nodes(const struct takeover *takeover)
{
    uint16_t nodes = 0;
    for (int i = 0; i < NODES_MAX; i++)
        if (takeover->node[i].is_able && takeover->node[i].taken[0] != '\0')
            nodes |= nodeset_of(i);
    return nodes;
}

static uint16_t quarantined_nodes(const struct members *members)
{
    const struct takeover *takeover = &members->takeover;
    uint16_t nodes = 0;
    int64_t since_us = 0;
    for (int i = 0; i < NODES_MAX; i++)
        if (takeover_reports(takeover, i))
            since_us = at_least(takeover->node[i].since_us, since_us);
    for (int i = 0; i < NODES_MAX; i++)
        if (takeover_reports(takeover, i) &&
            members->node[i].probed_us >= since_us)
            nodes |= nodeset_of(i);
    return nodes;
}

/* Whose word on what they promised counts; is_early: or will count, once their
 * clocks are known. An observer knows none yet. */
static uint16_t reliable_nodes(const struct members *members, bool is_early)
{
    uint16_t nodes = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct member *it = &members->node[i];
        if (!it->is_mute && !it->must_revoke &&
            (it->is_clock_good || (is_early && !members->has_median) ||
             members->settings.is_observer) &&
            !it->is_outdated)
            nodes |= nodeset_of(i);
    }
    return nodes;
}

void takeover_count(const struct members *members, enum takeover_when when,
                    struct takeover_count *count)
{
    const struct takeover *takeover = &members->takeover;
    uint16_t nodes = reliable_nodes(members, when == TAKEOVER_EARLY);
    nodes &= when == TAKEOVER_NOW ? quarantined_nodes(members)
                                  : possible_nodes(takeover);
    *count = (struct takeover_count){0};
    find_base(members, count->base);
    count->names = names_of(count->base);
    count->reporters = reporters_of(takeover, count->base, nodes);
    if (!takeover_is_majority(count->base, count->reporters))
        return;
    for (int i = 0; i < NODES_MAX; i++) {
        const struct takeover_node *it = &takeover->node[i];
        compare(members, nodes, count, members->node[i].found, false);
        compare(members, nodes, count, it->taken, false);
        compare(members, nodes, count, it->quarantine, true);
        for (const char *past = it->passed; *past != '\0';) {
            compare(members, nodes, count, past, true);
            past += at_least((int64_t)configuration_of(past).len, 1);
        }
    }
    count->is_dead = !count->has_others;
}

void takeover_end(struct takeover *takeover, const char *base)
{
    takeover->is_over = true;
    takeover->end_us = takeover->number = 0;
    char before[CALL_STATE_MAX + 1];
    memcpy(before, takeover->dead, sizeof before);
    takeover->dead[0] = '\0';
    note_dead(takeover, span_of(base), ABOVE_ALL);
    note_dead(takeover, span_of(before), ABOVE_ALL);
    for (int i = 0; i < NODES_MAX; i++) {
        const struct takeover_node *it = &takeover->node[i];
        if (!takeover_reports(takeover, i))
            continue;
        takeover->end_us = at_least(it->end_us, takeover->end_us);
        takeover->number = at_least(it->number, takeover->number);
    }
}
