//! What the disk has at the paths that a command names. A verdict by its words alone would take a
//! link for the file that it is called.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use posse_permission::{behind_proc, words};
use posse_port::tool::{CommandDisk, LeadKind, PathLead, Workspace};
use posse_sandbox::reads_run_nothing;

use crate::worktree::CheckoutGate;

/// Maximum number of paths that are looked at.
const MOST_PATHS: usize = 2000;
/// Maximum number of links that a path is followed through, as in the kernel.
const MOST_LINKS: usize = 40;

/// Looks at the paths that a command names. Returns what is there, and whether the command only
/// reads, as far as its words tell. The gate says where git may read.
pub(crate) fn look(
    command: &str,
    workspace: &Workspace,
    gate: Option<&dyn CheckoutGate>,
) -> (CommandDisk, bool) {
    let cwd = &workspace.cwd;
    let is_plain = |gate: &dyn CheckoutGate| reads_run_nothing(cwd) && gate.allows(cwd);
    let has_plain_git = command.contains("git") && gate.is_some_and(is_plain);
    let words = words(command, workspace, has_plain_git);
    let disk = CommandDisk {
        has_plain_git,
        is_cut: words.paths.len() > MOST_PATHS,
        leads: words
            .paths
            .into_iter()
            .take(MOST_PATHS)
            .filter_map(|named| lead(named, &workspace.cwd))
            .collect(),
    };
    (disk, words.only_reads)
}

/// Returns a path that leads elsewhere now, and did not when the command was judged.
pub(crate) fn changed(judged: &CommandDisk, now: &CommandDisk) -> Option<PathBuf> {
    let is_new = |lead: &&PathLead| {
        let is_elsewhere = lead.real != lead.named || lead.kind == LeadKind::SharedFile;
        is_elsewhere && !judged.leads.contains(lead)
    };
    now.leads.iter().find(is_new).map(|lead| lead.named.clone())
}

/// Returns what is at a path, if that is more than its text says.
fn lead(named: PathBuf, cwd: &Path) -> Option<PathLead> {
    let real = resolved(&named, cwd);
    let kind = match fs::symlink_metadata(&real) {
        Ok(found) if found.is_dir() => LeadKind::Directory,
        Ok(found) if found.is_file() && found.nlink() > 1 => LeadKind::SharedFile,
        _ => LeadKind::Other,
    };
    let is_plain = kind == LeadKind::Other && real == named;
    (!is_plain).then_some(PathLead { named, real, kind })
}

/// Returns where a path leads, as the kernel follows it: `..` counts from where a link leads. What
/// does not exist is taken by its text.
fn resolved(named: &Path, cwd: &Path) -> PathBuf {
    let mut rest: Vec<OsString> = parts(named);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        if let Some(real) = behind_proc(cwd, &next) {
            at = real;
            continue;
        }
        match fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(parts(&target));
            }
            _ => at = next,
        }
    }
    at
}

/// Returns the names in a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn look(command: &str, workspace: &Workspace) -> CommandDisk {
        super::look(command, workspace, None).0
    }

    #[test]
    fn links_are_followed_as_the_kernel_does() {
        let top = PathBuf::from(format!("/tmp/posse-links-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        let (w, out) = (top.join("w"), top.join("out"));
        fs::create_dir_all(w.join("src")).unwrap();
        fs::create_dir_all(out.join("deep")).unwrap();
        fs::write(w.join(".env"), "x").unwrap();
        fs::write(w.join("plain"), "x").unwrap();
        fs::hard_link(w.join(".env"), w.join("hard")).unwrap();
        symlink(".env", w.join("notes")).unwrap();
        symlink(out.join("deep"), w.join("docs")).unwrap();
        symlink("loop", w.join("loop")).unwrap();
        let workspace = Workspace {
            cwd: w.clone(),
            roots: vec![w.clone()],
            spill: top.join("spill"),
            home: None,
            mirror: None,
            notes: None,
        };
        let leads = |command: &str| -> Vec<(PathBuf, LeadKind)> {
            let disk = look(command, &workspace);
            let leads = disk.leads.into_iter();
            leads.map(|lead| (lead.real, lead.kind)).collect()
        };
        use LeadKind::{Directory, Other, SharedFile};
        assert_eq!(leads("cat plain absent"), []);
        assert_eq!(leads("cat notes"), [(w.join(".env"), SharedFile)]);
        assert_eq!(leads("cat < hard"), [(w.join("hard"), SharedFile)]);
        assert_eq!(leads("cat docs/new"), [(out.join("deep/new"), Other)]);
        assert_eq!(leads("cat docs/../x"), [(out.join("x"), Other)]);
        assert_eq!(leads("ls src"), [(w.join("src"), Directory)]);
        let found = leads("cd docs && cat x");
        assert!(found.contains(&(out.join("deep/x"), Other)), "{found:?}");
        let found = leads("cat /dev/fd/../cwd/.env");
        assert!(found.contains(&(w.join(".env"), SharedFile)), "{found:?}");
        assert_eq!(leads("cat loop").len(), 0);
        let before = look("cat plain docs/a", &workspace);
        assert_eq!(
            changed(&before, &look("cat plain docs/a", &workspace)),
            None
        );
        fs::remove_file(w.join("plain")).unwrap();
        symlink(".env", w.join("plain")).unwrap();
        let now = look("cat plain docs/a", &workspace);
        assert_eq!(changed(&before, &now), Some(w.join("plain")));
        let many = format!("cat {}", "a/b ".repeat(10));
        assert!(!look(&many, &workspace).is_cut);
        let many: String = (0..3000).map(|number| format!(" f{number}")).collect();
        assert!(look(&format!("cat{many}"), &workspace).is_cut);
        fs::remove_dir_all(&top).unwrap();
    }
}
