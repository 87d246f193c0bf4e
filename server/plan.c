/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/process.h"
#include "engine/engine.h"
#include "world.h"

enum {
    LOOK_US = 50000,       /* between two looks at what is known */
    PATIENCE_US = 4000000, /* for all looks, once the nodes are connected */
    CONNECTING_US = 1000000,
};

/* ---- the text ------------------------------------------------------------ */

struct page {
    const struct outlook *outlook;
    const struct config *config;
    FILE *out;
};

__attribute__((format(printf, 2, 3))) static void say(const struct page *page,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(page->out, format, args); /* the end looks for errors */
    va_end(args);
}

static const char *name_of(const struct page *page, int node)
{
    return page->config->nodes[node].name;
}

static int seconds(int64_t us)
{
    return (int)divide_up(us, US_PER_S);
}

static void print_now(const struct page *page, int node)
{
    const struct outlook_node *it = &page->outlook->node[node];
    switch (it->kind) {
    case OUTLOOK_VOTES:
        say(page, "votes");
        break;
    case OUTLOOK_DOWN:
        say(page, "is unreachable (%s)", it->detail);
        break;
    case OUTLOOK_UNFIT:
        say(page, "may not vote (%s)", it->detail);
        break;
    case OUTLOOK_TWICE:
        say(page, "is the same machine as %s", name_of(page, it->under));
        break;
    case OUTLOOK_MISPLACED:
        say(page, "this machine %s used under the name %s",
            it->is_in_use ? "is" : "was", name_of(page, it->under));
        break;
    case OUTLOOK_OTHERS:
        say(page, "stores %s names, of epoch %d",
            it->is_lower ? "these" : "other", it->epoch);
        if (it->under >= 0 && it->under != node)
            say(page, ", and is %s there", name_of(page, it->under));
        break;
    case OUTLOOK_OUTDATED:
        say(page, it->is_in_use ? "another machine votes under this name"
                                : "another machine has had this name since, or "
                                  "this one has lost its data");
        break;
    case OUTLOOK_QUARANTINED:
        say(page, "is in quarantine, as it may have lost locks");
        break;
    case OUTLOOK_RESTARTED:
        say(page, "was restarted, and %s",
            it->is_whole ? "has all its data" : "may have lost locks");
        break;
    case OUTLOOK_EMPTY:
        say(page, "is new, or has lost its data");
        break;
    }
}

static void print_then(const struct page *page, int node)
{
    const struct outlook_node *it = &page->outlook->node[node];
    bool is_idle = it->kind == OUTLOOK_RESTARTED || it->kind == OUTLOOK_EMPTY ||
                   it->kind == OUTLOOK_OUTDATED ||
                   it->kind == OUTLOOK_QUARANTINED;
    if (it->kind == OUTLOOK_VOTES)
        say(page, "goes on");
    else if (it->will_vote && it->kind == OUTLOOK_OUTDATED && it->is_in_use)
        say(page,
            "votes within %d s after the last server has stopped using that "
            "machine",
            seconds(it->wait_us));
    else if (it->will_vote)
        say(page, "%svotes within %d s",
            it->kind == OUTLOOK_OTHERS ? "is taken over, and " : "",
            seconds(it->wait_us));
    else if (it->kind == OUTLOOK_DOWN)
        say(page, "does not vote until it is reachable");
    else if (it->kind == OUTLOOK_TWICE)
        say(page, "votes under neither name");
    else if (it->kind == OUTLOOK_MISPLACED || it->kind == OUTLOOK_OTHERS)
        say(page, "does not vote, and is not changed");
    else if (page->outlook->is_blocked && is_idle)
        say(page, "is not admitted while another node stores other names");
    else
        say(page, "does not vote");
}

static void print_node(const struct page *page, int node)
{
    const char *name = name_of(page, node);
    const char *address = page->config->nodes[node].address;
    say(page, "node %s", name);
    if (strcmp(name, address) != 0)
        say(page, " at %s", address);
    say(page, ": ");
    print_now(page, node);
    say(page, "; ");
    print_then(page, node);
    say(page, "\n");
    if (page->outlook->node[node].note[0] != '\0')
        say(page, "note: %s: %s\n", name, page->outlook->node[node].note);
}

/* The names that do not vote, each with its wait; or only those that were not
 * reached, which have none. */
static void print_without(const struct page *page, const char *title,
                          bool are_missing)
{
    const char *before = title;
    for (int i = 0; i < page->outlook->nodes; i++) {
        const struct outlook_node *it = &page->outlook->node[i];
        bool is_missing = it->kind == OUTLOOK_DOWN || it->kind == OUTLOOK_UNFIT;
        if (are_missing ? !is_missing : it->kind == OUTLOOK_VOTES)
            continue;
        say(page, "%s%s", before, name_of(page, i));
        if (it->will_vote && !it->is_in_use && !are_missing)
            say(page, " (within %d s)", seconds(it->wait_us));
        before = ", ";
    }
    if (before != title)
        say(page, "\n");
}

static const char *whose_names(const struct outlook *outlook)
{
    for (int i = 0; i < outlook->nodes; i++)
        if (outlook->node[i].kind == OUTLOOK_OTHERS &&
            !outlook->node[i].is_lower)
            return "other";
    return "these";
}

static void print_epoch(const struct page *page)
{
    const struct outlook *outlook = page->outlook;
    int given = outlook->epoch_given;
    if (outlook->change == OUTLOOK_WRONG_EPOCH)
        say(page,
            "epoch: %d is too %s to replace %s names, which have epoch %d; if "
            "the addresses are right, give --config-epoch %d\n",
            given, given < outlook->epoch_needed ? "low" : "high",
            whose_names(outlook), outlook->epoch_needed - 1,
            outlook->epoch_needed);
    else if (outlook->epoch_needed != 0 &&
             (outlook->change == OUTLOOK_TAKE_OVER ||
              outlook->change == OUTLOOK_REFUSED))
        say(page, "epoch: %d replaces %s names, which have epoch %d\n",
            outlook->epoch, whose_names(outlook), outlook->epoch_needed - 1);
    else if (outlook->epoch != given)
        say(page,
            "epoch: %d, which the nodes store; --config-epoch %d is ignored\n",
            outlook->epoch, given);
    else
        say(page, "epoch: %d\n", outlook->epoch);
}

/* Why nothing is replaced, and what helps. */
static void print_refusal(const struct page *page)
{
    const struct outlook *outlook = page->outlook;
    say(page, "refused: ");
    if (outlook->old_names == 0)
        say(page, "no node stores the names that epoch %d is to replace",
            outlook->epoch);
    else if (outlook->has_rivals)
        say(page, "the nodes store, or were taken over by, a third list of "
                  "names, whose servers may go on: flush the nodes that "
                  "another installation has used");
    else
        say(page,
            "of the %d old names, %d are in this list with all their data, and "
            "%d are needed: the old servers may go on with the others",
            outlook->old_names, nodeset_count(outlook->reporters),
            quorum_of(outlook->old_names));
    say(page,
        ". Nothing is changed, this server grants no lock, and the old servers "
        "go on. Keep a majority of the old names in the list, and change it in "
        "several steps; or stop all old servers, and give --take-over %d\n",
        outlook->epoch);
}

static void print_pause(const struct page *page)
{
    const struct outlook *outlook = page->outlook;
    int now = seconds(outlook->pause_us), most = seconds(outlook->most_us);
    if (outlook->change == OUTLOOK_REFUSED) {
        print_refusal(page);
        return;
    }
    if (outlook->voting >= outlook->quorum)
        say(page, "pause: none; acquires and extends go on");
    else if (outlook->pause_us == 0)
        say(page,
            "pause: nothing is granted or extended until more nodes vote");
    else if (now < most)
        say(page, "pause: %d s if it begins now, %d s at most", now, most);
    else
        say(page, "pause: %d s at most", most);
    if (outlook->change == OUTLOOK_TAKE_OVER)
        say(page, "; meanwhile no server grants or extends a lock, and those "
                  "of the old names never again");
    else if (outlook->change == OUTLOOK_WRONG_EPOCH)
        say(page, " with that epoch; with this one, nothing is replaced, and "
                  "this server grants no lock");
    else if (outlook->change == OUTLOOK_FIRST_START)
        say(page, "; all nodes are new, and are admitted together");
    else if (outlook->pause_us > 0)
        say(page, "; nothing is granted or extended then");
    say(page, "\n");
    if (outlook->are_empty)
        say(page, "note: all nodes are empty; if they were never used, "
                  "--first-start yes admits them at once\n");
    if (outlook->change <= OUTLOOK_FIRST_START && outlook->voting > 0 &&
        page->config->take_over != 0)
        say(page, "note: --take-over is no longer needed: remove it\n");
}

enum plan_status plan_print(const struct outlook *outlook,
                            const struct config *config, FILE *out)
{
    const struct page page = {outlook, config, out};
    for (int i = 0; i < outlook->nodes; i++)
        print_node(&page, i);
    if (outlook->change == OUTLOOK_UNKNOWN) {
        say(&page, "unknown: %d of %d nodes are reachable, and %d are needed\n",
            outlook->reached, outlook->nodes, outlook->quorum);
        return PLAN_UNKNOWN;
    }
    say(&page, "votes: %d of %d, and %d are needed\n", outlook->voting,
        outlook->nodes, outlook->quorum);
    print_without(&page, "without a vote: ", false);
    print_epoch(&page);
    if (outlook->epoch_needed != 0 && !outlook->is_blocked)
        print_without(&page, "missing: ", true);
    if (outlook->held_us == 0)
        say(&page, "held: nothing\n");
    else
        say(&page,
            "held: the locks that were granted so far expire within %d s\n",
            seconds(outlook->held_us));
    print_pause(&page);
    if (outlook->change == OUTLOOK_REFUSED)
        return PLAN_REFUSED;
    return outlook->voting >= outlook->quorum ? PLAN_GOES_ON : PLAN_PAUSE;
}

/* ---- the looks ----------------------------------------------------------- */

struct plan {
    struct loop *loop;
    struct world *world;
    struct loop_timer *timer;
    int64_t until_us; /* at the latest */
    int64_t since_us; /* all had been looked at once; 0: not yet */
    struct outlook outlook;
};

static void plan_check(void *arg)
{
    struct plan *plan = arg;
    int64_t now_us = clock_now_us();
    engine_outlook(world_engine(plan->world), plan->since_us, &plan->outlook);
    bool is_settled = plan->outlook.is_settled;
    if (now_us >= plan->until_us || (is_settled && plan->since_us != 0)) {
        loop_stop(plan->loop);
        return;
    }
    if (is_settled)
        plan->since_us = now_us;
    loop_timer_set(plan->timer, now_us + LOOK_US);
}

static bool plan_begin(struct plan *plan, const struct config *config,
                       char error[TRUST_TEXT_MAX])
{
    static struct metrics metrics; /* which nobody reads */
    (void)snprintf(error, TRUST_TEXT_MAX, "out of memory or file descriptors");
    plan->loop = loop_new();
    if (plan->loop == NULL)
        return false;
    const struct world_setup setup = {
        .loop = plan->loop, .config = config, .metrics = &metrics};
    plan->timer = loop_timer_new(plan->loop, plan_check, plan);
    plan->world = plan->timer != NULL ? world_new(&setup, error) : NULL;
    return plan->world != NULL;
}

static void plan_end(struct plan *plan)
{
    world_free(plan->world);
    loop_free(plan->loop);
}

enum plan_status plan_run(const struct config *config)
{
    struct plan plan = {0};
    char error[TRUST_TEXT_MAX];
    log_set_level(LOG_OFF); /* the plan says it */
    if (!plan_begin(&plan, config, error)) {
        (void)fprintf(stderr, "redlockd: %s\n", error);
        plan_end(&plan);
        return PLAN_FAILED;
    }
    plan.until_us =
        clock_now_us() + PATIENCE_US +
        at_least(2 * config->node_timeout_ms * US_PER_MS, CONNECTING_US);
    plan_check(&plan);
    loop_run(plan.loop);
    enum plan_status status = plan_print(&plan.outlook, config, stdout);
    if (!process_end_output())
        status = PLAN_FAILED;
    if (loop_is_resolving(plan.loop))
        _exit((int)status); /* without waiting for a name server that hangs */
    plan_end(&plan);
    return status;
}
