//! `posse mail send`.

use std::process::ExitCode;

use posse_protocol::{MailKind, Name};
use posse_runtime::port::store::{Address, Done, Op, Receipt, Store};
use serde_json::json;

use super::WhereArgs;
use super::recipient::Circle;
use crate::commands::task::{operate, text};
use crate::hint::Advised;
use crate::output::{json_line, print, tame};
use crate::transcript::shortened;

/// The longest summary that is made from a text.
const SUMMARY: usize = 80;

/// Send agents something, from you.
///
/// One that works gets it with the results of what it is doing; one that does not run finds it when it is
/// resumed.
#[derive(clap::Args)]
pub(super) struct Send {
    /// Who gets it: a member's name, name@team, the beginning of an agent's id, or '*' for all of a team
    to: String,
    /// What to say; `-` reads it from standard input
    text: String,
    /// In a few words, for lists [default: its first line]
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// One JSON object per recipient
    #[arg(long)]
    json: bool,
}

impl Send {
    pub(super) async fn run(self, store: &dyn Store, mut place: WhereArgs) -> anyhow::Result<ExitCode> {
        let (to, team) = address(&self.to)?;
        place.team = team.or(place.team);
        let body = text(self.text)?;
        if body.trim().is_empty() {
            anyhow::bail!(Advised {
                what: "there is nothing to send".into(),
                advice: "posse mail send --team parser alice \"look at the lexer first\"".into(),
            });
        }
        let circle = Circle::of(store, &place).await?;
        let to = match (to.as_str(), &circle.team) {
            ("*", Some(team)) => Address::Others { team: team.clone() },
            ("*", None) => anyhow::bail!(Advised {
                what: "`*` means all of a team".into(),
                advice: "say which: --team NAME".into(),
            }),
            (name, team) => {
                let found = circle.called(name)?;
                match (team, found.name.parse::<Name>()) {
                    (Some(team), Ok(name)) => Address::Member { team: team.clone(), name },
                    _ => Address::Agent(found.agent),
                }
            }
        };
        let summary = self.summary.unwrap_or_else(|| first_line(&body));
        let id = uuid::Uuid::now_v7().into();
        let op = Op::Send { id, to, kind: MailKind::Text, summary, body };
        let Done::Sent(receipts) = operate(store, circle.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        for receipt in &receipts {
            let line = if self.json { object(receipt) } else { readable(receipt) };
            print(line.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `name@team` is a name and its team.
fn address(to: &str) -> Result<(String, Option<Name>), Advised> {
    match to.split_once('@') {
        None => Ok((to.to_owned(), None)),
        Some((name, team)) => {
            let team = team.parse().map_err(|error| Advised {
                what: format!("{error}"),
                advice: "an address is a name, name@team, or an agent's id".into(),
            })?;
            Ok((name.to_owned(), Some(team)))
        }
    }
}

fn first_line(text: &str) -> String {
    shortened(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(), SUMMARY)
}

fn object(receipt: &Receipt) -> String {
    json_line(&json!({
        "to": receipt.name, "agent_id": receipt.to, "number": receipt.number, "held": receipt.held,
    }))
}

fn readable(receipt: &Receipt) -> String {
    let fate = match receipt.held {
        true => "a live process has it, and is told",
        false => "it does not run, and finds it when it is resumed",
    };
    format!("sent to {}: {fate}\n", tame(&receipt.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_first_line() {
        assert_eq!(first_line("\n  look here\nand there"), "look here");
        assert_eq!(first_line(&"x".repeat(200)).chars().count(), SUMMARY);
    }

    #[test]
    fn an_address_may_name_its_team() {
        assert_eq!(address("alice").unwrap(), ("alice".into(), None));
        assert_eq!(address("alice@parser").unwrap(), ("alice".into(), Some("parser".parse().unwrap())));
        assert!(address("alice@../x").is_err());
    }
}
