//! What a conversation has to do with the rest: the agent, the store, files.

use std::io::Write as _;
use std::path::PathBuf;

use posse_port::store::{Page, StoredEntry, TaskFilter};
use posse_protocol::{AgentId, Entry, PermissionMode};
use posse_runtime::live::servers::ServerWatch;
use posse_runtime::runtime::Runtime;
use posse_runtime::session::branch::CopiedHistory;
use tokio::sync::oneshot;

use super::agent_link::AgentLink;
use super::draft_file::DraftFile;
use super::images::Clipboard;
use super::prompt_file::PromptFile;
use super::reports::{self, Reports};
use crate::assemble::store::OpenStore;
use crate::config::look::Look;
use crate::headless::rule_keeper::RuleKeeper;
use crate::present::costs::Tally;
use crate::present::entries::TranscriptView;
use crate::present::history::{EntryReader, decoded, readable};
use crate::present::{servers, tasks};
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
    pub(super) clipboard: Clipboard,
    /// What posse's own commands say.
    pub(super) reports: Reports,
    /// The runtime of the agents, if they live in this process.
    pub(super) runtime: Option<Runtime>,
    /// The MCP servers of the session, if it lives in this process.
    pub(super) servers: ServerWatch,
    pub(super) cwd: PathBuf,
    pub(super) look: Look,
}

impl Link {
    /// Returns the last entries of an agent, those that it began with first, and the number of its
    /// next own one.
    pub(super) async fn tail(
        &self,
        agent: AgentId,
    ) -> anyhow::Result<(Vec<Entry>, Vec<Entry>, u64)> {
        let page = self.store.store.entries(agent, Page::last(TAIL)).await?;
        let (own, inherited): (Vec<_>, Vec<_>) =
            page.entries.iter().partition(|entry| entry.agent == agent);
        let next = page.total - page.inherited;
        Ok((readable_ones(&inherited), readable_ones(&own), next))
    }

    /// Returns the last entries with which a copy of a session begins.
    pub(super) async fn copied(
        &self,
        session: AgentId,
        copied: CopiedHistory,
    ) -> anyhow::Result<Vec<Entry>> {
        let store = &self.store.store;
        let page = match copied {
            CopiedHistory::All => store.entries(session, Page::last(TAIL)).await?,
            CopiedHistory::Through(entry) => {
                let inherited = store.entries(session, Page::last(1)).await?.inherited;
                let page = Page {
                    from: Some(inherited + entry + 1),
                    ..Page::last(TAIL)
                };
                store.entries(session, page).await?
            }
        };
        Ok(readable_ones(&page.entries.iter().collect::<Vec<_>>()))
    }

    /// Returns all entries of an agent from a number on, and the number of the next one.
    pub(super) async fn since(
        &self,
        agent: AgentId,
        from: u64,
    ) -> anyhow::Result<(Vec<Entry>, u64)> {
        let store = &*self.store.store;
        let inherited = store.entries(agent, Page::last(1)).await?.inherited;
        let mut reader = EntryReader::new(agent, inherited + from);
        let mut entries = Vec::new();
        while let Some(page) = reader.read(store).await? {
            entries.extend(page.entries.iter().filter_map(|entry| decoded(entry).ok()));
        }
        Ok((entries, reader.next - inherited))
    }
}

impl Link {
    /// Returns the permission rules that hold for an agent.
    pub(super) fn rules_of(&self, agent: AgentId, mode: PermissionMode) -> String {
        let runtime = self.runtime.as_ref();
        match runtime.and_then(|runtime| runtime.policy(agent)) {
            Some(policy) => reports::rules(&policy, mode, &self.cwd),
            None => "only the process that runs the agent knows its rules; /permissions shows them there"
                .to_owned(),
        }
    }

    /// Returns the MCP servers of the session, and whether they are connected.
    pub(super) fn servers(&self) -> String {
        match self.runtime {
            Some(_) => servers::states(&self.servers.now()),
            None => "only the process that runs the agent knows its servers; /mcp shows them there"
                .to_owned(),
        }
    }

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
        let (columns, cwd) = (None, self.cwd.as_path());
        let view = TranscriptView { columns, cwd };
        out.write_all(
            anstream::adapter::strip_str(&readable(&page.entries, view))
                .to_string()
                .as_bytes(),
        )?;
        Ok(path)
    }
}

/// Returns entries in the words of the protocol; those of no known format are left out.
fn readable_ones(entries: &[&StoredEntry]) -> Vec<Entry> {
    entries
        .iter()
        .filter_map(|entry| decoded(entry).ok())
        .collect()
}
