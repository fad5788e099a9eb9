//! Short ways to say steps, for contracts and properties.

use posse_protocol::{AgentId, EntryKind, PermissionMode, RealmId};
use posse_runtime::port::model::Piece;
use posse_runtime::port::store::{
    Birth, CallChange, CallChangeKind, CallKey, Epoch, NewEntry, Step, StoreError, Transcript, checksum,
};

/// The one realm of these words.
pub fn realm() -> RealmId {
    "01990000-0000-7000-8000-000000000000".parse().unwrap()
}

/// An agent whose id begins with `number`.
pub fn agent(number: u64) -> AgentId {
    format!("{number:02x}990000-0000-7000-8000-0000000000a0").parse().unwrap()
}

/// A step that does nothing yet.
pub fn step(number: u64, epoch: u64) -> Step {
    Step::new(realm(), agent(number), Epoch(epoch), 10)
}

/// The first step of a root agent.
pub fn birth(number: u64) -> Step {
    let birth = Birth {
        parent: None,
        path: "/main".into(),
        model: "a-model".into(),
        dialect: "test".into(),
        mode: PermissionMode::Default,
        cwd: "/work".into(),
        preamble: Piece { bytes: "\"system\":\"hello\"".into(), mark_at: Some(number as usize) },
        segments: Vec::new(),
    };
    Step { birth: Some(Box::new(birth)), ..step(number, 1) }
}

/// An entry, with the checksum of one that follows nothing.
pub fn entry(seq: u64, kind: EntryKind, text: &str) -> NewEntry {
    let piece = Piece { bytes: text.to_owned().into(), mark_at: None };
    NewEntry { seq, kind, checksum: checksum(0, seq, kind, &piece.bytes), piece, reply: None }
}

/// Something that happened to a tool call.
pub fn call(seq: u64, ordinal: u32, change: CallChangeKind) -> CallChange {
    CallChange { key: CallKey { seq, ordinal }, change }
}

/// The first of an agent's own entries whose checksum is wrong.
pub fn verify(transcript: &Transcript) -> Result<(), u64> {
    let mut last = 0;
    for stored in &transcript.entries[transcript.inherited..] {
        let NewEntry { seq, kind, piece, checksum: stored, .. } = &stored.entry;
        last = checksum(last, *seq, *kind, &piece.bytes);
        if last != *stored {
            return Err(*seq);
        }
    }
    Ok(())
}

/// What became of something, in a word.
pub fn fate<T>(result: &Result<T, StoreError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(StoreError::Fenced { .. }) => "fenced",
        Err(StoreError::Held { .. }) => "held",
        Err(StoreError::NotFound { .. }) => "not found",
        Err(StoreError::Damaged { .. }) => "damaged",
        Err(StoreError::Full { .. }) => "full",
        Err(StoreError::Engine { .. }) => "engine",
        Err(StoreError::TooNew { .. }) => "too new",
        Err(StoreError::BadStep(_)) => "bad step",
    }
}
