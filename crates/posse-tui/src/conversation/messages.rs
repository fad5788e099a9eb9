//! What happens to a conversation, and what is to be done because of it.

use std::sync::Arc;

use crossterm::event::KeyEvent;
use posse_protocol::{AcceptedRules, AgentId, Command, Entry, Event, PermissionMode};

use super::ConversationKeys;
use crate::picker::PickerItem;
use crate::terminal::Size;

/// What happens to a conversation.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key is pressed.
    Key(KeyEvent),
    /// Text is pasted.
    Paste(String),
    /// Something happened to an agent of the session.
    Event(Event),
    /// Entries of the agent that is shown and were not printed: what it said before, or what was
    /// missed.
    Entries {
        /// The entries.
        entries: Vec<Entry>,
        /// The number of the agent's next entry.
        next: u64,
    },
    /// Entries with which the agent that is shown began: a branch has those of another session.
    Inherited(Vec<Entry>),
    /// Another agent is shown from now on.
    Show(AgentId),
    /// The terminal has this size.
    Size(Size),
    /// A line for the person about something that the loop did.
    Notice(String),
    /// Lines for the person, printed.
    Print(String),
    /// The text of the prompt, from an editor or from before it was refused.
    Draft(String),
    /// An image for the prompt.
    Image(AttachedImage),
    /// Pasted text that stays text.
    PasteText(String),
    /// The draft for an agent, from an earlier process; none stands for the main agent.
    KeptDraft(Option<AgentId>, String),
    /// The person's prompts of this session, newest first: the one to return to is chosen.
    Prompts(Vec<PickerItem>),
    /// A line is typed where there are no keys.
    Line(String),
    /// The terminal has the focus from now on, or not.
    Focus(bool),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The main agent is told this.
    Send(Command),
    /// The agent is told a person's words, which may call a skill by its name.
    Say(AgentId, String),
    /// The same, with images.
    SayImages(AgentId, String, Vec<AttachedImage>),
    /// A prompt is kept for later sessions of the directory.
    KeepPrompt(String),
    /// Rules are kept for later sessions.
    KeepRules(AcceptedRules),
    /// Another agent is shown.
    Show(AgentId),
    /// The draft is edited in the person's editor.
    OpenEditor(String),
    /// The terminal is left to the shell for a while.
    Suspend,
    /// Something that only the loop can do or knows.
    Ask(Request),
    /// The conversation is over.
    Leave,
}

/// What the loop is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A new session begins here.
    Clear,
    /// What the session has cost.
    Cost,
    /// Tasks of the session.
    Tasks,
    /// The board is opened.
    Board,
    /// The whole transcript of the agent that is shown is opened.
    Transcript,
    /// The conversation is written to a file.
    Export(String),
    /// Another session is continued; with its ID, or from a list.
    Resume(String),
    /// The image in a file is put into the prompt; if there is none, what was pasted.
    ImageFile {
        /// The path, relative to the working directory.
        path: String,
        /// What was pasted; empty if a command names the file.
        pasted: String,
    },
    /// The image in the clipboard is put into the prompt.
    ClipboardImage,
    /// Something about posse or the session is printed.
    Report(Report),
    /// The agent is asked to write AGENTS.md, or with true to improve the one that is there.
    Init(bool),
    /// The person's prompts of this session, to choose one to return to.
    Prompts,
    /// A branch of the session continues before the prompt with this number, 1 for the newest.
    Rewind(usize),
}

/// What can be printed about posse and the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The permission rules in force, and where each comes from.
    Permissions,
    /// The files of settings and definitions, and what becomes of each.
    Config,
    /// The memory files that agents begin with.
    Memory,
    /// What posse needs on this machine.
    Doctor,
    /// The MCP servers of the session, and whether they are connected.
    Servers,
}

/// An image that goes with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedImage {
    /// What it is called.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its media type, `image/png` for one.
    pub media_type: String,
    /// The base64 text.
    pub data: Arc<str>,
}

/// The process in which the agents of a conversation live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentProcess {
    /// That of the conversation: they stop with it.
    This,
    /// Another one: they continue without it.
    Another,
}

/// What is known when a conversation begins.
pub struct Beginning {
    /// The main agent.
    pub main: AgentId,
    /// The size of the terminal.
    pub size: Size,
    /// The model's name.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
    /// True if the mode in which only deny rules hold may be chosen.
    pub may_bypass: bool,
    /// The process in which its agents live.
    pub process: AgentProcess,
    /// The working directory, for people.
    pub directory: String,
    /// Earlier prompts, oldest first.
    pub history: Vec<String>,
    /// Names of models that can be chosen.
    pub models: Vec<String>,
    /// Which keys do what.
    pub keys: ConversationKeys,
}
