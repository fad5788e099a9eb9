//! A hook, as it is declared.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_permission::CallPattern;
use serde_json::{Map, Value};

use crate::hook::{HookEvent, Matcher};

/// Time that programs and servers may take.
const PROGRAMS: Duration = Duration::from_secs(600);
/// Time that a prompt may take.
const PROMPTS: Duration = Duration::from_secs(30);
/// Time that an agent may take.
const AGENTS: Duration = Duration::from_secs(60);

/// A hook: what runs at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The event.
    pub event: HookEvent,
    /// What it is for within the event.
    pub matcher: Matcher,
    /// The calls that it is about.
    pub condition: Condition,
    /// What runs.
    pub action: HookAction,
    /// How long it may take; none for what is usual.
    pub timeout: Option<Duration>,
    /// What happens if it fails.
    pub on_failure: OnFailure,
    /// What people are told while it runs.
    pub status_message: Option<String>,
    /// True if it runs once in a session only.
    pub once: bool,
    /// Whether it is waited for.
    pub beside: RunsBeside,
    /// Where it is declared.
    pub origin: HookOrigin,
    /// Whether it may run.
    pub state: HookState,
}

/// The calls that a hook is about: its `if`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// All.
    #[default]
    None,
    /// Those that a rule describes.
    Calls(Box<CallPattern>),
    /// None: its event is about no call, so that it never runs.
    Never,
}

/// What a hook runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// A program, which reads what happened and prints what it says to it.
    Program {
        /// The program.
        program: HookProgram,
        /// True if one process answers all events, a line each.
        persistent: bool,
    },
    /// A server that what happened is posted to.
    Http {
        /// Its address.
        url: String,
        /// Headers of the request.
        headers: Vec<(String, String)>,
        /// Variables of the environment that headers may name.
        variables: Vec<String>,
    },
    /// A question to a model.
    Prompt {
        /// The question; `$ARGUMENTS` stands for what happened.
        prompt: String,
        /// The model; none for a small one.
        model: Option<String>,
        /// True if what it refuses is told and the run goes on.
        continues: bool,
    },
    /// A task for a model that can look at files.
    Agent {
        /// The task.
        prompt: String,
        /// The model; none for a small one.
        model: Option<String>,
    },
    /// A tool of a server that the session has.
    Tool(HookTool),
    /// A function of the program that drives posse.
    Callback {
        /// Its name there.
        id: String,
    },
    /// What posse cannot run.
    Unsupported {
        /// What it is.
        kind: String,
        /// Why.
        why: &'static str,
    },
}

/// A tool that a hook calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookTool {
    /// The server's name.
    pub server: String,
    /// The tool's name there.
    pub tool: String,
    /// Its input. `${tool_input.file_path}` in a text is replaced by what happened.
    pub input: Map<String, Value>,
}

/// A program of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookProgram {
    /// A line for this shell.
    Line {
        /// The shell.
        shell: &'static str,
        /// The line.
        line: String,
    },
    /// A program with its arguments, which no shell reads.
    Words(Vec<String>),
}

/// What happens if a hook could not be run, was too late, or said nothing that can be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It is told, and things go on.
    #[default]
    Continue,
    /// It counts as a refusal.
    Block,
}

/// Whether a hook is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunsBeside {
    /// It is.
    #[default]
    No,
    /// It is not. What it says comes with the next turn.
    Async,
    /// It is not. If it refuses, the model is woken.
    Rewakes,
}

/// Who declares a hook. The first ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookLayer {
    /// The administrator.
    Managed,
    /// The user.
    User,
    /// The repository.
    Project,
    /// The user, in the repository.
    Local,
    /// `--settings`.
    Flag,
    /// The program that drives posse.
    Program,
    /// An agent type.
    Definition,
    /// A skill.
    Skill,
}

impl HookLayer {
    /// Returns the layer in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flag => "--settings",
            Self::Program => "program",
            Self::Definition => "agent",
            Self::Skill => "skill",
        }
    }
}

/// Where a hook is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOrigin {
    /// Who declares it.
    pub layer: HookLayer,
    /// The file, or a word for what is no file.
    pub file: PathBuf,
    /// The line in it, from 1; none if it is not known.
    pub line: Option<usize>,
    /// True if the repository declares it: it runs in the sandbox, and allows nothing.
    pub of_repository: bool,
}

impl fmt::Display for HookOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(out, ":{line}"))
    }
}

/// Whether a hook may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookState {
    /// It may.
    #[default]
    Active,
    /// The person has not accepted it as it is now. Calls that it would see are asked about.
    Waits {
        /// Why.
        why: String,
    },
}

impl Hook {
    /// Returns how long it may take.
    pub fn limit(&self) -> Duration {
        self.event
            .most()
            .map_or(self.own_limit(), |most| most.min(self.own_limit()))
    }

    fn own_limit(&self) -> Duration {
        let usual = match self.action {
            HookAction::Prompt { .. } => PROMPTS,
            HookAction::Agent { .. } => AGENTS,
            _ => PROGRAMS,
        };
        self.timeout.unwrap_or_else(|| self.event.limit(usual))
    }

    /// Returns true if its failure counts as a refusal.
    pub fn blocks_on_failure(&self) -> bool {
        self.on_failure == OnFailure::Block
            && self.beside == RunsBeside::No
            && !self.event.ignores_failures()
            && !matches!(
                self.action,
                HookAction::Prompt { .. } | HookAction::Agent { .. }
            )
    }

    /// Returns the hook as a sub-agent has it, whose end is another event.
    pub fn of_sub_agent(hook: &Arc<Self>) -> Arc<Self> {
        match hook.event {
            HookEvent::Stop => Arc::new(Self {
                event: HookEvent::SubagentStop,
                ..Self::clone(hook)
            }),
            _ => Arc::clone(hook),
        }
    }

    /// Returns the first of two that run the same, as strict as the stricter one.
    pub fn stricter(first: &Arc<Self>, second: &Arc<Self>) -> Arc<Self> {
        if second.state != HookState::Active {
            return Arc::clone(first);
        }
        let blocks = [first, second]
            .iter()
            .any(|it| it.on_failure == OnFailure::Block);
        let waits = [first, second].iter().any(|it| it.beside == RunsBeside::No);
        Arc::new(Self {
            on_failure: if blocks {
                OnFailure::Block
            } else {
                first.on_failure
            },
            beside: if waits { RunsBeside::No } else { first.beside },
            ..Self::clone(first)
        })
    }

    /// Returns true if both run the same at the same event: declared twice, it runs once.
    pub fn is_same(&self, other: &Self) -> bool {
        self.event == other.event
            && self.matcher == other.matcher
            && self.condition == other.condition
            && self.action == other.action
    }

    /// Returns what runs, in a line for people.
    pub fn title(&self) -> String {
        self.action.to_string()
    }
}

impl fmt::Display for HookAction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program {
                program: HookProgram::Line { line, .. },
                ..
            } => out.write_str(line),
            Self::Program {
                program: HookProgram::Words(words),
                ..
            } => out.write_str(&words.join(" ")),
            Self::Http { url, .. } => out.write_str(url),
            Self::Prompt { prompt, .. } => write!(out, "prompt: {prompt}"),
            Self::Agent { prompt, .. } => write!(out, "agent: {prompt}"),
            Self::Tool(tool) => write!(out, "{} of {}", tool.tool, tool.server),
            Self::Callback { id } => write!(out, "callback {id}"),
            Self::Unsupported { kind, .. } => out.write_str(kind),
        }
    }
}
