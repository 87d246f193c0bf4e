#include "exchanged.h"

#include <check.h>

struct exchanged exchanged;

static const char *const node_names[] = {"n1", "n2", "n3", "n4", "n5"};
static const struct config config = {
    .nodes_count = PLAY_NODES, .default_ttl_ms = 12000, .max_ttl_ms = 60000};
static struct requestid_source ids;

void exchanged_begin(void)
{
    pair_begin();
    ids = (struct requestid_source){.seed = 1};
    exchanged.service = (struct service){.engine = play.engine,
                                         .config = &config,
                                         .metrics = &play.metrics,
                                         .ids = &ids};
    memcpy(exchanged.service.node_names, node_names, sizeof node_names);
    http_response_init(&exchanged.response);
}

void exchanged_end(void)
{
    free(exchanged.response.body);
    pair_end();
}

void exchanged_on_answer(void *answered)
{
    connection_settle(answered);
}

enum exchange_step exchanged_ask(const char *const fields[][2], int count)
{
    struct head head;
    head_init(&head, 100, 0);
    for (int i = 0; i < count; i++)
        head_add(&head, span_of(fields[i][0]), span_of(fields[i][1]));
    if (pair.it->request.method == NULL)
        pair.it->request.method = "GET";
    memset(&exchanged.response, 0x55, sizeof exchanged.response);
    return exchange_begin(&exchanged.service, &pair.it->request, &head, false,
                          &exchanged.response);
}

enum exchange_step exchanged_go_on(void)
{
    free(exchanged.response.body);
    memset(&exchanged.response, 0x55, sizeof exchanged.response);
    return exchange_go_on(&exchanged.service, pair.it, play.now_us,
                          &exchanged.response);
}

void exchanged_expect(enum exchange_step step, int status)
{
    ck_assert_int_eq(step, EXCHANGE_ANSWER);
    ck_assert_int_eq(exchanged.response.status, status);
}
