//! What happens to an agent, in plain lines.

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{AgentRecord, Store};
use posse_protocol::wire::ServerMessage;
use posse_protocol::{
    Activity, AgentId, ContentBlock, Delta, Entry, EntryKind, EventKind, Message, Role,
    SpendingUpdate, Spent, ToolContent, WaitReason,
};

use crate::output::transcript::{TranscriptPart, parts};
use crate::output::{print, tame};
use crate::present::entries::paragraph;

/// Number of entries shown at first.
const TAIL: usize = 12;

/// A person's view of an agent.
pub(super) struct PlainView {
    agent: AgentId,
    path: String,
    model: String,
    /// Number of the next entry to show; none before the first look.
    next: Option<u64>,
    /// The last line of the text that is arriving.
    line: String,
    /// True if the reply that is arriving was seen from its beginning.
    is_streamed: bool,
    spending: SpendingUpdate,
}

impl PlainView {
    pub(super) fn new(agent: &AgentRecord) -> Self {
        Self {
            agent: agent.agent,
            path: agent.path.clone(),
            model: agent.model.clone(),
            next: None,
            line: String::new(),
            is_streamed: false,
            spending: SpendingUpdate::default(),
        }
    }

    /// Shows entries of the store that were not shown; at first only the last ones.
    pub(super) async fn read(&mut self, store: &dyn Store) -> anyhow::Result<()> {
        let transcript = store.read(self.agent).await?;
        let entries = &transcript.entries;
        let last = entries.last().map_or(0, |stored| stored.entry.seq + 1);
        let from = match self.next.replace(last) {
            Some(next) => entries.partition_point(|stored| stored.entry.seq < next),
            None => {
                let from = entries.len().saturating_sub(TAIL);
                print(format!("● {} · {}\n", tame(&self.path), tame(&self.model)).as_bytes())?;
                if from > 0 {
                    let all = format!("posse sessions show {}", self.agent);
                    print(format!("({from} earlier entries: {all})\n").as_bytes())?;
                }
                from
            }
        };
        for stored in &entries[from..] {
            self.end_line()?;
            for part in parts(&stored.entry.sent()) {
                print(paragraph(&part, stored.at_ms).as_bytes())?;
            }
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
            ServerMessage::Event { event, .. } if event.agent == self.agent => {
                self.event(event.kind)
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
            EventKind::Entry(entry) => self.entry(&entry),
            EventKind::Retry(retry) => {
                self.is_streamed = false;
                self.note(&format!("cut off: {}; trying again", retry.fault.message))
            }
            EventKind::ApprovalRequested(question) => self.note(&format!(
                "asks a person: {} {}",
                question.tool,
                question.input.get()
            )),
            EventKind::Denied(denial) => {
                self.note(&format!("{} denied: {}", denial.tool, denial.why))
            }
            EventKind::Warning(text) => self.note(&text),
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
                self.end_line()?;
                self.is_streamed = true;
            }
            Delta::Text(text) if self.is_streamed => {
                self.line.push_str(&text);
                if let Some(end) = self.line.rfind('\n') {
                    let rest = self.line.split_off(end + 1);
                    print(tame(&std::mem::replace(&mut self.line, rest)).as_bytes())?;
                }
            }
            Delta::BlockDone => self.end_line()?,
            _ => {}
        }
        Ok(())
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            print(format!("{}\n", tame(&line)).as_bytes())?;
        }
        Ok(())
    }

    /// Shows an entry, without the text that was shown while it arrived.
    fn entry(&mut self, entry: &Entry) -> anyhow::Result<()> {
        self.end_line()?;
        let is_streamed = std::mem::take(&mut self.is_streamed) && entry.kind == EntryKind::Reply;
        if self.next.is_some_and(|next| entry.seq < next) {
            return Ok(());
        }
        self.next = Some(entry.seq + 1);
        let now = SystemClock::default().wall();
        let at_ms = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let at_ms = i64::try_from(at_ms.as_millis()).unwrap_or(i64::MAX);
        for part in parts_of(&entry.message) {
            if !(is_streamed && matches!(part, TranscriptPart::Reply(_))) {
                print(paragraph(&part, at_ms).as_bytes())?;
            }
        }
        Ok(())
    }

    fn note(&mut self, text: &str) -> anyhow::Result<()> {
        self.end_line()?;
        print(format!("● {}\n", tame(text)).as_bytes())?;
        Ok(())
    }
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

/// Returns the parts of a message.
fn parts_of(message: &Message) -> Vec<TranscriptPart> {
    let part = |block: &ContentBlock| match block {
        ContentBlock::Text { text } if message.role == Role::User => {
            TranscriptPart::Prompt(text.clone())
        }
        ContentBlock::Text { text } => TranscriptPart::Reply(text.clone()),
        ContentBlock::Thinking { thinking, .. } => TranscriptPart::Thinking(thinking.clone()),
        ContentBlock::ToolUse { name, input, .. } => TranscriptPart::Call {
            tool: name.clone(),
            input: input.get().to_owned(),
        },
        ContentBlock::ToolResult {
            content, is_error, ..
        } => TranscriptPart::Answer {
            text: content.iter().map(text_of).collect::<Vec<_>>().join("\n"),
            is_error: *is_error,
        },
        ContentBlock::Image { .. } => TranscriptPart::Other("image".into()),
        ContentBlock::RedactedThinking { .. } => TranscriptPart::Thinking(String::new()),
        ContentBlock::Opaque { .. } => TranscriptPart::Other("block".into()),
    };
    message.content.iter().map(part).collect()
}

fn text_of(content: &ToolContent) -> &str {
    match content {
        ToolContent::Text { text } => text,
        ToolContent::Image { .. } => "[image]",
    }
}
