//! `posse sessions show`.

use std::process::ExitCode;

use posse_port::confinement::Tier;
use posse_port::store::{CallTier, SubtreeSpending, Transcript};
use posse_protocol::AgentId;
use serde_json::{Value, json};

use crate::config::store::StoreArgs;
use crate::output::{json_line, one_line, print, tame, width};
use crate::present::costs::{Tally, about, add};
use crate::present::entries::{self, TranscriptView};
use crate::present::history;
use crate::present::sessions::{object, state};
use crate::select::sessions;

/// Show the transcript of a session or of any of its agents.
///
/// Takes the ID of a session, of a sub-agent or of a member of a team, also after it has ended or
/// left; `posse sessions tree` lists them. Long inputs and answers are shortened;
/// `posse sessions export` writes everything.
#[derive(clap::Args)]
pub(super) struct ShowSession {
    /// Session or agent; a unique prefix of its ID is enough, or the name of an agent of the last
    /// session used in this directory [default: that session]
    id: Option<String>,
    /// Print one JSON object, with everything
    #[arg(long)]
    json: bool,
}

impl ShowSession {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let store = crate::assemble::store::look_into_store(store)?;
        let agent = sessions::any_agent(store.as_ref(), self.id.as_deref()).await?;
        let session = sessions::root_of(store.as_ref(), &agent).await?;
        let transcript = store.read(agent.agent).await?;
        let spending = store.spending(vec![agent.agent]).await?;
        let spending = spending.into_iter().next().unwrap_or_default();
        let tiers = store.tiers(agent.agent).await?;
        if self.json {
            let mut object = object(&transcript.record, &spending);
            add(&mut object, about(&transcript.record));
            object["session_id"] = json!(session);
            let entries: Result<Vec<_>, _> =
                transcript.entries.iter().map(entries::value).collect();
            object["entries"] = json!(entries?);
            object["commands"] = tiers.iter().map(command).collect();
            print(json_line(&object).as_bytes())?;
        } else {
            let shown = readable(&transcript, &spending, &tiers, session, width());
            print(shown.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a call that ran a command, with the sandbox that held it.
fn command(call: &CallTier) -> Value {
    let CallTier { key, tier } = call;
    json!({"seq": key.seq, "ordinal": key.ordinal, "tier": tier.as_str()})
}

/// Returns how the commands of an agent were held; none if it ran none.
fn held(tiers: &[CallTier]) -> Option<String> {
    let of = |tier: Tier| tiers.iter().filter(|call| call.tier == tier).count();
    let counts = Tier::ALL.into_iter().rev().map(|tier| (tier, of(tier)));
    let counts = counts.filter(|(_, count)| *count > 0);
    let parts = counts.map(|(tier, count)| match tier {
        Tier::C => format!("{count} without a sandbox"),
        tier => format!("{count} in tier {tier}"),
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| format!("commands: {}", parts.join(", ")))
}

/// Returns the transcript of an agent of `session` for people.
fn readable(
    transcript: &Transcript,
    spending: &SubtreeSpending,
    tiers: &[CallTier],
    session: AgentId,
    columns: Option<usize>,
) -> String {
    let agent = &transcript.record;
    let mut out = match &agent.origin {
        None => format!("\x1b[1msession {}\x1b[0m\n", agent.agent),
        Some(origin) => format!(
            "\x1b[1magent {}\x1b[0m\n{} ({}) of session {session}\n",
            agent.agent,
            one_line(&origin.description),
            one_line(&origin.agent_type),
        ),
    };
    let mut facts = vec![
        state(agent).to_owned(),
        tame(&agent.model),
        agent.mode.to_string(),
        Tally::of(&spending.charges).in_words(),
    ];
    facts.extend((spending.agents > 1).then(|| format!("{} agents", spending.agents)));
    facts.extend(held(tiers));
    facts.push(format!("in {}", tame(&agent.cwd.to_string_lossy())));
    out.push_str(&format!("{}\n", facts.join(" · ")));
    let cwd = &agent.cwd;
    let view = TranscriptView { columns, cwd };
    out.push_str(&history::readable(&transcript.entries, view));
    out
}

#[cfg(test)]
mod tests {
    use posse_port::store::{CallKey, Origin};

    use super::*;
    use crate::output::time::minute;
    use crate::present::fixtures::{ID, transcript};

    /// The transcript of the fixture as a person reads it, with `agents` in its subtree.
    fn shown(transcript: &Transcript, agents: u64) -> String {
        let spending = SubtreeSpending {
            agents,
            charges: transcript.record.charges.clone(),
        };
        let shown = readable(transcript, &spending, &[], ID.parse().unwrap(), None);
        anstream::adapter::strip_str(&shown).to_string()
    }

    #[test]
    fn a_transcript_reads_from_top_to_bottom() {
        let at = minute(1_000);
        assert_eq!(
            shown(&transcript(), 1),
            format!(
                "session {ID}\nidle · m · default · $0.50 · in /work\n\n> fix \\u{{1b}}[2Jit ({at})\n\n\
                 I look.\n  → Read\n  ✗ no\n    such\n"
            )
        );
    }

    #[test]
    fn the_head_says_how_commands_were_held() {
        let call = |ordinal, tier| CallTier {
            key: CallKey { seq: 1, ordinal },
            tier,
        };
        assert_eq!(held(&[]), None);
        let tiers = [call(0, Tier::C), call(1, Tier::A), call(2, Tier::A)];
        let expected = "commands: 2 in tier A, 1 without a sandbox";
        assert_eq!(held(&tiers).as_deref(), Some(expected));
    }

    #[test]
    fn the_head_says_whose_transcript_it_is() {
        let mut transcript = transcript();
        assert!(shown(&transcript, 3).contains("· $0.50 · 3 agents · in /work\n"));
        transcript.record.origin = Some(Box::new(Origin {
            parent: ID.parse().unwrap(),
            call: CallKey { seq: 0, ordinal: 0 },
            call_id: "t".into(),
            agent_type: "Explore".into(),
            name: None,
            description: "find\ncallers".into(),
            terms: String::new(),
        }));
        let head = format!("agent {ID}\nfind callers (Explore) of session {ID}\nidle · m");
        assert!(shown(&transcript, 1).starts_with(&head));
    }
}
