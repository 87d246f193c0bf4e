/* SPDX-License-Identifier: MIT */
/* Other names, once the old ones are dead: rule 12 of docs/internals/guarantees.md.
 *
 * Configuration 0 are the old names, and all its machines vote. Three names
 * become five; with SHRINKS five become three, with OUTSIDE three become three
 * others, of which one stays. There may be several lists of new names: with
 * RIVALS two of one epoch share four old names, with LATER the second one has a
 * higher epoch, with NEXT it has most names of the first one, with THIRD there
 * are three, one epoch after the other. With BACK the second list are the old
 * names again. With LEFT the first list has quarantined all its nodes, and its
 * servers have stopped before one votes. With JOINS machine 0 is that of another
 * installation, of the same epoch as the old names; with LOWER it has a higher
 * one, and the new list has one old name only.
 *
 * A machine that is quarantined for new names keeps what it was taken from, and
 * which quarantines it has passed. A server may not reach some of the machines. With
 * MOVES the last machine answers to name 0 as well; it has no memory. As in
 * loss.pml there is no time: what a client was promised ends at any moment,
 * everywhere at once. Two clients ask servers of two configurations, or with
 * BOTH_NEW of the same new one. Rule 6, which loss.pml has, is one step. That
 * a list must be able to replace the old one before it quarantines anything is left
 * out: it saves work, and nothing else depends on it.
 *
 * With IN_USE the old servers go on: those of new names that have not counted
 * them take no machine from them, and admit none by time, unless an admission
 * tells that they are dead. They reach all machines, but one is paused until
 * the first is admitted; and the server that has counted dies when two are.
 * With WORD nobody has counted: one was taken by the operator's word, who was
 * wrong.
 *
 * Rules that can be switched off:
 *   ANY_TELLS    a node that had no permission when it was quarantined is asked, too
 *   ANY_QUARANTINE     so is one that is quarantined for other new names
 *   FEW          they need be no majority of the old names
 *   NO_OLD_INCARNATION a machine may tell although its name had a later one
 *   UNTOLD       what they promised need not end
 *   MEMORY       a server counts those whom it took, whatever they are now
 *   BY_Q         if too few tell, it waits until nothing is promised any more
 *   AT_ONCE      those that tell nothing are admitted with those that do
 *   OLD_LIFE     what was taken is told after a loss, too
 *   NO_OTHERS    other new names may have counted the old ones as well
 *   NO_PASSED    only the last quarantine record tells of other new names
 *   ONE_PASSED   and the one before it
 *   TAKES_EQUAL  a quarantine record that took the node yields to an equal epoch. Nobody gets
 *                the lock twice, but two servers may go on for ever: FIGHTS
 *   NO_BACK      other new names do harm though a majority of their nodes has
 *                quarantine records of a higher epoch instead of theirs
 *   BACK_FEW     as many nodes are enough as a majority of the old names has
 *   BACK_EQUAL   so are quarantine records of the same epoch. Alone it does no harm: they
 *                replace none; with TAKES_EQUAL it does
 *   COUNTED_ONLY of two lists that are replaced, what one has promised need not
 *                end
 *   LOWER_DEAD   lists of a lower epoch than those replaced are dead
 *   OTHER_WORD   the operator's word for another epoch counts for one that is
 *                followed, as a majority carries its quarantine records
 *   NO_DEAD      no admission tells who is dead
 *   WORD_IS_DEAD those whom the operator's word replaced are told as dead
 *   BY_TIME      servers of these configurations, a bit each, admit a node when
 *                nothing is promised any more; new ones, once one was admitted
 *                for them. Of the old ones that is what remains: a server that
 *                was cut off all the time
 */
#ifdef SHRINKS
#define NAMES_0 31
#define NAMES_1 7
#ifdef MOVES
#define ASKS_0 25
#define ASKS_1 6
#elif !defined(BOTH_NEW)
#define ASKS_0 28
#define ASKS_1 3
#endif
#elif defined(OUTSIDE)
#define NAMES_0 7
#define NAMES_1 28
#define ASKS_0 3
#define ASKS_1 24
#elif defined(BOTH_NEW)
#define ASKS_0 13
#define ASKS_1 26
#elif defined(RIVALS)
#define ALL 4
#define NAMES_0 15
#define NAMES_1 7
#define NAMES_2 14
#define EPOCH_2 2
#ifdef APART
#define LOSERS 0
#define TOLD 0
#define ASKS_0 3
#define ASKS_1 12
#endif
#elif defined(LATER)
#define NAMES_0 31
#define NAMES_1 28
#define NAMES_2 7
#elif defined(NEXT)
#define ALL 4
#define NAMES_0 7
#define NAMES_1 14
#define NAMES_2 13
#elif defined(JOINS)
#define ANOTHER
#define NAMES_0 14
#define NAMES_1 7
#define NAMES_2 1
#define EPOCH_2 1
#elif defined(LOWER)
#define ANOTHER
#define NAMES_0 14
#define NAMES_1 3
#define NAMES_2 1
#define EPOCH_1 3
#define EPOCH_2 2
#elif defined(THIRD)
#define ALL 6
#define NAMES_0 15
#define NAMES_1 62
#define NAMES_2 2
#define NAMES_3 7
#define LOSERS 0
#define TOLD 0
#define BY_TIME 2
#ifdef APART
#define ASKS_0 56
#define ASKS_1 7
#endif
#elif defined(BACK)
#define NAMES_0 7
#define NAMES_1 31
#define NAMES_2 7
#define LOSERS 0
#define TOLD 0
#define BY_TIME 2
#ifdef APART
#define ASKS_0 28
#define ASKS_1 3
#endif
#endif
#ifdef IN_USE
#define LOSERS 0
#define TOLD 0
#define BY_TIME 2
#endif
#ifdef ANOTHER
#define ALL 4
#define LOSERS 0
#define TOLD 0
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define NO_LOCKS
#include "common.pml"

/* The configurations; 0 has the epoch 1. */
#ifndef NAMES_0
#define NAMES_0 7
#endif
#ifndef NAMES_1
#define NAMES_1 31
#endif
#ifndef NAMES_2
#define NAMES_2 0
#endif
#ifndef NAMES_3
#define NAMES_3 0
#endif
#ifndef EPOCH_1
#define EPOCH_1 2
#endif
#ifndef EPOCH_2
#define EPOCH_2 3
#endif
#define CONFIGURATIONS 4
#if NAMES_3 != 0
#define LAST 3
#else
#define LAST 2
#endif
#define EPOCH(d) \
    ((d) == 0 -> 1 : ((d) == 1 -> EPOCH_1 : ((d) == 2 -> EPOCH_2 : 4)))
#define NAMES(d) \
    ((d) == 0 -> NAMES_0 : \
     ((d) == 1 -> NAMES_1 : ((d) == 2 -> NAMES_2 : NAMES_3)))

#ifndef ALL
#define ALL 5
#endif
#define SECOND ALL
#ifdef MOVES
#define MACHINES (ALL + 1)
#else
#define MACHINES ALL
#endif
#define NAME(m) ((m) == SECOND -> 0 : (m))
#define OF(who, name) ((who) * ALL + (name))

/* To have an end: a client asks only some names, only some machines forget, and
 * only incarnations of these and of fresh ones are told; the second machine may be
 * missing; quarantine records of one epoch that took nothing replace each other only while
 * there were fewer than MARKS. With THIRD, BACK and IN_USE none forgets, and
 * fresh ones are admitted by time alone; with APART no client asks whom the
 * other one asks. */
#ifndef QUARANTINES
#define QUARANTINES 3
#endif
#ifndef ASKS_0
#define ASKS_0 63
#endif
#ifndef ASKS_1
#define ASKS_1 63
#endif
#ifndef LOSERS
#define LOSERS 31
#endif
#ifndef TOLD
#define TOLD (LOSERS | ~NAMES_0)
#endif
#ifdef MOVES
#define TELLS_OF(m) (NAME(m) == 0 || (TOLD & BIT(m)))
#else
#define TELLS_OF(m) (TOLD & BIT(m))
#endif
#define ASKS(c, name) ((c == 0 -> ASKS_0 : ASKS_1) & BIT(name))

/* The machines. */
#define UNMARKED 0
#define QUARANTINED 1
#define ADMITTED 2
byte phase[MACHINES];
byte under[MACHINES];          /* the configuration */
byte incarnation[MACHINES];          /* of the quarantine record or the admission */
byte taken[MACHINES];          /* 1 + the incarnation before; 0: it tells nothing */
byte from[MACHINES];           /* the configuration that it was taken from */
byte passed[MACHINES];         /* whose quarantine records were replaced since: a bit each */
byte carries[MACHINES * ALL];  /* the latest incarnations told of the others */
byte lock[MACHINES];           /* client + 1; 0: free */
byte promised[MACHINES];       /* what has not ended: a bit a client */
byte incarnations[ALL];              /* how many there were of a name */

/* The clients. */
byte asked[CLIENTS];           /* the configuration of its servers */
byte votes[CLIENTS], known[CLIENTS * ALL];
bit holds[CLIENTS];

/* The servers of new names: one for each configuration, or two for the first. */
#undef SERVERS
#define SERVERS 3
#ifdef TWO_SERVERS
#define SERVES(s) 1
#else
#define SERVES(s) ((s) + 1)
#endif
byte seen[SERVERS * MACHINES]; /* the incarnation of the quarantine record; 0: none was seen */
bit is_over[SERVERS];          /* it has counted enough once */
byte awaited[SERVERS];         /* what these had promised, and has not ended */
byte told[SERVERS];            /* machines that it took: MEMORY */
byte latest[SERVERS * ALL];    /* of the new names */
byte established;              /* one was admitted for it: a bit each */
#if defined(IN_USE) || NAMES_2 != 0
#define HAS_DEAD
byte buried[SERVERS];          /* those that are dead: a bit each */
byte dead[MACHINES];           /* and that it tells of */
#endif
#ifdef FIGHTS
byte took[SERVERS];            /* from a rival; it counts to 2 */
#endif
#define SEEN(s, m) seen[(s) * MACHINES + (m)]

/* ---- the rules ---------------------------------------------------------- */

/* As in takeover.c. Sets of machines and of configurations are a bit each. */
c_code {
    static const unsigned char names_of[] = {NAMES_0, NAMES_1, NAMES_2,
                                             NAMES_3};
    static const unsigned char epoch_of[] = {1, EPOCH_1, EPOCH_2, 4};

    static int name_of(int m)
    {
        return m == SECOND ? 0 : m;
    }

    static int count_of(int set)
    {
        return __builtin_popcount(set);
    }

    static int quorum_of(int d)
    {
        return count_of(names_of[d]) / 2 + 1;
    }

    static int has_name(int d, int m)
    {
        return names_of[d] >> name_of(m) & 1;
    }

    static int has_majority(int c)
    {
        return count_of(now.votes[c]) >= quorum_of(now.asked[c]);
    }

    /* ---- rule 6, at once ---- */

    static int is_beside(int m, int other)
    {
        return other != m && name_of(other) != name_of(m) &&
               now.phase[other] == ADMITTED &&
               now.under[other] == now.under[m];
    }

    static int knows(int other, int m)
    {
        return now.carries[other * ALL + name_of(m)];
    }

    static int is_outdated(int m)
    {
        for (int k = 0; k < MACHINES; k++)
            if (is_beside(m, k) && knows(k, m) > now.incarnation[m])
                return 1;
        return 0;
    }

    /* Others have told its incarnation, and what they promised has ended. */
    static int is_told(int m)
    {
        int names = 0;
        for (int k = 0; k < MACHINES; k++)
            if (is_beside(m, k) && now.promised[k] == 0 &&
                knows(k, m) == now.incarnation[m] && !is_outdated(k))
                names |= 1 << name_of(k);
        return count_of(names) >= quorum_of(now.under[m]);
    }

    /* ---- whether the old ones are dead ---- */

    static int tells(int s, int d, int m)
    {
#ifdef MEMORY
        return now.told[s] >> m & 1;
#else
#ifndef ANY_QUARANTINE
        if (now.under[m] != d)
            return 0;
#endif
        return now.phase[m] == QUARANTINED && now.taken[m] != 0;
#endif
    }

    static int is_replaced(int m, int set)
    {
#if !defined(NO_OLD_INCARNATION) && !defined(MEMORY)
        for (int k = 0; k < MACHINES; k++)
            if ((set >> k & 1) && knows(k, m) >= now.taken[m])
                return 1;
#endif
        return 0;
    }

    /* Those of the set that tell of this configuration. */
    static int tellers_of(int d, int set)
    {
        int told = 0, tellers = 0;
        for (int m = 0; m < MACHINES; m++)
            if ((set >> m & 1) && now.from[m] == d && has_name(d, m))
                told |= 1 << m;
        for (int m = 0; m < MACHINES; m++)
            if ((told >> m & 1) && !is_replaced(m, told))
                tellers |= 1 << m;
        return tellers;
    }

    static int is_enough(int d, int tellers)
    {
#ifdef FEW
        return count_of(tellers) >= quorum_of(d) - 1;
#else
        return count_of(tellers) >= quorum_of(d);
#endif
    }

    /* Those of the set that have carried its quarantine record. */
    static int count_carriers(int other, int set)
    {
        int carriers = 0;
        for (int m = 0; m < MACHINES; m++)
            carriers += (set >> m & 1) && ((now.passed[m] >> other & 1) ||
                                           now.under[m] == other);
        return carriers;
    }

    /* The rest of its own names are no majority. */
    static int is_replaced_by(int d, int other, int base, int carriers)
    {
#ifdef BACK_EQUAL
        int is_higher = epoch_of[d] >= epoch_of[other];
#else
        int is_higher = epoch_of[d] > epoch_of[other];
#endif
#ifdef BACK_FEW
        int enough = quorum_of(base);
#else
        int enough = quorum_of(other);
#endif
#ifdef NO_BACK
        return 0;
#endif
        return is_higher && carriers >= enough;
    }

    static int is_harmless(int d, int other, int base, int set)
    {
        int tellers = tellers_of(base, set);
        int carriers = count_carriers(other, tellers);
        int silent = count_of(names_of[base]) - count_of(tellers);
        return carriers + silent < quorum_of(base) ||
               is_replaced_by(d, other, base, carriers);
    }

    /* Of those in reach. */
    static int find_base(int set)
    {
        int base = -1;
        for (int m = 0; m < MACHINES; m++)
            if ((set >> m & 1) &&
                (base < 0 || epoch_of[now.from[m]] > epoch_of[base]))
                base = now.from[m];
        return base < 0 ? 0 : base;
    }

    /* As they tell; none has a higher epoch than that which it was taken from. */
    static int dead_by(int set)
    {
        int all = 0;
#if defined(HAS_DEAD) && !defined(NO_DEAD)
        for (int m = 0; m < MACHINES; m++)
            for (int it = 0; it < CONFIGURATIONS; it++)
                if ((set >> m & 1) && (now.dead[m] >> it & 1) &&
                    epoch_of[it] < epoch_of[now.from[m]])
                    all |= 1 << it;
#endif
        return all;
    }

    static int are_others_dead(int d, int base, int set)
    {
#ifndef NO_OTHERS
        int quarantines = 0, votes = 0;
        for (int m = 0; m < MACHINES; m++)
            if (set >> m & 1) {
                quarantines |= now.passed[m] | 1 << now.under[m];
                votes |= 1 << now.from[m];
            }
        votes &= ~dead_by(set);
        for (int it = 0; it < CONFIGURATIONS; it++)
            if (epoch_of[it] < epoch_of[base]) {
                quarantines &= ~(1 << it);
#ifdef LOWER_DEAD
                votes &= ~(1 << it);
#endif
            }
        for (int it = 0; it < CONFIGURATIONS; it++)
            if (((quarantines | votes) >> it & 1) && it != d && it != base &&
                !is_enough(it, tellers_of(it, set)) &&
                ((votes >> it & 1) || !is_harmless(d, it, base, set)))
                return 0;
#endif
        return 1;
    }

    static int promised_by(int set)
    {
        int promised = 0;
#ifndef UNTOLD
        for (int m = 0; m < MACHINES; m++)
            promised |= (set >> m & 1) ? now.promised[m] : 0;
#endif
        return promised;
    }

    static int has_ended(int m)
    {
        return promised_by(1 << m) == 0;
    }

    static int nothing_is_promised(void)
    {
        return promised_by((1 << MACHINES) - 1) == 0;
    }

#ifdef HAS_DEAD
    static int counted;  /* those that are dead */
    static int is_lower; /* some only as they were told */
#endif

    /* Whether some in reach are enough, and have promised just that. */
    static int may_count(int s, int d, int awaited)
    {
        int all = 0;
#ifdef BY_Q
        if (awaited == 0 && nothing_is_promised())
            return 1;
#endif
#ifdef OTHER_WORD
        int quarantines = 0;
        for (int m = 0; m < MACHINES; m++)
            quarantines += has_name(d, m) && now.phase[m] == QUARANTINED &&
                     now.under[m] == d;
        if (awaited == 0 && nothing_is_promised() && quarantines >= quorum_of(d))
            return 1;
#endif
        for (int m = 0; m < MACHINES; m++)
            if (has_name(d, m) && tells(s, d, m))
                all |= 1 << m;
        for (int set = all; set != 0; set = (set - 1) & all) {
            if ((set & 1) && (set >> SECOND & 1))
                continue; /* its name leads to one of them */
#ifdef ANOTHER
            if (count_of(set) < quorum_of(d))
                continue; /* it examines a majority first */
#endif
            int base = find_base(set), tellers = tellers_of(base, set);
#ifdef COUNTED_ONLY
            int promised = promised_by(tellers);
#else
            int promised = promised_by(set);
#endif
            if (is_enough(base, tellers) && promised == awaited &&
                are_others_dead(d, base, set)) {
#ifdef HAS_DEAD
                counted = 1 << base | dead_by(set);
                is_lower = 0;
                for (int m = 0; m < MACHINES; m++)
                    is_lower |= (set >> m & 1) &&
                                (dead_by(set) >> now.from[m] & 1);
#endif
                return 1;
            }
        }
        return 0;
    }

#ifdef IN_USE
    static int is_dead(int d, int old)
    {
#ifndef NO_DEAD
        for (int m = 0; m < MACHINES; m++)
            if (now.phase[m] == ADMITTED && now.under[m] == d &&
                (now.dead[m] >> old & 1))
                return 1;
#endif
        return 0;
    }

    /* It votes under other names, which may be in use. */
    static int is_in_use(int d, int m)
    {
        return now.phase[m] == ADMITTED && now.under[m] != d &&
               !is_dead(d, now.under[m]);
    }

    static int sees_others(int d)
    {
        for (int m = 0; m < MACHINES; m++)
            if (has_name(d, m) && is_in_use(d, m))
                return 1;
        return 0;
    }

    static int count_votes(int d)
    {
        int votes = 0;
        for (int m = 0; m < MACHINES; m++)
            votes += now.phase[m] == ADMITTED && now.under[m] == d;
        return votes;
    }
#endif
};

/* ---- votes -------------------------------------------------------------- */

inline hear(c, name, later)
{
    if
    :: later > known[OF(c, name)] ->
        known[OF(c, name)] = later;
        votes[c] = votes[c] & ~BIT(name)
    :: else
    fi
}

#define MAY_VOTE(c, m) \
    (phase[m] == ADMITTED && under[m] == asked[c] && lock[m] == 0 && \
     incarnation[m] >= known[OF(c, NAME(m))])

inline vote(c, m)
{
    for (k : 0 .. ALL - 1) {
        hear(c, k, carries[OF(m, k)])
    }
    k = 0;
    if
    :: TELLS_OF(m) -> hear(c, NAME(m), incarnation[m])
    :: else
    fi;
    votes[c] = votes[c] | BIT(NAME(m));
    lock[m] = c + 1;
    promised[m] = promised[m] | BIT(c)
}

#define HAS_MAJORITY(c) \
    c_expr { (has_majority)(c) }

inline decide(c)
{
    holds[c] = 1;
#ifdef REACH_GRANT
    is_reached = asked[c] == REACH_GRANT;
    assert(!is_reached);
#endif
    two_holders = holds[0] && holds[1];
    assert(!two_holders)
}

inline end(c)
{
    for (k : 0 .. MACHINES - 1) {
        lock[k] = (lock[k] == c + 1 -> 0 : lock[k]);
        promised[k] = promised[k] & ~BIT(c)
    }
    for (k : 0 .. SERVERS - 1) {
        awaited[k] = awaited[k] & ~BIT(c)
    }
    holds[c] = 0;
    votes[c] = 0;
    for (k : 0 .. ALL - 1) {
        known[OF(c, k)] = 0
    }
    k = 0
}

/* ---- quarantines, admissions --------------------------------------------- */

/* An admitted machine is told of an incarnation under the same names. */
#define TELL(m, other) \
    :: d_step { TELLS_OF(other) && NAME(m) != NAME(other) && \
                phase[m] == ADMITTED && phase[other] != UNMARKED && \
                under[m] == under[other] && \
                incarnation[other] > carries[OF(m, NAME(other))] -> \
                carries[OF(m, NAME(other))] = incarnation[other] }

inline forget(m)
{
    phase[m] = UNMARKED;
    under[m] = 0;
    incarnation[m] = 0;
#ifndef OLD_LIFE
    taken[m] = 0;
    from[m] = 0;
#endif
    passed[m] = 0;
#ifdef HAS_DEAD
    dead[m] = 0;
#endif
    lock[m] = 0;
    promised[m] = 0;
    for (k : 0 .. ALL - 1) {
        carries[OF(m, k)] = 0
    }
    k = 0
}

inline quarantine(m, d)
{
    phase[m] = QUARANTINED;
    under[m] = d;
    incarnations[NAME(m)]++;
    incarnation[m] = incarnations[NAME(m)]
}

inline admit(m)
{
    phase[m] = ADMITTED;
    taken[m] = 0;
    from[m] = 0;
    passed[m] = 0;
    promised[m] = 0;
#if NAMES_2 != 0 || defined(BY_TIME)
    established = established | BIT(under[m]);
#endif
}

/* Any server that admits it knows what these tell. */
inline tell_dead(m)
{
#ifdef HAS_DEAD
    for (k : 0 .. MACHINES - 1) {
        dead[m] = (phase[k] == ADMITTED && under[k] == under[m] ->
                   dead[m] | dead[k] : dead[m])
    }
    k = 0
#else
    skip
#endif
}

/* Those who told it know this of the other names. */
inline admit_told(m)
{
    admit(m);
    for (k : 0 .. MACHINES * ALL - 1) {
        carries[OF(m, k % ALL)] =
            (phase[k / ALL] == ADMITTED && under[k / ALL] == under[m] &&
             k % ALL != NAME(m) && carries[k] > carries[OF(m, k % ALL)] ->
             carries[k] : carries[OF(m, k % ALL)])
    }
    k = 0;
    tell_dead(m)
}

/* ---- the new servers ---------------------------------------------------- */

#ifdef ANY_TELLS
#define TELLS_OLD(m) true
#else
#define TELLS_OLD(m) (phase[m] == ADMITTED)
#endif
#ifdef TAKES_EQUAL
#define YIELDS(m, d) true
#else
#define YIELDS(m, d) \
    (taken[m] == 0 || EPOCH(under[m]) < EPOCH(d) || (established & BIT(d)))
#endif

#ifdef IN_USE
#ifdef WORD
#define PAUSED MACHINES
#else
#define PAUSED 2
#endif
#define MAY_QUARANTINE(m, d) \
    (established & BIT(d) -> !c_expr { (is_in_use)(d, m) } : (m) != PAUSED)
#define SEES_OTHERS(m) c_expr { (sees_others)(now.under[m]) }
#define MAY_COUNT(d) !(established & BIT(d))
#else
#define MAY_QUARANTINE(m, d) true
#define SEES_OTHERS(m) false
#define MAY_COUNT(d) true
#endif

/* It sees one of its own admitted, or another one that yields to its epoch. */
#define MAY_TAKE(m, d) \
    (phase[m] == UNMARKED || \
     phase[m] == ADMITTED && EPOCH(under[m]) < EPOCH(d) && MAY_QUARANTINE(m, d) || \
     phase[m] == QUARANTINED && under[m] != d && EPOCH(under[m]) <= EPOCH(d) && \
     YIELDS(m, d) && \
     (taken[m] != 0 || EPOCH(under[m]) < EPOCH(d) || incarnations[NAME(m)] < QUARANTINES))

#ifdef MEMORY
#define KEEP_TOLD(s, m) told[s] = told[s] | BIT(m)
#else
#define KEEP_TOLD(s, m) skip
#endif

/* One call: quarantines, and keeps what was there. */
inline take(s, m)
{
    if
    :: phase[m] == QUARANTINED && taken[m] != 0 ->
#ifdef FIGHTS
        if
        :: EPOCH(under[m]) == EPOCH(SERVES(s)) ->
            took[s] = (took[s] < 2 -> took[s] + 1 : 2);
            livelock = took[0] == 2 && took[1] == 2;
            assert(!livelock)
        :: else
        fi;
#endif
#ifdef NO_PASSED
        skip
#elif defined(ONE_PASSED)
        passed[m] = BIT(under[m])
#else
        passed[m] = passed[m] | BIT(under[m])
#endif
    :: else ->
        passed[m] = 0;
        if
        :: TELLS_OLD(m) ->
            taken[m] = incarnation[m] + 1;
            from[m] = under[m];
            KEEP_TOLD(s, m)
        :: else
        fi
    fi;
    quarantine(m, SERVES(s));
    see(s, m)
}

inline see(s, m)
{
    SEEN(s, m) = incarnation[m];
    latest[OF(s, NAME(m))] = (TELLS_OF(m) -> incarnation[m] : 0)
}

/* The node compares the quarantine record. */
#if defined(BY_Q) || defined(AT_ONCE) || defined(OTHER_WORD)
#define IS_TAKEN(m) true
#else
#define IS_TAKEN(m) (taken[m] != 0)
#endif
#define MAY_ADMIT(s, m) \
    (is_over[s] && awaited[s] == 0 && phase[m] == QUARANTINED && \
     under[m] == SERVES(s) && SEEN(s, m) == incarnation[m] && IS_TAKEN(m) && \
     c_expr { (has_ended)(m) })

inline run_admit(s, m)
{
    admit(m);
    for (k : 0 .. ALL - 1) {
        carries[OF(m, k)] = (k == NAME(m) -> 0 : latest[OF(s, k)])
    }
    k = 0;
#ifdef HAS_DEAD
    dead[m] = dead[m] | buried[s];
#endif
    SEEN(s, m) = 0
}

inline restart(s)
{
    for (k : 0 .. MACHINES - 1) {
        SEEN(s, k) = 0
    }
    k = 0;
    told[s] = 0
}

/* ---- the world ---------------------------------------------------------- */

#define HAS_NAME(d, m) (NAMES(d) & BIT(NAME(m)))

#define VOTE(c, m) \
    :: d_step { ASKS(c, NAME(m)) && MAY_VOTE(c, m) -> vote(c, m) }

#define PROBE(s, m) \
    :: d_step { HAS_NAME(SERVES(s), m) && MAY_TAKE(m, SERVES(s)) -> \
                take(s, m) } \
    :: d_step { phase[m] == QUARANTINED && under[m] == SERVES(s) && \
                SEEN(s, m) != incarnation[m] -> see(s, m) } \
    :: d_step { MAY_ADMIT(s, m) -> run_admit(s, m); DIES(s) }

#ifdef HAS_DEAD
#define KEEP_DEAD(s) buried[s] = c_expr { counted }
#else
#define KEEP_DEAD(s) skip
#endif
#ifdef REACH_DEAD
#define REACHES is_reached = c_expr { is_lower }; assert(!is_reached)
#else
#define REACHES skip
#endif
#ifdef IN_USE
#define DIES(s) is_over[s] = c_expr { (count_votes)(SERVES(s)) } < 2
#else
#define DIES(s) skip
#endif
#define COUNT_WITH(s, promises) \
    :: d_step { !is_over[s] && MAY_COUNT(SERVES(s)) && \
                c_expr { (may_count)(s, SERVES(s), promises) } -> \
                is_over[s] = 1; awaited[s] = promises; KEEP_DEAD(s); \
                REACHES }
#define SERVER(s) \
    COUNT_WITH(s, 0) COUNT_WITH(s, 1) COUNT_WITH(s, 2) COUNT_WITH(s, 3) \
    FAULT(!is_over[s], restart(s))

#if defined(TWO_SERVERS)
#define PROBES(m) PROBE(0, m) PROBE(1, m)
#define SERVERS_ALL SERVER(0) SERVER(1)
#elif NAMES_3 != 0
#define PROBES(m) PROBE(0, m) PROBE(1, m) PROBE(2, m)
#define SERVERS_ALL SERVER(0) SERVER(1) SERVER(2)
#elif defined(ANOTHER)
#define PROBES(m) PROBE(0, m)
#define SERVERS_ALL SERVER(0)
#elif defined(LEFT)
#define PROBES(m) PROBE(1, m)
#define SERVERS_ALL SERVER(1)
#elif NAMES_2 != 0
#define PROBES(m) PROBE(0, m) PROBE(1, m)
#define SERVERS_ALL SERVER(0) SERVER(1)
#else
#define PROBES(m) PROBE(0, m)
#define SERVERS_ALL SERVER(0)
#endif

#ifdef BY_TIME
#define ADMIT_BY_TIME(m) \
    :: d_step { phase[m] == QUARANTINED && (BY_TIME & BIT(under[m])) && \
                (under[m] == 0 || (established & BIT(under[m]))) && \
                !SEES_OTHERS(m) && \
                c_expr { (nothing_is_promised)() } -> \
                admit(m); tell_dead(m) }
#else
#define ADMIT_BY_TIME(m)
#endif

#define TELL_1_TO_3(m) TELL(m, 1) TELL(m, 2) TELL(m, 3)
#if MACHINES == 6
#define TELL_ALL(m) \
    TELL(m, 0) TELL_1_TO_3(m) TELL(m, 4) TELL(m, 5)
#elif MACHINES == 5
#define TELL_ALL(m) TELL(m, 0) TELL_1_TO_3(m) TELL(m, 4)
#else
#define TELL_ALL(m) TELL(m, 0) TELL_1_TO_3(m)
#endif

#define MACHINE(m) \
    VOTE(0, m) VOTE(1, m) PROBES(m) TELL_ALL(m) \
    :: d_step { HAS_NAME(0, m) && phase[m] == UNMARKED -> \
                quarantine(m, 0) } \
    :: d_step { phase[m] == QUARANTINED && c_expr { (is_told)(m) } -> admit_told(m) } \
    ADMIT_BY_TIME(m) \
    FAULT((LOSERS & BIT(m)) && phase[m] != UNMARKED, forget(m))

active proctype world()
{
    byte k, m;
    d_step {
        for (k : 0 .. MACHINES - 1) {
            phase[k] = ((NAMES_0 & BIT(k)) && k != SECOND ->
                        ADMITTED : UNMARKED)
        }
        k = 0;
#ifdef ANOTHER
        phase[0] = ADMITTED;
        under[0] = 2
#endif
    }
#ifdef LEFT
    for (m : 0 .. MACHINES - 1) {
        d_step {
            if
            :: HAS_NAME(1, m) -> take(0, m)
            :: else
            fi
        }
    }
#endif
#ifdef WORD
    d_step {
        take(0, 0);
        admit(0);
#ifdef WORD_IS_DEAD
        dead[0] = 1;
#endif
        restart(0)
    }
#endif
    m = 0;
    if
#ifdef BOTH_NEW
    :: d_step { asked[0] = 1; asked[1] = 1 }
#else
    :: asked[1] = 1
#endif
#if NAMES_2 != 0 && !defined(ANOTHER)
    :: asked[1] = LAST
    :: d_step { asked[0] = 1; asked[1] = LAST }
#endif
    fi;
    do
    :: d_step { k == 0 -> k = 0 } /* it may stand still */
    :: d_step { !holds[0] && HAS_MAJORITY(0) -> decide(0) }
    :: d_step { !holds[1] && HAS_MAJORITY(1) -> decide(1) }
    :: d_step { votes[0] != 0 -> end(0) }
    :: d_step { votes[1] != 0 -> end(1) }
    SERVERS_ALL
    MACHINE(0) MACHINE(1) MACHINE(2) MACHINE(3)
#if MACHINES > 4
    MACHINE(4)
#endif
#if MACHINES > 5
    MACHINE(5)
#endif
    od
}
