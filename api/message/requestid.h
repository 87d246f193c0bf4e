/*
 * The ids of requests, which tie an answer to its log line; and the trace that
 * a request belongs to (W3C Trace Context, §3.2). Nothing of that is passed on:
 * behind this server nobody takes part in traces. Pure.
 */
#ifndef REDLOCKD_REQUESTID_H
#define REDLOCKD_REQUESTID_H

#include "../../server/base/types.h"

enum { REQUESTID_MAX = 64, REQUESTID_LEN = 16 };

/* Where own ids come from. */
struct requestid_source {
    uint64_t seed; /* another in every process */
    uint64_t made;
};

/* True for 1 to 64 of [A-Za-z0-9._-]: may be echoed and logged as it is. */
bool requestid_is_valid(struct span text);

/* An id of our own, 16 hex digits and a NUL. No source makes one twice. */
void requestid_make(struct requestid_source *source,
                    char id[REQUESTID_LEN + 1]);

enum { TRACE_ID_LEN = 32, TRACE_PARENT_LEN = 16 };

/* Lower-case hex, with a NUL; both "": the request belongs to none. */
struct trace {
    char id[TRACE_ID_LEN + 1];
    char parent[TRACE_PARENT_LEN + 1]; /* what the caller calls this request */
};

/*
 * Reads the value of the field traceparent, which may be anything; one that is
 * not valid is as none, as the text wants it. Of a version after 00 what 00 has
 * is read.
 */
void trace_read(struct trace *trace, struct span value);

#endif
