#include "exchanged.h"

#include <check.h>

#include "fields.h"

struct exchanged exchanged;

void exchanged_begin(void)
{
    pair_begin();
    http_response_init(&exchanged.response);
}

void exchanged_end(void)
{
    free(exchanged.response.body);
    pair_end();
}

enum exchange_step exchanged_ask(const char *fields)
{
    struct head head;
    head_init(&head, 100, 0);
    fields_add(&head, fields);
    pair.it->service = &pair.service;
    pair.it->request.call.request = &pair.it->request;
    pair.it->request.call.caller = &pair.it->caller;
    if (pair.it->request.method == NULL)
        pair.it->request.method = "GET";
    if (pair.it->request.target == NULL)
        pair.it->request.target = "/";
    free(exchanged.response.body);
    memset(&exchanged.response, 0x55, sizeof exchanged.response);
    return exchange_begin(pair.it, &head, false, &exchanged.response);
}

enum exchange_step exchanged_go_on(void)
{
    free(exchanged.response.body);
    memset(&exchanged.response, 0x55, sizeof exchanged.response);
    return exchange_go_on(pair.it, play.now_us, &exchanged.response);
}

void exchanged_expect(enum exchange_step step, int status)
{
    ck_assert_int_eq(step, EXCHANGE_ANSWER);
    ck_assert_int_eq(exchanged.response.status, status);
}
