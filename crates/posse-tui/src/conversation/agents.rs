//! Everybody else of the session: sub-agents, teammates and background commands.

use posse_protocol::{
    Activity, AgentId, MemberChange, MemberUpdate, RunChange, RunKind, RunStatus, RunUpdate,
    RunUsage, WaitReason,
};
use ratatui_core::style::Style;
use uuid::Uuid;

use crate::text::{grouped, one_line};
use crate::theme::ColorRole;

/// Number of others that are kept; a board has more.
const MOST: usize = 10_000;

/// Number of characters of a name that is made from what somebody is to do.
const NAME: usize = 28;

/// What somebody is doing, as a sign and a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It works.
    Working,
    /// A person is asked.
    Asks,
    /// It waits for something else.
    Waits,
    /// It has nothing to do.
    Idle,
    /// It has failed.
    Failed,
    /// It has ended.
    Done,
}

impl Sign {
    /// Returns the sign.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Working => "●",
            Self::Asks => "◐",
            Self::Waits => "◌",
            Self::Idle => "○",
            Self::Failed => "✗",
            Self::Done => "✓",
        }
    }

    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "works",
            Self::Asks => "asks",
            Self::Waits => "waits",
            Self::Idle => "idle",
            Self::Failed => "failed",
            Self::Done => "done",
        }
    }

    /// Returns its style, which says nothing that the sign does not.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Working => ColorRole::Good.style(),
            Self::Asks => ColorRole::Warning.style(),
            Self::Failed => ColorRole::Bad.style(),
            Self::Waits | Self::Idle | Self::Done => Style::new(),
        }
    }

    /// Returns the sign of an activity.
    pub fn of(activity: Activity) -> Self {
        match activity {
            Activity::Idle => Self::Idle,
            Activity::Working => Self::Working,
            Activity::Waiting(WaitReason::Person) => Self::Asks,
            Activity::Waiting(_) => Self::Waits,
            Activity::Gone => Self::Done,
        }
    }
}

/// One of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its id, or that of a command.
    pub id: Uuid,
    /// True for an agent, which can be talked to.
    pub is_agent: bool,
    /// What it is called.
    pub name: String,
    /// What it is doing.
    pub sign: Sign,
    /// The same in words, safe to show.
    pub doing: String,
    /// True for a member of a team, which stays when its run is over.
    pub is_member: bool,
    /// True while nobody waits for it.
    pub is_background: bool,
    /// What it has used so far.
    pub usage: RunUsage,
    /// The tool that it used last.
    pub last_tool: Option<String>,
}

impl Other {
    /// Returns how far it is, empty if that is not known.
    pub fn progress(&self) -> String {
        let RunUsage {
            tool_uses,
            total_tokens,
            ..
        } = self.usage;
        let last = self.last_tool.as_ref();
        let last = last.map(|tool| format!(" (last {})", one_line(tool)));
        match (tool_uses, total_tokens) {
            (0, 0) => String::new(),
            (uses, tokens) => format!(
                "{uses} tool use{}{}, {} tokens",
                if uses == 1 { "" } else { "s" },
                last.unwrap_or_default(),
                grouped(tokens)
            ),
        }
    }
}

/// All others, in the order in which they came.
#[derive(Default)]
pub(crate) struct Others(Vec<Other>);

impl Others {
    pub(crate) fn all(&self) -> &[Other] {
        &self.0
    }

    pub(crate) fn find(&self, agent: AgentId) -> Option<&Other> {
        self.0.iter().find(|other| other.id == agent.uuid())
    }

    /// Returns the names of those that work.
    pub(crate) fn working(&self) -> Vec<String> {
        let is_working =
            |other: &&Other| matches!(other.sign, Sign::Working | Sign::Asks | Sign::Waits);
        let working = self.0.iter().filter(is_working);
        working.map(|other| other.name.clone()).collect()
    }

    /// Returns the names of those that are stopped when everything in the background is: members
    /// of teams are only interrupted.
    pub(crate) fn stoppable(&self) -> Vec<String> {
        let is_stopped = |other: &&Other| {
            let has_run = matches!(other.sign, Sign::Working | Sign::Asks | Sign::Waits);
            has_run && (other.is_background || other.is_member)
        };
        let stopped = self.0.iter().filter(is_stopped);
        stopped.map(|other| other.name.clone()).collect()
    }

    /// Something happened to a run. Returns a line about it if it is over.
    pub(crate) fn run(&mut self, update: &RunUpdate) -> Option<(Sign, String)> {
        let run = &update.run;
        let name = run.name.as_ref().map(ToString::to_string);
        let name = name.unwrap_or_else(|| match (run.kind, run.description.is_empty()) {
            (RunKind::Shell, _) => "shell".to_owned(),
            (RunKind::Agent, true) => run.agent_type.clone(),
            (RunKind::Agent, false) => run.description.chars().take(NAME).collect(),
        });
        match &update.what {
            RunChange::Started { background, .. } => {
                let other = self.entry(run.task, &name, run.kind == RunKind::Agent);
                other.sign = Sign::Working;
                other.is_background = *background;
                // Without a name of its own, what it is to do is its name.
                let is_named_by_work = run.kind == RunKind::Agent && run.name.is_none();
                other.doing = match is_named_by_work {
                    true => one_line(&run.agent_type),
                    false => one_line(&run.description),
                };
                None
            }
            RunChange::Progress {
                usage,
                last_tool,
                summary,
            } => {
                let other = self.entry(run.task, &name, run.kind == RunKind::Agent);
                other.doing = one_line(summary);
                other.usage = *usage;
                other.last_tool.clone_from(last_tool);
                None
            }
            RunChange::Detached => {
                let other = self.entry(run.task, &name, run.kind == RunKind::Agent);
                other.is_background = true;
                None
            }
            RunChange::Ended(end) => {
                let is_member = |other: &Other| other.id == run.task && other.is_member;
                if !self.0.iter().any(is_member) {
                    self.0.retain(|other| other.id != run.task);
                }
                let sign = match end.status {
                    RunStatus::Completed => Sign::Done,
                    RunStatus::Running => Sign::Working,
                    RunStatus::Paused => Sign::Waits,
                    RunStatus::Partial | RunStatus::Failed | RunStatus::Killed => Sign::Failed,
                };
                Some((
                    sign,
                    format!("{}: {}", one_line(&name), one_line(&end.summary)),
                ))
            }
        }
    }

    /// Something happened to a member of a team.
    pub(crate) fn member(&mut self, agent: AgentId, update: &MemberUpdate) {
        if update.what == MemberChange::Left {
            self.0.retain(|other| other.id != agent.uuid());
            return;
        }
        let other = self.entry(agent.uuid(), &update.name.to_string(), true);
        other.is_member = true;
        other.name = one_line(&update.name.to_string());
        other.sign = match &update.what {
            MemberChange::Running | MemberChange::TakenOver => Sign::Working,
            MemberChange::Joined { .. } | MemberChange::Idle(_) | MemberChange::Left => Sign::Idle,
        };
    }

    /// An agent does something else than before.
    pub(crate) fn state(&mut self, agent: AgentId, activity: Activity) {
        if let Some(other) = self.0.iter_mut().find(|other| other.id == agent.uuid()) {
            other.sign = Sign::of(activity);
        }
    }

    /// An agent has begun a tool call.
    pub(crate) fn calls(&mut self, agent: AgentId, title: &str) {
        if let Some(other) = self.0.iter_mut().find(|other| other.id == agent.uuid()) {
            other.doing = one_line(title);
        }
    }

    fn entry(&mut self, id: Uuid, name: &str, is_agent: bool) -> &mut Other {
        let known = self.0.iter().position(|other| other.id == id);
        let at = known.unwrap_or_else(|| {
            if self.0.len() == MOST {
                self.0.remove(0);
            }
            self.0.push(Other {
                id,
                is_agent,
                name: one_line(name),
                sign: Sign::Working,
                doing: String::new(),
                is_member: false,
                is_background: false,
                usage: RunUsage::default(),
                last_tool: None,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}
