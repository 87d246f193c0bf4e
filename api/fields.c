#include "fields.h"

#include <stdio.h>

static void add(struct fields *fields, const char *name, const char *value)
{
    if (value == NULL)
        return;
    fields->list[fields->count].name = name;
    fields->list[fields->count].value = value;
    fields->count++;
}

/*
 * A page takes everything from this server and sends nothing elsewhere; no
 * other page may show it in a frame.
 */
static void add_for_browsers(struct fields *fields)
{
    add(fields, "Content-Security-Policy",
        "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "form-action 'none'");
}

void fields_fill(struct fields *fields, const struct http_request *request,
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
    if (response->is_page)
        add_for_browsers(fields);
    add(fields, "Connection", response->close ? "close" : NULL);
}
