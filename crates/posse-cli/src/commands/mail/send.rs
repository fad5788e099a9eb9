//! `posse mail send`.

use std::process::ExitCode;

use posse_port::store::{Receipt, Store};

use crate::error::Advised;
use crate::headless::input::stdin::text;
use crate::output::{json_line, print, tame};
use crate::present::mail;
use crate::select::mail::{NewMail, send};
use crate::select::recipients::RecipientArgs;
use crate::select::recipients::{Recipients, address};

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
        let receipts = send(
            store,
            &circle,
            &to,
            NewMail {
                body,
                summary: self.summary,
            },
        )
        .await?;
        for receipt in &receipts {
            let line = if self.json {
                json_line(&mail::receipt(receipt))
            } else {
                readable(receipt)
            };
            print(line.as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn readable(receipt: &Receipt) -> String {
    format!("sent to {}: it waits in its inbox\n", tame(&receipt.name))
}
