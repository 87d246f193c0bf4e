/* SPDX-License-Identifier: MIT */
/*
 * A request that may wait: its life, from then to its answer.
 *
 * What it waits for is a lock (waits.h), a permit (permits.h) or the next
 * holder of a lock (watches.c). Each of these has its own rules of who is next.
 * How it waits and ends is the same for all:
 *
 *   state     event                   then
 *
 *   NEW       there is room           QUEUED
 *             too many wait           SETTLED: too many waiters
 *   QUEUED    its turn                TRYING, by an operation of its own
 *             another version found   SETTLED; of a watch
 *             time up, or withdrawn   SETTLED with the last result
 *             the server stops        SETTLED: stopped
 *   TRYING    granted, refused        SETTLED; the operation has the outcome
 *             lost                    QUEUED, if there is time left
 *             time up, server stops   the try ends first: it grants, or is lost
 *             withdrawn               SETTLED with the last result; the try is
 *                                     released
 *   SETTLED   answered                gone, by close
 *   any       its client leaves       gone, by abandon: what it tries or was
 *                                     granted is released
 *
 * Those that wait, QUEUED or TRYING, are in the list of their kind; waiters_max
 * limits the sum of these. One whose client does not wait, a permit or a reader
 * behind others, is in none while the nodes are asked for it. If it is not its
 * turn, it lingers: that counts as waiting.
 */
#ifndef REDLOCKD_TICKET_H
#define REDLOCKD_TICKET_H

#include <sys/queue.h>

#include "../port/port.h"
#include "../rounds/operation.h"

enum ticket_state {
    TICKET_NEW,
    TICKET_QUEUED,
    TICKET_TRYING,
    TICKET_SETTLED,
};

struct ticket_list {
    TAILQ_HEAD(, ticket) tickets;
    int count;
};

/* The first member of struct waiter, permit and watcher. */
struct ticket {
    struct entries_head head;
    struct tickets *all;
    TAILQ_ENTRY(ticket) link;
    struct ticket_list *list; /* that it counts in; NULL: none */
    enum metrics_waiting kind;
    enum ticket_state state;
    uint64_t operation; /* the try under way, or the grant; 0: none */
    void *client;
    int64_t ttl_ms;
    int64_t since_us;
    int64_t until_us; /* 0: it does not wait */
    struct span key_hash;
    char key_hash_text[KEY_HASH_LEN];
    size_t owner_len;
    char owner[OWNER_MAX];       /* its own; once settled: of the result */
    struct span name;            /* of what it waits for; owned by its kind */
    struct engine_result result; /* without an operation */
};

/* What the kinds do. A watch tries nothing: it has leave and dismiss only. */
struct ticket_rules {
    /* It leaves its place among those that wait for the same. */
    void (*leave)(struct ticket *it, int64_t now_us);
    /* It goes, and gives back what it uses. */
    void (*dismiss)(struct ticket *it);
    enum request_owner tries_as;
    /* Its try has an outcome. */
    void (*on_tried)(struct ticket *it);
    /* Its time is up: it is settled with the last result. */
    void (*settle_late)(struct ticket *it, int64_t now_us);
    /* Its client has left, or its time was up: others go on. has_asked: what it
       tried or was granted is being released. */
    void (*on_left)(struct ticket *it, bool has_asked, int64_t now_us);
    /* Its timer; it is queued, and its time is not up. */
    void (*on_timer)(struct ticket *it, int64_t now_us);
};

struct tickets {
    const struct environment *env;
    struct operations *operations;
    struct entries entries;
    const struct ticket_rules *rules[WAITING_KINDS];
    struct ticket_list waiting[WAITING_KINDS];
    bool is_stopped; /* nobody waits any more */
};

void tickets_init(struct tickets *tickets, struct operations *operations);

/* One more kind, with objects of this size; before the first ticket. */
void tickets_add_kind(struct tickets *tickets, enum metrics_waiting kind,
                      size_t size, const struct ticket_rules *rules);

/* Dismisses all. */
void tickets_fini(struct tickets *tickets);

/* With a copy of what is asked, and zeros in the kind's part. NULL: no memory.
 * It is settled, or joins; or is dropped if there is no memory for the rest. */
void *ticket_new(struct tickets *tickets, enum metrics_waiting kind,
                 const struct request *asked, int64_t wait_ms);
void ticket_drop(struct ticket *it);

/* It has its place, and is queued. */
void ticket_join(struct ticket *it);

static inline uint64_t ticket_handle(const struct ticket *it)
{
    return entries_handle(it, HANDLE_TICKET);
}

static inline bool ticket_waits(const struct ticket *it)
{
    return it->until_us != 0;
}

/* True: it is to wait, but the server stops, or too many wait on it or for the
 * same; it is answered so. same: how many wait for that already. */
bool ticket_is_stopped(struct ticket *it);
bool ticket_is_refused(struct ticket *it, int same);

/* It is queued and does not wait, but it is not its turn yet: from now on it
 * counts among those that wait, or is answered that too many do. */
void ticket_linger(struct ticket *it);

/* Its timer: not before this moment; 0 stops it. */
void ticket_set_timer(const struct ticket *it, int64_t at_us);

/* A try begins; without memory it has no operation. The rest of try is as for
 * an acquire. True: it has its outcome already, and on_tried is not called. */
bool ticket_try(struct ticket *it, struct request *try);

/* After a lost try. False: its time is up, or the server stops: answered. */
bool ticket_goes_on(struct ticket *it, int64_t now_us);

/* Its time is up: it is answered, and others go on. */
void ticket_expire(struct ticket *it, int64_t now_us);

/* The same before its time: what it tries is released. */
void ticket_withdraw(struct ticket *it, int64_t now_us);

/* It leaves its place, as it has an outcome. */
void ticket_leave(struct ticket *it, int64_t now_us);

/* Tells its client: the outcome is that of its operation. */
void ticket_answer(struct ticket *it, int64_t now_us);

/* Copies a result without resource, token and key hash; its owner to owner. */
void result_keep(struct engine_result *to, char owner[OWNER_MAX],
                 const struct engine_result *from);

/* It leaves, if it had joined, and is answered with this result. */
void ticket_settle(struct ticket *it, const struct engine_result *result);
void ticket_settle_plainly(struct ticket *it, enum outcome outcome);

/* As engine_take, engine_peek, engine_close, engine_abandon. */
const struct engine_result *ticket_take(struct tickets *tickets,
                                        uint64_t handle, int64_t now_us);
const struct engine_result *ticket_peek(const struct tickets *tickets,
                                        uint64_t handle);
void ticket_close(struct tickets *tickets, uint64_t handle);
bool ticket_abandon(struct tickets *tickets, uint64_t handle);

/* As engine_stop_waiting. */
void tickets_stop(struct tickets *tickets);

/* The port's timer of the ticket with this index. */
void tickets_on_timer(struct tickets *tickets, uint32_t index);

/* An inspection for those that wait, which takes no lock. Its handle is in
 * *inspection; 0: none is under way, or no memory. True: it has its outcome. */
bool inspection_begin(struct operations *operations, uint64_t *inspection,
                      struct span resource, enum request_owner owner,
                      void *client);
void inspection_end(struct operations *operations, uint64_t *inspection);

#endif
