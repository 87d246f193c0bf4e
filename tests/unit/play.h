/* SPDX-License-Identifier: MIT */
/*
 * The engine behind a port whose nodes are played by the test: each call is
 * recorded, each reply is given by hand.
 */
#ifndef PLAY_H
#define PLAY_H

#include "../../server/engine/engine.h"
#include "../../server/engine/port/port.h"
#include "../../server/lock/lock.h"
#include "ballot.h"

enum { PLAY_CALLS_MAX = 256, PLAY_NODES = 5, PLAY_TIMERS = 4096 };

#define PLAY_RUN_ID                                                            \
    "012345678901234567890123456789012345678" /* and a digit                   \
                                               */
#define PLAY_MEMORY "abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd"
#define PLAY_FINGERPRINT "0011223344556677"
#define PLAY_RESOURCE span_of("order:42")
#define PLAY_TOKEN "0000000000000001.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

/* An incarnation, and a quarantine record that has it; a greater digit is
 * later. */
#define PLAY_INCARNATION(digit) "000000000000000" #digit "0123456789"
#define PLAY_NONE "00000000000000000000000000"
#define PLAY_QUARANTINE(digit)                                                 \
    "1:" PLAY_FINGERPRINT ":name:" PLAY_INCARNATION(digit) "::"                \
                                                           "run:" PLAY_MEMORY

/* The nodes' clocks minus ours. */
#define PLAY_EPOCH_US INT64_C(1795221641000000)

struct play_call {
    int node;
    uint64_t tag;
    struct call call;
    char resource[256]; /* its first bytes */
    char token[TOKEN_MAX + 1];
    char admit[CALL_STATE_MAX + 1];
    char nonce[CALL_NONCE_MAX + 1];
    char quarantine[CALL_STATE_MAX + 1];
    char witnesses[CALL_WITNESSES_MAX + 1];
    char found[CALL_STATE_MAX + 1];
    char latest[INCARNATION_LEN + 1];
    char trace[CALL_TRACE_MAX + 1];
    bool is_answered;
};

extern struct play {
    struct engine *engine;
    struct metrics metrics;
    struct play_call sent[PLAY_CALLS_MAX];
    int sent_count;
    int64_t now_us;
    int64_t timer_us[PLAY_TIMERS];
    bool is_refusing[PLAY_NODES]; /* send answers VOTE_STALLED */
    bool is_losing[PLAY_NODES];   /* its link is going down */
    bool is_up[PLAY_NODES];
    bool is_unconfirmed[PLAY_NODES]; /* no fresh connection comes there */
    int64_t offset_us[PLAY_NODES];   /* what its clock is ahead */
    char incarnation[PLAY_NODES][INCARNATION_LEN + 1]; /* of what it carries */
    int news[PLAY_NODES];    /* incarnations of others that it has heard of */
    int64_t rest_us, number; /* what an admitted node has promised */
    int64_t confirmed_us;
    unsigned char random_byte;
    bool is_listening;
    int subscriptions[PLAY_NODES];
    int answers;
    void (*on_answer)(void *client); /* NULL: they are only counted */
} play;

/* Five nodes that vote, nothing sent yet. */
void play_begin(void);
void play_end(void);

/* The same as configured, with no node connected; to be changed before. */
extern const struct engine_settings play_settings;
void play_begin_with(const struct engine_settings *settings);

/* The same with another engine, in the middle of a test. */
void play_begin_again(const struct engine_settings *settings);

/* Lets time pass, with the timers and confirmations that are due in it. */
void play_advance(int64_t us);

/* Lets the random delay pass until so many acquires were sent in all. */
void play_await_round(int calls);

/* The oldest call of this kind to this node that has no reply yet, or NULL. */
struct play_call *play_find(enum call_kind kind, int node);

/* How many calls of this kind were sent. */
int play_count(enum call_kind kind);

/* Replies to that call, or to this one. */
void play_answer(enum call_kind kind, int node, int ballot);
void play_answer_held(enum call_kind kind, int node, const char *value);
void play_reply(struct play_call *sent, struct call_reply reply);
#define PLAY_REPLY(kind, node, ...)                                            \
    play_reply(play_find(kind, node), (struct call_reply){__VA_ARGS__})

/* Reports these tokens, joined by spaces, to a forced release, and how many
 * more there are. */
void play_answer_tokens(int node, const char *tokens, int64_t left);

/* The same of all nodes from <= i < to. */
void play_answer_range(enum call_kind kind, int from, int to, int ballot);
void play_hold_range(enum call_kind kind, int from, int to, const char *value);

/* Two nodes grant, two are held by one value and one by another. */
void play_split_votes(void);

/* Comes up, and is found admitted · comes up only · goes down. */
void play_node_up(int node);
void play_node_connect(int node);
void play_node_down(int node);

/* All nodes come up · the first so many go down. */
void play_nodes_up(void);
void play_nodes_down(int count);

/* Goes down and connects again · and a probe finds that it has lost its data.
 */
void play_reconnect(int node);
void play_lose_memory(int node);

/* A fresh connection confirms the node now. */
void play_confirm(int node);

/*
 * Answers the oldest probe the node. If it is admitted, admit "" is its
 * admission, and it stores what it is told of the others.
 */
void play_answer_probe(int node, enum call_probe_word word, const char *admit,
                       const char *quarantine);

/* Answers all probes of the node · at all nodes, which are admitted. */
void play_answer_probes(int node, enum call_probe_word word,
                        const char *quarantine);
void play_answer_all_probes(void);

/* The hash of the node's name · what it carries when it is admitted; "older":
 * in a life before. Each in a buffer. */
const char *play_name(int node);
const char *play_admission(int node, bool is_older);

/* What the node tells that has heard of this other one only, in a buffer. */
struct span play_heard(int node, int other, int64_t generation,
                       const char *incarnation);

/* The facts that a connection to the node tells now. */
struct node_facts play_facts(int node);

/* Values that other servers of ours gave a lock. */
#define PLAY_TOKEN_OF(digit)                                                   \
    "000000000000000" #digit ".00112233445566778899aabbccddeeff01234567"

#define PLAY_READER_OF(digit)                                                  \
    "000000000000000" #digit "~00112233445566778899aabbccddeeff01234567"

/* The hash of an idempotency key, and such a value of an acquire with it. */
#define PLAY_KEY "0123456789abcdefghij-_"
#define PLAY_OWN(digit) PLAY_TOKEN_OF(digit) "+" PLAY_KEY

/* A token of ours with this number, in a buffer. */
struct span play_token(int64_t number);

/* Calls for PLAY_RESOURCE. Without a TTL, acquires are for 30 s; the one of
 * play_win is granted by the first three nodes. */
engine_op play_acquire_of(struct span owner, int64_t ttl_ms);
engine_op play_acquire(void);
engine_op play_win(void);
engine_op play_ask_again(void); /* an acquire with PLAY_KEY, by "me" */
engine_op play_extend(struct span token, int64_t ttl_ms);
engine_op play_release(struct span token);

/* What came of an operation. */
enum outcome play_outcome(engine_op op);
const struct engine_result *play_result(engine_op op);

#endif
