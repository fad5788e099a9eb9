//! Branches of a conversation: a copy that begins with the history up to an entry.

use posse_port::store::{StoredEntry, Transcript};
use posse_protocol::EntryKind;

use crate::session::start_error::StartError;

/// How much of a session's history a copy of it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopiedHistory {
    /// All of it. If calls are open, the copy begins before the reply that asked for them: the
    /// original gets their results.
    All,
    /// Everything up to the session's own entry with this number.
    Through(u64),
}

impl CopiedHistory {
    /// Removes from a transcript what is not copied.
    pub(crate) fn cut(self, transcript: &mut Transcript) -> Result<(), StartError> {
        let kept = match self {
            Self::All => transcript.entries.len() - usize::from(!transcript.open_calls.is_empty()),
            Self::Through(at) => {
                let own = &transcript.entries[transcript.inherited..];
                let open = !transcript.open_calls.is_empty();
                transcript.inherited + place(own, at, open)?
            }
        };
        transcript.entries.truncate(kept);
        transcript.open_calls.clear();
        Ok(())
    }
}

/// Returns the number of entries up to the one with number `at`. `open` is true if the last one is a
/// reply whose calls have no results yet.
fn place(own: &[StoredEntry], at: u64, open: bool) -> Result<usize, StartError> {
    let Some(index) = own.iter().position(|stored| stored.entry.seq == at) else {
        let last = own.last().map(|stored| stored.entry.seq);
        let why = match last {
            Some(last) => format!("the session has the entries 0 to {last}"),
            None => "the session has no entries of its own".to_owned(),
        };
        return Err(StartError::Cut { at, why });
    };
    let answered = match own.get(index + 1) {
        Some(next) => next.entry.kind == EntryKind::Results,
        None => open,
    };
    // A provider accepts no calls without results.
    if own[index].entry.kind == EntryKind::Reply && answered {
        let why = format!(
            "it calls tools, whose results are entry {}; branch after that one",
            at + 1
        );
        return Err(StartError::Cut { at, why });
    }
    Ok(index + 1)
}
