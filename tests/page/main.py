"""main.py ORIGIN PID NODE=PID…: the stories, in a browser that shows the page of
the server at ORIGIN, which has this PID and these nodes. STORIES takes those
whose names contain one of its words; the first one always runs."""
from __future__ import annotations

import os
import sys
import time
import traceback

import stories
import stories_auth
import stories_details
import stories_docs
import stories_force
import stories_foreign
import stories_night
from browser import Browser
from service import Service

STORIES = (
    stories.the_quorum_is_the_first_thing_one_sees,
    stories.a_paused_node_is_shown_within_3_s,
    stories.without_a_quorum_it_says_so,
    stories.traffic_is_drawn,
    stories.a_held_lock_and_its_waiters_are_shown,
    stories.readers_are_counted,
    stories.hostile_names_are_only_text,
    stories.a_prefix_and_show_more_narrow_and_widen,
    stories.all_of_it_is_reached_by_keyboard,
    stories.a_quarantine_counts_down,
    stories.pictures_are_taken,
    # meanwhile, the nodes that these have flushed come to vote again
    stories_details.hand_overs_are_listed,
    stories_details.the_watch_is_one_and_ends,
    stories_details.a_hidden_tab_asks_nothing,
    stories_details.hand_overs_without_end_are_bounded,
    stories_details.hostile_names_are_only_text_there,
    stories_details.a_refused_watch_waits_before_it_is_repeated,
    stories_details.a_watch_that_is_refused_is_told,
    stories_force.a_lock_is_released_by_force,
    stories_force.a_newer_holder_keeps_its_lock,
    stories_force.all_readers_are_released,
    stories_force.a_permit_is_released_by_its_id,
    stories_force.a_foreign_lock_is_not_offered,
    stories_force.who_may_not_force_is_told,
    stories_foreign.a_page_of_another_origin_gets_nothing,
    stories_auth.a_server_with_an_auth_file_asks_for_a_token,
    stories_night.who_does_not_vote_is_in_the_headline,
    stories_night.each_bad_state_leads_to_the_runbook,
    stories_night.the_runbook_unfolds,
    stories_night.a_first_start_is_no_outage,
    stories_night.clocks_apart_are_marked,
    stories_night.nothing_is_said_twice,
    stories_night.what_does_not_answer_claims_nothing,
    stories_night.what_never_answered_is_told,
    stories_night.its_age_counts_on,
    stories_night.a_hidden_page_claims_nothing,
    stories_night.who_is_refused_sees_no_outage,
    stories_night.a_server_that_stops_is_told,
    stories_night.several_servers_are_told,
    stories_night.limits_are_marked,
    stories_night.charts_begin_with_what_is_known,
    stories_night.what_is_waited_for_comes_first,
    stories_night.a_lock_far_down_is_found,
    stories_night.ten_thousand_locks_are_few_rows,
    stories_night.a_slow_list_is_read_less_often,
    stories_docs.the_pages_are_valid_html,
    stories_docs.the_api_is_described_whole,
    stories_docs.the_description_is_read_by_keyboard_and_phone,
    stories_docs.the_contents_lead_to_each_section,
    stories_docs.the_first_screen_shows_all_operations,
    stories_docs.a_link_unfolds_one_section,
    stories_docs.examples_are_open_and_errors_are_not,
    stories.no_error_and_no_request_elsewhere,
    stories.a_server_that_hangs_is_told,
    stories.a_server_that_died_is_told,
)


def is_chosen(name: str) -> bool:
    words = os.environ.get("STORIES", "").split()
    return not words or name == STORIES[0].__name__ or \
        any(word in name for word in words)


def main() -> int:
    nodes = dict(argument.split("=") for argument in sys.argv[3:])
    service = Service(sys.argv[1], int(sys.argv[2]),
                      {name: int(pid) for name, pid in nodes.items()})
    browser = Browser(service.origin)
    chosen = [story for story in STORIES if is_chosen(story.__name__)]
    failed = 0
    try:
        for story in chosen:
            name = story.__name__.replace("_", " ")
            began = time.monotonic()
            try:
                story(browser, service)
                took = time.monotonic() - began
                print(f"ok    {name} ({took:.0f} s)", flush=True)
            except Exception:  # whatever: it is told, and the others run
                failed += 1
                print(f"FAIL  {name}\n{traceback.format_exc(limit=-3)}",
                      flush=True)
    finally:
        browser.quit()
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
