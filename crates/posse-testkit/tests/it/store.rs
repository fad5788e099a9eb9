//! The contract of stores, kept by SQLite in a file and in memory; and what only a file can suffer.

mod explored;
mod faults;
mod processes;
mod property;
mod races;
mod room;
mod stopped;
mod wakes;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_protocol::{EntryKind, ListId, Name, RealmId, TaskId};
use posse_runtime::port::store::{
    Epoch, Joining, Op, Operation, Order, Refusal, SessionFilter, Step, Store, StoreError, TaskChange,
    TaskFilter, Wake, checksum,
};
use posse_store::{Sqlite, Timing};
use posse_testkit::store_contract::{self as contract, Open, agent, birth, entry, fate, step, verify};
use uuid::Uuid;

/// A directory that goes with its test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(Uuid::now_v7().to_string()))
    }

    fn database(&self) -> PathBuf {
        self.0.join("home/posse.db")
    }

    fn open(&self) -> Arc<dyn Store> {
        Arc::new(Sqlite::open(&self.database()).unwrap())
    }

    /// Changes the file behind the store's back.
    fn tamper(&self, sql: &str) {
        let changed = rusqlite::Connection::open(self.database()).unwrap().execute(sql, []).unwrap();
        assert!(changed > 0 || sql.starts_with("PRAGMA"), "{sql}");
    }

    fn hosts(&self) -> usize {
        let found = fs::read_dir(self.0.join("home/hosts")).into_iter().flatten();
        // Beside each is its bell.
        found.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().extension().is_none())).count()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Holds a contract against everything there is.
async fn everywhere(contract: impl AsyncFn(Open<'_>)) {
    let directory = Directory::new();
    contract(&|| directory.open()).await;
    let memory = Sqlite::in_memory().unwrap();
    contract(&|| Arc::new(memory.another_host().unwrap())).await;
}

#[tokio::test]
async fn a_refused_step_leaves_nothing() {
    everywhere(contract::a_refused_step_leaves_nothing).await;
}

// proves TR-01 (open: a crash in the middle of a commit)
#[tokio::test]
async fn entries_come_back_as_they_went_in() {
    everywhere(contract::entries_come_back_as_they_went_in).await;
}

// proves TR-03 (open: the second process; here it is a second host in the same one)
#[tokio::test]
async fn an_old_epoch_is_refused_alone() {
    everywhere(contract::an_old_epoch_is_refused_alone).await;
}

// proves TR-03 (open: the second process; here it is a second host in the same one)
#[tokio::test]
async fn a_held_agent_is_refused_to_others() {
    everywhere(contract::a_held_agent_is_refused_to_others).await;
}

#[tokio::test]
async fn segments_are_read_first() {
    everywhere(contract::segments_are_read_first).await;
}

#[tokio::test]
async fn heads_come_back_and_are_shared() {
    everywhere(contract::heads_come_back_and_are_shared).await;
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
async fn a_call_about_an_agent_is_booked() {
    everywhere(contract::a_call_about_an_agent_is_booked).await;
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

// proves SM-08 (open: what the model is shown; here the order in the inbox)
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

// proves SM-05 (open: the runtime's delivery, and kill -9 in the middle of it)
#[tokio::test]
async fn mail_is_taken_once() {
    everywhere(contract::mail_is_taken_once).await;
}

#[tokio::test]
async fn no_end_while_mail_waits() {
    everywhere(contract::no_end_while_mail_waits).await;
}

// proves TK-01 (open: the tools)
#[tokio::test]
async fn tasks_come_back_as_they_went_in() {
    everywhere(contract::tasks_come_back_as_they_went_in).await;
}

#[tokio::test]
async fn metadata_are_not_too_deep() {
    everywhere(contract::metadata_are_not_too_deep).await;
}

// proves TK-02 (open: the tools)
// proves TK-03 (open: the tools)
// proves TK-12 (open: the tools; here what they list)
#[tokio::test]
async fn what_waits_is_freed() {
    everywhere(contract::what_waits_is_freed).await;
}

// proves TK-02 (open: the tools)
#[tokio::test]
async fn circles_are_refused() {
    everywhere(contract::circles_are_refused).await;
}

// proves TK-07 (open: the tools)
// proves TK-12 (open: the tools; here what they list)
#[tokio::test]
async fn deleted_tasks_count_as_done() {
    everywhere(contract::deleted_tasks_count_as_done).await;
}

// proves TK-11 (open: the tool, and the mail to whom it was given; that a claim may be repeated)
#[tokio::test]
async fn tasks_are_changed_by_who_may() {
    everywhere(contract::tasks_are_changed_by_who_may).await;
}

// proves TK-04 (open: several processes; here hosts of one)
#[tokio::test]
async fn a_claim_is_granted_to_one() {
    everywhere(contract::a_claim_is_granted_to_one).await;
}

// proves TK-03 (open: the tools)
#[tokio::test]
async fn the_lowest_claimable_number_is_next() {
    everywhere(contract::the_lowest_claimable_number_is_next).await;
}

// proves TK-08 (open: a process that is killed; many machines)
#[tokio::test]
async fn a_task_of_a_host_that_left_is_free() {
    everywhere(contract::a_task_of_a_host_that_left_is_free).await;
}

// proves TE-01 (open: the tool; who may not be called so)
#[tokio::test]
async fn teams_have_members() {
    everywhere(contract::teams_have_members).await;
}

#[tokio::test]
async fn notes_have_versions() {
    everywhere(contract::notes_have_versions).await;
}

// proves TE-01 (open: the tool, and who is first)
#[tokio::test]
async fn teams_are_deleted_when_nobody_is_there() {
    everywhere(contract::teams_are_deleted_when_nobody_is_there).await;
}

// proves TE-17 (open: that the caller is told by the tool; colours)
#[tokio::test]
async fn a_taken_name_gets_a_number() {
    everywhere(contract::a_taken_name_gets_a_number).await;
}

// proves TE-17 (open: that the caller is told by the tool)
#[tokio::test]
async fn many_join_at_once() {
    everywhere(contract::many_join_at_once).await;
}

#[tokio::test]
async fn a_wished_colour_is_given_if_it_is_free() {
    everywhere(contract::a_wished_colour_is_given_if_it_is_free).await;
}

// proves TE-16 (open: the system prompt)
#[tokio::test]
async fn a_mate_is_born_into_its_team() {
    everywhere(contract::a_mate_is_born_into_its_team).await;
}

// proves TE-02
// proves TE-03 (open: the loop of a teammate; here the states that others see)
#[tokio::test]
async fn members_are_shown_as_they_stand() {
    everywhere(contract::members_are_shown_as_they_stand).await;
}

#[tokio::test]
async fn ones_own_teams_are_found() {
    everywhere(contract::ones_own_teams_are_found).await;
}

// proves TE-15 (open: the tool)
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

// proves SM-09 (open: the tool)
// proves TE-07 (open: what the teammate does when it has approved, and the deadline)
#[tokio::test]
async fn a_request_is_answered_once() {
    everywhere(contract::a_request_is_answered_once).await;
}

// proves SM-06 (open: what the model is shown)
#[tokio::test]
async fn requests_are_made_by_who_may() {
    everywhere(contract::requests_are_made_by_who_may).await;
}

#[tokio::test]
async fn requests_end_with_who_they_are_about() {
    everywhere(contract::requests_end_with_who_they_are_about).await;
}

// proves TK-05 (open: the prompt that is made of it)
#[tokio::test]
async fn roles_say_who_takes_what() {
    everywhere(contract::roles_say_who_takes_what).await;
}

// proves TK-10 (open: that the tool runs it, through the permission gate)
#[tokio::test]
async fn an_unchecked_task_is_not_completed() {
    everywhere(contract::an_unchecked_task_is_not_completed).await;
}

#[tokio::test]
async fn agents_are_found() {
    everywhere(contract::agents_are_found).await;
}

// proves SM-04 (open: the tool that sends)
// proves SM-12 (open: reviving)
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

/// An agent with four entries, whose checksums are a chain.
async fn four_entries(store: &dyn Store) {
    let (mut entries, mut last) = (Vec::new(), 0);
    for seq in 0..4 {
        let mut next = entry(seq, EntryKind::Prompt, &format!("entry {seq}"));
        last = checksum(last, seq, next.kind, None, &next.piece);
        next.checksum = last;
        entries.push(next);
    }
    store.commit(Step { entries, ..birth(1) }).await.unwrap();
}

// proves TR-01 (open: a crash in the middle of a commit)
#[tokio::test]
async fn damage_is_found() {
    for (sql, wanted) in [
        ("UPDATE entry SET bytes = x'656e747279203f' WHERE seq = 2", Err(2)),
        ("UPDATE entry SET kind = 2 WHERE seq = 1", Err(1)),
        (
            "UPDATE entry SET seq = CASE seq WHEN 1 THEN 12 WHEN 2 THEN 11 END WHERE seq IN (1, 2)",
            Ok("damaged"),
        ),
        ("DELETE FROM entry WHERE seq = 3", Ok("damaged")),
        ("DELETE FROM entry WHERE seq = 0", Ok("damaged")),
        ("UPDATE entry SET kind = 9 WHERE seq = 0", Ok("damaged")),
        ("UPDATE entry SET reply = '{' WHERE seq = 0", Ok("damaged")),
    ] {
        let directory = Directory::new();
        let store = directory.open();
        four_entries(store.as_ref()).await;
        assert_eq!(verify(&store.read(agent(1)).await.unwrap()), Ok(()));
        directory.tamper(sql);
        let read = store.read(agent(1)).await;
        match wanted {
            Ok(word) => assert_eq!(fate(&read), word, "{sql}"),
            Err(seq) => assert_eq!(verify(&read.unwrap()), Err(seq), "{sql}"),
        }
    }
}

#[tokio::test]
async fn swapped_entries_are_found() {
    let directory = Directory::new();
    let store = directory.open();
    four_entries(store.as_ref()).await;
    directory.tamper("UPDATE entry SET seq = seq + 10 WHERE seq IN (1, 2)");
    directory.tamper("UPDATE entry SET seq = 23 - seq - 10 WHERE seq IN (11, 12)");
    assert_eq!(verify(&store.read(agent(1)).await.unwrap()), Err(1));
}

#[tokio::test]
async fn a_file_of_a_newer_posse_is_left_alone() {
    let directory = Directory::new();
    drop(directory.open());
    directory.tamper("PRAGMA user_version = 77");
    let refused = Sqlite::open(&directory.database()).err().unwrap();
    assert!(matches!(refused, StoreError::TooNew { found: 77, .. }), "{refused:?}");
}

#[tokio::test]
async fn files_are_their_owners_alone_and_looking_leaves_no_host() {
    let directory = Directory::new();
    let store = directory.open();
    let mode = |name: &str| {
        let path = directory.0.join("home").join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(""), mode("posse.db")), (0o700, 0o600));
    assert_eq!(store.sessions(SessionFilter::default(), 10).await.unwrap(), []);
    assert_eq!(fate(&store.read(agent(1)).await), "not found");
    assert_eq!(directory.hosts(), 0);
    store.commit(birth(1)).await.unwrap();
    assert_eq!((mode("hosts"), mode("posse.db-wal"), directory.hosts()), (0o700, 0o600, 1));
    drop(store);
    assert_eq!(directory.hosts(), 0, "who goes in peace takes its file along");
}

#[tokio::test]
async fn what_dead_hosts_left_is_removed() {
    let directory = Directory::new();
    let store = directory.open();
    store.commit(birth(1)).await.unwrap();
    store.commit(birth(2)).await.unwrap();
    drop(store);
    // A host that was killed: its file is there, and nobody locks it.
    let dead = Uuid::now_v7();
    let hex = dead.simple();
    directory.tamper(&format!("UPDATE agent SET host = x'{hex}'"));
    for name in [dead, Uuid::now_v7()] {
        fs::write(directory.0.join("home/hosts").join(name.to_string()), "1\n").unwrap();
    }
    let store = directory.open();
    assert!(store.read(agent(1)).await.unwrap().session.holder.is_none());
    store.take(agent(1)).await.unwrap();
    assert_eq!(directory.hosts(), 1, "its own");
}

#[tokio::test]
async fn dropping_the_store_finishes_what_is_queued() {
    let directory = Directory::new();
    let store = directory.open();
    store.commit(birth(1)).await.unwrap();
    for seq in 0..300 {
        let entries = vec![entry(seq, EntryKind::Prompt, "queued")];
        // Nobody waits for it.
        drop(store.commit(Step { entries, ..step(1, 1) }));
    }
    drop(store);
    assert_eq!(directory.open().read(agent(1)).await.unwrap().entries.len(), 300);
}

#[tokio::test]
async fn hosts_take_turns_on_one_file() {
    let directory = Directory::new();
    let stores: Vec<_> = (0..4).map(|_| directory.open()).collect();
    let mut commits = Vec::new();
    for (number, store) in (1..).zip(&stores) {
        commits.push(store.commit(birth(number)));
        for seq in 0..50 {
            let entries = vec![entry(seq, EntryKind::Prompt, "mine")];
            commits.push(store.commit(Step { entries, ..step(number, 1) }));
        }
    }
    for commit in commits {
        assert_eq!(fate(&commit.await), "ok");
    }
    for number in 1..=4 {
        assert_eq!(stores[0].read(agent(number)).await.unwrap().entries.len(), 50);
    }
}

fn web() -> Name {
    "web".parse().unwrap()
}

/// Makes a team whose lead is this agent.
fn create_web(number: u64) -> Op {
    let lead = Joining {
        agent: agent(number),
        agent_type: String::new(),
        model: String::new(),
        prompt: String::new(),
        color: None,
        backend: String::new(),
        cwd: "/".into(),
        role: None,
        takes: posse_protocol::Takes::Any,
    };
    let (description, settings) = (String::new(), serde_json::Map::new());
    Op::CreateTeam { team: web(), description, settings, lead: Box::new(lead) }
}

fn create_task(team: Option<Name>) -> Op {
    Op::CreateTask { team, task: Box::default() }
}

/// Does what a person asks for, none of which may be refused.
async fn order(store: &dyn Store, realm: RealmId, ops: Vec<Op>) {
    let results = store.operate(Order { realm, ops, at_ms: 5 }).await.unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Two hosts of which each takes the other for stalled as soon as it wants something of it.
async fn impatient(directory: &Directory) -> [Sqlite; 2] {
    let timing = Timing { lease: Duration::ZERO, sweep: Duration::from_secs(3600), ..Timing::default() };
    let hosts = [0; 2].map(|_| Sqlite::open_with(&directory.database(), timing).unwrap());
    for (host, number) in hosts.iter().zip(1..) {
        host.commit(birth(number)).await.unwrap();
    }
    hosts
}

#[tokio::test]
async fn who_wants_what_a_stalled_host_does_not_do_takes_nothing_from_it() {
    let directory = Directory::new();
    let [first, second] = impatient(&directory).await;
    let team = web();
    let assigned = TaskChange { owner: Some(Some("team-lead".into())), ..TaskChange::default() };
    let assign =
        Op::UpdateTask { team: Some(team.clone()), id: TaskId(1), expect: None, change: Box::new(assigned) };
    order(&first, contract::realm(), vec![create_web(1), create_task(Some(team.clone())), assign]).await;
    let claim = Op::Claim { team: Some(team), id: TaskId(1) };
    let claims = Step { operations: vec![Operation { call: None, op: claim }], ..step(2, 1) };
    let refused = second.commit(claims).await.unwrap().results.remove(0).unwrap_err();
    assert_eq!(refused, Refusal::AlreadyClaimed { id: TaskId(1), by: "team-lead".into() });
    assert_eq!(fate(&first.commit(step(1, 1)).await), "ok", "it has lost nothing");
    assert!(second.take(agent(1)).await.unwrap().epoch.0 > 1, "but what is wanted is taken");
    assert_eq!(fate(&first.commit(step(1, 1)).await), "fenced");
}

#[tokio::test]
async fn a_take_that_nobody_waits_for_holds_nothing() {
    let directory = Directory::new();
    let (first, second) = (directory.open(), directory.open());
    first.commit(birth(1)).await.unwrap();
    first.release(agent(1), Epoch(1)).await.unwrap();
    // Queued when it is called, and forgotten before it is answered.
    drop(first.take(agent(1)));
    while fate(&second.take(agent(1)).await) == "held" {
        tokio::task::yield_now().await;
    }
    assert!(first.read(agent(1)).await.unwrap().session.holder.is_some());
    assert_eq!(fate(&first.take(agent(1)).await), "held");
}

#[tokio::test]
async fn a_host_that_was_refused_before_does_not_settle_as_stalled() {
    let directory = Directory::new();
    let lease = Duration::from_millis(50);
    let timing = Timing { lease, sweep: Duration::from_secs(3600), ..Timing::default() };
    let open = || Sqlite::open_with(&directory.database(), timing).unwrap();
    let (first, second) = (open(), open());
    assert_eq!(fate(&first.take(agent(1)).await), "not found");
    let refused = Instant::now();
    while refused.elapsed() <= lease {
        tokio::task::yield_now().await;
    }
    first.commit(birth(1)).await.unwrap();
    assert_eq!(fate(&second.take(agent(1)).await), "held");
}

#[tokio::test]
async fn what_is_collected_silences_no_bell() {
    let directory = Directory::new();
    let (first, second) = (directory.open(), directory.open());
    first.commit(Step { at_ms: i64::MAX / 2, ..birth(1) }).await.unwrap();
    let old: RealmId = Uuid::from_u128(7).into();
    for _ in 0..5 {
        order(second.as_ref(), old, vec![create_task(None)]).await;
    }
    let list = ListId { realm: contract::realm(), team: None };
    let heard = async |wanted: &ListId| {
        while !first.woken().await.unwrap().contains(&Wake::Tasks(wanted.clone())) {}
    };
    order(second.as_ref(), contract::realm(), vec![create_task(None)]).await;
    heard(&list).await;
    let removed = posse_store::maintain::collect(&directory.database(), 1000, &mut |_| {}).unwrap();
    assert_eq!(removed.sessions, 0, "{removed:?}");
    let gone = ListId { realm: old, team: None };
    assert_eq!(second.tasks(gone, TaskFilter::default(), 9).await.unwrap(), []);
    order(second.as_ref(), contract::realm(), vec![create_task(None)]).await;
    heard(&list).await;
}

#[tokio::test]
async fn a_team_that_came_a_minute_ago_is_not_old() {
    let (there, here) = (Directory::new(), Directory::new());
    let store = there.open();
    order(store.as_ref(), contract::realm(), vec![create_web(1), create_task(Some(web()))]).await;
    let archive = store.export(contract::realm(), web()).await.unwrap().unwrap();
    let store = here.open();
    store.import(archive.clone()).await.unwrap();
    posse_store::maintain::collect(&here.database(), 1_000_000, &mut |_| {}).unwrap();
    assert_eq!(store.export(contract::realm(), web()).await.unwrap(), Some(archive));
    posse_store::maintain::collect(&there.database(), 1_000_000, &mut |_| {}).unwrap();
    assert_eq!(there.open().export(contract::realm(), web()).await.unwrap(), None, "where it was made it is");
}

#[tokio::test]
async fn a_link_to_the_file_leads_to_the_same_hosts() {
    let directory = Directory::new();
    let store = directory.open();
    store.commit(birth(1)).await.unwrap();
    let link = directory.0.join("link.db");
    std::os::unix::fs::symlink(directory.database(), &link).unwrap();
    let other = Sqlite::open(&link).unwrap();
    assert_eq!(fate(&other.take(agent(1)).await), "held");
    other.commit(birth(2)).await.unwrap();
    assert_eq!(fate(&store.commit(step(1, 1)).await), "ok");
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 2, "nothing is kept beside the link");
}
