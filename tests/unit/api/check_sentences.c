/* SPDX-License-Identifier: MIT */
/*
 * What people are told: each sentence once. All other suites assert codes,
 * pointers and fields, so that a better sentence costs one row.
 */
#include "../../../api/access/identities.h"
#include "../../lib/suite/suite.h"
#include "ask.h"
#include "authtext.h"
#include "fields.h"
#include "judged.h"

#define S AUTHTEXT_SECRET
/* SHA-256 of nothing */
#define EMPTY                                                                  \
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHARED_TOKEN "1795221642000000~8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
#define ACQUIRE "POST /locks\n\n"
#define BATCH "POST /batch\n\n{'operations':["
#define END "]}"
#define UNDECODED                                                              \
    "there is no such path: an id contains no /; send a / of a resource "      \
    "as %2F, which no proxy may decode, or send the field id of a "            \
    "response"
#define IN_FRONT                                                               \
    "there is no such path; if a proxy serves redlockd under a prefix, "       \
    "the proxy must strip it; the paths are /locks, /locks/<id> and "          \
    "/locks/<id>/extend"

SUITE(sentences, .set_up = ask_begin, .tear_down = ask_end);

/* ---- what is wrong with a request --------------------------------------- */

/* Where the first error is, if any is told, and the detail. */
static const struct {
    const char *text, *sentence;
} asked[] = {
    {ACQUIRE, "body: the body is empty; send a JSON object"},
    {ACQUIRE "[]", "body: the body is an array; it must be an object"},
    {ACQUIRE "{", "body: the body is not valid JSON: the text ends too early, "
                  "at line 1, column 1"},
    {ACQUIRE "{'resource':'x','resource':'y'}",
     "body: the body is not valid JSON: a field occurs twice, at line 1, "
     "column 26"},
    {ACQUIRE "{'resource':'\xff'}",
     "body: the body is not valid JSON: the text is not valid UTF-8, at line "
     "1, column 13"},
    {ACQUIRE "{'resource':'\\u0000'}",
     "body: the body is not valid JSON: a string contains U+0000, at line 1, "
     "column 20"},
    {ACQUIRE "{} {}", "body: the body is not valid JSON: text follows the "
                      "object, at line 1, column 4"},
    {ACQUIRE "{'resource':'x','ttl_ms':1e400}",
     "body: the body is not valid JSON: a number is too large, at line 1, "
     "column 30"},
    {ACQUIRE "\x1f\x8b",
     "body: the body is compressed by gzip (1f 8b); send it unencoded"},
    {ACQUIRE "\xff\xfe", "body: the body is in UTF-16 or UTF-32; send UTF-8"},
    {ACQUIRE " \xef\xbb\xbf{}", "body: the body has a byte order mark (ef bb "
                                "bf) after its first character; send none"},
    {ACQUIRE "{'what':1}", "body/what: 2 fields are invalid, see errors"},
    {ACQUIRE "{}", "body/resource: resource, the name to lock, is missing; to "
                   "lock several, send resources instead"},
    {ACQUIRE "{'resource':1}",
     "body/resource: resource is an integer; it must be a string"},
    {ACQUIRE "{'resource':''}", "body/resource: resource must not be empty"},
    {ACQUIRE "{'resource':'\xc3\xa9\\n'}",
     "body/resource: resource must not contain control characters"},
    {ACQUIRE "{'resource':'redlockd:x'}",
     "body/resource: resource must not contain \"redlockd:\", which is "
     "reserved"},
    {ACQUIRE "{'resource':'x','resources':['y']}",
     "body/resources: resource and resources must not be sent together; send "
     "only one of them"},
    {ACQUIRE "{'resources':[]}", "body/resources: resources has 0 elements; it "
                                 "must be an array of 1 to 16 strings"},
    {ACQUIRE "{'resources':{}}", "body/resources: resources is an object; it "
                                 "must be an array of 1 to 16 strings"},
    {ACQUIRE "{'resources':[7]}",
     "body/resources/0: a resource is an integer; it must be a string"},
    {ACQUIRE "{'resources':['a','a']}",
     "body/resources/1: a resource occurs twice; send each resource once"},
    {ACQUIRE "{'resources':['a','']}",
     "body/resources/1: a resource must not be empty"},
    {ACQUIRE "{'resource':'x','ttl_ms':99}",
     "body/ttl_ms: ttl_ms is 99; it must be an integer from 100 to 60000 "
     "(milliseconds)"},
    {ACQUIRE "{'resource':'x','wait_ms':1.5}",
     "body/wait_ms: wait_ms is a number with a fraction or an exponent; it "
     "must be an integer from 0 to 45000 (milliseconds)"},
    {ACQUIRE "{'resource':'x','owner':'a+b'}",
     "body/owner: owner has 3 bytes, or a character that is not allowed; use 1 "
     "to 64 of A-Z a-z 0-9 . _ : @ / -, or leave it out"},
    {ACQUIRE "{'resource':'x','mode':'SHARED'}",
     "body/mode: mode must be \"exclusive\" or \"shared\""},
    {ACQUIRE "{'resource':'x','permits':1}",
     "body/permits: permits must be sent together with limit, the number of "
     "permits of the pool"},
    {ACQUIRE "{'resources':['x'],'limit':2}",
     "body/limit: limit must not be sent with resources; send resource "
     "instead"},
    {ACQUIRE "{'resource':'x','mode':'shared','limit':2}",
     "body/mode: mode must not be \"shared\" if limit is sent: a permit has "
     "one holder"},
    {ACQUIRE "{'resource':'x','limit':2,'permits':3}",
     "body/permits: permits is 3, but limit is 2; send at most limit"},
    {ACQUIRE "{'resource':1,'owner':1}",
     "body/resource: 2 fields are invalid, see errors"},
    {"PUT /locks/a/extend\n",
     "header/token: the lock token is missing; send the field token of the "
     "response to POST /locks, in the header X-Lock-Token or in the field "
     "token"},
    {"PUT /locks/a/extend\nX-Lock-Token: 1\n",
     "header/token: X-Lock-Token is not a valid lock token; send the field "
     "token of the response to POST /locks, unchanged"},
    {"DELETE /locks/a\n\n{'token':'1'}",
     "body/token: token is not a valid lock token; send the field token of the "
     "response to POST /locks, unchanged"},
    {"DELETE /locks/a\nX-Lock-Token: " ASK_TOKEN ".me\n\n{'token':'" ASK_TOKEN
     "'}",
     "body/token: X-Lock-Token and the field token differ; send only one of "
     "them"},
    {"POST /locks\nContent-Type: text/plain\n\n{}",
     "the body must have Content-Type: application/json; with curl, add -H "
     "'Content-Type: application/json'"},
    {"POST /locks\nIdempotency-Key: x\n\n{'resource':'a'}",
     "the header Idempotency-Key must have 16 to 64 characters of A-Z a-z 0-9 "
     "_ -; send a UUID, for example"},
    {"POST /locks\nIdempotency-Key: {6f1c27a5-b9d0-4e6e}\n\n{'resource':'a'}",
     "the header Idempotency-Key must have 16 to 64 characters of A-Z a-z 0-9 "
     "_ -, but its byte 1 is {; send a UUID alone, for example"},
    {"POST /locks\nIdempotency-Key: 0123456789 abcdef\n\n{'resource':'a'}",
     "the header Idempotency-Key must have 16 to 64 characters of A-Z a-z 0-9 "
     "_ -, but its byte 11 is 0x20; send a UUID alone, for example"},
    {"DELETE /locks/a?force=7\nX-Lock-Token: 1\n",
     "query/force: the query parameter force cannot be combined with a lock "
     "token or a body; send only one of them"},
    {"DELETE /locks/a?force=x",
     "query/force: the query parameter force is not a fencing token; send the "
     "field fencing_token of GET /locks/<id>, or all to release all readers of "
     "a shared lock"},
    {"GET /locks/a?after=%&wait_ms=1",
     "query/after: the query parameter after must be the field version of an "
     "earlier response"},
    {"GET /locks/a?after=1&wait_ms=45001",
     "query/wait_ms: the query parameter wait_ms must be an integer from 0 to "
     "45000 (milliseconds)"},
    {"PUT /locks/a/extend\n\n{'token':'" SHARED_TOKEN "','mode':'exclusive'}",
     "a shared lock cannot become an exclusive one, as two readers that both "
     "waited for that would deadlock; release it, and acquire an exclusive "
     "lock"},
    {"GET /locks/a/b", UNDECODED},
    {"POST /api/locks", IN_FRONT},
    {"PUT /locks/a/b/extend", UNDECODED},
    {"POST //locks", IN_FRONT},
    {"POST /locks/locks", "this path supports only GET, HEAD, DELETE, OPTIONS; "
                          "to acquire a lock, send POST /locks"},
    {"GET /lock", "there is no such path; the paths are /, /locks, "
                  "/locks/<id>, /locks/<id>/extend, /batch, /nodes, /livez, "
                  "/readyz, /metrics, /openapi.yaml and /docs"},
    {"PUT /locks", "this path supports only GET, HEAD, POST, OPTIONS"},
    {"POST /livez", "this path supports only GET, HEAD, OPTIONS; to acquire a "
                    "lock, send POST /locks"},
    {"GET /locks/~~",
     "the path names no lock: it must contain a percent-encoded resource, or "
     "the field id of a response"},
    {"GET /locks?page_size=0",
     "query/page_size: the query parameter page_size must be from 1 to 1000"},
    {"GET /locks?prefix=%zz", "query/prefix: the query parameter prefix is too "
                              "long, or not percent-encoded"},
    {"GET /locks?prefix=%ff",
     "query/prefix: the query parameter prefix must be valid UTF-8"},
    {"GET /locks?cursor=x",
     "query/cursor: the query parameter cursor is not valid; send the field "
     "next_cursor of the previous page, unchanged"},
    {"GET /locks?page_size=1&page_size=1",
     "query/page_size: the query parameter page_size occurs twice"},
    {"GET /pools/~~YQpi?limit=2", "the id in the path must name a pool: one "
                                  "resource of at most 251 characters"},
    {"POST /batch\n\n{}",
     "body/operations: operations is missing; send an array of 1 to 100 "
     "objects, each with the field operation"},
    {BATCH END,
     "body/operations: operations is empty; it must have 1 to 100 objects"},
    {"POST /batch\n\n{'operations':{}}",
     "body/operations: operations is an object; it must be an array of 1 to "
     "100 objects"},
    {BATCH "7" END,
     "body/operations/0: an operation is an integer; it must be an object"},
    {BATCH "{}" END, "body/operations/0/operation: operation is missing; send "
                     "acquire, extend or release"},
    {BATCH "{'operation':'inspect'}" END,
     "body/operations/0/operation: operation must be \"acquire\", \"extend\" "
     "or \"release\""},
    {BATCH "{'operation':'acquire','resource':'a','wait_ms':0}" END,
     "body/operations/0/wait_ms: an acquire in a batch does not wait; leave "
     "wait_ms out, or send the acquire alone, to POST /locks"},
    {BATCH "{'operation':'acquire','resource':'a','token':'t'}" END,
     "body/operations/0/token: the field token is unknown here; the fields are "
     "operation, resource, resources, ttl_ms, owner, mode, limit, permits and "
     "idempotency_key"},
    {BATCH "{'operation':'acquire','resource':'a','idempotency_key':\"x\"}" END,
     "body/operations/0/idempotency_key: idempotency_key must have 16 to 64 "
     "characters of A-Z a-z 0-9 _ -; send a UUID, for example"},
    {BATCH "{'operation':'extend','token':'" ASK_TOKEN "'}" END,
     "body/operations/0/id: id is missing; send the field id of the response "
     "to POST /locks, unchanged"},
    {BATCH "{'operation':'extend','id':'~~','token':'" ASK_TOKEN "'}" END,
     "body/operations/0/id: id names no lock; send the field id of the "
     "response to POST /locks, unchanged"},
    {BATCH "{'operation':'release','id':'a'}" END,
     "body/operations/0/token: token is missing; send the field token of the "
     "response to POST /locks, unchanged"},
    {BATCH "{'operation':'release','id':'a','token':'1'}" END,
     "body/operations/0/token: token is not a valid lock token; send the field "
     "token of the response to POST /locks, unchanged"},
    {BATCH "{'operation':'acquire','resource':'a'},{'operation':\"acquire\","
           "\"resource\":\"a\"}" END,
     "body/operations/1: this operation and operations/0 are on the same lock; "
     "send one of them in another request"},
    {"POST /batch\nX-Lock-Token: 1\n\n{}",
     "header/X-Lock-Token: a batch takes no header X-Lock-Token; send the "
     "field token in each operation"},
    {"POST /batch\nIdempotency-Key: 1\n\n{}",
     "header/Idempotency-Key: a batch takes no header Idempotency-Key; send "
     "the field idempotency_key in each operation"},
};

TEST_EACH(what_is_wrong_with_a_request_is_told, asked)
{
    ck_assert(ask_http(asked[_i].text));
    bool is_item = ask_member("detail") == NULL;
    const char *problem = is_item ? "results.0.problem." : "";
    const char *told = ask_text(textf("%sdetail", problem));
    if (ask_member(textf("%serrors", problem)) != NULL)
        told = textf("%s%s: %s", ask_text(textf("%serrors.0.in", problem)),
                     ask_text(textf("%serrors.0.pointer", problem)), told);
    ck_assert_str_eq(told, asked[_i].sentence);
    ck_assert_int_eq(play.sent_count, 0);
    ck_assert_ptr_null(ask.request.batch);
}

static const struct {
    const char *fields, *sentence;
} heads[] = {
    {"Host: x\nHost: y", "the header field Host occurs twice"},
    {"Host: x\n: 2", "a header field's name is empty, or contains a character "
                     "that is not allowed"},
    {"Host: x\nX: a\x01",
     "a header field's value contains a control character; remove it"},
    {"Host: x y", "the header field Host is not a valid host"},
    {"Host: x\nTransfer-Encoding: chunked\nContent-Length: 2",
     "Content-Length and Transfer-Encoding must not be sent together"},
    {"Host: x\nTransfer-Encoding: gzip",
     "the only supported Transfer-Encoding is chunked"},
    {"", "the header field Host is missing"},
    {"Host: x\nExpect: tea", "the only supported expectation is 100-continue"},
    {"Host: x\nContent-Length: 2\nContent-Encoding: gzip",
     "Content-Encoding is not supported; send the body unencoded"},
};

TEST_EACH(what_is_wrong_with_a_head_is_told, heads)
{
    struct head head;
    head_init(&head, 0, 0);
    fields_add(&head, heads[_i].fields);
    ck_assert_str_eq(head_check(&head, false).reason, heads[_i].sentence);
}

/* ---- what came of a call ------------------------------------------------ */

static const struct {
    int call, ballot;
    const char *sentence;
} voted[] = {
    {LOCK_ACQUIRE, UNFIT(READ_ONLY),
     "3 of 5 nodes did not vote, 3 votes are needed; nothing was granted"},
    {LOCK_EXTEND, UNFIT(READ_ONLY),
     "3 of 5 nodes did not vote, 3 votes are needed; the outcome is unknown, "
     "but the previous validity still holds"},
    {LOCK_RELEASE, UNFIT(READ_ONLY),
     "3 of 5 nodes did not vote, 3 votes are needed; the outcome is unknown: "
     "treat the lock as released"},
    {LOCK_INSPECT, UNFIT(READ_ONLY),
     "3 of 5 nodes did not vote, 3 votes are needed"},
    {LOCK_FORCE, UNFIT(READ_ONLY),
     "3 of 5 nodes did not vote, 3 votes are needed; the outcome is unknown: "
     "send the request again"},
    {LOCK_ACQUIRE, UNFIT(OUT_OF_MEMORY),
     "3 of 5 nodes did not vote, 3 votes are needed; nothing was granted; out "
     "of memory for new locks (OOM) on a, b, c: raise maxmemory, or free "
     "memory "
     "there"},
    {LOCK_ACQUIRE, VOTE_KEY_REFUSED,
     "the nodes do not allow redlockd's user to access this resource's key; "
     "add a key pattern (ACL SETUSER … ~…) that covers --key-prefix and the "
     "resource, or choose another resource"},
    {LOCK_ACQUIRE, VOTE_HELD, "somebody else holds this lock"},
    {LOCK_RELEASE, VOTE_FREE,
     "there is no such lock: it expired, was released or was never held"},
    {LOCK_RELEASE, VOTE_HELD,
     "the grant of this lock token has expired or was released; the lock is "
     "held with another lock token now"},
    {LOCK_FORCE, VOTE_HELD,
     "the lock has another fencing token, or is held by another library and "
     "has none; see GET /locks/<id> for the current one"},
};

TEST_EACH(what_the_nodes_did_not_do_is_told, voted)
{
    ask_call_and_vote(voted[_i].call, voted[_i].ballot);
    ck_assert_str_eq(ask_text("detail"), voted[_i].sentence);
}

/* ---- who may not ask ---------------------------------------------------- */

static const struct {
    const char *text, *sentence;
} admitted[] = {
    {"GET /nodes", "send an access token, as in Authorization: Bearer <token>"},
    {"GET /nodes\nAuthorization: Basic x",
     "the only supported authorization is Authorization: Bearer <token>"},
    {"GET /nodes\nAuthorization: Bearer x",
     "no identity in this server's auth file has this access token; send "
     "another one, or add it there"},
    {"GET /locks/b\nAuthorization: Bearer secret",
     "this identity may not use this resource; it needs a prefix= in the auth "
     "file that covers it"},
    {"GET /metrics\nAuthorization: Bearer secret",
     "this identity lacks the scope metrics, which /metrics needs"},
    {"DELETE /locks/a?force=7\nAuthorization: Bearer secret",
     "this identity lacks the scope admin, which a release by force needs"},
    {"DELETE /locks/b\nAuthorization: Bearer secret",
     "this identity lacks the scope lock, which acquire, extend and release "
     "need"},
    {"GET /metrics\nAuthorization: Bearer other",
     "this identity has expired: the time of expires= in the auth file has "
     "passed"},
};

GROUP(refusals, .set_up = ask_begin, .tear_down = judged_end);

TEST_EACH(why_somebody_may_not_ask_is_told, admitted)
{
    judged_use("a " S " read prefix=a\nb " AUTHTEXT_OTHER
               " metrics expires=2020-01-01T00:00:00Z\n");
    ask_read(admitted[_i].text);
    ck_assert_str_eq(
        judged_admit(ask.request.method, ask.request.target, ask.authorization)
            ->detail,
        admitted[_i].sentence);
}

static const struct {
    const char *text, *sentence;
} lines[] = {
    {"a b lock\n", "1: the second word must be sha256: and 64 hex digits, the "
                   "SHA-256 of the access token, or cert:, dns:, uri:, email: "
                   "or cn:, and the name in a client certificate"},
    {"a/b " S " lock\n",
     "1: the name must have 1 to 64 characters of A-Z a-z 0-9 . _ -"},
    {"a " EMPTY " lock\n",
     "1: this is the SHA-256 of an empty access token; set the variable that "
     "should hold the token, and hash it again"},
    {"a cert:x lock\n",
     "1: cert: must be followed by the kind of the name and the name: "
     "cert:dns:NAME, cert:uri:NAME, cert:email:NAME or cert:cn:NAME"},
    {"a cert:dns: lock\n", "1: cert: and the kind must be followed by the name "
                           "in the certificate, with '%' as %25"},
    {"a " S " Lock\n",
     "1: the third word must be the scopes: lock, read, metrics or admin, each "
     "at most once, separated by commas without blanks"},
    {"a " S " lock color=blue\n", "1: only prefix=, rate=, burst=, locks= and "
                                  "expires= may follow the scopes"},
    {"a " S " lock prefix=\n",
     "1: prefix= must be followed by a prefix of resources, with spaces as %20 "
     "and '%' as %25, or by * for all resources"},
    {"a " S " lock\n", "1: prefix= is missing; give the prefixes of its "
                       "resources, or prefix=* for all"},
    {"a " S " lock prefix=* prefix=a\n",
     "1: prefix=* allows all resources, so it must be the only prefix; a name "
     "that begins with '*' is written %2A"},
    {"a " S " lock rate=0\n", "1: rate= must occur once, with the number of "
                              "requests a second: 1 to 1000000"},
    {"a " S " lock burst=0\n", "1: burst= must occur once, with the number of "
                               "requests at once: 1 to 1000000"},
    {"a " S " lock locks=0\n", "1: locks= must occur once, with the number of "
                               "locks held at once: 1 to 1000000"},
    {"a " S " lock expires=\n", "1: expires= must occur once, with a time in "
                                "UTC, as in 2027-01-31T18:00:00Z"},
    {"a " S " lock prefix=* burst=1\n", "1: burst= needs rate= as well"},
    {"a " S " lock",
     "1: the last line does not end with LF; the file may be incomplete"},
    {"a\r\n", "1: the line ends with CR LF; it must end with LF alone"},
    {"\v\n", "1: the line contains a control character"},
    {"\xef\xbb\xbf\n",
     "1: the file begins with a byte order mark; save it as UTF-8 without one"},
    {"", "it has no identity, so every request would be refused; add one "
         "(without --auth-file, anybody may do anything)"},
    {"a " S " metrics\nb " S " metrics\n",
     "2: the access token is the same as on line 1; each identity needs its "
     "own"},
};

TEST_EACH(what_is_wrong_with_an_auth_file_is_told, lines)
{
    char error[IDENTITIES_ERROR_MAX];
    ck_assert_ptr_null(identities_parse(span_of(lines[_i].text), error));
    ck_assert_str_eq(error, lines[_i].sentence);
}
