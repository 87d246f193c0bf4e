#include <stdio.h>
#include <sys/un.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/resolver.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"
#include "names.h"

static struct loop *loop;
static struct address_node config;
static struct resolver resolver;
static int answers;
static char address[NI_MAXHOST], port[NI_MAXSERV]; /* "": none */
static struct resolver_address bytes;
static char error[100];
static int64_t began_us;

static void setup(void)
{
    loop = loop_new();
    memset(&config, 0, sizeof config);
    snprintf(config.host, sizeof config.host, "node.test");
    config.port = 6379;
    resolver = (struct resolver){.loop = loop, .config = &config};
    answers = 0;
}

static void teardown(void)
{
    resolver_fini(&resolver);
    loop_free(loop);
}

static void on_answer(void *arg, const struct resolver_address *its_address,
                      int64_t its_began_us, const char *its_error)
{
    ck_assert_ptr_eq(arg, &config);
    ck_assert((its_address == NULL) == (its_error != NULL));
    address[0] = '\0';
    if (its_address != NULL)
        bytes = *its_address;
    if (its_address != NULL && !config.is_unix) {
        ck_assert_int_eq(getnameinfo((struct sockaddr *)&bytes.storage,
                                     bytes.len, address, sizeof address, port,
                                     sizeof port,
                                     NI_NUMERICHOST | NI_NUMERICSERV),
                         0);
        ck_assert_str_eq(port, "6379");
    }
    snprintf(error, sizeof error, "%s", its_error ? its_error : "");
    began_us = its_began_us;
    answers++;
}

static void ask(void)
{
    resolver_ask(&resolver, on_answer, &config);
}

static bool has_resolved(void *arg)
{
    (void)arg;
    return !loop_is_resolving(loop);
}

SUITE(resolver, .timeout_s = 30, .set_up = setup, .tear_down = teardown);

TEST(each_question_resolves_anew)
{
    int64_t before_us = clock_now_us();
    names_resolve_to("127.0.0.1", 0);
    ask();
    turns_until_count(loop, &answers, 1);
    ck_assert_str_eq(address, "127.0.0.1");
    ck_assert_int_ge(began_us, before_us);
    names_resolve_to("127.0.0.2", 0);
    ask();
    turns_until_count(loop, &answers, 2);
    ck_assert_str_eq(address, "127.0.0.2");
    names_resolve_to("", 0);
    ask();
    turns_until_count(loop, &answers, 3);
    ck_assert_str_eq(address, "");
    ck_assert_str_ne(error, "");
}

TEST(numeric_addresses_need_no_name_server)
{
    int before = names_asked();
    snprintf(config.host, sizeof config.host, "::1");
    ask();
    turns_until_count(loop, &answers, 1);
    ck_assert_str_eq(address, "::1");
    ck_assert_int_eq(names_asked(), before);
}

/* A few threads resolve for all nodes: one name must not take them all. */
TEST(questions_that_were_given_up_share_one_lookup)
{
    int64_t before_us = clock_now_us();
    int before = names_asked();
    names_resolve_to("127.0.0.1", 100000);
    for (int i = 0; i < 10; i++) {
        ask();
        resolver.fn = NULL;
    }
    ask();
    turns_until_count(loop, &answers, 1);
    ck_assert_int_eq(names_asked(), before + 1);
    ck_assert_str_eq(address, "127.0.0.1");
    ck_assert_int_ge(began_us, before_us);
    ck_assert_int_le(began_us, clock_now_us() - 100000);
}

TEST(a_late_answer_is_kept_for_the_next_question)
{
    int before = names_asked();
    names_resolve_to("127.0.0.1", 100000);
    ask();
    resolver.fn = NULL;
    turns_until(loop, has_resolved, NULL);
    ck_assert_int_eq(answers, 0);
    ask();
    ck_assert_int_eq(answers, 1);
    ck_assert_str_eq(address, "127.0.0.1");
    ck_assert_int_le(began_us, clock_now_us() - 100000);
    ck_assert_int_eq(names_asked(), before + 1);
    ask(); /* once */
    turns_until_count(loop, &answers, 2);
    ck_assert_int_eq(names_asked(), before + 2);
}

/* ::1 and 127.0.0.1, in any order, or only one of them. */
TEST(a_refused_address_gives_the_turn_to_the_next)
{
    char first[sizeof address], second[sizeof address];
    snprintf(config.host, sizeof config.host, "localhost");
    ask();
    turns_until_count(loop, &answers, 1);
    memcpy(first, address, sizeof first);
    resolver.turn++;
    ask();
    turns_until_count(loop, &answers, 2);
    memcpy(second, address, sizeof second);
    resolver.turn++;
    ask();
    turns_until_count(loop, &answers, 3);
    ck_assert_str_ne(second, "");
    ck_assert(strcmp(address, first) == 0 || strcmp(address, second) != 0);
}

TEST(a_path_is_an_address_at_once)
{
    struct sockaddr_un un;
    config.is_unix = true;
    snprintf(config.host, sizeof config.host, "/run/redis.sock");
    int64_t before_us = clock_now_us();
    ask();
    ck_assert_int_eq(answers, 1);
    ck_assert_int_ge(began_us, before_us);
    ck_assert_uint_eq(bytes.len, sizeof un);
    memcpy(&un, &bytes.storage, sizeof un);
    ck_assert_int_eq(un.sun_family, AF_UNIX);
    ck_assert_str_eq(un.sun_path, config.host);
}
