/*
 * Which slots of a pool are free, by the script on a real redis-server.
 */
#include <stdio.h>

#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "live.h"

#define KEY_HASH "HBvC3OTCJKRp830X6_MckQ"
#define VALUE "1700000000000001.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

static struct call slots_of(const char *pool, int count, const char *key_hash)
{
    struct call call = live_call(CALL_SLOTS, pool, "");
    call.count = count;
    call.key_hash = span_of(key_hash);
    return call;
}

static void set(const char *name, const char *value, int ttl_ms)
{
    ck_assert_str_eq(
        master_text(&live.master, "SET p:%s %s PX %d", name, value, ttl_ms),
        "OK");
}

SUITE(lua_slots, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

TEST(each_slot_is_free_or_taken)
{
    struct call call = slots_of("pool" NAMES_SLOT, 4, "");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(live.slots, "0000");
    ck_assert_int_eq(live.reply.pttl_ms, -1);
    set("pool" NAMES_SLOT "1", VALUE, 60000);
    set("pool" NAMES_SLOT "3", VALUE, 20000);
    set("pool" NAMES_SLOT "4", VALUE, 10000); /* not asked for */
    set("pool", VALUE, 10000);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(live.slots, "0101");
    ck_assert_int_le(live.reply.pttl_ms, 20000);
    ck_assert_int_gt(live.reply.pttl_ms, 1000);
}

/* Whatever is in the way: nobody could set a lock there. */
TEST(any_key_takes_a_slot)
{
    struct call call = slots_of("pool" NAMES_SLOT, 3, KEY_HASH);
    master_text(&live.master, "HSET p:pool" NAMES_SLOT "0 f 1");
    master_text(&live.master, "SET p:pool" NAMES_SLOT "2 of_another_library");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(live.slots, "101");
    ck_assert_int_eq(live.reply.pttl_ms, -1);
}

TEST(those_with_the_key_hash_are_told)
{
    struct call call = slots_of("pool" NAMES_SLOT, 4, KEY_HASH);
    set("pool" NAMES_SLOT "0", VALUE "+" KEY_HASH ".me", 60000);
    set("pool" NAMES_SLOT "1", VALUE "+" KEY_HASH, 60000);
    set("pool" NAMES_SLOT "2", VALUE "+HBvC3OTCJKRp830X6_MckR.me", 60000);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(live.slots, "2210");
    call.key_hash = span_of("");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(live.slots, "1110");
}

TEST(the_largest_pool_is_told_whole)
{
    struct call call = slots_of("pool" NAMES_SLOT, POOL_SLOTS_MAX, "");
    set("pool" NAMES_SLOT "999", VALUE, 60000);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_uint_eq(strlen(live.slots), POOL_SLOTS_MAX);
    ck_assert_uint_eq(strspn(live.slots, "0"), POOL_SLOTS_MAX - 1);
}

TEST(a_node_that_forgot_tells_nothing)
{
    struct call call = slots_of("pool" NAMES_SLOT, 2, "");
    call.admit = span_of("another");
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
}

TEST(a_user_without_a_right_on_the_slots_is_told_so)
{
    struct call call = slots_of("pool" NAMES_SLOT, 2, "");
    master_text(&live.master,
                "ACL SETUSER default resetkeys ~p:redlockd:state ~p:a*");
    ck_assert_int_eq(live_ask(&call), VOTE_KEY_REFUSED);
    call = slots_of("a" NAMES_SLOT, 2, "");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
}
