//! `posse team interrupt` and `posse team stop`.

use std::process::ExitCode;

use posse_port::store::{Done, Op, Store};
use posse_protocol::{MailKind, RequestKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::Advised;
use crate::output::{json_line, print};
use crate::select::members::{ChosenMember, MemberArgs};
use crate::select::tasks::operate;

/// Interrupt a member; it stays in the team and waits for more work.
#[derive(clap::Args)]
pub(super) struct InterruptMember {
    #[command(flatten)]
    who: MemberArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Ask a member to shut down; with --force it ends at once.
///
/// The member is asked as its lead would ask it: it agrees and leaves the team, or declines and
/// says why. `posse team requests` shows whether it has answered.
#[derive(clap::Args)]
pub(super) struct StopMember {
    #[command(flatten)]
    who: MemberArgs,
    /// Reason to give to the member
    #[arg(long, value_name = "TEXT", conflicts_with = "force")]
    reason: Option<String>,
    /// Do not ask: its work is aborted, and its tasks are open again
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl InterruptMember {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let meant = self.who.meant(store).await?;
        interrupt(store, &meant).await?;
        let text = format!(
            "{} is told to stop what it is doing{}\n",
            meant.shown(),
            later(&meant)
        );
        told(
            self.json,
            json!({"member": meant.shown(), "interrupted": true, "held": meant.member.held}),
            &text,
        )
    }
}

impl StopMember {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let meant = self.who.meant(store).await?;
        let shown = meant.shown();
        if self.force {
            dismiss(store, &meant).await?;
            let word = if meant.member.held {
                "ends at once"
            } else {
                "is told to end at once"
            };
            return told(
                self.json,
                json!({"member": shown, "dismissed": true, "held": meant.member.held}),
                &format!("{shown} {word}{}\n", later(&meant)),
            );
        }
        not_the_lead(&meant)?;
        if self
            .reason
            .as_deref()
            .is_some_and(|reason| reason.trim().is_empty())
        {
            let (what, advice) = (
                "the reason is empty".into(),
                "omit --reason, or give one".into(),
            );
            anyhow::bail!(Advised { what, advice });
        }
        let text = self
            .reason
            .unwrap_or_else(|| "The user asks you to shut down.".into());
        let id = Uuid::now_v7().into();
        let op = Op::Request {
            id,
            to: meant.address(),
            kind: RequestKind::Shutdown,
            text,
        };
        let Done::Requested { request, .. } = operate(store, meant.team.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        let later = later(&meant);
        let words = format!(
            "{shown} is asked to shut down: request {request}; --force does not \
                     ask{later}\n"
        );
        told(
            self.json,
            json!({"member": shown, "request_id": request}),
            &words,
        )
    }
}

/// Interrupts a member's work.
pub(super) async fn interrupt(store: &dyn Store, meant: &ChosenMember) -> anyhow::Result<()> {
    signal(store, meant, MailKind::Interruption).await
}

/// Ends a member at once.
pub(super) async fn dismiss(store: &dyn Store, meant: &ChosenMember) -> anyhow::Result<()> {
    signal(store, meant, MailKind::Dismissal).await
}

/// Refuses to signal a lead, which nobody is above.
fn not_the_lead(meant: &ChosenMember) -> Result<(), Advised> {
    if meant.member.agent != meant.team.lead {
        return Ok(());
    }
    Err(Advised {
        what: format!("{} leads the team and cannot be stopped this way", meant.shown()),
        advice: "Ctrl-C in its terminal stops it; `posse team delete NAME` removes a team that has ended"
            .into(),
    })
}

/// Returns a remark about a member that no process hosts.
fn later(meant: &ChosenMember) -> String {
    if meant.member.held {
        return String::new();
    }
    let (team, session) = (
        &meant.team.name,
        crate::present::sessions::short(meant.team.session()),
    );
    format!(
        "; no process runs it, so this takes effect on resume: posse team run {team} --resume \
         {session}"
    )
}

/// Sends a signal as mail, which is what reaches another process.
async fn signal(store: &dyn Store, meant: &ChosenMember, kind: MailKind) -> anyhow::Result<()> {
    not_the_lead(meant)?;
    let (id, to) = (Uuid::now_v7().into(), meant.address());
    let op = Op::Send {
        id,
        to,
        kind,
        summary: kind.as_str().into(),
        body: String::new(),
    };
    operate(store, meant.team.realm, op).await.map(|_| ())
}

/// Prints a result as JSON or as text.
pub(super) fn told(json: bool, object: Value, text: &str) -> anyhow::Result<ExitCode> {
    print(
        if json {
            json_line(&object)
        } else {
            text.to_owned()
        }
        .as_bytes(),
    )?;
    Ok(ExitCode::SUCCESS)
}
