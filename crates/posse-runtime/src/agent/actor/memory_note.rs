//! Notes that a person has for the memory files.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::{EventKind, MemoryScope};

use crate::agent::actor::Actor;
use crate::definition::instructions::{NoteError, SessionInstructions};

/// Maximum length of a note, in bytes.
const LONGEST: usize = 4096;

/// Adds a note to a memory file, and tells which.
pub(super) fn add(actor: &Actor, text: &str, scope: MemoryScope) {
    // One line, so that it stays one entry of the file's list.
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let instructions = actor.session.setup.spawning.instructions.clone();
    let sink = actor.sink.clone();
    // On a task of its own: it waits for the disk, and perhaps for another process.
    actor.supervisor.start_errand(async move {
        let event = match write(instructions, line.clone(), scope).await {
            Ok(file) => EventKind::Noted {
                file: file.display().to_string(),
                line,
            },
            Err(error) => EventKind::Warning(format!(
                "the note was not added: {}",
                posse_port::in_a_line(&error)
            )),
        };
        sink.emit(event).await;
    });
}

/// Writes a note. Returns the file.
async fn write(
    instructions: Option<Arc<SessionInstructions>>,
    line: String,
    scope: MemoryScope,
) -> Result<PathBuf, NoteError> {
    let instructions = instructions.ok_or(NoteError::NotRead(scope))?;
    match line.len() {
        0 => return Err(NoteError::Empty),
        LONGEST.. => return Err(NoteError::TooLong),
        _ => {}
    }
    let add = move || instructions.keeper.add(&line, scope);
    let written = tokio::task::spawn_blocking(add).await;
    written.unwrap_or(Err(NoteError::Lost))
}
