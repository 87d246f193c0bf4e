#include "plan.h"

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
    FILE *out = page->out;
    switch (it->kind) {
    case OUTLOOK_VOTES:
        (void)fputs("votes", out);
        break;
    case OUTLOOK_DOWN:
        (void)fprintf(out, "is out of reach (%s)", it->detail);
        break;
    case OUTLOOK_UNFIT:
        (void)fprintf(out, "may not vote (%s)", it->detail);
        break;
    case OUTLOOK_TWICE:
        (void)fprintf(out, "is the same machine as %s",
                      name_of(page, it->under));
        break;
    case OUTLOOK_MISPLACED:
        (void)fprintf(out, "this machine %s used under the name %s",
                      it->is_in_use ? "is" : "was", name_of(page, it->under));
        break;
    case OUTLOOK_OTHERS:
        (void)fprintf(out, "carries %s names, of epoch %d",
                      it->is_lower ? "these" : "other", it->epoch);
        if (it->under >= 0 && it->under != node)
            (void)fprintf(out, ", and is %s there", name_of(page, it->under));
        break;
    case OUTLOOK_OUTDATED:
        (void)fputs(it->is_in_use ? "another machine votes under this name"
                                  : "another machine has had this name since, "
                                    "or this one has lost its memory",
                    out);
        break;
    case OUTLOOK_MARKED:
        (void)fputs("waits, as it may have forgotten locks", out);
        break;
    case OUTLOOK_RESTARTED:
        (void)fprintf(out, "was restarted, and %s",
                      it->is_whole ? "has all its memory"
                                   : "may have forgotten locks");
        break;
    case OUTLOOK_EMPTY:
        (void)fputs("is new, or has lost its memory", out);
        break;
    }
}

static void print_then(const struct page *page, int node)
{
    const struct outlook_node *it = &page->outlook->node[node];
    bool is_idle = it->kind == OUTLOOK_RESTARTED || it->kind == OUTLOOK_EMPTY ||
                   it->kind == OUTLOOK_OUTDATED || it->kind == OUTLOOK_MARKED;
    FILE *out = page->out;
    if (it->kind == OUTLOOK_VOTES)
        (void)fputs("goes on", out);
    else if (it->will_vote && it->kind == OUTLOOK_OUTDATED && it->is_in_use)
        (void)fprintf(out,
                      "votes within %d s after the last server has left that "
                      "machine",
                      seconds(it->wait_us));
    else if (it->will_vote)
        (void)fprintf(out, "%svotes within %d s",
                      it->kind == OUTLOOK_OTHERS ? "is taken from them, and "
                                                 : "",
                      seconds(it->wait_us));
    else if (it->kind == OUTLOOK_DOWN)
        (void)fputs("does not vote before it is reached", out);
    else if (it->kind == OUTLOOK_TWICE)
        (void)fputs("votes under neither name", out);
    else if (it->kind == OUTLOOK_MISPLACED || it->kind == OUTLOOK_OTHERS)
        (void)fputs("does not vote, and is left alone", out);
    else if (page->outlook->is_blocked && is_idle)
        (void)fputs("is not admitted beside a node that carries other names",
                    out);
    else
        (void)fputs("does not vote", out);
}

static void print_node(const struct page *page, int node)
{
    const char *name = name_of(page, node);
    const char *address = page->config->nodes[node].address;
    (void)fprintf(page->out, "node %s", name);
    if (strcmp(name, address) != 0)
        (void)fprintf(page->out, " at %s", address);
    (void)fputs(": ", page->out);
    print_now(page, node);
    (void)fputs("; ", page->out);
    print_then(page, node);
    (void)fputc('\n', page->out);
    if (page->outlook->node[node].note[0] != '\0')
        (void)fprintf(page->out, "note: %s: %s\n", name,
                      page->outlook->node[node].note);
}

/* The names that do not vote, each with its wait. */
static void print_without(const struct page *page)
{
    const char *before = "without a vote: ";
    for (int i = 0; i < page->outlook->nodes; i++) {
        const struct outlook_node *it = &page->outlook->node[i];
        if (it->kind == OUTLOOK_VOTES)
            continue;
        (void)fprintf(page->out, "%s%s", before, name_of(page, i));
        if (it->will_vote && !it->is_in_use)
            (void)fprintf(page->out, " (within %d s)", seconds(it->wait_us));
        before = ", ";
    }
    if (*before == ',')
        (void)fputc('\n', page->out);
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
    FILE *out = page->out;
    if (outlook->change == OUTLOOK_WRONG_EPOCH)
        (void)fprintf(out,
                      "epoch: %d is too %s to replace %s names, which carry "
                      "%d; if the addresses are right, give --config-epoch "
                      "%d\n",
                      given, given < outlook->epoch_needed ? "low" : "high",
                      whose_names(outlook), outlook->epoch_needed - 1,
                      outlook->epoch_needed);
    else if (outlook->epoch_needed != 0 &&
             (outlook->change == OUTLOOK_TAKE_OVER ||
              outlook->change == OUTLOOK_REFUSED))
        (void)fprintf(out, "epoch: %d replaces %s names, which carry %d\n",
                      outlook->epoch, whose_names(outlook),
                      outlook->epoch_needed - 1);
    else if (outlook->epoch != given)
        (void)fprintf(out,
                      "epoch: %d, which the nodes carry; %d, which was given, "
                      "does not count\n",
                      outlook->epoch, given);
    else
        (void)fprintf(out, "epoch: %d\n", outlook->epoch);
}

static void print_held(const struct page *page)
{
    if (page->outlook->held_us == 0)
        (void)fputs("held: nothing\n", page->out);
    else
        (void)fprintf(
            page->out,
            "held: the locks that were granted so far end within %d s\n",
            seconds(page->outlook->held_us));
}

/* The nodes that were not reached. */
static void print_missing(const struct page *page)
{
    const char *before = "missing: ";
    for (int i = 0; i < page->outlook->nodes; i++)
        if (page->outlook->node[i].kind == OUTLOOK_DOWN ||
            page->outlook->node[i].kind == OUTLOOK_UNFIT) {
            (void)fprintf(page->out, "%s%s", before, name_of(page, i));
            before = ", ";
        }
    if (*before == ',')
        (void)fputc('\n', page->out);
}

static void print_length(const struct page *page)
{
    int now = seconds(page->outlook->pause_us);
    int most = seconds(page->outlook->most_us);
    (void)fputs("pause: ", page->out);
    if (now < most)
        (void)fprintf(page->out, "%d s if it begins now, ", now);
    (void)fprintf(page->out, "%d s at most", most);
}

/* Why nothing is replaced, and what helps. */
static void print_refusal(const struct page *page)
{
    const struct outlook *outlook = page->outlook;
    FILE *out = page->out;
    (void)fputs("refused: ", out);
    if (outlook->old_names == 0)
        (void)fprintf(out,
                      "no node carries the names that epoch %d is to replace",
                      outlook->epoch);
    else if (outlook->has_rivals)
        (void)fputs("the nodes carry, or were taken by, a third list of names "
                    "that may go on: flush those that another installation "
                    "has used",
                    out);
    else
        (void)fprintf(out,
                      "of the %d old names, %d are here with all their memory, "
                      "and %d are needed: the others may go on without these",
                      outlook->old_names, nodeset_count(outlook->tellers),
                      quorum_of(outlook->old_names));
    (void)fprintf(out,
                  ". Nothing is changed, this server grants no lock, and the "
                  "old ones go on. Keep a majority of the old names in the "
                  "list, and change it in several steps; or stop all old "
                  "servers, and give --take-over %d\n",
                  outlook->epoch);
}

static void print_pause(const struct page *page)
{
    const struct outlook *outlook = page->outlook;
    FILE *out = page->out;
    if (outlook->change == OUTLOOK_REFUSED) {
        print_refusal(page);
        return;
    }
    if (outlook->voting >= outlook->quorum)
        (void)fputs("pause: none; acquires and extends go on", out);
    else if (outlook->pause_us == 0)
        (void)fputs("pause: nothing is granted or extended until more nodes "
                    "vote",
                    out);
    else
        print_length(page);
    if (outlook->change == OUTLOOK_TAKE_OVER)
        (void)fputs("; meanwhile no server grants or extends a lock, and those "
                    "of the old names never again",
                    out);
    else if (outlook->change == OUTLOOK_WRONG_EPOCH)
        (void)fputs(" with that epoch; with this one, nothing is replaced, and "
                    "this server grants no lock",
                    out);
    else if (outlook->change == OUTLOOK_FIRST_START)
        (void)fputs("; all nodes are new, and are admitted together", out);
    else if (outlook->pause_us > 0)
        (void)fputs("; nothing is granted or extended then", out);
    (void)fputc('\n', out);
    if (outlook->are_empty)
        (void)fputs("note: all nodes are empty; if they were never used, "
                    "--first-start yes admits them at once\n",
                    out);
    if (outlook->change <= OUTLOOK_FIRST_START && outlook->voting > 0 &&
        page->config->take_over != 0)
        (void)fputs("note: --take-over is not needed any more: take it away\n",
                    out);
}

enum plan_status plan_print(const struct outlook *outlook,
                            const struct config *config, FILE *out)
{
    const struct page page = {outlook, config, out};
    for (int i = 0; i < outlook->nodes; i++)
        print_node(&page, i);
    if (outlook->change == OUTLOOK_UNKNOWN) {
        (void)fprintf(out,
                      "cannot tell: %d of %d nodes were reached, and %d are "
                      "needed\n",
                      outlook->reached, outlook->nodes, outlook->quorum);
        return PLAN_UNKNOWN;
    }
    (void)fprintf(out, "votes: %d of %d, and %d are needed\n", outlook->voting,
                  outlook->nodes, outlook->quorum);
    print_without(&page);
    print_epoch(&page);
    if (outlook->epoch_needed != 0 && !outlook->is_blocked)
        print_missing(&page);
    print_held(&page);
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
    struct engine_settings settings;
    world_settings(config, &settings);
    settings.is_observer = true;
    (void)snprintf(error, TRUST_TEXT_MAX, "no memory or no descriptors");
    plan->loop = loop_new();
    if (plan->loop == NULL)
        return false;
    const struct world_setup setup = {.loop = plan->loop,
                                      .config = config,
                                      .settings = &settings,
                                      .metrics = &metrics};
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
