/* SPDX-License-Identifier: MIT */
/* The least that libmicrohttpd can do for a cycle: it answers each POST like a
 * grant and each DELETE like a release, with fields and bodies as long as those
 * of redlockd, made only once. It looks at nothing but the method.
 *
 *   floor PORT
 */
#include <err.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char granted[] =
    "{\"id\":\"bench:1234abcd:12:12345\",\"resource\":\"bench:1234abcd:12:"
    "12345\",\"token\":\"1795396072822051.94259156c773ecfa1416a6fb6326856d7c8ad"
    "251\",\"fencing_token\":1795396072822051,\"ttl_ms\":30000,\"validity_ms\":"
    "29692,\"elapsed_ms\":0,\"renew_after_ms\":10000,\"nodes\":{\"granted\":3,"
    "\"quorum\":3,\"total\":5}}\n";
static char released[] =
    "{\"id\":\"bench:1234abcd:12:12345\",\"resource\":\"bench:1234abcd:12:"
    "12345\",\"released\":true,\"nodes\":{\"released\":3,\"quorum\":3,"
    "\"total\":5}}\n";

static struct {
    struct MHD_Response *grant, *release;
} answers;

static void add(struct MHD_Response *answer, const char *name,
                const char *value)
{
    if (MHD_add_response_header(answer, name, value) != MHD_YES)
        errx(1, "floor: out of memory");
}

static struct MHD_Response *make(char *body)
{
    struct MHD_Response *answer = MHD_create_response_from_buffer(
        strlen(body), body, MHD_RESPMEM_PERSISTENT);
    if (!answer)
        errx(1, "floor: out of memory");
    add(answer, "X-Request-Id", "40df58e68a5e04dc");
    add(answer, "Cache-Control", "no-store");
    add(answer, "Content-Type", "application/json");
    return answer;
}

/* The library calls once for the head, for each part of the body, and once
 * more. */
/* NOLINTNEXTLINE(readability-function-size): the library's signature */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *size, void **request)
{
    (void)cls, (void)url, (void)version, (void)data;
    if (!*request) {
        *request = &answers; /* anything but NULL */
        return MHD_YES;
    }
    if (*size > 0) {
        *size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "POST") == 0)
        return MHD_queue_response(connection, MHD_HTTP_CREATED, answers.grant);
    return MHD_queue_response(connection, MHD_HTTP_OK, answers.release);
}

int main(int argc, char **argv)
{
    int port = argc == 2 ? atoi(argv[1]) : 0;
    if (port < 1 || port > 65535)
        errx(2, "usage: floor PORT");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    answers.grant = make(granted);
    add(answers.grant, "Location", "/locks/bench:1234abcd:12:12345");
    answers.release = make(released);
    if (!MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0,
                          NULL, NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR,
                          &address, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                          (size_t)8 * 1024, MHD_OPTION_END))
        err(1, "floor: port %d", port);
    for (;;)
        pause();
}
