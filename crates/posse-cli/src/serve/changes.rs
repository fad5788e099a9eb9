//! Tools that tell agents of the directory what to do: tasks and mail.

use std::path::Path;

use posse_port::store::{Done, NewTask, Op, Refusal, Store, TaskChange};
use posse_protocol::{ListId, PermissionMode, TaskId};
use serde_json::{Map, Value, json};

use super::place::Place;
use super::tools::{AddTaskRequest, SendMailRequest, UpdateTaskRequest};
use crate::error::Advised;
use crate::present::{mail, tasks};
use crate::select::mail::{NewMail, send};
use crate::select::recipients::Recipients;
use crate::select::tasks::{operate, subject};

/// What a change must not go beyond.
#[derive(Clone, Copy)]
pub(super) struct ChangeBounds<'a> {
    /// The directory that the server is for.
    pub(super) cwd: &'a Path,
    /// The mode that the server was started with.
    pub(super) mode: PermissionMode,
}

/// Adds a task.
pub(super) async fn add_task(
    store: &dyn Store,
    bounds: ChangeBounds<'_>,
    asked: AddTaskRequest,
) -> anyhow::Result<Value> {
    let place = Place::of(store, bounds.cwd, &asked.place).await?;
    place.must_be_within(store, bounds.mode).await?;
    let list = list_of(&place);
    let task = NewTask {
        subject: subject(&asked.subject)?,
        description: asked.description,
        active_form: None,
        blocked_by: asked.blocked_by,
        role: None,
        check: None,
        metadata: Map::new(),
    };
    let op = Op::CreateTask {
        team: list.team.clone(),
        task: Box::new(task),
    };
    match operate(store, list.realm, op).await? {
        Done::TaskCreated(id) => task_object(store, list, id).await,
        _ => anyhow::bail!("the store did something else"),
    }
}

/// Changes a task.
pub(super) async fn update_task(
    store: &dyn Store,
    bounds: ChangeBounds<'_>,
    asked: UpdateTaskRequest,
) -> anyhow::Result<Value> {
    let place = Place::of(store, bounds.cwd, &asked.place).await?;
    place.must_be_within(store, bounds.mode).await?;
    let (list, id) = (list_of(&place), asked.id);
    let change = TaskChange {
        status: asked.status,
        owner: asked.owner.map(Some),
        ..TaskChange::default()
    };
    if change == TaskChange::default() {
        anyhow::bail!(Advised {
            what: "there is nothing to change".into(),
            advice: "give `status` or `owner`".into(),
        });
    }
    let op = Op::UpdateTask {
        team: list.team.clone(),
        id,
        expect: None,
        change: Box::new(change),
    };
    operate(store, list.realm, op).await?;
    task_object(store, list, id).await
}

fn list_of(place: &Place) -> ListId {
    ListId {
        realm: place.realm(),
        team: place.team.as_ref().map(|team| team.name.clone()),
    }
}

async fn task_object(store: &dyn Store, list: ListId, id: TaskId) -> anyhow::Result<Value> {
    let found = store.task(list, id).await?;
    Ok(tasks::object(&found.ok_or(Refusal::NoSuchTask { id })?))
}

/// Sends mail.
pub(super) async fn send_mail(
    store: &dyn Store,
    bounds: ChangeBounds<'_>,
    asked: SendMailRequest,
) -> anyhow::Result<Value> {
    if asked.text.trim().is_empty() {
        anyhow::bail!(Advised {
            what: "there is nothing to send".into(),
            advice: "`text` is what the agent reads".into(),
        });
    }
    let place = Place::of(store, bounds.cwd, &asked.place).await?;
    place.must_be_within(store, bounds.mode).await?;
    let circle = Recipients::of(store, &place.recipients()).await?;
    let new = NewMail {
        body: asked.text,
        summary: asked.summary,
    };
    let receipts = send(store, &circle, &asked.to, new).await?;
    let receipts: Vec<Value> = receipts.iter().map(mail::receipt).collect();
    Ok(json!({ "sent": receipts }))
}
