//! Queue of skills that a person has called, and of commands that wait behind them.

use std::collections::VecDeque;

use posse_port::BoxFuture;
use posse_port::tool::ToolError;
use posse_protocol::{
    Command, ContentBlock, Fault, FaultClass, Outcome, PromptChange, QueuedPrompt,
};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::maybe;
use crate::agent::lifecycle::SkillOutcome;
use crate::agent::skill::{Ready, Unready};
use crate::agent::step::{Input, PROMPTS, queued};
use crate::definition::skill::Fork;

/// The skill in progress, and what waits behind it.
#[derive(Default)]
pub(super) struct SkillQueue {
    /// Commands that wait for the skill before them.
    pub(super) held: VecDeque<HeldCommand>,
    /// The skill that is being prepared or followed.
    pub(super) work: Option<BoxFuture<'static, SkillDone>>,
    pub(super) cancel: CancellationToken,
    /// The skill whose agent is started once the entry about it is stored.
    pub(super) delegation: Option<(Ready, Fork)>,
}

/// A command that waits, with its number among the prompts that wait.
pub(super) struct HeldCommand {
    pub(super) id: u64,
    pub(super) command: Command,
}

impl HeldCommand {
    /// Returns it as viewers are told of it; none if it has no words.
    fn queued(&self) -> Option<QueuedPrompt> {
        match &self.command {
            Command::Prompt(words) | Command::Skill { words, .. } => {
                Some(queued(self.id, words, false))
            }
            _ => None,
        }
    }
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
    /// Servers have given what a prompt names, or the reason why they have not.
    Served(Result<ServedWords, NotServed>),
}

/// Why servers have given nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotServed(pub(super) String);

/// A prompt with what servers have given for it.
pub(super) struct ServedWords {
    pub(super) words: Vec<ContentBlock>,
    /// What could not be read.
    pub(super) warnings: Vec<String>,
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

    /// Keeps a command that must wait: every skill, whatever comes after one and would begin a run,
    /// and what is prepared as skills are. Returns any other command.
    pub(super) fn hold(
        &mut self,
        command: Command,
        is_prepared: bool,
        next_id: impl FnOnce() -> u64,
    ) -> Result<Option<Input>, Command> {
        let begins = matches!(
            command,
            Command::Prompt(_) | Command::Continue | Command::Compact { .. }
        );
        match &command {
            Command::Skill { .. } => {}
            _ if is_prepared => {}
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
        let id = next_id();
        self.held.push_back(HeldCommand { id, command });
        Ok(None)
    }

    /// Returns the prompts and skills that wait.
    pub(super) fn queued(&self) -> impl Iterator<Item = QueuedPrompt> {
        self.held.iter().filter_map(HeldCommand::queued)
    }

    /// Changes a prompt that waits. Returns false if it does not wait here, or cannot be changed so:
    /// what waits for a skill joins no run, and a skill's words are not edited.
    pub(super) fn change(&mut self, id: u64, change: PromptChange) -> bool {
        let is_meant = |held: &HeldCommand| held.id == id && held.queued().is_some();
        let Some(at) = self.held.iter().position(is_meant) else {
            return false;
        };
        match (change, &mut self.held[at].command) {
            (PromptChange::TakeBack, _) => drop(self.held.remove(at)),
            (PromptChange::Edit(words), Command::Prompt(prompt)) => *prompt = words,
            (PromptChange::Join(false), _) => {}
            _ => return false,
        }
        true
    }

    /// Returns the next command, if no skill is in progress.
    pub(super) fn take(&mut self) -> Option<Command> {
        if self.work.is_some() {
            None
        } else {
            self.held.pop_front().map(|held| held.command)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<ContentBlock> {
        vec![ContentBlock::text(text)]
    }

    // proves WA-07 (part: skills)
    #[test]
    fn what_waits_behind_a_skill_is_seen_and_changed() {
        let mut queue = SkillQueue::default();
        let skill = Command::Skill {
            name: "look".into(),
            arguments: String::new(),
            words: words("/look"),
        };
        for (id, command) in [
            (1, skill),
            (2, Command::Prompt(words("more"))),
            (3, Command::Continue),
        ] {
            assert!(matches!(queue.hold(command, false, || id), Ok(None)));
        }
        let seen = |queue: &SkillQueue| {
            let each = queue.queued().map(|prompt| (prompt.id, prompt.text));
            each.collect::<Vec<_>>()
        };
        assert_eq!(seen(&queue), [(1, "/look".into()), (2, "more".into())]);
        assert!(queue.change(2, PromptChange::Edit(words("less"))));
        assert!(queue.change(2, PromptChange::Join(false)));
        for (id, change) in [
            (1, PromptChange::Edit(words("/other"))),
            (2, PromptChange::Join(true)),
            (3, PromptChange::TakeBack),
            (4, PromptChange::TakeBack),
        ] {
            assert!(!queue.change(id, change), "{id}");
        }
        assert!(queue.change(1, PromptChange::TakeBack));
        assert_eq!(seen(&queue), [(2, "less".into())]);
    }
}
