#include "deadline.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum {
    REQUEST_US = 10 * US_PER_S, /* to send a head, a body; to take an answer */
    IDLE_US = 75 * US_PER_S,    /* from the answer to the next head */
    PATIENCE_US = US_PER_S,     /* with a request or an answer, at the limit */
    KERNEL_TICKS_US = 20000,    /* how exactly it knows when data came */
};

static void to_end(struct deadline *it)
{
    TAILQ_REMOVE(&it->all->list, it, link);
    TAILQ_INSERT_TAIL(&it->all->list, it, link);
}

/* ---- a connection's deadline -------------------------------------------- */

/* We wait for the client from now on: others have kept us waiting longer. */
static void await_client(struct deadline *it, int64_t now_us)
{
    it->since_us = now_us;
    it->at_us = now_us + REQUEST_US;
    to_end(it);
}

void deadline_init(struct deadline *it, struct deadlines *all, int fd,
                   int64_t now_us)
{
    *it = (struct deadline){
        .all = all,
        .fd = fd,
        .is_idle = true,
        .since_us = now_us,
        .at_us = now_us + REQUEST_US,
    };
    TAILQ_INSERT_TAIL(&all->list, it, link);
}

void deadline_fini(struct deadline *it)
{
    TAILQ_REMOVE(&it->all->list, it, link);
}

/* The first request has its time from when the connection was accepted. */
void deadline_begin(struct deadline *it, int64_t now_us)
{
    it->is_idle = false;
    if (it->has_served)
        await_client(it, now_us);
}

void deadline_stop(struct deadline *it, int64_t now_us)
{
    it->has_served = true;
    it->at_us = 0;
    it->whole_us = now_us;
}

void deadline_answer(struct deadline *it, int64_t now_us)
{
    it->has_served = true; /* also if the head alone was answered */
    await_client(it, now_us);
}

void deadline_end(struct deadline *it)
{
    it->is_idle = true;
    it->at_us = it->since_us + IDLE_US;
    to_end(it);
}

/* ---- all deadlines ------------------------------------------------------ */

void deadlines_init(struct deadlines *all, struct metrics *metrics)
{
    TAILQ_INIT(&all->list);
    all->metrics = metrics;
}

static void cut(struct deadline *it)
{
    it->at_us = 0;
    it->all->metrics->connections_cut++;
    /* The library finds it closed. That it was closed already is fine. */
    (void)shutdown(it->fd, SHUT_RDWR);
}

/*
 * Whether anything came since the last request was whole: the library tells of
 * a head only when it is complete.
 */
static bool has_begun_head(const struct deadline *it, int64_t now_us)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    if (getsockopt(it->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return false;
    int64_t came_us = now_us - (int64_t)info.tcpi_last_data_recv * 1000;
    return came_us > it->whole_us + KERNEL_TICKS_US;
}

void deadlines_sweep(struct deadlines *all, int64_t now_us)
{
    for (struct deadline *it = TAILQ_FIRST(&all->list); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        if (it->at_us == 0)
            continue;
        if (now_us >= it->at_us)
            cut(it);
        else if (it->is_idle && it->at_us > now_us + REQUEST_US &&
                 has_begun_head(it, now_us))
            it->at_us = now_us + REQUEST_US;
    }
}

/*
 * Thousands may wait for us, for longer than others are idle: each goes to the
 * end once it was passed, or every newcomer would have to pass them all.
 */
bool deadlines_make_room(struct deadlines *all, int64_t now_us)
{
    const struct deadline *last = TAILQ_LAST(&all->list, deadline_list);
    struct deadline *next = TAILQ_FIRST(&all->list);
    for (struct deadline *it = NULL; it != last;) {
        it = next;
        next = TAILQ_NEXT(it, link);
        if (it->at_us != 0 &&
            (it->is_idle || now_us - it->since_us >= PATIENCE_US)) {
            cut(it);
            return true;
        }
        if (it->at_us == 0)
            to_end(it);
    }
    return false;
}
