//! Random actions of agents and people.

use posse_port::model::Encoded;
use posse_port::store::{
    Address, Charge, Done, Epoch, NewEntry, NewTask, Op, OpResult, Operation, Order, Step,
    TakenMail, TaskChange, checksum,
};
use posse_protocol::{
    AgentId, EntryKind, MailKind, Purpose, RealmId, Takes, TaskId, TaskStatus, Usage,
};
use posse_testkit::fleet::{Began, Deed, draw};
use uuid::Uuid;

/// A held agent, as its writer knows it.
pub(crate) struct Writer {
    pub(crate) realm: RealmId,
    pub(crate) agent: AgentId,
    pub(crate) epoch: Epoch,
    /// The number of its next entry.
    pub(crate) next: u64,
    /// The checksum of the entry before that.
    pub(crate) last: u64,
    /// Tasks in progress.
    pub(crate) tasks: Vec<u64>,
}

impl Writer {
    /// Advances past a committed step.
    pub(crate) fn did(&mut self, began: &Began, results: &[OpResult]) {
        if let Some((seq, checksum)) = began.entries.last() {
            (self.next, self.last) = (seq + 1, *checksum);
        }
        for (deed, result) in began.deeds.iter().zip(results) {
            match (deed, result) {
                (Deed::Claim, Ok(Done::Claimed(task))) => self.tasks.push(task.id.0),
                (Deed::Complete(id), _) => self.tasks.retain(|task| task != id),
                _ => {}
            }
        }
    }

    /// Entries that name their step. An occasional one is a compaction.
    fn entries(&self, step: Uuid, count: u64, seed: &mut u64) -> Vec<NewEntry> {
        let mut last = self.last;
        let entry = |number| {
            let seq = self.next + number;
            let kind = match draw(seed, 60) {
                0 => EntryKind::Compaction,
                _ => [EntryKind::Prompt, EntryKind::Reply][seq as usize % 2],
            };
            let text = format!("{{\"step\":\"{step}\",\"entry\":{seq}}}");
            let encoded = Encoded {
                bytes: text.into(),
                mark_at: None,
            };
            last = checksum(last, seq, kind, None, &encoded);
            NewEntry {
                seq,
                kind,
                head: None,
                loaded: None,
                encoded,
                checksum: last,
                reply: None,
            }
        };
        (0..count).map(entry).collect()
    }
}

/// A step of some entries and operations. Without entries, only its operations identify it.
pub(crate) fn step(
    writer: &Writer,
    waiting: &[u64],
    peers: &[AgentId],
    seed: &mut u64,
) -> (Began, Step) {
    let mut step = Step::new(writer.realm, writer.agent, writer.epoch, 10);
    let least = u64::from(!waiting.is_empty());
    step.entries = writer.entries(step.id.0, draw(seed, 3).max(least), seed);
    if let Some(shown) = step.entries.last() {
        step.mail = waiting
            .iter()
            .map(|number| TakenMail {
                number: *number,
                entry: shown.seq,
            })
            .collect();
    }
    let charge = (draw(seed, 5) == 0).then(|| draw(seed, 1 << 44));
    step.charges = charge.map(booked).into_iter().collect();
    let least = u64::from(step.entries.is_empty());
    let mut deeds: Vec<Deed> = (0..draw(seed, 3).max(least))
        .map(|_| match draw(seed, 10) {
            0 | 1 => Deed::Create(Uuid::now_v7()),
            2..5 => Deed::Claim,
            _ => Deed::Send {
                id: Uuid::now_v7().into(),
                to: one(peers, seed),
            },
        })
        .collect();
    let done = writer.tasks.first().filter(|_| draw(seed, 3) == 0);
    deeds.extend(done.map(|task| Deed::Complete(*task)));
    step.operations = deeds
        .iter()
        .map(|deed| Operation {
            call: None,
            op: op(deed),
        })
        .collect();
    let began = Began {
        id: step.id.0,
        realm: writer.realm,
        by: Some((writer.agent, writer.epoch.0)),
        entries: step
            .entries
            .iter()
            .map(|entry| (entry.seq, entry.checksum))
            .collect(),
        mail: step
            .mail
            .iter()
            .map(|taken| (taken.number, taken.entry))
            .collect(),
        charge,
        deeds,
    };
    (began, step)
}

fn one(peers: &[AgentId], seed: &mut u64) -> AgentId {
    peers[draw(seed, peers.len() as u64) as usize]
}

/// An order of a person.
pub(crate) fn order(realm: RealmId, peers: &[AgentId], seed: &mut u64) -> (Began, Order) {
    let deeds = vec![
        Deed::Send {
            id: Uuid::now_v7().into(),
            to: one(peers, seed),
        },
        Deed::Create(Uuid::now_v7()),
        Deed::Charge {
            agent: one(peers, seed),
            number: draw(seed, 1 << 44),
        },
    ];
    let ops = deeds.iter().map(op).collect();
    let (entries, mail) = (Vec::new(), Vec::new());
    let began = Began {
        id: Uuid::now_v7(),
        realm,
        by: None,
        entries,
        mail,
        charge: None,
        deeds,
    };
    (
        began,
        Order {
            realm,
            ops,
            at_ms: 10,
        },
    )
}

fn op(deed: &Deed) -> Op {
    match *deed {
        Deed::Send { id, to } => Op::Send {
            id,
            to: Address::Agent(to),
            kind: MailKind::Text,
            summary: "a word".into(),
            body: "and some more".into(),
        },
        Deed::Create(subject) => Op::CreateTask {
            team: None,
            task: Box::new(NewTask {
                subject: subject.to_string(),
                ..NewTask::default()
            }),
        },
        Deed::Claim => Op::ClaimNext {
            team: None,
            takes: Takes::Any,
        },
        Deed::Complete(id) => {
            let change = TaskChange {
                status: Some(TaskStatus::Completed),
                ..TaskChange::default()
            };
            Op::UpdateTask {
                team: None,
                id: TaskId(id),
                expect: None,
                change: Box::new(change),
            }
        }
        Deed::Charge { agent, number } => Op::Charge {
            agent,
            charge: Box::new(booked(number)),
        },
    }
}

/// A charge identified by its number.
fn booked(number: u64) -> Charge {
    let usage = Usage {
        input: 1,
        cache_read: number,
        ..Usage::default()
    };
    Charge {
        model: "a-model".into(),
        usage,
        cost: None,
        purpose: Purpose::Work,
        missed: 0,
    }
}
