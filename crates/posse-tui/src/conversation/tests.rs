//! A conversation in tests: what a person types, what agents do, and what comes of it.

mod agent_lines;
mod chords;
mod hostile;
mod names;
mod random;
mod runs;
mod screens;
mod signs;
mod stories;
mod watching;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use posse_protocol::{
    Activity, AgentId, ContentBlock, Delta, Entry, EntryKind, Event, EventKind, Fault, FaultClass,
    Message, PermissionMode, Question, QueuedPrompt, RawJson, Retry, Role, ToolContent,
};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::text::Line;
use unicode_width::UnicodeWidthStr;

use super::{
    AgentProcess, Beginning, Conversation, ConversationKeys, Effect, Input, Size, update, view,
};
use crate::fixtures::session;
use crate::terminal::Frame;

/// A conversation with its time and what it has printed.
struct Talk {
    state: Conversation,
    now_ms: u64,
    printed: Vec<Line<'static>>,
}

impl Talk {
    fn new(columns: u16, rows: u16) -> Self {
        let size = Size { columns, rows };
        let now_ms = 10_000;
        Self {
            state: Conversation::new(beginning(size), now_ms),
            now_ms,
            printed: Vec::new(),
        }
    }

    fn input(&mut self, input: Input) -> Vec<Effect> {
        update(&mut self.state, input, self.now_ms)
    }

    /// Types text, key by key.
    fn types(&mut self, text: &str) -> Vec<Effect> {
        let keys = text.chars().map(|c| key(KeyCode::Char(c)));
        keys.flat_map(|key| self.input(Input::Key(key))).collect()
    }

    /// Presses keys by their names: `Enter`, `Alt-y`, `Ctrl-c`.
    fn press(&mut self, names: &str) -> Vec<Effect> {
        let keys: Vec<KeyEvent> = names.split(' ').map(named).collect();
        keys.into_iter()
            .flat_map(|key| self.input(Input::Key(key)))
            .collect()
    }

    /// Types a prompt and presses Enter.
    fn says(&mut self, text: &str) -> Vec<Effect> {
        self.types(text);
        self.press("Enter")
    }

    /// Something happens to the main agent.
    fn event(&mut self, kind: EventKind) -> Vec<Effect> {
        self.event_of(session(), kind)
    }

    fn event_of(&mut self, agent: AgentId, kind: EventKind) -> Vec<Effect> {
        self.input(Input::Event(Event { agent, kind }))
    }

    fn text(&mut self, text: &str) {
        self.event(EventKind::Delta(Delta::Text(text.to_owned())));
    }

    fn works(&mut self) {
        self.event(EventKind::State(Activity::Working));
    }

    /// An agent asks, and the question has been on the screen for a while.
    fn asks(&mut self, question: Question) {
        self.event(EventKind::ApprovalRequested(Box::new(question)));
        self.wait(super::SETTLE_MS);
    }

    fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
    }

    fn frame(&mut self) -> Frame {
        let frame = view(&mut self.state, self.now_ms);
        self.printed.extend(frame.printed.iter().cloned());
        frame
    }

    /// Returns the live region as text.
    fn live(&mut self) -> String {
        rows(&self.frame().live).join("\n")
    }

    /// Returns what was printed since the last call, a line each; blank lines are left out.
    fn printed(&mut self) -> Vec<String> {
        self.frame();
        let lines = std::mem::take(&mut self.printed);
        let texts = lines.iter().map(ToString::to_string);
        texts.filter(|text| !text.is_empty()).collect()
    }
}

fn beginning(size: Size) -> Beginning {
    Beginning {
        main: session(),
        size,
        model: "opus-5-5".into(),
        mode: PermissionMode::Default,
        may_bypass: false,
        process: AgentProcess::This,
        directory: "~/parser".into(),
        history: vec!["an earlier prompt".into()],
        models: vec!["opus-5-5".into(), "sonnet-5".into()],
        keys: ConversationKeys::default(),
    }
}

/// Returns the rows of a region as text.
fn rows(live: &Buffer) -> Vec<String> {
    let width = usize::from(live.area.width);
    let row = |cells: &[Cell]| {
        let mut text = String::new();
        let mut covered = 0;
        for cell in cells {
            if covered > 0 {
                covered -= 1;
                continue;
            }
            covered = cell.symbol().width().saturating_sub(1);
            text.push_str(cell.symbol());
        }
        text.trim_end().to_owned()
    };
    live.content.chunks(width).map(row).collect()
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn named(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_once('-') {
        Some(("Alt", rest)) => (KeyModifiers::ALT, rest),
        Some(("Ctrl", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("Shift", "Tab")) => (KeyModifiers::SHIFT, "BackTab"),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Home" => KeyCode::Home,
        "Backspace" => KeyCode::Backspace,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

fn agent(number: u128) -> AgentId {
    uuid::Uuid::from_u128(number).into()
}

fn entry(seq: u64, kind: EntryKind, blocks: Vec<ContentBlock>) -> Entry {
    let role = match kind {
        EntryKind::Reply => Role::Assistant,
        _ => Role::User,
    };
    Entry {
        seq,
        kind,
        message: Arc::new(Message {
            role,
            content: blocks,
        }),
        reply: None,
    }
}

fn reply(seq: u64, text: &str) -> EventKind {
    let blocks = vec![ContentBlock::text(text)];
    EventKind::Entry(Box::new(entry(seq, EntryKind::Reply, blocks)))
}

fn call(id: &str, tool: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse {
        id: id.into(),
        name: tool.into(),
        input: RawJson::parse(input).unwrap(),
    }
}

fn result(id: &str, text: &str, is_error: bool) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id.into(),
        content: vec![ToolContent::text(text)],
        is_error,
    }
}

fn fault(message: &str) -> Fault {
    Fault {
        class: FaultClass::Busy,
        status: Some(529),
        message: message.into(),
    }
}

fn retry() -> EventKind {
    EventKind::Retry(Retry {
        attempt: 1,
        wait_ms: 4_500,
        fault: fault("overloaded"),
    })
}

fn queued(id: u64, text: &str) -> QueuedPrompt {
    QueuedPrompt {
        id,
        text: text.into(),
        images: 0,
        joins: false,
    }
}
