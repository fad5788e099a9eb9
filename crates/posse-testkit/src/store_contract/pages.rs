//! Promises about lists: they come in pages, forwards and backwards, and what is added or changed
//! between two pages neither repeats a row nor hides one.

use std::fmt::Debug;

use posse_port::store::{
    Address, AgentFilter, AgentKey, AgentState, MailFilter, Op, Order, Page, Ready, RequestKey,
    SessionFilter, SessionKey, StateChange, Step, TakenMail, TaskChange, TaskFilter, TeamKey,
};
use posse_protocol::{EntryKind, RealmId, Takes, TaskStatus};
use uuid::Uuid;

use super::Open;
use super::words::{
    act, agent, ask, birth, child, create, create_team, entry, join, list, name, order,
    other_realm, realm, send, step, update,
};

/// Reads a list page by page, in one direction, and returns it in its own order.
pub async fn paged<T, K>(
    backwards: bool,
    read: impl AsyncFn(Page<K>) -> Vec<T>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut all = Vec::new();
    let mut page = Page {
        backwards,
        ..Page::first(2)
    };
    loop {
        let some = read(page).await;
        let last = if backwards { some.first() } else { some.last() };
        let Some(last) = last else { return all };
        page = Page {
            backwards,
            ..Page::after(key(last), 2)
        };
        match backwards {
            false => all.extend(some),
            true => drop(all.splice(..0, some)),
        }
    }
}

/// Checks every page of a list with so many rows: from each row, in both directions, of each size.
async fn check<T, K: Clone + Debug + PartialEq>(
    rows: usize,
    read: impl AsyncFn(Page<K>) -> Vec<T>,
    key: impl Fn(&T) -> K,
) {
    let read = async |page| read(page).await.iter().map(&key).collect::<Vec<_>>();
    let all = read(Page::all()).await;
    assert_eq!(all.len(), rows, "{all:?}");
    for limit in 0..=rows {
        assert_eq!(read(Page::first(limit)).await, all[..limit]);
        assert_eq!(read(Page::last(limit)).await, all[rows - limit..]);
        for (at, key) in all.iter().enumerate() {
            let after = read(Page::after(key.clone(), limit)).await;
            assert_eq!(
                after,
                all[at + 1..rows.min(at + 1 + limit)],
                "after {key:?}"
            );
            let before = read(Page::before(key.clone(), limit)).await;
            assert_eq!(before, all[at.saturating_sub(limit)..at], "before {key:?}");
        }
    }
}

/// Reads a list page by page, in one direction, while `add` changes it after the first pages. Fails if
/// one of its first rows comes twice, or not at all, or if they come in another order.
async fn check_meanwhile<T, K: Clone + Debug + PartialEq>(
    backwards: bool,
    read: impl AsyncFn(Page<K>) -> Vec<T>,
    key: impl Fn(&T) -> K,
    mut add: impl AsyncFnMut(),
) {
    let read = async |page| read(page).await.iter().map(&key).collect::<Vec<_>>();
    let before = read(Page::all()).await;
    let (mut seen, mut adds) = (Vec::new(), 0..3);
    let mut page = Page {
        backwards,
        ..Page::first(2)
    };
    loop {
        let some = read(page.clone()).await;
        page.from = if backwards { some.first() } else { some.last() }.cloned();
        if page.from.is_none() {
            break;
        }
        match backwards {
            false => seen.extend(some),
            true => drop(seen.splice(..0, some)),
        }
        if adds.next().is_some() {
            add().await;
        }
    }
    seen.retain(|key| before.contains(key));
    assert_eq!(seen, before);
}

/// Sessions come in pages, whatever the filter; two of the same time are two.
pub async fn sessions_come_in_pages(open: Open<'_>) {
    let store = open();
    let begin = async |number, cwd: &str, at_ms| {
        let mut first = birth(number);
        (first.birth.as_mut().unwrap().cwd, first.at_ms) = (cwd.into(), at_ms);
        store.commit(first).await.unwrap();
    };
    // Two minutes, and two of the same time.
    for (number, cwd, at_ms) in [
        (0x11, "/x", 50),
        (0x12, "/y", 40),
        (0x13, "/x", 60_040),
        (0x22, "/x", 40),
        (0x23, "/x", 61_000),
    ] {
        begin(number, cwd, at_ms).await;
    }
    let cwd = |cwd: &str| SessionFilter {
        cwd: Some(cwd.into()),
        ..SessionFilter::default()
    };
    let prefix = |prefix: &str| SessionFilter {
        id_prefix: Some(prefix.into()),
        ..SessionFilter::default()
    };
    let filters = [
        (SessionFilter::default(), 5),
        (cwd("/x"), 4),
        (prefix("1"), 3),
        (prefix("2"), 2),
    ];
    let read =
        async |filter: &SessionFilter, page| store.sessions(filter.clone(), page).await.unwrap();
    for (filter, rows) in &filters {
        check(*rows, async |page| read(filter, page).await, SessionKey::of).await;
    }
    let (mut number, all) = (0x40, &filters[0].0);
    for backwards in [false, true] {
        let add = async || {
            number += 1;
            begin(number, "/x", number.cast_signed() * 1000).await;
        };
        let read = async |page| read(all, page).await;
        check_meanwhile(backwards, read, SessionKey::of, add).await;
    }
}

/// Agents come in pages, whatever the filter; two of the same path are two.
pub async fn agents_come_in_pages(open: Open<'_>) {
    let store = open();
    let elsewhere = |step: Step| Step {
        realm: other_realm(),
        ..step
    };
    for root in [1, 2] {
        store.commit(birth(root)).await.unwrap();
    }
    for number in 3..=7 {
        store.commit(child(number, 1, "")).await.unwrap();
    }
    store.commit(child(8, 2, "ann")).await.unwrap();
    store.commit(elsewhere(birth(0x11))).await.unwrap();
    store
        .commit(elsewhere(child(0x12, 0x11, "ann")))
        .await
        .unwrap();
    let open_run = Some(StateChange::To(AgentState::Running));
    for number in [4, 6, 8] {
        let works = Step {
            state: open_run,
            ..step(number, 1)
        };
        store.commit(works).await.unwrap();
    }
    let all = AgentFilter::default;
    let here = || AgentFilter {
        realm: Some(realm()),
        ..all()
    };
    let of_first = || AgentFilter {
        parent: Some(agent(1)),
        ..all()
    };
    let read = async |filter: &AgentFilter, page| store.agents(filter.clone(), page).await.unwrap();
    for (filter, rows) in [
        (all(), 10),
        (here(), 8),
        (of_first(), 5),
        (
            AgentFilter {
                unfinished: true,
                ..here()
            },
            3,
        ),
        (
            AgentFilter {
                unfinished: true,
                ..of_first()
            },
            2,
        ),
        (
            AgentFilter {
                held: true,
                ..all()
            },
            10,
        ),
        (
            AgentFilter {
                name: Some(name("ann")),
                ..all()
            },
            2,
        ),
        (
            AgentFilter {
                id_prefix: Some("1".into()),
                ..all()
            },
            2,
        ),
        (
            AgentFilter {
                id_prefix: Some("0".into()),
                ..here()
            },
            8,
        ),
    ] {
        check(rows, async |page| read(&filter, page).await, AgentKey::of).await;
    }
    let mut number = 0x20;
    for filter in [here(), of_first()] {
        for backwards in [false, true] {
            let add = async || {
                number += 1;
                store.commit(child(number, 1, "")).await.unwrap();
            };
            let read = async |page| read(&filter, page).await;
            check_meanwhile(backwards, read, AgentKey::of, add).await;
        }
    }
}

/// Mail comes in pages, also what waits: what is shown meanwhile is left out, and nothing else.
pub async fn mail_comes_in_pages(open: Open<'_>) {
    let store = open();
    for number in [1, 2] {
        store.commit(birth(number)).await.unwrap();
    }
    let to = || Address::Agent(agent(2));
    for _ in 0..7 {
        act(&*store, 1, send(to(), "a word")).await.unwrap();
    }
    let mut shows = step(2, 1);
    shows.entries = vec![entry(0, EntryKind::Prompt, "words")];
    shows.mail = [2, 5].map(|number| TakenMail { number, entry: 0 }).into();
    store.commit(shows).await.unwrap();
    let read = async |waiting, page| {
        let filter = MailFilter { waiting };
        let mail = store.mail(realm(), agent(2), filter, page).await;
        mail.unwrap()
    };
    for (waiting, rows) in [(false, 7), (true, 5)] {
        check(rows, async |page| read(waiting, page).await, |it| it.number).await;
        for backwards in [false, true] {
            let add = async || drop(act(&*store, 1, send(to(), "one more")).await.unwrap());
            check_meanwhile(
                backwards,
                async |page| read(waiting, page).await,
                |mail| mail.number,
                add,
            )
            .await;
        }
        // Leaves the inbox as the next filter expects it.
        let more: Vec<_> = read(true, Page::after(7, 99)).await;
        let seq = if waiting { 2 } else { 1 };
        let mut shows = step(2, 1);
        shows.entries = vec![entry(seq, EntryKind::Prompt, "more words")];
        let shown = |number| TakenMail { number, entry: seq };
        shows.mail = more.iter().map(|mail| shown(mail.number)).collect();
        store.commit(shows).await.unwrap();
    }
}

/// Tasks come in pages, whatever the filter.
pub async fn tasks_come_in_pages(open: Open<'_>) {
    let store = open();
    for number in [1, 2] {
        store.commit(birth(number)).await.unwrap();
    }
    let give = |owner: &str| TaskChange {
        owner: Some(Some(owner.to_owned())),
        ..TaskChange::default()
    };
    let marked = |role: &str| TaskChange {
        role: Some(role.to_owned()),
        ..TaskChange::default()
    };
    let mut ops = vec![create_team("web", 1), join("web", "ann", 2)];
    ops.extend((1..=9).map(|_| create("web", "work", &[])));
    ops.extend([3, 6, 8].map(|id| update("web", id, give("ann"))));
    ops.extend([2, 5, 9].map(|id| update("web", id, marked("doc"))));
    for result in order(&*store, ops).await {
        result.unwrap();
    }
    let ready = |number: Option<u64>, takes: Takes| TaskFilter {
        ready: Some(Ready {
            agent: number.map(agent),
            takes,
        }),
        ..TaskFilter::default()
    };
    let only = |unmarked, roles: &[&str]| Takes::Only {
        unmarked,
        roles: roles.iter().copied().map(Into::into).collect(),
    };
    let read = async |filter: &TaskFilter, page| {
        let tasks = store.tasks(list("web"), filter.clone(), page).await;
        tasks.unwrap()
    };
    let pending = TaskFilter {
        status: Some(TaskStatus::Pending),
        ..TaskFilter::default()
    };
    let of_ann = TaskFilter {
        owner: Some(agent(2)),
        ..TaskFilter::default()
    };
    let assigned = TaskFilter {
        assigned: true,
        ..TaskFilter::default()
    };
    let both = TaskFilter {
        assigned: true,
        ..ready(Some(2), Takes::Any)
    };
    for (filter, rows) in [
        (TaskFilter::default(), 9),
        (pending, 9),
        (of_ann, 3),
        (assigned, 3),
        (both, 3),
        (ready(None, Takes::Any), 6),
        (ready(Some(2), Takes::Any), 9),
        (ready(Some(2), only(true, &[])), 6),
        (ready(Some(2), only(false, &["doc"])), 6),
        (ready(None, only(true, &["doc"])), 6),
    ] {
        check(rows, async |page| read(&filter, page).await, |it| it.id).await;
    }
    // Of those that ann lost.
    let epoch = store.take(agent(2)).await.unwrap().epoch;
    for id in [3, 6, 8, 2] {
        let doing = Op::Claim {
            team: Some(name("web")),
            id: posse_protocol::TaskId(id),
        };
        let claims = super::words::acts(2, epoch.0, vec![doing]);
        store
            .commit(claims)
            .await
            .unwrap()
            .results
            .remove(0)
            .unwrap();
    }
    store.release(agent(2), epoch).await.unwrap();
    let lost = TaskFilter {
        lost_by: Some("ann".into()),
        ..TaskFilter::default()
    };
    check(4, async |page| read(&lost, page).await, |it| it.id).await;
    for backwards in [false, true] {
        let add = async || {
            order(&*store, vec![create("web", "more", &[])]).await;
        };
        let all = TaskFilter::default();
        let read = async |page| read(&all, page).await;
        check_meanwhile(backwards, read, |task| task.id, add).await;
    }
}

/// Teams come in pages, of a realm or of all; two of the same time are two.
pub async fn teams_come_in_pages(open: Open<'_>) {
    let store = open();
    let make = async |realm, team: &str, at_ms| {
        let made = Order {
            realm,
            ops: vec![create_team(team, 1)],
            at_ms,
        };
        store.operate(made).await.unwrap().remove(0).unwrap();
    };
    for (team, at_ms) in [("a", 10), ("b", 30), ("c", 30), ("d", 20), ("e", 10)] {
        make(realm(), team, at_ms).await;
    }
    for (team, at_ms) in [("a", 10), ("f", 30)] {
        make(other_realm(), team, at_ms).await;
    }
    let read = async |realm: Option<RealmId>, page| store.teams(realm, page).await.unwrap();
    for (realm, rows) in [
        (None, 7),
        (Some(realm()), 5),
        (Some(other_realm()), 2),
        (Some(Uuid::now_v7().into()), 0),
    ] {
        check(rows, async |page| read(realm, page).await, TeamKey::of).await;
    }
    let mut number = 0;
    for backwards in [false, true] {
        let add = async || {
            number += 1;
            make(realm(), &format!("more-{number}"), 5 + 10 * number).await;
        };
        let read = async |page| read(None, page).await;
        check_meanwhile(backwards, read, TeamKey::of, add).await;
    }
}

/// The notes of a team come in pages.
pub async fn notes_come_in_pages(open: Open<'_>) {
    let store = open();
    let write = |note: String| Op::WriteNote {
        team: Some(name("web")),
        name: name(&note),
        text: "words".into(),
        expect: None,
    };
    let mut ops = vec![create_team("web", 1)];
    ops.extend((1..=5).map(|number| write(format!("note-{number}"))));
    for result in order(&*store, ops).await {
        result.unwrap();
    }
    let read = async |page| store.notes(list("web"), page).await.unwrap();
    check(5, read, |note| note.name.clone()).await;
    let mut number = 0;
    for backwards in [false, true] {
        let add = async || {
            number += 1;
            order(&*store, vec![write(format!("note-{number}-more"))]).await;
        };
        check_meanwhile(backwards, read, |note| note.name.clone(), add).await;
    }
}

/// Open requests come in pages, of an agent or of all; two of the same time are two.
pub async fn requests_come_in_pages(open: Open<'_>) {
    let store = open();
    for number in 1..=3 {
        store.commit(birth(number)).await.unwrap();
    }
    let ops = vec![
        create_team("web", 1),
        join("web", "ann", 2),
        join("web", "bob", 3),
    ];
    for result in order(&*store, ops).await {
        result.unwrap();
    }
    let mut number = 0;
    let mut plan = async |by: u64, at_ms: i64| {
        number += 1;
        let to = Address::Agent(agent(1));
        let op = ask(Uuid::from_u128(0x100 - number).into(), to, "a plan", true);
        let asks = Step {
            at_ms,
            ..super::words::acts(by, 1, vec![op])
        };
        store.commit(asks).await.unwrap().results.remove(0).unwrap();
    };
    for (by, at_ms) in [(2, 10), (3, 20), (2, 20), (3, 30), (2, 40)] {
        plan(by, at_ms).await;
    }
    let read = async |of: Option<u64>, page| {
        let requests = store.requests(realm(), of.map(agent), page).await;
        requests.unwrap()
    };
    for (of, rows) in [(None, 5), (Some(1), 5), (Some(2), 3), (Some(3), 2)] {
        check(rows, async |page| read(of, page).await, RequestKey::of).await;
    }
    for backwards in [false, true] {
        let add = async || {
            plan(2, 25).await;
        };
        let read = async |page| read(None, page).await;
        check_meanwhile(backwards, read, RequestKey::of, add).await;
    }
}
