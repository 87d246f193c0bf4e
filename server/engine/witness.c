#include "witness.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fingerprint.h"

void witness_init(struct witness *witness, const char *const names[], int count,
                  int quorum)
{
    assert(count >= 1 && count <= NODES_MAX);
    *witness = (struct witness){.count = count, .enough = count - quorum + 1};
    for (int i = 0; i < count; i++)
        fingerprint_of_name(witness->node[i].name, names[i]);
}

void witness_on_beat(struct witness *witness, int node, int64_t beat)
{
    struct witness_node *it = &witness->node[node];
    if (beat > it->floor)
        it->floor = beat;
}

bool witness_knows_later(const struct witness *witness, int node,
                         const char *birth)
{
    return strcmp(witness->node[node].latest, birth) > 0;
}

void witness_on_birth(struct witness *witness, int node, const char *birth,
                      int64_t now_us)
{
    struct witness_node *it = &witness->node[node];
    if (strcmp(birth, it->latest) <= 0)
        return;
    snprintf(it->latest, sizeof it->latest, "%s", birth);
    it->carriers = 0;
    it->born_us = now_us;
}

/* ---- the text ----------------------------------------------------------- */

#define NONE "00000000000000000000000000"

static_assert(sizeof NONE == CALL_BIRTH_LEN + 1, "");

struct span witness_text(const struct witness *witness, int node, char *text,
                         size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (int i = 0; i < witness->count; i++) {
        if (i == node)
            continue;
        const struct witness_node *it = &witness->node[i];
        len += (size_t)snprintf(text + len, size - len, "%s%s=%0*lld m%s=%s",
                                len > 0 ? " " : "", it->name, CALL_BIRTH_LEN,
                                (long long)it->floor, it->name,
                                it->latest[0] != '\0' ? it->latest : NONE);
        assert(len < size);
    }
    return (struct span){text, len};
}

/* The digits behind "name="; false: there are none in this text. */
static bool find_digits(struct span text, const char *prefix, const char *name,
                        char digits[CALL_BIRTH_LEN + 1])
{
    char key[CALL_NAME_LEN + 4];
    snprintf(key, sizeof key, " %s%s=", prefix, name);
    size_t len = strlen(key + 1);
    const char *at = text.ptr;
    if (text.len <= len)
        return false;
    if (memcmp(at, key + 1, len) != 0) { /* only the first has no space */
        at = memmem(at, text.len, key, len + 1);
        if (at == NULL)
            return false;
        at++;
    }
    at += len;
    if (text.ptr + text.len - at < CALL_BIRTH_LEN)
        return false;
    digits[span_copy(digits, (struct span){at, CALL_BIRTH_LEN})] = '\0';
    return strspn(digits, "0123456789") == CALL_BIRTH_LEN;
}

/*
 * A number above EXACT_MAX counts as none: no memory has such a beat, and a
 * node with such a floor would never vote again.
 */
static void hear_beat(struct witness_node *it, const char *digits,
                      int64_t now_us)
{
    int64_t beat = strtoll(digits, NULL, 10); /* or the greatest number */
    if (beat > EXACT_MAX || beat <= it->floor)
        return;
    it->floor = beat;
    it->rose_us = now_us;
}

static void hear_birth(struct witness *witness, int node, int teller,
                       const char *birth, int64_t now_us)
{
    struct witness_node *it = &witness->node[node];
    uint16_t bit = (uint16_t)(1u << teller);
    if (strcmp(birth, NONE) != 0)
        witness_on_birth(witness, node, birth, now_us);
    it->carriers &= (uint16_t)~bit;
    if (strcmp(birth, it->latest) == 0)
        it->carriers |= bit;
}

void witness_on_told(struct witness *witness, int node,
                     const struct witness_words *words)
{
    struct witness_node *it = &witness->node[node];
    char digits[CALL_BIRTH_LEN + 1];
    if (it->told_us == 0)
        it->counts_us = words->sent_us;
    it->told_us = words->sent_us;
    it->is_admitted = words->is_admitted;
    for (int i = 0; i < witness->count; i++) {
        struct witness_node *other = &witness->node[i];
        if (i == node)
            continue;
        if (find_digits(words->text, "", other->name, digits))
            hear_beat(other, digits, words->now_us);
        if (find_digits(words->text, "m", other->name, digits))
            hear_birth(witness, i, node, digits, words->now_us);
    }
}

void witness_on_lost(struct witness *witness, int node)
{
    witness->node[node].told_us = 0;
    for (int i = 0; i < witness->count; i++)
        witness->node[i].carriers &= (uint16_t) ~(1u << node);
}

/* ---- what they tell ------------------------------------------------------ */

static bool is_wanted(const struct witness_node *it,
                      const struct witness_demand *demand)
{
    return it->told_us != 0 && it->told_us >= demand->since_us &&
           it->told_us >= it->counts_us + demand->long_us &&
           (it->is_admitted || !demand->must_be_admitted);
}

bool witness_have_told(const struct witness *witness, int node,
                       const struct witness_demand *demand)
{
    int told = 0;
    for (int i = 0; i < witness->count; i++)
        told += i != node && is_wanted(&witness->node[i], demand);
    return told >= witness->enough;
}
