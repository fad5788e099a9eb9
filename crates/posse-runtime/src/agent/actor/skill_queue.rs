//! Skills that a person has called, and the commands that wait behind them.

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

/// What a person has called and what waits behind it.
#[derive(Default)]
pub(super) struct SkillQueue {
    /// Commands that wait until what was called before them is done.
    pub(super) held: VecDeque<Command>,
    pub(super) work: Option<BoxFuture<'static, SkillDone>>,
    pub(super) cancel: CancellationToken,
    /// An agent that is to be started when that is durable.
    pub(super) delegation: Option<(Ready, Fork)>,
}

/// What came of it.
pub(super) enum SkillDone {
    /// The instructions are ready, or are not.
    Ready {
        words: Vec<ContentBlock>,
        ready: Box<Result<Ready, Unready>>,
    },
    /// An agent has followed them, or could not be started.
    Delegated(Box<Result<SkillOutcome, ToolError>>),
}

impl SkillQueue {
    /// Whether something is under way or waits.
    pub(super) fn is_busy(&self) -> bool {
        self.work.is_some() || !self.held.is_empty()
    }

    /// Ends when what is under way has.
    pub(super) async fn next(&mut self) -> SkillDone {
        maybe(&mut self.work).await
    }

    /// Tells what is under way to end.
    pub(super) fn stop(&self) {
        if self.work.is_some() {
            self.cancel.cancel();
        }
    }

    /// Nothing that waits is begun.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        self.stop();
    }

    /// Keeps a command that has to wait for its turn: what calls a skill, and whatever comes after one and
    /// would begin a run. Else gives it back.
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

    /// The command whose turn it is, if nothing is under way.
    pub(super) fn take(&mut self) -> Option<Command> {
        if self.work.is_some() {
            None
        } else {
            self.held.pop_front()
        }
    }
}

/// A run that could not begin.
pub(super) fn failed(class: FaultClass, message: String) -> Input {
    Input::NotBegun(Outcome::Failed(Fault {
        class,
        status: None,
        message,
    }))
}
