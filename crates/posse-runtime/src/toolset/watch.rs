//! Finds the run that a tool call means, and the mail about its end.

use std::sync::Arc;

use crate::live::lookup;
use posse_protocol::{AgentId, Mail, MailKind, Name, Notification, RunFacts, RunStatus};
use uuid::Uuid;

use crate::live::run::Run;
use crate::prompt;
use crate::session::recover;
use crate::toolset::Caller;
use posse_port::store::{AgentRecord, MailFilter, Page};
use posse_port::tool::ToolError;

/// Maximum number of messages that are searched.
const MOST_MAIL: usize = 10_000;

/// The run that is meant.
pub(super) enum Found {
    /// It lives here.
    Live(Arc<Run>),
    /// It is over, or lives in another process.
    Stored { facts: RunFacts, status: RunStatus },
}

impl Caller {
    /// Returns the run of the caller's session that an ID or a name means.
    pub(super) async fn find(&self, given: &str) -> Result<Found, ToolError> {
        let here = self
            .factory
            .registry
            .live_agent(self.agent)
            .ok_or_else(|| tell("the caller has ended"))?;
        let id = given.parse::<Uuid>().ok();
        if id == Some(self.agent.uuid()) {
            return Err(tell("that is you"));
        }
        let of_tree = |owner: &AgentId| {
            self.factory
                .registry
                .live_agent(*owner)
                .is_some_and(|live_agent| live_agent.session.root == here.session.root)
        };
        if let Some((run, _)) = id
            .and_then(|id| self.factory.registry.run(id))
            .filter(|(_, owner)| of_tree(owner))
        {
            return Ok(Found::Live(run));
        }
        let stored = match self.stored(here.session.realm, given).await? {
            Some(stored) => Some(stored),
            None => match self.teammate(given).await? {
                Some((_, teammate)) => {
                    self.stored(here.session.realm, &teammate.agent.to_string())
                        .await?
                }
                None => None,
            },
        };
        let Some(record) = stored else {
            if let Some(notice) = match id {
                Some(id) => self.notice(id).await?,
                None => None,
            } {
                let status = notice.end.status;
                return Ok(Found::Stored {
                    facts: notice.facts(self.agent),
                    status,
                });
            }
            let runs = self.factory.registry.live_runs(self.agent);
            let known: Vec<RunFacts> = runs.iter().map(|run| run.facts.clone()).collect();
            return Err(tell(prompt::unknown_run(given, &known)));
        };
        if let Some((run, _)) = self.factory.registry.run(record.agent.uuid()) {
            return Ok(Found::Live(run));
        }
        // It may have ended between the two lookups: then its end is stored by now.
        let record = match record.state.is_open() {
            true => self
                .stored(here.session.realm, &record.agent.to_string())
                .await?
                .unwrap_or(record),
            false => record,
        };
        let starter = record.starter.unwrap_or(self.agent);
        let facts = recover::facts(&record, starter, here.session.output(record.agent));
        let status = record.state.status().unwrap_or(RunStatus::Running);
        Ok(Found::Stored { facts, status })
    }

    /// Returns the stored sub-agent that an ID or a name means.
    pub(super) async fn stored(
        &self,
        realm: posse_protocol::RealmId,
        given: &str,
    ) -> Result<Option<AgentRecord>, ToolError> {
        let failed = |error: posse_port::store::StoreError| tell(error.to_string());
        if let Ok(name) = given.parse::<Name>()
            && let Some(found) = lookup::named(&*self.factory.ports.store, realm, &name)
                .await
                .map_err(failed)?
        {
            return Ok(Some(found));
        }
        let Ok(id) = given.parse::<AgentId>() else {
            return Ok(None);
        };
        let found = lookup::row(&*self.factory.ports.store, id)
            .await
            .map_err(failed)?;
        Ok(found.filter(|record| record.realm == realm))
    }

    /// Returns the mail in the caller's inbox that reports these ends; a call that shows them takes
    /// it.
    pub(super) async fn notices(&self, ends: &[Arc<Notification>]) -> Result<Vec<u64>, ToolError> {
        let mail = self.mail(true).await?;
        let tells = |mail: &&Mail| ends.iter().any(|end| end.run == mail.id.uuid());
        Ok(mail.iter().filter(tells).map(|mail| mail.number).collect())
    }

    /// Returns the last end of a task that the caller's inbox reports.
    pub(super) async fn notice(&self, task: Uuid) -> Result<Option<Notice>, ToolError> {
        let mail = self.mail(false).await?;
        let told = |mail: &Mail| {
            let end = match mail.kind {
                MailKind::Notification => serde_json::from_str::<Notification>(&mail.body).ok()?,
                _ => return None,
            };
            let unseen = mail.shown_in.is_none().then_some(mail.number);
            (end.task == task).then_some(Notice { end, unseen })
        };
        Ok(mail.iter().rev().find_map(told))
    }

    /// Returns the same, if the caller has not been shown it yet.
    pub(super) async fn unseen_end(
        &self,
        task: Uuid,
    ) -> Result<Option<(Notification, u64)>, ToolError> {
        Ok(self
            .notice(task)
            .await?
            .and_then(|notice| notice.unseen.map(|number| (notice.end, number))))
    }

    /// Reads the caller's inbox.
    async fn mail(&self, waiting: bool) -> Result<Vec<Mail>, ToolError> {
        let Some(here) = self.factory.registry.live_agent(self.agent) else {
            return Ok(Vec::new());
        };
        let filter = MailFilter { waiting };
        let mail = self
            .factory
            .ports
            .store
            .mail(
                here.session.realm,
                self.agent,
                filter,
                Page::first(MOST_MAIL),
            )
            .await;
        mail.map_err(|error| tell(error.to_string()))
    }
}

/// Mail about the end of a run.
pub(super) struct Notice {
    end: Notification,
    /// Number of the mail, while it waits.
    unseen: Option<u64>,
}

impl Notice {
    /// Returns the facts of a run of which only the mail is left.
    fn facts(self, starter: AgentId) -> RunFacts {
        let Notification {
            task,
            kind,
            call,
            description,
            output_file,
            ..
        } = self.end;
        let (agent_type, name) = (String::new(), None);
        RunFacts {
            task,
            kind,
            agent_type,
            name,
            description,
            call,
            starter,
            depth: 0,
            output_file,
            place: None,
        }
    }
}

/// Returns an error for the model.
pub(crate) fn tell(what: impl ToString) -> ToolError {
    ToolError::Tell(what.to_string())
}
