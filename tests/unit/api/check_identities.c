/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../api/access/identities.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "authtext.h"

#define SECRET AUTHTEXT_SECRET
#define OTHER AUTHTEXT_OTHER
#define FOUR "abcd"
#define SIXTY                                                                  \
    FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR FOUR
#define A17                                                                    \
    "prefix=a prefix=a prefix=a prefix=a prefix=a prefix=a prefix=a prefix=a " \
    "prefix=a prefix=a prefix=a prefix=a prefix=a prefix=a prefix=a prefix=a " \
    "prefix=a"

static struct identities *all;
static char error[IDENTITIES_TEXT_MAX];

static void parse(struct span text)
{
    identities_free(all);
    all = identities_parse(text, error);
}

static const struct identity *only(const char *text)
{
    parse(span_of(text));
    ck_assert_msg(all != NULL, "%s: %s", text, error);
    ck_assert_int_eq(all->count, 1);
    return &all->list[0];
}

static void tear_down(void)
{
    identities_free(all);
    all = NULL;
}

SUITE(identities, .tear_down = tear_down);

/* ---- what is read ------------------------------------------------------- */

TEST(a_line_with_everything)
{
    const struct identity *it =
        only("billing  " SECRET "\t lock,read prefix=billing/ prefix=a%20b "
             "rate=500 burst=1000 locks=2000 expires=2026-11-23T07:31:05Z \n");
    ck_assert_str_eq(it->name, "billing");
    ck_assert_uint_eq(it->scopes, 1u << SCOPE_LOCK | 1u << SCOPE_READ);
    ck_assert_int_eq(it->rate, 500);
    ck_assert_int_eq(it->burst, 1000);
    ck_assert_int_eq(it->locks, 2000);
    ck_assert_int_eq(it->expires_s, 1795419065);
    ck_assert_int_eq(it->prefixes_count, 2);
    ck_assert(span_is(it->prefixes[0], "billing/"));
    ck_assert(span_is(it->prefixes[1], "a b"));
}

TEST(without_burst_it_is_the_rate)
{
    ck_assert_int_eq(only("a " SECRET " lock prefix=* rate=7\n")->burst, 7);
    ck_assert_int_eq(only("a " SECRET " lock prefix=* burst=9 rate=7\n")->burst,
                     9);
}

TEST(the_longest_of_all)
{
    static char text[IDENTITIES_LINE_MAX + 2];
    const struct identity *it = only(
        SIXTY FOUR " " SECRET " metrics,admin,read,lock prefix=* rate=1000000 "
                   "burst=1000000 locks=1000000\n");
    ck_assert_str_eq(it->name, SIXTY FOUR);
    ck_assert_uint_eq(it->scopes, (1u << SCOPES) - 1);
    memset(text, ' ', IDENTITIES_LINE_MAX);
    (void)span_copy(text, span_of("a " SECRET " lock prefix=*"));
    text[IDENTITIES_LINE_MAX] = '\n';
    (void)only(text);
    text[0] = '#';
    (void)span_copy(text + IDENTITIES_LINE_MAX, span_of(" \n"));
    parse((struct span){text, sizeof text});
    ck_assert_ptr_null(all);
    ck_assert_has(error, "1: the line is longer");
}

/* ---- what is refused ---------------------------------------------------- */

/* More of it is in check_sentences.c. */
static const struct {
    const char *text;
    const char *start; /* of the error */
} refused[] = {
    {"\xef\xbb\xbf"
     "a " SECRET " lock\n",
     "1: the file begins"},
    {"\na " SECRET " lock\r\n", "2: the line ends with CR LF"},
    {"a\v " SECRET " lock\n", "1: the line contains"},
    {"# \x7f\n", "1: the line contains"},
    {SIXTY FOUR "a " SECRET " lock\n", "1: the name must"},
    {"a secret lock\n", "1: the second word must"},
    {"a sha256:00 lock\n", "1: the second word must"},
    {"a SHA256" OTHER " lock\n", "1: the second word must"},
    {"a " SECRET "0 lock\n", "1: the second word must"},
    {"a cert:DNS:x lock\n", "1: cert: must be"},
    {"a cert:%64ns:x lock\n", "1: cert: must be"},
    {"a cert:uri:x%2 lock\n", "1: cert: and the"},
    {"a cert:email:x%00 lock\n", "1: cert: and the"},
    {"a " SECRET "\n", "1: the third word must"},
    {"a " SECRET " lock,\n", "1: the third word must"},
    {"a " SECRET " lock,lock\n", "1: the third word must"},
    {"a " SECRET " prefix=a\n", "1: the third word must"},
    {"a " SECRET " lock expires=2027-02-29T00:00:00Z\n", "1: expires= must"},
    {"a " SECRET " lock expires=2026-11-23T07:31:05+01:00\n",
     "1: expires= must"},
    {"a " SECRET " lock expires=2026-11-23T07:31:05Z "
     "expires=2026-11-23T07:31:05Z\n",
     "1: expires= must"},
    {"a " SECRET " lock read\n", "1: only prefix=, rate="},
    {"a " SECRET " lock prefix=%0a\n", "1: prefix= must"},
    {"a " SECRET " lock prefix=%00\n", "1: prefix= must"},
    {"a " SECRET " lock prefix=\xff\n", "1: prefix= must"},
    {"a " SECRET " lock prefix=redlockd:x\n", "1: prefix= must"},
    {"a " SECRET " admin\n", "1: prefix= is missing"},
    {"a " SECRET " lock prefix=a prefix=*\n", "1: prefix=* allows all"},
    {"a " SECRET " lock " A17 "\n", "1: it has more than 16 prefixes"},
    {"a " SECRET " lock rate=1000001\n", "1: rate= must"},
    {"a " SECRET " lock rate=00000001\n", "1: rate= must"},
    {"a " SECRET " lock rate=1 rate=1\n", "1: rate= must"},
    {"a " SECRET " lock rate=1 burst=0\n", "1: burst= must"},
    {"a " SECRET " lock rate=1 burst=1 burst=1\n", "1: burst= must"},
    {"a " SECRET " lock locks=1000001\n", "1: locks= must"},
    {"a " SECRET " lock locks=5 locks=5\n", "1: locks= must"},
    {"a " SECRET " lock prefix=*\n\na " OTHER " read prefix=*\n",
     "3: the name is"},
    {"b cert:dns:x lock prefix=*\na " SECRET
     " metrics\nc cert:dns:%78 metrics\n",
     "3: the certificate is"},
};

TEST_EACH(what_is_wrong_is_told_with_its_line, refused)
{
    parse(span_of(refused[_i].text));
    ck_assert_msg(all == NULL, "%s", refused[_i].text);
    ck_assert_msg(
        strncmp(error, refused[_i].start, strlen(refused[_i].start)) == 0,
        "%s: %s", refused[_i].text, error);
    ck_assert_ptr_null(strchr(error, '\n'));
}

TEST(a_nul_is_refused)
{
    static const char text[] = "a\0b " SECRET " lock\n";
    parse((struct span){text, sizeof text - 1});
    ck_assert_ptr_null(all);
    ck_assert_has(error, "1: the line contains");
}

TEST(what_may_be_a_secret_is_not_repeated)
{
    static const char *const texts[] = {
        "hunter2/ " SECRET " lock\n",
        "a hunter2 lock\n",
        "a " SECRET " hunter2\n",
        "a " SECRET " lock hunter2\n",
        "a " SECRET " lock rate=hunter2\n",
        "a " SECRET " lock prefix=redlockd:hunter2\n",
        "a cert:hunter2 metrics\n",
        "a cert:dns:hunter2 metrics\nb cert:dns:hunter2 metrics\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        parse(span_of(texts[i]));
        ck_assert_ptr_null(all);
        ck_assert_msg(strstr(error, "hunter2") == NULL, "%s", error);
    }
}

/* ---- many --------------------------------------------------------------- */

static char *make_many(int count)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    for (int i = count; i > 0; i--)
        fprintf(out, "n%d sha256:%064d metrics\n", i, i);
    (void)fclose(out);
    return text;
}

TEST(a_thousand_and_no_more)
{
    char *text = make_many(IDENTITIES_MAX);
    parse(span_of(text));
    ck_assert_msg(all != NULL, "%s", error);
    ck_assert_int_eq(all->count, IDENTITIES_MAX);
    for (int i = 1; i < IDENTITIES_MAX; i++)
        ck_assert_int_lt(strcmp(all->list[i - 1].name, all->list[i].name), 0);
    for (int i = 1; i <= IDENTITIES_MAX; i++) {
        char name[16];
        struct digest digest;
        snprintf(name, sizeof name, "n%d", i);
        ck_assert(digest_read(&digest, span_of(textf("%064d", i))));
        int number = identities_find_name(all, name);
        ck_assert_str_eq(all->list[number].name, name);
        ck_assert_int_eq(identities_find_digest(all, &digest), number);
    }
    free(text);
    text = make_many(IDENTITIES_MAX + 1);
    parse(span_of(text));
    ck_assert_ptr_null(all);
    ck_assert_str_eq(error, "1001: there are more than 1000 identities");
    free(text);
}

TEST(who_is_not_there_is_not_found)
{
    struct digest digest;
    parse(span_of("b " OTHER " metrics\nd " SECRET " metrics\n"));
    ck_assert_int_eq(identities_find_name(all, "a"), -1);
    ck_assert_int_eq(identities_find_name(all, "c"), -1);
    ck_assert_int_eq(identities_find_name(all, "e"), -1);
    ck_assert_int_eq(identities_find_name(all, ""), -1);
    ck_assert(digest_make(&digest, span_of("secret")));
    ck_assert_int_eq(identities_find_digest(all, &digest), 1);
    ck_assert(digest_make(&digest, span_of("secret1")));
    ck_assert_int_eq(identities_find_digest(all, &digest), -1);
    /* the digest of who has none */
    digest = (struct digest){{0}};
    ck_assert_int_eq(identities_find_digest(all, &digest), -1);
    ck_assert_int_eq(identities_find_certificate(all, span_of("dns:x")), -1);
}

/* Each kind, and a token: what is "x" of one kind is not of another. */
static const struct {
    const char *names;
    int number;
} shown[] = {
    {"dns:x", 0},
    {"uri:x", 1},
    {"email:x", 2},
    {"cn:x", 3},
    {"cn:a%b", 4},
    {"dns:y\ndns:x\nemail:y", 0},
    {"dns:x\ndns:x", 0},
    {"dns:x\nemail:x", IDENTITIES_SEVERAL},
    {"email:x\ndns:y\nuri:x", IDENTITIES_SEVERAL},
    {"", -1},
    {"x", -1},
    {"dns:", -1},
    {"dns:x.", -1},
    {"dns:X", -1},
    {"cn:a%25b", -1},
    {"cn:y\nuri:y", -1},
};

TEST_EACH(a_name_counts_as_one_of_its_kind, shown)
{
    parse(span_of("a cert:dns:x metrics\nb cert:uri:x metrics\n"
                  "c cert:email:x metrics\nd cert:cn:x metrics\n"
                  "e cert:cn:a%25b metrics\nf " SECRET " metrics\n"));
    ck_assert_msg(all != NULL, "%s", error);
    ck_assert_int_eq(identities_find_certificate(all, span_of(shown[_i].names)),
                     shown[_i].number);
}

/* ---- prefixes ----------------------------------------------------------- */

static const struct {
    const char *names;
    bool is_covered;
} covers[] = {
    {"a/", true},
    {"a/b", true},
    {"a/../b", true},
    {"a", false},
    {"", false},
    {"A/b", false},
    {"xa/", false},
    {"a/b\na/c", true},
    {"a/b\nc", false},
    {"c\nd\na/b", false},
    {"a/b\n\xc3\xa4x", true},
    {"\xc3\xa4", true},
    {"\xc3", false},
    {"a%2fb", false},
};

TEST_EACH(each_name_must_begin_with_a_prefix, covers)
{
    const struct identity *it =
        only("a " SECRET " lock prefix=a/ prefix=%C3%a4\n");
    ck_assert_msg(identity_covers(it, span_of(covers[_i].names)) ==
                      covers[_i].is_covered,
                  "%s", covers[_i].names);
}

TEST(all_is_covered_if_that_is_said)
{
    const struct identity *it = only("a " SECRET " lock prefix=*\n");
    for (size_t i = 0; i < COUNT(covers); i++)
        ck_assert(identity_covers(it, span_of(covers[i].names)));
    it = only("a " SECRET " metrics\n");
    for (size_t i = 0; i < COUNT(covers); i++)
        ck_assert(!identity_covers(it, span_of(covers[i].names)));
    it = only("a " SECRET " lock prefix=%2a\n");
    ck_assert(identity_covers(it, span_of("*a")));
    ck_assert(!identity_covers(it, span_of("a")));
}

TEST(without_memory_there_is_none)
{
    char *text = make_many(20);
    starve.is_on = true;
    for (int left = 1;; left++) {
        starve.left = left;
        parse(span_of(text));
        if (all != NULL)
            break;
        ck_assert_str_eq(error, "out of memory");
        ck_assert_int_lt(left, 20);
    }
    starve.is_on = false;
    free(text);
}

/* ---- the file ------------------------------------------------------------ */

#define GOOD "a " AUTHTEXT_SECRET " lock prefix=*\n"

static void tear_down_file(void)
{
    starve.is_on = false;
    authtext_remove();
}

static void expect(const char *path, const char *reason)
{
    all = identities_load(path, error);
    ck_assert_ptr_null(all);
    ck_assert_has(error, textf("--auth-file: %s:%s", path, reason));
}

GROUP(file, .tear_down = tear_down_file);

TEST(an_error_has_file_and_line)
{
    expect(authtext_write(GOOD "b\n"), "2: the second word");
    expect(authtext_write(""), " it has no identity");
}

TEST(what_is_no_file_is_refused_at_once)
{
    expect("/nonexistent/auth", " no such file");
    expect("/tmp", " it is not a");
    expect("/dev/zero", " it is not a");
    const char *path = textf("%s.fifo", authtext_write(GOOD));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect(path, " it is not a");
    ck_assert_int_eq(unlink(path), 0);
}

TEST(a_mebibyte_and_no_more)
{
    const char *path = authtext_write(GOOD "#\n");
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    size_t len = sizeof GOOD "#\n" - 1;
    for (; len < IDENTITIES_SIZE_MAX; len++)
        fputc('\n', file);
    ck_assert_int_eq(fflush(file), 0);
    all = identities_load(path, error);
    ck_assert_msg(all != NULL, "%s", error);
    tear_down();
    fputc('\n', file);
    (void)fclose(file);
    expect(path, " it is larger than 1 MiB");
}

TEST(a_long_path_is_cut)
{
    char path[600];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    ck_assert_ptr_null(identities_load(path, error));
    ck_assert_has(error, "xxx: file name too");
}

TEST(without_memory_it_says_so)
{
    const char *path = authtext_write(GOOD);
    starve.is_on = true;
    for (int left = 1; left <= 4; left++) {
        starve.left = left;
        expect(path, " out of memory");
    }
}
