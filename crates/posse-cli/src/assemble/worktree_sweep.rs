//! Cleans up worktrees of processes that died, when posse starts.

use std::path::Path;

use posse_tools::{GitWorktrees, Swept};
use tokio::sync::oneshot;

use crate::output::count;

/// Starts removing worktrees in `home` that hold no work. Nobody waits for it: what it does not
/// finish is left to the next run. Sends a line if others hold work.
pub(crate) fn start(worktrees: GitWorktrees, home: &Path) -> oneshot::Receiver<String> {
    let (tell, told) = oneshot::channel();
    if !home.is_dir() {
        return told;
    }
    // Without a thread nothing is swept this time, which does no harm.
    let _ = std::thread::Builder::new()
        .name("posse-worktrees".into())
        .spawn(move || {
            if let Some(line) = line(&worktrees.sweep_left()) {
                // The run may have ended already.
                let _ = tell.send(line);
            }
        });
    told
}

/// Returns the message about worktrees that were kept.
fn line(swept: &[Swept]) -> Option<String> {
    let kept = swept.iter().filter(|swept| !swept.removed).count();
    let hold = if kept == 1 {
        "of an agent that has ended holds"
    } else {
        "of agents that have ended hold"
    };
    (kept > 0).then(|| {
        format!(
            "{} {hold} work: posse worktrees list",
            count(kept, "worktree")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::worktrees::made::found;

    #[test]
    fn only_what_was_not_removed_is_told() {
        let swept = |removed| Swept {
            found: found(1, false, None),
            removed,
        };
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[swept(true)]), None);
        let one = "1 worktree of an agent that has ended holds work: posse worktrees list";
        assert_eq!(line(&[swept(true), swept(false)]).as_deref(), Some(one));
        let two = "2 worktrees of agents that have ended hold work: posse worktrees list";
        assert_eq!(line(&[swept(false), swept(false)]).as_deref(), Some(two));
    }
}
