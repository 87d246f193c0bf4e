"""Defects of who is let in, and of what that costs: no lock is at stake."""
from __future__ import annotations

from defect import Defect, Edit

ACCESS = [
    Defect("a common name beside alternative names", "unit",
           "all_names_are_taken_with_their_kinds", [Edit(
               "api/http/peername.c",
               "    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)\n"
               "        return add_common(list, certificate);\n",
               "    if (!add_common(list, certificate))\n"
               "        return false;\n"
               "    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)\n"
               "        return true;\n")], tests="peername"),
    Defect("a URI taken for a DNS name", "unit",
           "all_names_are_taken_with_their_kinds", [Edit(
               "api/http/peername.c", '        return "uri:";\n',
               '        return "dns:";\n')], tests="peername"),
    Defect("the first of several identities taken", "unit",
           "a_name_counts_as_one_of_its_kind", [Edit(
               "api/access/identities.c",
               "        if (found >= 0)\n"
               "            return IDENTITIES_SEVERAL;\n",
               "        if (found >= 0)\n"
               "            return found;\n")], tests="identities"),
    Defect("a heartbeat at the price of one request", "unit",
           "it_counts_as_many_requests_as_it_has_locks", [Edit(
               "api/heartbeat.c",
               "access_charge(service->access, request, list.count - 1, "
               "response))",
               "access_charge(service->access, request, 0, response))")],
           tests="heartbeat"),
]
