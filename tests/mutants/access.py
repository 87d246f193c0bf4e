"""Defects of who is let in, and of what that costs: no lock is at stake."""
from __future__ import annotations

from defect import Defect, Edit

ACCESS = [
    Defect("a common name beside alternative names", "unit",
           "all_names_are_taken_with_their_kinds", [Edit(
               "api/http/tls.c",
               "    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)\n"
               "        return add_common(list, certificate);\n",
               "    if (!add_common(list, certificate))\n"
               "        return false;\n"
               "    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)\n"
               "        return true;\n")], tests="peername"),
    Defect("a URI taken for a DNS name", "unit",
           "all_names_are_taken_with_their_kinds", [Edit(
               "api/http/tls.c", '        return "uri:";\n',
               '        return "dns:";\n')], tests="peername"),
    Defect("the first of several identities taken", "unit",
           "a_name_counts_as_one_of_its_kind", [Edit(
               "api/access/identities.c",
               "        if (found >= 0)\n"
               "            return IDENTITIES_SEVERAL;\n",
               "        if (found >= 0)\n"
               "            return found;\n")], tests="identities"),
    Defect("a list at the price of a page of usual size", "unit",
           "requests_count_by_what_they_ask", [Edit(
               "api/message/http.c",
               "match->route == ROUTE_POOL ? QUERY_LIMIT : QUERY_PAGE_SIZE;",
               "QUERY_LIMIT;")], tests="access_limits"),
    Defect("an acquire of several at the price of one", "unit",
           "requests_count_by_what_they_ask", [Edit(
               "api/locks.c",
        "names_count(body->resource) + ", "1 + ")],
           tests="access_limits"),
    Defect("all readers of a lock counted once", "unit",
           "each_reader_counts_from_its_acquire", [Edit(
               "api/access/accounts.c",
               "    len += span_copy(text + len, reader);\n", "")],
           tests="access_limits"),
    Defect("a downgraded lock counted twice", "unit",
           "a_downgraded_lock_is_one_of_both", [Edit(
               "api/access/accounts.c",
               "        holdings_release(all, reservation, lock->number);\n", "")],
           tests="holdings"),
    Defect("a release that ends the count of a later grant", "unit",
           "a_release_ends_no_later_grant", [Edit(
               "api/access/accounts.c",
               "    if (reservation->until_us != 0 && reservation->number <= number)\n",
               "    if (reservation->until_us != 0)\n")], tests="holdings"),
    Defect("a lost answer that ends the count of a later lock", "unit",
           "a_lost_answer_ends_no_later_lock", [Edit(
               "api/access/access.c",
               "access->holdings, caller->reservation, caller->granted);",
               "access->holdings, caller->reservation, INT64_MAX);")],
           tests="access_limits"),
    Defect("places forgotten with who is removed", "unit",
           "who_is_removed_while_it_waits_and_returns_has_its_share", [Edit(
               "api/access/accounts.c",
               "    return taken > 0 || it->locks > 0;\n",
               "    return it->locks > 0;\n")],
           tests="access_limits"),
    Defect("a release that counts only for who is told", "unit",
           "a_release_that_nobody_is_told_of_counts", [Edit(
               "api/access/access.c",
               "    bool is_acquire = call->kind == LOCK_ACQUIRE;\n",
               "    bool is_acquire = call->kind != LOCK_EXTEND;\n")],
           tests="exchange_strangers"),
    Defect("a count that ends without the token", "unit",
           "what_its_token_does_not_find_counts_no_longer", [Edit(
               "api/access/accounts.c",
               "    return reservation->number == number &&\n"
               "           span_is_same(random,\n"
               "                        (struct span){reservation->random, "
               "sizeof reservation->random});\n",
               "    return reservation->number == number && random.len > 0;\n")],
           tests="access_limits"),
    Defect("a count that outlives what is gone", "unit",
           "what_its_token_does_not_find_counts_no_longer", [Edit(
               "api/access/access.c",
               "    case OUTCOME_NOT_OWNER:\n"
               "        return call->caller->shows_token;\n",
               "")],
           tests="access_limits"),
    Defect("what was forced once and granted anew", "unit",
           "what_was_forced_in_part_is_granted_anew", [Edit(
               "api/access/accounts.c", "        reservation->forced = 0;\n",
               "        reservation->reservations += 0;\n")],
           tests="holdings"),
    Defect("parts that were forced forgotten", "unit",
           "what_is_forced_part_by_part_counts_until_the_last", [Edit(
               "api/access/accounts.c", "            it->forced |= bit;\n",
               "            it->forced = bit;\n")],
           tests="holdings"),
    Defect("readers with one key that are all granted", "unit",
           "of_readers_with_one_key_at_once_one_is_granted", [Edit(
               "server/engine/waiting/waits.c",
               "            else if (granted->is_shared && it->is_shared && has_key &&",
               "            else if (false && it->is_shared && has_key &&")],
           tests="waits_repeats"),
    Defect("a repeat that counts only for who is told", "unit",
           "a_repeat_that_nobody_is_told_of_counts", [Edit(
               "api/access/accounts.c",
               "        holdings_grant(all, reservation, reservation->number, until_us);\n",
               "        reservation->reservations += 0;\n")],
           tests="exchange_strangers"),
]
