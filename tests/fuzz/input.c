/* SPDX-License-Identifier: MIT */
#include "input.h"

#include <assert.h>
#include <stdlib.h>

static char nothing[] = "";

bool input_has_more(const struct input *input)
{
    return input->rest.len > 0 && input->count < INPUT_PIECES_MAX;
}

static char *copy(struct input *input, struct span from, size_t room)
{
    char *piece = malloc(room);
    assert(piece != NULL && input->count < INPUT_PIECES_MAX);
    input->pieces[input->count++] = piece;
    (void)span_copy(piece, from);
    return piece;
}

/* Those behind the last piece are empty. */
static struct span take_line(struct input *input)
{
    if (!input_has_more(input))
        return (struct span){nothing, 0};
    struct span line = input->rest;
    const char *end = memchr(line.ptr, '\n', line.len);
    if (end != NULL)
        line.len = (size_t)(end - line.ptr);
    size_t taken = line.len + (end != NULL);
    input->rest.ptr += taken;
    input->rest.len -= taken;
    return line;
}

struct span input_line(struct input *input)
{
    struct span line = take_line(input);
    if (line.len == 0)
        return line;
    return (struct span){copy(input, line, line.len), line.len};
}

char *input_text(struct input *input)
{
    struct span line = take_line(input);
    if (line.len == 0)
        return nothing;
    char *text = copy(input, line, line.len + 1);
    text[line.len] = '\0';
    return text;
}

int64_t input_number(struct input *input)
{
    struct span line = take_line(input);
    bool is_negative = line.len > 0 && line.ptr[0] == '-';
    uint64_t number = 0;
    for (size_t i = is_negative; i < line.len; i++)
        number = number * 10 + (uint64_t)(unsigned char)line.ptr[i] - '0';
    return (int64_t)(is_negative ? 0 - number : number);
}

struct span input_rest(struct input *input)
{
    struct span rest = input->rest;
    input->rest.len = 0;
    if (rest.len == 0 || input->count == INPUT_PIECES_MAX)
        return (struct span){nothing, 0};
    return (struct span){copy(input, rest, rest.len), rest.len};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.rest = {(const char *)data, size}};
    fuzz(&input);
    while (input.count > 0)
        free(input.pieces[--input.count]);
    return 0;
}
