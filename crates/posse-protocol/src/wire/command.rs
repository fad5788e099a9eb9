//! Commands, on the wire.

use uuid::Uuid;

use super::content::{WirePart, prompt, words};
use super::error::WireError;
use super::team::WirePlan;
use crate::{
    AcceptedRules, AgentId, Answer, Command, ListKind, MemoryScope, Name, PermissionMode,
    PromptChange, QuestionId, RawJson,
};

tagged! {
    /// What a client tells an agent.
    #[schemars(rename = "Command")]
    enum WireCommand {
        /// A person's prompt. While the agent works it waits, and gets its own run.
        Prompt {
            /// The prompt.
            words: Vec<WirePart>,
        }
        /// A skill or command that a person calls, e.g. as `/name`. While the agent works it waits, and
        /// gets its own run.
        Skill {
            /// The name, without the slash.
            name: String,
            /// What follows the name.
            arguments: String,
            /// The whole prompt as it was written.
            words: Vec<WirePart>,
        }
        /// Continue what a fault, a limit or a crash interrupted.
        Continue {}
        /// Stop the run. What was said and done so far is kept.
        Interrupt {}
        /// Answer an `approval_requested`.
        Answer {
            /// The agent that asked.
            agent: AgentId,
            /// The question.
            question: QuestionId,
            /// The answer.
            answer: WireAnswer,
        }
        /// Change what a prompt says that waits.
        EditPrompt {
            /// Its number, as `queue` tells it.
            prompt: u64,
            /// What it says instead.
            words: Vec<WirePart>,
        }
        /// Take back a prompt that waits.
        TakeBackPrompt {
            /// Its number, as `queue` tells it.
            prompt: u64,
        }
        /// Say when a prompt that waits is shown.
        JoinRun {
            /// Its number, as `queue` tells it.
            prompt: u64,
            /// True for the next tool boundary of the run, false for a run of its own.
            joins: bool,
        }
        /// Run a person's command in the agent's directory. The model sees it, with its output, with
        /// the next prompt.
        Shell {
            /// The command.
            command: String,
        }
        /// Add a line to a memory file. A `noted` says which file has it; agents are told with their next
        /// message.
        Note {
            /// The note.
            text: String,
            /// Whose file.
            scope: MemoryScope,
        }
        /// List what a prompt may name. A `listed` brings it.
        List {
            /// What to list.
            what: ListKind,
            /// A part of the name, in any case; empty for all.
            #[serde(default, skip_serializing_if = "String::is_empty")]
            part: String,
        }
        /// Ask a question on the side, which an `aside` answers. The agent's conversation stays as it is.
        Aside {
            /// The question.
            question: String,
        }
        /// Set the permission mode, starting with the next tool call.
        SetMode {
            /// The mode.
            mode: PermissionMode,
        }
        /// Set the model or the effort, starting with the next request. A `model` says when it holds.
        SetModel {
            /// The model, by its id or short name; `default` for the one that the agent began with, absent
            /// for the one that it has.
            #[serde(skip_serializing_if = "Option::is_none")]
            model: Option<String>,
            /// The effort: `low`, `medium`, `high`, `xhigh` or `max`; `default` for the one that the agent
            /// began with, absent for the one that it has, if the model takes it.
            #[serde(skip_serializing_if = "Option::is_none")]
            effort: Option<String>,
        }
        /// Add permission rules for all agents until the session ends.
        AddRules {
            /// Rules that allow calls.
            allow: Vec<String>,
            /// Rules that ask a person.
            ask: Vec<String>,
            /// Rules that deny calls.
            deny: Vec<String>,
        }
        /// Replace the history by a summary, at once or before the next model call.
        Compact {
            /// What the summary should keep above all.
            #[serde(skip_serializing_if = "Option::is_none")]
            keep: Option<String>,
        }
        /// Stop a sub-agent with everything it started, or a background command.
        StopRun {
            /// The id of the agent or command.
            task: Uuid,
        }
        /// Stop everything in the background.
        StopRuns {}
        /// Move sub-agents that are being waited for to the background.
        Detach {}
        /// A person's goal for a team that the agent is to lead. Only as the agent's first command.
        Team {
            /// The name of the team.
            name: Name,
            /// Its roles and first tasks.
            plan: Box<WirePlan>,
            /// The goal.
            words: Vec<WirePart>,
        }
    }
}

tagged! {
    /// The answer to whether a tool call may run.
    #[schemars(rename = "Answer")]
    enum WireAnswer {
        /// It may run.
        Allow {
            /// An input to run with instead. Deny rules apply to it.
            #[serde(skip_serializing_if = "Option::is_none")]
            input: Option<RawJson>,
            /// Rules that one of the question's `suggestions` has, which hold from now on. Other rules are
            /// refused; `add_rules` adds them.
            #[serde(skip_serializing_if = "Option::is_none")]
            always: Option<AcceptedRules>,
        }
        /// The plan is approved. Only for a question of kind `plan`.
        Approve {
            /// The plan that is approved instead; absent for the one that was handed in.
            #[serde(skip_serializing_if = "Option::is_none")]
            plan: Option<String>,
            /// The mode to continue in; absent for the one before plan mode.
            #[serde(skip_serializing_if = "Option::is_none")]
            mode: Option<PermissionMode>,
        }
        /// It may not run.
        Deny {
            /// What the model is told.
            message: String,
            /// True if the whole run stops.
            interrupt: bool,
        }
    }
}

impl From<Answer> for WireAnswer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allow { input, always } => Self::Allow { input, always },
            Answer::Approve { plan, mode } => Self::Approve { plan, mode },
            Answer::Deny { message, interrupt } => Self::Deny { message, interrupt },
        }
    }
}

impl From<WireAnswer> for Answer {
    fn from(answer: WireAnswer) -> Self {
        match answer {
            WireAnswer::Allow { input, always } => Self::Allow { input, always },
            WireAnswer::Approve { plan, mode } => Self::Approve { plan, mode },
            WireAnswer::Deny { message, interrupt } => Self::Deny { message, interrupt },
        }
    }
}

/// Returns a command for the wire, and the agent it is for if that is not the main agent.
pub(super) fn addressed(command: Command) -> Result<(Option<AgentId>, WireCommand), WireError> {
    let command = match command {
        Command::Prompt(words) => WireCommand::Prompt {
            words: prompt(words)?,
        },
        Command::Skill {
            name,
            arguments,
            words,
        } => WireCommand::Skill {
            name,
            arguments,
            words: prompt(words)?,
        },
        Command::Continue => WireCommand::Continue {},
        Command::Interrupt => WireCommand::Interrupt {},
        Command::Answer {
            agent,
            question,
            answer,
        } => WireCommand::Answer {
            agent,
            question,
            answer: answer.into(),
        },
        Command::ChangePrompt { prompt: id, change } => match change {
            PromptChange::Edit(words) => WireCommand::EditPrompt {
                prompt: id,
                words: prompt(words)?,
            },
            PromptChange::TakeBack => WireCommand::TakeBackPrompt { prompt: id },
            PromptChange::Join(joins) => WireCommand::JoinRun { prompt: id, joins },
        },
        Command::Shell(command) => WireCommand::Shell { command },
        Command::Note { text, scope } => WireCommand::Note { text, scope },
        Command::List { what, part } => WireCommand::List { what, part },
        Command::Aside { question } => WireCommand::Aside { question },
        Command::SetMode(mode) => WireCommand::SetMode { mode },
        Command::SetModel { model, effort } => WireCommand::SetModel { model, effort },
        Command::AddRules { allow, ask, deny } => WireCommand::AddRules { allow, ask, deny },
        Command::Compact { keep } => WireCommand::Compact { keep },
        Command::StopRun(task) => WireCommand::StopRun { task },
        Command::StopRuns => WireCommand::StopRuns {},
        Command::Detach => WireCommand::Detach {},
        Command::Team { name, plan, words } => WireCommand::Team {
            name,
            plan: Box::new((*plan).into()),
            words: prompt(words)?,
        },
        Command::To { agent, command } => {
            // Passed on from agent to agent, it reaches the last.
            let (last, command) = addressed(*command)?;
            return Ok((last.or(Some(agent)), command));
        }
    };
    Ok((None, command))
}

impl From<WireCommand> for Command {
    fn from(command: WireCommand) -> Self {
        match command {
            WireCommand::Prompt { words: told } => Self::Prompt(words(told)),
            WireCommand::Skill {
                name,
                arguments,
                words: told,
            } => Self::Skill {
                name,
                arguments,
                words: words(told),
            },
            WireCommand::Continue {} => Self::Continue,
            WireCommand::Interrupt {} => Self::Interrupt,
            WireCommand::Answer {
                agent,
                question,
                answer,
            } => Self::Answer {
                agent,
                question,
                answer: answer.into(),
            },
            WireCommand::EditPrompt {
                prompt,
                words: told,
            } => Self::ChangePrompt {
                prompt,
                change: PromptChange::Edit(words(told)),
            },
            WireCommand::TakeBackPrompt { prompt } => Self::ChangePrompt {
                prompt,
                change: PromptChange::TakeBack,
            },
            WireCommand::JoinRun { prompt, joins } => Self::ChangePrompt {
                prompt,
                change: PromptChange::Join(joins),
            },
            WireCommand::Shell { command } => Self::Shell(command),
            WireCommand::Note { text, scope } => Self::Note { text, scope },
            WireCommand::List { what, part } => Self::List { what, part },
            WireCommand::Aside { question } => Self::Aside { question },
            WireCommand::SetMode { mode } => Self::SetMode(mode),
            WireCommand::SetModel { model, effort } => Self::SetModel { model, effort },
            WireCommand::AddRules { allow, ask, deny } => Self::AddRules { allow, ask, deny },
            WireCommand::Compact { keep } => Self::Compact { keep },
            WireCommand::StopRun { task } => Self::StopRun(task),
            WireCommand::StopRuns {} => Self::StopRuns,
            WireCommand::Detach {} => Self::Detach,
            WireCommand::Team {
                name,
                plan,
                words: told,
            } => Self::Team {
                name,
                plan: Box::new((*plan).into()),
                words: words(told),
            },
        }
    }
}
