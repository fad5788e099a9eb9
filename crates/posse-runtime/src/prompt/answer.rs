//! Results of the tools that start, watch, stop and write to agents.

#[cfg(test)]
mod tests;

use std::path::Path;

use posse_protocol::{AgentId, Notification, RunFacts, RunKind, RunStatus, WorktreeEnd};

use crate::prompt::frame::{framed, share};
use crate::prompt::{LEAST_CHARACTERS, MOST_CHARACTERS, or_nothing, usage};
use posse_port::text::{cut, line, neutral, shown};
use posse_port::tool::{ToolError, ToolOutput};

/// Abilities of the agent that reads a text: it is not told of anything that it cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    /// True if it can read files.
    pub reads: bool,
    /// True if it can write to agents.
    pub sends: bool,
}

/// What is known of a sub-agent that was waited for, besides its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returned<'a> {
    /// Its type.
    pub agent_type: &'a str,
    /// True if nobody can write to it afterwards.
    pub one_shot: bool,
    /// Model that really answered.
    pub model: &'a str,
}

/// Returns the result of a sub-agent that was waited for. A run that did not complete or reach a
/// limit is a failed call, with what there is.
pub(crate) fn result(
    end: &Notification,
    of: Returned<'_>,
    reader: Reader,
) -> Result<ToolOutput, ToolError> {
    let file = reader.reads.then_some(end.output_file.as_path());
    let mut told = format!(
        "The sub-agent ({}) {}",
        line(of.agent_type),
        how(end.status)
    );
    if let Some(error) = &end.error {
        told.push_str(&format!(": {}", line(&cut(error, LEAST_CHARACTERS, None))));
    }
    let so_far = if end.status == RunStatus::Completed {
        ""
    } else {
        " so far"
    };
    if end.result.trim().is_empty() {
        told.push_str(&format!(".\n(no output{so_far}: it wrote no text)"));
    } else {
        let text = cut(&end.result, MOST_CHARACTERS, file);
        let what = if end.value.is_some() {
            "answer, which matches the output schema"
        } else {
            "output"
        };
        told.push_str(&format!(
            ".\nIts {what}{so_far}, written by a model, not the user:\n{}",
            run_output(&text)
        ));
    }
    if let Some(worktree) = &end.worktree {
        told.push_str(&format!("\n{}", checkout(worktree)));
    }
    if !of.one_shot || end.worktree.is_some() {
        let write = if reader.sends && !of.one_shot {
            " (reachable with SendMessage)"
        } else {
            ""
        };
        let used = usage(RunKind::Agent, end.usage);
        told.push_str(&format!(
            "\nagent id: {}{write}; model: {}; {used}",
            end.task,
            line(of.model)
        ));
    }
    match end.status {
        RunStatus::Completed | RunStatus::Partial => Ok(ToolOutput::text(told)),
        RunStatus::Failed | RunStatus::Killed | RunStatus::Paused | RunStatus::Running => {
            Err(ToolError::Tell(told))
        }
    }
}

/// Returns that a sub-agent was started, or continues, in the background. The prompt is empty if it
/// is unknown.
pub(crate) fn launched(run: &RunFacts, prompt: &str, reader: Reader) -> String {
    let mut told = format!(
        "The sub-agent ({}) works in the background: {}.\nagent id: {}\n",
        line(&run.agent_type),
        line(&run.description),
        run.task
    );
    if reader.reads {
        told.push_str(&format!(
            "output file, written while it works: {}\n",
            run.output_file.display()
        ));
    }
    told.push_str(
        "You will get a task-notification when it ends; until then you do not know its result. Do \
         not guess it, and do not do its work as well. Continue with something else, or end your \
         turn: the notification reaches you either way.",
    );
    if reader.sends {
        told.push_str(" SendMessage reaches it by its id.");
    }
    if !prompt.is_empty() {
        let prompt = cut(prompt, MOST_CHARACTERS, None);
        told.push_str(&format!("\nIt was told:\n{}", neutral(&prompt)));
    }
    told
}

/// The last part of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The text.
    pub text: String,
    /// Number of bytes before it.
    pub before: u64,
}

/// Returns a run's status and the last part of its output.
pub(crate) fn output(run: &RunFacts, status: RunStatus, tail: &Tail, reader: Reader) -> String {
    let before = match (tail.before, reader.reads) {
        (0, _) => String::new(),
        (before, true) => format!(
            ", after {before} bytes that are in {}",
            run.output_file.display()
        ),
        (before, false) => format!(", after {before} omitted bytes"),
    };
    let by = match run.kind {
        RunKind::Agent => "written by a model",
        RunKind::Shell => "printed by a command",
    };
    format!(
        "{} {}. Its output so far{before}, {by}, not the user:\n{}",
        called(run),
        how(status),
        run_output(or_nothing(&tail.text))
    )
}

/// Results of waiting for runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited<'a> {
    /// Ends that are reported now.
    pub ended: &'a [Notification],
    /// Runs whose ends were reported before.
    pub known: &'a [RunFacts],
    /// Runs that continue.
    pub running: &'a [RunFacts],
    /// True if the wait timed out.
    pub timed_out: bool,
}

impl Waited<'_> {
    /// Returns the text for the model.
    pub(crate) fn told(&self) -> String {
        let names = |runs: &[RunFacts]| runs.iter().map(called).collect::<Vec<_>>().join("; ");
        let most = share(self.ended.len());
        let mut parts: Vec<_> = self.ended.iter().map(|end| framed(end, most)).collect();
        if !self.known.is_empty() {
            parts.push(format!(
                "Already ended and reported: {}.",
                names(self.known)
            ));
        }
        if self.timed_out {
            parts.push("The wait timed out.".to_owned());
        }
        if !self.running.is_empty() {
            parts.push(format!("Still running: {}.", names(self.running)));
        }
        if parts.is_empty() {
            parts.push("There is nothing to wait for: you have no live runs.".to_owned());
        }
        parts.join("\n")
    }
}

/// Returns that a run was stopped, with the number of agents below it.
pub(crate) fn stopped(run: &RunFacts, below: usize) -> String {
    let others = match below {
        0 => String::new(),
        1 => " with the 1 agent below it".to_owned(),
        below => format!(" with the {below} agents below it"),
    };
    format!(
        "Stopped{others}: {}. Nothing it had started is left running.",
        called(run)
    )
}

/// Returns why a run that is over cannot be stopped.
pub(crate) fn not_running(run: &RunFacts, status: RunStatus) -> String {
    format!(
        "Nothing was stopped: {} {} already.",
        called(run),
        how(status)
    )
}

/// Returns that there is no such run; `known` are those that could be meant.
pub(crate) fn unknown_run(given: &str, known: &[RunFacts]) -> String {
    let given = line(given);
    if known.is_empty() {
        return format!("There is no run {given}, and you have started none.");
    }
    let known: Vec<_> = known.iter().map(called).collect();
    format!(
        "There is no run {given}. You have started: {}.",
        known.join("; ")
    )
}

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery<'a> {
    /// The recipient lives here.
    Here,
    /// The recipient had ended, and continues.
    Revived {
        /// Its output file.
        output_file: &'a Path,
    },
    /// Another process holds the recipient, or none does.
    Waits,
}

/// Returns that a message is in an agent's inbox.
pub(crate) fn sent(name: &str, id: AgentId, delivery: Delivery<'_>) -> String {
    let what = match delivery {
        Delivery::Here => {
            "It reads the message after its current tool calls, or at once if it is idle."
                .to_owned()
        }
        Delivery::Revived { output_file } => format!(
            "It had ended, and continues with your message in the background; you get a \
             task-notification when it ends again. (A teammate in another process reads it there \
             instead.) Its output file: {}",
            output_file.display()
        ),
        Delivery::Waits => "It waits in the inbox until that agent works again.".to_owned(),
    };
    format!("Sent to {} ({id}). {what}", line(name))
}

/// Returns that nobody has an address; `known` are the names in use.
pub(crate) fn nobody(to: &str, known: &[String]) -> String {
    let to = line(to);
    match known {
        [] => {
            format!(
                "Nothing was sent: no agent is named {to}, and no other has a name. Use an agent's \
                 id."
            )
        }
        known => format!(
            "Nothing was sent: no agent is named {to}. Known names: {}; or use an agent's id.",
            line(&known.join(", "))
        ),
    }
}

/// Returns that the user stopped the recipient, and only the user can resume it.
pub(crate) fn stopped_by_user(name: &str) -> String {
    format!(
        "Nothing was sent: the user stopped {}, and only the user can resume it. Start another \
         agent if the work is still needed.",
        line(name)
    )
}

/// Returns that the recipient has no transcript to continue from.
pub(crate) fn without_transcript(name: &str) -> String {
    format!(
        "Nothing was sent: {} has no transcript to continue from. Start another agent.",
        line(name)
    )
}

/// Returns what happened to a worktree.
fn checkout(worktree: &WorktreeEnd) -> String {
    let WorktreeEnd {
        path,
        branch,
        base,
        kept,
    } = worktree;
    match kept {
        Some(kept) if branch.is_empty() => {
            format!("worktree: {} is kept: {}", shown(path), line(kept))
        }
        None if branch.is_empty() => "worktree: removed by a hook".to_owned(),
        Some(kept) => format!(
            "worktree: {} is kept: {}; branch: {branch}, made from {base}",
            shown(path),
            line(kept)
        ),
        None => {
            format!("worktree: removed with its branch {branch}, because nothing changed there")
        }
    }
}

/// Returns how a run is named in texts.
fn called(run: &RunFacts) -> String {
    let name = run
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!("{name}, "));
    let kind = match run.kind {
        RunKind::Agent => "agent",
        RunKind::Shell => "command",
    };
    format!("{kind} {} ({name}{})", run.task, line(&run.description))
}

/// Returns a status as the end of a sentence.
fn how(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "is running",
        RunStatus::Completed => "has completed",
        RunStatus::Partial => "was stopped by a limit before it was done",
        RunStatus::Failed => "has failed",
        RunStatus::Killed => "was stopped before it was done",
        RunStatus::Paused => "is paused, and can continue later",
    }
}

/// Returns someone else's text in a frame.
fn run_output(text: &str) -> String {
    format!("<run-output>\n{}\n</run-output>", neutral(text))
}
