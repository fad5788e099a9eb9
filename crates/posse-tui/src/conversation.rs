//! A conversation with one agent, and the people-facing side of everybody around it.
//!
//! [`update`] changes the state by what happens and says what is to be done; [`view`] says what is
//! on the screen. Both are pure: time comes with each input.

mod actions;
mod agent_lines;
mod agents;
mod alerts;
mod call_title;
pub(crate) mod calls;
mod chooser;
mod drafts;
mod edit_keys;
mod events;
mod framed;
mod help;
mod images;
mod key_actions;
mod keys;
mod menu;
mod messages;
mod plain;
mod questions;
mod reply;
mod slash;
mod terms;
mod thinking;
pub(crate) mod transcript;
mod view;

use posse_protocol::{Activity, AgentId, Command, PermissionMode, QueuedPrompt, SpendingUpdate};
use ratatui_core::style::Style;
use ratatui_core::text::Line;
use uuid::Uuid;

pub use self::agent_lines::AgentLines;
use self::agents::Others;
pub use self::agents::{Other, Sign};
pub use self::alerts::Alert;
use self::alerts::Alerts;
pub use self::call_title::call_title;
use self::calls::Calls;
use self::chooser::Chooser;
use self::drafts::KeptDrafts;
pub(crate) use self::edit_keys::edit as edit_by_key;
pub use self::framed::Framed;
pub use self::key_actions::ConversationKeys;
use self::key_actions::KeyedAction;
use self::menu::Menu;
pub use self::messages::{AgentProcess, AttachedImage, Beginning, Effect, Input, Report, Request};
pub use self::plain::PlainView;
use self::questions::Questions;
pub use self::questions::SETTLE_MS;
use self::reply::ArrivingReply;
use self::terms::{AgentTerms, KnownTerms};
use self::thinking::Thinking;
pub use self::transcript::person_words;
pub use self::view::view;
pub(crate) use self::view::{edited_rows, question_content};
use crate::edit::{EditBuffer, PromptHistory};
pub use crate::terminal::Size;
use crate::text::{tame, wrap};

/// Time after a change of the size in which another is expected.
const RESIZE_MS: u64 = 1500;

/// What the main agent is called.
const MAIN: &str = "the main agent";

/// The state of a conversation.
pub struct Conversation {
    main: AgentId,
    size: Size,
    /// Lines to print with the next frame.
    printed: Vec<Line<'static>>,
    draft: EditBuffer,
    drafts: KeptDrafts,
    history: PromptHistory,
    menu: Option<Menu>,
    /// A list from which the person chooses, in place of the prompt.
    chooser: Option<Chooser>,
    questions: Questions,
    others: Others,
    shown: ShownAgent,
    terms: KnownTerms,
    process: AgentProcess,
    offered: OfferedChoices,
    /// A line that stays until the next key.
    notice: Option<String>,
    /// True while all keys are shown.
    shows_keys: bool,
    presses: Presses,
    alerts: Alerts,
    /// When the size last changed.
    resized_ms: Option<u64>,
    keys: ConversationKeys,
}

/// What the person can choose from.
struct OfferedChoices {
    /// True if the mode in which only deny rules hold may be chosen.
    may_bypass: bool,
    models: Vec<String>,
    /// Commands that a prompt may begin with, besides those of the terminal.
    commands: Vec<(String, String)>,
}

/// The agent that is shown.
struct ShownAgent {
    agent: AgentId,
    /// What it is called.
    name: String,
    reply: ArrivingReply,
    thinking: Thinking,
    calls: Calls,
    /// Hooks that run for it.
    hooks: Vec<RunningHook>,
    /// The number of the next entry to be printed.
    next: u64,
    activity: Activity,
    /// Since when it does that.
    since_ms: u64,
    spending: SpendingUpdate,
    queue: Vec<QueuedPrompt>,
    /// Why the model is called again, until it answers.
    retry: Option<String>,
    /// Number of prompts that are to join the run, once they are in the queue.
    joining: usize,
}

/// A hook that runs.
struct RunningHook {
    id: Uuid,
    /// What it is called.
    title: String,
    since_ms: u64,
}

/// Keys whose second press means more.
#[derive(Default)]
struct Presses {
    interrupt_ms: Option<u64>,
    leave_ms: Option<u64>,
    escape_ms: Option<u64>,
    stop_ms: Option<u64>,
}

impl Conversation {
    /// Begins a conversation.
    pub fn new(beginning: Beginning, now_ms: u64) -> Self {
        let mut conversation = Self {
            main: beginning.main,
            size: beginning.size,
            printed: Vec::new(),
            draft: EditBuffer::new(),
            drafts: KeptDrafts::default(),
            history: PromptHistory::new(beginning.history),
            menu: None,
            chooser: None,
            questions: Questions::default(),
            others: Others::default(),
            shown: ShownAgent::new(beginning.main, MAIN.to_owned(), now_ms),
            terms: KnownTerms::default(),
            process: beginning.process,
            offered: OfferedChoices {
                may_bypass: beginning.may_bypass,
                models: beginning.models,
                commands: Vec::new(),
            },
            notice: None,
            shows_keys: false,
            presses: Presses::default(),
            alerts: Alerts::default(),
            resized_ms: None,
            keys: beginning.keys,
        };
        let terms = &mut conversation.terms;
        terms.begins(beginning.main, &beginning.model, beginning.mode);
        let head = format!(
            "posse · {} · {}",
            beginning.model,
            tame(&beginning.directory)
        );
        conversation.say(&head);
        if beginning.process == AgentProcess::Another {
            conversation.say("attached: leaving stops nobody");
        }
        conversation
    }

    /// Returns the lines to print with the next frame, each once.
    pub fn take_printed(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.printed)
    }

    /// Returns what the person is called back for, each time once.
    pub fn take_alert(&mut self) -> Option<Alert> {
        self.alerts.take()
    }

    /// Returns the draft of the prompt.
    pub fn draft(&self) -> String {
        self.draft.expanded()
    }

    /// Returns the drafts for all agents that have one; none stands for the main agent.
    pub fn drafts(&self) -> Vec<(Option<AgentId>, String)> {
        drafts::all(self)
    }

    /// Returns how the agent that is shown works.
    fn shown_terms(&self) -> AgentTerms {
        self.terms.of(self.shown.agent)
    }

    /// Returns the permission mode of the agent that is shown.
    pub fn mode(&self) -> PermissionMode {
        self.shown_terms().mode.unwrap_or_default()
    }

    /// Returns the agent that is shown.
    pub fn shown_agent(&self) -> AgentId {
        self.shown.agent
    }

    /// Returns what the agent that is shown is called.
    pub fn shown_name(&self) -> &str {
        &self.shown.name
    }

    /// Returns the number of the next entry that is not printed yet.
    pub fn next_entry(&self) -> u64 {
        self.shown.next
    }

    /// Returns true while something on the screen changes by time alone.
    pub fn is_moving(&self) -> bool {
        self.is_working() || !self.shown.calls.running.is_empty() || self.resized_ms.is_some()
    }

    /// Returns true while the size changes. Then the live region is kept narrow: rows that a
    /// terminal would wrap anew could not be found again.
    fn is_resizing(&self, now_ms: u64) -> bool {
        self.resized_ms
            .is_some_and(|at| now_ms.saturating_sub(at) < RESIZE_MS)
    }

    /// Returns true while the agent that is shown has a run.
    fn is_working(&self) -> bool {
        matches!(
            self.shown.activity,
            Activity::Working | Activity::Waiting(_)
        )
    }

    fn width(&self) -> u16 {
        self.size.columns.max(1)
    }

    /// Prints lines for the person, dim.
    fn say(&mut self, text: &str) {
        let width = self.width();
        for line in tame(text).lines() {
            let line = Line::styled(line.to_owned(), Style::new().dim());
            self.printed.extend(wrap(&line, width, 0));
        }
    }

    /// Returns the command that tells the agent which is shown something.
    fn to_shown(&self, command: Command) -> Effect {
        Effect::Send(if self.shown.agent == self.main {
            command
        } else {
            Command::To {
                agent: self.shown.agent,
                command: Box::new(command),
            }
        })
    }
}

impl ShownAgent {
    fn new(agent: AgentId, name: String, now_ms: u64) -> Self {
        Self {
            agent,
            name,
            reply: ArrivingReply::default(),
            thinking: Thinking::default(),
            calls: Calls::default(),
            hooks: Vec::new(),
            next: 0,
            activity: Activity::Idle,
            since_ms: now_ms,
            spending: SpendingUpdate::default(),
            queue: Vec::new(),
            retry: None,
            joining: 0,
        }
    }
}

/// Changes a conversation by what happens, and returns what is to be done.
pub fn update(conversation: &mut Conversation, input: Input, now_ms: u64) -> Vec<Effect> {
    match input {
        Input::Key(key) => keys::pressed(conversation, key, now_ms),
        Input::Paste(text) => keys::pasted(conversation, &text),
        Input::Event(event) => events::happened(conversation, event, now_ms),
        Input::Inherited(entries) => {
            for entry in &entries {
                events::print(conversation, entry);
            }
            Vec::new()
        }
        Input::Entries { entries, next } => {
            for entry in &entries {
                events::entry(conversation, entry);
            }
            conversation.shown.next = conversation.shown.next.max(next);
            conversation.shown.reply.miss();
            Vec::new()
        }
        Input::Show(agent) => {
            events::show(conversation, agent, now_ms);
            Vec::new()
        }
        Input::Size(size) => {
            if conversation.size != size {
                conversation.size = size;
                conversation.resized_ms = Some(now_ms);
            }
            Vec::new()
        }
        Input::Notice(text) => {
            conversation.notice = Some(text);
            Vec::new()
        }
        Input::Print(text) => {
            conversation.say(&text);
            Vec::new()
        }
        Input::Draft(text) => {
            conversation.draft.set(&text);
            conversation.menu = None;
            Vec::new()
        }
        Input::Image(image) => {
            images::attach(conversation, image);
            Vec::new()
        }
        Input::PasteText(text) => images::paste_text(conversation, &text),
        Input::KeptDraft(agent, text) => {
            drafts::keep(conversation, agent, &text);
            Vec::new()
        }
        Input::Prompts(prompts) => {
            chooser::rewind(conversation, prompts);
            Vec::new()
        }
        Input::Line(line) => keys::typed_line(conversation, &line, now_ms),
        Input::Focus(has_focus) => {
            conversation.alerts.focus(has_focus);
            Vec::new()
        }
        Input::Tick => {
            if !conversation.is_resizing(now_ms) {
                conversation.resized_ms = None;
            }
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
