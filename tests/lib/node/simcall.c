/* SPDX-License-Identifier: MIT */
/*
 * Copies of calls and replies, and what calls are called.
 */
#include <assert.h>

#include "simnode.h"

static void keep(struct span *span, char *storage, size_t room)
{
    assert(span->len <= room);
    if (span->ptr != storage)
        (void)span_copy(storage, *span);
    span->ptr = storage;
}

void simcall_copy(struct simcall *copy, const struct call *call)
{
    copy->call = *call;
    copy->names =
        call->kind != CALL_SCAN /* which has but the beginning of names */
            ? simnode_resource_numbers(call->resource, copy->resources)
            : 0;
    copy->resource = copy->names > 0 ? copy->resources[0] : -1;
    keep(&copy->call.resource, copy->resource_names,
         sizeof copy->resource_names);
    keep(&copy->call.token, copy->token, sizeof copy->token);
    keep(&copy->call.admit, copy->admit, sizeof copy->admit);
    keep(&copy->call.nonce, copy->nonce, sizeof copy->nonce);
    keep(&copy->call.found, copy->found, sizeof copy->found);
    keep(&copy->call.quarantine, copy->quarantine, sizeof copy->quarantine);
    keep(&copy->call.dead, copy->dead, sizeof copy->dead);
    keep(&copy->call.latest, copy->latest, sizeof copy->latest);
    keep(&copy->call.witnesses, copy->witnesses, sizeof copy->witnesses);
    keep(&copy->call.trace, copy->trace, sizeof copy->trace);
    keep(&copy->call.key_hash, copy->key_hash, sizeof copy->key_hash);
}

void simreply_keep(struct simreply *answer)
{
    struct call_reply *reply = &answer->reply;
    keep(&reply->value, answer->value, sizeof answer->value);
    keep(&reply->slots, answer->slots, sizeof answer->slots);
    keep(&reply->names, answer->names, sizeof answer->names);
    keep(&reply->probe.admit, answer->admit, sizeof answer->admit);
    keep(&reply->probe.quarantine, answer->quarantine,
         sizeof answer->quarantine);
    keep(&reply->probe.taken, answer->taken, sizeof answer->taken);
    keep(&reply->probe.passed, answer->passed, sizeof answer->passed);
    keep(&reply->probe.witnesses, answer->witnesses, sizeof answer->witnesses);
    keep(&reply->probe.trace, answer->trace, sizeof answer->trace);
}

const char *simcall_name(enum call_kind kind)
{
    static const char *const names[CALL_KINDS] = {
        [CALL_PROBE] = "probe",     [CALL_ADMIT] = "admit",
        [CALL_READMIT] = "readmit", [CALL_REVOKE] = "revoke",
        [CALL_ACQUIRE] = "acquire", [CALL_REPEAT] = "repeat",
        [CALL_EXTEND] = "extend",   [CALL_REPLICATE] = "replicate",
        [CALL_RELEASE] = "release", [CALL_INSPECT] = "inspect",
        [CALL_TOKENS] = "tokens",   [CALL_LISTEN] = "listen",
        [CALL_SCAN] = "scan",       [CALL_SLOTS] = "slots",
    };
    assert(kind < CALL_KINDS);
    return names[kind];
}

const char *simcall_probe_word(enum call_probe_word word)
{
    static const char *const words[PROBE_WORDS] = {
        [PROBE_ADMITTED] = "ADMITTED",
        [PROBE_SUPERSEDED] = "SUPERSEDED",
        [PROBE_OTHER] = "OTHER",
        [PROBE_MISNAMED] = "MISNAMED",
        [PROBE_EMPTY] = "EMPTY",
        [PROBE_BARE] = "BARE",
        [PROBE_FRESH] = "FRESH",
        [PROBE_CREATED] = "CREATED",
        [PROBE_QUARANTINED] = "QUARANTINED",
    };
    assert(word < PROBE_WORDS);
    return words[word];
}
