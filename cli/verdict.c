#include "verdict.h"
#include "shown.h"

#include <stdio.h>
#include <string.h>

static enum service_result judge_conflict(const char *code)
{
    if (strcmp(code, "lock_held") == 0)
        return SERVICE_HELD;
    return strcmp(code, "max_hold_reached") == 0 ? SERVICE_FINAL : SERVICE_LOST;
}

enum service_result verdict_of(const struct http_answer *answer)
{
    const char *code = http_text(answer->body, "code");
    if (answer->is_stopped)
        return SERVICE_STOPPED;
    if (answer->status >= 200 && answer->status < 300 && answer->body != NULL)
        return SERVICE_DONE;
    /* whoever said it: a gateway in front may know the identities, too */
    if (answer->is_untrusted || answer->status == HTTP_UNAUTHORIZED ||
        answer->status == HTTP_FORBIDDEN)
        return SERVICE_DENIED;
    /* what has no code was not said by redlockd, but by something before it */
    if (!*code || answer->status == HTTP_TOO_MANY || answer->status >= 500)
        return SERVICE_UNAVAILABLE;
    if (answer->status == 409)
        return judge_conflict(code);
    return strcmp(code, "lock_not_found") == 0 ? SERVICE_LOST : SERVICE_REFUSED;
}

/* What to do about a 401. */
static const char *advise(const struct credentials *credentials)
{
    if (credentials->bearer_file != NULL)
        return "is the token in the file of --auth-token-file the right one?";
    if (*credentials->bearer)
        return "is the token in REDLOCKD_AUTH_TOKEN the right one?";
    return "give a token with --auth-token-file or REDLOCKD_AUTH_TOKEN";
}

static void explain_denial(struct service *service, const char *replica,
                           const struct http_answer *answer)
{
    const char *detail = http_text(answer->body, "detail");
    bool is_unknown = answer->status == HTTP_UNAUTHORIZED;
    (void)snprintf(
        service->detail, sizeof service->detail, "%s: %s (%ld)%s%s%s%s",
        replica, is_unknown ? "not authenticated" : "not allowed",
        answer->status, *detail ? ": " : "", detail, is_unknown ? "; " : "",
        is_unknown ? advise(service->credentials) : "");
}

static void explain_holder(struct service *service, const json_t *holder)
{
    const char *owner = http_text(holder, "owner");
    (void)snprintf(service->detail, sizeof service->detail,
                   "somebody else %s%s%sholds the lock", *owner ? "(" : "",
                   owner, *owner ? ") " : "");
}

void verdict_explain(struct service *service, const char *url,
                     const struct http_answer *answer)
{
    char replica[SHOWN_URL_SIZE];
    shown_url(url, replica);
    const char *detail = http_text(answer->body, "detail");
    const json_t *holder = json_object_get(answer->body, "held_by");
    size_t size = sizeof service->detail;
    if (answer->status == 0)
        (void)snprintf(service->detail, size, "%s: %s", replica, answer->error);
    else if (answer->status == HTTP_UNAUTHORIZED ||
             answer->status == HTTP_FORBIDDEN)
        explain_denial(service, replica, answer);
    else if (holder != NULL)
        explain_holder(service, holder);
    else if (*detail)
        (void)snprintf(service->detail, size, "%s", detail);
    else
        (void)snprintf(service->detail, size,
                       "%s answered with status %ld, as no redlockd does",
                       replica, answer->status);
}
