/* SPDX-License-Identifier: MIT */
#include "tokens.h"

#include "../../../server/engine/port/token.h"

#include <stdio.h>

#include "../../lib/suite/suite.h"

enum { NAMES = 16, NUMBER_LEN = 16 };

static struct {
    char name[TOKEN_MAX + 1]; /* not that of the shared form */
    int64_t number;           /* 0: no entry */
} known[NAMES];

void tokens_begin(void)
{
    memset(known, 0, sizeof known);
}

static bool is_name(struct span text)
{
    bool is_letter = text.len == 1 && text.ptr[0] >= 'A' && text.ptr[0] <= 'Z';
    bool is_rest = text.len > 1 && (text.ptr[0] == '.' || text.ptr[0] == '~');
    return is_letter || is_rest;
}

/* That of the other form, if it is that of the shared one. */
static struct span exclusive(struct span name, char text[TOKEN_MAX + 1])
{
    if (name.ptr[0] != '~')
        return name;
    snprintf(text, TOKEN_MAX + 1, "%s%.*s", name.len == 2 ? "" : ".",
             (int)name.len - 1, name.ptr + 1);
    return span_of(text);
}

/* Its entry, or the one that it may have. */
static int find(struct span name)
{
    char text[TOKEN_MAX + 1];
    ck_assert_uint_le(name.len, TOKEN_MAX);
    struct span key = exclusive(name, text);
    for (int i = 0; i < NAMES; i++)
        if (known[i].number == 0 || span_is(key, known[i].name))
            return i;
    ck_abort_msg("too many names");
}

int64_t tokens_number(struct span name, int64_t now_us)
{
    if (!is_name(name))
        return 0;
    int at = find(name);
    if (known[at].number == 0)
        tokens_renumber(name, now_us);
    return known[at].number;
}

void tokens_renumber(struct span name, int64_t number)
{
    if (!is_name(name))
        return;
    char text[TOKEN_MAX + 1];
    int at = find(name);
    known[at].name[span_copy(known[at].name, exclusive(name, text))] = '\0';
    known[at].number = number;
}

struct span tokens_make(struct span name, int64_t number,
                        char text[TOKEN_MAX + 1])
{
    if (!is_name(name))
        return name;
    snprintf(text, TOKEN_MAX + 1, "%0*lld%s%.*s", NUMBER_LEN, (long long)number,
             name.len == 1 ? "." : "", (int)name.len, name.ptr);
    return span_of(text);
}

static const char *print_shared(const char *name)
{
    return textf("~%s", name[0] == '.' ? name + 1 : name);
}

const char *tokens_name(const char *token)
{
    for (int i = 0; i < NAMES && known[i].number != 0; i++) {
        char text[TOKEN_MAX + 1];
        struct span made =
            tokens_make(span_of(known[i].name), known[i].number, text);
        if (strcmp(token, text) == 0)
            return known[i].name;
        token_share(text);
        if (span_is(made, token))
            return print_shared(known[i].name);
    }
    return token;
}

const char *tokens_named(int64_t number)
{
    for (int i = 0; i < NAMES && known[i].number != 0; i++)
        if (known[i].number == number)
            return known[i].name;
    return NULL;
}
