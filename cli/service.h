/*
 * The calls of the lock service, over all of its replicas: what a good client
 * does, see docs/clients.md.
 */
#ifndef REDLOCKCTL_SERVICE_H
#define REDLOCKCTL_SERVICE_H

#include "../api/message/id.h"
#include "../server/base/types.h"
#include "../server/lock/lock.h"
#include "credentials.h"
#include "http.h"

enum {
    SERVICE_REPLICAS_MAX = 16,
    SERVICE_DETAIL_SIZE = 512,
    SERVICE_FOREVER = -1,
    KEY_SIZE = 33, /* of an Idempotency-Key, with its NUL */
};

struct service {
    struct http *http;
    const struct wake *wake;
    struct credentials *credentials;
    bool outlasts_denials; /* a denial may pass: it is asked again */
    /* an acquire fails for long, and goes on; once for each; NULL: nobody */
    void (*on_trouble)(const char *detail);
    const char *replicas[SERVICE_REPLICAS_MAX];
    int replicas_count;
    int current;                      /* the replica to ask first */
    char detail[SERVICE_DETAIL_SIZE]; /* of the last answer, for people */
};

/* What came of a call. */
enum service_result {
    SERVICE_DONE,
    SERVICE_HELD,    /* acquire: somebody else holds the lock */
    SERVICE_LOST,    /* 404, or 409 not_owner */
    SERVICE_FINAL,   /* 409 max_hold_reached: the validity stands */
    SERVICE_REFUSED, /* another 4xx: it would not help to try again */
    SERVICE_DENIED,  /* 401 or 403 at each replica, or a wrong certificate */
    SERVICE_UNAVAILABLE, /* no replica answered, or they have no quorum */
    SERVICE_STOPPED,     /* by wake */
};

struct lock {
    char id[ID_MAX + 1];
    char token[TOKEN_MAX + 1];
    int64_t fencing_token;
    int64_t until_us; /* of clock_now_us(): ours until then */
    int64_t renew_us; /* a good moment to extend */
};

/* What to acquire. */
struct wish {
    char *const *resources;
    int resources_count;
    int64_t ttl_ms;
    int64_t wait_ms;   /* SERVICE_FOREVER: until it is ours */
    const char *owner; /* NULL: none */
};

/*
 * Each of these fills body if there is an answer, unless body is NULL; the
 * caller json_decrefs it. Without SERVICE_DONE, detail says why.
 */
enum service_result service_acquire(struct service *service,
                                    const struct wish *wish, struct lock *lock,
                                    json_t **body);

/*
 * Extends lock, whose id, token and until_us are known. Asks until give_up_us,
 * but each replica at least once.
 */
enum service_result service_extend(struct service *service, struct lock *lock,
                                   int64_t ttl_ms, int64_t give_up_us,
                                   json_t **body);

/*
 * Asks until give_up_us, but each replica at least once. is_repeated: an
 * earlier answer was lost, so that SERVICE_LOST may mean success.
 */
enum service_result service_release(struct service *service, const char *id,
                                    const char *token, int64_t give_up_us,
                                    bool *is_repeated, json_t **body);

/* Any other call, at least once at each replica. */
enum service_result service_ask(struct service *service, const char *method,
                                const char *path, json_t **body);

#endif
