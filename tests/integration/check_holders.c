/*
 * What counts among the locks that an identity holds: each grant, so each
 * reader, until that is released or ends.
 */
#include <stdio.h>
#include <string.h>

#include "auth.h"

#define LOCKS "\nredlockd_identity_locks{identity=\"green\"}"
#define KEY "Idempotency-Key: 0123456789abcdef"

enum { N = 3, SOON_MS = 9000 };

static const char text[] =
    "green " AUTH_GREEN " lock,read prefix=* locks=3\n"
    "blue " AUTH_BLUE " lock,read,metrics,admin prefix=*\n";

WORLD_WITH_END;
static struct server *const server = &world.servers[0];

static void start(void)
{
    char path[PATH_SIZE];
    auth_make(path, text);
    world_start(&world, N, textf("--auth-file %s", path));
}

static void expect_locks(int count)
{
    ck_assert_int_eq((int)auth_metric(server, "blue", LOCKS), count);
}

/* As auth_acquire; key NULL: none. */
static int acquire(const char *resource, const char *mode, const char *key,
                   struct lock *lock)
{
    char json[160];
    PRINT_TO(json, "{\"resource\":\"%s\",\"mode\":\"%s\",\"ttl_ms\":50000}",
             resource, mode);
    const struct answer *a =
        AUTH(server, "green", .method = "POST", .path = "/locks", .json = json,
             .headers = {key});
    if (a->status < 300)
        lock_read(lock, a->json);
    return a->status;
}

static void read_lock(const char *resource, struct lock *lock)
{
    ck_assert_int_eq(acquire(resource, "shared", NULL, lock), 201);
}

static void write_lock(const char *resource, struct lock *lock)
{
    ck_assert_int_eq(acquire(resource, "exclusive", NULL, lock), 201);
}

static void extend(struct lock *lock, const char *json, int status)
{
    const char *path = textf("%s/extend", lock->path);
    const struct answer *a =
        AUTH(server, "green", .method = "PUT", .path = path,
             .token = lock->token, .json = json);
    answer_expect(a, status, status == 200 ? NULL : "lock_quota_exceeded");
    if (status == 200)
        PRINT_TO(lock->token, "%s", answer_text(a, "token"));
}

static void release(const struct lock *lock)
{
    answer_expect(auth_release(server, "green", lock), 200, NULL);
}

static void force(const struct lock *lock, const char *which)
{
    const char *path = textf("%s?force=%s", lock->path, which);
    answer_expect(AUTH(server, "blue", .method = "DELETE", .path = path), 200,
                  NULL);
}

static void force_number(const struct lock *lock)
{
    char number[24];
    PRINT_TO(number, "%lld", (long long)lock->number);
    force(lock, number);
}

SUITE(holders, .timeout_s = 60, .set_up_once = start,
      .tear_down_once = world_tear_down);

TEST(each_reader_of_a_name_counts)
{
    struct lock readers[3], more;
    for (int i = 0; i < 3; i++) {
        read_lock("doc", &readers[i]);
        expect_locks(i + 1);
    }
    ck_assert_int_eq(acquire("doc", "shared", NULL, &more), 429);
    ck_assert_int_eq(acquire("other", "exclusive", NULL, &more), 429);
    release(&readers[1]);
    expect_locks(2);
    read_lock("doc", &readers[1]);
    ck_assert_int_eq(acquire("doc", "shared", NULL, &more), 429);
    for (int i = 0; i < 3; i++) {
        release(&readers[i]);
        expect_locks(2 - i);
    }
}

TEST(an_extend_of_a_reader_counts_nothing_more)
{
    struct lock readers[3];
    for (int i = 0; i < 3; i++)
        read_lock("doc", &readers[i]);
    for (int i = 0; i < 3; i++)
        extend(&readers[i], "{}", 200);
    expect_locks(3);
    for (int i = 0; i < 3; i++)
        release(&readers[i]);
    expect_locks(0);
}

TEST(a_repeat_of_a_reader_counts_once)
{
    struct lock first, second, others[2];
    ck_assert_int_eq(acquire("doc", "shared", KEY, &first), 201);
    read_lock("doc", &others[0]);
    read_lock("doc", &others[1]);
    ck_assert_int_eq(acquire("doc", "shared", KEY, &second), 200);
    expect_locks(3);
    answer_expect(auth_release(server, "green", &first), 404, NULL);
    expect_locks(3);
    release(&second);
    expect_locks(2);
    release(&others[0]);
    release(&others[1]);
    expect_locks(0);
}

TEST(a_repeat_of_a_writer_counts_once)
{
    struct lock first, second, others[2];
    ck_assert_int_eq(acquire("doc", "exclusive", KEY, &first), 201);
    write_lock("a", &others[0]);
    write_lock("b", &others[1]);
    ck_assert_int_eq(acquire("doc", "exclusive", KEY, &second), 200);
    expect_locks(3);
    release(&second);
    release(&others[0]);
    release(&others[1]);
    expect_locks(0);
}

TEST(a_downgraded_lock_counts_once)
{
    static const char shared[] = "{\"mode\":\"shared\",\"ttl_ms\":50000}";
    struct lock writer, before, readers[2], more;
    write_lock("doc", &writer);
    before = writer;
    extend(&writer, shared, 200);
    expect_locks(1);
    read_lock("doc", &readers[0]);
    read_lock("doc", &readers[1]);
    expect_locks(3);
    extend(&writer, "{}", 200);
    extend(&before, shared, 200); /* the answer to the first was lost */
    expect_locks(3);
    ck_assert_int_eq(acquire("doc", "shared", NULL, &more), 429);
    release(&writer);
    expect_locks(2);
    release(&readers[0]);
    release(&readers[1]);
    expect_locks(0);
}

TEST(a_forced_release_ends_what_it_releases)
{
    struct lock writer, readers[2];
    write_lock("doc", &writer);
    read_lock("page", &readers[0]);
    read_lock("page", &readers[1]);
    force_number(&writer);
    expect_locks(2);
    force_number(&readers[0]);
    expect_locks(1);
    read_lock("page", &readers[0]);
    read_lock("else", &writer);
    expect_locks(3);
    force(&readers[0], "all");
    expect_locks(1);
    release(&writer);
    expect_locks(0);
}

TEST(readers_that_expire_count_no_longer)
{
    static const char brief[] = "{\"resource\":\"doc\",\"mode\":\"shared\","
                                "\"ttl_ms\":300}";
    struct lock kept, gone;
    read_lock("doc", &kept);
    answer_expect(auth_acquire(server, "green", brief, &gone), 201, NULL);
    expect_locks(2);
    WAIT_UNTIL(SOON_MS, auth_metric(server, "blue", LOCKS) == 1);
    release(&kept);
    expect_locks(0);
}
