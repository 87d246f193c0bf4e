#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_SIZE = 4096 }; /* of a large answer */

static void add(struct answer_fields *fields, const char *name,
                const char *value)
{
    if (value == NULL)
        return;
    fields->list[fields->count].name = name;
    fields->list[fields->count].value = value;
    fields->count++;
}

void answer_fill_fields(struct answer_fields *fields,
                        const struct http_request *request,
                        const struct http_response *response)
{
    fields->count = 0;
    add(fields, "X-Request-Id", request->id);
    add(fields, "Cache-Control", "no-store");
    add(fields, "Content-Type", response->content_type);
    /* a text is what its type says */
    add(fields, "X-Content-Type-Options",
        response->content_type != NULL ? "nosniff" : NULL);
    add(fields, "Location",
        response->location[0] != '\0' ? response->location : NULL);
    add(fields, "Allow", response->allow);
    add(fields, "WWW-Authenticate", response->challenge);
    if (response->retry_after_ms > 0) { /* whole seconds, and no sooner */
        (void)snprintf(
            fields->retry_after, sizeof fields->retry_after, "%lld",
            (long long)divide_up(response->retry_after_ms, MS_PER_S));
        add(fields, "Retry-After", fields->retry_after);
    }
    /* a page takes everything from this server and sends nothing elsewhere; no
     * other page may show it in a frame */
    if (response->is_page)
        add(fields, "Content-Security-Policy",
            "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
            "form-action 'none'");
    add(fields, "Connection", response->close ? "close" : NULL);
}

static ssize_t read_piece(void *body, uint64_t at, char *piece, size_t size)
{
    memcpy(piece, (const char *)body + at, size);
    return (ssize_t)size;
}

bool answer_queue(struct MHD_Connection *http,
                  const struct http_request *request,
                  const struct http_response *response)
{
    bool is_static = response->is_static;
    struct answer_fields fields;
    struct MHD_Response *answer;
    /*
     * A run of the library writes once to each connection. When thousands ask
     * for a large answer at once, a run that writes it whole takes seconds, in
     * which no node is read: so it is written in pieces.
     */
    if (response->body_len > PIECE_SIZE)
        answer = MHD_create_response_from_callback(
            response->body_len, PIECE_SIZE, read_piece, response->body,
            is_static ? NULL : free);
    else
        answer = MHD_create_response_from_buffer(
            response->body_len, response->body,
            is_static ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (answer == NULL) {
        if (!is_static)
            free(response->body);
        return false;
    }
    answer_fill_fields(&fields, request, response);
    bool is_good = true;
    for (int i = 0; is_good && i < fields.count; i++)
        is_good = MHD_add_response_header(answer, fields.list[i].name,
                                          fields.list[i].value) == MHD_YES;
    is_good = is_good && MHD_queue_response(http, (unsigned)response->status,
                                            answer) == MHD_YES;
    MHD_destroy_response(answer);
    return is_good;
}
