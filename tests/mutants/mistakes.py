"""Defects of what keeps a mistaken server from disturbing others."""
from dataclasses import replace

from defect import Defect, Edit

IN_UNITS_AND_MODEL = [
    Defect("leaver that looks at all who wait", "unit",
           "what_each_leaver_costs_does_not_grow_with_those_that_wait", [Edit(
        "server/engine/waiting/waitqueue.c",
        "    while (queues->looks > 0 &&\n", "    while ("), Edit(
        "server/engine/waiting/waitqueue.c",
        "    if (queues->looks > 0)\n",
        "    if (queues->arrivals > 0)\n")], tests="waitqueue"),
    Defect("contender found late that sleeps", "unit",
           "who_may_go_after_more_have_left_than_can_be_looked_at_tries_soon",
           [Edit(
        "server/engine/waiting/waitqueue.c",
        "    it->plan->is_woken = true;\n", "")], tests="waits_several"),
    Defect("newcomer that overtakes whom the next tick finds", "unit",
           "a_newcomer_does_not_overtake_those_that_the_next_tick_finds", [Edit(
        "server/engine/waiting/waitqueue.c",
        "           (!queue->is_vacant || TAILQ_EMPTY(&queue->places));\n",
        "           queue->users > 0;\n")], tests="waitqueue"),
    Defect("call of a server at rest judged by an old tick", "unit",
           "whether_nodes_may_vote_is_judged_before_a_call", [Edit(
        "server/engine/engine.c",
        "    nodes_tick(&engine->nodes, environment_now(&engine->env));\n",
        "")], tests="rest"),
    Defect("rest while an operation is under way", "unit",
           "an_operation_ends_the_rest_and_its_end_begins_it", [Edit(
        "server/engine/engine.c",
        "           engine->operations.slots.used == 0 &&\n", "")],
           tests="rest"),
    Defect("inspection whose names are free of charge", "unit",
           "requests_count_by_what_they_ask", [Edit(
        "api/message/http.c",
        "        return names_count(route_names(match, names));\n",
        "        return route_names(match, names).len > 0 ? 1 : 0;\n")],
           tests="access_limits"),
    Defect("watch of many names inspected as often as one", "unit",
           "each_name_has_a_share_of_the_inspections", [Edit(
        "server/engine/watches.c",
        "    watches->names += names_count(resource);\n",
        "    watches->names++;\n"), Edit(
        "server/engine/watches.c",
        "    it->watches->names -= names_count(it->resource);\n",
        "    it->watches->names--;\n")], tests="watches"),
    Defect("number of an identity that moves with a reload", "unit",
           "a_number_stays_the_same_though_others_come_and_go", [Edit(
        "api/access/accounts.c",
        "        is_taken[list[i]->number] |= list[i]->identity != NULL;\n",
        "        is_taken[list[i]->number] = false;\n"), Edit(
        "api/access/accounts.c",
        "        if (list[i]->identity != NULL)\n            continue;\n",
        "")], tests="accounts"),
    Defect("queries by the place in the auth file", "unit",
           "after_a_reload_the_engine_is_told_the_same", [Edit(
        "api/access/access.c",
        "    return account != NULL ? account->number : 0;\n",
        "    return account != NULL\n"
        "               ? (int)(account->identity -\n"
        "                       access->accounts.identities->list) + 1\n"
        "               : 0;\n")], tests="access_limits"),
    Defect("reader with a key behind one that is not next", "unit",
           "it_holds_up_no_reader_who_can_go", [Edit(
        "server/engine/engine.c",
        "        is_behind && acquire->wait_ms == 0 &&\n"
        "        waits_has_writer(&engine->waits, acquire->resource, true);\n",
        "        is_behind && acquire->wait_ms == 0;\n")],
           tests="waits_several"),
    Defect("server that ends before its releases", "unit",
           "nodes_that_may_get_the_key_later_are_asked_once_more", [Edit(
        "server/engine/rounds/releases.c",
        "it != NULL && it->operation == 0)", "it != NULL)")],
        tests="releases"),
    Defect("no room for the last argument of a look", "unit",
           "the_longest_calls_fit", [Edit(
        "server/node/script.h",
        "SCRIPT_ARGS_MAX = 11,", "SCRIPT_ARGS_MAX = 10,")], tests="batch"),
    Defect("parser of JSON that goes on without memory", "unit",
           "strings_of_any_length_are_whole_or_not_read", [Edit(
        "api/message/jsonload.c",
        "    if (it == NULL && is_inside)\n",
        "    if (it == NULL && is_inside && size == 0)\n")], tests="jsonload"),
    Defect("machine marked while its name is in use", "unit",
           "story_60_a_machine_is_not_marked_while_its_name_is_in_use", [Edit(
        "server/engine/voting/members.c",
        "    if (members->node[node].is_outdated)\n",
        "    if (now_us < 0)\n")], tests="epoch"),
    Defect("name taken as soon as it leads elsewhere", "unit",
           "story_60_a_name_that_leads_elsewhere_is_not_taken_at_once", [Edit(
        "server/engine/voting/members.c",
        "    if (rules_may_be_elsewhere(members, node, now_us))\n",
        "    if (now_us < 0)\n")], tests="epoch"),
    Defect("marks before it has looked at a majority", "unit",
           "nothing_is_marked_before_a_majority_was_looked_at", [Edit(
        "server/engine/voting/members.c",
        "    if (!members->is_queried || !",
        "    if (!")], tests="epoch"),
    Defect("marks at its first look", "unit",
           "a_node_that_was_never_looked_at_is_not_marked", [Edit(
        "server/engine/voting/members.c",
        " || !members->node[node].is_known)\n", ")\n")], tests="epoch"),
    Defect("other installation's node taken for an old machine", "unit",
           "a_machine_of_other_names_is_no_outdated_one", [Edit(
        "server/engine/voting/members.c",
        "        return !rules_is_others(members, node, now_us) &&\n",
        "        return now_us > 0 &&\n")], tests="epoch"),
    Defect("node in use taken for one that is left over", "unit",
           "a_node_that_others_may_use_is_not_left_over", [Edit(
        "server/engine/voting/rules.c",
        "if (it->left_us == 0 || it->generation != it->left_generation) {",
        "if (it->left_us == 0) {")], tests="epoch"),
    Defect("node that is left over stays so", "unit",
           "a_node_that_is_left_over_is_marked_when_nobody_uses_it", [Edit(
        "server/engine/voting/rules.c",
        "(it->left_us == 0 || now_us < it->left_us + SILENT_US);",
        "now_us > 0;")], tests="epoch"),
    Defect("given epoch counts", "unit",
           "story_60_the_epoch_of_the_nodes_counts", [Edit(
        "server/engine/voting/rules.c",
        "    bool counts = epoch != 0 && (",
        "    bool counts = epoch < 0 && (")], tests="epoch"),
    Defect("take-over of another epoch accepted", "unit",
           "bad_flag_is_refused_with_option_value_and_limit", [Edit(
        "server/config/config.c",
        "    return config->take_over == 0 ||\n",
        "    return config->take_over >= 0 ||\n")], tests="config"),
    Defect("who takes over falls back", "unit",
           "stories_60_and_65_which_epoch_counts", [Edit(
        "server/engine/voting/rules.c",
        "(members->settings.has_take_over || !is_highest ||",
        "(")], tests="epoch"),
    Defect("lower epoch of a few nodes followed", "unit",
           "stories_60_and_65_which_epoch_counts", [Edit(
        "server/engine/voting/rules.c",
        "         count_certain(members, epoch) < members->quorum))",
        "         members->epoch == 0))")], tests="epoch"),
    Defect("the word of the operator makes a first start", "unit",
           "new_names_on_new_machines_are_no_first_start", [Edit(
        "server/engine/voting/members.c",
        "bool is_possible = members->epoch == 1;",
        "bool is_possible = !rules_is_taking_over(members);")],
           tests="firststart"),
    Defect("list forgotten while its node is away", "unit",
           "a_list_that_was_seen_goes_on_while_its_node_is_away", [Edit(
        "server/engine/voting/takeover.c",
        "    it->is_seen = it->is_marked = it->is_able = false;\n",
        "    *it = (struct takeover_node){0};\n")], tests="takeover"),
    Defect("list forgotten as the epoch is another", "unit",
           "a_list_that_was_seen_goes_on_in_the_next_epoch", [Edit(
        "server/engine/voting/members.c",
        "    takeover_begin(&members->takeover);\n",
        "    members->takeover = (struct takeover){0};\n"
        "    for (int i = 0; i < members->settings.nodes; i++)\n"
        "        members->node[i].found[0] = '\\0';\n")],
           tests="takeover"),
    Defect("a first start needs nodes of the base", "unit",
           "a_first_start_goes_on_beside_the_base", [Edit(
        "server/engine/voting/takeover.c",
        "(takeover_epoch_of(configuration) > 1 &&",
        "(takeover_epoch_of(configuration) > 0 &&")], tests="takeover"),
    Defect("a first start of a lower epoch is dead", "unit",
           "a_first_start_goes_on_beside_the_base", [Edit(
        "server/engine/voting/takeover.c",
        "(is_alive && takeover_epoch_of(other) == 1)",
        "(is_alive && takeover_epoch_of(other) == 0)")], tests="takeover"),
    Defect("epoch of what was passed ignored", "unit",
           "the_epoch_of_lists_that_were_passed_counts", [Edit(
        "server/engine/voting/takeover.c",
        "if (takeover_epoch_of(past) < epoch && takeover_epoch_of(past) > below)",
        "if (takeover_epoch_of(past) < 0)")], tests="takeover"),
    Defect("epoch of one node followed", "unit",
           "once_a_majority_told_it_one_node_changes_it_no_more", [Edit(
        "server/engine/voting/rules.c",
        "    bool is_common = most >= members->quorum;\n",
        "    bool is_common = most >= 1;\n")], tests="epoch"),
    Defect("other nodes replaced by any higher epoch", "unit",
           "only_the_next_epoch_replaces_other_nodes", [Edit(
        "server/engine/voting/rules.c",
        "(skipped > 0 && !rules_has_word(members))",
        "skipped < 0")],
        tests="epoch"),
    Defect("marks of nodes that never voted count", "unit",
           "stories_60_and_65_which_epoch_counts", [Edit(
        "server/engine/voting/rules.c",
        "    return it->is_only_marked && is_bound(members)\n",
        "    return it->epoch_ours < 0\n")], tests="epoch"),
    Defect("marks never replaced by the right epoch", "unit",
           "story_60_the_next_epoch_replaces_marks_that_do_not_bind", [Edit(
        "server/engine/voting/rules.c",
        "           (rules_epoch_of(members, node) == 0 &&\n",
        "           (rules_epoch_of(members, node) < 0 &&\n")],
        tests="epoch"),
    Defect("marks not replaced by an epoch in use", "unit",
           "story_60_an_epoch_in_use_replaces_marks_that_do_not_bind", [Edit(
        "server/engine/voting/rules.c",
        "            (counting > 0 || (rules",
        "            (counting < 0 || (rules")], tests="epoch"),
    Defect("marks replaced where a node has voted", "unit",
           "the_mark_of_a_node_that_has_voted_is_not_replaced_by_marks", [Edit(
        "server/engine/voting/rules.c",
        "    if (!members->node[node].is_only_marked)\n"
        "        return false;\n", "")], tests="epoch"),
    Defect("promises of the old names not waited for", "unit",
           "story_65_the_last_promise_of_a_majority_is_waited_for", [Edit(
        "server/engine/voting/rules.c",
        "        return now_us >= until_us;",
        "        return now_us >= 0;")], tests="takeover"),
    Defect("word for one epoch holds for each", "unit",
           "story_65_the_word_does_not_hold_for_an_epoch_that_is_followed",
           [Edit("server/engine/voting/rules.c",
                 "           members->epoch == members->settings.config_epoch;",
                 "           true;")], tests="takeover"),
    Defect("promises of the second of two lists not waited for", "unit",
           "story_65_the_last_promise_of_each_list_is_waited_for", [Edit(
        "server/engine/voting/takeover.c",
        "        if (!takeover_tells(takeover, i))\n            continue;",
        "        if (!is_of(it->taken, base))\n            continue;")],
        tests="takeover"),
    Defect("one node tells of the old names", "unit",
           "story_65_the_last_promise_of_a_majority_is_waited_for", [Edit(
        "server/engine/voting/takeover.c",
        "nodeset_count(tellers) >= quorum_of(names);",
        "tellers != 0;")], tests="takeover"),
    Defect("replaced machine tells of the old names", "unit",
           "story_59_a_machine_that_was_replaced_tells_nothing", [Edit(
        "server/engine/voting/takeover.c",
        " && !is_replaced(takeover, i, told))",
        ")")], tests="takeover"),
    Defect("forgetful node tells of the old names", "unit",
           "story_59_who_voted_under_other_names_tells_what_it_promised", [Edit(
        "server/node/scripts/permission.lua",
        "epoch_of(admit) < epoch and has_name(admit) and\n"
        "                is_of_this_life(admit)",
        "epoch_of(admit) < epoch and has_name(admit)")], tests="permission"),
    Defect("all that are marked admitted", "unit",
           "who_forgets_after_all_was_told_waits_like_others", [Edit(
        "server/engine/voting/takeover.c",
        "it->is_seen && it->is_marked && it->taken[0] != '\\0';",
        "it->is_seen && it->is_marked;")], tests="takeover"),
    Defect("marks counted one after the other", "unit",
           "story_65_all_are_marked_at_one_instant", [Edit(
        "server/engine/voting/takeover.c",
        "members->node[i].looked_us >= since_us)",
        "since_us > 0)")], tests="takeover"),
    Defect("names in between ignored", "unit",
           "story_65_another_configuration_must_not_have_counted", [Edit(
        "server/engine/voting/takeover.c",
        "count->is_dead = !count->has_others;",
        "count->is_dead = true;")], tests="takeover"),
    Defect("names in between that were marked once ignored", "unit",
           "story_65_back_before_a_new_name_votes", [Edit(
        "server/engine/voting/takeover.c",
        "names - carriers < quorum_of(names) &&",
        "carriers > 0 &&")], tests="takeover"),
    Defect("rival of the same epoch taken for dead", "unit",
           "story_65_a_rival_that_was_replaced_may_still_vote", [Edit(
        "server/engine/voting/takeover.c",
        "            takeover_epoch_of(configuration) < members->epoch);",
        "            takeover_epoch_of(configuration) <= members->epoch);")],
        tests="takeover"),
    Defect("no way back before a new name votes", "unit",
           "story_65_back_before_a_new_name_votes", [Edit(
        "server/engine/voting/takeover.c",
        "(names > 0 && names - carriers",
        "(names < 0 && names - carriers")], tests="takeover"),
    Defect("marks in between not kept", "unit",
           "story_65_each_mark_that_it_passed_is_told", [Edit(
        "server/node/scripts/permission.lua",
        "passed = passed .. other",
        "passed = ''")], tests="permission"),
    Defect("what was taken kept through a loss", "unit",
           "story_65_what_another_life_had_is_not_told", [Edit(
        "server/node/scripts/permission.lua",
        "if not is_of_this_life(taken) then",
        "if taken == '' then")], tests="permission"),
    Defect("incarnations under other names ignored", "unit",
           "story_65_incarnations_of_the_epoch_before_outdate_no_other_names", [Edit(
        "server/engine/voting/members.c",
        "counts ? other : own",
        "counts ? own : own")], tests="takeover"),
    Defect("who is dead not kept", "unit",
           "story_65_who_is_dead_is_told_while_the_node_votes", [Edit(
        "server/node/scripts/permission.lua",
        "if dead ~= '' then",
        "if dead == '.' then")], tests="permission"),
    Defect("who is dead forgotten by a restart", "unit",
           "story_65_who_is_dead_is_told_after_a_restart", [Edit(
        "server/node/scripts/permission.lua",
        "if taken == '' and begins(admit, of_this_node) then",
        "if word == 'ADMITTED' then")], tests="permission"),
    Defect("who is dead not believed after a restart", "unit",
           "story_65_who_is_dead_is_known_after_a_restart", [Edit(
        "server/engine/voting/takeover.c",
        "is_ours ? ABOVE_ALL :",
        "look->word == LOOK_ADMITTED ? ABOVE_ALL :")],
        tests="takeover"),
    Defect("who is dead deleted by a server that does not know", "unit",
           "story_65_who_is_dead_is_told_while_the_node_votes", [Edit(
        "server/node/scripts/permission.lua",
        "'mark', 'taken', 'passed')\n        dead = join",
        "'mark', 'taken', 'passed', 'dead')\n        dead = join")],
        tests="permission"),
    Defect("marks passed of which nobody can be told", "unit",
           "story_65_it_passes_no_more_marks_than_it_can_tell", [Edit(
        "server/node/scripts/permission.lua",
        "#passed + #other > 167",
        "#passed + #other > 999")], tests="permission"),
    Defect("lists of a lower epoch ignored", "unit",
           "story_65_a_list_of_a_lower_epoch_may_live", [Edit(
        "server/engine/voting/takeover.c",
        ": is_alive;",
        ": takeover_epoch_of(other) >= takeover_epoch_of(count->base);")], tests="takeover"),
    Defect("who is dead not heard by other names", "unit",
           "story_65_a_list_of_a_lower_epoch_may_live", [Edit(
        "server/engine/voting/takeover.c",
        "takeover_epoch_of(it->taken));",
        "0);")], tests="takeover"),
    Defect("marks that a node passed taken for dead", "unit",
           "story_65_a_list_is_not_dead_as_a_node_passed_its_mark", [Edit(
        "server/engine/voting/takeover.c",
        "takeover_epoch_of(it->taken));",
        "ABOVE_ALL);")], tests="takeover"),
    Defect("plan without the promises of the second of two lists", "unit",
           "a_start_is_foretold", [Edit(
        "server/engine/voting/outlook.c",
        "if (members->takeover.node[i].taken[0] != '\\0')",
        "if ((count.tellers & 1u << i) != 0)")], tests="plan"),
    Defect("dead list's node waited for, though it was before", "unit",
           "story_65_who_is_dead_is_known_after_a_restart", [Edit(
        "server/engine/voting/rules.c",
        "    if (takeover_is_of_dead(members, node))\n"
        "        return true;\n", "")], tests="takeover"),
    Defect("word for nodes of the epoch before only", "unit",
           "story_65_the_word_replaces_names_of_any_lower_epoch", [Edit(
        "server/engine/voting/rules.c",
        "(skipped > 0 && !rules_has_word(members))",
        "skipped > 0")], tests="takeover"),
    Defect("who was dead before is not told to other names", "unit",
           "story_65_who_is_dead_is_told_while_the_node_votes", [Edit(
        "server/node/scripts/permission.lua",
        "            elseif told ~= '' then",
        "            elseif told == '.' then")], tests="permission"),
    Defect("who was dead before is forgotten", "unit",
           "story_65_who_was_dead_before_is_kept", [Edit(
        "server/node/scripts/permission.lua",
        "list = list .. each",
        "list = list")], tests="permission"),
    Defect("who was dead before is not believed", "unit",
           "story_65_a_server_that_restarts_knows_who_is_dead", [Edit(
        "server/engine/voting/takeover.c",
        "        list += it.len;",
        "        break;")], tests="takeover"),
    Defect("who is dead known to one server only", "unit",
           "story_65_a_server_that_restarts_knows_who_is_dead", [Edit(
        "server/engine/voting/takeover.c",
        "is_ours ? ABOVE_ALL :",
        "look->word == LOOK_WORDS ? ABOVE_ALL :")], tests="takeover"),
    Defect("marks that took nodes replaced by a rival", "unit",
           "story_65_of_two_that_take_over_at_once_neither_takes_from_the_other", [Edit(
        "server/node/scripts/permission.lua",
        "ARGV[a + 9] == '0' then",
        "ARGV[a + 9] == '2' then")], tests="permission"),
    Defect("numbers of the old names not passed", "unit",
           "numbers_go_on_above_those_that_were_told", [Edit(
        "server/engine/voting/rules.c",
        "? at_least(members->takeover.node[node].number,\n"
        "                          members->takeover.number)",
        "? members->takeover.node[node].number")], tests="takeover"),
    Defect("new list that marks in vain", "unit",
           "story_65_a_list_that_cannot_replace_the_old_one_marks_nothing", [Edit(
        "server/engine/voting/rules.c",
        "    return count.is_dead;",
        "    return true;")], tests="takeover"),
    Defect("old names brought back by time", "unit",
           "story_65_who_saw_newer_names_admits_nobody_by_time_alone", [Edit(
        "server/engine/voting/rules.c",
        "(!members->is_succeeded && rules_looked_us(members)",
        "(rules_looked_us(members)")], tests="takeover"),
    Defect("plan that marks", "unit", "takes_over_nothing", [
        Edit("server/engine/voting/members.c",
             "    if (members->settings.is_observer) {\n",
             "    if (members->settings.is_observer && now_us < 0) {\n"),
        Edit("server/engine/voting/members.c",
             "    if (members->settings.is_observer)\n",
             "    if (members->settings.is_observer && now_us < 0)\n")],
        tests="observer"),
    Defect("plan that writes", "unit",
           "an_admitted_node_keeps_generation_limit_and_what_it_knows_of_others",
           [Edit("server/node/scripts/permission.lua",
                 "return reads[command] and redis.call(command, ...)",
                 "return redis.call(command, ...)")], tests="watching"),
    Defect("established in the epoch before", "model", "two_holders",
           model="epochs", rule="STAYS_ESTABLISHED",
           world="FOLLOWS OLD_T=1 KEEPS"),
    Defect("mark of a node that has voted replaced", "model", "two_holders",
           model="marks", rule="LOWERS_ALL", world="OLD=3"),
    Defect("such a mark replaced beside marks", "model", "two_holders",
           model="marks", rule="BY_MARKS", world="OLD=3"),
]
# What the simulator draws where lists of names change again and again.
IN_LISTS = {  # what falls, and near which seed
    "word for one epoch holds for each": ("exclusion", 37),
    "promises of the second of two lists not waited for": ("exclusion", 9),
    "lists of a lower epoch ignored": ("exclusion", 145),
    "a first start of a lower epoch is dead": ("exclusion", 51489),
    "who is dead not heard by other names": ("able", 5),
    "who was dead before is not believed": ("able", 17),
}
# What a mistaken server does to the others beside whom it runs.
ON_REAL_NODES = ("machine marked while its name is in use",
                 "given epoch counts")
MISTAKES = IN_UNITS_AND_MODEL + [
    replace(defect, name=f"{defect.name}, drawn", suite="sim",
            falls=IN_LISTS[defect.name][0], seed=IN_LISTS[defect.name][1],
            tests="", faults="lists")
    for defect in IN_UNITS_AND_MODEL if defect.name in IN_LISTS] + [
    replace(defect, name=f"{defect.name}, for real", suite="nemesis",
            falls="undisturbed", tests="", faults="undisturbed", seed=3)
    for defect in IN_UNITS_AND_MODEL if defect.name in ON_REAL_NODES]
