//! What a conversation has to do with the rest: the agent, the store, files.

use std::io::Write as _;
use std::path::PathBuf;

use posse_port::store::{Page, TaskFilter};
use posse_protocol::{AgentId, Entry};
use tokio::sync::oneshot;

use super::agent_link::AgentLink;
use super::draft_file::DraftFile;
use super::prompt_file::PromptFile;
use crate::assemble::store::OpenStore;
use crate::headless::rule_keeper::RuleKeeper;
use crate::present::costs::Tally;
use crate::present::history::{decoded, readable};
use crate::present::tasks;
use crate::select::tasks::list_of;

/// Number of entries that are printed when an agent is shown.
const TAIL: usize = 40;

/// The ties of a conversation.
pub(super) struct Link {
    pub(super) agents: AgentLink,
    pub(super) store: OpenStore,
    pub(super) rules: RuleKeeper,
    pub(super) prompts: PromptFile,
    pub(super) draft: DraftFile,
    pub(super) swept: Option<oneshot::Receiver<String>>,
    pub(super) cwd: PathBuf,
}

impl Link {
    /// Returns the last entries of an agent, and the number of its next one.
    pub(super) async fn tail(&self, agent: AgentId) -> anyhow::Result<(Vec<Entry>, u64)> {
        let page = self.store.store.entries(agent, Page::last(TAIL)).await?;
        let entries = page.entries.iter().filter_map(|entry| decoded(entry).ok());
        Ok((entries.collect(), page.total - page.inherited))
    }

    /// Returns the entries of an agent from a number on, and the number of the next one.
    pub(super) async fn since(
        &self,
        agent: AgentId,
        from: u64,
    ) -> anyhow::Result<(Vec<Entry>, u64)> {
        let (entries, next) = self.tail(agent).await?;
        let first = next.saturating_sub(entries.len() as u64);
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        Ok((entries.into_iter().skip(skipped).collect(), next))
    }
}

impl Link {
    /// Returns what the session has cost.
    pub(super) async fn cost(&self, main: AgentId) -> anyhow::Result<String> {
        let spending = self.store.store.spending(vec![main]).await?;
        let charges = spending.iter().flat_map(|of| &of.charges);
        Ok(Tally::of(charges).in_words())
    }

    /// Returns the tasks of the session's teams.
    pub(super) async fn tasks(&self, main: AgentId) -> anyhow::Result<String> {
        let teams = self
            .store
            .store
            .teams(Some(main.uuid().into()), Page::all())
            .await?;
        let mut text = String::new();
        for team in &teams {
            let filter = TaskFilter::default();
            let tasks = self
                .store
                .store
                .tasks(list_of(team), filter, Page::all())
                .await?;
            text.push_str(&tasks::rows(&tasks, None));
        }
        Ok(match text.is_empty() {
            true => "there are no tasks".to_owned(),
            false => text,
        })
    }

    /// Writes the transcript of an agent to a file. Returns what came of it.
    pub(super) async fn export(&self, agent: AgentId, file: &str) -> String {
        match self.try_export(agent, file).await {
            Ok(path) => format!("written to {}", path.display()),
            Err(error) => format!("not written: {error:#}"),
        }
    }

    async fn try_export(&self, agent: AgentId, file: &str) -> anyhow::Result<PathBuf> {
        let page = self.store.store.entries(agent, Page::all()).await?;
        let path = self.cwd.join(file);
        let mut options = std::fs::OpenOptions::new();
        // An existing file is not replaced.
        let mut out = options.write(true).create_new(true).open(&path)?;
        out.write_all(
            anstream::adapter::strip_str(&readable(&page.entries, None))
                .to_string()
                .as_bytes(),
        )?;
        Ok(path)
    }
}
