//! Random histories of questions. Whoever answers, waits or dies when: a call runs at most once, and
//! only as it was answered.

use std::collections::BTreeMap;

use posse_port::store::{NewQuestion, QuestionRecord, QuestionState};
use posse_protocol::{QuestionId, RealmId};
use proptest::prelude::*;

use super::*;
use crate::agent::step::NewModel;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The model replies with calls that a person is asked about.
    Reply { calls: usize },
    /// Somebody answers a question, which may have been answered before.
    Answer { nth: usize, allow: bool },
    /// The time of all questions is over.
    TimeOver,
    /// The agent hears the answers.
    Hear,
    /// A running call ends.
    CallDone { nth: usize },
    /// A person stops the run.
    Interrupt,
    /// Another mode.
    Mode(PermissionMode),
    /// Another model.
    Model,
    /// The process dies. Another one takes the agent over.
    Kill,
    /// The process dies after the next commit, before anything is done about it.
    KillAfterCommit,
}

fn event() -> impl Strategy<Value = Event> {
    let modes = [
        PermissionMode::Default,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
    ];
    prop_oneof![
        3 => (1..4_usize).prop_map(|calls| Event::Reply { calls }),
        6 => (0..6_usize, any::<bool>()).prop_map(|(nth, allow)| Event::Answer { nth, allow }),
        1 => Just(Event::TimeOver),
        6 => Just(Event::Hear),
        4 => (0..3_usize).prop_map(|nth| Event::CallDone { nth }),
        1 => Just(Event::Interrupt),
        1 => prop::sample::select(modes.to_vec()).prop_map(Event::Mode),
        1 => Just(Event::Model),
        2 => Just(Event::Kill),
        2 => Just(Event::KillAfterCommit),
    ]
}

/// An agent, and what a store has of it.
struct World {
    machine: Machine,
    mode: PermissionMode,
    questions: Vec<QuestionRecord>,
    open: BTreeMap<CallKey, OpenCall>,
    entries: u64,
    unanswered: bool,
    /// The model is being called.
    calling: bool,
    /// Calls that this process runs.
    running: Vec<CallKey>,
    /// How often each call was started, by any process.
    started: BTreeMap<CallKey, u32>,
    /// The process dies before the effects of the next commit.
    doomed: bool,
}

fn intent() -> Result<Intent, ToolError> {
    Ok(Intent {
        read_only: false,
        beside_others: false,
        subject: Subject::runs("make"),
        waits: false,
        title: "w".into(),
    })
}

impl World {
    fn new() -> Self {
        let mode = PermissionMode::Default;
        Self {
            machine: alive(
                Life::Root {
                    joins: false,
                    then: PermissionMode::Default,
                },
                mode,
                Approver::FrontEnd,
                FREE,
            ),
            mode,
            questions: Vec::new(),
            open: BTreeMap::new(),
            entries: 0,
            unanswered: false,
            calling: false,
            running: Vec::new(),
            started: BTreeMap::new(),
            doomed: false,
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Reply { calls } => {
                if self.machine.is_idle() {
                    self.step(Input::Prompt(vec![ContentBlock::text("go")]));
                }
                if std::mem::take(&mut self.calling) {
                    self.step(reply(&"w".repeat(calls), StopReason::ToolUse));
                }
            }
            Event::Answer { nth, allow } => {
                let answer = match allow {
                    true => Answer::Allow {
                        input: None,
                        always: None,
                    },
                    false => Answer::Deny {
                        message: "no".into(),
                        interrupt: false,
                    },
                };
                let count = self.questions.len();
                // The newest ones, also those that are answered or closed.
                if let Some(at) = count.checked_sub(nth + 1) {
                    self.answer(at, answer, Answerer::Person);
                }
            }
            Event::TimeOver => {
                for at in 0..self.questions.len() {
                    let answer = Answer::Deny {
                        message: "nobody".into(),
                        interrupt: false,
                    };
                    self.answer(at, answer, Answerer::Nobody);
                }
                self.hear();
            }
            Event::Hear => self.hear(),
            Event::CallDone { nth } => {
                if nth < self.running.len() {
                    let key = self.running.remove(nth);
                    let result = Some(Ok(said("done")));
                    self.step(Input::CallDone { key, result });
                }
            }
            Event::Interrupt => self.step(Input::Interrupt),
            Event::Mode(mode) => self.step(Input::SetMode(mode)),
            Event::Model => self.step(Input::SetModel(NewModel {
                model: "another".into(),
                text: "Model: another".into(),
                is_first: false,
            })),
            Event::Kill => self.killed(),
            Event::KillAfterCommit => self.doomed = true,
        }
    }

    /// Answers as the store does: the first answer counts.
    fn answer(&mut self, at: usize, answer: Answer, by: Answerer) {
        let record = &mut self.questions[at];
        if record.state == QuestionState::Open {
            record.state = QuestionState::Answered;
            record.answer = Some(GivenAnswer { answer, by });
        }
    }

    fn hear(&mut self) {
        let answered = self
            .questions
            .iter()
            .filter(|record| record.state == QuestionState::Answered);
        let answered: Vec<_> = answered
            .map(|record| (record.question.id, record.answer.clone().unwrap()))
            .collect();
        for (question, given) in answered {
            self.step(Input::Answer {
                question,
                given,
                intent: None,
            });
        }
    }

    fn step(&mut self, input: Input) {
        let decision = self.machine.step(input);
        self.carry_out(decision);
    }

    /// Commits a decision, and does what follows unless the process dies first.
    fn carry_out(&mut self, decision: Decision) {
        if decision == Decision::default() {
            return;
        }
        self.commit(&decision);
        if std::mem::take(&mut self.doomed) {
            return self.killed();
        }
        for effect in decision.after {
            match effect {
                Effect::CallModel => self.calling = true,
                Effect::AbortModel => self.calling = false,
                Effect::Run(run) => self.start(run.key),
                Effect::SetMode(mode) => self.machine.rights().set_mode(mode),
                Effect::AbortCalls => {
                    for key in std::mem::take(&mut self.running) {
                        self.step(Input::CallDone { key, result: None });
                    }
                }
                Effect::AskAgain(_) => self.hear(),
                _ => {}
            }
        }
    }

    fn commit(&mut self, decision: &Decision) {
        let commit = &decision.commit;
        self.mode = commit.mode.unwrap_or(self.mode);
        for change in &commit.calls {
            match &change.change {
                CallChangeKind::Asked { id, tool, .. } => {
                    let call = OpenCall {
                        key: change.key,
                        id: id.clone(),
                        tool: tool.clone(),
                        begun: false,
                        outcome: None,
                        operated: None,
                    };
                    assert!(self.open.insert(change.key, call).is_none());
                }
                CallChangeKind::Begun { .. } => {
                    self.open.get_mut(&change.key).unwrap().begun = true
                }
                CallChangeKind::Done(outcome) => {
                    self.open.get_mut(&change.key).unwrap().outcome = Some(outcome.clone());
                }
            }
        }
        for QuestionChange { id, change } in &commit.questions {
            match change {
                QuestionChangeKind::Asked(new) => self.ask(*id, new),
                QuestionChangeKind::Done => {
                    let record = self.question(*id);
                    assert_eq!(record.state, QuestionState::Answered, "a bad step");
                    record.state = QuestionState::Done;
                }
                QuestionChangeKind::Withdrawn => {
                    self.question(*id).state = QuestionState::Withdrawn
                }
            }
        }
        for entry in &commit.entries {
            self.entries += 1;
            if entry.kind == EntryKind::Model {
                assert!(self.open.is_empty(), "no calls without results before it");
                continue;
            }
            self.unanswered = entry.kind != EntryKind::Reply;
            if entry.kind == EntryKind::Results {
                self.open.clear();
            }
        }
    }

    fn ask(&mut self, id: QuestionId, new: &NewQuestion) {
        assert!(self.questions.iter().all(|record| record.question.id != id));
        self.questions.push(QuestionRecord {
            realm: RealmId::from(ME),
            agent: ME.into(),
            call: new.call,
            question: new.question.clone(),
            asked_ms: i64::try_from(self.questions.len()).unwrap() + 100,
            state: QuestionState::Open,
            answer: None,
            answered_ms: None,
        });
    }

    fn question(&mut self, id: QuestionId) -> &mut QuestionRecord {
        let mut all = self.questions.iter_mut();
        all.find(|record| record.question.id == id).unwrap()
    }

    /// A call is started: for the first time, and with somebody's leave.
    fn start(&mut self, key: CallKey) {
        let times = self.started.entry(key).or_default();
        *times += 1;
        assert_eq!(*times, 1, "{key:?} runs twice");
        let mut about = self.questions.iter().filter(|record| record.call == key);
        let allowed = |record: &QuestionRecord| {
            let given = record.answer.as_ref().map(|given| &given.answer);
            record.state == QuestionState::Done && matches!(given, Some(Answer::Allow { .. }))
        };
        let free = self.mode == PermissionMode::BypassPermissions;
        assert!(
            about.clone().any(allowed) || free && about.next().is_none(),
            "{key:?} runs without leave: {:?}",
            self.questions
        );
        self.running.push(key);
    }

    /// Another process takes the agent over, with what is stored.
    fn killed(&mut self) {
        (self.running, self.calling, self.doomed) = (Vec::new(), false, false);
        self.machine = alive(
            Life::Root {
                joins: false,
                then: PermissionMode::Default,
            },
            self.mode,
            Approver::FrontEnd,
            FREE,
        );
        self.machine.next_seq = self.entries;
        self.machine.unanswered = self.unanswered;
        let unfinished = |record: &&QuestionRecord| {
            matches!(record.state, QuestionState::Open | QuestionState::Answered)
        };
        let questions = self.questions.iter().filter(unfinished).cloned().collect();
        let open = self.open.values().cloned().collect();
        let (left, lost) =
            LeftCall::with_questions(open, HashMap::new(), questions, |_, _| intent());
        let mut decision = self.machine.recover(left, AgentState::Waiting);
        decision.commit.questions.extend(lost);
        self.carry_out(decision);
        self.step(Input::Continue);
    }

    /// Whatever is asked has a call that waits for it, and nothing that was denied has run.
    fn check(&self) {
        for record in &self.questions {
            let waits = matches!(record.state, QuestionState::Open | QuestionState::Answered);
            let calls = self.machine.open_calls();
            let asked = calls.and_then(|calls| calls.asked_about(record.question.id));
            assert_eq!(waits, asked.is_some(), "{record:?}");
            let given = record.answer.as_ref().map(|given| &given.answer);
            let denied = matches!(given, Some(Answer::Deny { .. }));
            assert!(
                !denied || !self.started.contains_key(&record.call),
                "{record:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    // proves QU-01 (part: histories)
    // proves QU-02 (part: once)
    #[test]
    fn a_call_runs_at_most_once_and_only_as_answered(events in prop::collection::vec(event(), 1..40)) {
        let mut world = World::new();
        for event in events {
            world.happens(event);
            world.check();
        }
    }
}
