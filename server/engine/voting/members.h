/* SPDX-License-Identifier: MIT */
/*
 * The permission to vote of each node, as this server sees and manages it.
 * Pure: events come in, and the caller asks for the next action.
 *
 * The permission is stored on the node, in the field admit of its state hash.
 * Acquire and extend compare it; it is lost with the node's data. A node
 * without it is quarantined, and waits until everything that it may have lost
 * has ended, as the Redlock text asks after a crash.
 * docs/internals/guarantees.md has the rules and the reasons.
 *
 *            up             probe
 *   DOWN ────────→ UNSEEN ─────────┬→ EMPTY ──┐ all nodes are: first start
 *    ↑ down          ↑             │          ↓
 *    └── from any    │ a vote says ├→ QUARANTINED ─→ admit, readmit ┐
 *                    │ quarantined │   one of the rules holds       │
 *                    │             ├→ OTHER, SUPERSEDED, MISNAMED   │
 *                    │             ↓                                │
 *                    └────────── ADMITTED ←─────────────────────────┘
 *                    └─ revoke ←───┘  its clock stepped
 */
#ifndef REDLOCKD_MEMBERS_H
#define REDLOCKD_MEMBERS_H

#include "../port/port.h"
#include "firststart.h"
#include "witness.h"

enum {
    HEARTBEAT_US = 1000000, /* between two probes of a node */
    /* a machine whose generation does not rise for so long is gone */
    SILENT_US = 10 * HEARTBEAT_US,
    /* what a probe saw of the data shows nothing after this time */
    TRACE_US = 5 * HEARTBEAT_US,
};

enum member_phase {
    MEMBER_DOWN,
    MEMBER_UNSEEN, /* after a connection, an action or a refusal */
    MEMBER_EMPTY,
    MEMBER_QUARANTINED,
    MEMBER_ADMITTED,
    MEMBER_OTHER,
    MEMBER_SUPERSEDED,
    MEMBER_MISNAMED,
};

/*
 * What the other nodes have promised, asked on behalf of a quarantined node.
 * Only carriers of its incarnation are asked, and only probes count that were
 * sent after all of them carried it.
 */
struct member_asked {
    uint32_t joins;   /* of the witness, when the last carrier joined */
    int64_t since_us; /* when it joined */
    uint16_t again;   /* the nodes that answered a probe sent since then;
                         complete with a majority of all nodes */
    int64_t end_us;   /* the last of their promises ends */
    int64_t number;   /* the greatest that they have accepted */
};

struct member {
    enum member_phase phase;
    bool is_busy;     /* an action is under way */
    bool is_mute;     /* the last probe of it failed */
    bool must_revoke; /* its locks may have ended too early */
    int64_t probe_due_us;
    int64_t not_before_us; /* no action before then: the last one failed */

    /* from its connection and its clock */
    char run_id[CALL_STATE_MAX + 1];
    char admit[CALL_STATE_MAX + 1]; /* what it must carry, without the
                                       replication ID */
    bool is_durable;                /* now */
    bool is_clock_good;
    int64_t moved_us; /* came up at another address, and has no data of its
                         name; 0: no */

    /* the last probe of it */
    int64_t probed_us;              /* was sent, on this connection; 0: none */
    int64_t burst_us;               /* probes are counted since then … */
    int burst;                      /* … and so many were sent */
    char found[CALL_STATE_MAX + 1]; /* the admission that it has */
    char quarantine[CALL_STATE_MAX + 1]; /* its record; "": none */
    /* of its admission or quarantine record; "": none */
    char incarnation[INCARNATION_LEN + 1];
    char trace[CALL_TRACE_MAX + 1]; /* "": none on this connection */
    bool was_durable;               /* ever since its admission */
    bool is_restarted;  /* quarantined, and found is its own, from before a
                           restart */
    bool is_outdated;   /* a later incarnation of the node is known */
    int64_t max_ttl_ms; /* as stored there by each admission; 0: none */
    int64_t held_us;    /* all it has promised has ended by then */
    int64_t generation;

    /* the epochs there; 0: none */
    int epoch_ours;  /* of an admission or a quarantine record of our nodes */
    int epoch_other; /* of an admission of other nodes */
    int epoch_quarantine;      /* of a quarantine record of other nodes */
    bool is_only_quarantined;  /* epoch_ours is of a quarantine record, and it
                                  has never voted */
    bool is_quarantined_above; /* of our nodes, with a quarantine record of a
                                  higher epoch */

    /* our quarantine record was gone, its data was not: another configuration
     * replaces the record */
    int replaced;        /* so often, with no pause of SILENT_US between */
    int64_t replaced_us; /* the last time; 0: never */

    /* all probes of it */
    bool is_known;             /* it has once answered one */
    bool has_voted;            /* one has once found it admitted */
    uint32_t life;             /* counts the incarnations that were seen */
    int64_t sighted_us;        /* when the quarantine record was first seen */
    int64_t news_us;           /* probes of the others must be later */
    struct member_asked asked; /* while it is quarantined */
    int64_t left_us; /* it seems to be left over, unused since then; 0: no */
    int64_t left_generation; /* at that time */
    int64_t other_us; /* last seen with another configuration; 0: never */
};

/*
 * A change of the names: a node that is quarantined for new names keeps the
 * admission that the quarantine record took from it: it tells that, with all
 * its data, and promises nothing under it any more. Once a majority of the old
 * names reports so at one instant, no majority of them is left. So all that may
 * still be held is known, and how long it lasts. What counts stands on the
 * nodes, not here: any server may count it. Each admission keeps who is dead:
 * so any server may also take those old nodes that nobody reached before.
 */
struct takeover_node {
    bool is_seen;        /* by a probe on this connection */
    bool is_quarantined; /* the quarantine record there is ours */
    bool is_able;        /* or the next probe may quarantine it */
    char quarantine[CALL_STATE_MAX + 1];
    char taken[CALL_STATE_MAX + 1]; /* or would be; "": it reports nothing */
    char passed[CALL_STATE_MAX + 1];
    char learned[NODES_MAX]
                [INCARNATION_LEN + 1]; /* incarnations of the others */
    int64_t since_us; /* this quarantine record was first seen */
    int64_t end_us;   /* the last of its promises ends */
    int64_t number;   /* the greatest that it has accepted */
};

struct takeover {
    struct takeover_node node[NODES_MAX];
    bool is_over;   /* the old names were dead once: so they are for good */
    int64_t end_us; /* the last of their promises ends */
    int64_t number; /* the greatest that they have accepted */
    char dead[CALL_STATE_MAX + 1]; /* "epoch:fingerprint:" of each that is; our
                                      nodes report it, too; "": nobody knows */
};

struct members {
    struct engine_settings settings;
    int quorum;
    struct member node[NODES_MAX];
    struct firststart start;
    struct witness witness;
    struct takeover takeover;
    int epoch;               /* of the configuration */
    bool is_epoch_known;     /* a majority has reported it */
    bool is_succeeded;       /* newer names have taken nodes from ours */
    bool is_queried;         /* a majority has once answered probes */
    int64_t established_us;  /* first saw an admission of our nodes; 0: never */
    int established_epoch;   /* the last epoch in which it saw one */
    int64_t epoch_us;        /* first saw one in that epoch; 0: never */
    bool has_median;         /* a majority of the clocks is known */
    int64_t median_ahead_us; /* their median minus our clock */
};

/* An action on a node. */
enum member_action_kind {
    MEMBER_OBSERVE, /* a probe that quarantines nothing */
    MEMBER_PROBE,
    MEMBER_ADMIT,
    MEMBER_READMIT,
    MEMBER_REVOKE,
};

struct member_action {
    enum member_action_kind kind;
    int node;
};

/* settings are copied. No node is connected yet. */
void members_init(struct members *members,
                  const struct engine_settings *settings);

/*
 * The next action at now_us; false: there is none. It counts as begun: the
 * caller reports its end by members_on_probe, _on_done, _on_failure or
 * _on_down.
 */
bool members_next(struct members *members, int64_t now_us,
                  struct member_action *action);

/*
 * The events. probe: the answer to a probe that was sent at sent_us;
 * done: to another action, carried out or not; failure: an action got no
 * answer, or an error. quarantined: a vote found no admission. durable: a later
 * check of whether it is. generation: a reply carried it.
 */
void members_on_up(struct members *members, int node,
                   const struct node_facts *facts, int64_t now_us);
void members_on_down(struct members *members, int node);
void members_on_probe(struct members *members, int node,
                      const struct call_probe *probe, int64_t sent_us,
                      int64_t now_us);
void members_on_done(struct members *members,
                     const struct member_action *action, int64_t now_us);
void members_on_failure(struct members *members,
                        const struct member_action *action, int64_t now_us);
void members_on_quarantined(struct members *members, int node, int64_t now_us);
void members_on_step(struct members *members, int node);
void members_on_durable(struct members *members, int node, bool is_durable,
                        int64_t now_us);
void members_on_generation(struct members *members, int node,
                           int64_t generation);

/* Asks for a probe as soon as no other action is under way on the node. */
void members_want_probe(struct members *members, int node, int64_t now_us);

/* True if this server objects to any first start: it saw an admission a
 * heartbeat ago. A later one may be the first of a first start. */
bool members_is_objecting(const struct members *members, int64_t now_us);

/* Why the node is not asked for votes; STATE_NONE: it is. */
enum node_state members_refusal(const struct members *members, int node);

/* Another configuration waits for the node, too, and neither gets it. */
bool members_is_contested(const struct members *members, int node);

bool members_is_unseen(const struct members *members, int node);

/*
 * True if the node's answers in this life still count: it was not admitted anew
 * since, and no later incarnation became known under its name.
 */
bool members_has_data(const struct members *members, int node, uint32_t life);

/* ---- the rules: rules.c -------------------------------------------- */

/*
 * A node gets its permission to vote if one of these holds, and no later
 * incarnation is known under its name.
 *
 *   asked    a majority of all nodes, not counting this one, knew its
 *            quarantine record and reported when their last promise ends; that
 *            time has passed
 *   taken    it has new names, and has not voted since it was taken from the
 *            old ones; a majority of these is dead, and reported when their
 *            last promise ends, and that time has passed
 *   in time  nobody can be asked, and Q has passed since the quarantine record
 *            was seen
 *   back     its data is durable, and no server has reported a later one,
 *            although each had two heartbeats to do so
 *
 * due: it is to be admitted, by one of the first three. back: readmitted.
 */
bool rules_is_due(const struct members *members, int node, int64_t now_us);
bool rules_is_back(const struct members *members, int node, int64_t now_us);

/* True if a restart costs it nothing: its data is durable, and no later one
 * is known. */
bool rules_is_lasting(const struct members *members, int node);

/* The greatest TTL that any server is known to allow, ms. */
int64_t rules_greatest_ttl_ms(const struct members *members);

/*
 * Q, µs: all that a node may have lost has expired. That are its locks,
 * even if our clock runs 1% fast; its numbers, within four windows; and the
 * grants of servers for which its name leads to another machine
 * (CONFIRMED_US).
 */
int64_t rules_quarantine_us(const struct members *members);

/*
 * The rest of the node's quarantine, at most, with the wait for a first start
 * before it; 0: there is none.
 */
int64_t rules_remaining_us(const struct members *members, int node,
                           int64_t now_us);

/*
 * The earliest of the last probes of the connected nodes; INT64_MAX: none is
 * connected. Nodes that answer with errors are left out.
 */
int64_t rules_probed_us(const struct members *members);

/* The node accepted none above this number before its loss, or was taken. */
int64_t rules_number(const struct members *members, int node);

/* A probe of an admitted node reported its promises. */
void rules_on_report(struct members *members, int node,
                     const struct call_probe *probe, int64_t now_us);

/*
 * outdated  a later incarnation than that of its admission or quarantine record
 *           is known under its name: another machine has that name, and this
 *           one does not count
 * elsewhere the name led here only lately, and the machine that it led to
 *           before may still vote for other servers
 * renew     the other machine has been silent for so long that this one may be
 *           quarantined; or its quarantine record has a higher epoch, but a
 *           majority is admitted with ours; or it has never voted, and ours is
 *           right
 * others    it has other names, whose servers may use it
 * this life the admission there is from before, but of this run_id: only the
 *           replication ID has changed
 */
bool rules_is_outdated(const struct members *members, int node);
bool rules_may_be_elsewhere(const struct members *members, int node,
                            int64_t now_us);
bool rules_may_renew(const struct members *members, int node, int64_t now_us);
bool rules_is_others(const struct members *members, int node, int64_t now_us);
bool rules_is_in_this_life(const struct members *members, int node);

/* ---- configurations: rules.c --------------------------------------- */

/* Notes which epochs the node carries, with this quarantine record and what was
 * found. */
void rules_note_epochs(struct members *members, int node,
                       struct span quarantine);

/*
 * If the nodes carry the names of this server, their epoch counts, and not the
 * one that was given, which is for a change of the names. Once a majority has
 * reported it, only a higher one of a majority is followed. True: the epoch is
 * another one from now on.
 */
bool rules_follow_epoch(struct members *members);

/*
 * The epoch that this node carries with our names; 0: none that counts. A
 * quarantine record on a node that has never voted replaced nobody, and may be
 * by a server with a wrong epoch. So it counts only if no node carries anything
 * but such quarantine records.
 */
int rules_epoch_of(const struct members *members, int node);

/* The greatest epoch below ours that a node carries; 0: there is none. */
int rules_epoch_below(const struct members *members);

/* True if this server has seen an admission of the epoch that it has now. */
bool rules_is_established(const struct members *members);

/*
 * No node is admitted while another configuration was seen on some node within
 * Q (other), or before the old names are dead (taken over).
 */
bool rules_has_other(const struct members *members, int64_t now_us);
bool rules_has_taken_over(const struct members *members);

/*
 * word         the operator says that the old servers are stopped. That is said
 *              of one epoch: the quarantine records of another, which is
 *              followed, may be of a change whose old servers go on
 * taking over  new names have no admitted node yet, and there is no such word
 */
bool rules_has_word(const struct members *members);
bool rules_is_taking_over(const struct members *members);

/*
 * True if this server may replace the configuration that the nodes carry: its
 * epoch is the next one, and the old names will be dead. Refused: it may not,
 * whatever clocks turn out to be.
 */
bool rules_may_take_over(const struct members *members);
bool rules_is_refused(const struct members *members);

/* After a probe: perhaps the old names are dead now. */
void rules_on_taken(struct members *members);

/*
 * After a probe: true if the node is left over. It carries an admission under
 * its name here, but with other names beside it, of a lower epoch than one that
 * our nodes have voted in: its data is from before the names changed. And no
 * server has used that for a while, or its generation would rise; or they are
 * dead.
 */
bool rules_note_left_over(struct members *members, int node, int64_t now_us);

/* ---- a change of the names: takeover.c ------------------------------ */

/* Which nodes are counted: those that are quarantined at one instant, as a
 * probe of each was sent after the last quarantine record was seen; those that
 * may be quarantined; or also those whose clocks are not known yet. */
enum takeover_when { TAKEOVER_NOW, TAKEOVER_POSSIBLE, TAKEOVER_EARLY };

/* Which configuration must be dead, and whether it is, or would be. */
struct takeover_count {
    char base[CALL_STATE_MAX + 1]; /* "epoch:fingerprint:"; "": none was seen */
    int names;                     /* that it has; 0: nobody knows */
    uint16_t reporters;            /* these nodes report what they promised */
    bool has_others;               /* other names may have counted them, too,
                                      or go on */
    bool is_dead;
};

void takeover_count(const struct members *members, enum takeover_when when,
                    struct takeover_count *count);

/* The epoch at the start of an admission or a quarantine record; 0: there is
 * none. */
int takeover_epoch_of(const char *text);

/* When all that a node promised has ended, told by a probe that comes back now:
 * our clock may be 1% fast. */
int64_t takeover_end_of(const struct call_probe *probe, int64_t now_us);

/* Whether an admission or a quarantine record is of our nodes. */
bool takeover_is_ours(const struct members *members, const char *state);

/* An admission or a quarantine record as a string. */
void takeover_copy(char to[CALL_STATE_MAX + 1], struct span from);

/* What a probe reports besides that which the member knows already. */
void takeover_on_probe(struct members *members, int node,
                       const struct call_probe *probe, int64_t now_us);

/* The connection is new or broken, or the clock stepped: it reported a wrong
 * expiry. The lists that were seen there go on, until a probe finds others. */
void takeover_on_lost(struct takeover *takeover, int node);

/* The server's epoch is another: the nodes are probed again. */
void takeover_begin(struct takeover *takeover);

/* The old names, of base, are dead: what all promised that tell is waited for.
 * If there are two lists of one epoch, some tell of one, some of the other. */
void takeover_end(struct takeover *takeover, const char *base);

/* True if the node is quarantined, and tells: it has not voted since. */
bool takeover_reports(const struct takeover *takeover, int node);

/* The greatest epoch below ours of what was taken there, or would be, and of
 * the quarantine records that were passed since; 0: none. */
int takeover_epoch_below(const struct members *members, int node);

/* True if the node carries an admission of the names that are dead. */
bool takeover_is_of_dead(const struct members *members, int node);

#endif
