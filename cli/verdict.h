/*
 * What an answer of a replica means for a call, and how people are told.
 */
#ifndef REDLOCKCTL_VERDICT_H
#define REDLOCKCTL_VERDICT_H

#include "service.h"

enum service_result verdict_of(const struct http_answer *answer);

/* Sets service->detail, in one line, for an answer that is no success. */
void verdict_explain(struct service *service, const char *url,
                     const struct http_answer *answer);

#endif
