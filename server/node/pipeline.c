/* SPDX-License-Identifier: MIT */
#include "pipeline.h"

#include <assert.h>

#include "../base/clock.h"

enum { UNSENT_MAX = 8 * 1024 * 1024 }; /* bytes in the wire */

enum { COMMAND_LOAD = CALL_KINDS };

void pipeline_init(struct pipeline *pipeline, struct span prefix)
{
    *pipeline = (struct pipeline){.batch.prefix = prefix};
}

void pipeline_begin(struct pipeline *pipeline, struct wire *wire,
                    const char *sha)
{
    assert(pipeline->count == 0);
    pipeline->wire = wire;
    pipeline->sha = sha;
}

void pipeline_fini(struct pipeline *pipeline)
{
    free(pipeline->ring);
    pipeline->ring = NULL;
}

/* ---- what is pending ----------------------------------------------------- */

/* at: how many are older. */
static struct pipeline_entry *entry_at(const struct pipeline *pipeline,
                                       uint32_t at)
{
    return &pipeline->ring[(pipeline->first + at) & (pipeline->room - 1)];
}

/* False: no memory. */
static bool pipeline_push(struct pipeline *pipeline,
                          struct pipeline_entry entry)
{
    if (pipeline->count == pipeline->room) {
        uint32_t room = pipeline->room > 0 ? 2 * pipeline->room : 64;
        struct pipeline_entry *ring = malloc(room * sizeof *ring);
        if (ring == NULL)
            return false;
        for (uint32_t i = 0; i < pipeline->count; i++)
            ring[i] = *entry_at(pipeline, i);
        free(pipeline->ring);
        pipeline->ring = ring;
        pipeline->room = room;
        pipeline->first = 0;
    }
    *entry_at(pipeline, pipeline->count++) = entry;
    return true;
}

/* ---- sending ------------------------------------------------------------ */

bool pipeline_append(struct pipeline *pipeline)
{
    struct batch_command command;
    if (pipeline->batch.calls > 0) {
        batch_command(&pipeline->batch, pipeline->sha, &command);
        batch_reset(&pipeline->batch);
        if (!wire_append(pipeline->wire, command.args, command.count))
            pipeline->is_broken = true;
    }
    return !pipeline->is_broken;
}

enum vote pipeline_call(struct pipeline *pipeline, const struct call *call,
                        uint64_t tag)
{
    if (pipeline->is_broken || pipeline->count >= PIPELINE_PENDING_MAX ||
        wire_unsent(pipeline->wire) > UNSENT_MAX)
        return VOTE_STALLED;
    if (!batch_add(&pipeline->batch, call)) {
        if (!pipeline_append(pipeline))
            return VOTE_STALLED;
        bool is_added = batch_add(&pipeline->batch, call);
        assert(is_added); /* an empty batch takes any call */
    }
    struct pipeline_entry entry = {.tag = tag,
                                   .command = (int)call->kind,
                                   .is_first = pipeline->batch.calls == 1};
    if (entry.is_first)
        entry.sent_us = clock_now_us();
    if (pipeline_push(pipeline, entry))
        return VOTE_PENDING;
    pipeline->is_broken = true; /* the batch has a call that the ring lacks */
    return VOTE_STALLED;
}

bool pipeline_load(struct pipeline *pipeline, const struct span *args,
                   int count)
{
    struct pipeline_entry entry = {
        .sent_us = clock_now_us(), .command = COMMAND_LOAD, .is_first = true};
    return pipeline_append(pipeline) && pipeline_push(pipeline, entry) &&
           wire_append(pipeline->wire, args, count);
}

/* ---- receiving ---------------------------------------------------------- */

int64_t pipeline_oldest_us(const struct pipeline *pipeline)
{
    return pipeline->count > 0 ? entry_at(pipeline, 0)->sent_us : 0;
}

/* Calls of one batch share the time of the first. False: nothing is owed. */
static bool take_oldest(struct pipeline *pipeline, struct pipeline_entry *entry,
                        struct pipeline_reply *reply)
{
    if (pipeline->count == 0)
        return false;
    *entry = *entry_at(pipeline, 0);
    pipeline->first = (pipeline->first + 1) & (pipeline->room - 1);
    pipeline->count--;
    if (entry->is_first)
        pipeline->sent_us = entry->sent_us;
    reply->tag = entry->tag;
    reply->sent_us = pipeline->sent_us;
    return true;
}

static enum pipeline_next pipeline_take_call(struct pipeline *pipeline,
                                             struct pipeline_reply *reply)
{
    struct pipeline_entry entry;
    bool is_there = take_oldest(pipeline, &entry, reply);
    assert(is_there && pipeline->unread > 0); /* pipeline_next counted */
    pipeline->unread--;
    reply->script =
        batch_next(&pipeline->reader, (enum call_kind)entry.command);
    return PIPELINE_CALL;
}

enum pipeline_next pipeline_next(struct pipeline *pipeline, int64_t received_us,
                                 struct pipeline_reply *reply)
{
    const struct wire_reply *from;
    struct pipeline_entry entry;
    if (pipeline->unread > 0)
        return pipeline_take_call(pipeline, reply);
    enum wire_next next = wire_next(pipeline->wire, &from);
    if (next != WIRE_REPLY)
        return next == WIRE_NONE ? PIPELINE_NONE : PIPELINE_GARBAGE;
    /* whether a command was sent that a reply read at received_us can answer */
    if (pipeline->count <= (uint32_t)pipeline->batch.calls ||
        entry_at(pipeline, 0)->sent_us >= received_us)
        return PIPELINE_UNASKED;
    if (entry_at(pipeline, 0)->command == COMMAND_LOAD) {
        (void)take_oldest(pipeline, &entry, reply); /* counted above */
        reply->loaded = from;
        return PIPELINE_LOADED;
    }
    uint32_t answered = 1; /* the oldest, up to the next that is_first */
    while (answered < pipeline->count &&
           !entry_at(pipeline, answered)->is_first)
        answered++;
    pipeline->unread = (int)answered;
    batch_read(&pipeline->reader, from->fields, from->count, pipeline->unread);
    return pipeline_take_call(pipeline, reply);
}

bool pipeline_drop(struct pipeline *pipeline, struct pipeline_reply *reply)
{
    struct pipeline_entry entry;
    batch_reset(&pipeline->batch);
    pipeline->unread = 0;
    pipeline->is_broken = false;
    while (take_oldest(pipeline, &entry, reply)) {
        if (entry.command == COMMAND_LOAD)
            continue;
        reply->script = (struct call_reply){.vote = VOTE_DISCONNECTED};
        return true;
    }
    return false;
}
