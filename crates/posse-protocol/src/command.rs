//! What a front end can tell an agent.

use uuid::Uuid;

use crate::{
    AgentId, Answer, ContentBlock, ListKind, MemoryScope, Name, PermissionMode, PromptChange,
    QuestionId, TeamPlan,
};

/// One thing that a front end tells an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A person's words. While the agent works they wait; each gets a run of its own.
    Prompt(Vec<ContentBlock>),
    /// A skill or command that a person calls, `/name` for one. While the agent works it waits; it gets a run of
    /// its own.
    Skill {
        /// The name, without the slash.
        name: String,
        /// What follows it.
        arguments: String,
        /// All that was said, as it was said.
        words: Vec<ContentBlock>,
    },
    /// Go on with what a fault, a limit or a crash broke off, without new words.
    Continue,
    /// Stop the run. What is said and done so far stays.
    Interrupt,
    /// Answer the question that an [`EventKind::ApprovalRequested`](crate::EventKind::ApprovalRequested) asked.
    Answer {
        /// Who asked.
        agent: AgentId,
        /// The question.
        question: QuestionId,
        /// The answer.
        answer: Answer,
    },
    /// Change a prompt that waits, as [`EventKind::Queue`](crate::EventKind::Queue) shows them.
    ChangePrompt {
        /// Its number.
        prompt: u64,
        /// The change.
        change: PromptChange,
    },
    /// A command that a person runs in the agent's directory, with their own rights. No run begins: the
    /// command and its output become an entry that the model sees with the next prompt.
    Shell(String),
    /// A note for a memory file, in a line, that agents are told of with their next message. An
    /// [`EventKind::Noted`](crate::EventKind::Noted) says which file has it.
    Note {
        /// The note.
        text: String,
        /// Whose file.
        scope: MemoryScope,
    },
    /// Lists what a prompt may name. An [`EventKind::Listed`](crate::EventKind::Listed) brings it.
    List {
        /// What is listed.
        what: ListKind,
        /// A part of the name, in any case; empty for all.
        part: String,
    },
    /// A question on the side: it is answered from what the agent knows, by an
    /// [`EventKind::Aside`](crate::EventKind::Aside). Its conversation and its run stay as they are.
    Aside {
        /// The question.
        question: String,
    },
    /// Another permission mode, from the next tool call on.
    SetMode(PermissionMode),
    /// Another model or effort, from the next request on. An [`EventKind::Model`](crate::EventKind::Model)
    /// says when it holds; what is refused is a warning.
    SetModel {
        /// The model, by its ID or short name; `default` for the one that the agent began with, none for
        /// the one that it has.
        model: Option<String>,
        /// The effort; `default` for the one that the agent began with, none for the one that it has, if
        /// the model takes it.
        effort: Option<String>,
    },
    /// Permission rules for the rest of the session, for all its agents at once.
    AddRules {
        /// Rules that allow actions.
        allow: Vec<String>,
        /// Rules that ask a person.
        ask: Vec<String>,
        /// Rules that forbid actions.
        deny: Vec<String>,
    },
    /// Put a summary in place of the history, before the next model call or at once.
    Compact {
        /// What the summary should keep above all, in a person's words.
        keep: Option<String>,
    },
    /// Stop a sub-agent, with all it has started, or a background command.
    StopRun(Uuid),
    /// Stop everything that goes on in the background. No run begins because of it: the agent is told with
    /// the next words.
    StopRuns,
    /// Wait no longer for the sub-agents that are waited for: they go on in the background.
    Detach,
    /// A person's words to an agent that leads a team which is raised for them. Only the first thing that it is
    /// told.
    Team {
        /// What the team is called.
        name: Name,
        /// Who belongs to it, and what it begins with.
        plan: Box<TeamPlan>,
        /// The goal.
        words: Vec<ContentBlock>,
    },
    /// For another agent of the session: a teammate that a person speaks with.
    To {
        /// The agent.
        agent: AgentId,
        /// What it is told.
        command: Box<Command>,
    },
}
