//! `posse sessions list`.

use std::process::ExitCode;

use posse_protocol::Cost;
use posse_runtime::port::store::{Session, SessionFilter};
use serde_json::{Value, json};

use super::{cost, moment, state};
use crate::environment::working_directory;
use crate::output::{json_line, print, say_to_person, tame};
use crate::transcript::{first_line, shortened};

/// List sessions, the one used last first.
#[derive(clap::Args)]
pub(super) struct List {
    /// Those of all directories, not only of this one
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(short, value_name = "N", default_value_t = 20)]
    number: usize,
    /// One JSON object per session
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cwd = if self.all { None } else { Some(working_directory()?) };
        let store = crate::session::open_store()?;
        let sessions = store.sessions(SessionFilter { cwd, id_prefix: None }, self.number).await?;
        if self.json {
            for session in &sessions {
                print(json_line(&object(session)).as_bytes())?;
            }
        } else if sessions.is_empty() {
            let elsewhere = if self.all { "" } else { " of this directory; --all shows those of others" };
            say_to_person(&format!("there is no session{elsewhere}"));
        } else {
            let now = jiff::Timestamp::now().as_millisecond();
            print(table(&sessions, now, self.all).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A session for programs; also the head of `show --json`.
pub(super) fn object(session: &Session) -> Value {
    json!({
        "session_id": session.agent, "cwd": session.cwd.to_string_lossy(), "model": session.model,
        "permission_mode": session.mode, "state": state(session), "held": session.held,
        "created_at": moment(session.created_ms), "used_at": moment(session.used_ms),
        "entries": session.entries, "cost_usd": cost(session).map(Cost::usd),
        "first_prompt": session.first_prompt.as_deref().and_then(first_line),
    })
}

fn table(sessions: &[Session], now: i64, with_place: bool) -> String {
    let ids: Vec<String> = sessions.iter().map(|session| session.agent.to_string()).collect();
    let width = distinct(&ids);
    let mut table = format!(
        "{:width$}  {:>4}  {:6}  {:>7}  {:>8}  FIRST WORDS\n",
        "ID", "AGE", "STATE", "ENTRIES", "COST"
    );
    for (session, id) in sessions.iter().zip(&ids) {
        let words = session.first_prompt.as_deref().and_then(first_line).unwrap_or_default();
        let cost = cost(session).map_or_else(|| "?".to_owned(), |cost| cost.to_string());
        table.push_str(&format!(
            "{:width$}  {:>4}  {:6}  {:>7}  {cost:>8}  {}\n",
            id.get(..width).unwrap_or(id),
            age(now.saturating_sub(session.used_ms)),
            state(session),
            session.entries,
            tame(&shortened(&words, 32)),
        ));
        if with_place {
            table.push_str(&format!("{:width$}  in {}\n", "", tame(&session.cwd.to_string_lossy())));
        }
    }
    table
}

/// The least of an id that is shown: the time in milliseconds.
pub(super) const SHORTEST: usize = 13;

/// How much of the ids tells them apart.
pub(super) fn distinct(ids: &[String]) -> usize {
    let different = |width: &usize| {
        let mut heads: Vec<&str> = ids.iter().map(|id| id.get(..*width).unwrap_or(id)).collect();
        heads.sort_unstable();
        heads.windows(2).all(|pair| pair[0] != pair[1])
    };
    (SHORTEST..36).find(different).unwrap_or(36)
}

fn age(ms: i64) -> String {
    match ms / 1000 {
        seconds @ ..60 => format!("{}s", seconds.max(0)),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{ID, session};
    use super::*;

    #[test]
    fn a_row_tells_id_age_state_and_first_words() {
        let shown = table(&[session()], 61_000 + 120_000, true);
        let rows: Vec<&str> = shown.lines().collect();
        assert_eq!(
            rows,
            [
                "ID              AGE  STATE   ENTRIES      COST  FIRST WORDS",
                "0197f0aa-0000    2m  idle          2   $0.5000  fix \\u{1b}[2Jit",
                "               in /work",
            ]
        );
        assert!(rows.iter().all(|row| row.chars().count() < 80));
        let mut dead = session();
        dead.state = posse_runtime::port::store::AgentState::Running;
        assert_eq!(object(&dead)["state"], "broken");
        dead.held = true;
        assert_eq!(object(&dead)["state"], "open");
        assert_eq!(object(&dead)["used_at"], "1970-01-01T00:01:01.000Z");
    }

    #[test]
    fn ids_are_as_long_as_they_must_be() {
        let other = ID.replace("-7000-", "-7100-");
        assert_eq!(distinct(&[ID.into()]), 13);
        assert_eq!(distinct(&[ID.into(), other]), 16);
        assert_eq!(
            ["-5", "0", "59999", "60000", "3600000", "90000000"].map(|ms| age(ms.parse().unwrap())),
            ["0s", "0s", "59s", "1m", "1h", "1d"]
        );
    }
}
