//! Members that another process takes up: how many, and what they are told of their tasks.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use posse_port::model::Encoded;
use posse_port::store::{
    AgentState, Done, NewEntry, NewTask, Op, Operation, Order, StateChange, Step, Store, Taken,
    TakenMail, checksum,
};
use posse_protocol::{Command, EntryKind, Takes, TaskStatus};
use posse_runtime::{Hosted, Hosting, Members};
use posse_testkit::rig::prompt;
use posse_testkit::{Faulty, StoreCall};
use tokio::sync::Notify;

use super::life::plan;
use super::tasks::{WORKERS, planned, raised};
use super::*;

/// While it is closed, holds up the next agent that is taken. Counts how often teams are read.
#[derive(Default)]
struct Gate {
    looks: AtomicUsize,
    closed: AtomicBool,
    reached: Notify,
    open: Notify,
}

impl Gate {
    /// An open gate before the store of a rig.
    fn before(rig: &mut Rig) -> Arc<Self> {
        let gate = Arc::new(Self::default());
        let before = Arc::clone(&gate);
        rig.store = Arc::new(Faulty {
            before: Box::new(move |call| Box::pin(Arc::clone(&before).pass(call))),
            ..Faulty::new(Arc::clone(&rig.store))
        });
        gate
    }

    async fn pass(self: Arc<Self>, call: StoreCall) {
        match call {
            StoreCall::Teams => drop(self.looks.fetch_add(1, Ordering::SeqCst)),
            StoreCall::Take if self.closed.swap(false, Ordering::SeqCst) => {
                self.reached.notify_one();
                self.open.notified().await;
            }
            StoreCall::Take | StoreCall::ReadyTasks => {}
        }
    }
}

#[tokio::test]
async fn a_host_that_hears_of_a_death_while_it_takes_members_stays_within_its_limit() {
    let mut rig = rig(WORKERS);
    let mut agent = raised(&rig, plan(&["bow", "cook", "dev", "mate"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    let gate = Gate::before(&mut rig);
    gate.closed.store(true, Ordering::SeqCst);
    let runtime = rig.another().unwrap();
    let hosting = Hosting {
        session: root,
        members: Members::Free { most: Some(2) },
    };
    let mut hosting = pin!(runtime.host(hosting, rig.setup.clone()));
    tokio::select! {
        _ = &mut hosting => panic!("it takes nobody before the gate is open"),
        () = gate.reached.notified() => {}
    }
    // What the dispatcher does when a process dies. If it does not wait for the first look, it ends
    // before that.
    let looks = gate.looks.load(Ordering::SeqCst);
    let mut again = pin!(runtime.take_up_free());
    let mut ended = poll_fn(|context| Poll::Ready(again.as_mut().poll(context).is_ready())).await;
    if !ended && gate.looks.load(Ordering::SeqCst) > looks {
        again.as_mut().await;
        ended = true;
    }
    gate.open.notify_one();
    let hosted = hosting.await.unwrap();
    if !ended {
        again.await;
    }
    assert_eq!(hosted.agents.len(), 2, "all that it has are named");
    assert_eq!(runtime.members_here(root), 2, "and it has no more");
    until_given_up(hosted).await;
}

/// Gives up what a process hosts, and waits until it is free.
async fn until_given_up(hosted: Hosted) {
    let Hosted {
        handle, mut events, ..
    } = hosted;
    drop(handle);
    while events.recv().await.is_some() {}
}

/// What a process does with a member before it dies.
enum Deed {
    /// The member takes the next task.
    Claims,
    /// The member is shown something that it has not answered.
    Shows(&'static str),
    /// The member is shown the mail with this number, and has not answered it.
    ShowsMail(u64),
}

/// Does these things with a member, as a process that dies in the middle of its work.
async fn half_done(store: &dyn Store, member: AgentId, deeds: &[Deed]) {
    let taken = store.take(member).await.unwrap();
    half_do(store, &taken, deeds).await;
    store.release(member, taken.epoch).await.unwrap();
}

async fn half_do(store: &dyn Store, taken: &Taken, deeds: &[Deed]) {
    let Taken {
        epoch, transcript, ..
    } = taken;
    let member = transcript.record.agent;
    let realm = transcript.record.realm;
    let last = &transcript.entries.last().unwrap().entry;
    let (mut seq, mut chain) = (last.seq, last.checksum);
    for deed in deeds {
        let mut step = Step {
            state: Some(StateChange::To(AgentState::Running)),
            ..Step::new(realm, member, *epoch, 1)
        };
        match deed {
            Deed::Claims => {
                let team = Some("crew".parse().unwrap());
                let op = Op::ClaimNext {
                    team,
                    takes: Takes::Any,
                };
                step.operations.push(Operation { call: None, op });
            }
            Deed::Shows(_) | Deed::ShowsMail(_) => {
                let text = match deed {
                    Deed::Shows(text) => text,
                    _ => "A letter.",
                };
                let message = serde_json::json!({
                    "role": "user",
                    "content": [{ "type": "text", "text": text }],
                });
                let encoded = Encoded {
                    bytes: message.to_string().into(),
                    mark_at: None,
                };
                seq += 1;
                chain = checksum(chain, seq, EntryKind::Prompt, None, &encoded);
                if let Deed::ShowsMail(number) = deed {
                    step.mail.push(TakenMail {
                        number: *number,
                        entry: seq,
                    });
                }
                step.entries.push(NewEntry {
                    seq,
                    kind: EntryKind::Prompt,
                    head: None,
                    loaded: None,
                    encoded,
                    checksum: chain,
                    reply: None,
                });
            }
        }
        let claims = matches!(deed, Deed::Claims);
        let results = store.commit(step).await.unwrap().results;
        assert_eq!(claims, matches!(results[..], [Ok(Done::Claimed(_))]));
    }
}

/// What a member was told, request by request, by the process that took it up after these deeds.
async fn told_after(deeds: &[Deed]) -> Vec<String> {
    let rig = rig(WORKERS);
    let mut agent = raised(&rig, plan(&["dev"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    let planned = planned("Lay the keel", None, &[]);
    let task = NewTask {
        subject: planned.subject,
        description: planned.description,
        ..NewTask::default()
    };
    let order = Order {
        realm: realm(root),
        ops: vec![Op::CreateTask {
            team: Some("crew".parse().unwrap()),
            task: Box::new(task),
        }],
        at_ms: 1,
    };
    rig.store.operate(order).await.unwrap();
    let dev = member(&rig, root, "dev").await.agent;
    half_done(&*rig.store, dev, deeds).await;
    let before = sent_by(&rig, "/dev-").len();
    let runtime = rig.another().unwrap();
    let hosting = Hosting {
        session: root,
        members: Members::One(dev),
    };
    let mut hosted = runtime.host(hosting, rig.setup.clone()).await.unwrap();
    loop {
        let event = hosted.events.recv().await.expect("it lives");
        if member_news(&event).is_some_and(|news| matches!(news.what, MemberChange::Idle(_))) {
            break;
        }
    }
    let task = tasks(&rig, root, "crew").await.remove(0);
    assert_eq!(task.status, TaskStatus::Completed);
    until_given_up(hosted).await;
    sent_by(&rig, "/dev-")[before..]
        .iter()
        .map(all_words)
        .collect()
}

/// What the full text of the task begins with.
const FRAME: &str = "<team-task id=\"1\">";

// proves TK-05 (part: the prompt)
#[tokio::test]
async fn a_task_that_was_claimed_and_not_told_is_told_in_full_after_a_crash() {
    // It was shown a letter before the task, or had not answered the letter when it took the task.
    for deeds in [
        [Deed::Claims, Deed::Shows("A letter.")],
        [Deed::Shows("A letter."), Deed::Claims],
    ] {
        let told = told_after(&deeds).await;
        assert!(
            told[0].contains("Task 1 is yours now") && told[0].contains("Lay the keel, all of it."),
            "{told:?}"
        );
        let last = told.last().unwrap();
        assert!(!last.contains("still in progress"), "{last}");
        assert_eq!(last.matches(FRAME).count(), 1, "{last}");
    }
}

#[tokio::test]
async fn a_task_that_was_told_is_not_told_again_after_a_crash() {
    let shown = "Task 1 is yours now.\n<team-task id=\"1\">\nLay the keel\n</team-task>";
    let told = told_after(&[Deed::Claims, Deed::Shows(shown)]).await;
    assert_eq!(told[0].matches(FRAME).count(), 1, "{told:?}");
    assert!(
        !told.last().unwrap().contains("still in progress"),
        "{told:?}"
    );
}

/// A teammate writes to another.
const LETTERS: &str = r#"
[[rule]]
when = { agent = "/cook-", user = "write to dev" }
times = 1
reply = [{ tool = "SendMessage", input = { to = "dev", message = "A letter." } }]
[[rule]]
reply = [{ text = "ok" }]
"#;

// proves TE-10 (part: taken over)
#[tokio::test]
async fn a_member_whose_mail_a_dead_process_has_shown_is_brought_back_and_continues() {
    let mut rig = rig(LETTERS);
    let mut agent = raised(&rig, plan(&["cook", "dev"], Vec::new())).await;
    let root = agent.id;
    until_quiet(&mut agent).await;
    rig.runtime().unwrap().shut_down().await;
    drop(agent);
    let (cook, dev) = (
        member(&rig, root, "cook").await.agent,
        member(&rig, root, "dev").await.agent,
    );
    // Another process has one of them while this one takes the rest.
    let other = rig.place().open().unwrap();
    let taken = other.take(dev).await.unwrap();
    let gate = Gate::before(&mut rig);
    let runtime = rig.another().unwrap();
    let hosting = Hosting {
        session: root,
        members: Members::Free { most: None },
    };
    let mut hosted = runtime.host(hosting, rig.setup.clone()).await.unwrap();
    assert_eq!(hosted.agents, [cook]);
    half_do(&*other, &taken, &[Deed::Shows("Something else.")]).await;
    other.release(dev, taken.epoch).await.unwrap();
    gate.closed.store(true, Ordering::SeqCst);
    let words = Command::To {
        agent: cook,
        command: Box::new(prompt("write to dev")),
    };
    hosted.handle.send(words).await.unwrap();
    gate.reached.notified().await;
    let letter = inbox(&rig, root, dev).await.pop().unwrap().number;
    half_done(&*other, dev, &[Deed::ShowsMail(letter)]).await;
    let before = sent_by(&rig, "/dev-").len();
    gate.open.notify_one();
    loop {
        let event = hosted.events.recv().await.expect("it lives");
        let idle = |news: &MemberUpdate| matches!(news.what, MemberChange::Idle(_));
        if event.agent == dev && member_news(&event).is_some_and(idle) {
            break;
        }
    }
    let told = all_words(&sent_by(&rig, "/dev-")[before]);
    assert!(told.ends_with("A letter."), "{told}");
    until_given_up(hosted).await;
}
