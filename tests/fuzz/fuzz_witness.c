/* SPDX-License-Identifier: MIT */
/*
 * Lines: how many nodes, which of them tells, the high-water mark of each,
 * whose last digit is that of its incarnation, and then what it tells of the
 * others. High-water quarantine records and incarnations only rise, and what a
 * server says of them is what another one hears.
 */
#include <assert.h>
#include <string.h>

#include "../../server/engine/voting/witness.h"
#include "../../server/node/script.h"
#include "input.h"

static const char *const names[NODES_MAX] = {"a:1", "b:2", "c:3", "d:4", "e:5",
                                             "f:6", "g:7", "h:8", "i:9"};

static const char none[] = "00000000000000000000000000";

static void tell(struct witness *witness, int node, struct span text)
{
    const struct call_probe probe = {.word = PROBE_ADMITTED, .witnesses = text};
    witness_on_report(witness, node, &probe, 9, 10);
}

static void check_heard(const struct witness *witness, int node)
{
    struct witness other;
    char text[CALL_WITNESSES_MAX + 1], heard[CALL_WITNESSES_MAX + 1] = "";
    struct span words = witness_text(witness, node, text, sizeof text);
    assert(words.len <= CALL_WITNESSES_MAX && strlen(text) == words.len);
    size_t len = 0; /* as the script answers: the digits behind each "=" */
    for (const char *at = text; (at = strchr(at, '=')) != NULL;)
        len += span_copy(heard + len, (struct span){++at, INCARNATION_LEN});
    witness_init(&other, names, witness->count);
    tell(&other, node, (struct span){heard, len});
    for (int i = 0; i < witness->count; i++) {
        assert(other.node[i].high_water ==
               (i == node ? 0 : witness->node[i].high_water));
        assert(strcmp(other.node[i].latest,
                      i == node ? none : witness->node[i].latest) == 0);
        assert(other.node[i].carriers == (i == node ? 0 : 1u << node));
    }
}

static void check_told(struct witness *witness, int node, struct span text)
{
    struct witness before = *witness;
    tell(witness, node, text);
    for (int i = 0; i < witness->count; i++) {
        assert(witness->node[i].high_water >= before.node[i].high_water);
        assert(witness->node[i].high_water <= EXACT_MAX);
        assert(strcmp(witness->node[i].latest, before.node[i].latest) >= 0);
        assert(strlen(witness->node[i].latest) == INCARNATION_LEN);
        assert((witness->node[i].carriers & ~(1u << node)) == 0);
    }
    assert(witness->node[node].high_water == before.node[node].high_water);
    assert(witness->node[node].reported_us == 9);
    assert(strcmp(witness->node[node].latest, before.node[node].latest) == 0);
}

void fuzz(struct input *input)
{
    struct witness witness;
    int count = (int)((uint64_t)input_number(input) % NODES_MAX) + 1;
    int node = (int)((uint64_t)input_number(input) % (uint64_t)count);
    witness_init(&witness, names, count);
    for (int i = 0; i < count; i++) {
        char incarnation[] = "00000000000000050123456789";
        int64_t high_water = input_number(input) & (EXACT_MAX - 1);
        incarnation[15] = (char)('0' + high_water % 10);
        witness_on_generation(&witness, i, high_water);
        if (high_water % 10 != 0)
            witness_on_incarnation(&witness, i, incarnation, 1);
    }
    check_heard(&witness, node);
    check_told(&witness, node, input_rest(input));
    check_heard(&witness, node);
}
