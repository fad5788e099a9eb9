//! What stands in place of a history that was compacted.

use std::path::PathBuf;

use posse_protocol::{RunFacts, RunKind, Task, TaskStatus, Team};

use super::{cut, line, neutral, place::reminder, shown};

/// How much is kept of each text that somebody said last.
const SAID_CHARACTERS: usize = 32_000;
/// How much is shown of what no summary has seen.
const CUT_CHARACTERS: usize = 8_000;
/// So many files, and runs, are named.
const FILES: usize = 100;
const RUNS: usize = 100;

/// What an agent must still know when its history is gone.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The files whose content it has read or written.
    pub files: Vec<PathBuf>,
    /// What it has started that goes on.
    pub runs: Vec<RunFacts>,
    /// The types of agents that it can start, a line each; none if it can start nobody.
    pub types: Option<String>,
    /// The skills that it can load, a line each; none if it can load none.
    pub skills: Option<String>,
    /// The task lists that concern it.
    pub lists: Vec<List>,
}

/// A list of open tasks.
#[derive(Clone, Debug)]
pub struct List {
    /// Whose; none for the session's own.
    pub team: Option<Team>,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// The texts of the entry that takes the place of a history: the summary, what posse knows besides, and of
/// what was too large to be summarised the beginning.
pub fn compacted(summary: &str, cut_off: Option<&str>, known: &Standing) -> Vec<String> {
    let mut texts = vec![format!(
        "<conversation-summary>\nThe conversation up to here was replaced by this summary of it, which you wrote:\n\n\
         {}\n</conversation-summary>",
        neutral(summary.trim())
    )];
    if let Some(cut_off) = cut_off {
        texts.push(reminder(&format!(
            "What came last is not in the summary: it was too large for your context. Its beginning and end:\n\
             {}\nAsk for less at once next time.",
            neutral(&cut(cut_off, CUT_CHARACTERS, None))
        )));
    }
    texts.push(reminder(&restated(known)));
    texts
}

/// What a person or another agent said last, word for word as far as it is not too long.
pub fn verbatim(text: &str) -> String {
    cut(text, SAID_CHARACTERS, None).into_owned()
}

fn restated(known: &Standing) -> String {
    let mut text = "As it stands now, whatever the summary says:\n".to_owned();
    text.push_str(&files(&known.files));
    text.push_str(&runs(&known.runs));
    for list in &known.lists {
        text.push_str(&tasks(list));
    }
    if let Some(types) = &known.types {
        text.push_str(&format!("Types of agents that you can start:{types}\n"));
    }
    if let Some(skills) = known.skills.as_ref().filter(|skills| !skills.is_empty()) {
        text.push_str(&format!("Skills that you can load, also those that you had loaded:{skills}\n"));
    }
    text.trim_end().to_owned()
}

fn files(files: &[PathBuf]) -> String {
    if files.is_empty() {
        return "You have read or written no files.\n".into();
    }
    let mut text =
        "Files that you have read or written (read them again before you rely on what is in them):\n"
            .to_owned();
    for path in files.iter().take(FILES) {
        text.push_str(&format!("- {}\n", shown(path)));
    }
    if files.len() > FILES {
        text.push_str(&format!("- and {} more\n", files.len() - FILES));
    }
    text
}

fn runs(runs: &[RunFacts]) -> String {
    if runs.is_empty() {
        return "Nothing that you have started goes on in the background.\n".into();
    }
    let mut text =
        "What you have started and what goes on (a notification tells you of its end):\n".to_owned();
    for run in runs.iter().take(RUNS) {
        let what = match run.kind {
            RunKind::Agent => format!("agent ({})", line(&run.agent_type)),
            RunKind::Shell => "command".to_owned(),
        };
        let name = run.name.as_ref().map_or_else(String::new, |name| format!(", called {name}"));
        text.push_str(&format!(
            "- {what} {}{name}: {}; output file {}\n",
            run.task,
            line(&run.description),
            shown(&run.output_file)
        ));
    }
    if runs.len() > RUNS {
        text.push_str(&format!("- and {} more\n", runs.len() - RUNS));
    }
    text
}

fn tasks(list: &List) -> String {
    let mut text = String::new();
    if let Some(team) = &list.team {
        let members: Vec<&str> = team.members.iter().map(|member| member.name.as_str()).collect();
        text.push_str(&format!(
            "Team {}: {}. Members: {}.\n",
            team.name,
            line(&team.description),
            members.join(", ")
        ));
    }
    if list.tasks.is_empty() {
        return text;
    }
    let whose =
        list.team.as_ref().map_or_else(|| "this session".to_owned(), |team| format!("team {}", team.name));
    text.push_str(&format!("Open tasks of {whose}:\n"));
    for task in &list.tasks {
        let status = match task.status {
            TaskStatus::InProgress => "in progress",
            _ => "pending",
        };
        let owner = task.owner.as_ref().map_or_else(String::new, |owner| format!(", {}", line(&owner.name)));
        let waits: Vec<String> = task.waits_for.iter().map(ToString::to_string).collect();
        let waits =
            if waits.is_empty() { String::new() } else { format!(", waits for {}", waits.join(", ")) };
        text.push_str(&format!("- {}: {} ({status}{owner}{waits})\n", task.id, line(&task.subject)));
    }
    text
}
