//! `posse sessions show`.

use std::process::ExitCode;

use posse_port::store::Transcript;
use serde_json::json;

use crate::config::store::StoreArgs;
use crate::output::transcript::parts;
use crate::output::{in_words, json_line, print, tame};
use crate::present::entries;
use crate::present::sessions::{cost, object, state};
use crate::select::sessions;

/// Show the transcript of a session.
///
/// Long inputs and answers are shortened; `posse sessions export` writes everything.
#[derive(clap::Args)]
pub(super) struct ShowSession {
    /// Session; a unique prefix of its ID is enough [default: the last one used in this directory]
    id: Option<String>,
    /// Print one JSON object, with everything
    #[arg(long)]
    json: bool,
}

impl ShowSession {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let store = crate::assemble::store::look_into_store(store)?;
        let session = sessions::meant(store.as_ref(), self.id.as_deref()).await?;
        let transcript = store.read(session.agent).await?;
        if self.json {
            let mut object = object(&transcript.record);
            let entries: Result<Vec<_>, _> =
                transcript.entries.iter().map(entries::value).collect();
            object["entries"] = json!(entries?);
            print(json_line(&object).as_bytes())?;
        } else {
            print(readable(&transcript).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn readable(transcript: &Transcript) -> String {
    let session = &transcript.record;
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
            out.push_str(&entries::paragraph(&part, stored.at_ms));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::fixtures::{ID, transcript};

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
}
