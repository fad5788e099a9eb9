//! The command that runs in a pane.

use std::ffi::{OsStr, OsString};
use std::fmt;

use posse_port::panes::NewPane;

/// How a process is started that takes a member from the store.
#[derive(Clone, Debug)]
pub struct Launch {
    /// posse with the flags that all members share. Nothing secret, because other users of the
    /// machine can read it.
    pub command: Vec<OsString>,
    /// Variables it needs: a terminal has another environment than posse.
    pub environment: Vec<Variable>,
    /// True if the session has a budget, which another process could not enforce.
    pub budgeted: bool,
}

/// A variable of the environment.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub value: OsString,
    /// True if nobody else may see it.
    pub secret: bool,
}

/// The error for a member without a budget in a session with one.
#[derive(Debug, thiserror::Error)]
#[error(
    "{title} has no budget of its own, and a process of its own could not keep the session's: give its role a \
     budget, or let it run in this process (--team-backend in-process)"
)]
pub(super) struct NoBudget {
    title: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

impl Variable {
    /// Returns `NAME=value`.
    pub(super) fn setting(&self) -> OsString {
        let mut setting = OsString::from(&self.name);
        setting.push("=");
        setting.push(&self.value);
        setting
    }
}

impl Launch {
    /// Returns the command line for one member.
    pub(super) fn command_line(&self, pane: &NewPane) -> Result<Vec<OsString>, NoBudget> {
        if self.budgeted && pane.budget.is_none() {
            return Err(NoBudget {
                title: pane.title.clone(),
            });
        }
        let mut line = self.command.clone();
        let mut option = |name: &str, value: &str| {
            line.extend([name, value].map(|word| OsStr::new(word).to_owned()))
        };
        option("--session", &pane.session.to_string());
        option("--member", &pane.member.to_string());
        if let Some(budget) = pane.budget {
            option("--max-budget-usd", &budget.usd().to_string());
        }
        Ok(line)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use posse_protocol::Cost;

    use super::*;

    pub(in crate::panes) fn pane() -> NewPane {
        NewPane {
            session: uuid::Uuid::from_u128(1).into(),
            member: uuid::Uuid::from_u128(2).into(),
            title: "dev@parser".into(),
            color: "orange".into(),
            cwd: "/work/it's".into(),
            budget: None,
        }
    }

    pub(in crate::panes) fn launch(budgeted: bool) -> Launch {
        let variable = |name: &str, value: &str, secret| Variable {
            name: name.into(),
            value: value.into(),
            secret,
        };
        Launch {
            command: ["posse", "team", "join"].map(OsString::from).to_vec(),
            environment: vec![
                variable("POSSE_HOME", "/h x", false),
                variable("KEY", "s3cret", true),
            ],
            budgeted,
        }
    }

    #[test]
    fn a_member_of_a_session_with_a_budget_needs_one_of_its_own() {
        let refused = launch(true).command_line(&pane()).unwrap_err().to_string();
        assert!(
            refused.contains("dev@parser has no budget") && refused.contains("in-process"),
            "{refused}"
        );
        let rich = NewPane {
            budget: Some(Cost::from_pico_usd(1_500_000_000_000)),
            ..pane()
        };
        let line = launch(true).command_line(&rich).unwrap();
        assert_eq!(line[line.len() - 2..], ["--max-budget-usd", "1.5"]);
        assert!(
            !launch(false)
                .command_line(&pane())
                .unwrap()
                .contains(&"--max-budget-usd".into())
        );
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        assert!(!format!("{:?}", launch(false)).contains("s3cret"));
    }
}
