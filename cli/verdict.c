#include "verdict.h"

#include <stdio.h>
#include <string.h>

#include "shown.h"

static enum verdict judge_conflict(const char *code)
{
    if (strcmp(code, "lock_held") == 0)
        return VERDICT_HELD;
    return strcmp(code, "max_hold_reached") == 0 ? VERDICT_FINAL : VERDICT_LOST;
}

enum verdict verdict_of(const struct http_answer *answer)
{
    const char *code = http_text(answer->body, "code");
    if (answer->is_stopped)
        return VERDICT_STOPPED;
    if (answer->status >= 200 && answer->status < 300 && answer->body != NULL)
        return VERDICT_DONE;
    /* a gateway in front may check identities, too */
    if (answer->is_untrusted || answer->status == HTTP_UNAUTHORIZED ||
        answer->status == HTTP_FORBIDDEN)
        return VERDICT_DENIED;
    /* without a code, it is not from redlockd but from something in front */
    if (!*code || answer->status == HTTP_TOO_MANY || answer->status >= 500)
        return VERDICT_UNAVAILABLE;
    if (answer->status == 409)
        return judge_conflict(code);
    return strcmp(code, "lock_not_found") == 0 ? VERDICT_LOST : VERDICT_REFUSED;
}

void verdict_explain(const struct http_answer *answer, const char *url,
                     const char *advice, char detail[VERDICT_DETAIL_SIZE])
{
    const char *told = http_text(answer->body, "detail");
    const json_t *holder = json_object_get(answer->body, "held_by");
    const char *owner = http_text(holder, "owner");
    size_t size = VERDICT_DETAIL_SIZE;
    char replica[SHOWN_URL_SIZE];
    shown_url(url, replica);
    if (answer->status == 0)
        (void)snprintf(detail, size, "%s: %s", replica, answer->error);
    else if (answer->status == HTTP_UNAUTHORIZED)
        (void)snprintf(detail, size, "%s: not authenticated (%ld)%s%s; %s",
                       replica, answer->status, *told ? ": " : "", told,
                       advice);
    else if (answer->status == HTTP_FORBIDDEN)
        (void)snprintf(detail, size, "%s: not allowed (%ld)%s%s", replica,
                       answer->status, *told ? ": " : "", told);
    else if (holder != NULL)
        (void)snprintf(detail, size, "somebody else %s%s%sholds the lock",
                       *owner ? "(" : "", owner, *owner ? ") " : "");
    else if (*told)
        (void)snprintf(detail, size, "%s", told);
    else
        (void)snprintf(detail, size,
                       "%s answered with status %ld, as no redlockd does",
                       replica, answer->status);
}
