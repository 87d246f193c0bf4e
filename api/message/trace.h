/*
 * The trace that a request belongs to, from its header field traceparent (W3C
 * Trace Context, §3.2). Pure. Nothing is passed on: behind this server nobody
 * takes part in traces.
 */
#ifndef REDLOCKD_TRACE_H
#define REDLOCKD_TRACE_H

#include "../../server/base/types.h"

enum { TRACE_ID_LEN = 32, TRACE_PARENT_LEN = 16 };

/* Lower-case hex, with a NUL; both "": the request belongs to none. */
struct trace {
    char id[TRACE_ID_LEN + 1];
    char parent[TRACE_PARENT_LEN + 1]; /* what the caller calls this request */
};

/*
 * Reads the field's value, which may be anything; one that is not valid is as
 * none, as the text wants it. Of a version after 00 what 00 has is read.
 */
void trace_read(struct trace *trace, struct span value);

#endif
