//! `posse sessions show`.

use std::process::ExitCode;

use posse_port::store::Transcript;
use serde_json::json;

use super::{cost, export, list, state};
use crate::config::store::StoreArgs;
use crate::output::time::moment;
use crate::output::transcript::{Part, parts, shortened};
use crate::output::{in_words, json_line, print, tame};
use crate::select::sessions;

/// The longest input of a call and the longest answer that are shown.
const SHOWN: usize = 400;

/// Show what was said and done in a session.
///
/// Long inputs and answers are shortened; `posse sessions export` gives everything.
#[derive(clap::Args)]
pub(super) struct Show {
    /// The session; the beginning of its id will do [default: the one of this directory used last]
    id: Option<String>,
    /// One JSON object, with everything
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let store = crate::assemble::session::look_into_store(store)?;
        let session = sessions::meant(store.as_ref(), self.id.as_deref()).await?;
        let transcript = store.read(session.agent).await?;
        if self.json {
            let mut object = list::object(&transcript.session);
            let entries: Result<Vec<_>, _> = transcript.entries.iter().map(export::value).collect();
            object["entries"] = json!(entries?);
            print(json_line(&object).as_bytes())?;
        } else {
            print(readable(&transcript).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn readable(transcript: &Transcript) -> String {
    let session = &transcript.session;
    let mut out = format!(
        "\x1b[1msession {}\x1b[0m\n{} · {} · {} · {} · in {}\n",
        session.agent,
        state(session),
        tame(&session.model),
        session.mode,
        in_words(cost(session)),
        tame(&session.cwd.to_string_lossy()),
    );
    for stored in &transcript.entries {
        for part in parts(&stored.entry.sent()) {
            out.push_str(&paragraph(&part, stored.at_ms));
        }
    }
    out
}

/// A piece of a transcript, for people.
pub(crate) fn paragraph(part: &Part, at_ms: i64) -> String {
    match part {
        Part::Prompt(text) => {
            let at = moment(at_ms);
            let at = at.get(..16).unwrap_or(&at).replace('T', " ");
            format!(
                "\n\x1b[1m> {}\x1b[0m \x1b[2m({at} UTC)\x1b[0m\n",
                tame(text.trim_end()).replace('\n', "\n  ")
            )
        }
        Part::Reply(text) => format!("\n{}\n", tame(text.trim_end())),
        Part::Thinking(text) if text.trim().is_empty() => "\x1b[2m  (thought)\x1b[0m\n".to_owned(),
        Part::Thinking(text) => format!("\x1b[2m  ({})\x1b[0m\n", brief(text)),
        Part::Call { tool, input } => format!("  → {} {}\n", tame(tool), brief(input)),
        Part::Answer { text, is_error } => {
            format!(
                "  \x1b[2m{} {}\x1b[0m\n",
                if *is_error { "✗" } else { "←" },
                brief(text)
            )
        }
        Part::Other(name) => format!("  [{}]\n", tame(name)),
    }
}

fn brief(text: &str) -> String {
    tame(&shortened(text.trim(), SHOWN)).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::super::made::{ID, transcript};
    use super::*;

    #[test]
    fn a_transcript_reads_from_top_to_bottom() {
        let shown = readable(&transcript());
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(
            plain,
            format!(
                "session {ID}\nidle · m · default · $0.5000 · in /work\n\n> fix \\u{{1b}}[2Jit (1970-01-01 00:00 UTC)\n\n\
                 I look.\n  → Read {{\"n\":1.5}}\n  ✗ no\n    such\n"
            )
        );
    }

    #[test]
    fn what_is_long_is_shortened() {
        let part = Part::Answer {
            text: "x".repeat(10_000),
            is_error: false,
        };
        assert!(paragraph(&part, 0).chars().count() < SHOWN + 20);
    }
}
