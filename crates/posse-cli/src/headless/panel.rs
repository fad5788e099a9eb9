//! A team at work, redrawn in place at the bottom of a terminal.

use std::time::Duration;

use posse_protocol::MemberState;
use posse_tui::text;

use crate::output::paint::painted;
use crate::output::tame;
use crate::output::transcript::fitted;

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    pub(crate) team: String,
    pub(crate) members: Vec<PanelRow>,
    pub(crate) done: usize,
    pub(crate) tasks: usize,
    /// Requests that wait for an answer.
    pub(crate) requests: usize,
    pub(crate) cost: String,
    pub(crate) elapsed: Duration,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PanelRow {
    pub(crate) name: String,
    pub(crate) color: String,
    pub(crate) state: MemberState,
    /// The task it works on.
    pub(crate) task: Option<String>,
}

impl Panel {
    /// Returns its lines, which fit the window. Working members are shown before others.
    pub(crate) fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        // A line that fills the last column would be followed by an empty one.
        let widest = columns.saturating_sub(1);
        let mut lines = vec![format!("\x1b[1m{}\x1b[0m", fitted(&self.head(), widest))];
        // One row is for the head, one for the cursor, which stands below the last line.
        let room = rows.saturating_sub(2);
        let (mut shown, mut left_out): (Vec<&PanelRow>, usize) = (self.members.iter().collect(), 0);
        if shown.len() > room {
            // A stable sort: members that work keep their order, and so do the others.
            shown.sort_by_key(|row| !row.state.is_busy());
            left_out = shown.len() - room.saturating_sub(1);
            shown.truncate(room.saturating_sub(1));
        }
        let names = shown
            .iter()
            .map(|row| text::columns(&row.name))
            .max()
            .unwrap_or_default()
            .min(20);
        lines.extend(shown.iter().map(|row| row.line(names, widest)));
        if left_out > 0 && room > 0 {
            lines.push(fitted(&format!("  and {left_out} more"), widest));
        }
        lines
    }

    fn head(&self) -> String {
        let tasks = format!("{} of {} tasks done", self.done, self.tasks);
        let mut parts = vec![tame(&self.team), tasks];
        if self.requests > 0 {
            parts.push(format!("{} to approve", self.requests));
        }
        parts.extend([self.cost.clone(), lasted(self.elapsed)]);
        parts.join(" · ")
    }
}

impl PanelRow {
    fn line(&self, names: usize, widest: usize) -> String {
        let name = fitted(&tame(&self.name), names);
        let blank = " ".repeat(names.saturating_sub(text::columns(&name)));
        let task = self
            .task
            .as_deref()
            .map(|task| format!("  {}", tame(task)))
            .unwrap_or_default();
        let who = format!("● {name}");
        let line = fitted(
            format!("{who}{blank}  {:<8}{task}", self.state.as_str()).trim_end(),
            widest,
        );
        match line.strip_prefix(&who) {
            Some(rest) => format!("{}\x1b[2m{rest}\x1b[0m", painted(&who, &self.color)),
            None => painted(&line, &self.color),
        }
    }
}

/// Returns a duration for people.
pub(crate) fn lasted(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h {minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn panel() -> Panel {
        let row = |name: &str, state, task: Option<&str>| PanelRow {
            name: name.into(),
            color: "blue".into(),
            state,
            task: task.map(str::to_owned),
        };
        Panel {
            team: "parser".into(),
            members: vec![
                row("team-lead", MemberState::Idle, None),
                row(
                    "dev-1",
                    MemberState::Running,
                    Some("#2 mend the lexer 漢字"),
                ),
                row("dev-2", MemberState::Waiting, Some("#3 mend the printer")),
            ],
            done: 1,
            tasks: 4,
            requests: 1,
            cost: "$0.12".into(),
            elapsed: Duration::from_secs(63),
        }
    }

    fn plain(columns: usize, rows: usize) -> Vec<String> {
        panel()
            .lines(columns, rows)
            .iter()
            .map(|line| strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn a_team_is_seen_at_a_glance() {
        assert_eq!(
            plain(80, 24),
            [
                "parser · 1 of 4 tasks done · 1 to approve · $0.12 · 1m 03s",
                "● team-lead  idle",
                "● dev-1      running   #2 mend the lexer 漢字",
                "● dev-2      waiting   #3 mend the printer",
            ]
        );
    }

    #[test]
    fn no_window_is_too_small() {
        for (columns, rows) in (0..70).flat_map(|columns| (0..8).map(move |rows| (columns, rows))) {
            let lines = plain(columns, rows);
            assert!(lines.len() <= rows.max(1), "{columns} x {rows}: {lines:?}");
            let widest = lines.iter().map(|line| text::columns(line)).max().unwrap();
            assert!(widest < columns.max(4), "{columns} x {rows}: {lines:?}");
        }
        let few = plain(80, 4);
        assert!(
            few[1].contains("dev-1") && few[2] == "  and 2 more",
            "who works is shown: {few:?}"
        );
    }

    #[test]
    fn time_is_told_in_its_largest_units() {
        let told = [5, 65, 3665].map(|seconds| lasted(Duration::from_secs(seconds)));
        assert_eq!(told, ["5s", "1m 05s", "1h 01m"]);
    }
}
