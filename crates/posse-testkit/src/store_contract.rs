//! The contract of every store, independent of its engine: each function is one promise of the
//! port.
//!
//! A contract is given a way to open hosts. Each call opens another one, as another process would,
//! on the same data, which is empty at first.

#![expect(
    clippy::unwrap_used,
    reason = "a promise that is not kept fails the test"
)]

mod again;
mod archive;
mod batch;
mod charge;
mod children;
mod claim;
pub mod feed;
mod fork;
mod mail;
pub mod pages;
mod question;
mod queue;
mod request;
mod roster;
pub mod rows;
mod task;
mod team;
pub mod wake;
mod words;

use std::sync::Arc;

use posse_port::confinement::Tier;
use posse_port::model::Encoded;
use posse_port::store::{
    AgentState, CallChangeKind, CallOutcome, Epoch, NewEntry, Page, SeenFile, SessionFilter,
    StateChange, Store, StoreError,
};
use posse_protocol::{EntryKind, PermissionMode, ReplyFacts, StopReason, ToolContent, Usage};

pub use again::{
    a_step_is_committed_once, operations_commit_with_their_call, what_is_open_is_taken_along,
};
pub use archive::{a_team_goes_out_and_comes_in, an_archive_that_contradicts_itself_is_refused};
pub use batch::steps_that_share_a_batch_are_what_they_are_alone;
pub use charge::{
    a_call_about_an_agent_is_booked, a_call_in_flight_is_reserved, a_subtree_has_one_sum,
    charges_add_up,
};
pub use children::{
    a_name_is_given_once, an_id_names_its_realms_bucket, children_are_found_with_their_calls,
    the_unfinished_are_found,
};
pub use claim::{
    a_claim_is_granted_to_one, a_task_of_a_host_that_left_is_free,
    an_unchecked_task_is_not_completed, roles_say_who_takes_what,
    the_lowest_claimable_number_is_next,
};
pub use fork::{
    a_compaction_stands_for_all_before_it, a_fork_of_a_compacted_agent_begins_with_its_compaction,
    another_model_is_an_entry, definitions_come_back_with_their_entries, entries_come_in_pages,
    heads_come_back_and_are_shared, segments_are_read_first,
};
pub use mail::{
    an_inbox_has_room_for_so_much, mail_is_taken_once, mail_keeps_its_order,
    no_end_while_mail_waits, nobody_gets_mail_for_nobody,
};
pub use pages::{
    agents_come_in_pages, mail_comes_in_pages, notes_come_in_pages, requests_come_in_pages,
    sessions_come_in_pages, tasks_come_in_pages, teams_come_in_pages,
};
pub use question::{
    a_question_is_answered_once, asking, given, question_number, questions_come_in_pages,
    questions_outlive_their_process,
};
pub use queue::{
    a_take_that_nobody_waits_for_holds_nothing, dropping_the_store_finishes_what_is_queued,
    hosts_take_turns,
};
pub use request::{
    a_request_is_answered_once, nobody_asks_itself, requests_are_made_by_who_may,
    requests_end_with_who_they_are_about,
};
pub use roster::{
    a_mate_is_born_into_its_team, a_taken_name_gets_a_number,
    a_wished_colour_is_given_if_it_is_free, leadership_is_handed_over, many_join_at_once,
    members_are_shown_as_they_stand, names_are_nobodys_twice, ones_own_teams_are_found,
    what_was_lost_is_found, who_ends_leads_no_more, who_leaves_gives_its_tasks_back,
    who_may_remove_a_member,
};
pub use rows::rows_are_kept_by_the_feed;
pub use task::{
    circles_are_refused, deleted_tasks_count_as_done, metadata_are_not_too_deep,
    tasks_are_changed_by_who_may, tasks_come_back_as_they_went_in, what_waits_is_freed,
};
pub use team::{
    agents_are_found, notes_have_versions, teams_are_deleted_when_nobody_is_there,
    teams_have_members,
};
pub use words::{
    act, acts, agent, answer, ask, birth, call, chained, child, claim, create, create_team, entry,
    fate, headed, join, joining, list, loading, name, order, origin, other_realm, realm, receipts,
    send, step, update, verify,
};

/// Opens another host on the same data.
pub type Open<'a> = &'a dyn Fn() -> Arc<dyn Store>;

/// A refused step leaves nothing behind, even of its valid parts.
pub async fn a_refused_step_leaves_nothing(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    let before = format!("{:?}", store.take(agent(1)).await.unwrap());
    let mut bad = step(1, 2);
    bad.entries = vec![
        entry(0, EntryKind::Prompt, "hello"),
        entry(1, EntryKind::Reply, "hi"),
    ];
    bad.charges = vec![charge::charge("m", 1, Some(1))];
    bad.seen = vec![SeenFile {
        path: "/a".into(),
        version: 1,
    }];
    (bad.state, bad.mode, bad.at_ms) = (
        Some(StateChange::To(AgentState::Paused)),
        Some(PermissionMode::Plan),
        99,
    );
    bad.calls = vec![
        call(1, 0, asked("toolu_1")),
        call(1, 1, CallChangeKind::Begun { tier: None }),
    ];
    assert_eq!(
        fate(&store.commit(bad.clone()).await),
        "bad step",
        "a call that nobody asked for"
    );
    bad.calls.pop();
    let mut gap = bad.clone();
    gap.entries[1].seq = 2;
    assert_eq!(
        fate(&store.commit(gap).await),
        "bad step",
        "an entry is missing"
    );
    let mut late = bad.clone();
    late.entries.remove(0);
    assert_eq!(
        fate(&store.commit(late).await),
        "bad step",
        "the first entry is missing"
    );
    let mut twice = bad.clone();
    twice.birth = birth(1).birth;
    twice.epoch = Epoch(1);
    assert_eq!(
        fate(&store.commit(twice).await),
        "bad step",
        "a second birth"
    );
    let mut stranger = bad.clone();
    stranger.agent = agent(2);
    assert_eq!(fate(&store.commit(stranger.clone()).await), "not found");
    stranger.birth = birth(2).birth;
    assert_eq!(
        fate(&store.commit(stranger).await),
        "bad step",
        "a birth with epoch 2"
    );
    assert_eq!(fate(&store.read(agent(2)).await), "not found");
    let after = format!("{:?}", store.take(agent(1)).await.unwrap());
    assert_eq!(after.replace("Epoch(3)", "Epoch(2)"), before);
    bad.epoch = Epoch(3);
    assert_eq!(
        fate(&store.commit(bad).await),
        "ok",
        "the same without its fault"
    );
}

/// Entries come back in order, with their bytes, marks, facts and times, and with valid checksums.
pub async fn entries_come_back_as_they_went_in(open: Open<'_>) {
    let store = open();
    let facts = |stop| ReplyFacts {
        id: "msg_1".into(),
        model: "a-model".into(),
        stop,
        usage: Usage {
            input: 1,
            cache_read: u64::MAX,
            output: 3,
            ..Usage::default()
        },
        missed: None,
    };
    let stops = [
        None,
        Some(StopReason::EndTurn),
        Some(StopReason::Other("tired".into())),
    ];
    let bytes: [Vec<u8>; 4] = [
        b"{\"a\" : 1.50}".into(),
        vec![],
        (0..=255).collect(),
        "grö\u{0}ße".repeat(10_000).into(),
    ];
    let (mut wanted, mut last) = (Vec::new(), 0);
    for seq in 0..40_u64 {
        let kind = [EntryKind::Prompt, EntryKind::Reply, EntryKind::Results][seq as usize % 3];
        let bytes = bytes[seq as usize % 4].clone();
        let encoded = Encoded {
            mark_at: (seq % 2 == 0).then_some(bytes.len()),
            bytes: bytes.into(),
        };
        last = posse_port::store::checksum(last, seq, kind, None, &encoded);
        let reply = (kind == EntryKind::Reply).then(|| facts(stops[seq as usize % 3].clone()));
        wanted.push(NewEntry {
            seq,
            kind,
            head: None,
            loaded: None,
            encoded,
            checksum: last,
            reply,
        });
    }
    store.commit(birth(1)).await.unwrap();
    for (number, entries) in wanted.chunks(3).enumerate() {
        let at_ms = 100 + number as i64;
        let step = posse_port::store::Step {
            entries: entries.to_vec(),
            at_ms,
            ..step(1, 1)
        };
        store.commit(step).await.unwrap();
    }
    drop(store);
    let read = open().read(agent(1)).await.unwrap();
    let (found, times): (Vec<_>, Vec<_>) = read
        .entries
        .iter()
        .map(|stored| (stored.entry.clone(), stored.at_ms))
        .unzip();
    assert_eq!(format!("{found:?}"), format!("{wanted:?}"));
    assert_eq!(times, (0..40).map(|seq| 100 + seq / 3).collect::<Vec<_>>());
    assert_eq!(verify(&read), Ok(()));
    assert_eq!(read.preamble, birth(1).birth.unwrap().preamble);
    assert_eq!(
        (read.inherited, read.record.entries, read.dialect.as_str()),
        (0, 40, "test")
    );
}

/// A step of an old epoch is refused; concurrent steps are not.
pub async fn an_old_epoch_is_refused_alone(open: Open<'_>) {
    let store = open();
    for number in 1..=20 {
        store.commit(birth(number)).await.unwrap();
    }
    for number in (1..=20).step_by(2) {
        assert_eq!(store.take(agent(number)).await.unwrap().epoch, Epoch(2));
    }
    // All are called before the first is awaited, so that they share a batch.
    let commits: Vec<_> = (1..=20)
        .map(|number| {
            let mut step = step(number, 1);
            step.entries = vec![entry(0, EntryKind::Prompt, "hello")];
            store.commit(step)
        })
        .collect();
    for (number, commit) in (1..=20).zip(commits) {
        let wanted = if number % 2 == 1 { "fenced" } else { "ok" };
        assert_eq!(fate(&commit.await), wanted, "agent {number}");
    }
    for number in 1..=20 {
        let read = store.read(agent(number)).await.unwrap();
        assert_eq!(read.entries.len() as u64, 1 - number % 2, "agent {number}");
    }
    assert_eq!(
        fate(&store.commit(step(1, 3)).await),
        "fenced",
        "an epoch that nobody was given"
    );
    assert_eq!(fate(&store.commit(step(1, 2)).await), "ok");
}

/// One host at a time: a second is refused while the first lives, and gets the agent after that.
pub async fn a_held_agent_is_refused_to_others(open: Open<'_>) {
    let (first, second) = (open(), open());
    assert_eq!(fate(&first.take(agent(1)).await), "not found");
    first.commit(birth(1)).await.unwrap();
    assert!(second.read(agent(1)).await.unwrap().record.holder.is_some());
    let refused = second.take(agent(1)).await.unwrap_err();
    let pid = format!("pid {}", std::process::id());
    assert!(
        matches!(&refused, StoreError::Held { holder, .. } if *holder == pid),
        "{refused:?}"
    );
    assert!(
        refused
            .to_string()
            .contains("is open in another process (pid "),
        "{refused}"
    );
    assert_eq!(
        fate(&first.commit(step(1, 1)).await),
        "ok",
        "a refusal takes nothing away"
    );

    first.release(agent(1), Epoch(7)).await.unwrap();
    assert_eq!(
        fate(&second.take(agent(1)).await),
        "held",
        "another epoch gives nothing up"
    );
    first.release(agent(1), Epoch(1)).await.unwrap();
    assert!(second.read(agent(1)).await.unwrap().record.holder.is_none());
    assert_eq!(
        fate(&first.commit(step(1, 1)).await),
        "fenced",
        "what was given up writes nothing"
    );
    let taken = second.take(agent(1)).await.unwrap().epoch;
    assert!(taken > Epoch(1), "{taken:?}");
    assert_eq!(fate(&first.commit(step(1, 1)).await), "fenced");
    assert_eq!(fate(&first.take(agent(1)).await), "held");
    let again = second.take(agent(1)).await.unwrap().epoch;
    assert!(again > taken, "one's own can be taken again: {again:?}");

    drop(second);
    assert!(first.read(agent(1)).await.unwrap().record.holder.is_none());
    let epoch = first.take(agent(1)).await.unwrap().epoch;
    assert!(epoch > again, "its host is dead: {epoch:?}");
    assert_eq!(fate(&first.commit(step(1, epoch.0)).await), "ok");
}

/// How strongly a call's command is held is kept: what was to hold it, then what did.
pub async fn the_tier_of_a_call_is_kept(open: Open<'_>) {
    let store = open();
    let asked = |tier| CallChangeKind::Asked {
        id: "toolu".into(),
        tool: "Bash".into(),
        tier,
    };
    let mut first = birth(1);
    first.entries = vec![
        entry(0, EntryKind::Prompt, "go"),
        entry(1, EntryKind::Reply, "calls"),
    ];
    let tiers = [Some(Tier::A), None, Some(Tier::AMinus), Some(Tier::B)];
    let calls = (0..).zip(tiers);
    first.calls = calls
        .map(|(ordinal, tier)| call(1, ordinal, asked(tier)))
        .collect();
    store.commit(first).await.unwrap();
    let mut ran = step(1, 1);
    ran.calls = vec![
        call(1, 0, CallChangeKind::Begun { tier: None }),
        call(1, 1, CallChangeKind::Begun { tier: None }),
        call(
            1,
            2,
            CallChangeKind::Begun {
                tier: Some(Tier::C),
            },
        ),
    ];
    store.commit(ran).await.unwrap();
    // A step that only adds is stored in another way.
    let mut more = step(1, 1);
    more.entries = vec![
        entry(2, EntryKind::Results, "results"),
        entry(3, EntryKind::Reply, "again"),
    ];
    more.calls = vec![call(3, 0, asked(Some(Tier::A))), call(3, 1, asked(None))];
    store.commit(more).await.unwrap();
    let found = store.tiers(agent(1)).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|call| (call.key.seq, call.key.ordinal, call.tier.as_str()))
        .collect();
    assert_eq!(found, [(1, 0, "A"), (1, 2, "C"), (1, 3, "B"), (3, 0, "A")]);
    assert_eq!(store.tiers(agent(9)).await.unwrap(), []);
}

/// Calls of the last reply are open, with their outcomes, until their results are there.
pub async fn calls_are_open_until_their_results(open: Open<'_>) {
    let store = open();
    let content: Arc<[ToolContent]> = Arc::new([
        ToolContent::text("done\n"),
        ToolContent::Image {
            media_type: "image/png".into(),
            data: "AA==".into(),
        },
    ]);
    let outcome = CallOutcome {
        content,
        is_error: true,
    };
    let mut first = birth(1);
    first.entries = vec![
        entry(0, EntryKind::Prompt, "go"),
        entry(1, EntryKind::Reply, "calls"),
    ];
    first.calls = (0..3)
        .map(|ordinal| call(1, ordinal, asked(&format!("toolu_{ordinal}"))))
        .collect();
    store.commit(first).await.unwrap();
    let mut ran = step(1, 1);
    ran.calls = vec![
        call(1, 2, CallChangeKind::Begun { tier: None }),
        call(1, 0, CallChangeKind::Begun { tier: None }),
        call(1, 0, CallChangeKind::Done(outcome.clone())),
    ];
    store.commit(ran.clone()).await.unwrap();

    let taken = store.take(agent(1)).await.unwrap();
    let found: Vec<_> = taken
        .transcript
        .open_calls
        .iter()
        .map(|call| {
            (
                call.key.seq,
                call.key.ordinal,
                call.id.as_str(),
                call.begun,
                call.outcome.clone(),
            )
        })
        .collect();
    let wanted = [
        (1, 0, "toolu_0", true, Some(outcome)),
        (1, 1, "toolu_1", false, None),
        (1, 2, "toolu_2", true, None),
    ];
    assert_eq!(found, wanted);
    (ran.epoch, ran.id) = (Epoch(2), step(1, 2).id);
    assert_eq!(
        fate(&store.commit(ran).await),
        "bad step",
        "an outcome is final"
    );

    let mut aside = step(1, 2);
    aside.entries = vec![entry(2, EntryKind::Prompt, "a word meanwhile")];
    store.commit(aside).await.unwrap();
    assert_eq!(
        store
            .take(agent(1))
            .await
            .unwrap()
            .transcript
            .open_calls
            .len(),
        3
    );
    let mut results = step(1, 3);
    results.entries = vec![entry(3, EntryKind::Results, "all")];
    store.commit(results).await.unwrap();
    assert_eq!(
        store.take(agent(1)).await.unwrap().transcript.open_calls,
        []
    );
}

/// The last seen version of each file is kept.
pub async fn seen_files_are_kept_by_path(open: Open<'_>) {
    let store = open();
    let file = |path: &str, version| SeenFile {
        path: path.into(),
        version,
    };
    store.commit(birth(1)).await.unwrap();
    for seen in [
        vec![file("/b", 1), file("/a", u64::MAX)],
        vec![file("/b", 2)],
        vec![],
    ] {
        store
            .commit(posse_port::store::Step { seen, ..step(1, 1) })
            .await
            .unwrap();
    }
    assert_eq!(
        store.take(agent(1)).await.unwrap().seen,
        [file("/a", u64::MAX), file("/b", 2)]
    );
}

/// Sessions are listed by last use, and found by directory and by id prefix.
pub async fn sessions_are_found(open: Open<'_>) {
    let store = open();
    for (number, cwd, parent, at_ms) in [
        (0x11, "/x", None, 50),
        (0x12, "/y", None, 40),
        (0x13, "/x", Some(0x11), 60),
        (0x22, "/x", None, 30),
        (0x23, "/y", None, 30),
    ] {
        let mut first = birth(number);
        let about = first.birth.as_mut().unwrap();
        (about.cwd, about.origin, first.at_ms) = (cwd.into(), parent.map(origin), at_ms);
        store.commit(first).await.unwrap();
    }
    let list = async |cwd: Option<&str>, prefix: Option<&str>, limit| {
        let filter = SessionFilter {
            cwd: cwd.map(Into::into),
            id_prefix: prefix.map(Into::into),
        };
        let found = store.sessions(filter, Page::first(limit)).await.unwrap();
        found
            .iter()
            .map(|session| session.agent.uuid().as_bytes()[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 9).await, [0x11, 0x12, 0x23, 0x22]);
    assert_eq!(list(None, None, 2).await, [0x11, 0x12]);
    assert_eq!(list(None, None, 0).await, [0; 0]);
    assert_eq!(list(None, None, usize::MAX).await.len(), 4);
    assert_eq!(list(Some("/x"), None, 9).await, [0x11, 0x22]);
    assert_eq!(list(Some("/"), None, 9).await, [0; 0]);
    assert_eq!(list(None, Some("2"), 9).await, [0x23, 0x22]);
    assert_eq!(list(None, Some("12"), 9).await, [0x12]);
    assert_eq!(list(Some("/y"), Some("1"), 9).await, [0x12]);
    assert_eq!(list(None, Some(&agent(0x22).to_string()), 9).await, [0x22]);
    assert_eq!(list(None, Some(""), 9).await.len(), 4);
    assert_eq!(list(None, Some("%"), 9).await, [0; 0]);

    let mut used = step(0x22, 1);
    used.entries = vec![
        entry(0, EntryKind::Prompt, "first"),
        entry(1, EntryKind::Prompt, "second"),
    ];
    (used.at_ms, used.state, used.mode) = (
        70,
        Some(StateChange::To(AgentState::Running)),
        Some(PermissionMode::Plan),
    );
    store.commit(used).await.unwrap();
    assert_eq!(list(None, None, 9).await, [0x22, 0x11, 0x12, 0x23]);
    let found = store
        .sessions(SessionFilter::default(), Page::first(1))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(found, store.read(agent(0x22)).await.unwrap().record);
    assert_eq!(
        (found.state, found.mode, found.holder.is_some()),
        (AgentState::Running, PermissionMode::Plan, true)
    );
    assert_eq!(
        (found.created_ms, found.used_ms, found.entries),
        (30, 70, 2)
    );
    assert_eq!(found.first_prompt.as_deref(), Some(b"first".as_slice()));
    assert_eq!(
        (found.path.as_str(), found.model.as_str()),
        ("/main", "a-model")
    );
}

fn asked(id: &str) -> CallChangeKind {
    CallChangeKind::Asked {
        id: id.into(),
        tool: "Bash".into(),
        tier: None,
    }
}
