/* SPDX-License-Identifier: MIT */
#include "judged.h"

#include <check.h>

#include "ask.h"
#include "authtext.h"

struct access *judged_access;
int64_t judged_ahead_us;

void judged_use(const char *text)
{
    ask.service.access = judged_access = authtext_access(text);
}

void judged_change(const char *text)
{
    (void)authtext_write(text);
    ck_assert(access_reload(judged_access));
}

const struct refusal *judged_admit(const char *method, const char *target,
                                   const char *authorization)
{
    ask.request.method = method;
    ask.request.target = target;
    ask.request.identity[0] = '\0';
    ask.caller.refusal = (struct refusal){0};
    ask.request.head_read_us = play.now_us + judged_ahead_us;
    http_find_call(&ask.request);
    access_admit(judged_access, &ask.request,
                 authorization != NULL ? span_of(authorization)
                                       : (struct span){0});
    return &ask.caller.refusal;
}

void judged_end(void)
{
    access_end(judged_access, &ask.request.call, true);
    ask_end();
    access_free(judged_access);
    judged_access = NULL;
    authtext_remove();
}
