#include "service.h"

#include <assert.h>

#include "../server/base/clock.h"
#include "../server/base/log.h"
#include "access/access.h"
#include "access/audit.h"
#include "http/tls.h"

static bool open_files(struct service *service, char error[SERVICE_ERROR_MAX])
{
    static_assert((int)ACCESS_ERROR_MAX <= (int)SERVICE_ERROR_MAX, "");
    const struct config *config = service->config;
    if (*config->auth_file != '\0') {
        service->access = access_new(config->auth_file, error);
        if (service->access == NULL)
            return false;
    }
    if (*config->tls_cert != '\0')
        service->tls =
            tls_new(config, service->metrics, error, SERVICE_ERROR_MAX);
    return *config->tls_cert == '\0' || service->tls != NULL;
}

bool service_check(const struct config *config, char error[SERVICE_ERROR_MAX])
{
    static struct metrics metrics; /* too large for the stack; nobody's */
    struct service service = {.config = config, .metrics = &metrics};
    bool is_good = open_files(&service, error);
    service_close(&service);
    return is_good;
}

/* For the metrics. */
static void note(const struct service *service, enum metrics_file file,
                 bool is_read)
{
    metrics_note_file(service->metrics, file, is_read, clock_wall_us());
}

static void note_tls(const struct service *service, bool is_read)
{
    note(service, FILE_CERTIFICATES, is_read);
    if (*service->config->tls_client_crl != '\0')
        note(service, FILE_CRL, is_read);
}

bool service_open(struct service *service, struct loop *loop,
                  char error[SERVICE_ERROR_MAX])
{
    const struct config *config = service->config;
    if (!open_files(service, error))
        return false;
    if (service->access != NULL)
        note(service, FILE_AUTH, true);
    if (service->tls != NULL)
        note_tls(service, true);
    if (*config->audit_log == '\0')
        return true;
    const struct audit_setup setup = {.loop = loop,
                                      .metrics = service->metrics,
                                      .access = service->access,
                                      .path = config->audit_log,
                                      .is_required = config->audit_required,
                                      .has_reads = config->audit_reads};
    service->audit = audit_open(&setup, error, SERVICE_ERROR_MAX);
    return service->audit != NULL;
}

void service_reload(struct service *service)
{
    audit_reopen(service->audit);
    if (service->tls != NULL)
        note_tls(service, tls_reload(service->tls));
    bool is_read = access_reload(service->access);
    if (service->access != NULL)
        note(service, FILE_AUTH, is_read);
    if (is_read)
        log_write(LOG_INFO, "reloaded", NULL);
}

void service_close(struct service *service)
{
    audit_free(service->audit);
    tls_free(service->tls);
    access_free(service->access);
}
