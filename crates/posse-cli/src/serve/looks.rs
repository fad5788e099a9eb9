//! Tools that only look: sessions, tasks and mail of the directory.

use std::path::Path;

use posse_port::store::{Page, QuestionFilter, SessionFilter, Store, TaskFilter};
use posse_protocol::{ContentBlock, Entry, EntryKind, ListId, Message};
use serde_json::{Value, json};

use super::place::{self, Place};
use super::tools::{MailRequest, SessionRequest, SessionsRequest, TasksRequest};
use crate::present::history::decoded;
use crate::present::{mail, question, sessions, tasks};
use crate::select::mail::newest;
use crate::select::recipients::Recipients;

/// Number of things that are listed if no number is asked for.
const LISTED: usize = 20;
/// Maximum number of things that are listed.
const MOST_LISTED: usize = 200;
/// Number of questions that are shown.
const QUESTIONS: usize = 20;

fn limit(asked: Option<usize>) -> usize {
    asked.unwrap_or(LISTED).min(MOST_LISTED)
}

/// Lists the sessions of a directory.
pub(super) async fn all_sessions(
    store: &dyn Store,
    cwd: &Path,
    asked: &SessionsRequest,
) -> anyhow::Result<Value> {
    let filter = SessionFilter {
        cwd: Some(cwd.to_owned()),
        id_prefix: None,
    };
    let found = store
        .sessions(filter, Page::first(limit(asked.limit)))
        .await?;
    let ids = found.iter().map(|session| session.agent).collect();
    let spending = store.spending(ids).await?;
    let found = found.iter().zip(&spending);
    let found: Vec<Value> = found
        .map(|(it, spent)| sessions::object(it, spent))
        .collect();
    Ok(json!({ "sessions": found }))
}

/// Looks at a session.
pub(super) async fn one_session(
    store: &dyn Store,
    cwd: &Path,
    asked: &SessionRequest,
) -> anyhow::Result<Value> {
    let found = place::session(store, cwd, asked.session.as_deref()).await?;
    let spending = store.spending(vec![found.agent]).await?;
    let spending = spending.into_iter().next().unwrap_or_default();
    let mut object = sessions::object(&found, &spending);
    let transcript = store.read(found.agent).await?;
    let replies = transcript
        .entries
        .iter()
        .rev()
        .filter_map(|it| decoded(it).ok());
    let last = replies
        .filter(|entry| entry.kind == EntryKind::Reply)
        .map(|entry| words(&entry.message))
        .find(|text| !text.is_empty());
    object["last_words"] = json!(last);
    let end = transcript.entries.last().and_then(|it| decoded(it).ok());
    object["is_finished"] = end.is_some_and(|entry| is_answer(&entry)).into();
    let filter = QuestionFilter {
        realm: Some(found.realm),
        open: true,
        ..QuestionFilter::default()
    };
    let open = store.questions(filter, Page::first(QUESTIONS)).await?;
    let open = open.iter().map(|record| question::note(&record.question));
    object["waits_for"] = open.collect::<Vec<_>>().into();
    let teams = store.teams(Some(found.realm), Page::all()).await?;
    object["teams"] = teams.iter().map(|team| json!(team.name)).collect();
    Ok(object)
}

/// Returns true if the model has said what it had to say: a run that was stopped ends otherwise.
fn is_answer(entry: &Entry) -> bool {
    let mut blocks = entry.message.content.iter();
    let calls = blocks.any(|block| matches!(block, ContentBlock::ToolUse { .. }));
    // A reply that was cut off has no reason why it stopped.
    let is_whole = entry.reply.as_ref().is_some_and(|it| it.stop.is_some());
    is_whole && !calls
}

/// Returns the text of a message.
fn words(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Lists tasks.
pub(super) async fn all_tasks(
    store: &dyn Store,
    cwd: &Path,
    asked: &TasksRequest,
) -> anyhow::Result<Value> {
    let place = Place::of(store, cwd, &asked.place).await?;
    let filter = TaskFilter {
        status: asked.status,
        ..TaskFilter::default()
    };
    let list = ListId {
        realm: place.realm(),
        team: place.team.map(|team| team.name),
    };
    let found = store.tasks(list.clone(), filter, Page::all()).await?;
    let found: Vec<Value> = found.iter().map(tasks::object).collect();
    Ok(json!({ "session_id": place.session.agent, "team": list.team, "tasks": found }))
}

/// Lists mail.
pub(super) async fn all_mail(
    store: &dyn Store,
    cwd: &Path,
    asked: &MailRequest,
) -> anyhow::Result<Value> {
    let place = Place::of(store, cwd, &asked.place).await?;
    let circle = Recipients::of(store, &place.recipients()).await?;
    let circle = circle.with_former(store).await?;
    let meant = match &asked.to {
        Some(name) => circle.meant(name)?,
        None => circle.all.clone(),
    };
    let most = limit(asked.limit);
    let (found, more) = newest(store, &circle, &meant, (asked.waiting, most)).await?;
    let found: Vec<Value> = found.iter().map(|(to, it)| mail::object(to, it)).collect();
    Ok(json!({ "session_id": place.session.agent, "mail": found, "more": more }))
}
