"""Defects of what keeps a mistaken server from disturbing others."""
from defect import Defect, Edit

MISTAKES = [
    Defect("machine marked while its name is in use", "unit",
           "story_60_a_machine_is_not_marked_while_its_name_is_in_use", [Edit(
        "server/engine/voting/admission.c",
        "    if (admission->node[node].is_outdated) /* even",
        "    if (now_us < 0) /* even")], tests="epoch"),
    Defect("marks before it has looked at a majority", "unit",
           "nothing_is_marked_before_a_majority_was_looked_at", [Edit(
        "server/engine/voting/admission.c",
        "    if (!admission->is_surveyed)\n",
        "    if (!admission->is_surveyed && now_us < 0)\n")], tests="epoch"),
    Defect("given epoch counts", "unit",
           "story_60_the_epoch_of_the_nodes_counts", [Edit(
        "server/engine/voting/epoch.c",
        "    if (epoch == 0 || !counts)\n",
        "    if (epoch >= 0 || !counts)\n")], tests="epoch"),
    Defect("epoch of one node followed", "unit",
           "once_a_majority_told_it_one_node_changes_it_no_more", [Edit(
        "server/engine/voting/epoch.c",
        "    bool is_certain = most >= admission->settings.quorum;\n",
        "    bool is_certain = most >= 1;\n")], tests="epoch"),
    Defect("other nodes replaced in part", "unit",
           "other_nodes_are_replaced_as_a_whole", [Edit(
        "server/engine/voting/eligibility.c", "there >= wanted &&",
        "there > 0 && wanted > 0 &&")], tests="epoch"),
    Defect("other nodes replaced by any higher epoch", "unit",
           "only_the_next_epoch_replaces_other_nodes", [Edit(
        "server/engine/voting/eligibility.c",
        "           admission->epoch == eligibility_epoch_below(admission) + 1;",
        "           admission->epoch > eligibility_epoch_below(admission);")],
        tests="epoch"),
    Defect("established in the epoch before", "model", "two_holders",
           model="epochs", rule="STAYS_ESTABLISHED",
           world="FOLLOWS OLD_T=1 KEEPS"),
]
