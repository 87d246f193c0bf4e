/* SPDX-License-Identifier: MIT */
/*
 * A text as a token. What is accepted can be made again from its parts, but
 * for the part that is reserved.
 */
#include <assert.h>
#include <string.h>

#include "../../server/engine/port/token.h"
#include "input.h"

enum { NUMBER_LEN = 16, HEX_LEN = 2 * TOKEN_RANDOM_BYTES };

static unsigned char nibble(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void read_random(const char *hex, unsigned char random[])
{
    for (int i = 0; i < TOKEN_RANDOM_BYTES; i++)
        random[i] = (unsigned char)(nibble(hex[(ptrdiff_t)2 * i]) << 4 |
                                    nibble(hex[(ptrdiff_t)2 * i + 1]));
}

/* Its bytes are those of the token, without the reserved part. */
static void make_again(struct span text, const struct token_parts *parts)
{
    unsigned char random[TOKEN_RANDOM_BYTES];
    char made[TOKEN_MAX];
    size_t begin = NUMBER_LEN + 1 + HEX_LEN;
    read_random(text.ptr + NUMBER_LEN + 1, random);
    size_t len = token_make(made, random,
                            &(struct token_parts){.number = parts->number,
                                                  .is_shared = parts->is_shared,
                                                  .owner = parts->owner});
    size_t end = parts->owner.len + (parts->owner.len > 0);
    assert(len == begin + end);
    assert(memcmp(made, text.ptr, begin) == 0);
    assert(memcmp(made + begin, text.ptr + text.len - end, end) == 0);
}

static void check_token(struct span text)
{
    struct token_parts parts;
    bool is_token = token_parse(text, &parts);
    assert(is_token == token_is_ours(text));
    if (!is_token)
        return;
    assert(text.len <= TOKEN_MAX);
    assert(parts.number > 0 && parts.number <= FENCE_MAX);
    assert(parts.owner.len == 0 || token_is_owner(parts.owner));
    assert(parts.owner.ptr >= text.ptr &&
           parts.owner.ptr + parts.owner.len == text.ptr + text.len);
    make_again(text, &parts);
}

/* Whatever a client may call itself, its token is one. */
static void check_owner(struct span owner)
{
    static const unsigned char random[TOKEN_RANDOM_BYTES] = {0xfe, 1};
    struct token_parts parts;
    char made[TOKEN_MAX];
    if (!token_is_owner(owner))
        return;
    assert(owner.len >= 1 && owner.len <= OWNER_MAX);
    size_t len =
        token_make(made, random,
                   &(struct token_parts){.number = FENCE_MAX, .owner = owner});
    bool is_token = token_parse((struct span){made, len}, &parts);
    assert(is_token && parts.number == FENCE_MAX);
    assert(parts.owner.len == owner.len &&
           memcmp(parts.owner.ptr, owner.ptr, owner.len) == 0);
}

void fuzz(struct input *input)
{
    struct span text = input_rest(input);
    check_token(text);
    check_owner(text);
}
