//! `posse sessions export`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use posse_port::store::StoredEntry;
use posse_protocol::{AgentId, EntryKind, ReplyFacts};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::store::StoreArgs;
use crate::output::print_exactly;
use crate::output::time::moment;
use crate::select::sessions;

/// Write a session as JSON, one line per entry.
///
/// Messages are given as they were sent to the model, byte for byte.
#[derive(clap::Args)]
pub(super) struct Export {
    /// The session; the beginning of its id will do [default: the one of this directory used last]
    id: Option<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// An entry, with everything that is known of it.
#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    kind: EntryKind,
    at: String,
    agent: AgentId,
    checksum: String,
    /// As sent: what stands between the brackets is what the checksum is of. None if it is no JSON.
    messages: Option<Box<RawValue>>,
    /// The same as a text, only where it cannot stand on a line as it is: with line breaks, or damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<&'a ReplyFacts>,
}

impl Export {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let store = crate::assemble::session::look_into_store(store)?;
        let session = sessions::meant(store.as_ref(), self.id.as_deref()).await?;
        let transcript = store.read(session.agent).await?;
        let mut file = match &self.output {
            Some(path) => Some(
                std::fs::File::create(path)
                    .map(std::io::BufWriter::new)
                    .with_context(|| format!("cannot write {}", path.display()))?,
            ),
            None => None,
        };
        let unwritten = || {
            format!(
                "cannot write {}",
                self.output.as_deref().unwrap_or(Path::new("")).display()
            )
        };
        for entry in &transcript.entries {
            let line = format!("{}\n", line(entry)?);
            match &mut file {
                Some(file) => file.write_all(line.as_bytes()).with_context(unwritten)?,
                None => print_exactly(&line)?,
            }
        }
        if let Some(mut file) = file {
            file.flush()
                .and_then(|()| file.get_ref().sync_all())
                .with_context(unwritten)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// An entry as one line.
fn line(stored: &StoredEntry) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&described(stored))?)
}

/// An entry as a value, for `show --json`.
pub(crate) fn value(stored: &StoredEntry) -> anyhow::Result<serde_json::Value> {
    Ok(serde_json::to_value(described(stored))?)
}

fn described(stored: &StoredEntry) -> Line<'_> {
    let entry = &stored.entry;
    let text = String::from_utf8_lossy(&entry.sent()).into_owned();
    // Outside of its texts JSON may hold line breaks, and there a blank says the same.
    let breaks = |c: char| c == '\n' || c == '\r';
    let messages = RawValue::from_string(format!("[{}]", text.replace(breaks, " "))).ok();
    Line {
        seq: entry.seq,
        kind: entry.kind,
        at: moment(stored.at_ms),
        agent: stored.agent,
        checksum: format!("{:016x}", entry.checksum),
        exact: (messages.is_none() || text.contains(breaks)).then_some(text),
        messages,
        reply: entry.reply.as_ref(),
    }
}

#[cfg(test)]
mod tests {
    use posse_port::model::Piece;

    use super::super::made::transcript;
    use super::*;

    #[test]
    fn a_line_keeps_the_bytes_of_its_entry() {
        let transcript = transcript();
        let lines: Vec<String> = transcript
            .entries
            .iter()
            .map(|entry| line(entry).unwrap())
            .collect();
        assert!(lines[0].contains(
            r#""messages":[{"role":"user","content":[{"type":"text","text":"fix \u001b[2Jit"}]}]"#
        ));
        assert!(
            lines[0].starts_with(
                r#"{"seq":0,"kind":"prompt","at":"1970-01-01T00:00:01.000Z","agent":""#
            )
        );
        assert!(
            lines[0].contains(r#""checksum":"00000000000000ff""#) && !lines[0].contains("exact")
        );
        assert!(
            lines[1].contains("\"input\":{ \"n\": 1.50}") && !lines[1].contains('\n'),
            "{}",
            lines[1]
        );
        let told: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(
            told["exact"].as_str().unwrap().as_bytes(),
            &transcript.entries[1].entry.piece.bytes[..]
        );
        assert_eq!(told["reply"]["id"], "msg_1");
        let mut fork = transcript.entries[0].clone();
        let head = br#"{"role":"user","content":[{"type":"text","text":"held"}"#;
        fork.entry.head = Some(Piece {
            bytes: head.as_slice().into(),
            mark_at: None,
        });
        fork.entry.piece.bytes = br#"{"type":"text","text":"go"}]}"#.as_slice().into();
        let told: serde_json::Value = serde_json::from_str(&line(&fork).unwrap()).unwrap();
        assert_eq!(
            told["messages"][0]["content"][1]["text"], "go",
            "what siblings share is part of it"
        );
        let mut broken = transcript.entries[0].clone();
        broken.entry.piece.bytes = b"{".as_slice().into();
        let told: serde_json::Value = serde_json::from_str(&line(&broken).unwrap()).unwrap();
        assert_eq!(
            (&told["messages"], &told["exact"]),
            (&serde_json::Value::Null, &"{".into()),
            "damaged"
        );
    }
}
