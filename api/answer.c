#include "answer.h"

#include <stdlib.h>
#include <string.h>

#include "fields.h"

enum { PIECE_SIZE = 4096 }; /* of a large answer */

static bool add_fields(struct MHD_Response *answer,
                       const struct http_request *request,
                       const struct http_response *response)
{
    struct fields fields;
    fields_fill(&fields, request, response);
    for (int i = 0; i < fields.count; i++)
        if (MHD_add_response_header(answer, fields.list[i].name,
                                    fields.list[i].value) != MHD_YES)
            return false;
    return true;
}

static ssize_t read_piece(void *body, uint64_t at, char *piece, size_t size)
{
    memcpy(piece, (const char *)body + at, size);
    return (ssize_t)size;
}

/*
 * A run of the library writes once to each connection. When thousands ask for a
 * large answer at once, a run that writes it whole takes seconds, in which no
 * node is read: so it is written in pieces.
 */
static struct MHD_Response *make_large(const struct http_response *response)
{
    return MHD_create_response_from_callback(response->body_len, PIECE_SIZE,
                                             read_piece, response->body,
                                             response->is_static ? NULL : free);
}

static struct MHD_Response *make_small(const struct http_response *response)
{
    return MHD_create_response_from_buffer(
        response->body_len, response->body,
        response->is_static ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
}

bool answer_queue(struct MHD_Connection *http,
                  const struct http_request *request,
                  const struct http_response *response)
{
    struct MHD_Response *answer = response->body_len > PIECE_SIZE
                                      ? make_large(response)
                                      : make_small(response);
    if (answer == NULL) {
        if (!response->is_static)
            free(response->body);
        return false;
    }
    bool is_queued =
        add_fields(answer, request, response) &&
        MHD_queue_response(http, (unsigned)response->status, answer) == MHD_YES;
    MHD_destroy_response(answer);
    return is_queued;
}
