#include "query.h"

#include "encoding.h"

const char *const query_names[QUERY_ARGUMENTS] = {
    [QUERY_VERBOSE] = "verbose", [QUERY_FORCE] = "force",
    [QUERY_PREFIX] = "prefix",   [QUERY_LIMIT] = "limit",
    [QUERY_CURSOR] = "cursor",
};

void query_add(struct query *query, struct span name, struct span value)
{
    for (int i = 0; i < QUERY_ARGUMENTS; i++) {
        if (!span_is(name, query_names[i]))
            continue;
        query->is_twice[i] = query->values[i].ptr != NULL;
        query->values[i] = value.ptr != NULL ? value : span_of("");
    }
}

const char *query_read(const struct query *query, enum query_argument argument,
                       char *out, size_t size, size_t *len)
{
    if (query->is_twice[argument])
        return "occurs twice";
    if (!percent_decode(query->values[argument], out, size, len))
        return "is too long, or not percent-encoded";
    return NULL;
}
