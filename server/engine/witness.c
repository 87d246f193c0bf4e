#include "witness.h"

#include <assert.h>
#include <stdio.h>

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

void witness_on_mark(struct witness *witness, int node, int64_t born_us)
{
    struct witness_node *it = &witness->node[node];
    if (born_us > it->latest_us)
        it->latest_us = born_us;
}

/* ---- the text ----------------------------------------------------------- */

/* Before the name of the node whose latest mark is told. */
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
                                "%s%s=%lld " MARK "%s=%lld", len > 0 ? " " : "",
                                it->name, (long long)it->floor, it->name,
                                (long long)it->latest_us);
        assert(len < size);
    }
    return (struct span){text, len};
}

/* The number at the start of text; only a part of one above EXACT_MAX. */
static int64_t take_number(struct span *text)
{
    int64_t number = 0;
    while (text->len > 0 && *text->ptr >= '0' && *text->ptr <= '9' &&
           number <= EXACT_MAX) {
        number = number * 10 + (*text->ptr - '0');
        text->ptr++;
        text->len--;
    }
    return number;
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
 * "name=number " of this name, of which the space may be missing; false: it is
 * not next. A number above EXACT_MAX counts as none: no memory has such a beat,
 * and a node with such a floor would never vote again.
 */
static bool take_pair(struct span *text, const char *prefix, const char *name,
                      int64_t *number)
{
    if (!take(text, prefix) || !take(text, name) || !take(text, "="))
        return false;
    *number = take_number(text);
    if (*number > EXACT_MAX)
        *number = 0;
    (void)take(text, " ");
    return true;
}

/* In the order of witness_text. */
static void hear(struct witness *witness, int node, struct span text)
{
    int64_t number;
    for (int i = 0; i < witness->count; i++) {
        const char *name = witness->node[i].name;
        if (i == node)
            continue;
        if (take_pair(&text, "", name, &number))
            witness_on_beat(witness, i, number);
        if (take_pair(&text, MARK, name, &number))
            witness_on_mark(witness, i, number);
    }
}

void witness_on_told(struct witness *witness, int node,
                     const struct witness_words *words)
{
    struct witness_node *it = &witness->node[node];
    if (it->told_us == 0)
        it->counts_us = words->sent_us;
    it->told_us = words->sent_us;
    it->is_admitted = words->is_admitted;
    it->voted_us = words->voted_us;
    hear(witness, node, words->text);
}

void witness_on_lost(struct witness *witness, int node)
{
    witness->node[node].told_us = 0;
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

int64_t witness_voted_us(const struct witness *witness, int node)
{
    int64_t last_us = 0;
    for (int i = 0; i < witness->count; i++)
        if (i != node && witness->node[i].told_us != 0 &&
            witness->node[i].voted_us > last_us)
            last_us = witness->node[i].voted_us;
    return last_us;
}
