/* Apart from members.h: a rule of its own, without nodes. */
/*
 * A change of the names: whether the old ones are dead. Pure.
 *
 * A node that is marked for new names keeps the admission that the mark took
 * from it: it tells that, with all its memory, and promises nothing under it
 * any more. Once a majority of the old names tells so at one instant, no
 * majority of them is left. So all that may still be held is known, and how
 * long it lasts. What counts stands on the nodes, not here: any server may
 * count it. Each admission keeps who is dead: so any server may also take those
 * old nodes that nobody reached before.
 */
#ifndef REDLOCKD_TAKEOVER_H
#define REDLOCKD_TAKEOVER_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/call.h"
#include "../port/port.h"
#include "witness.h"

/* What the last look at a node has found. */
struct takeover_node {
    bool is_seen;   /* there was one, on this connection */
    bool is_marked; /* the mark there is ours */
    bool is_able;   /* or the next look may mark it */
    char admit[CALL_STATE_MAX + 1];
    char mark[CALL_STATE_MAX + 1];
    char taken[CALL_STATE_MAX + 1]; /* or would be; "": it tells nothing */
    char passed[CALL_STATE_MAX + 1];
    char heard[NODES_MAX][INCARNATION_LEN + 1]; /* incarnations of the others */
    int64_t since_us;                           /* this mark was first seen */
    int64_t looked_us;                          /* the look was sent */
    int64_t end_us; /* the last of its promises ends */
    int64_t number; /* the greatest that it has accepted */
};

struct takeover {
    struct takeover_node node[NODES_MAX];
    bool is_over;   /* the old names were dead once: so they are for good */
    int64_t end_us; /* the last of their promises ends */
    int64_t number; /* the greatest that they have accepted */
    char dead[CALL_STATE_MAX + 1]; /* "epoch:fingerprint:" of each that is; our
                                      nodes tell it, too; "": nobody knows */
};

/* Which nodes are counted: those that are marked, those that may be, or also
 * those whose clocks are not known yet. */
enum takeover_when { TAKEOVER_NOW, TAKEOVER_POSSIBLE, TAKEOVER_EARLY };

/* Which configuration must be dead, and whether it is. */
struct takeover_count {
    char base[CALL_STATE_MAX + 1]; /* "epoch:fingerprint:"; "": none was seen */
    int names;                     /* that it has; 0: nobody knows */
    uint16_t tellers;              /* these nodes tell what they promised */
    bool has_others;               /* other names may have counted them, too,
                                      or go on */
    bool is_dead;
};

/* A look, when it was sent and when its reply came. */
struct takeover_look {
    const struct call_look *found;
    bool is_marked; /* by the caller's configuration */
    bool is_ours;   /* it admitted the node, perhaps before a restart */
    int64_t sent_us, now_us;
};

/* The epoch at the start of an admission or a mark; 0: there is none. */
int takeover_epoch_of(const char *text);

/* When all that a node promised has ended, told by a look that comes back now:
 * our clock may be 1% fast. */
int64_t takeover_end_of(const struct call_look *look, int64_t now_us);

/* An admission or a mark as a string. */
void takeover_copy(char to[CALL_STATE_MAX + 1], struct span from);

void takeover_on_look(struct takeover *takeover, const struct witness *witness,
                      int node, const struct takeover_look *from);

/* The connection is new or broken, or the clock stepped: it told a wrong end.
 * The lists that were seen there go on, until a look finds others. */
void takeover_on_lost(struct takeover *takeover, int node);

/* The server's epoch is another: the nodes are looked at again. */
void takeover_begin(struct takeover *takeover);

/*
 * What comes of these nodes: if it is now, of those that were marked at one
 * instant, as a look at each was sent after the last mark was seen; else of
 * those that may be marked. ours: "epoch:fingerprint:", which replaces the
 * others.
 */
void takeover_count(const struct takeover *takeover, const char *ours,
                    uint16_t nodes, bool is_now, struct takeover_count *count);

/* The old names are dead: what all promised that tell is waited for. If there
 * are two lists of one epoch, some tell of one, some of the other. */
void takeover_end(struct takeover *takeover,
                  const struct takeover_count *count);

/* True if the node is marked, and tells: it has not voted since. */
bool takeover_tells(const struct takeover *takeover, int node);

/* The greatest epoch below this one of what was taken there, or would be, and
 * of the marks that were passed since; 0: none. */
int takeover_epoch_below(const struct takeover *takeover, int node, int epoch);

/* True if the node carries an admission of the names that are dead. */
bool takeover_is_of_dead(const struct takeover *takeover, int node);

#endif
