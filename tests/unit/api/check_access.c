/* SPDX-License-Identifier: MIT */
/*
 * Who may ask what; the limits are in check_access_limits.c, what changes it in
 * check_access_changes.c.
 */

#include "../../../api/access/access.h"
#include "../../../api/access/identities.h"
#include "../../../api/message/problem.h"
#include "../../lib/suite/suite.h"
#include "ask.h"
#include "authtext.h"
#include "judged.h"

#define PLAIN "Bearer realm=\"redlockd\""
#define INVALID PLAIN ", error=\"invalid_token\""

static struct login login;

static void set_up(void)
{
    ask_begin();
    memset(&login, 0, sizeof login);
    ask.request.login = &login;
}

/* ---- who asks ----------------------------------------------------------- */

static const struct {
    const char *authorization, *peer_names;
    const char *identity;  /* "": it is refused … */
    const char *challenge; /* … so */
} askers[] = {
    {"Bearer secret", NULL, "billing", NULL},
    {"bearer secret", "", "billing", NULL},
    {"BEARER   secret", NULL, "billing", NULL},
    {NULL, "cn:gate\ndns:gate", "gateway", NULL},
    {"Bearer secret", "cn:gate\ndns:gate", "billing", NULL},
    {"Bearer secret", "dns:nobody", "billing", NULL},
    {NULL, NULL, "", PLAIN},
    {NULL, "", "", PLAIN},
    {NULL, "dns:nobody", "", PLAIN},
    {NULL, "cn:gate", "", PLAIN},
    {NULL, "dns:gate\nuri:gate", "", PLAIN},
    {"", NULL, "", PLAIN},
    {"", "cn:gate\ndns:gate", "", PLAIN},
    {"Basic c2VjcmV0", "cn:gate\ndns:gate", "", PLAIN},
    {"Bearersecret", NULL, "", PLAIN},
    {"Beare", NULL, "", PLAIN},
    {"Bearer\tsecret", NULL, "", PLAIN},
    {"secret", NULL, "", PLAIN},
    {"Bearer", NULL, "", INVALID},
    {"Bearer ", NULL, "", INVALID},
    {"Bearer Secret", NULL, "", INVALID},
    {"Bearer secre", NULL, "", INVALID},
    {"Bearer secret1", NULL, "", INVALID},
    {"Bearer secret secret", NULL, "", INVALID},
    {"Bearer wrong", "cn:gate\ndns:gate", "", INVALID},
};

static void check_asker(int i, const char *before)
{
    judged_use("billing " AUTHTEXT_SECRET
               " read prefix=*\ngateway cert:dns:gate read prefix=*\n"
               "other cert:uri:gate read prefix=*\n");
    if (before != NULL)
        ck_assert_ptr_null(judged_admit("GET", "/nodes", before)->detail);
    ask.request.peer_names = askers[i].peer_names;
    const struct refusal *refusal =
        judged_admit("GET", "/nodes", askers[i].authorization);
    ck_assert_str_eq(ask.request.identity, askers[i].identity);
    ck_assert_pstr_eq(refusal->challenge, askers[i].challenge);
    if (askers[i].challenge == NULL) {
        ck_assert_ptr_null(refusal->detail);
        return;
    }
    ck_assert_ptr_nonnull(refusal->detail);
    ck_assert_int_eq(refusal->code, (int)PROBLEM_UNAUTHORIZED);
}

SUITE(access, .set_up = set_up, .tear_down = judged_end);

/* Whoever asked before on the connection. */
TEST_EACH(who_asks_is_known_or_refused, askers)
{
    check_asker(_i, NULL);
    ask.caller.has_result = false;
    access_free(judged_access);
    check_asker(_i, "Bearer secret");
}

/* ---- scopes ------------------------------------------------------------- */

enum { OPEN = SCOPES };

static const struct {
    const char *method, *target, *query; /* verbose, or a value of force */
    int scope;
} calls[] = {
    {"POST", "/locks", NULL, SCOPE_LOCK},
    {"POST", "/batch", NULL, SCOPE_LOCK},
    {"PUT", "/locks/a/extend", NULL, SCOPE_LOCK},
    {"DELETE", "/locks/a", NULL, SCOPE_LOCK},
    {"DELETE", "/locks/a", "7", SCOPE_ADMIN},
    {"DELETE", "/locks/a", "", SCOPE_ADMIN},
    {"DELETE", "/locks/~", "7", SCOPE_ADMIN},
    {"DELETE", "/locks/~", NULL, SCOPE_LOCK},
    {"GET", "/locks/~", NULL, SCOPE_READ},
    {"PUT", "/locks/a%2/extend", NULL, SCOPE_LOCK},
    {"GET", "/locks/a", NULL, SCOPE_READ},
    {"HEAD", "/locks/a", NULL, SCOPE_READ},
    {"GET", "/locks", NULL, SCOPE_READ},
    {"GET", "http://x/locks", NULL, SCOPE_READ},
    {"GET", "/nodes", NULL, SCOPE_READ},
    {"GET", "/metrics", NULL, SCOPE_METRICS},
    {"HEAD", "/metrics", NULL, SCOPE_METRICS},
    {"GET", "/livez", NULL, OPEN},
    {"GET", "/readyz", NULL, OPEN},
    {"GET", "/readyz", "verbose", SCOPE_READ},
    {"GET", "/", NULL, OPEN},
    {"GET", "/docs", NULL, OPEN},
    {"GET", "/openapi.yaml", NULL, OPEN},
    {"OPTIONS", "/locks", NULL, OPEN},
    {"OPTIONS", "*", NULL, OPEN},
    {"PATCH", "/locks", NULL, OPEN},
    {"GET", "/nope", NULL, OPEN},
};

static void expect_scope(int i, int has)
{
    const struct refusal *refusal =
        judged_admit(calls[i].method, calls[i].target, "Bearer secret");
    bool is_allowed = calls[i].scope == OPEN || calls[i].scope == has;
    ck_assert_msg((refusal->detail == NULL) == is_allowed, "%s %s with %s",
                  calls[i].method, calls[i].target, scope_names[has]);
    if (is_allowed)
        return;
    ck_assert_int_eq(refusal->code, (int)PROBLEM_FORBIDDEN);
    ck_assert_ptr_null(refusal->challenge);
    ck_assert_has(refusal->detail, scope_names[calls[i].scope]);
}

TEST_EACH(each_call_needs_its_scope, calls)
{
    const char *query = calls[_i].query;
    if (query != NULL && strcmp(query, "verbose") == 0)
        query_add(&ask.request.query, span_of(query), span_of(""));
    else if (query != NULL)
        query_add(&ask.request.query, span_of("force"), span_of(query));
    for (int has = 0; has < SCOPES; has++) {
        judged_use(
            textf("a " AUTHTEXT_SECRET " %s prefix=*\n", scope_names[has]));
        expect_scope(_i, has);
        ask.caller.has_result = false;
        access_free(judged_access);
    }
    judged_use("a " AUTHTEXT_SECRET " read prefix=*\n");
    bool is_open =
        judged_admit(calls[_i].method, calls[_i].target, NULL)->detail == NULL;
    ck_assert(is_open == (calls[_i].scope == OPEN));
}

TEST(without_a_file_anybody_may_ask)
{
    for (size_t i = 0; i < COUNT(calls); i++)
        ck_assert_ptr_null(
            judged_admit(calls[i].method, calls[i].target, "Bearer x")->detail);
    ck_assert_str_eq(ask.request.identity, "");
    ck_assert(access_reload(NULL));
    ck_assert(access_allows(NULL, &ask.request.call, span_of("a")));
    ck_assert(access_shows(NULL, &ask.request.call, span_of("a")));
    ck_assert(access_reserve(NULL, &ask.request.call, span_of("a"),
                             (struct span){0}));
}

/* ---- prefixes ----------------------------------------------------------- */

#define PREFIXED "a " AUTHTEXT_SECRET " lock,read,admin prefix=b/ prefix=bc\n"

static const struct {
    const char *target;
    bool is_inside;
} targets[] = {
    {"/locks/bc", true},
    {"/locks/bcd", true},
    {"/locks/~Yi94", true},              /* b/x */
    {"/locks/~Yi94HzM", true},           /* slot 3 of b/x */
    {"/locks/~Yi8fMw", true},            /* slot 3 of b/ */
    {"/locks/~Yh8z", false},             /* slot 3 of b */
    {"/locks/~~Yy94HzMKYy94HzQ", false}, /* two of c/x */
    {"/locks/%7EYi94", true},
    {"/locks/~Yi8uLi9h", true},  /* b/../a: a name is no path */
    {"/locks/~Yy94", false},     /* c/x */
    {"/locks/~~Yi94CmJj", true}, /* b/x, bc */
    {"/locks/~~Yi94CmM", false}, /* b/x, c */
    {"/locks/~~YQpiL3g", false}, /* a, b/x */
    {"/locks/%62%63", true},
    {"/locks/%61", false},
};

TEST_EACH(the_id_in_the_path_must_lie_inside, targets)
{
    judged_use(PREFIXED);
    const char *extend = textf("%s/extend", targets[_i].target);
    for (int i = 0; i < 4; i++) {
        if (i == 3)
            query_add(&ask.request.query, span_of("force"), span_of("1"));
        const struct refusal *refusal =
            judged_admit(i == 0   ? "GET"
                         : i == 1 ? "PUT"
                                  : "DELETE",
                         i == 1 ? extend : targets[_i].target, "Bearer secret");
        ck_assert_msg((refusal->detail == NULL) == targets[_i].is_inside, "%s",
                      targets[_i].target);
        if (!targets[_i].is_inside)
            ck_assert_int_eq(refusal->code, (int)PROBLEM_FORBIDDEN);
    }
}

static const struct {
    const char *body;
    bool is_inside;
} bodies[] = {
    {"{'resource':'b/x'}", true},         {"{'resource':'\\u0062/x'}", true},
    {"{'resource':'b\\/x'}", true},       {"{'resource':'c'}", false},
    {"{'resources':['bc','b/x']}", true}, {"{'resources':['b/x','c']}", false},
};

TEST_EACH(what_an_acquire_names_must_lie_inside, bodies)
{
    judged_use(PREFIXED);
    ck_assert_ptr_null(judged_admit("POST", "/locks", "Bearer secret")->detail);
    bool is_answered = ask_send("POST", "/locks", bodies[_i].body);
    ck_assert_msg(is_answered == !bodies[_i].is_inside, "%s", bodies[_i].body);
    ck_assert_int_eq(play_count(CALL_ACQUIRE),
                     bodies[_i].is_inside ? PLAY_NODES : 0);
    if (is_answered)
        ask_expect(403, "forbidden");
}

static const struct {
    const char *prefix;  /* asked for */
    const char *scanned; /* NULL: it is refused */
} lists[] = {
    {"", "b"},      {"b", "b"},   {"b/", "b/"}, {"b/x", "b/x"}, {"bc", "bc"},
    {"bcd", "bcd"}, {"bd", NULL}, {"a", NULL},  {"B", NULL},
};

TEST_EACH(a_list_is_narrowed, lists)
{
    struct span prefix = span_of(lists[_i].prefix);
    judged_use(PREFIXED);
    (void)judged_admit("GET", "/locks", "Bearer secret");
    bool may = access_narrow(judged_access, &ask.request.call, &prefix);
    ck_assert_msg(may == (lists[_i].scanned != NULL), "%s", lists[_i].prefix);
    if (may)
        ck_assert(span_is(prefix, lists[_i].scanned));
    else
        ck_assert_int_eq(ask.response.status, 403);
}

TEST(a_list_shows_what_lies_inside)
{
    struct span prefix = span_of("z");
    judged_use(PREFIXED "all " AUTHTEXT_OTHER " read prefix=*\n");
    (void)judged_admit("GET", "/locks", "Bearer secret");
    ck_assert(access_shows(judged_access, &ask.request.call, span_of("b/x")));
    ck_assert(!access_shows(judged_access, &ask.request.call, span_of("bd")));
    (void)judged_admit("GET", "/locks", "Bearer other");
    ck_assert(access_shows(judged_access, &ask.request.call, span_of("bd")));
    ck_assert(access_narrow(judged_access, &ask.request.call, &prefix));
    ck_assert(span_is(prefix, "z"));
}
