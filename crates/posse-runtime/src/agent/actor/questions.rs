//! Questions to a person: asked by a step, answered by whoever is first, in any process, and heard
//! from the store.

pub(super) mod side;

use std::time::Duration;

use posse_permission::RuleList;
use posse_port::store::{
    Op, Order, Page, QuestionChangeKind, QuestionFilter, QuestionRecord, QuestionState, Refusal,
    StoreError,
};
use posse_protocol::{
    AcceptedRules, Answer, Answerer, EventKind, GivenAnswer, Question, QuestionId, QuestionKind,
};

use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, Identity, command, hooks, wall_ms};
use crate::agent::step::{AskedCall, Commit, Input, suggestions};
use crate::live::lookup;
use crate::live::setup::Approver;
use crate::prompt;

/// Number of bytes of a change that a question shows: it is stored, and read with every list.
const SHOWN_BYTES: usize = 16 << 10;

/// Completes the questions of a commit, and returns them: until when they wait, which rules a
/// person may accept, and what the call would change.
pub(super) async fn complete(
    actor: &Actor,
    commit: &mut Commit,
) -> Result<Vec<Question>, StoreError> {
    let mut asked = Vec::new();
    let mut until = None;
    for change in &mut commit.questions {
        if let QuestionChangeKind::Asked(new) = &mut change.change {
            if asked.is_empty() {
                until = waits_until(actor).await?;
            }
            let question = &mut new.question;
            question.until_ms = until;
            if let Some(call) = asked_about(actor, question.id) {
                let (tools, workspace) = (&actor.setup.tools, &actor.setup.workspace);
                let shown = tools.preview(call.tool, call.input, workspace);
                question.shown = shown.map(|shown| shown.clipped(SHOWN_BYTES));
                question.suggestions = suggestions(&actor.machine, &call);
            }
            asked.push(new.question.clone());
        }
    }
    Ok(asked)
}

/// Returns when a question that is asked now stops waiting; none if it waits for the front end.
async fn waits_until(actor: &Actor) -> Result<Option<i64>, StoreError> {
    let after = |from: i64, time: Duration| {
        from.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
    };
    Ok(match actor.machine.approver() {
        Approver::Nobody | Approver::FrontEnd => None,
        Approver::Anyone(patience) => Some(after(wall_ms(&*actor.ports.clock), patience)),
        Approver::WhileUsed(patience) => {
            let root = lookup::row(&*actor.ports.store, actor.session.root).await?;
            Some(after(root.map_or(0, |root| root.used_ms), patience))
        }
    })
}

/// Tells front ends of questions that are in the store now, and watches their time.
pub(super) async fn on_asked(actor: &Actor, asked: Vec<Question>, work: &mut Work) {
    for question in asked {
        watch(actor, question.until_ms, work);
        let is_anybody_there = actor.machine.approver() != Approver::Nobody;
        // Nobody sees what a server asks now; a call that a hook has left for later is told of.
        if is_anybody_there || question.kind != QuestionKind::Form {
            hooks::on_asked(actor, &question, work);
        }
        // A front end without a person would deny it now.
        if !is_anybody_there {
            continue;
        }
        actor
            .sink
            .emit(EventKind::ApprovalRequested(Box::new(question)))
            .await;
    }
}

/// Asks again what a dead process has asked. What is answered meanwhile is heard at once.
pub(super) async fn ask_again(
    actor: &mut Actor,
    left: Vec<Question>,
    work: &mut Work,
) -> Result<(), StoreError> {
    if actor.machine.approver() == Approver::Nobody {
        deny_open(actor).await?;
    }
    let waiting = unfinished(actor).await?;
    let open = |question: &Question| {
        let same = |record: &&QuestionRecord| record.question.id == question.id;
        let found = waiting.iter().find(same);
        found.is_some_and(|record| record.state == QuestionState::Open)
    };
    let left = left.into_iter().filter(open).collect();
    on_asked(actor, left, work).await;
    work.inputs.extend(answers(actor, waiting));
    Ok(())
}

/// Makes the actor look again when the first question's time is over.
fn watch(actor: &Actor, until_ms: Option<i64>, work: &mut Work) {
    let Some(until_ms) = until_ms.filter(|_| work.timers.overdue.is_none()) else {
        return;
    };
    let left = until_ms.saturating_sub(wall_ms(&*actor.ports.clock));
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    work.timers.overdue = Some(actor.ports.clock.sleep(left));
}

/// Denies what has waited long enough.
pub(super) async fn on_overdue(actor: &mut Actor, work: &mut Work) -> Result<(), StoreError> {
    let now = wall_ms(&*actor.ports.clock);
    let open = open(actor).await?;
    let overdue = |record: &&QuestionRecord| record.question.until_ms.is_some_and(|at| at <= now);
    for record in open.iter().filter(overdue) {
        deny(
            actor,
            record,
            &prompt::question::no_answer(record.question.id),
        )
        .await?;
    }
    let next = open.iter().filter(|record| !overdue(record));
    let next = next.filter_map(|record| record.question.until_ms).min();
    watch(actor, next, work);
    hear(actor, work).await
}

/// Denies what is open because nobody is there any longer, and hears of it. What the session has left
/// for later stays open.
pub(super) async fn give_up(actor: &mut Actor, work: &mut Work) -> Result<(), StoreError> {
    if is_asking(actor, work) && !actor.machine.rests_on_questions() {
        deny_open(actor).await?;
        hear(actor, work).await?;
    }
    Ok(())
}

/// Denies what is open.
async fn deny_open(actor: &Actor) -> Result<(), StoreError> {
    for record in open(actor).await? {
        deny(actor, &record, prompt::question::NOBODY).await?;
    }
    Ok(())
}

/// Answers a question that nobody has answered with a no. If somebody is faster, that counts.
async fn deny(actor: &Actor, record: &QuestionRecord, why: &str) -> Result<(), StoreError> {
    let given = GivenAnswer {
        answer: Answer::Deny {
            message: why.to_owned(),
            interrupt: false,
        },
        by: Answerer::Nobody,
    };
    answer(actor, record.question.id, given).await.map(drop)
}

/// Answers a question of any agent of the realm. Returns why it is not answered.
pub(super) async fn answer(
    actor: &Actor,
    question: QuestionId,
    given: GivenAnswer,
) -> Result<Option<Refusal>, StoreError> {
    let order = Order {
        realm: actor.identity.realm,
        ops: vec![Op::Answer {
            question,
            answer: Box::new(given),
        }],
        at_ms: wall_ms(&*actor.ports.clock),
    };
    let results = actor.ports.store.operate(order).await?;
    Ok(results.into_iter().find_map(Result::err))
}

/// Handles a person's answer: the asker hears of it from the store.
pub(super) async fn on_answer(
    actor: &mut Actor,
    question: QuestionId,
    given: Answer,
    work: &mut Work,
) -> Result<(), StoreError> {
    let by = Answerer::Person;
    match answer(actor, question, GivenAnswer { answer: given, by }).await? {
        None => hear(actor, work).await?,
        Some(refusal) => {
            // A person has answered, so they are told that it does not count.
            let what = format!("the answer came too late: {refusal}");
            actor.sink.emit(EventKind::Warning(what)).await;
        }
    }
    Ok(())
}

/// Hears the answers to what the agent has asked.
pub(super) async fn hear(actor: &mut Actor, work: &mut Work) -> Result<(), StoreError> {
    if is_asking(actor, work) {
        let waiting = unfinished(actor).await?;
        let waiting = side::answer(actor, waiting, work).await?;
        work.inputs.extend(answers(actor, waiting));
    }
    Ok(())
}

/// Returns true if a question of the agent may be open.
pub(super) fn is_asking(actor: &Actor, work: &Work) -> bool {
    actor.machine.asks() || !work.side_questions.is_empty()
}

/// Shows viewers what is open. A store that fails hurts the agent when it needs it, not here.
pub(super) async fn show_open(actor: &Actor) {
    for record in open(actor).await.unwrap_or_default() {
        let asked = EventKind::ApprovalRequested(Box::new(record.question));
        actor.sink.audience.show(&asked);
    }
}

/// Returns the agent's questions that it has not finished with.
async fn unfinished(actor: &Actor) -> Result<Vec<QuestionRecord>, StoreError> {
    let Identity { realm, agent, .. } = actor.identity;
    let filter = QuestionFilter {
        realm: Some(realm),
        agent: Some(agent),
        ..QuestionFilter::default()
    };
    // No more than the calls of one reply.
    actor.ports.store.questions(filter, Page::all()).await
}

/// Returns the agent's questions that are not answered.
async fn open(actor: &Actor) -> Result<Vec<QuestionRecord>, StoreError> {
    let mut found = unfinished(actor).await?;
    found.retain(|record| record.state == QuestionState::Open);
    Ok(found)
}

/// Returns the call that a question is about.
fn asked_about(actor: &Actor, question: QuestionId) -> Option<AskedCall<'_>> {
    actor.machine.open_calls()?.asked_about(question)
}

/// Adds the rules that an answer accepts to the session, for all its agents. Only what the question
/// suggests: whoever answers must not widen it.
fn accept(actor: &Actor, question: &Question, answer: &Answer) {
    let Answer::Allow {
        always: Some(AcceptedRules { rules, .. }),
        ..
    } = answer
    else {
        return;
    };
    let offered = question.suggestions.iter();
    if offered
        .map(|suggestion| &suggestion.rules)
        .any(|it| it == rules)
    {
        let allow = rules.clone();
        let rules = RuleList {
            allow,
            ..RuleList::default()
        };
        command::add_rules(actor, &rules);
    } else {
        let rules = rules.join(", ");
        actor.warn(format!("{rules} was not suggested, and is not added"));
    }
}

/// Returns the inputs for the questions that are answered. Rules that come with an answer hold from
/// here on, for all agents of the session.
fn answers(actor: &Actor, records: Vec<QuestionRecord>) -> Vec<Input> {
    let input = |record: QuestionRecord| {
        if let Some(given) = &record.answer {
            accept(actor, &record.question, &given.answer);
        }
        let question = record.question.id;
        let given = record.answer?;
        let intent = match &given.answer {
            Answer::Allow {
                input: Some(input), ..
            } => {
                let call = asked_about(actor, question)?;
                Some(actor.intent(call.tool, input))
            }
            _ => None,
        };
        Some(Input::Answer {
            question,
            given,
            intent,
        })
    };
    records.into_iter().filter_map(input).collect()
}
