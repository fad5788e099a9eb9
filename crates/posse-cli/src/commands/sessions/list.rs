//! `posse sessions list`.

use std::process::ExitCode;

use posse_port::store::{AgentRecord, Page, SessionFilter, SubtreeSpending};

use crate::config::environment::working_directory;
use crate::config::store::StoreArgs;
use crate::output::time::age;
use crate::output::transcript::fitted;
use crate::output::{json_line, print, say, say_to_person, tame, width};
use crate::present::costs::Tally;
use crate::present::history::first_line;
use crate::present::sessions::{distinct, object, state};

/// Number of sessions shown to people by default.
const SHOWN: usize = 20;
/// Width of a terminal from which entries and cost are shown.
const WITH_FIGURES: usize = 64;

/// List sessions, the last used first.
#[derive(clap::Args)]
pub(super) struct ListSessions {
    /// List sessions of all directories, not only of this one
    #[arg(long)]
    all: bool,
    /// Maximum number to list [default: 20; with --json all]
    #[arg(short, value_name = "N")]
    number: Option<usize>,
    /// Print one JSON object per session
    #[arg(long)]
    json: bool,
}

impl ListSessions {
    pub(super) async fn run(self, store: &StoreArgs) -> anyhow::Result<ExitCode> {
        let cwd = if self.all {
            None
        } else {
            Some(working_directory()?)
        };
        let store = crate::assemble::store::look_into_store(store)?;
        let most = self
            .number
            .unwrap_or(if self.json { usize::MAX } else { SHOWN });
        // One more than shown, to know if there are more.
        let mut sessions = store
            .sessions(
                SessionFilter {
                    cwd,
                    id_prefix: None,
                },
                Page::first(most.saturating_add(1)),
            )
            .await?;
        let more = sessions.len() > most;
        sessions.truncate(most);
        let ids = sessions.iter().map(|session| session.agent).collect();
        let spending = store.spending(ids).await?;
        let sessions: Vec<Line> = sessions.into_iter().zip(spending).collect();
        if self.json {
            for (session, spending) in &sessions {
                print(json_line(&object(session, spending)).as_bytes())?;
            }
        } else if sessions.is_empty() && !more {
            let elsewhere = if self.all {
                ""
            } else {
                " in this directory; --all shows those of others"
            };
            say_to_person(&format!("there is no session{elsewhere}"));
        } else {
            let now = jiff::Timestamp::now().as_millisecond();
            print(table(&sessions, now, self.all, width()).as_bytes())?;
            if more {
                say(&format!(
                    "there are more; see them with -n {}",
                    most.max(SHOWN).saturating_mul(5)
                ));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A session, and what it and all agents below it have used.
type Line = (AgentRecord, SubtreeSpending);

/// Returns a row per session, no wider than the terminal. A narrow one omits entries and cost,
/// and the first words get the rest.
fn table(sessions: &[Line], now: i64, with_place: bool, columns: Option<usize>) -> String {
    let ids: Vec<String> = sessions
        .iter()
        .map(|(session, _)| session.agent.to_string())
        .collect();
    let width = distinct(&ids);
    let figures = columns.is_none_or(|columns| columns >= WITH_FIGURES);
    let row = |[id, age, state, entries, cost]: [&str; 5], words: &str| {
        let figures = if figures {
            format!("{entries:>7}  {cost:>8}  ")
        } else {
            String::new()
        };
        let head = format!("{id:width$}  {age:>4}  {state:6}  {figures}");
        let room = columns.map_or(32, |columns| columns.saturating_sub(head.chars().count()));
        format!("{}\n", format!("{head}{}", fitted(words, room)).trim_end())
    };
    let mut table = row(["ID", "AGE", "STATE", "ENTRIES", "COST"], "FIRST WORDS");
    for ((session, spending), id) in sessions.iter().zip(&ids) {
        let words = session
            .first_prompt
            .as_deref()
            .and_then(first_line)
            .unwrap_or_default();
        let cost = Tally::of(&spending.charges).cost;
        let cost = cost.map_or_else(|| "?".to_owned(), |cost| cost.to_string());
        let (age, entries) = (
            age(now.saturating_sub(session.used_ms)),
            session.entries.to_string(),
        );
        let id = id.get(..width).unwrap_or(id);
        table.push_str(&row(
            [id, &age, state(session), &entries, &cost],
            &tame(&words),
        ));
        if with_place {
            let place = format!("{:width$}  in {}", "", tame(&session.cwd.to_string_lossy()));
            table.push_str(&fitted(&place, columns.unwrap_or(usize::MAX)));
            table.push('\n');
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::fixtures::session;

    /// A session with nobody below its main agent.
    fn alone(session: AgentRecord) -> Line {
        let charges = session.charges.clone();
        (session, SubtreeSpending { agents: 1, charges })
    }

    #[test]
    fn a_row_tells_id_age_state_and_first_words() {
        let shown = table(&[alone(session())], 61_000 + 120_000, true, None);
        let rows: Vec<&str> = shown.lines().collect();
        assert_eq!(
            rows,
            [
                "ID              AGE  STATE   ENTRIES      COST  FIRST WORDS",
                "0197f0aa-0000    2m  idle          2     $0.50  fix \\u{1b}[2Jit",
                "               in /work",
            ]
        );
        assert!(rows.iter().all(|row| row.chars().count() < 80));
        let mut dead = session();
        dead.state = posse_port::store::AgentState::Running;
        let (mut dead, spending) = alone(dead);
        assert_eq!(object(&dead, &spending)["state"], "broken");
        dead.holder = Some("pid 1".into());
        assert_eq!(object(&dead, &spending)["state"], "open");
        assert_eq!(
            object(&dead, &spending)["used_at"],
            "1970-01-01T00:01:01.000Z"
        );
    }

    #[test]
    fn rows_fit_the_terminal() {
        let mut long = session();
        let words = "many words ".repeat(40);
        let prompt = format!(r#"{{"role":"user","content":[{{"type":"text","text":"{words}"}}]}}"#);
        long.first_prompt = Some(prompt.into());
        long.cwd = format!("/{}", "deep/".repeat(60)).into();
        for columns in [40, 63, 64, 80, 200] {
            let shown = table(&[alone(long.clone())], 61_000, true, Some(columns));
            let widths: Vec<usize> = shown.lines().map(|row| row.chars().count()).collect();
            assert!(
                widths[1..]
                    .iter()
                    .all(|width| width.abs_diff(columns) < 2 && *width <= columns),
                "{shown}"
            );
            assert!(widths[0] <= columns && shown.contains("…\n"), "{shown}");
            assert_eq!(shown.contains("ENTRIES"), columns >= WITH_FIGURES);
        }
    }
}
