//! Promises about questions to people.

use posse_port::store::{
    AgentState, CallKey, Done, NewQuestion, Op, OpResult, Operation, Page, QuestionChange,
    QuestionChangeKind, QuestionFilter, QuestionKey, QuestionRecord, QuestionState, Refusal,
    StateChange, Step, Store, Wake,
};
use posse_protocol::{
    AcceptedRules, Answer, Answerer, Display, GivenAnswer, Question, QuestionId, QuestionKind,
    RawJson, RealmId, RuleScope, SandboxRefusal, Suggestion,
};
use uuid::Uuid;

use super::Open;
use super::words::{agent, birth, fate, order, realm, step};

/// The id of a question, which begins with its number.
pub fn question_number(number: u64) -> QuestionId {
    let id = u128::from(number) << 120;
    Uuid::from_u128(id).into()
}

/// A change by which a question is asked.
pub fn asking(number: u64) -> QuestionChange {
    let id = question_number(number);
    let question = Question {
        id,
        kind: QuestionKind::Permission,
        call: format!("toolu_{number}"),
        tool: "Bash".into(),
        // As odd as a model can write it.
        input: RawJson::parse(r#"{ "command": "rm \u0000x", "n": 1.50 }"#).unwrap(),
        why: "no rule allows it".into(),
        from: Some("ann".into()),
        until_ms: Some(i64::MAX),
        suggestions: vec![Suggestion {
            rules: vec!["Bash(rm \0x)".into()],
        }],
        shown: Some(Display::Text {
            text: "no\0thing".into(),
        }),
        refused: Some(SandboxRefusal {
            write: vec!["/w/target".into()],
            read: vec!["/h/.ssh".into()],
            network: true,
        }),
    };
    let call = CallKey {
        seq: number,
        ordinal: 1,
    };
    let change = QuestionChangeKind::Asked(Box::new(NewQuestion { call, question }));
    QuestionChange { id, change }
}

fn closing(number: u64, change: QuestionChangeKind) -> QuestionChange {
    let id = question_number(number);
    QuestionChange { id, change }
}

/// A yes, or a no with words.
pub fn given(allow: bool) -> GivenAnswer {
    let answer = match allow {
        true => Answer::Allow {
            input: Some(RawJson::parse(r#"{"command":"ls"}"#).unwrap()),
            always: Some(AcceptedRules {
                rules: vec!["Bash(rm \0x)".into()],
                scope: RuleScope::Directory,
            }),
        },
        false => Answer::Deny {
            message: "no\0pe".into(),
            interrupt: true,
        },
    };
    let by = Answerer::Person;
    GivenAnswer { answer, by }
}

fn answering(number: u64, allow: bool) -> Op {
    Op::Answer {
        question: question_number(number),
        answer: Box::new(given(allow)),
    }
}

fn closed(number: u64, state: QuestionState) -> OpResult {
    let question = question_number(number);
    Err(Refusal::QuestionClosed { question, state })
}

async fn answer(store: &dyn Store, number: u64, allow: bool) -> OpResult {
    let mut results = order(store, vec![answering(number, allow)]).await;
    results.remove(0)
}

async fn listed(store: &dyn Store, filter: QuestionFilter) -> Vec<QuestionRecord> {
    let page = Page::first(usize::MAX);
    store.questions(filter, page).await.unwrap()
}

async fn only(store: &dyn Store, number: u64) -> QuestionRecord {
    let filter = QuestionFilter {
        id_prefix: Some(format!("{number:02x}")),
        ..QuestionFilter::default()
    };
    let mut found = listed(store, filter).await;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn changing(number: u64, epoch: u64, questions: Vec<QuestionChange>) -> Step {
    Step {
        questions,
        ..step(number, epoch)
    }
}

/// A question is asked by a step, and answered once, by whichever process is first.
pub async fn a_question_is_answered_once(open: Open<'_>) {
    let (first, second) = (open(), open());
    let (store, other) = (first.as_ref(), second.as_ref());
    store.commit(birth(1)).await.unwrap();
    other.commit(birth(2)).await.unwrap();
    store.commit(changing(1, 1, vec![asking(1)])).await.unwrap();
    let QuestionChangeKind::Asked(new) = asking(1).change else {
        panic!("asked")
    };
    let asked = QuestionRecord {
        realm: realm(),
        agent: agent(1),
        call: new.call,
        question: new.question,
        asked_ms: 10,
        state: QuestionState::Open,
        answer: None,
        answered_ms: None,
    };
    assert_eq!(only(other, 1).await, asked);

    let twice = store.commit(changing(1, 1, vec![asking(1)])).await;
    assert_eq!(fate(&twice), "bad step", "it is asked already");
    let early = vec![closing(1, QuestionChangeKind::Done)];
    let early = store.commit(changing(1, 1, early)).await;
    assert_eq!(fate(&early), "bad step", "it has no answer");
    let foreign = vec![closing(1, QuestionChangeKind::Withdrawn)];
    let foreign = other.commit(changing(2, 1, foreign)).await;
    assert_eq!(fate(&foreign), "bad step", "another agent's");
    let mut own = step(2, 1);
    own.operations.push(Operation {
        call: None,
        op: answering(1, true),
    });
    let own = other.commit(own).await;
    assert_eq!(fate(&own), "bad step", "no agent answers");

    let unknown = question_number(9);
    assert_eq!(
        answer(other, 9, true).await,
        Err(Refusal::NoSuchQuestion { question: unknown })
    );
    let done = Done::Answered {
        agent: agent(1),
        held: true,
    };
    assert_eq!(answer(other, 1, true).await, Ok(done));
    super::wake::told(store, &Wake::Mail(agent(1))).await;
    let late = closed(1, QuestionState::Answered);
    assert_eq!(answer(store, 1, false).await, late);
    let answered = QuestionRecord {
        state: QuestionState::Answered,
        answer: Some(given(true)),
        answered_ms: Some(only(store, 1).await.answered_ms.unwrap()),
        ..asked
    };
    assert_eq!(only(store, 1).await, answered);

    let carried_out = changing(1, 1, vec![closing(1, QuestionChangeKind::Done)]);
    store.commit(carried_out.clone()).await.unwrap();
    store.commit(carried_out).await.unwrap();
    assert_eq!(answer(other, 1, true).await, closed(1, QuestionState::Done));
    let again = vec![closing(1, QuestionChangeKind::Withdrawn)];
    let again = store.commit(changing(1, 1, again)).await;
    assert_eq!(fate(&again), "bad step", "it is closed");
}

/// Questions are taken along with their agent, answered or not, until it is done with them; they
/// end with it.
pub async fn questions_outlive_their_process(open: Open<'_>) {
    let (first, second) = (open(), open());
    first.commit(birth(1)).await.unwrap();
    let asked = vec![asking(1), asking(2), asking(3), asking(4)];
    first.commit(changing(1, 1, asked)).await.unwrap();
    assert!(answer(second.as_ref(), 2, false).await.is_ok());
    let withdrawn = vec![closing(3, QuestionChangeKind::Withdrawn)];
    first.commit(changing(1, 1, withdrawn)).await.unwrap();
    let late = closed(3, QuestionState::Withdrawn);
    assert_eq!(answer(second.as_ref(), 3, true).await, late);
    drop(first);

    let taken = second.take(agent(1)).await.unwrap();
    let states: Vec<_> = taken
        .questions
        .iter()
        .map(|record| (record.question.id, record.state))
        .collect();
    let [one, two, four] = [1, 2, 4].map(question_number);
    let (open, answered) = (QuestionState::Open, QuestionState::Answered);
    assert_eq!(states, [(one, open), (two, answered), (four, open)]);
    assert_eq!(taken.questions[1].answer, Some(given(false)));
    let store = second.as_ref();
    let mut done = changing(1, taken.epoch.0, vec![closing(2, QuestionChangeKind::Done)]);
    done.at_ms = 30;
    store.commit(done).await.unwrap();
    store.release(agent(1), taken.epoch).await.unwrap();
    let unheld = Done::Answered {
        agent: agent(1),
        held: false,
    };
    assert_eq!(answer(store, 1, true).await, Ok(unheld));
    let taken = store.take(agent(1)).await.unwrap();
    assert_eq!(taken.questions.len(), 2, "{:?}", taken.questions);
    let mut ends = step(1, taken.epoch.0);
    ends.state = Some(StateChange::To(AgentState::Killed));
    store.commit(ends).await.unwrap();
    for (number, state) in [
        (1, QuestionState::Withdrawn),
        (2, QuestionState::Done),
        (4, QuestionState::Withdrawn),
    ] {
        assert_eq!(only(store, number).await.state, state, "{number}");
    }
}

/// Lists of questions come in pages, both ways, by every filter.
pub async fn questions_come_in_pages(open: Open<'_>) {
    let store = open();
    let store = store.as_ref();
    store.commit(birth(1)).await.unwrap();
    store.commit(birth(2)).await.unwrap();
    for number in 1..=7 {
        let mut step = changing(1 + number % 2, 1, vec![asking(number)]);
        // Some are as old as others.
        step.at_ms = 10 + number as i64 / 2;
        store.commit(step).await.unwrap();
    }
    assert!(answer(store, 4, true).await.is_ok());
    let here = QuestionFilter {
        realm: Some(realm()),
        ..QuestionFilter::default()
    };
    let nowhere = QuestionFilter {
        realm: Some(RealmId::from(Uuid::nil())),
        ..QuestionFilter::default()
    };
    let open = |filter: &QuestionFilter| QuestionFilter {
        open: true,
        ..filter.clone()
    };
    let own = QuestionFilter {
        agent: Some(agent(1)),
        ..here.clone()
    };
    let everywhere = QuestionFilter::default();
    for (filter, wanted) in [
        (here.clone(), vec![1, 2, 3, 4, 5, 6, 7]),
        (open(&here), vec![1, 2, 3, 5, 6, 7]),
        (open(&everywhere), vec![1, 2, 3, 5, 6, 7]),
        (own.clone(), vec![2, 4, 6]),
        (open(&own), vec![2, 6]),
        (nowhere, vec![]),
    ] {
        let wanted: Vec<QuestionId> = wanted.into_iter().map(question_number).collect();
        for backwards in [false, true] {
            let (mut ids, mut from) = (Vec::new(), None);
            loop {
                let page = Page::<QuestionKey> {
                    from,
                    backwards,
                    limit: 2,
                };
                let found = store.questions(filter.clone(), page).await.unwrap();
                let edge = if backwards {
                    found.first()
                } else {
                    found.last()
                };
                let Some(edge) = edge else { break };
                from = Some(QuestionKey::of(edge));
                let page = found.iter().map(|record| record.question.id);
                let at = if backwards { 0 } else { ids.len() };
                ids.splice(at..at, page);
            }
            assert_eq!(ids, wanted, "{filter:?}, backwards: {backwards}");
        }
    }
}
