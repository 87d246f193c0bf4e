/*
 * What operators ask: nodes, probes, metrics.
 */
#ifndef REDLOCKD_OPS_H
#define REDLOCKD_OPS_H

#include "message/http.h"
#include "service.h"

/* GET /nodes: every node's state, and how far the quorum is. */
void ops_nodes(const struct service *service,
               const struct http_request *request,
               struct http_response *response);

/* GET /livez: the process serves. */
void ops_livez(const struct service *service,
               const struct http_request *request,
               struct http_response *response);

/*
 * GET /readyz: 200 if locks can be granted; 503 while fewer nodes vote than
 * the quorum, or draining. ?verbose lists the nodes.
 */
void ops_readyz(const struct service *service,
                const struct http_request *request,
                struct http_response *response);

/* GET /metrics, in Prometheus' text format. */
void ops_metrics(const struct service *service,
                 const struct http_request *request,
                 struct http_response *response);

#endif
