//! `posse team interrupt` and `posse team stop`.

use std::process::ExitCode;

use posse_protocol::{MailKind, RequestKind};
use posse_runtime::port::store::{Done, Op, Store};
use serde_json::{Value, json};
use uuid::Uuid;

use super::member::{Meant, MemberArgs};
use crate::commands::task::operate;
use crate::output::{json_line, print};

/// Have a member stop what it does; it stays in the team, and waits for more.
#[derive(clap::Args)]
pub(super) struct Interrupt {
    #[command(flatten)]
    who: MemberArgs,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Ask a member to end; with --force it ends at once.
///
/// It is asked as its lead would ask it: it says yes, and leaves the team, or no and why. `posse team requests` shows
/// whether it has answered.
#[derive(clap::Args)]
pub(super) struct Stop {
    #[command(flatten)]
    who: MemberArgs,
    /// Why, for the member
    #[arg(long, value_name = "TEXT", conflicts_with = "force")]
    reason: Option<String>,
    /// Do not ask: what it does is broken off, and its tasks are open again
    #[arg(long)]
    force: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Interrupt {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let meant = self.who.meant(store).await?;
        interrupt(store, &meant).await?;
        let text = format!("{} is told to stop what it does\n", meant.shown());
        told(self.json, json!({"member": meant.shown(), "interrupted": true}), &text)
    }
}

impl Stop {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let meant = self.who.meant(store).await?;
        let shown = meant.shown();
        if self.force {
            dismiss(store, &meant).await?;
            return told(
                self.json,
                json!({"member": shown, "dismissed": true}),
                &format!("{shown} ends at once\n"),
            );
        }
        let text = self.reason.unwrap_or_else(|| "The user wants you to end.".into());
        let id = Uuid::now_v7().into();
        let op = Op::Request { id, to: meant.address(), kind: RequestKind::Shutdown, text };
        let Done::Requested { request, .. } = operate(store, meant.team.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        let words = format!("{shown} is asked to end: request {request}; --force does not ask\n");
        told(self.json, json!({"member": shown, "request_id": request}), &words)
    }
}

/// Has a member stop what it does.
pub(super) async fn interrupt(store: &dyn Store, meant: &Meant) -> anyhow::Result<()> {
    signal(store, meant, MailKind::Interruption).await
}

/// Ends a member at once.
pub(super) async fn dismiss(store: &dyn Store, meant: &Meant) -> anyhow::Result<()> {
    signal(store, meant, MailKind::Dismissal).await
}

async fn signal(store: &dyn Store, meant: &Meant, kind: MailKind) -> anyhow::Result<()> {
    let (id, to) = (Uuid::now_v7().into(), meant.address());
    let op = Op::Send { id, to, kind, summary: kind.as_str().into(), body: String::new() };
    operate(store, meant.team.realm, op).await.map(|_| ())
}

pub(super) fn told(json: bool, object: Value, text: &str) -> anyhow::Result<ExitCode> {
    print(if json { json_line(&object) } else { text.to_owned() }.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
