//! Which agent's call a process comes from, however it has disguised itself.
//!
//! A process cannot change who has started it: above it are its parents, and above all of an
//! agent's commands is the watchdog, which adopts what has lost its parents.

use std::io;

use crate::process_table::{CALL_MARK, Process};
use crate::{cgroup, watchdog};

/// How often a look begins again because a process above has just ended.
const MOST_LOOKS: usize = 16;
/// Maximum number of processes above.
const MOST_PARENTS: usize = 10_000;

/// Returns the call of an agent whose command has started a process, directly or through others;
/// none if no agent's command has. The call is named by its mark, or by its watchdog if the
/// process and its parents have dropped the mark.
///
/// A new session, an emptied environment, `exec` or the loss of parents do not matter. Not found
/// is a process that cleared its environment and whose watchdog was killed, unless it is in the
/// cgroup of posse's commands; one in another PID namespace, seen from there; and one that a
/// service of the user has started on request.
pub fn call_above(pid: u32) -> io::Result<Option<String>> {
    for _ in 0..MOST_LOOKS {
        let process = Process::read(pid.cast_signed());
        let process = process.ok_or(io::ErrorKind::NotFound)?;
        if let Some(call) = look(process) {
            return Ok(call);
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Looks at a process and all above. Returns none if one of them ended meanwhile.
fn look(mut process: Process) -> Option<Option<String>> {
    let mut buffer = Vec::new();
    for _ in 0..MOST_PARENTS {
        process.read_marks(&mut buffer);
        let call = process.mark(CALL_MARK);
        if let Some(call) = call.or_else(|| group_of(process.pid)) {
            return Some(Some(call));
        }
        if process.parent == 0 {
            break;
        }
        let Some(parent) = Process::read(process.parent) else {
            // Whose parents are not shown to this user has none that are an agent's.
            let shown = Process::read(process.pid)?;
            return (shown.parent == process.parent).then_some(None);
        };
        // A parent is older: this one has its number from a parent that has ended.
        if parent.started > process.started {
            return None;
        }
        process = parent;
    }
    Some(None)
}

/// Returns the name of the commands that a process belongs to: by its cgroup, or because it is
/// the watchdog that has started them.
fn group_of(pid: i32) -> Option<String> {
    cgroup::of_commands(pid).or_else(|| watchdog::watched_by(pid).map(|id| cgroup::name(&id)))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that runs `script` with a marked environment, and prints the pid that it means.
    #[expect(clippy::disallowed_methods, reason = "stands for an agent's command")]
    fn shell(mark: Option<&str>, script: &str) -> (Child, u32) {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .envs(mark.map(|mark| (CALL_MARK, mark)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let printed = child.stdout.as_mut().unwrap();
        io::BufRead::read_line(&mut io::BufReader::new(printed), &mut line).unwrap();
        (child, line.trim().parse().unwrap())
    }

    #[test]
    fn the_mark_of_a_parent_counts() {
        for script in [
            "echo $$; read x",
            "env -i sh -c 'echo $$; read x'; true",
            "setsid -w env -i sh -c 'echo $$; read x'; true",
            "nohup sh -c 'env -i sh -c \"echo \\$\\$; read x\"; true' 2>/dev/null; true",
        ] {
            let (mut child, pid) = shell(Some("a call"), script);
            assert_eq!(
                call_above(pid).unwrap().as_deref(),
                Some("a call"),
                "{script}"
            );
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[test]
    fn who_has_no_mark_above_comes_from_where_its_starter_does() {
        let (mut child, pid) = shell(None, "env -i sh -c 'echo $$; read x'; true");
        let own = call_above(std::process::id()).unwrap();
        assert_eq!(call_above(pid).unwrap(), own);
        drop(child.stdin.take());
        child.wait().unwrap();
        let gone = call_above(child.id()).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }
}
