//! Each promise of the port, held against the stores that `everywhere` of the room above has: this file is part of
//! several rooms.

use posse_testkit::store_contract::{self as contract, feed, wake};

use super::everywhere;

#[tokio::test]
async fn a_refused_step_leaves_nothing() {
    everywhere(contract::a_refused_step_leaves_nothing).await;
}

// proves TR-01 (part: numbered entries)
#[tokio::test]
async fn entries_come_back_as_they_went_in() {
    everywhere(contract::entries_come_back_as_they_went_in).await;
}

// proves TR-03 (part: fenced)
#[tokio::test]
async fn an_old_epoch_is_refused_alone() {
    everywhere(contract::an_old_epoch_is_refused_alone).await;
}

#[tokio::test]
async fn a_held_agent_is_refused_to_others() {
    everywhere(contract::a_held_agent_is_refused_to_others).await;
}

#[tokio::test]
async fn steps_that_share_a_batch_are_what_they_are_alone() {
    everywhere(contract::steps_that_share_a_batch_are_what_they_are_alone).await;
}

// proves FD-04 (part: births)
#[tokio::test]
async fn an_id_names_its_realms_bucket() {
    everywhere(contract::an_id_names_its_realms_bucket).await;
}

#[tokio::test]
async fn segments_are_read_first() {
    everywhere(contract::segments_are_read_first).await;
}

// proves WA-06 (part: windows)
#[tokio::test]
async fn entries_come_in_pages() {
    everywhere(contract::entries_come_in_pages).await;
}

#[tokio::test]
async fn another_model_is_an_entry() {
    everywhere(contract::another_model_is_an_entry).await;
}

#[tokio::test]
async fn heads_come_back_and_are_shared() {
    everywhere(contract::heads_come_back_and_are_shared).await;
}

// proves MC-03 (part: stored)
#[tokio::test]
async fn definitions_come_back_with_their_entries() {
    everywhere(contract::definitions_come_back_with_their_entries).await;
}

#[tokio::test]
async fn a_compaction_stands_for_all_before_it() {
    everywhere(contract::a_compaction_stands_for_all_before_it).await;
}

#[tokio::test]
async fn a_fork_of_a_compacted_agent_begins_with_its_compaction() {
    everywhere(contract::a_fork_of_a_compacted_agent_begins_with_its_compaction).await;
}

#[tokio::test]
async fn the_tier_of_a_call_is_kept() {
    everywhere(contract::the_tier_of_a_call_is_kept).await;
}

#[tokio::test]
async fn calls_are_open_until_their_results() {
    everywhere(contract::calls_are_open_until_their_results).await;
}

#[tokio::test]
async fn seen_files_are_kept_by_path() {
    everywhere(contract::seen_files_are_kept_by_path).await;
}

#[tokio::test]
async fn charges_add_up() {
    everywhere(contract::charges_add_up).await;
}

#[tokio::test]
async fn a_subtree_has_one_sum() {
    everywhere(contract::a_subtree_has_one_sum).await;
}

#[tokio::test]
async fn a_call_in_flight_is_reserved() {
    everywhere(contract::a_call_in_flight_is_reserved).await;
}

#[tokio::test]
async fn a_call_about_an_agent_is_booked() {
    everywhere(contract::a_call_about_an_agent_is_booked).await;
}

// proves FD-05 (part: sessions)
#[tokio::test]
async fn sessions_come_in_pages() {
    everywhere(contract::sessions_come_in_pages).await;
}

// proves FD-05 (part: agents)
#[tokio::test]
async fn agents_come_in_pages() {
    everywhere(contract::agents_come_in_pages).await;
}

// proves FD-05 (part: mail)
#[tokio::test]
async fn mail_comes_in_pages() {
    everywhere(contract::mail_comes_in_pages).await;
}

// proves FD-05 (part: tasks)
#[tokio::test]
async fn tasks_come_in_pages() {
    everywhere(contract::tasks_come_in_pages).await;
}

// proves FD-05 (part: teams)
#[tokio::test]
async fn teams_come_in_pages() {
    everywhere(contract::teams_come_in_pages).await;
}

// proves FD-05 (part: notes)
#[tokio::test]
async fn notes_come_in_pages() {
    everywhere(contract::notes_come_in_pages).await;
}

// proves FD-05 (part: requests)
#[tokio::test]
async fn requests_come_in_pages() {
    everywhere(contract::requests_come_in_pages).await;
}

// proves FD-06 (part: kept by the feed)
#[tokio::test]
async fn rows_are_kept_by_the_feed() {
    everywhere(contract::rows_are_kept_by_the_feed).await;
}

#[tokio::test]
async fn sessions_are_found() {
    everywhere(contract::sessions_are_found).await;
}

#[tokio::test]
async fn a_step_is_committed_once() {
    everywhere(contract::a_step_is_committed_once).await;
}

#[tokio::test]
async fn operations_commit_with_their_call() {
    everywhere(contract::operations_commit_with_their_call).await;
}

#[tokio::test]
async fn what_is_open_is_taken_along() {
    everywhere(contract::what_is_open_is_taken_along).await;
}

// proves SM-08 (part: in the inbox)
#[tokio::test]
async fn mail_keeps_its_order() {
    everywhere(contract::mail_keeps_its_order).await;
}

#[tokio::test]
async fn nobody_gets_mail_for_nobody() {
    everywhere(contract::nobody_gets_mail_for_nobody).await;
}

#[tokio::test]
async fn an_inbox_has_room_for_so_much() {
    everywhere(contract::an_inbox_has_room_for_so_much).await;
}

// proves SM-05 (part: when it is written)
#[tokio::test]
async fn mail_is_taken_once() {
    everywhere(contract::mail_is_taken_once).await;
}

#[tokio::test]
async fn no_end_while_mail_waits() {
    everywhere(contract::no_end_while_mail_waits).await;
}

// proves TK-01 (part: the fields)
#[tokio::test]
async fn tasks_come_back_as_they_went_in() {
    everywhere(contract::tasks_come_back_as_they_went_in).await;
}

#[tokio::test]
async fn metadata_are_not_too_deep() {
    everywhere(contract::metadata_are_not_too_deep).await;
}

// proves TK-02 (part: derived)
// proves TK-03 (part: blockers)
#[tokio::test]
async fn what_waits_is_freed() {
    everywhere(contract::what_waits_is_freed).await;
}

// proves TK-02 (part: cycles)
#[tokio::test]
async fn circles_are_refused() {
    everywhere(contract::circles_are_refused).await;
}

// proves TK-07
#[tokio::test]
async fn deleted_tasks_count_as_done() {
    everywhere(contract::deleted_tasks_count_as_done).await;
}

// proves TK-11 (part: an assignment)
#[tokio::test]
async fn tasks_are_changed_by_who_may() {
    everywhere(contract::tasks_are_changed_by_who_may).await;
}

// proves TK-04 (part: not_found; already_claimed; already_completed; blocked; one winner)
#[tokio::test]
async fn a_claim_is_granted_to_one() {
    everywhere(contract::a_claim_is_granted_to_one).await;
}

// proves TK-03 (part: pending and unowned; blockers)
#[tokio::test]
async fn the_lowest_claimable_number_is_next() {
    everywhere(contract::the_lowest_claimable_number_is_next).await;
}

// proves TK-08 (part: the note)
#[tokio::test]
async fn a_task_of_a_host_that_left_is_free() {
    everywhere(contract::a_task_of_a_host_that_left_is_free).await;
}

// proves TE-01 (part: several teams)
#[tokio::test]
async fn teams_have_members() {
    everywhere(contract::teams_have_members).await;
}

#[tokio::test]
async fn notes_have_versions() {
    everywhere(contract::notes_have_versions).await;
}

// proves TE-01 (part: TeamDelete)
#[tokio::test]
async fn teams_are_deleted_when_nobody_is_there() {
    everywhere(contract::teams_are_deleted_when_nobody_is_there).await;
}

// proves TE-17 (part: a number)
// proves SM-11 (part: reserved names)
#[tokio::test]
async fn a_taken_name_gets_a_number() {
    everywhere(contract::a_taken_name_gets_a_number).await;
}

#[tokio::test]
async fn many_join_at_once() {
    everywhere(contract::many_join_at_once).await;
}

#[tokio::test]
async fn a_wished_colour_is_given_if_it_is_free() {
    everywhere(contract::a_wished_colour_is_given_if_it_is_free).await;
}

// proves TE-16 (part: the first prompt)
#[tokio::test]
async fn a_mate_is_born_into_its_team() {
    everywhere(contract::a_mate_is_born_into_its_team).await;
}

// proves TE-02
// proves TE-03 (part: the states)
#[tokio::test]
async fn members_are_shown_as_they_stand() {
    everywhere(contract::members_are_shown_as_they_stand).await;
}

#[tokio::test]
async fn ones_own_teams_are_found() {
    everywhere(contract::ones_own_teams_are_found).await;
}

#[tokio::test]
async fn leadership_is_handed_over() {
    everywhere(contract::leadership_is_handed_over).await;
}

#[tokio::test]
async fn who_ends_leads_no_more() {
    everywhere(contract::who_ends_leads_no_more).await;
}

#[tokio::test]
async fn who_may_remove_a_member() {
    everywhere(contract::who_may_remove_a_member).await;
}

#[tokio::test]
async fn names_are_nobodys_twice() {
    everywhere(contract::names_are_nobodys_twice).await;
}

#[tokio::test]
async fn what_was_lost_is_found() {
    everywhere(contract::what_was_lost_is_found).await;
}

#[tokio::test]
async fn nobody_asks_itself() {
    everywhere(contract::nobody_asks_itself).await;
}

#[tokio::test]
async fn who_leaves_gives_its_tasks_back() {
    everywhere(contract::who_leaves_gives_its_tasks_back).await;
}

// proves QU-02 (part: once; agents)
#[tokio::test]
async fn a_question_is_answered_once() {
    everywhere(contract::a_question_is_answered_once).await;
}

// proves QU-01 (part: the store)
#[tokio::test]
async fn questions_outlive_their_process() {
    everywhere(contract::questions_outlive_their_process).await;
}

#[tokio::test]
async fn questions_come_in_pages() {
    everywhere(contract::questions_come_in_pages).await;
}

// proves SM-09 (part: not open)
#[tokio::test]
async fn a_request_is_answered_once() {
    everywhere(contract::a_request_is_answered_once).await;
}

// proves SM-06 (part: not broadcast)
#[tokio::test]
async fn requests_are_made_by_who_may() {
    everywhere(contract::requests_are_made_by_who_may).await;
}

#[tokio::test]
async fn requests_end_with_who_they_are_about() {
    everywhere(contract::requests_end_with_who_they_are_about).await;
}

// proves TK-05 (part: the lowest for its role; marked)
#[tokio::test]
async fn roles_say_who_takes_what() {
    everywhere(contract::roles_say_who_takes_what).await;
}

// proves TK-10 (part: the check)
#[tokio::test]
async fn an_unchecked_task_is_not_completed() {
    everywhere(contract::an_unchecked_task_is_not_completed).await;
}

#[tokio::test]
async fn agents_are_found() {
    everywhere(contract::agents_are_found).await;
}

// proves SM-12 (part: names)
#[tokio::test]
async fn a_name_is_given_once() {
    everywhere(contract::a_name_is_given_once).await;
}

#[tokio::test]
async fn the_unfinished_are_found() {
    everywhere(contract::the_unfinished_are_found).await;
}

#[tokio::test]
async fn children_are_found_with_their_calls() {
    everywhere(contract::children_are_found_with_their_calls).await;
}

#[tokio::test]
async fn a_team_goes_out_and_comes_in() {
    everywhere(contract::a_team_goes_out_and_comes_in).await;
}

#[tokio::test]
async fn an_archive_that_contradicts_itself_is_refused() {
    everywhere(contract::an_archive_that_contradicts_itself_is_refused).await;
}

#[tokio::test]
async fn mail_wakes_the_host_of_its_recipient() {
    everywhere(wake::mail_wakes_the_host_of_its_recipient).await;
}

#[tokio::test]
async fn mail_that_waits_is_told_to_who_takes_the_agent() {
    everywhere(wake::mail_that_waits_is_told_to_who_takes_the_agent).await;
}

#[tokio::test]
async fn a_claimable_task_wakes_the_hosts_of_its_members() {
    everywhere(wake::a_claimable_task_wakes_the_hosts_of_its_members).await;
}

// proves TK-06 (part: wakes)
#[tokio::test]
async fn a_given_task_wakes_when_it_is_ready() {
    everywhere(wake::a_given_task_wakes_when_it_is_ready).await;
}

#[tokio::test]
async fn the_tasks_of_a_host_that_leaves_are_pending() {
    everywhere(wake::the_tasks_of_a_host_that_leaves_are_pending).await;
}

#[tokio::test]
async fn a_host_that_leaves_is_told() {
    everywhere(wake::a_host_that_leaves_is_told).await;
}

#[tokio::test]
async fn listening_that_is_given_up_loses_nothing() {
    everywhere(wake::listening_that_is_given_up_loses_nothing).await;
}

#[tokio::test]
async fn dropping_the_store_finishes_what_is_queued() {
    everywhere(contract::dropping_the_store_finishes_what_is_queued).await;
}

#[tokio::test]
async fn hosts_take_turns() {
    everywhere(contract::hosts_take_turns).await;
}

#[tokio::test]
async fn a_take_that_nobody_waits_for_holds_nothing() {
    everywhere(contract::a_take_that_nobody_waits_for_holds_nothing).await;
}

// proves FD-01 (part: whole)
#[tokio::test]
async fn commits_are_numbered() {
    everywhere(feed::commits_are_numbered).await;
}

// proves FD-02 (part: waiting)
#[tokio::test]
async fn readers_are_told() {
    everywhere(feed::readers_are_told).await;
}

// proves FD-01 (part: dense)
#[tokio::test]
async fn numbers_are_dense_whoever_writes() {
    everywhere(feed::numbers_are_dense_whoever_writes).await;
}
