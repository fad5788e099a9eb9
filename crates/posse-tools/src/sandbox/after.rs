//! What is looked at when a confined command has ended: what it was refused, and what it has made
//! that must not stay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_port::tool::{ToolContext, Workspace};
use posse_protocol::SandboxRefusal;
use posse_sandbox::{Finding, Plan, Refusals, Watch};

use crate::proxy::Proxy;

/// How many files are named that were moved away.
const MOST_TOLD: usize = 8;

/// What is looked at when a command has ended.
#[derive(Debug, Default)]
pub(crate) struct AfterCommand {
    pub(super) watch: Option<Watch>,
    pub(super) quarantine: PathBuf,
    /// What it was confined by, where it ran, and what a person had opened to it.
    pub(super) confined: Option<ConfinedBy>,
    /// Its proxy, which serves it as long as this is there.
    pub(super) proxy: Option<Proxy>,
}

#[derive(Debug)]
pub(super) struct ConfinedBy {
    pub(super) plan: Plan,
    pub(super) directory: PathBuf,
    pub(super) opened: Vec<PathBuf>,
    /// Paths that stay closed whatever a person says.
    pub(super) closed: Vec<PathBuf>,
}

impl AfterCommand {
    /// Returns what the sandbox has refused to a command, from what it printed, and what is told of
    /// what no person can lift. `surely` if it has failed; else only what is quoted counts.
    pub(crate) fn refused(
        &self,
        printed: &str,
        surely: bool,
        context: &ToolContext,
    ) -> (Option<SandboxRefusal>, Vec<String>) {
        let Some(by) = &self.confined else {
            return (None, Vec::new());
        };
        let (workspace, files) = (&*context.workspace, &*context.files);
        let found = Refusals::in_output(printed, &by.directory, &by.plan, surely);
        let mut notes = Vec::new();
        let mut tell = |verb: &str, path: &Path, why: &str| {
            let path = path.display();
            notes.push(format!(
                "(the sandbox keeps {path} from being {verb}: {why})"
            ));
        };
        let is_closed = |path: &Path| {
            let is_inside = workspace.reach().any(|root| path.starts_with(root));
            !is_inside && by.closed.iter().any(|closed| path.starts_with(closed))
        };
        let mut write = BTreeSet::new();
        for path in &found.write {
            match to_be_opened(path, &by.plan, workspace) {
                Some(opened) if by.opened.contains(&opened) => {}
                Some(opened) if is_closed(&opened) || files.denies_editing(&opened, workspace) => {
                    tell("written", path, "nobody can allow that");
                }
                Some(opened) => drop(write.insert(opened)),
                None => tell("written", path, "it would have to run outside"),
            }
        }
        let mut read = Vec::new();
        for path in found.read {
            if is_closed(&path) || files.denies_reading(&path, workspace) {
                tell("read", &path, "nobody can allow that");
            } else if !by.opened.contains(&path) {
                read.push(path);
            }
        }
        let refusal = SandboxRefusal {
            write: write.into_iter().collect(),
            read,
            // About hosts that the proxy was asked for, a person has decided.
            network: found.network && self.proxy.as_ref().is_none_or(|it| it.notes().is_empty()),
        };
        let refusal = Some(refusal).filter(|it| *it != SandboxRefusal::default());
        (refusal, notes)
    }

    /// Moves away what must not stay, and returns what the model is told about that and about hosts
    /// that were not reached.
    pub(crate) fn check(&self) -> Vec<String> {
        let findings = self.watch.as_ref().map(|it| it.after(&self.quarantine));
        let findings: Vec<Finding> = findings.into_iter().flatten().collect();
        let found = findings.iter().take(MOST_TOLD).map(told);
        let more = findings.len().saturating_sub(MOST_TOLD);
        let more = (more > 0).then(|| {
            let quarantine = self.quarantine.display();
            format!("({more} more such files were moved to {quarantine})")
        });
        found
            .chain(more)
            .chain(self.proxy.iter().flat_map(Proxy::notes))
            .collect()
    }

    /// Has a proxy serve the command until this is dropped.
    pub(crate) fn served_by(&mut self, proxy: Proxy) {
        self.proxy = Some(proxy);
    }
}

/// Returns what must be writable for a path to be written, without links: itself, what is kept
/// around it, or the directory that it would be made in. None if that would open far more than was
/// meant.
fn to_be_opened(path: &Path, plan: &Plan, workspace: &Workspace) -> Option<PathBuf> {
    let existing = path
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok())?;
    let resolved = existing.canonicalize().ok()?;
    let rest = path.strip_prefix(existing).ok()?;
    let path = match rest.as_os_str().is_empty() {
        true => resolved.clone(),
        false => resolved.join(rest),
    };
    if let Some(kept) = plan.kept_at(&path) {
        let exists = rest.as_os_str().is_empty();
        return Some(if exists { path } else { kept.to_owned() });
    }
    if workspace.reach().any(|root| path.starts_with(root)) {
        return Some(path);
    }
    let kept = workspace.reach().chain(workspace.home.as_deref());
    let of_kernel = ["/proc", "/sys", "/dev"];
    let is_wide = resolved.parent().is_none()
        || of_kernel.iter().any(|it| resolved.starts_with(it))
        || kept.into_iter().any(|it| it.starts_with(&resolved));
    // What git runs is in there, too.
    let is_git = resolved.ends_with(".git") || resolved.join("hooks").is_dir();
    (!is_wide && !is_git).then_some(resolved)
}

fn told(finding: &Finding) -> String {
    let path = finding.path.display();
    let why = "other programs run what is in such a file";
    match &finding.moved_to {
        Some(moved) => format!(
            "({path} was made by the command and moved to {}: {why}. Ask for it to be run outside \
             the sandbox if it is needed.)",
            moved.display()
        ),
        None => format!("({path} was made by the command and could not be moved away: {why})"),
    }
}
