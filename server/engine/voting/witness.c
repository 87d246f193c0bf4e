/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../port/port.h"

enum {
    INCARNATION_TIME_LEN = 16
}; /* digits of an incarnation; chance follows */

#define NONE "00000000000000000000000000"

static_assert(sizeof NONE == INCARNATION_LEN + 1, "");

void witness_init(struct witness *witness, const char *const names[], int count)
{
    assert(count >= 1 && count <= NODES_MAX);
    *witness = (struct witness){.count = count};
    for (int i = 0; i < count; i++) {
        fingerprint_of_name(witness->node[i].name, names[i]);
        memcpy(witness->node[i].latest, NONE, sizeof NONE);
    }
}

void witness_on_generation(struct witness *witness, int node,
                           int64_t generation)
{
    struct witness_node *it = &witness->node[node];
    it->high_water = at_least(generation, it->high_water);
}

bool witness_is_waiting(const struct witness *witness, int node)
{
    const struct witness_node *it = &witness->node[node];
    /* the time in it is that of the node's clock, µs */
    return it->high_water <
           span_number((struct span){it->latest, INCARNATION_TIME_LEN},
                       INCARNATION_TIME_LEN);
}

bool witness_is_named(const struct witness *witness, int node,
                      const char *state)
{
    return span_is(call_state_part(span_of(state), CALL_STATE_NAME),
                   witness->node[node].name);
}

bool witness_knows_later(const struct witness *witness, int node,
                         const char *incarnation)
{
    const char *latest = witness->node[node].latest;
    return strcmp(latest, NONE) > 0 && strcmp(latest, incarnation) > 0;
}

void witness_on_incarnation(struct witness *witness, int node,
                            const char *incarnation, int64_t now_us)
{
    struct witness_node *it = &witness->node[node];
    if (strcmp(incarnation, it->latest) <= 0)
        return;
    snprintf(it->latest, sizeof it->latest, "%s", incarnation);
    it->carriers = 0;
    it->born_us = now_us;
}

void witness_on_lost(struct witness *witness, int node)
{
    witness->node[node].reported_us = 0;
    for (int i = 0; i < witness->count; i++)
        witness->node[i].carriers &= (uint16_t) ~(1u << node);
}

/* ---- the text ----------------------------------------------------------- */

struct span witness_text(const struct witness *witness, int node, char *text,
                         size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (int i = 0; i < witness->count; i++) {
        const struct witness_node *it = &witness->node[i];
        if (i != node)
            len += (size_t)snprintf(text + len, size - len, "%s=%0*lld m%s=%s ",
                                    it->name, INCARNATION_LEN,
                                    (long long)it->high_water, it->name,
                                    it->latest);
        assert(len < size);
    }
    return (struct span){text, len};
}

/*
 * A number above EXACT_MAX is ignored: no memory has such a generation, and a
 * node with such a high-water mark would never vote again.
 */
static void learn_generation(struct witness_node *it, int64_t generation,
                             int64_t now_us)
{
    if (generation > EXACT_MAX || generation <= it->high_water)
        return;
    it->high_water = generation;
    it->rose_us = now_us;
}

static void note_carrier(struct witness_node *it, int teller,
                         const char *incarnation)
{
    uint16_t bit = nodeset_of(teller);
    if (strcmp(incarnation, it->latest) < 0) {
        it->carriers &= (uint16_t)~bit;
    } else if ((it->carriers & bit) == 0) {
        it->carriers |= bit;
        it->joins++;
    }
}

/* True if the text has the form that our script answers. */
static bool is_whole(const struct witness *witness, struct span known)
{
    size_t digits = 0;
    while (digits < known.len && known.ptr[digits] >= '0' &&
           known.ptr[digits] <= '9')
        digits++;
    return digits == known.len &&
           digits == (size_t)(witness->count - 1) * 2 * INCARNATION_LEN;
}

int64_t witness_read(const struct witness *witness, int teller,
                     const struct call_probe *probe, int node,
                     char incarnation[INCARNATION_LEN + 1])
{
    char generation[INCARNATION_LEN + 1] = "";
    int at = node < teller ? node : node - 1; /* it tells of itself nothing */
    incarnation[0] = '\0';
    if (node == teller || node >= witness->count ||
        !is_whole(witness, probe->witnesses))
        return 0;
    const char *reported =
        probe->witnesses.ptr + (size_t)at * 2 * INCARNATION_LEN;
    memcpy(generation, reported, INCARNATION_LEN);
    memcpy(incarnation, reported + INCARNATION_LEN, INCARNATION_LEN);
    incarnation[INCARNATION_LEN] = '\0';
    return strtoll(generation, NULL, 10);
}

void witness_on_report(struct witness *witness, int node,
                       const struct call_probe *probe, int64_t sent_us,
                       int64_t now_us)
{
    struct witness_node *it = &witness->node[node];
    char incarnation[INCARNATION_LEN + 1];
    if (it->reported_us == 0)
        it->counts_us = sent_us;
    it->reported_us = sent_us;
    for (int i = 0; i < witness->count; i++) {
        int64_t generation = witness_read(witness, node, probe, i, incarnation);
        if (incarnation[0] == '\0')
            continue;
        learn_generation(&witness->node[i], generation, now_us);
        witness_on_incarnation(witness, i, incarnation, now_us);
        if (probe->word == PROBE_ADMITTED)
            note_carrier(&witness->node[i], node, incarnation);
    }
}
