#include "takeover.h"

#include <assert.h>
#include <string.h>

static void raise_birth(char birth[CALL_BIRTH_LEN + 1], struct span other)
{
    if (other.len == CALL_BIRTH_LEN &&
        memcmp(other.ptr, birth, CALL_BIRTH_LEN) > 0)
        birth[span_copy(birth, other)] = '\0';
}

void takeover_on_look(struct takeover *takeover, const struct witness *witness,
                      const char *fingerprint, int node,
                      const struct call_look *look, int64_t now_us)
{
    struct takeover_node *it = &takeover->node[node];
    struct span carried = call_state_part(look->admit, CALL_STATE_FINGERPRINT);
    struct span birth = call_state_part(look->admit, CALL_STATE_BIRTH);
    if (carried.len != FINGERPRINT_LEN || span_is(carried, fingerprint))
        return;
    it->carried[span_copy(it->carried, carried)] = '\0';
    /* to an observer it would tell it */
    bool is_telling = look->word == LOOK_TAKEN || look->word == LOOK_UNTAKEN;
    if (!is_telling || birth.len != CALL_BIRTH_LEN)
        return;
    it->birth[span_copy(it->birth, birth)] = '\0';
    for (int i = 0; i < witness->count; i++)
        raise_birth(takeover->node[i].latest,
                    witness_birth_told(witness, node, look, i));
    takeover->end_us = at_least(
        now_us + look->rest_us + look->rest_us / 100 + 1, takeover->end_us);
    takeover->number = at_least(look->number, takeover->number);
}

void takeover_on_step(struct takeover *takeover, int node)
{
    takeover->node[node].birth[0] = '\0';
}

/* Not a machine whose name had a later one: others have voted in its place. */
uint16_t takeover_tellers(const struct takeover *takeover)
{
    uint16_t tellers = 0;
    for (int i = 0; i < NODES_MAX; i++) {
        const struct takeover_node *it = &takeover->node[i];
        if (it->birth[0] != '\0' && strcmp(it->birth, it->latest) >= 0)
            tellers |= (uint16_t)(1u << i);
    }
    return tellers;
}

bool takeover_is_told(const struct takeover *takeover)
{
    const char *carried = "";
    for (int i = 0; i < NODES_MAX; i++) {
        const char *other = takeover->node[i].carried;
        if (other[0] != '\0' && carried[0] != '\0' &&
            strcmp(other, carried) != 0)
            return false;
        if (other[0] != '\0')
            carried = other;
    }
    int names = fingerprint_names(carried);
    return names > 0 &&
           __builtin_popcount(takeover_tellers(takeover)) >= quorum_of(names);
}
