//! Which request a person means.

use std::collections::BTreeSet;

use posse_port::store::{OpenRequest, Page, QuestionFilter, QuestionRecord, Store};
use posse_protocol::{RealmId, RequestKind};

use crate::error::Advised;
use crate::output::tame;
use crate::select::questions::LISTED;

/// A request to a person.
pub(super) enum Request {
    /// A question about a tool call.
    Question(Box<QuestionRecord>),
    /// A plan of a team's member.
    Plan(RealmId, Box<OpenRequest>),
}

impl Request {
    /// Returns its ID.
    pub(super) fn id(&self) -> String {
        match self {
            Self::Question(record) => record.question.id.to_string(),
            Self::Plan(_, plan) => plan.id.to_string(),
        }
    }

    /// Returns the word for its kind.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Question(record) => record.question.kind.as_str(),
            Self::Plan(..) => "plan",
        }
    }

    /// Returns the realm it belongs to.
    pub(super) fn realm(&self) -> RealmId {
        match self {
            Self::Question(record) => record.realm,
            Self::Plan(realm, _) => *realm,
        }
    }

    /// Returns when it was asked.
    pub(super) fn asked_ms(&self) -> i64 {
        match self {
            Self::Question(record) => record.asked_ms,
            Self::Plan(_, plan) => plan.asked_ms,
        }
    }

    /// Returns who asks.
    pub(super) fn from(&self) -> String {
        match self {
            Self::Question(record) => tame(record.question.from.as_deref().unwrap_or("main agent")),
            Self::Plan(_, plan) => tame(plan.from.name()),
        }
    }
}

/// Returns everything that waits for a person, oldest first.
pub(super) async fn open(store: &dyn Store) -> anyhow::Result<Vec<Request>> {
    let filter = QuestionFilter {
        open: true,
        ..QuestionFilter::default()
    };
    let questions = store.questions(filter, Page::first(LISTED)).await?;
    let mut open: Vec<Request> = questions
        .into_iter()
        .map(|record| Request::Question(Box::new(record)))
        .collect();
    let teams = store.teams(None, Page::first(LISTED)).await?;
    let realms: BTreeSet<RealmId> = teams.into_iter().map(|team| team.realm).collect();
    for realm in realms {
        let requests = store.requests(realm, None, Page::first(LISTED)).await?;
        let plans = requests
            .into_iter()
            .filter(|request| request.kind == RequestKind::Plan);
        open.extend(plans.map(|plan| Request::Plan(realm, Box::new(plan))));
    }
    open.sort_by_key(Request::asked_ms);
    Ok(open)
}

/// Returns the request whose ID begins with `id`: one that waits, or a question that is closed.
pub(super) async fn meant(store: &dyn Store, id: &str) -> anyhow::Result<Request> {
    let begins = id.trim().to_ascii_lowercase();
    let open = open(store).await?;
    let mut found: Vec<Request> = open
        .into_iter()
        .filter(|request| request.id().starts_with(&begins))
        .collect();
    if found.is_empty() && !begins.is_empty() {
        let filter = QuestionFilter {
            id_prefix: Some(begins.clone()),
            ..QuestionFilter::default()
        };
        let closed = store.questions(filter, Page::first(2)).await?;
        found.extend(
            closed
                .into_iter()
                .map(|record| Request::Question(Box::new(record))),
        );
    }
    match <[Request; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(found) => {
            let what = match found.is_empty() {
                true => format!("there is no request `{}`", tame(id)),
                false => format!("several requests begin with `{}`", tame(id)),
            };
            let advice = "`posse requests list` shows what waits for an answer".into();
            Err(Advised { what, advice }.into())
        }
    }
}
