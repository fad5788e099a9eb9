//! What happens to an agent, in plain lines.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use posse_port::store::{AgentRecord, Store};
use posse_protocol::wire::ServerMessage;
use posse_protocol::{
    Activity, AgentId, ContentBlock, Delta, Entry, EntryKind, EventKind, QueuedPrompt, Role,
    SpendingUpdate, Spent, WaitReason,
};
use posse_tui::text::MarkdownStream;

use super::arriving_text::ArrivingText;
use crate::output::transcript::shortened;
use crate::output::{print, tame, width};
use crate::present::entries::{TranscriptView, answer, paragraph};
use crate::present::history::{EntryReader, readable};
use crate::present::model;
use crate::present::question::note;

/// Number of entries shown at first.
pub(super) const TAIL: usize = 12;

/// Number of characters that are shown of a prompt that waits.
const PROMPT: usize = 80;

/// A person's view of an agent.
pub(super) struct PlainView {
    agent: AgentId,
    /// Where it works.
    cwd: PathBuf,
    /// What of the store is still to be shown.
    rest: EntryReader,
    /// The calls of the last reply, with their tools.
    calls: Vec<(String, String)>,
    /// The text that is arriving.
    text: ArrivingText,
    /// The last line of what a tool has printed.
    printed: String,
    /// True if the reply that is arriving was seen from its beginning.
    is_streamed: bool,
    spending: SpendingUpdate,
}

impl PlainView {
    /// Shows the last entries of an agent.
    pub(super) async fn new(agent: &AgentRecord, store: &dyn Store) -> anyhow::Result<Self> {
        let (rest, page) = EntryReader::tail(store, agent.agent, TAIL).await?;
        let head = format!("● {} · {}\n", tame(&agent.path), tame(&agent.model));
        print(head.as_bytes())?;
        if page.first > 0 {
            let all = format!("posse sessions show {}", agent.agent);
            print(format!("({} earlier entries: {all})\n", page.first).as_bytes())?;
        }
        let cwd = agent.cwd.clone();
        print(readable(&page.entries, view(&cwd)).as_bytes())?;
        Ok(Self {
            agent: agent.agent,
            cwd,
            rest,
            calls: Vec::new(),
            text: match width() {
                Some(_) => ArrivingText::Markdown(MarkdownStream::default()),
                None => ArrivingText::Lines(String::new()),
            },
            printed: String::new(),
            is_streamed: false,
            spending: SpendingUpdate::default(),
        })
    }

    /// Shows entries of the store that were not shown.
    pub(super) async fn read(&mut self, store: &dyn Store) -> anyhow::Result<()> {
        while let Some(page) = self.rest.read(store).await? {
            self.end_text()?;
            print(readable(&page.entries, view(&self.cwd)).as_bytes())?;
        }
        Ok(())
    }

    /// Shows a message of the process that runs the agent.
    pub(super) async fn told(
        &mut self,
        message: ServerMessage,
        store: &dyn Store,
    ) -> anyhow::Result<()> {
        match message {
            ServerMessage::Event { event, at_ms } if event.agent == self.agent => {
                match event.kind {
                    EventKind::Entry(entry) => self.entry(&entry, at_ms, store).await,
                    kind => self.event(kind),
                }
            }
            ServerMessage::Behind { lost } => {
                self.is_streamed = false;
                self.note(&format!("{lost} events were missed"))?;
                self.read(store).await
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, kind: EventKind) -> anyhow::Result<()> {
        match kind {
            EventKind::Delta(delta) => self.delta(delta),
            EventKind::Retry(retry) => {
                self.end_text()?;
                self.is_streamed = false;
                self.note(&format!("cut off: {}; trying again", retry.fault.message))
            }
            EventKind::ApprovalRequested(question) => {
                self.end_line()?;
                Ok(print(format!("{}\n", note(&question)).as_bytes())?)
            }
            EventKind::Denied(denial) => {
                self.note(&format!("{} denied: {}", denial.tool, denial.why))
            }
            EventKind::Warning(text) => self.note(&text),
            EventKind::Noted { file, line } => self.note(&format!("noted in {file}: {line}")),
            EventKind::Model(update) => self.note(&model::in_words(&update)),
            EventKind::Output { text, skipped, .. } => self.output(&text, skipped),
            EventKind::Queue(prompts) => {
                let waits = |prompt: &QueuedPrompt| {
                    let when = if prompt.joins {
                        "joins the run"
                    } else {
                        "waits"
                    };
                    format!("{when}: {}", shortened(&prompt.text, PROMPT))
                };
                let each = prompts.iter().map(|prompt| self.note(&waits(prompt)));
                each.collect()
            }
            EventKind::Task(task) => {
                let owner = task.owner.map(|owner| format!(" ({owner})"));
                let (id, subject, status) = (task.id, task.subject, task.status);
                self.note(&format!(
                    "task #{id} {subject}: {status}{}",
                    owner.unwrap_or_default()
                ))
            }
            EventKind::Mail(mail) => {
                self.note(&format!("mail from {}: {}", mail.from, mail.summary))
            }
            EventKind::Request(request) if request.is_open => {
                let id = request.id.to_string();
                self.note(&format!(
                    "{} requests {}: `posse requests show {}`",
                    request.from,
                    request.kind.asked(),
                    id.get(..8).unwrap_or(&id)
                ))
            }
            EventKind::CallDone { .. } => self.end_line(),
            EventKind::Spending(update) => {
                self.spending = *update;
                Ok(())
            }
            EventKind::State(activity) => {
                let activity = activity_line(activity);
                let spent = spending_line(&self.spending);
                self.note(&format!("{activity}{spent}"))
            }
            _ => Ok(()),
        }
    }

    /// Shows whole lines of a reply that is arriving.
    fn delta(&mut self, delta: Delta) -> anyhow::Result<()> {
        match delta {
            Delta::Started { .. } => {
                self.end_text()?;
                self.is_streamed = true;
            }
            Delta::Text(text) if self.is_streamed => {
                print(self.text.push(&text).as_bytes())?;
            }
            Delta::BlockDone => self.end_text()?,
            _ => {}
        }
        Ok(())
    }

    /// Shows whole lines of what a tool prints.
    fn output(&mut self, text: &str, skipped: u64) -> anyhow::Result<()> {
        if skipped > 0 {
            self.printed.clear();
            print(format!("  │ (… {skipped} bytes)\n").as_bytes())?;
        }
        self.printed.push_str(text);
        if let Some(end) = self.printed.rfind('\n') {
            let rest = self.printed.split_off(end + 1);
            let lines = std::mem::replace(&mut self.printed, rest);
            print(barred(&lines).as_bytes())?;
        }
        Ok(())
    }

    /// Shows the rest of lines that have no end.
    fn end_line(&mut self) -> anyhow::Result<()> {
        if !self.printed.is_empty() {
            print(barred(&std::mem::take(&mut self.printed)).as_bytes())?;
        }
        Ok(print(self.text.interrupt().as_bytes())?)
    }

    /// Shows the rest of the text that is arriving.
    fn end_text(&mut self) -> anyhow::Result<()> {
        self.end_line()?;
        Ok(print(self.text.end().as_bytes())?)
    }

    /// Shows an entry, without the text that was shown while it arrived.
    async fn entry(&mut self, entry: &Entry, at_ms: i64, store: &dyn Store) -> anyhow::Result<()> {
        self.end_text()?;
        let is_streamed = std::mem::take(&mut self.is_streamed) && entry.kind == EntryKind::Reply;
        match self.rest.compare(entry) {
            Ordering::Less => return Ok(()),
            Ordering::Equal => self.rest.next += 1,
            // Some were missed.
            Ordering::Greater => return self.read(store).await,
        }
        if entry.kind == EntryKind::Model {
            // The event after it says more.
            return Ok(());
        }
        if entry.kind == EntryKind::Reply {
            self.calls.clear();
        }
        let role = entry.message.role;
        for block in &entry.message.content {
            let shown = match block {
                ContentBlock::Text { .. } if is_streamed && role == Role::Assistant => continue,
                ContentBlock::ToolUse { id, name, .. } => {
                    self.calls.push((id.clone(), name.clone()));
                    paragraph(role, block, at_ms, view(&self.cwd))
                }
                ContentBlock::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => answer(content, *is_error, self.tool_of(tool_use_id)),
                _ => paragraph(role, block, at_ms, view(&self.cwd)),
            };
            print(shown.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the tool of a call if there are several, so that its result says whose it is.
    fn tool_of(&self, call: &str) -> Option<&str> {
        let found = self.calls.iter().find(|(id, _)| id == call);
        let found = found.filter(|_| self.calls.len() > 1);
        found.map(|(_, tool)| tool.as_str())
    }

    fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.end_line()?;
        print(format!("● {}\n", tame(text)).as_bytes())?;
        Ok(())
    }
}

/// Returns how entries of an agent that works in `cwd` are shown.
fn view(cwd: &Path) -> TranscriptView<'_> {
    let columns = width();
    TranscriptView { columns, cwd }
}

/// Returns the lines that a tool has printed.
fn barred(text: &str) -> String {
    let line = |line: &str| format!("  │ {}\n", tame(line));
    text.lines().map(line).collect()
}

fn activity_line(activity: Activity) -> &'static str {
    match activity {
        Activity::Idle => "idle",
        Activity::Working => "working",
        Activity::Waiting(WaitReason::Place) => "waiting for a place to run",
        Activity::Waiting(WaitReason::Budget) => "waiting for money that calls have reserved",
        Activity::Waiting(WaitReason::Rate) => "waiting for the provider",
        Activity::Waiting(WaitReason::Children) => "waiting for what it has started",
        Activity::Waiting(WaitReason::Person) => "waiting for a person's answer",
        Activity::Gone => "gone",
    }
}

/// Returns what was spent and how full the context is, as far as known.
fn spending_line(update: &SpendingUpdate) -> String {
    let mut line = String::new();
    let costs: Vec<_> = update
        .subtree
        .iter()
        .filter_map(|spent: &Spent| spent.cost)
        .collect();
    if !costs.is_empty() {
        line = format!(" · {}", costs.into_iter().sum::<posse_protocol::Cost>());
        if let Some(left) = update.left {
            line.push_str(&format!(", {left} left"));
        }
    }
    if let Some(window) = update.context_window.filter(|window| *window > 0) {
        line.push_str(&format!(
            " · context {} %",
            update.context_tokens * 100 / window
        ));
    }
    line
}
