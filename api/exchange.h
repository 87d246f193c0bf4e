/*
 * A request and its answer, apart from how they are read and written: what is
 * refused before a handler sees it, when to wait, when to answer, and when to
 * close the connection instead. No HTTP library here.
 */
#ifndef REDLOCKD_EXCHANGE_H
#define REDLOCKD_EXCHANGE_H

#include "http/connection.h"
#include "message/head.h"
#include "service.h"

/* What to do with the connection now. */
enum exchange_step {
    EXCHANGE_READ,   /* read the body */
    EXCHANGE_WAIT,   /* suspend it until connections.wake */
    EXCHANGE_DELAY,  /* the same, and the answer is due in a while */
    EXCHANGE_ANSWER, /* send the response, and free its body */
    EXCHANGE_CLOSE,  /* close it: the client left, or there is no memory */
};

/*
 * The head was read, nothing of the body. Fills request from the head, without
 * method and target, which are there. What can be refused already closes the
 * connection after the answer: the body that follows cannot be told from a next
 * request, or is not worth reading. Who may not ask this is refused when the
 * body was read and dropped, so that the connection can serve other requests;
 * but at once if the body is large, or waits to be asked for.
 */
enum exchange_step exchange_begin(const struct service *service,
                                  struct http_request *request,
                                  const struct head *head, bool is_http_1_0,
                                  struct http_response *response);

/* The body was read as well, or the connection was woken. */
enum exchange_step exchange_go_on(const struct service *service,
                                  struct connection *it, int64_t now_us,
                                  struct http_response *response);

#endif
