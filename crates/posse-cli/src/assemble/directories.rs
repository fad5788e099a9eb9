//! Directories in posse's home that agents use.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::config::environment::posse_home;
use crate::error::Advised;

/// Returns the directory for tool output that is too long to be shown. Old output is removed in
/// the background.
pub(crate) fn spill() -> anyhow::Result<PathBuf> {
    let home = home()?;
    // The store may be elsewhere, so that this may be the first file in posse's home.
    std::fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let spill = home
        .canonicalize()
        .with_context(|| format!("cannot find {}", home.display()))?
        .join("spill");
    let old = spill.clone();
    // Nobody waits for the thread: what it does not finish is left to the next run.
    let _ = std::thread::Builder::new()
        .name("posse-sweep".into())
        .spawn(move || sweep(&old, KEPT));
    Ok(spill)
}

/// Returns the directory for agents' worktrees.
pub(crate) fn worktrees() -> anyhow::Result<PathBuf> {
    Ok(home()?.join("worktrees"))
}

/// Time a session's output is kept after it was last written to.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Removes output that was not written to for `kept`.
fn sweep(spill: &Path, kept: Duration) {
    for session in std::fs::read_dir(spill).into_iter().flatten().flatten() {
        let touched = session.metadata().and_then(|about| about.modified()).ok();
        if touched
            .and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age > kept)
        {
            // If it cannot be removed now, a later run tries again.
            let _ = std::fs::remove_dir_all(session.path());
        }
    }
}

/// Returns posse's home, or an error with advice.
fn home() -> anyhow::Result<PathBuf> {
    Ok(posse_home().ok_or_else(|| Advised {
        what: "there is no home directory".into(),
        advice: "set POSSE_HOME to a directory you own".into(),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_output_is_swept_away_and_new_is_not() {
        let spill = std::env::temp_dir().join(format!("posse-test-{}", uuid::Uuid::now_v7()));
        let make = |name: &str| std::fs::create_dir_all(spill.join(name)).unwrap();
        make("one");
        make("two");
        sweep(&spill, Duration::from_secs(3600));
        assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 2);
        let old = std::time::SystemTime::now() - Duration::from_secs(7200);
        std::fs::File::open(spill.join("one"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        sweep(&spill, Duration::from_secs(3600));
        let left: Vec<_> = std::fs::read_dir(&spill)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["two"]);
        std::fs::remove_dir_all(&spill).unwrap();
    }
}
