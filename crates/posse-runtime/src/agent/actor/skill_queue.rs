//! Queue of skills that a person has called, and of commands that wait behind them.

use std::collections::VecDeque;

use posse_port::BoxFuture;
use posse_port::tool::ToolError;
use posse_protocol::{Command, ContentBlock, Fault, FaultClass, Outcome};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::maybe;
use crate::agent::lifecycle::SkillOutcome;
use crate::agent::skill::{Ready, Unready};
use crate::agent::step::{Input, PROMPTS};
use crate::definition::skill::Fork;

/// The skill in progress, and what waits behind it.
#[derive(Default)]
pub(super) struct SkillQueue {
    /// Commands that wait for the skill before them.
    pub(super) held: VecDeque<Command>,
    /// The skill that is being prepared or followed.
    pub(super) work: Option<BoxFuture<'static, SkillDone>>,
    pub(super) cancel: CancellationToken,
    /// The skill whose agent is started once the entry about it is stored.
    pub(super) delegation: Option<(Ready, Fork)>,
}

/// Result of a skill.
pub(super) enum SkillDone {
    /// The instructions are ready, or could not be prepared.
    Ready {
        words: Vec<ContentBlock>,
        ready: Box<Result<Ready, Unready>>,
    },
    /// A sub-agent has followed them, or could not be started.
    Delegated(Box<Result<SkillOutcome, ToolError>>),
}

impl SkillQueue {
    /// Returns true if a skill is in progress or something waits.
    pub(super) fn is_busy(&self) -> bool {
        self.work.is_some() || !self.held.is_empty()
    }

    /// Waits for the skill in progress.
    pub(super) async fn next(&mut self) -> SkillDone {
        maybe(&mut self.work).await
    }

    /// Cancels the skill in progress.
    pub(super) fn stop(&self) {
        if self.work.is_some() {
            self.cancel.cancel();
        }
    }

    /// Drops everything that waits, and cancels the skill in progress.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        self.stop();
    }

    /// Keeps a command that must wait: every skill, and whatever comes after one and would begin a
    /// run. Returns any other command.
    pub(super) fn hold(&mut self, command: Command) -> Result<Option<Input>, Command> {
        let begins = matches!(
            command,
            Command::Prompt(_) | Command::Continue | Command::Compact { .. }
        );
        match &command {
            Command::Skill { .. } => {}
            _ if begins && self.is_busy() => {}
            _ => return Err(command),
        }
        // A front end that sends without reading must not fill the memory.
        if self.held.len() >= PROMPTS {
            let message = format!(
                "{PROMPTS} prompts are already waiting; this one was not \
                                   accepted"
            );
            return Ok(Some(failed(FaultClass::Busy, message)));
        }
        self.held.push_back(command);
        Ok(None)
    }

    /// Returns the next command, if no skill is in progress.
    pub(super) fn take(&mut self) -> Option<Command> {
        if self.work.is_some() {
            None
        } else {
            self.held.pop_front()
        }
    }
}

/// Returns the input for a run that could not begin.
pub(super) fn failed(class: FaultClass, message: String) -> Input {
    Input::NotBegun(Outcome::Failed(Fault {
        class,
        status: None,
        message,
    }))
}
