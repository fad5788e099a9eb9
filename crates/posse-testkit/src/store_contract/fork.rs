//! Promises about shared histories and compacted ones.

use posse_port::model::Encoded;
use posse_port::store::{
    CallChangeKind, CallOutcome, NewEntry, Page, RowFilter, Segment, Step, StoredEntry, Transcript,
};
use posse_protocol::EntryKind::{self, Compaction, Model, Prompt, Reply, Results};
use posse_protocol::{ReplyFacts, Usage};

use super::Open;
use super::words::{
    agent, birth, call, chained, child, entry, fate, headed, loading, origin, step, verify,
};

/// A sub-agent whose history begins with segments.
fn fork(number: u64, parent: u64, segments: Vec<Segment>) -> Step {
    let mut born = child(number, parent, "");
    if let Some(birth) = &mut born.birth {
        birth.segments = segments;
    }
    born
}

fn segment(number: u64, from: u64, to: u64) -> Segment {
    Segment {
        agent: agent(number),
        from,
        to,
    }
}

/// The owner, number and text of each entry.
fn told(transcript: &Transcript) -> Vec<(u8, u64, String)> {
    let line = |entry: &NewEntry| String::from_utf8_lossy(&entry.encoded.bytes).into_owned();
    let all = transcript.entries.iter();
    all.map(|it| (it.agent.uuid().as_bytes()[0], it.entry.seq, line(&it.entry)))
        .collect()
}

fn lines(wanted: &[(u8, u64, &str)]) -> Vec<(u8, u64, String)> {
    wanted
        .iter()
        .map(|(whose, seq, text)| (*whose, *seq, (*text).to_owned()))
        .collect()
}

/// An inherited history is read in its order, without what its owners add later.
pub async fn segments_are_read_first(open: Open<'_>) {
    let store = open();
    for (number, words) in [(1, ["a", "b", "c"]), (2, ["d", "e", "f"])] {
        let mut first = birth(number);
        let kinds = [Reply, Prompt, if number == 1 { Reply } else { Compaction }];
        first.entries = (0..)
            .zip(kinds)
            .zip(words)
            .map(|((seq, kind), text)| entry(seq, kind, text))
            .collect();
        store.commit(first).await.unwrap();
    }
    let segments = vec![segment(2, 2, 3), segment(1, 0, 3), segment(2, 0, 0)];
    let mut forked = fork(3, 1, segments.clone());
    forked.entries = vec![entry(0, Prompt, "own")];
    store.commit(forked.clone()).await.unwrap();
    let mut more = step(1, 1);
    more.entries = vec![entry(3, Prompt, "later")];
    store.commit(more).await.unwrap();

    let read = store.read(agent(3)).await.unwrap();
    let wanted = lines(&[
        (2, 2, "f"),
        (1, 0, "a"),
        (1, 1, "b"),
        (1, 2, "c"),
        (3, 0, "own"),
    ]);
    assert_eq!(told(&read), wanted);
    assert_eq!((read.inherited, read.segments), (4, segments));
    assert_eq!(
        (read.record.entries, read.record.origin),
        (5, Some(origin(1)))
    );
    assert_eq!(
        read.record.first_prompt.as_deref(),
        Some(b"e".as_slice()),
        "what the first stands for"
    );
    assert_eq!(
        told(&store.take(agent(3)).await.unwrap().transcript),
        wanted
    );

    for wrong in [
        (1, 0, 5),
        (1, 2, 1),
        (9, 0, 0),
        (1, 1, 3),
        (1, 2, 2),
        (2, 3, 3),
        (2, 1, 3),
    ] {
        let wrong = segment(wrong.0, wrong.1, wrong.2);
        assert_eq!(
            fate(&store.commit(fork(4, 1, vec![wrong])).await),
            "bad step",
            "{wrong:?}"
        );
    }
}

/// Every page of a history with segments is a part of the whole.
pub async fn entries_come_in_pages(open: Open<'_>) {
    let store = open();
    let mut first = birth(1);
    let kinds = [Prompt, Reply, Compaction, Prompt];
    first.entries = (0..)
        .zip(kinds)
        .map(|(seq, kind)| entry(seq, kind, &format!("first {seq}")))
        .collect();
    store.commit(first).await.unwrap();
    let mut other = birth(3);
    other.entries = vec![entry(0, Prompt, "other 0"), entry(1, Reply, "other 1")];
    store.commit(other).await.unwrap();
    let segments = vec![segment(1, 2, 4), segment(3, 0, 0), segment(3, 0, 2)];
    let mut forked = fork(2, 1, segments);
    forked.entries = vec![
        headed(0, Prompt, "shared", "own 0"),
        entry(1, Reply, "own 1"),
        entry(2, Compaction, "own 2"),
    ];
    store.commit(forked).await.unwrap();
    assert_eq!(
        fate(&store.entries(agent(9), Page::first(1)).await),
        "not found"
    );
    for (number, inherited, rows) in [(1, 0, 4), (2, 4, 7)] {
        let whole = store.read(agent(number)).await.unwrap();
        let line = |it: &StoredEntry| {
            let NewEntry { seq, checksum, .. } = it.entry;
            (it.agent, it.at_ms, seq, checksum, it.entry.sent().to_vec())
        };
        let all: Vec<_> = whole.entries.iter().map(line).collect();
        assert_eq!(all.len(), rows);
        let check = async |page: Page<u64>, wanted: std::ops::Range<usize>| {
            let found = store.entries(agent(number), page).await.unwrap();
            assert_eq!((found.total, found.inherited), (rows as u64, inherited));
            let lines: Vec<_> = found.entries.iter().map(line).collect();
            assert_eq!(lines, all[wanted.clone()], "{page:?}");
            if !wanted.is_empty() {
                assert_eq!(found.first, wanted.start as u64, "{page:?}");
            }
        };
        check(Page::all(), 0..rows).await;
        for limit in 0..=rows + 1 {
            check(Page::first(limit), 0..limit.min(rows)).await;
            check(Page::last(limit), rows.saturating_sub(limit)..rows).await;
            for at in 0..rows + 2 {
                let from = (at + 1).min(rows);
                let after = from..(from + limit).min(rows);
                check(Page::after(at as u64, limit), after).await;
                let to = at.min(rows);
                let before = to.saturating_sub(limit)..to;
                check(Page::before(at as u64, limit), before).await;
            }
        }
    }
}

/// An entry can bring another model: it carries the preamble for it, and lists show the model. The
/// preamble of the birth and what inherits the entries before stay as they are.
pub async fn another_model_is_an_entry(open: Open<'_>) {
    let store = open();
    let changed = |seq, model: &str| NewEntry {
        reply: Some(ReplyFacts {
            id: String::new(),
            model: model.into(),
            stop: None,
            usage: Usage::default(),
            missed: None,
        }),
        ..headed(
            seq,
            Model,
            &format!("the preamble for {model}"),
            "for people",
        )
    };
    let mut first = birth(1);
    let born = first.birth.clone().unwrap();
    first.entries = chained(vec![entry(0, Prompt, "go"), entry(1, Reply, "done")]);
    let earlier = first.entries.clone();
    store.commit(first).await.unwrap();
    store
        .commit(fork(2, 1, vec![segment(1, 0, 2)]))
        .await
        .unwrap();
    let later = [
        changed(2, "one"),
        changed(3, "another"),
        entry(4, Prompt, "on"),
    ];
    let all = chained(earlier.into_iter().chain(later).collect());
    let change = Step {
        entries: all[2..].to_vec(),
        ..step(1, 1)
    };
    // A step that is sent again changes nothing.
    store.commit(change.clone()).await.unwrap();
    store.commit(change).await.unwrap();
    drop(store);

    let store = open();
    let taken = store.take(agent(1)).await.unwrap().transcript;
    assert_eq!(verify(&taken), Ok(()));
    assert_eq!(
        (taken.record.model.as_str(), &taken.preamble),
        ("another", &born.preamble)
    );
    let heads = taken.entries.iter().filter_map(|stored| {
        let model = stored.entry.model()?;
        Some((model, stored.entry.head.as_ref()?.bytes.clone()))
    });
    assert_eq!(
        heads.collect::<Vec<_>>(),
        [
            ("one", "the preamble for one".into()),
            ("another", "the preamble for another".into())
        ]
    );
    let asked = RowFilter::Agents([1, 2].map(agent).into());
    let rows = store.rows(taken.record.realm, asked).await.unwrap().rows;
    let models: Vec<_> = rows.iter().map(|row| row.model.as_str()).collect();
    assert_eq!(models, ["another", &born.model]);
    assert_eq!(
        store.read(agent(2)).await.unwrap().record.model,
        born.model,
        "a fork of before"
    );
}

/// Heads come back with their entries, and equal heads of a read share memory.
pub async fn heads_come_back_and_are_shared(open: Open<'_>) {
    let store = open();
    let shared = "{\"placeholder\"}".repeat(10_000);
    let mut first = birth(1);
    first.entries = chained(vec![
        headed(0, Prompt, &shared, "first"),
        entry(1, Reply, "bare"),
        headed(2, Prompt, "another", "third"),
        headed(3, Results, "", "an empty one is one too"),
        headed(4, Prompt, &shared, ""),
    ]);
    // The same bytes with another mark are another head.
    let encoded = Encoded {
        bytes: shared.clone().into(),
        mark_at: None,
    };
    first.entries.push(NewEntry {
        head: Some(encoded),
        ..entry(5, Prompt, "unmarked")
    });
    first.entries = chained(first.entries);
    let wanted = format!("{:?}", first.entries);
    store.commit(first).await.unwrap();
    let mut second = fork(2, 1, vec![segment(1, 0, 3)]);
    second.entries = chained(vec![headed(0, Prompt, &shared, "of another")]);
    store.commit(second).await.unwrap();
    store
        .commit(Step {
            entries: vec![headed(1, Prompt, &shared, "later")],
            ..step(2, 1)
        })
        .await
        .unwrap();
    drop(store);

    let store = open();
    let read = store.read(agent(1)).await.unwrap();
    let found: Vec<_> = read
        .entries
        .iter()
        .map(|stored| stored.entry.clone())
        .collect();
    assert_eq!(format!("{found:?}"), wanted);
    assert_eq!(verify(&read), Ok(()));
    for transcript in [read, store.take(agent(2)).await.unwrap().transcript] {
        let heads = transcript
            .entries
            .iter()
            .filter_map(|stored| stored.entry.head.as_ref());
        let marked = heads.filter(|head| head.bytes == shared && head.mark_at.is_some());
        let places: Vec<_> = marked.map(|head| head.bytes.as_ptr()).collect();
        assert!(
            places.len() > 1 && places.iter().all(|place| *place == places[0]),
            "{places:?}"
        );
    }
    // For an agent that inherits no prompt it is as sent, including the head.
    let mut alone = birth(3);
    alone.entries = vec![entry(0, Reply, "r"), headed(1, Prompt, "head", "piece")];
    store.commit(alone).await.unwrap();
    let session = store.read(agent(3)).await.unwrap().record;
    assert_eq!(
        session.first_prompt.as_deref(),
        Some(b"head,piece".as_slice())
    );
}

/// Definitions of tools come back with the entries that brought them, to forks too, and are covered
/// by the checksum.
pub async fn definitions_come_back_with_their_entries(open: Open<'_>) {
    let store = open();
    let definitions = format!("[{{\"name\":\"{}\"}}]", "long".repeat(5_000));
    let mut first = birth(1);
    first.entries = chained(vec![
        entry(0, Prompt, "go"),
        entry(1, Reply, "searches"),
        loading(entry(2, Results, "found"), &definitions),
        entry(3, Reply, "searches again"),
        loading(entry(4, Results, "found others"), "[]"),
    ]);
    let wanted = format!("{:?}", first.entries);
    store.commit(first).await.unwrap();
    // The same ones again, alone in a step: it brings what the store has already.
    let mut later = entry(5, Results, "found once more");
    later = loading(later, &definitions);
    let step = Step {
        entries: vec![later.clone()],
        ..step(1, 1)
    };
    store.commit(step).await.unwrap();
    store
        .commit(fork(2, 1, vec![segment(1, 0, 3)]))
        .await
        .unwrap();
    let of = |transcript: &Transcript| -> Vec<Option<String>> {
        let loaded = transcript.entries.iter().map(|it| it.entry.loaded.as_ref());
        let text = |it: &Encoded| String::from_utf8(it.bytes.to_vec()).unwrap();
        loaded.map(|it| it.map(text)).collect()
    };
    drop(store);

    let store = open();
    let read = store.read(agent(1)).await.unwrap();
    let found: Vec<NewEntry> = read.entries.iter().map(|it| it.entry.clone()).collect();
    assert_eq!(format!("{:?}", &found[..5]), wanted);
    let all = [
        None,
        None,
        Some(definitions.clone()),
        None,
        Some("[]".into()),
    ];
    let mut again = all.to_vec();
    again.push(Some(definitions.clone()));
    assert_eq!(of(&read), again);
    assert_eq!(found[5].checksum, later.checksum);
    // One that lacks them is not what it was.
    let mut without = read;
    without.entries.truncate(5);
    assert_eq!(verify(&without), Ok(()));
    without.entries[2].entry.loaded = None;
    assert_eq!(verify(&without), Err(2));
    let forked = store.take(agent(2)).await.unwrap().transcript;
    assert_eq!(of(&forked), all[..3]);
    let page = store.entries(agent(2), Page::all()).await.unwrap();
    let last = page.entries.last().unwrap();
    assert_eq!(last.entry.loaded.as_ref().unwrap().bytes, definitions);
}

/// Taking an agent returns it from its last compaction on; reading it returns everything.
pub async fn a_compaction_stands_for_all_before_it(open: Open<'_>) {
    let store = open();
    let mut first = birth(1);
    first.entries = vec![entry(0, Prompt, "go"), entry(1, Reply, "calls")];
    let asked = CallChangeKind::Asked {
        id: "toolu".into(),
        tool: "Bash".into(),
        tier: None,
    };
    first.calls = vec![call(1, 0, asked.clone())];
    store.commit(first).await.unwrap();
    let mut forked = fork(2, 1, vec![segment(1, 0, 2)]);
    forked.entries = vec![entry(0, Prompt, "own")];
    store.commit(forked).await.unwrap();
    let grow = async |number, epoch, entries: &[(u64, EntryKind, &str)]| {
        let entries = entries
            .iter()
            .map(|(seq, kind, text)| entry(*seq, *kind, text))
            .collect();
        store
            .commit(Step {
                entries,
                ..step(number, epoch)
            })
            .await
            .unwrap();
    };

    grow(1, 1, &[(2, Compaction, "in short")]).await;
    let taken = store.take(agent(1)).await.unwrap().transcript;
    assert_eq!(
        (told(&taken), taken.inherited),
        (lines(&[(1, 2, "in short")]), 0)
    );
    assert_eq!(
        taken.open_calls,
        [],
        "the model does not know of it any more"
    );
    assert_eq!(
        (taken.record.entries, taken.record.first_prompt.as_deref()),
        (3, Some(&b"go"[..]))
    );
    let mut next = step(1, 2);
    next.entries = vec![entry(3, Reply, "calls"), entry(4, Prompt, "a word")];
    next.calls = vec![call(3, 0, asked)];
    store.commit(next).await.unwrap();
    let taken = store.take(agent(1)).await.unwrap().transcript;
    assert_eq!(
        told(&taken),
        lines(&[(1, 2, "in short"), (1, 3, "calls"), (1, 4, "a word")])
    );
    assert_eq!(taken.open_calls.len(), 1);
    let outcome = CallOutcome {
        content: std::sync::Arc::new([]),
        is_error: false,
    };
    let mut done = step(1, 3);
    done.calls = vec![call(3, 0, CallChangeKind::Done(outcome))];
    // Two at once: the last one counts.
    done.entries = vec![
        entry(5, Results, "r"),
        entry(6, Compaction, "shorter"),
        entry(7, Compaction, "shortest"),
    ];
    store.commit(done).await.unwrap();

    grow(
        2,
        1,
        &[(1, Reply, "hi"), (2, Compaction, "mine"), (3, Prompt, "on")],
    )
    .await;
    drop(store);
    let store = open();
    let taken = store.take(agent(1)).await.unwrap().transcript;
    assert_eq!(told(&taken), lines(&[(1, 7, "shortest")]));
    let read = store.read(agent(1)).await.unwrap();
    assert_eq!((read.entries.len(), read.record), (8, taken.record));
    let taken = store.take(agent(2)).await.unwrap().transcript;
    assert_eq!(
        (told(&taken), taken.inherited),
        (lines(&[(2, 2, "mine"), (2, 3, "on")]), 0)
    );
    assert_eq!(taken.segments, [], "nothing of others is sent any more");
    let read = store.read(agent(2)).await.unwrap();
    let all = [
        (1, 0, "go"),
        (1, 1, "calls"),
        (2, 0, "own"),
        (2, 1, "hi"),
        (2, 2, "mine"),
        (2, 3, "on"),
    ];
    assert_eq!((told(&read), read.inherited), (lines(&all), 2));
    assert_eq!(
        (read.segments, read.record.entries),
        (vec![segment(1, 0, 2)], 6)
    );
}

/// A fork of a compacted agent begins with the compaction, which starts a new chain, and is
/// independent of the parent's later life.
pub async fn a_fork_of_a_compacted_agent_begins_with_its_compaction(open: Open<'_>) {
    let store = open();
    let mut first = birth(1);
    let said = [
        (Prompt, "go"),
        (Reply, "old"),
        (Compaction, "in short"),
        (Reply, "calls"),
        (Results, "late"),
    ];
    first.entries = chained(
        (0..)
            .zip(said)
            .map(|(seq, (kind, text))| entry(seq, kind, text))
            .collect::<Vec<_>>(),
    );
    let parents = first.entries.clone();
    store.commit(first).await.unwrap();
    let mut forked = fork(2, 1, vec![segment(1, 2, 4)]);
    forked.entries = chained(vec![headed(0, Prompt, "placeholders", "look")]);
    store.commit(forked).await.unwrap();
    let mut grandchild = fork(3, 2, vec![segment(1, 2, 4), segment(2, 0, 1)]);
    grandchild.entries = chained(vec![entry(0, Prompt, "deeper")]);
    store.commit(grandchild).await.unwrap();
    let mut again = step(1, 1);
    again.entries = vec![entry(5, Compaction, "in a word")];
    store.commit(again).await.unwrap();
    drop(store);

    let store = open();
    let taken = store.take(agent(2)).await.unwrap().transcript;
    assert_eq!(
        told(&taken),
        lines(&[(1, 2, "in short"), (1, 3, "calls"), (2, 0, "look")])
    );
    assert_eq!(
        (taken.inherited, &taken.segments),
        (2, &vec![segment(1, 2, 4)])
    );
    let inherited: Vec<_> = taken.entries[..2]
        .iter()
        .map(|stored| stored.entry.clone())
        .collect();
    assert_eq!(format!("{inherited:?}"), format!("{:?}", &parents[2..4]));
    assert_eq!(
        format!("{:?}", chained(inherited.clone())),
        format!("{inherited:?}"),
        "a chain that needs nothing before it"
    );
    assert_eq!(verify(&taken), Ok(()));
    assert_eq!(
        taken.record.first_prompt.as_deref(),
        Some(b"go".as_slice()),
        "what it all began with"
    );
    let read = store.read(agent(3)).await.unwrap();
    assert_eq!(
        told(&read),
        lines(&[
            (1, 2, "in short"),
            (1, 3, "calls"),
            (2, 0, "look"),
            (3, 0, "deeper")
        ])
    );
    assert_eq!(read.record.first_prompt.as_deref(), Some(b"go".as_slice()));
}
