//! Every error that people see goes through here: what happened, then what to do.

mod foreign_words;
pub(crate) mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

use posse_model::SetupError;
use posse_permission::RuleError;
use posse_port::model::ModelError;
use posse_port::store::{Refusal, StoreError};
use posse_port::{in_a_line, retry_after};
use posse_protocol::{Fault, FaultClass};
use posse_runtime::session::start_error::StartError;
use posse_store::{ServerTrouble, Trouble, server_trouble, trouble};

use crate::output::{json_line, print, say, tame};

/// Exit code for failures; `docs/cli.md` lists all codes.
pub(crate) const FAILED: u8 = 1;
/// Exit code for a command line that makes no sense.
pub(crate) const USAGE: u8 = 2;
/// Exit code if the run ended before its work was done, and can be continued.
pub(crate) const UNFINISHED: u8 = 3;
/// Exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error with its own advice.
#[derive(Debug)]
pub(crate) struct Advised {
    pub(crate) what: String,
    pub(crate) advice: String,
}

impl std::fmt::Display for Advised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Advised {}

/// The refusal of something that only a person may do.
#[derive(Debug, thiserror::Error)]
#[error(
    "an agent's command has started this (call {call}), and only a person can {what}; nothing was \
     changed"
)]
pub(crate) struct StartedByAgent {
    pub(crate) call: String,
    pub(crate) what: &'static str,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// A file exists but cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file has invalid content.
    #[error("{}: {why}", path.display())]
    Wrong { path: PathBuf, why: String },
    /// A rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The administrator has disabled the mode.
    #[error("bypassPermissions is switched off by {}", by.display())]
    BypassDisabled { by: PathBuf },
}

/// Prints an error with its causes and a hint, and returns the exit code. With `json` it is also
/// printed as an object; errors of a model were already printed by the command.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader of the output has seen enough, which is not an error.
        return ExitCode::SUCCESS;
    }
    let (what, hint) = (what(error), hint(error));
    if json && !error.is::<ModelError>() {
        // If nobody reads standard output, stderr has the error.
        let _ = print(json_line(&object(&what, hint.as_deref())).as_bytes());
    }
    if let Some(ModelError::Cancelled) = error.downcast_ref() {
        // The terminal shows `^C` where the cursor is, so that the note needs a line of its own.
        say("\ninterrupted");
        return ExitCode::from(INTERRUPTED);
    }
    tell(&what, hint.as_deref());
    ExitCode::from(FAILED)
}

/// Returns an error for programs.
pub(crate) fn object(what: &str, hint: Option<&str>) -> serde_json::Value {
    serde_json::json!({"error": what, "hint": hint})
}

/// Returns what happened in one line.
fn what(error: &anyhow::Error) -> String {
    match error.downcast_ref::<StoreError>() {
        Some(store @ StoreError::Engine { place, .. })
            if trouble(store) == Some(Trouble::Foreign) =>
        {
            format!("{place} is a database, but not a posse store")
        }
        _ => in_a_line(error.as_ref()),
    }
}

/// Returns true if nobody reads the output any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Prints what is wrong and what to do about it.
pub(crate) fn tell(what: &str, hint: Option<&str>) {
    say(&format!("\x1b[1;31merror:\x1b[0m {}", tame(what)));
    hint.into_iter().for_each(advise);
}

/// Prints what to do.
pub(crate) fn advise(hint: &str) {
    say(&format!("\x1b[1mhint:\x1b[0m {}", tame(hint)));
}

/// Returns the advice for a fault: the provider knows best when it can answer again.
pub(crate) fn for_fault(fault: &Fault) -> Option<String> {
    match (fault.class, retry_after(fault)) {
        (FaultClass::Busy, Some(wait)) => Some(format!("the provider is busy: retry after {wait}")),
        (class, _) => for_class(class).map(str::to_owned),
    }
}

/// Returns the advice for a class of faults.
pub(crate) fn for_class(class: FaultClass) -> Option<&'static str> {
    Some(match class {
        FaultClass::Unreachable => {
            "is something listening there? `posse doctor` checks the \
                                    connection"
        }
        FaultClass::Connection => {
            "the connection to the provider is bad; try again, and check any proxies"
        }
        FaultClass::Authentication => {
            "the API key was refused; `posse doctor` shows which key is \
                                       used"
        }
        FaultClass::Billing => "the account cannot pay for this; see the provider's console",
        FaultClass::Permission => "this key may not do that; ask the person who issued it",
        FaultClass::NotFound => {
            "no such model (--model) or address: an OpenAI base URL ends in /v1, an Anthropic one \
             does not"
        }
        FaultClass::TooLarge => "send less: the request is larger than the provider accepts",
        FaultClass::Busy => "the provider is busy; try again in a few minutes",
        FaultClass::Provider => "the provider failed; try again",
        FaultClass::Store => {
            "check the disk under posse's home (`posse doctor`); nothing that was acknowledged is lost"
        }
        FaultClass::Fenced => "another process has taken over the session; continue there",
        FaultClass::Budget => {
            "raise the budget to continue: --max-budget-usd, --max-budget-tokens, --max-time"
        }
        FaultClass::Hook => "`posse hooks list` shows the hooks, and the file of each",
        FaultClass::Repetition => "allow the call (--allowedTools), or say what to do instead",
        FaultClass::Internal => {
            "this is a bug in posse, please report it; the session can be resumed"
        }
        FaultClass::InvalidRequest | FaultClass::Tool | FaultClass::Answer => return None,
    })
}

/// Returns the advice for an error.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(advised) = error.downcast_ref::<Advised>() {
        return Some(advised.advice.clone());
    }
    if error.is::<StartedByAgent>() {
        return Some("ask the person to do it, in a terminal of their own".into());
    }
    if let Some(SetupError::BadUrl { .. }) = error.downcast_ref() {
        return Some("a base URL looks like http://127.0.0.1:4141 or https://host".into());
    }
    match error.downcast_ref::<StartError>() {
        Some(StartError::Store(error)) => return for_store(error),
        Some(StartError::OtherDialect { stored, .. }) => {
            return Some(format!(
                "choose the API it was recorded with ({stored}): --provider"
            ));
        }
        Some(StartError::Cut { .. }) => {
            return Some("`posse sessions show ID --json` shows the entries (seq)".into());
        }
        Some(StartError::AlreadyHere { .. }) => {
            return Some("this is a bug in posse; please report it".into());
        }
        // Only sub-agents have a place of their own, and their errors are reported as theirs.
        Some(StartError::Place(_)) | None => {}
    }
    if let Some(error) = error.downcast_ref::<StoreError>() {
        return for_store(error);
    }
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return Some(for_refusal(refusal));
    }
    if let Some(error) = error.downcast_ref::<SettingsError>() {
        return Some(for_settings(error).to_owned());
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>()
        && error.kind() == std::io::ErrorKind::StorageFull
    {
        return Some("free some space; nothing that is kept in the store is lost".into());
    }
    for_fault(&Fault::from(error.downcast_ref::<ModelError>()?))
}

/// Returns the advice for an error of the store.
fn for_store(error: &StoreError) -> Option<String> {
    Some(match error {
        StoreError::Held { holder, .. } => {
            format!(
                "stop the other process ({holder}), or use --fork-session to continue in a \
                     copy"
            )
        }
        StoreError::Fenced { .. } => for_class(FaultClass::Fenced)?.to_owned(),
        StoreError::NotFound { .. } => "`posse sessions list --all` shows all sessions".into(),
        StoreError::Full { .. } => "free some space; nothing that was acknowledged is lost".into(),
        StoreError::TooNew { .. } => {
            "upgrade posse, or name another store: --store sqlite:PATH".into()
        }
        StoreError::Damaged { .. } => {
            "the disk or another program changed it; `posse store check` lists the damage, `posse \
             sessions export` saves what can be read"
                .into()
        }
        StoreError::Engine { .. } => match (trouble(error), server_trouble(error)) {
            (Some(trouble), _) => for_trouble(trouble)?.to_owned(),
            (None, Some(trouble)) => for_server(trouble)?.to_owned(),
            (None, None) => for_class(FaultClass::Store)?.to_owned(),
        },
        StoreError::NameTaken { .. } => "choose another name".into(),
        StoreError::BadStep(_) => "this is a bug in posse; please report it".into(),
    })
}

/// Returns the advice for a file that cannot be used.
fn for_trouble(trouble: Trouble) -> Option<&'static str> {
    Some(match trouble {
        Trouble::Foreign => "it is left unchanged; name another file: --store sqlite:PATH",
        Trouble::NoDatabase => "name another file (--store sqlite:PATH), or move this one away",
        Trouble::Damaged => {
            "`posse store check` lists the damage; restore a backup, or save what can be read: \
             `posse sessions export`, `posse team export`"
        }
        Trouble::ReadOnly => "make the file and its directory writable for posse",
        Trouble::Denied => {
            "check who owns it and its directory (ls -l), or name another: --store sqlite:PATH"
        }
        // Its own text says what to do.
        Trouble::HeldUp => return None,
    })
}

/// Returns the advice for a server that cannot be used.
fn for_server(trouble: ServerTrouble) -> Option<&'static str> {
    Some(match trouble {
        ServerTrouble::Unreachable => {
            "is a server running there, and does it listen on that port? `pg_isready -h HOST -p \
             PORT` checks it"
        }
        ServerTrouble::UnknownHost => "check the host name in the address",
        ServerTrouble::Password => {
            "check the user name in the address; give the password in PGPASSWORD, or there \
             (POSSE_STORE, \"store\" in posse's settings.json)"
        }
        ServerTrouble::NoDatabase => {
            "create it first (createdb NAME), or name another in the address"
        }
        ServerTrouble::Tls => {
            "connections to other machines are encrypted: sslrootcert=FILE trusts a certificate, \
             sslmode=disable turns encryption off on a trusted network"
        }
        ServerTrouble::Forbidden => {
            "ask the database's owner to allow it: GRANT CREATE ON DATABASE … TO …; or run `posse \
             store migrate` as the owner first"
        }
        ServerTrouble::Address => "correct the address: postgres://USER@HOST/DATABASE",
        ServerTrouble::Other => "the server's log says more; nothing that was acknowledged is lost",
        // Its own text says what to do.
        ServerTrouble::Older => return None,
    })
}

/// Returns the advice for a refused operation.
fn for_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoSuchRecipient { .. } => "`posse team show NAME` lists its members".into(),
        Refusal::NoSuchAgent { .. } => {
            "`posse sessions list` and `posse agents ps` list them".into()
        }
        Refusal::InboxFull { .. } => {
            "it was not sent. The agent reads its inbox when it works again: `posse -p --resume \
             ID` of its session"
                .into()
        }
        Refusal::TooLong { .. } => "shorten it, or put it into a file and name the file".into(),
        Refusal::TooDeep { .. } => "put it into a file and name the file".into(),
        Refusal::NotForAll => "name one recipient".into(),
        Refusal::NoSuchTeam { .. } => "`posse team list --all` shows all teams".into(),
        Refusal::TeamExists { .. } => "choose another name".into(),
        Refusal::IsLead { .. } => "`posse team delete NAME` removes the whole team".into(),
        Refusal::MembersLive { .. } => {
            "`posse team stop MEMBER` ends one; `posse team show NAME` shows which process hosts \
             each"
                .into()
        }
        Refusal::NoSuchTask { .. } => {
            "`posse task list` shows all tasks; --team and --session choose the list".into()
        }
        Refusal::NotRunning { .. } => {
            "leave it pending: while it has an owner, no one else claims it".into()
        }
        Refusal::AlreadyClaimed { id, .. } => format!(
            "`posse task update {id} --no-owner` removes \
                                                       the owner"
        ),
        Refusal::AlreadyCompleted { id } => {
            format!("`posse task update {id} --status pending` opens it again")
        }
        Refusal::Blocked { .. } => "finish those first, or use --not-blocked-by".into(),
        Refusal::NotLead { .. } | Refusal::NotYours { .. } => {
            "`posse team show NAME` shows who leads the team".into()
        }
        Refusal::NotOpen { .. } => "`posse team requests` lists open requests".into(),
        Refusal::NoSuchQuestion { .. } => "`posse requests list` shows what waits".into(),
        Refusal::QuestionClosed { .. } => {
            "the first answer counts; `posse requests show ID` tells what became of it".into()
        }
        // Only agents are refused for this reason.
        Refusal::Unchecked { .. } => "a person can complete it anyway".into(),
        Refusal::CheckStands { .. } => "a person can change it anyway".into(),
        Refusal::NothingToClaim => "`posse task list` shows all tasks".into(),
        Refusal::Changed { version } => {
            format!("look at it again (`posse task show`), then try with --if-version {version}")
        }
        Refusal::Cycle { .. } => "break the circle with --not-blocked-by first".into(),
    }
}

fn for_settings(error: &SettingsError) -> &'static str {
    match error {
        SettingsError::Unreadable { .. } => "make the file readable, or remove it",
        SettingsError::Wrong { .. } => "fix the file, or remove it",
        SettingsError::Rule(_) => "a rule looks like `Edit` or `Bash(git diff *)`",
        SettingsError::BypassDisabled { .. } => {
            "choose another --permission-mode, such as acceptEdits"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_depends_on_the_cause() {
        assert!(
            for_trouble(Trouble::Foreign)
                .unwrap()
                .contains("name another file")
        );
        assert!(
            for_trouble(Trouble::Damaged)
                .unwrap()
                .contains("posse store check")
        );
        assert!(for_trouble(Trouble::ReadOnly).unwrap().contains("writable"));
        assert!(for_trouble(Trouble::Denied).unwrap().contains("ls -l"));
        assert_eq!(
            for_trouble(Trouble::HeldUp),
            None,
            "the error itself says which process to end"
        );
        let full = anyhow::Error::new(std::io::Error::from(std::io::ErrorKind::StorageFull))
            .context("cannot write x");
        assert!(hint(&full).unwrap().contains("free some space"));
    }
}
