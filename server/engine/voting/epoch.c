#include "epoch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCH_MOST = 1000000 }; /* one written by hand must not overflow */

/* The epoch at the start of an admission or a mark; 0: there is none. */
static int epoch_of_node(const char *state)
{
    long epoch = strtol(state, NULL, 10);
    return epoch >= 1 && epoch <= EPOCH_MOST ? (int)epoch : 0;
}

bool epoch_is_ours(const struct admission *admission, const char *state)
{
    return span_is(call_state_part(span_of(state), CALL_STATE_FINGERPRINT),
                   admission->settings.fingerprint);
}

void epoch_note(struct admission *admission, int node, struct span mark)
{
    struct admission_node *it = &admission->node[node];
    char text[ADMISSION_STATE_MAX + 1];
    assert(mark.len <= ADMISSION_STATE_MAX); /* script.c reads no longer */
    text[span_copy(text, mark)] = '\0';
    int admitted = epoch_of_node(it->found), marked = epoch_of_node(text);
    it->epoch_ours = it->epoch_other = it->epoch_mark = 0;
    if (epoch_is_ours(admission, it->found))
        it->epoch_ours = admitted;
    else
        it->epoch_other = admitted;
    it->is_marked_above = epoch_is_ours(admission, text) &&
                          marked > admission->epoch &&
                          admitted <= admission->epoch;
    if (!epoch_is_ours(admission, text))
        it->epoch_mark = marked;
    else if (marked > it->epoch_ours)
        it->epoch_ours = marked;
    it->is_only_marked = it->epoch_ours > admitted && it->max_ttl_ms == 0;
}

/* Those that carry this epoch, and not only by a mark on one that never voted:
 * such a mark may cease to count. */
static int count_certain(const struct admission *admission, int epoch)
{
    int count = 0;
    for (int i = 0; i < admission->settings.nodes; i++)
        count += admission->node[i].epoch_ours == epoch &&
                 !admission->node[i].is_only_marked;
    return count;
}

/* The epoch of most nodes that carry our configuration, and of how many. */
static int common_epoch(const struct admission *admission, int *most)
{
    int common = 0;
    *most = 0;
    for (int i = 0; i < admission->settings.nodes; i++) {
        int epoch = eligibility_epoch_of(admission, i), count = 0;
        for (int k = 0; k < admission->settings.nodes; k++)
            count += eligibility_epoch_of(admission, k) == epoch;
        if (epoch == 0 || count < *most || (count == *most && epoch < common))
            continue;
        common = epoch;
        *most = count;
    }
    return common;
}

bool epoch_follow(struct admission *admission)
{
    int most, epoch = common_epoch(admission, &most);
    bool is_common = most >= admission->quorum;
    bool is_highest = true;
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].epoch_other > epoch ||
            admission->node[i].epoch_mark > epoch)
            is_highest = false;
    /* Names between may have taken the nodes that are missing; or all, if the
     * operator's word was enough. */
    if (epoch < admission->settings.config_epoch &&
        (admission->settings.has_take_over || !is_highest ||
         count_certain(admission, epoch) < admission->quorum))
        epoch = 0;
    bool counts = epoch != 0 && (admission->is_epoch_known
                                     ? is_common && epoch > admission->epoch
                                     : is_common || is_highest);
    if (!counts &&
        (admission->is_epoch_known || !eligibility_is_bound(admission)))
        return false;
    if (!counts) /* it may have followed marks, before it saw the others */
        epoch = admission->settings.config_epoch;
    admission->is_epoch_known |=
        counts && count_certain(admission, epoch) >= admission->quorum;
    bool is_new = epoch != admission->epoch;
    admission->epoch = epoch;
    return is_new;
}
