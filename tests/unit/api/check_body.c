/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../../../api/message/body.h"
#include "../../../api/message/http.h"
#include "../../../api/message/jsonload.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "quoted.h"

enum { MAX_TTL_MS = 60000 };

static struct body body;
static struct faults errors;

static void tear_down(void)
{
    body_fini(&body);
}

static bool parse(const char *text, enum lock_call call)
{
    body_fini(&body); /* of the one before */
    return body_read(&body, span_of(quoted(text)), call, MAX_TTL_MS, &errors);
}

SUITE(body, .tear_down = tear_down);

/* A member is told if it is not as if it had been left out. */
static const char *told(void)
{
    const struct span texts[] = {body.resource, body.owner, body.token};
    static const char *const names[] = {"", " owner=", " token="};
    const char *text = body.has_resources ? "several " : "";
    for (size_t i = 0; i < COUNT(texts); i++)
        if (texts[i].ptr != NULL)
            text = textf("%s%s%.*s", text, names[i], (int)texts[i].len,
                         texts[i].ptr);
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"ttl", body.ttl_ms},
                   {"wait", body.wait_ms},
                   {"limit", body.limit},
                   {"permits", body.limit > 0 ? body.permits : 0}};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i].value != 0)
            text =
                textf("%s %s=%d", text, numbers[i].name, (int)numbers[i].value);
    if (body.has_mode)
        text = textf("%s %s", text, body.is_shared ? "shared" : "exclusive");
    return text;
}

static const struct {
    const char *body;
    enum lock_call call;
    const char *read;
} good[] = {
    {" {'resource':'x'}\r\n", LOCK_ACQUIRE, "x"},
    {"\xef\xbb\xbf{'resource':'a'}", LOCK_ACQUIRE, "a"},
    {"{'resource':'caf\\u00e9','ttl_ms':1000,'wait_ms':7,'owner':'a@b:/-._'}",
     LOCK_ACQUIRE, "caf\xc3\xa9 owner=a@b:/-._ ttl=1000 wait=7"},
    {"{'resource':'x','ttl_ms':100,'wait_ms':0}", LOCK_ACQUIRE, "x ttl=100"},
    {"{'resource':'x','ttl_ms':60000,'wait_ms':45000}", LOCK_ACQUIRE,
     "x ttl=60000 wait=45000"},
    {"{}", LOCK_EXTEND, ""},
    {"{'token':'t'}", LOCK_RELEASE, " token=t"},
    {"{'resource':'x','mode':'shared'}", LOCK_ACQUIRE, "x shared"},
    {"{'mode':'exclusive'}", LOCK_EXTEND, " exclusive"},
    {"{'resource':'x#','limit':1000}", LOCK_ACQUIRE, "x# limit=1000 permits=1"},
    {"{'permits':16,'limit':16,'resource':'x'}", LOCK_ACQUIRE,
     "x limit=16 permits=16"},
    /* several are sorted and joined */
    {"{'resources':['a']}", LOCK_ACQUIRE, "several a"},
    {"{'resources':['a','a/b','\\u00e9']}", LOCK_ACQUIRE,
     "several a\na/b\n\xc3\xa9"},
    {"{'resources':['\\u00e9','a/b','a']}", LOCK_ACQUIRE,
     "several a\na/b\n\xc3\xa9"},
    {"{'resources':['a/b','a','\\u00e9']}", LOCK_ACQUIRE,
     "several a\na/b\n\xc3\xa9"},
    /* as clients do whose types have a place for each member */
    {"{'resource':'x','resources':null,'ttl_ms':null,'wait_ms':null,'owner':"
     "null,'mode':null,'limit':null,'permits':null}",
     LOCK_ACQUIRE, "x"},
    {"{'resources':[],'slots':[],'resource':'x'}", LOCK_ACQUIRE, "x"},
    {"{'resources':['x'],'resource':null}", LOCK_ACQUIRE, "several x"},
    {"{'token':null,'ttl_ms':null,'mode':null}", LOCK_EXTEND, ""},
    {"{'token':null}", LOCK_RELEASE, ""},
    {"{'resources':[],'slots':[]}", LOCK_EXTEND, ""},
    {"{'resources':[],'slots':[]}", LOCK_RELEASE, ""},
    {"null", LOCK_EXTEND, ""},
    {" null\n", LOCK_RELEASE, ""},
};

TEST_EACH(what_is_good_is_read, good)
{
    ck_assert_msg(parse(good[_i].body, good[_i].call), "%s", good[_i].body);
    ck_assert_str_eq(told(), good[_i].read);
    ck_assert(body.has_resource !=
              (body.has_resources || good[_i].call != LOCK_ACQUIRE));
}

#define MARKED "byte order mark"
#define WIDE "UTF-16"

static const struct {
    struct span text;
    const char *kind; /* which is told */
} no_json[] = {
    /* with and without a byte order mark, the lower byte first and last */
    {{"\xff\xfe{\0}\0", 6}, WIDE},
    {{"\xfe\xff\0{\0}", 6}, WIDE},
    {{"{\0}\0", 4}, WIDE},
    {{"\0{\0}", 4}, WIDE},
    {{"\0\0\0{\0\0\0}", 8}, WIDE},
    {{"{\0\0\0}\0\0\0", 8}, WIDE},
    {{"\x1f\x8b\x08\0\0\0\0\0", 8}, "gzip (1f 8b)"},
    {{"\x1f\x8b\x08\x08xyzw", 8}, "gzip (1f 8b)"},
    {{"\x1f\x8b", 2}, "gzip (1f 8b)"},
    {{"\x78\x9c\xab\x56", 4}, "zlib (78 9c)"},
    {{"\x78\x01\0\0", 4}, "zlib (78 01)"},
    {{"\x78\xda\xab\x56", 4}, "zlib (78 da)"},
    {{"\x28\xb5\x2f\xfd\x04\0", 6}, "zstd (28 b5)"},
    {{"\xef\xbb\xbf\xef\xbb\xbf{'resource':'a'}", 22}, MARKED},
    {{"\xef\xbb\xbf \n\xef\xbb\xbf{'resource':'a'}", 24}, MARKED},
    {{" \xef\xbb\xbf{'resource':'a'}", 20}, MARKED},
    {{"\xef\xbb\xbf\xef\xbb\xbf", 6}, MARKED},
};

TEST_EACH(what_a_body_is_instead_of_json_is_named, no_json)
{
    ck_assert(
        !body_read(&body, no_json[_i].text, LOCK_ACQUIRE, MAX_TTL_MS, &errors));
    ck_assert_int_eq(errors.count, 1);
    ck_assert_has(errors.list[0].detail, no_json[_i].kind);
}

/* More of it is in check_sentences.c, as of batches. */
static const struct {
    const char *body;
    enum lock_call call;
    const char *pointer;
} bad[] = {
    {" ", LOCK_ACQUIRE, ""},
    {"1", LOCK_ACQUIRE, ""},
    {"null", LOCK_ACQUIRE, "/resource"},
    {"{'resource':null}", LOCK_ACQUIRE, "/resource"},
    {"{'resource':'\\ud800'}", LOCK_ACQUIRE, ""},
    {"{'resource':'x','ttl_ms':9223372036854775808}", LOCK_ACQUIRE, ""},
    {"{'resource':'x',}", LOCK_ACQUIRE, ""},
    {"{resource:'x'}", LOCK_ACQUIRE, ""},
    {"{'resource':'x','TTL_MS':1000}", LOCK_ACQUIRE, "/TTL_MS"},
    {"{'resource':'x','ttl_ms':1000.0}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{'resource':'x','owner':'caf\xc3\xa9'}", LOCK_ACQUIRE, "/owner"},
    {"{'resource':'x','ttl_ms':60001}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{'resource':'x','ttl_ms':-9223372036854775808}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{'resource':'x','ttl_ms':1e3}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{'resource':'x','ttl_ms':true}", LOCK_ACQUIRE, "/ttl_ms"},
    {"{'resource':'x','owner':'a b'}", LOCK_ACQUIRE, "/owner"},
    {"{'resource':'x','owner':''}", LOCK_ACQUIRE, "/owner"},
    {"{'resource':'x','owner':{}}", LOCK_ACQUIRE, "/owner"},
    {"{'resource':'x','wait_ms':-1}", LOCK_ACQUIRE, "/wait_ms"},
    {"{'resource':'x','wait_ms':45001}", LOCK_ACQUIRE, "/wait_ms"},
    {"{'resource':'x','wait_ms':'1'}", LOCK_ACQUIRE, "/wait_ms"},
    {"{'token':'t','wait_ms':1}", LOCK_EXTEND, "/wait_ms"},
    {"{'token':'t','wait_ms':1}", LOCK_RELEASE, "/wait_ms"},
    {"{'resources':'x'}", LOCK_ACQUIRE, "/resources"},
    {"{'resources':null}", LOCK_ACQUIRE, "/resource"},
    {"{'resources':['a','b','c','d','e','f','g','h','i','j','k','l','m','n','o'"
     ",'p','q']}",
     LOCK_ACQUIRE, "/resources"},
    {"{'resources':['a',['b']]}", LOCK_ACQUIRE, "/resources/1"},
    {"{'resources':['a','b','c\\n']}", LOCK_ACQUIRE, "/resources/2"},
    {"{'resources':['']}", LOCK_ACQUIRE, "/resources/0"},
    {"{'resources':['a','redlockd:x']}", LOCK_ACQUIRE, "/resources/1"},
    {"{'resources':['d','a','b','a']}", LOCK_ACQUIRE, "/resources/3"},
    {"{'token':'t','resources':['a']}", LOCK_EXTEND, "/resources"},
    {"{'token':'t','resources':['a']}", LOCK_RELEASE, "/resources"},
    {"{'resource':'x','token':'t'}", LOCK_ACQUIRE, "/token"},
    {"{'resource':'x','a/b~c':1}", LOCK_ACQUIRE, "/a~1b~0c"},
    {"{'resource':'x'}", LOCK_EXTEND, "/resource"},
    {"{'token':5}", LOCK_EXTEND, "/token"},
    {"{'ttl_ms':1}", LOCK_EXTEND, "/ttl_ms"},
    {"{'ttl_ms':1000}", LOCK_RELEASE, "/ttl_ms"},
    {"{'resource':'x','limit':0}", LOCK_ACQUIRE, "/limit"},
    {"{'resource':'x','limit':1001}", LOCK_ACQUIRE, "/limit"},
    {"{'resource':'x','limit':'1'}", LOCK_ACQUIRE, "/limit"},
    {"{'limit':3}", LOCK_ACQUIRE, "/resource"},
    {"{'resource':'x','mode':1}", LOCK_ACQUIRE, "/mode"},
    {"\xef\xbb\xbf", LOCK_ACQUIRE, ""},
    {"{'resource':'a'}\xef\xbb\xbf", LOCK_ACQUIRE, ""},
    {"{'resource':'x','limit':20,'permits':17}", LOCK_ACQUIRE, "/permits"},
    {"{'resource':'x','limit':20,'permits':0}", LOCK_ACQUIRE, "/permits"},
};

TEST_EACH(what_is_wrong_is_pointed_at, bad)
{
    ck_assert_msg(!parse(bad[_i].body, bad[_i].call), "%s", bad[_i].body);
    ck_assert_int_eq(errors.count, 1);
    ck_assert_str_eq(errors.list[0].pointer, bad[_i].pointer);
    ck_assert_uint_gt(strlen(errors.list[0].detail), 10);
}

/* ---- several resources -------------------------------------------------- */

/* So many names of so many bytes each, all distinct. */
static const char *list(int count, int bytes)
{
    static char text[HTTP_BODY_MAX];
    int len = sprintf(text, "{'resources':[");
    for (int i = 0; i < count; i++)
        len += sprintf(text + len, "%s'%02d%0*d'", i > 0 ? "," : "", i,
                       bytes - 2, 0);
    sprintf(text + len, "]}");
    return text;
}

TEST(all_resources_have_at_most_4096_bytes)
{
    static char text[HTTP_BODY_MAX];
    for (int extra = 0; extra <= 1; extra++) {
        strcpy(text, list(NAMES_MAX, 255));
        /* they have 4095 with what stands between them: é for a 0 of the last
         * is the 4096th, and one more in front of it too many */
        char *last = strrchr(text, '\'') - 1;
        strcpy(last, "\xc3\xa9']}");
        char *first = strstr(text, "000000");
        if (extra > 0) {
            memmove(first + 2, first + 1, strlen(first + 1) + 1);
            /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no end */
            memcpy(first, "\xc3\xa9", 2);
        }
        ck_assert_int_eq(parse(text, LOCK_ACQUIRE), extra == 0);
        if (extra == 0)
            ck_assert_uint_eq(body.resource.len, NAMES_LEN_MAX);
        else
            ck_assert_str_eq(errors.list[0].pointer, "/resources");
    }
}

TEST(each_wrong_resource_is_told)
{
    ck_assert(!parse("{'resources':['a',2,'','b','a','b']}", LOCK_ACQUIRE));
    static const char *const pointers[] = {"/resources/1", "/resources/2",
                                           "/resources/4", "/resources/5"};
    ck_assert_int_eq(errors.count, (int)COUNT(pointers));
    for (size_t i = 0; i < COUNT(pointers); i++)
        ck_assert_str_eq(errors.list[i].pointer, pointers[i]);
    ck_assert(!parse(list(NAMES_MAX, 256), LOCK_ACQUIRE));
    ck_assert_int_eq(errors.count, FAULTS_MAX);
}

/* ---- all ---------------------------------------------------------------- */

TEST(all_errors_are_told_at_once)
{
    ck_assert(!parse("{'ttl_ms':0,'owner':1,'what':2}", LOCK_ACQUIRE));
    ck_assert_int_eq(errors.count, 4);
    ck_assert_str_eq(errors.list[0].pointer, "/ttl_ms");
    ck_assert_str_eq(errors.list[3].pointer, "/resource");
}

/* The list is made of the same table that body_member reads. */
TEST_RANGE(unknown_members_are_told_which_are_known, 0, LOCK_INSPECT)
{
    const char *name;
    ck_assert(!parse("{'what':1}", (enum lock_call)_i));
    for (int n = 0; (name = body_member((enum lock_call)_i, n)) != NULL; n++)
        ck_assert_has(errors.list[0].detail, name);
    ck_assert_str_eq(body_item_member((enum lock_call)_i, 0), "operation");
    ck_assert_ptr_null(body_member(LOCK_INSPECT, 0));
}

/* No slot's name is longer than a resource may be. */
TEST(the_name_of_a_pool_has_room_for_a_slot)
{
    for (int len = 251; len <= 252; len++) {
        const char *text = textf("{'resource':'%0*d','limit':1}", len, 0);
        ck_assert_int_eq(parse(text, LOCK_ACQUIRE), len == 251);
    }
    ck_assert_str_eq(errors.list[0].pointer, "/resource");
}

/* 16 names of 4-byte characters are more than a lock's names may have. */
TEST(the_names_of_all_slots_fit_into_a_lock)
{
    char name[1024] = "";
    for (int i = 0; i < 63; i++)
        strcat(name, "\xf0\x9f\x94\x92");
    for (int permits = 15; permits <= 16; permits++) {
        const char *text =
            textf("{'resource':'%s','limit':16,'permits':%d}", name, permits);
        ck_assert_int_eq(parse(text, LOCK_ACQUIRE), permits == 15);
    }
    ck_assert_str_eq(errors.list[0].pointer, "/permits");
}

TEST(tokens_are_not_repeated)
{
    static const char *const bodies[] = {
        "{'token':'secret-1' 'secret-2'}",
        "{'token':'secret-1\xff'}",
        "{'token':'secret-1",
        "{'token':secret-1}",
        "{'token':['secret-1']}",
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        ck_assert(!parse(bodies[i], LOCK_EXTEND));
        for (int j = 0; j < errors.count; j++) {
            ck_assert_lacks(errors.list[j].detail, "secret");
            ck_assert_lacks(errors.list[j].pointer, "secret");
        }
    }
}

TEST(deep_nesting_is_refused)
{
    char text[HTTP_BODY_MAX];
    memset(text, '[', sizeof text);
    ck_assert(!body_read(&body, (struct span){text, sizeof text}, LOCK_ACQUIRE,
                         MAX_TTL_MS, &errors));
    ck_assert_str_eq(errors.list[0].pointer, "");
}

/* ---- bodies of batches -------------------------------------------------- */

enum { TEXT_MAX = 8000 };

#define TOKEN "1795221642000000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
#define ID_AND_TOKEN "'id':'a','token':'" TOKEN "'"
#define ACQUIRE "{'operation':'acquire','resource':'a'}"
#define EXTEND "{'operation':'extend'," ID_AND_TOKEN "}"
#define LIST(operations) "{'operations':[" operations "]}"

static struct body_list batch;

static void tear_down_list(void)
{
    tear_down();
    body_list_fini(&batch);
}

static bool parse_list(const char *text)
{
    body_list_fini(&batch); /* of the one before */
    return body_list_read(&batch, span_of(quoted(text)), &errors);
}

static bool parse_item(int n)
{
    body_fini(&body);
    return body_read_item(&batch, n, &body, MAX_TTL_MS, &errors);
}

GROUP(batches, .tear_down = tear_down_list);

TEST(operations_are_read_in_their_order)
{
    ck_assert(parse_list(LIST(
        "{'operation':'acquire','resources':['b','a'],'ttl_ms':100,'owner':'me'"
        ",'mode':'shared','idempotency_key':'k'},{'operation':'extend','ttl_ms'"
        ":200," ID_AND_TOKEN
        "},{'operation':'release','id':'~Yi9j','token':'" TOKEN
        "'},{'operation':'acquire','resource':'p','limit':9,'permits':2}")));
    ck_assert_int_eq(batch.count, 4);
    ck_assert(parse_item(0));
    ck_assert_int_eq(body.call, LOCK_ACQUIRE);
    ck_assert(span_is(body.resource, "a\nb"));
    ck_assert_int_eq(body.ttl_ms, 100);
    ck_assert(span_is(body.owner, "me"));
    ck_assert(body.is_shared);
    ck_assert(span_is(body.key, "k"));
    ck_assert(parse_item(1));
    ck_assert_int_eq(body.call, LOCK_EXTEND);
    ck_assert(span_is(body.resource, "a"));
    ck_assert(span_is(body.token, TOKEN));
    ck_assert_int_eq(body.ttl_ms, 200);
    ck_assert_ptr_null(body.key.ptr);
    ck_assert(parse_item(2));
    ck_assert_int_eq(body.call, LOCK_RELEASE);
    ck_assert(span_is(body.resource, "b/c"));
    ck_assert(parse_item(3));
    ck_assert_int_eq(body.limit, 9);
    ck_assert_int_eq(body.permits, 2);
}

/* In a path it would be percent-encoded; JSON has nothing of that. */
TEST(a_percent_sign_is_no_code_in_json)
{
    ck_assert(parse_list(
        LIST("{'operation':'release','id':'a%2Fb','token':'" TOKEN "'}")));
    ck_assert(parse_item(0));
    ck_assert(span_is(body.resource, "a%2Fb"));
}

/* So many operations. */
static const char *many(int count)
{
    static char text[TEXT_MAX];
    int len = snprintf(text, sizeof text, "{'operations':[");
    for (int i = 0; i < count; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%s",
                        i > 0 ? "," : "", ACQUIRE);
    snprintf(text + len, sizeof text - (size_t)len, "]}");
    return text;
}

TEST(there_may_be_as_many_as_the_limit)
{
    ck_assert(parse_list(many(BODY_LIST_MAX)));
    ck_assert_int_eq(batch.count, BODY_LIST_MAX);
    ck_assert(parse_item(BODY_LIST_MAX - 1));
    ck_assert(!parse_list(many(BODY_LIST_MAX + 1)));
    ck_assert_str_eq(errors.list[0].pointer, "/operations");
}

static const struct {
    const char *text, *pointer;
} bad_lists[] = {
    {"{'operations':[" ACQUIRE "],'ttl_ms':100}", "/ttl_ms"},
    {"[" ACQUIRE "]", ""},
    {"", ""},
};

TEST_EACH(what_is_wrong_with_all_is_told, bad_lists)
{
    ck_assert(!parse_list(bad_lists[_i].text));
    ck_assert_int_eq(errors.count, 1);
    ck_assert_str_eq(errors.list[0].pointer, bad_lists[_i].pointer);
}

static const struct {
    const char *text, *pointer;
} bad_items[] = {
    {"null", ""},
    {"{'operation':null,'resource':'a'}", "/operation"},
    {"{'operation':1,'resource':'a'}", "/operation"},
    {"{'operation':'acquire'}", "/resource"},
    {"{'operation':'acquire','resource':'a','ttl_ms':99}", "/ttl_ms"},
    {"{'operation':'acquire','resources':['a',7]}", "/resources/1"},
    {"{'operation':'acquire','resource':'a','idempotency_key':1}",
     "/idempotency_key"},
    {"{'operation':'extend','wait_ms':1," ID_AND_TOKEN "}", "/wait_ms"},
    {"{'operation':'extend','a/b':1," ID_AND_TOKEN "}", "/a~1b"},
};

TEST_EACH(what_is_wrong_with_one_is_told, bad_items)
{
    ck_assert(parse_list(textf("{'operations':[%s,%s,%s]}", ACQUIRE,
                               bad_items[_i].text, EXTEND)));
    ck_assert(parse_item(0));
    ck_assert(!parse_item(1));
    ck_assert_int_eq(errors.count, 1);
    ck_assert_str_eq(errors.list[0].pointer,
                     textf("/operations/1%s", bad_items[_i].pointer));
    ck_assert(parse_item(2));
}

/* A long name is cut off in the pointer. */
TEST(unknown_members_of_any_length_are_told)
{
    char name[FAULT_POINTER_MAX + 9];
    memset(name, '/', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert(parse_list(
        textf("{'operations':[{'operation':'extend','%s':1," ID_AND_TOKEN "}]}",
              name)));
    ck_assert(!parse_item(0));
    ck_assert_int_eq(errors.count, 1);
    ck_assert_uint_le(strlen(errors.list[0].pointer), FAULT_POINTER_MAX);
    ck_assert_mem_eq(errors.list[0].pointer, "/operations/0/~1~1", 18);
}

TEST(without_memory_nothing_is_told)
{
    jsonload_init();
    starve = (struct starve){.is_on = true, .left = 1};
    bool is_read = parse_list(LIST(ACQUIRE));
    starve.is_on = false;
    ck_assert(!is_read);
    ck_assert_int_eq(errors.count, 0);
    ck_assert(
        parse_list(LIST("{'operation':'acquire','resources':['a','b']}")));
    starve = (struct starve){.is_on = true, .left = 1};
    is_read = parse_item(0);
    starve.is_on = false;
    ck_assert(!is_read);
    ck_assert_int_eq(errors.count, 0);
    ck_assert(parse_item(0));
}
