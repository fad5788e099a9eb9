//! Questions of side queries.

use std::path::PathBuf;

use posse_protocol::{ContentBlock, Purpose, ToolContent};

/// Placeholder for the result of a call in progress.
const UNDER_WAY: &str = "Still running. Its result is not shown here.";

/// The system prompt of a model that a hook asks about something else than the whole conversation.
pub(crate) const HOOK_SYSTEM: &str = include_str!("side_query/hook_system.md");

/// Returns the same result for each of these calls, so that all who continue from here share the
/// bytes.
pub(crate) fn placeholders(calls: &[String]) -> Vec<ContentBlock> {
    let result = |id: &String| ContentBlock::ToolResult {
        tool_use_id: id.clone(),
        content: vec![ToolContent::text(UNDER_WAY)],
        is_error: false,
    };
    calls.iter().map(result).collect()
}

/// Question of a side query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SideInstruction {
    /// A summary that can replace its history.
    Compaction {
        /// What a person wants to be kept.
        keep: Option<String>,
    },
    /// The answer to a question.
    Question(String),
    /// Its progress.
    Progress,
    /// What is worth remembering.
    Memory {
        /// Directory of its notes, if it keeps any.
        notes: Option<PathBuf>,
    },
    /// Whether what a hook asks for holds.
    Hook {
        /// What it asks, with what happened.
        question: String,
    },
}

impl SideInstruction {
    /// Returns the purpose of the calls, for their charges.
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Compaction { .. } => Purpose::Compaction,
            Self::Question(_) => Purpose::Question,
            Self::Progress => Purpose::Progress,
            Self::Memory { .. } => Purpose::Memory,
            Self::Hook { .. } => Purpose::Hook,
        }
    }

    /// Returns the blocks that the model is sent.
    pub(crate) fn content(&self) -> Vec<ContentBlock> {
        let (words, more) = match self {
            Self::Compaction { keep } => {
                let keep = keep.as_ref().filter(|keep| !keep.trim().is_empty());
                let kept =
                    |keep| format!("The person wants the summary to keep this above all:\n{keep}");
                (include_str!("side_query/compaction.md"), keep.map(kept))
            }
            Self::Question(question) => (
                include_str!("side_query/question.md"),
                Some(question.clone()),
            ),
            Self::Progress => (include_str!("side_query/progress.md"), None),
            Self::Memory { notes: None } => (include_str!("side_query/memory.md"), None),
            Self::Memory {
                notes: Some(directory),
            } => (
                include_str!("side_query/notes.md"),
                Some(format!("Your notes are in {}.", directory.display())),
            ),
            Self::Hook { question } => (include_str!("side_query/hook.md"), Some(question.clone())),
        };
        [Some(words.trim_end().to_owned()), more]
            .into_iter()
            .flatten()
            .map(ContentBlock::text)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_says_stands_in_a_block_of_its_own() {
        let blocks = |words: SideInstruction| words.content().len();
        assert_eq!(
            blocks(SideInstruction::Compaction {
                keep: Some("the ports".into())
            }),
            2
        );
        assert_eq!(
            blocks(SideInstruction::Compaction {
                keep: Some(" ".into())
            }),
            1
        );
        let asked = SideInstruction::Question("why <so>?".into()).content();
        assert_eq!(asked.last(), Some(&ContentBlock::text("why <so>?")));
    }
}
