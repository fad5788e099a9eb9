//! Promises about retried steps, and about what a new holder of an agent finds open.

use posse_port::store::{
    Address, BackgroundRun, CallChangeKind, CallKey, CallOutcome, Done, MailFilter, Operation,
    Page, RunChange, RunChangeKind, Step,
};
use posse_protocol::{EntryKind, RunKind, RunStatus};
use uuid::Uuid;

use super::words::{acts, agent, birth, call, create, entry, fate, realm, send, step};
use super::{Open, asked};

/// A step that was already committed changes nothing, and returns the first answer; but a fenced
/// writer stays fenced.
pub async fn a_step_is_committed_once(open: Open<'_>) {
    let store = open();
    let born = Step {
        operations: acts(1, 1, vec![create("", "a", &[])]).operations,
        ..birth(1)
    };
    let first = store.commit(born.clone()).await.unwrap();
    assert_eq!(first.results.len(), 1);
    assert_eq!(store.commit(born).await.unwrap(), first);

    let mut both = acts(
        1,
        1,
        vec![
            send(Address::Agent(agent(1)), "x"),
            send(Address::Agent(agent(9)), "y"),
        ],
    );
    both.entries = vec![entry(0, EntryKind::Prompt, "go")];
    let second = store.commit(both.clone()).await.unwrap();
    assert!(second.results[0].is_ok() && second.results[1].is_err());
    // In one batch with others, one of which is refused: then the whole batch is done again.
    let mut missing = step(1, 1);
    missing.entries = vec![entry(7, EntryKind::Prompt, "gap")];
    let (again, refused) = (store.commit(both.clone()), store.commit(missing));
    assert_eq!(
        (again.await.unwrap(), fate(&refused.await)),
        (second.clone(), "bad step")
    );
    assert_eq!(
        store
            .mail(realm(), agent(1), MailFilter::default(), Page::first(9))
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(store.read(agent(1)).await.unwrap().entries.len(), 1);

    let taken = store.take(agent(1)).await.unwrap();
    assert_eq!(fate(&store.commit(both.clone()).await), "fenced");
    both.epoch = taken.epoch;
    assert_eq!(
        store.commit(both.clone()).await.unwrap(),
        second,
        "whoever took it may ask what became of it"
    );
    store.commit(step(1, taken.epoch.0)).await.unwrap();
    assert_eq!(
        fate(&store.commit(both).await),
        "bad step",
        "it was not the last one"
    );
}

/// Results of operations are kept with their call; a refused step leaves none of them.
pub async fn operations_commit_with_their_call(open: Open<'_>) {
    let store = open();
    let mut first = birth(1);
    first.entries = vec![
        entry(0, EntryKind::Prompt, "go"),
        entry(1, EntryKind::Reply, "calls"),
    ];
    first.calls = (0..3)
        .map(|ordinal| call(1, ordinal, asked("toolu")))
        .collect();
    store.commit(first).await.unwrap();
    let on = |ordinal, subject: &str| {
        let call = Some(CallKey { seq: 1, ordinal });
        Operation {
            call,
            op: create("", subject, &[]),
        }
    };
    let operating = |operations: Vec<Operation>| Step {
        operations,
        ..step(1, 1)
    };
    let missing = store.commit(operating(vec![on(0, "a"), on(3, "b")])).await;
    assert_eq!(fate(&missing), "bad step", "a call that nobody asked for");
    assert_eq!(
        store
            .tasks(super::words::list(""), Default::default(), Page::first(9))
            .await
            .unwrap(),
        []
    );

    let mixed = vec![
        on(1, "a"),
        on(0, "b"),
        Operation {
            call: None,
            op: create("", "c", &[]),
        },
        on(1, "d"),
    ];
    let results = store.commit(operating(mixed)).await.unwrap().results;
    let ids: Vec<_> = results
        .iter()
        .map(|result| match result {
            Ok(Done::TaskCreated(id)) => id.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    let open_calls = store.take(agent(1)).await.unwrap().transcript.open_calls;
    let operated: Vec<_> = open_calls.into_iter().map(|call| call.operated).collect();
    assert_eq!(
        operated,
        [
            Some(vec![results[1].clone()]),
            Some(vec![results[0].clone(), results[3].clone()]),
            None
        ]
    );

    let next = |operations: Vec<Operation>| Step {
        operations,
        ..step(1, 2)
    };
    assert_eq!(
        fate(&store.commit(next(vec![on(0, "again")])).await),
        "bad step",
        "it has operated"
    );
    let outcome = CallOutcome {
        content: std::sync::Arc::new([]),
        is_error: false,
    };
    let mut done = step(1, 2);
    done.calls = vec![
        call(1, 0, CallChangeKind::Done(outcome.clone())),
        call(1, 2, CallChangeKind::Done(outcome)),
    ];
    store.commit(done).await.unwrap();
    assert_eq!(
        fate(&store.commit(next(vec![on(2, "late")])).await),
        "bad step",
        "it has its outcome"
    );
    assert_eq!(
        store
            .tasks(super::words::list(""), Default::default(), Page::first(9))
            .await
            .unwrap()
            .len(),
        4
    );
}

/// Background commands are found by the next holder of the agent, until they have ended.
pub async fn what_is_open_is_taken_along(open: Open<'_>) {
    let store = open();
    store.commit(birth(1)).await.unwrap();
    let ids: Vec<Uuid> = (1..=3).map(|number| Uuid::from_u128(9 - number)).collect();
    let run = |at: usize, change| RunChange {
        id: ids[at],
        change,
    };
    let ended = |at, status| run(at, RunChangeKind::Ended(status));
    let run_of = |at: usize| BackgroundRun {
        id: ids[at],
        call: CallKey {
            seq: u64::MAX,
            ordinal: at as u32,
        },
        kind: [RunKind::Shell, RunKind::Agent][at % 2],
        description: format!("run {at}"),
        output: "/out".into(),
        began_ms: at as i64,
    };
    for at in 0..3 {
        let mut beginning = step(1, 1);
        beginning.at_ms = at as i64;
        let BackgroundRun {
            call,
            kind,
            description,
            output,
            ..
        } = run_of(at);
        beginning.runs = vec![run(
            at,
            RunChangeKind::Began {
                call,
                kind,
                description,
                output,
            },
        )];
        store.commit(beginning.clone()).await.unwrap();
        beginning.id = step(1, 1).id;
        assert_eq!(
            fate(&store.commit(beginning).await),
            "bad step",
            "begun twice"
        );
    }
    let mut later = step(1, 1);
    later.runs = vec![ended(1, RunStatus::Killed)];
    for wrong in [RunStatus::Running, RunStatus::Paused] {
        let runs = vec![ended(2, wrong)];
        assert_eq!(
            fate(
                &store
                    .commit(Step {
                        runs,
                        ..renamed(&later)
                    })
                    .await
            ),
            "bad step",
            "{wrong:?}"
        );
    }
    store.commit(later.clone()).await.unwrap();
    let taken = store.take(agent(1)).await.unwrap();
    assert_eq!(taken.runs, [run_of(0), run_of(2)]);

    let BackgroundRun {
        call,
        kind,
        description,
        output,
        ..
    } = run_of(1);
    let unknown = RunChange {
        id: Uuid::nil(),
        change: RunChangeKind::Ended(RunStatus::Failed),
    };
    for (change, why) in [
        (ended(1, RunStatus::Completed), "ended before"),
        (
            run(
                1,
                RunChangeKind::Began {
                    call,
                    kind,
                    description,
                    output,
                },
            ),
            "begun before",
        ),
        (unknown, "unknown"),
    ] {
        let wrong = Step {
            runs: vec![change],
            ..step(1, taken.epoch.0)
        };
        assert_eq!(fate(&store.commit(wrong).await), "bad step", "{why}");
    }
    let runs = vec![ended(0, RunStatus::Failed), ended(2, RunStatus::Partial)];
    store
        .commit(Step {
            runs,
            ..step(1, taken.epoch.0)
        })
        .await
        .unwrap();
    assert_eq!(store.take(agent(1)).await.unwrap().runs, []);
}

/// The same step with another id.
fn renamed(again: &Step) -> Step {
    Step {
        id: step(1, 1).id,
        ..again.clone()
    }
}
