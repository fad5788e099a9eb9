//! Prompts that wait for an agent that works.

use crate::ContentBlock;

/// A prompt or skill that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedPrompt {
    /// Its number, by which it is changed. No other prompt of the agent in this process has it.
    pub id: u64,
    /// Its text.
    pub text: String,
    /// Number of its images.
    pub images: u32,
    /// True if it is shown at the next tool boundary of the run. Otherwise, or if there is none, it
    /// begins a run of its own.
    pub joins: bool,
}

/// A change of a prompt that waits.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptChange {
    /// It says this instead.
    Edit(Vec<ContentBlock>),
    /// It is taken back: the agent never sees it.
    TakeBack,
    /// It is shown at the next tool boundary of the run, or begins a run of its own.
    Join(bool),
}
