/* SPDX-License-Identifier: MIT */
/*
 * An auth file. What is accepted is within the limits, and each identity is
 * found by its name; what is refused is told in one line that repeats nothing
 * of the file.
 */
#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "../../api/access/identities.h"
#include "../../api/message/id.h"
#include "input.h"

enum { WORD_MIN = 24 }; /* no word of a reason is so long */

static void check_prefixes(const struct identity *it)
{
    assert(it->prefixes_count >= 0 &&
           it->prefixes_count <= IDENTITY_PREFIXES_MAX);
    for (int i = 0; i < it->prefixes_count; i++) {
        assert(id_check_resource(it->prefixes[i]) == NULL);
        assert(identity_covers(it, it->prefixes[i]));
    }
    assert(identity_covers(it, span_of("a")) || it->prefixes_count > 0);
}

static void check_identity(const struct identities *all, int i)
{
    const struct identity *it = &all->list[i];
    size_t len = strnlen(it->name, sizeof it->name);
    assert(len > 0 && len <= IDENTITY_NAME_MAX);
    for (size_t at = 0; at < len; at++)
        assert(isalnum((unsigned char)it->name[at]) ||
               strchr("._-", it->name[at]) != NULL);
    assert(identities_find_name(all, it->name) == i);
    assert(i == 0 || strcmp(all->list[i - 1].name, it->name) < 0);
    assert(it->scopes != 0 && it->scopes < 1u << SCOPES);
    assert(it->rate >= 0 && it->rate <= IDENTITY_RATE_MAX);
    assert(it->burst >= 0 && it->burst <= IDENTITY_RATE_MAX);
    assert((it->rate > 0) == (it->burst > 0));
    assert(it->locks >= 0 && it->locks <= IDENTITY_LOCKS_MAX);
    check_prefixes(it);
}

/* A secret where none belongs is a long word. */
static void check_error(const char *error, struct span text)
{
    size_t len = strnlen(error, IDENTITIES_ERROR_MAX);
    assert(len > 0 && len < IDENTITIES_ERROR_MAX);
    for (size_t i = 0; i < len; i++)
        assert(error[i] >= ' ' && error[i] != 0x7f);
    for (size_t i = 0; i + WORD_MIN <= text.len; i++) {
        bool is_word = true;
        for (size_t at = 0; at < WORD_MIN; at++)
            is_word &= isalnum((unsigned char)text.ptr[i + at]) != 0;
        assert(!is_word || memmem(error, len, text.ptr + i, WORD_MIN) == NULL);
    }
}

void fuzz(struct input *input)
{
    struct span text = input_rest(input);
    char error[IDENTITIES_ERROR_MAX];
    struct identities *all = identities_parse(text, error);
    if (all == NULL) {
        check_error(error, text);
        return;
    }
    int count = all->count;
    assert(count > 0 && count <= IDENTITIES_MAX);
    for (int i = 0; i < count; i++)
        check_identity(all, i);
    identities_free(all);
}
