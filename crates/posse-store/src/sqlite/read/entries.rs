//! Parts of transcripts.

use posse_port::store::{EntryPage, Page, Segment, StoreError};
use posse_protocol::AgentId;

use super::{SqliteFailure, SqliteHeads, SqliteReader};
use crate::entry_window::EntryWindow;

/// Returns a part of an agent's transcript.
pub(in super::super) fn entries(
    reader: &SqliteReader<'_>,
    agent: AgentId,
    page: &Page<u64>,
) -> Result<EntryPage, SqliteFailure> {
    let missing = || SqliteFailure::Refused(StoreError::NotFound { agent });
    let found = reader.agent(agent)?.ok_or_else(missing)?;
    let realm = found.session.realm;
    let mut segments = reader.segments(realm, agent)?;
    segments.push(Segment {
        agent,
        from: 0,
        to: found.own,
    });
    let window = EntryWindow::new(page, &segments);
    let (mut heads, mut entries) = (SqliteHeads::new(), Vec::new());
    for part in &window.parts {
        reader.entries(realm, *part, &mut heads, &mut entries)?;
    }
    Ok(EntryPage {
        total: window.total,
        inherited: window.total - found.own,
        first: window.first,
        entries,
    })
}
