//! Questions that do not belong to a tool call: the agent stores them for those who ask, and hands
//! them the answers.

use posse_port::store::{
    QuestionChange, QuestionChangeKind, QuestionRecord, QuestionState, Step, StoreError,
};
use posse_protocol::EventKind;

use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, questions};
use crate::agent::step::Commit;
use crate::live::questions::SideQuestion;
use crate::live::setup::Approver;

/// Asks what others have left for it, and withdraws what nobody waits for any more.
pub(in crate::agent::actor) async fn ask(
    actor: &mut Actor,
    work: &mut Work,
) -> Result<(), StoreError> {
    withdraw_unheard(actor, work).await?;
    let mut new = actor.registry.questions.take(actor.identity.agent);
    new.retain(|question| !question.answer.is_closed());
    if new.is_empty() {
        return Ok(());
    }
    let asked = |question: &SideQuestion| QuestionChange {
        id: question.id(),
        change: QuestionChangeKind::Asked(Box::new(question.asked.clone())),
    };
    let mut commit = Commit {
        questions: new.iter().map(asked).collect(),
        ..Commit::default()
    };
    let told = questions::complete(actor, &mut commit).await?;
    store(actor, commit.questions).await?;
    work.side_questions.extend(new);
    questions::on_asked(actor, told, work).await;
    // Whoever could answer may have left before these were there to be denied.
    match actor.session.approver() {
        Approver::Nobody => questions::give_up(actor, work).await,
        _ => Ok(()),
    }
}

/// Hands over the answers among these questions of the agent, and returns the others.
pub(in crate::agent::actor) async fn answer(
    actor: &mut Actor,
    records: Vec<QuestionRecord>,
    work: &mut Work,
) -> Result<Vec<QuestionRecord>, StoreError> {
    let mut others = Vec::new();
    let mut heard = Vec::new();
    for record in records {
        let is_it = |question: &SideQuestion| question.id() == record.question.id;
        match (work.side_questions.iter().position(is_it), &record.answer) {
            (None, _) => others.push(record),
            (Some(at), Some(given)) if record.state == QuestionState::Answered => {
                questions::accept(actor, &record.question, &given.answer);
                heard.push((work.side_questions.remove(at), given.answer.clone()));
            }
            (Some(_), _) => {}
        }
    }
    let (asked, answers): (Vec<_>, Vec<_>) = heard.into_iter().unzip();
    let senders = close(actor, asked, QuestionChangeKind::Done).await?;
    for (sender, answer) in senders.into_iter().zip(answers) {
        // The error is dropped: the asker may have been cancelled meanwhile.
        let _ = sender.answer.send(answer);
    }
    Ok(others)
}

/// Withdraws questions whose askers do not wait any more.
pub(in crate::agent::actor) async fn withdraw_unheard(
    actor: &mut Actor,
    work: &mut Work,
) -> Result<(), StoreError> {
    let is_unheard = |question: &mut SideQuestion| question.answer.is_closed();
    let unheard = work.side_questions.extract_if(.., is_unheard).collect();
    close(actor, unheard, QuestionChangeKind::Withdrawn)
        .await
        .map(drop)
}

/// Withdraws everything: the agent ends.
pub(in crate::agent::actor) async fn withdraw(
    actor: &mut Actor,
    work: &mut Work,
) -> Result<(), StoreError> {
    let open = std::mem::take(&mut work.side_questions);
    close(actor, open, QuestionChangeKind::Withdrawn)
        .await
        .map(drop)
}

/// Closes questions in the store, tells front ends, and returns them.
async fn close(
    actor: &mut Actor,
    questions: Vec<SideQuestion>,
    change: QuestionChangeKind,
) -> Result<Vec<SideQuestion>, StoreError> {
    if questions.is_empty() {
        return Ok(questions);
    }
    let changed = |question: &SideQuestion| QuestionChange {
        id: question.id(),
        change: change.clone(),
    };
    store(actor, questions.iter().map(changed).collect()).await?;
    for question in &questions {
        let question = question.id();
        let withdrawn = EventKind::ApprovalWithdrawn { question };
        actor.sink.emit(withdrawn).await;
    }
    Ok(questions)
}

/// Stores changes of questions. An agent that was only opened is in the store from here on.
async fn store(actor: &mut Actor, questions: Vec<QuestionChange>) -> Result<(), StoreError> {
    let birth = actor.birth.take();
    let types = actor.advertised.told.filter(|_| birth.is_some());
    let step = Step {
        birth,
        questions,
        types,
        ..actor.new_step()
    };
    actor.ports.store.commit(step).await?;
    actor.advertised.tell(types);
    Ok(())
}
