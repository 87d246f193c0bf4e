#include "witness.h"

#include <assert.h>
#include <stdio.h>

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

/* Before the name of the node whose latest birth is told. */
#define MARK "m"

struct span witness_text(const struct witness *witness, int node, char *text,
                         size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (int i = 0; i < witness->count; i++) {
        if (i == node)
            continue;
        const struct witness_node *it = &witness->node[i];
        len += (size_t)snprintf(text + len, size - len,
                                "%s%s=%lld " MARK "%s=%s", len > 0 ? " " : "",
                                it->name, (long long)it->floor, it->name,
                                it->latest[0] != '\0' ? it->latest : "0");
        assert(len < size);
    }
    return (struct span){text, len};
}

static bool take(struct span *text, const char *word)
{
    size_t len = strlen(word);
    if (text->len < len || (len > 0 && memcmp(text->ptr, word, len) != 0))
        return false;
    text->ptr += len;
    text->len -= len;
    return true;
}

/*
 * The digits of "name=digits ", of which the space may be missing; empty: this
 * name is not next, or it has none.
 */
static struct span take_digits(struct span *text, const char *prefix,
                               const char *name)
{
    if (!take(text, prefix) || !take(text, name) || !take(text, "="))
        return (struct span){text->ptr, 0};
    struct span digits = {text->ptr, 0};
    while (digits.len < text->len && digits.ptr[digits.len] >= '0' &&
           digits.ptr[digits.len] <= '9')
        digits.len++;
    text->ptr += digits.len;
    text->len -= digits.len;
    (void)take(text, " ");
    return digits;
}

/*
 * A number above EXACT_MAX counts as none: no memory has such a beat, and a
 * node with such a floor would never vote again.
 */
static void hear_beat(struct witness_node *it, struct span digits,
                      int64_t now_us)
{
    int64_t beat = 0;
    for (size_t i = 0; i < digits.len && beat <= EXACT_MAX; i++)
        beat = beat * 10 + (digits.ptr[i] - '0');
    if (beat > EXACT_MAX || beat <= it->floor)
        return;
    it->floor = beat;
    it->rose_us = now_us;
}

static void hear_birth(struct witness *witness, int node, int teller,
                       struct span digits, int64_t now_us)
{
    struct witness_node *it = &witness->node[node];
    char birth[CALL_BIRTH_LEN + 1];
    if (digits.len > CALL_BIRTH_LEN)
        return;
    birth[span_copy(birth, digits)] = '\0';
    if (digits.len == CALL_BIRTH_LEN)
        witness_on_birth(witness, node, birth, now_us);
    uint16_t bit = (uint16_t)(1u << teller);
    if (it->latest[0] != '\0' && strcmp(birth, it->latest) == 0)
        it->carriers |= bit;
    else
        it->carriers &= (uint16_t)~bit;
}

void witness_on_told(struct witness *witness, int node,
                     const struct witness_words *words)
{
    struct witness_node *it = &witness->node[node];
    struct span text = words->text;
    if (it->told_us == 0)
        it->counts_us = words->sent_us;
    it->told_us = words->sent_us;
    it->is_admitted = words->is_admitted;
    for (int i = 0; i < witness->count; i++) { /* as witness_text orders them */
        struct witness_node *other = &witness->node[i];
        if (i == node)
            continue;
        hear_beat(other, take_digits(&text, "", other->name), words->now_us);
        hear_birth(witness, i, node, take_digits(&text, MARK, other->name),
                   words->now_us);
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
