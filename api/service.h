/*
 * What the handlers of requests share; and what its configuration names files
 * for: who may ask, certificates, the audit log.
 */
#ifndef REDLOCKD_SERVICE_H
#define REDLOCKD_SERVICE_H

#include "../server/config/config.h"
#include "../server/engine/engine.h"
#include "../server/lock/lock.h"
#include "../server/lock/metrics.h"

enum { SERVICE_ERROR_MAX = 400 };

struct access;
struct audit;
struct loop;
struct requestid_source;
struct tls;

struct service {
    /* borrowed */
    struct engine *engine;
    const struct config *config;
    struct metrics *metrics;
    struct requestid_source *ids; /* of requests that bring none */

    /* made by service_open */
    struct access *access; /* NULL: anybody may ask anything */
    struct tls *tls;       /* NULL: plain HTTP */
    struct audit *audit;   /* NULL: there is no audit log */

    bool is_draining; /* not ready, but it serves */
    bool is_drained;  /* grants no new locks either */
    bool is_stopping; /* nothing begins any more */
};

/*
 * Reads and opens the files. False: error holds one line for people; call
 * service_close all the same.
 */
bool service_open(struct service *service, struct loop *loop,
                  char error[SERVICE_ERROR_MAX]);

/* Whether service_open would succeed, apart from the audit log. */
bool service_check(const struct config *config, char error[SERVICE_ERROR_MAX]);

/* Reads them again, those that are bad not; opens the audit log anew. */
void service_reload(struct service *service);

void service_close(struct service *service);

#endif
