#include "eligibility.h"

#include "fence.h"

enum { SLACK_US = 1000000 };

enum {
    /* a live server needs at most this long to report what it has seen */
    SAID_US = 2 * HEARTBEAT_US,
    /* a marked node is watched this long, in case others report about it */
    WATCH_US = 3 * HEARTBEAT_US,
};

/* ---- quarantine --------------------------------------------------------- */

/* The greatest that was allowed on any node, and may still be alive. */
static int64_t greatest_ttl_ms(const struct admission *admission)
{
    int64_t greatest_ms = admission->settings.max_ttl_ms;
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].max_ttl_ms > greatest_ms)
            greatest_ms = admission->node[i].max_ttl_ms;
    return greatest_ms;
}

/*
 * What the node has forgotten must have expired: its locks, even if our clock
 * runs 1% fast, and its numbers, within four windows; besides, commands of a
 * server that has not noticed the loss yet.
 */
int64_t eligibility_quarantine_us(const struct admission *admission)
{
    if (admission->settings.is_off)
        return 0;
    int64_t ttl_ms = greatest_ttl_ms(admission);
    int64_t locks_us = ttl_ms * 1010;
    int64_t numbers_us = 4 * fence_window_us(ttl_ms);
    return (locks_us > numbers_us ? locks_us : numbers_us) + CONFIRMED_US +
           admission->settings.node_timeout_us + SLACK_US;
}

/* This server is changing the nodes to a new configuration. */
static bool is_taking_over(const struct admission *admission)
{
    return admission->settings.epoch > 1 && admission->established_us == 0 &&
           !admission->settings.has_take_over;
}

static int64_t later(int64_t a_us, int64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

/*
 * A moment by the median, in our clock, at the latest: the server that stored
 * it may have reached other nodes than we do.
 */
static int64_t ours(const struct admission *admission, int64_t median_us)
{
    return median_us - admission->median_ahead_us + admission->spread_us;
}

/* Counted from the mark's birth, the quarantine survives server restarts. */
static int64_t marked_us(const struct admission *admission,
                         const struct admission_node *node)
{
    if (!admission->has_median || node->born_us == 0)
        return node->sighted_us;
    int64_t born_us = ours(admission, node->born_us);
    return born_us < node->sighted_us ? born_us : node->sighted_us;
}

/* Looks after this moment show all rounds that the node took part in. */
static int64_t rounds_end_us(const struct admission *admission,
                             const struct admission_node *node)
{
    return node->sighted_us + admission->settings.node_timeout_us +
           admission->spread_us;
}

static bool are_all_others_there(const struct admission *admission, int node,
                                 int64_t since_us)
{
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        if (i != node && (it->phase == ADMISSION_DOWN || it->is_mute ||
                          it->looked_us < since_us))
            return false;
    }
    return true;
}

/*
 * Whether enough others have reported what they know. Some of those that do not
 * vote may be as old as this one: then none may be missing, because it could be
 * the only one that knows.
 */
static bool have_told(const struct admission *admission, int node,
                      const struct witness_demand *demand)
{
    struct witness_demand voters = *demand;
    voters.must_be_admitted = true;
    if (witness_have_told(&admission->witness, node, &voters))
        return true;
    return are_all_others_there(admission, node, demand->since_us) &&
           witness_have_told(&admission->witness, node, demand);
}

/* Whether enough others have reported their last promises. */
static bool is_told(const struct admission *admission, int node,
                    bool must_be_admitted)
{
    const struct witness_demand demand = {
        .since_us = rounds_end_us(admission, &admission->node[node]),
        .must_be_admitted = must_be_admitted,
    };
    return admission->has_median && have_told(admission, node, &demand);
}

/* When everything ever promised has expired; INT64_MAX: unknown. */
static int64_t idle_us(const struct admission *admission, int node)
{
    if (!is_told(admission, node, true))
        return INT64_MAX;
    int64_t voted_us = witness_voted_us(&admission->witness, node);
    return voted_us == 0 ? 0
                         : ours(admission, voted_us) +
                               eligibility_quarantine_us(admission);
}

/*
 * Until the last node was marked, the old configuration may have had its
 * majority and granted locks: these must have expired too.
 */
static int64_t due_us(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    int64_t since_us = marked_us(admission, it);
    if (is_taking_over(admission))
        since_us = later(since_us, admission->entered_us);
    int64_t due = since_us + eligibility_quarantine_us(admission);
    int64_t idle = idle_us(admission, node);
    if (admission->settings.is_off)
        return due;
    return later(idle < due ? idle : due, it->sighted_us + WATCH_US);
}

/* Nobody knows of a later one. */
static bool is_latest_memory(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->beat >= admission->witness.node[node].floor;
}

/* It came back with its own memory, which loses nothing in a restart. */
static bool is_lasting(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->is_restarted && it->is_durable && it->was_durable &&
           is_latest_memory(admission, node);
}

int64_t eligibility_remaining_us(const struct admission *admission, int node,
                                 int64_t now_us)
{
    const struct admission_node *it = &admission->node[node];
    int64_t remaining_us = firststart_remaining_us(&admission->start, now_us);
    if (it->phase == ADMISSION_EMPTY && remaining_us > 0)
        return remaining_us + eligibility_quarantine_us(admission);
    if (it->mark[0] == '\0' || admission->start.is_marked[node])
        return 0;
    if (is_lasting(admission, node) && now_us < it->sighted_us + SAID_US)
        return it->sighted_us + SAID_US - now_us;
    int64_t left_us = due_us(admission, node) - now_us;
    return left_us > 0 ? left_us : 0;
}

/* ---- what hinders ------------------------------------------------------- */

bool eligibility_has_foreign(const struct admission *admission, int64_t now_us)
{
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].foreign_us != 0 &&
            now_us - admission->node[i].foreign_us <
                eligibility_quarantine_us(admission))
            return true;
    return false;
}

/*
 * A new configuration first marks all nodes: a majority of the old one may be
 * among those that are not marked.
 */
bool eligibility_has_taken_over(const struct admission *admission)
{
    if (!is_taking_over(admission))
        return true;
    for (int i = 0; i < admission->settings.nodes; i++)
        if (!admission->node[i].is_of_epoch)
            return false;
    return true;
}

/* Whenever others report a machine that votes under this name, the mark is
 * renewed. */
bool eligibility_is_contested(const struct admission *admission, int node)
{
    enum { RENEWALS_LEAST = 4 }; /* fewer: servers knew different beats of it */
    return admission->node[node].renewals >= RENEWALS_LEAST;
}

/* One server answers to two names: nobody knows which of them is right. */
static bool is_duplicate(const struct admission *admission, int node)
{
    const char *run_id = strrchr(admission->node[node].admit, ':');
    for (int i = 0; i < admission->settings.nodes; i++)
        if (i != node && admission->node[i].phase != ADMISSION_DOWN &&
            strcmp(strrchr(admission->node[i].admit, ':'), run_id) == 0)
            return true;
    return false;
}

int64_t eligibility_latest_us(const struct admission *admission, int node,
                              int64_t now_us)
{
    int64_t latest_us = admission->witness.node[node].latest_us;
    bool is_past = admission->has_median &&
                   latest_us < now_us + admission->median_ahead_us;
    return is_past ? latest_us : 0;
}

/*
 * Nobody reports a later mark: it would be that of another machine, which waits
 * to be admitted, too. The next look makes this mark anew.
 */
static bool is_latest_mark(const struct admission *admission, int node,
                           int64_t now_us)
{
    return admission->node[node].born_us >=
           eligibility_latest_us(admission, node, now_us);
}

static bool may_admit(const struct admission *admission, int node,
                      int64_t now_us)
{
    return admission->node[node].phase == ADMISSION_MARKED &&
           (admission->has_median || admission->settings.is_off) &&
           !eligibility_has_foreign(admission, now_us) &&
           eligibility_has_taken_over(admission) &&
           is_latest_mark(admission, node, now_us) &&
           !is_duplicate(admission, node);
}

/* ---- whether ------------------------------------------------------------ */

int64_t eligibility_looked_us(const struct admission *admission)
{
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].phase != ADMISSION_DOWN &&
            !admission->node[i].is_mute &&
            admission->node[i].looked_us < least_us)
            least_us = admission->node[i].looked_us;
    return least_us;
}

int64_t eligibility_look_since_us(const struct admission *admission, int node,
                                  int64_t now_us)
{
    const struct admission_node *it = &admission->node[node];
    if (it->phase != ADMISSION_MARKED)
        return 0;
    const int64_t moments_us[] = {rounds_end_us(admission, it),
                                  it->sighted_us + SAID_US,
                                  due_us(admission, node)};
    int64_t since_us = 0;
    for (size_t i = 0; i < sizeof moments_us / sizeof *moments_us; i++)
        if (moments_us[i] <= now_us)
            since_us = later(since_us, moments_us[i]);
    return since_us;
}

bool eligibility_is_due(const struct admission *admission, int node,
                        int64_t now_us)
{
    if (!may_admit(admission, node, now_us))
        return false;
    if (firststart_may_admit(&admission->start, node))
        return true;
    int64_t due = due_us(admission, node);
    /* if a later memory was just reported, the next look makes the mark anew */
    return now_us >= due && eligibility_looked_us(admission) >= due &&
           is_latest_memory(admission, node) && !admission->node[node].is_mute;
}

/* Nothing was promised since the moment that its memory dates from. */
static bool is_unchanged(const struct admission *admission, int node)
{
    return is_told(admission, node, false) &&
           admission->node[node].seen_us >
               witness_voted_us(&admission->witness, node) +
                   admission->settings.node_timeout_us + admission->spread_us;
}

/* Any server that knows of a later memory had time to report it. A single node
 * has no others. */
static bool is_agreed(const struct admission *admission, int node,
                      int64_t now_us)
{
    const struct witness_demand demand = {
        .since_us = admission->node[node].sighted_us + SAID_US,
        .long_us = SAID_US,
    };
    return now_us >= demand.since_us && (admission->settings.nodes == 1 ||
                                         have_told(admission, node, &demand));
}

bool eligibility_is_back(const struct admission *admission, int node,
                         int64_t now_us)
{
    return admission->node[node].is_restarted &&
           admission->node[node].is_clock_good &&
           may_admit(admission, node, now_us) &&
           (is_unchanged(admission, node) ||
            (is_lasting(admission, node) &&
             is_agreed(admission, node, now_us)));
}
