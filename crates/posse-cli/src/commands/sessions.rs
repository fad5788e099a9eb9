//! `posse sessions`.

mod export;
mod list;
mod show;

use std::process::ExitCode;

use posse_port::store::Session;
use posse_protocol::{AgentId, Cost};

pub(crate) use self::export::value as entry_object;
pub(crate) use self::show::paragraph;
use crate::config::store::StoreArgs;

/// Look at the sessions that posse has kept.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
}

impl Sessions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let runtime = super::runtime()?;
        match self.command {
            Command::List(command) => runtime.block_on(command.run(&self.store)),
            Command::Show(command) => runtime.block_on(command.run(&self.store)),
            Command::Export(command) => runtime.block_on(command.run(&self.store)),
        }
    }
}

/// Ids as short as tells them apart.
pub(crate) fn shown_ids(ids: impl Iterator<Item = AgentId>) -> Vec<String> {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    let mut distinct_ids = ids.clone();
    distinct_ids.sort_unstable();
    distinct_ids.dedup();
    let width = list::distinct(&distinct_ids);
    ids.into_iter()
        .map(|id| id.get(..width).unwrap_or(&id).to_owned())
        .collect()
}

/// What a session is doing, in a word.
fn state(session: &Session) -> &'static str {
    match (session.holder.is_some(), session.state) {
        (true, _) => "open",
        // Its process has died under it.
        (false, state) if state.is_open() => "broken",
        (false, state) => state.as_str(),
    }
}

/// What it has cost; none if the price of any of it is not known.
pub(crate) fn cost(session: &Session) -> Option<Cost> {
    session.charges.iter().map(|charge| charge.cost).sum()
}

#[cfg(test)]
pub(crate) mod made {
    //! Hand-made sessions for the tests of what lists them.

    use std::path::PathBuf;

    use bytes::Bytes;
    use posse_port::model::Piece;
    use posse_port::store::{AgentState, Charge, NewEntry, StoredEntry, Transcript};
    use posse_protocol::{EntryKind, PermissionMode, ReplyFacts, StopReason, Usage};

    use super::*;

    pub(crate) const ID: &str = "0197f0aa-0000-7000-8000-000000000001";

    pub(crate) fn session() -> Session {
        Session {
            realm: ID.parse().unwrap(),
            agent: ID.parse().unwrap(),
            origin: None,
            starter: None,
            path: "/main".into(),
            model: "m".into(),
            mode: PermissionMode::Default,
            cwd: PathBuf::from("/work"),
            state: AgentState::Idle,
            ended: None,
            holder: None,
            created_ms: 1_000,
            used_ms: 61_000,
            first_prompt: Some(Bytes::from_static(
                br#"{"role":"user","content":[{"type":"text","text":"fix \u001b[2Jit"}]}"#,
            )),
            entries: 2,
            charges: vec![Charge {
                model: "m".into(),
                usage: Usage::default(),
                cost: Some(Cost::from_pico_usd(500_000_000_000)),
                purpose: posse_protocol::Purpose::Work,
                missed: 0,
            }],
            types: None,
        }
    }

    pub(super) fn transcript() -> Transcript {
        let piece = |bytes: &'static str| Piece {
            bytes: Bytes::from_static(bytes.as_bytes()),
            mark_at: None,
        };
        let entry = |seq, kind, bytes, reply| StoredEntry {
            agent: ID.parse().unwrap(),
            at_ms: 1_000,
            entry: NewEntry {
                seq,
                kind,
                head: None,
                piece: piece(bytes),
                checksum: 255,
                reply,
            },
        };
        let reply = ReplyFacts {
            id: "msg_1".into(),
            model: "m".into(),
            stop: Some(StopReason::ToolUse),
            usage: Usage::default(),
            missed: None,
        };
        Transcript {
            session: session(),
            dialect: "anthropic".into(),
            preamble: piece(""),
            segments: Vec::new(),
            entries: vec![
                entry(
                    0,
                    EntryKind::Prompt,
                    r#"{"role":"user","content":[{"type":"text","text":"fix \u001b[2Jit"}]}"#,
                    None,
                ),
                entry(
                    1,
                    EntryKind::Reply,
                    "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"I look.\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Read\",\"input\":{\n\"n\": 1.50}}]}",
                    Some(reply),
                ),
                entry(
                    2,
                    EntryKind::Results,
                    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"no\nsuch"}],"is_error":true}]}"#,
                    None,
                ),
            ],
            inherited: 0,
            open_calls: Vec::new(),
        }
    }
}
