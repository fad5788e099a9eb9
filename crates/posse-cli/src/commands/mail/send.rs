//! `posse mail send`.

use std::process::ExitCode;

use posse_port::store::{Address, Done, Op, Receipt, Refusal, Store};
use posse_protocol::{MailKind, Name};
use serde_json::json;

use crate::error::Advised;
use crate::headless::input::stdin::text;
use crate::output::transcript::shortened;
use crate::output::{json_line, print, tame};
use crate::select::recipients::RecipientArgs;
use crate::select::recipients::{ALL, Recipients, address};
use crate::select::tasks::operate;

/// Maximum length of a summary that is made from the text.
const SUMMARY: usize = 80;

/// Send mail to agents, from you.
///
/// A working agent reads it between two tool calls; for others it waits until their session
/// continues.
#[derive(clap::Args)]
pub(super) struct SendMail {
    /// Recipient: the name of a member or a sub-agent, name@team, a prefix of an agent's ID, a path
    /// like /main, or '*' for a whole team
    to: String,
    /// Text; `-` reads it from standard input
    text: String,
    /// Summary in a few words, for lists [default: its first line]
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// Print one JSON object per recipient
    #[arg(long)]
    json: bool,
}

impl SendMail {
    pub(super) async fn run(
        self,
        store: &dyn Store,
        mut place: RecipientArgs,
    ) -> anyhow::Result<ExitCode> {
        let (to, team) = address(&self.to)?;
        place.team = team.or(place.team);
        let body = text(self.text)?;
        if body.trim().is_empty() {
            anyhow::bail!(Advised {
                what: "there is nothing to send".into(),
                advice: "posse mail send --team parser alice \"look at the lexer first\"".into(),
            });
        }
        let circle = Recipients::of(store, &place).await?;
        let to = match (&circle.meant(&to)?[..], &circle.team) {
            (_, Some(team)) if to == ALL => Address::Others { team: team.clone() },
            ([found], team) => match (team, found.name.parse::<Name>()) {
                (Some(team), Ok(name)) => Address::Member {
                    team: team.clone(),
                    name,
                },
                _ => Address::Agent(found.agent),
            },
            _ => anyhow::bail!("there is no recipient"),
        };
        let summary = self.summary.unwrap_or_else(|| first_line(&body));
        let id = uuid::Uuid::now_v7().into();
        let op = Op::Send {
            id,
            to,
            kind: MailKind::Text,
            summary,
            body,
        };
        let Done::Sent(receipts) = operate(store, circle.realm, op).await.map_err(explained)?
        else {
            anyhow::bail!("the store did something else");
        };
        for receipt in &receipts {
            let line = if self.json {
                object(receipt)
            } else {
                readable(receipt)
            };
            print(line.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn first_line(text: &str) -> String {
    shortened(
        text.lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default(),
        SUMMARY,
    )
}

fn object(receipt: &Receipt) -> String {
    json_line(&json!({
        "to": receipt.name, "agent_id": receipt.to, "number": receipt.number,
    }))
}

fn readable(receipt: &Receipt) -> String {
    format!("sent to {}: it waits in its inbox\n", tame(&receipt.name))
}

/// Replaces the error for a text that is too long by one that counts the summary, too.
fn explained(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(Refusal::TooLong { bytes, most }) => anyhow::Error::new(Advised {
            what: format!("text and summary have {bytes} bytes together; the limit is {most}"),
            advice: "shorten it, or put it into a file and name the file".into(),
        }),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_first_line() {
        assert_eq!(first_line("\n  look here\nand there"), "look here");
        assert_eq!(first_line(&"x".repeat(200)).chars().count(), SUMMARY);
    }
}
