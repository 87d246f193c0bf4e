#include "trace.h"

/*
 *   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *   |  trace id                         parent id        flags
 *   version; after 00, "-" and more may follow
 */
enum {
    VERSION_LEN = 2,
    FLAGS_LEN = 2,
    ID_AT = VERSION_LEN + 1,
    PARENT_AT = ID_AT + TRACE_ID_LEN + 1,
    FLAGS_AT = PARENT_AT + TRACE_PARENT_LEN + 1,
    LEN = FLAGS_AT + FLAGS_LEN,
};

static bool is_hex(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(text[i] >= '0' && text[i] <= '9') &&
            !(text[i] >= 'a' && text[i] <= 'f'))
            return false;
    return true;
}

/* An id that is all zeros is none. */
static bool is_id(const char *text, size_t len)
{
    bool is_zero = true;
    for (size_t i = 0; i < len; i++)
        is_zero = is_zero && text[i] == '0';
    return is_hex(text, len) && !is_zero;
}

/* Version ff is none. */
static bool is_version(const char *text)
{
    return is_hex(text, VERSION_LEN) && memcmp(text, "ff", VERSION_LEN) != 0;
}

static bool is_end(struct span value)
{
    bool is_first = memcmp(value.ptr, "00", VERSION_LEN) == 0;
    return value.len == LEN || (!is_first && value.ptr[LEN] == '-');
}

static bool is_valid(struct span value)
{
    const char *text = value.ptr;
    return value.len >= LEN && is_version(text) && text[ID_AT - 1] == '-' &&
           is_id(text + ID_AT, TRACE_ID_LEN) && text[PARENT_AT - 1] == '-' &&
           is_id(text + PARENT_AT, TRACE_PARENT_LEN) &&
           text[FLAGS_AT - 1] == '-' && is_hex(text + FLAGS_AT, FLAGS_LEN) &&
           is_end(value);
}

void trace_read(struct trace *trace, struct span value)
{
    *trace = (struct trace){0};
    if (!is_valid(value))
        return;
    memcpy(trace->id, value.ptr + ID_AT, TRACE_ID_LEN);
    memcpy(trace->parent, value.ptr + PARENT_AT, TRACE_PARENT_LEN);
}
