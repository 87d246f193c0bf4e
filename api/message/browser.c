#include "browser.h"

#include <arpa/inet.h>

#include "../../server/base/hosts.h"

/* host:port, [address]:port, or the same without a port. */
static struct span host_of(struct span authority)
{
    bool is_bracketed = authority.len > 0 && authority.ptr[0] == '[';
    for (size_t i = 0; i < authority.len; i++) {
        if (is_bracketed && authority.ptr[i] == ']')
            return (struct span){authority.ptr, i + 1};
        if (!is_bracketed && authority.ptr[i] == ':')
            return (struct span){authority.ptr, i};
    }
    return authority;
}

static bool is_local(struct span host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    if (host.len == 0 || host.ptr[0] == '[')
        return true; /* of IPv6: no name begins so */
    if (memchr(host.ptr, '.', host.len) == NULL)
        return true; /* a name without a dot cannot be bought */
    if (host.len >= sizeof text)
        return false;
    text[span_copy(text, host)] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1;
}

static bool is_foreign(struct span origin, struct span host,
                       const char *allowed_hosts)
{
    const char *mark = memmem(origin.ptr, origin.len, "://", 3);
    if (mark == NULL)
        return true; /* null: a page that must not say where it is from */
    const char *start = mark + 3;
    struct span authority = {start, origin.len - (size_t)(start - origin.ptr)};
    return !span_is_like(authority, host) &&
           !hosts_have(allowed_hosts, host_of(authority));
}

struct head_refusal browser_check(const struct head *head,
                                  const struct browser_rules *rules,
                                  bool is_get)
{
    struct span host = head->values[HEAD_HOST];
    struct span origin = head->values[HEAD_ORIGIN];
    struct span site = head->values[HEAD_SEC_FETCH_SITE];
    if (host.ptr == NULL)
        host = span_of(""); /* HTTP/1.0 */
    struct span name = host_of(host);
    /* a link that somebody follows opens a page here; it tells the other site
     * nothing */
    bool opens_page =
        is_get &&
        span_is_like(head->values[HEAD_SEC_FETCH_MODE], span_of("navigate")) &&
        span_is_like(head->values[HEAD_SEC_FETCH_DEST], span_of("document"));
    if (rules->is_open && !is_local(name) &&
        !hosts_have(rules->allowed_hosts, name))
        return (struct head_refusal){
            PROBLEM_HOST_NOT_ALLOWED,
            "Host is neither an IP address, localhost, a name without a dot, "
            "nor one of --allowed-hosts"};
    if ((origin.ptr != NULL &&
         is_foreign(origin, host, rules->allowed_hosts)) ||
        (span_is_like(site, span_of("cross-site")) && !opens_page))
        return (struct head_refusal){
            PROBLEM_FOREIGN_ORIGIN,
            "a web page of another origin may not ask this server; if it is "
            "the same one behind a proxy, name its host in --allowed-hosts"};
    return (struct head_refusal){0};
}
