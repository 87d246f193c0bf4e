/*
 * The environment: which variables are ours. Kubernetes gives each pod a
 * family of variables for every service beside it.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "words.h"

static struct config config;
static char error[CONFIG_ERROR_MAX];

/* What Kubernetes sets for a service: %s is its name in capitals. */
static const char *const family[] = {
    "%s_SERVICE_HOST=10.0.0.1",       "%s_SERVICE_PORT=8080",
    "%s_SERVICE_PORT_HTTP=8080",      "%s_SERVICE_PORT_HTTP_METRICS=9090",
    "%s_PORT=tcp://10.0.0.1:8080",    "%s_PORT_8080_TCP=tcp://10.0.0.1:8080",
    "%s_PORT_8080_TCP_PROTO=tcp",     "%s_PORT_8080_TCP_PORT=8080",
    "%s_PORT_8080_TCP_ADDR=10.0.0.1", "%s_PORT_53_UDP=udp://[fd00::1]:53",
    "%s_PORT_53_UDP_ADDR=fd00::1",    "%s_PORT_9_SCTP_PROTO=sctp",
};

enum { FAMILY = sizeof family / sizeof *family };

/* The last ones look like options: --nodes, --listen, --reuse-port. */
static const char *const services[] = {
    "REDLOCKD",        "REDLOCKD_METRICS", "REDLOCKD_HEADLESS_2",
    "REDLOCKD_NODES",  "REDLOCKD_LISTEN",  "REDLOCKD_REUSE",
    "REDLOCKD_SERVICE"};

static void write_family(const char *service, char *out, size_t size)
{
    size_t len = 0;

    for (size_t i = 0; i < FAMILY; i++) {
        char one[128];
        snprintf(one, sizeof one, family[i], service);
        len += (size_t)snprintf(out + len, size - len, "%s ", one);
    }
    ck_assert_uint_lt(len, size);
}

SUITE(environment);

TEST_EACH(variables_of_a_kubernetes_service_are_not_ours, services)
{
    char env[3000];

    write_family(services[_i], env, sizeof env);
    ck_assert_msg(words_load(&config, env, "--nodes a", error), "%s", error);
    ck_assert(!config.reuse_port);
    ck_assert_int_eq(config.nodes_count, 1);
    ck_assert_int_eq(config.listen_port, 8080);
    strcat(env, "REDLOCKD_REUSE_PORT=on REDLOCKD_LISTEN=[::]:81");
    ck_assert_msg(
        words_load(&config, env, "--nodes a --allow-anonymous", error), "%s",
        error);
    ck_assert_int_eq(config.listen_port, 81);
    ck_assert(config.reuse_port);
}

/* A user who gives a port, but no service, meant --listen. */
static const char *const mistakes[] = {
    "REDLOCKD_PORT=8080",
    "REDLOCKD_PORTS=tcp://10.0.0.1:8080",
    "REDLOCKD_LISTEN_PORT=8080",
    "REDLOCKD_REUSE_PORTS=on",
    "REDLOCKD_PORT_HTTP=8080",
    "REDLOCKD_PORT_8080=tcp://10.0.0.1:8080",
    "REDLOCKD_PORT_8080_TCPX=8080",
    "REDLOCKD_METRICS_SERVICE=10.0.0.1",
    "REDLOCKD_METRICS_SERVICE_HOSTS=10.0.0.1",
    "REDLOCKD_METRICS=1",
    "REDLOCKD_XSERVICE_HOST=10.0.0.1",
    "REDLOCKD_=1",
    "REDLOCKD_NODES_FILES=/x",
    "REDLOCKD_LISTEN_FILE=/x",
    "REDLOCKD_MAX_TTL=9000",
    "REDLOCKD_VERSION=1",
};

TEST_EACH(variable_that_is_nearly_one_is_a_mistake, mistakes)
{
    char name[64];

    snprintf(name, sizeof name, "%.*s:", (int)strcspn(mistakes[_i], "="),
             mistakes[_i]);
    ck_assert(!words_load(&config, mistakes[_i], "--nodes a", error));
    ck_assert_msg(strstr(error, name), "%s", error);
    ck_assert_ptr_nonnull(strstr(error, "no such variable"));
}

TEST(variables_of_redlockctl_are_let_pass)
{
    static const char env[] =
        "REDLOCKD_URL=http://a:8080 REDLOCKD_RESOURCE=order:42 "
        "REDLOCKD_TOKEN=1.a REDLOCKD_FENCING_TOKEN=1 "
        "REDLOCKD_AUTH_TOKEN=a REDLOCKD_AUTH_TOKEN_FILE=b REDLOCKD_CACERT=c "
        "REDLOCKD_CERT=d REDLOCKD_KEY=e";

    ck_assert_msg(words_load(&config, env, "--nodes a", error), "%s", error);
}
