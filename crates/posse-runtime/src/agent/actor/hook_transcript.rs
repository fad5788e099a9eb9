//! The file in which hooks find what was said: a line for each message, in the shape that scripts
//! know. It is written only where there are hooks.

use std::path::{Path, PathBuf};

use posse_port::model::Encoded;
use posse_protocol::AgentId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::agent::actor::Actor;
use crate::agent::output::Output;
use crate::agent::step::Draft;

/// The file of an agent.
pub(super) struct HookTranscript {
    output: Output,
    facts: LineFacts,
}

/// What every line says.
struct LineFacts {
    session: AgentId,
    cwd: PathBuf,
    is_sub_agent: bool,
}

/// A line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    r#type: &'a str,
    uuid: Uuid,
    session_id: AgentId,
    cwd: &'a Path,
    is_sidechain: bool,
    message: &'a RawValue,
}

#[derive(Deserialize)]
struct Speaker<'a> {
    role: &'a str,
}

impl HookTranscript {
    /// Begins the file with all that was said so far. What an earlier process has written goes.
    pub(super) fn begin(actor: &Actor) -> Self {
        let path = actor.session.transcript(actor.identity.agent);
        // If it stays, its lines are there twice: that is better than none.
        let _ = std::fs::remove_file(&path);
        let mut transcript = Self {
            output: Output::new(path),
            facts: LineFacts {
                session: actor.session.root,
                cwd: actor.machine.rights().workspace().cwd.clone(),
                is_sub_agent: !actor.role.is_main(),
            },
        };
        transcript.write(actor.prefix.history.encoded_entries());
        transcript
    }

    /// Adds entries that are stored.
    pub(super) fn add(&mut self, actor: &Actor, entries: &[Draft]) {
        let encoded = entries.iter();
        let encoded: Vec<Encoded> = encoded
            .map(|entry| actor.ports.model.entry(&entry.message))
            .collect();
        self.write(&encoded);
    }

    pub(super) fn path(&self) -> &Path {
        self.output.path()
    }

    fn write(&mut self, encoded: &[Encoded]) {
        let lines: String = encoded
            .iter()
            .flat_map(|encoded| self.facts.lines(&encoded.bytes))
            .collect();
        // Hooks run without it, too.
        let _ = self.output.append(&lines);
    }
}

impl LineFacts {
    /// Returns the lines of encoded messages, which commas join.
    fn lines(&self, messages: &[u8]) -> Vec<String> {
        let list = [b"[", messages, b"]"].concat();
        let messages: Vec<&RawValue> = serde_json::from_slice(&list).unwrap_or_default();
        let line = |message: &&RawValue| {
            let speaker: Speaker<'_> = serde_json::from_str(message.get()).ok()?;
            let line = Line {
                r#type: speaker.role,
                uuid: Uuid::now_v7(),
                session_id: self.session,
                cwd: &self.cwd,
                is_sidechain: self.is_sub_agent,
                message,
            };
            Some(serde_json::to_string(&line).ok()? + "\n")
        };
        messages.iter().filter_map(line).collect()
    }
}
