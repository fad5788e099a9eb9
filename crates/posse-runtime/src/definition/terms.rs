//! What is agreed when a sub-agent is started. It holds for its life, whatever becomes of the files and
//! flags that its type came from.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::PermissionMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::agent_type::Definition;
use crate::definition::skill;
use crate::definition::teammate::TeammateTerms;
use posse_permission::{Rights, RuleError, RuleList};
use posse_port::model::Effort;
use posse_port::store::Origin;
use posse_port::tool::AgentMemory;
use posse_port::worktree::Worktree;

/// Model calls in the run of a fork.
const FORK_TURNS: u32 = 200;

/// What an agent has that keeps notes, whatever else it has.
pub(crate) const NOTING: [&str; 3] = ["Read", "Write", "Edit"];

/// What a teammate has, whatever else it has: without these it could neither be heard nor end.
const TEAMWORK: [&str; 8] = [
    "SendMessage",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "NoteRead",
    "NoteWrite",
    "ExitPlanMode",
];

/// The terms of a sub-agent's life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Terms {
    /// The only tools it has; none for all that its parent has.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that it does not have, whatever `tools` says.
    pub(crate) disallowed: Vec<String>,
    /// Its mode, if not its parent's.
    pub(crate) mode: Option<PermissionMode>,
    /// How hard it tries.
    pub(crate) effort: Option<Effort>,
    /// Model calls in a run.
    pub(crate) turns: Option<u32>,
    /// Whether nobody writes to it later.
    pub(crate) one_shot: bool,
    /// The JSON Schema that its answer must fit.
    pub(crate) schema: Option<Arc<Value>>,
    /// The checkout that it has for itself.
    pub(crate) worktree: Option<Worktree>,
    /// What the checkout that it works in is a copy of, if it is one: its own, or that of its parent.
    pub(crate) copies: Vec<PathBuf>,
    /// Where it keeps notes.
    pub(crate) notes: Option<AgentMemory>,
    /// What the skill that it follows allows and forbids.
    pub(crate) granted: Granted,
    /// That it is a fork, and of whom.
    pub(crate) fork: Option<ForkOf>,
    /// That it is a teammate. A fork of one has its terms for the tools' sake, and is none.
    #[serde(rename = "mate")]
    pub(crate) teammate: Option<TeammateTerms>,
}

/// Rules of a skill's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Granted {
    pub(crate) file: String,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// Whose tools a fork has: all of them, so that what its model is told of them is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForkOf {
    /// A main agent's.
    Main,
    /// A sub-agent's, with the same terms.
    Sub,
}

impl Terms {
    /// Those of a type.
    pub(crate) fn of(kind: &Definition) -> Self {
        Self {
            tools: kind.tools.clone(),
            disallowed: kind.disallowed.clone(),
            mode: kind.mode,
            effort: kind.effort,
            turns: kind.max_turns,
            one_shot: kind.one_shot,
            schema: kind.output_schema.clone(),
            ..Self::default()
        }
    }

    /// Those of a fork of an agent with these terms; none of a main agent. It has what its parent has, and is
    /// forbidden what that is.
    pub(crate) fn of_fork(parent: Option<&Self>) -> Self {
        let inherited = parent.map(|terms| Self {
            tools: terms.tools.clone(),
            disallowed: terms.disallowed.clone(),
            notes: terms.notes.clone(),
            granted: terms.granted.clone(),
            teammate: terms.teammate.clone(),
            ..Self::default()
        });
        let fork = Some(if parent.is_some() {
            ForkOf::Sub
        } else {
            ForkOf::Main
        });
        Self {
            turns: Some(FORK_TURNS),
            fork,
            ..inherited.unwrap_or_default()
        }
    }

    /// Those of somebody who may do nothing: what they were is not known any more.
    pub(crate) fn lost() -> Self {
        Self {
            tools: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Those that were kept; none if an older posse kept none.
    pub(crate) fn kept(origin: &Origin) -> Option<Self> {
        serde_json::from_str(&origin.terms).ok()
    }

    /// The same to be kept; not if a path is no text.
    pub(crate) fn to_keep(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Whether it has a tool, if its parent has.
    pub(crate) fn has(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        let listed = self.tools.as_deref().is_none_or(named);
        let notes = self.notes.is_some() && NOTING.contains(&tool);
        let team = self.teammate.is_some() && TEAMWORK.contains(&tool);
        (listed || notes || team) && !named(&self.disallowed)
    }

    /// What a skill grants, and tools that it takes away.
    pub(crate) fn grant(&mut self, granted: Granted) {
        self.disallowed.extend(
            granted
                .deny
                .iter()
                .filter(|rule| !rule.contains('('))
                .cloned(),
        );
        self.granted = granted;
    }

    /// Lets what is granted hold.
    pub(crate) fn give(&self, rights: &Rights) -> Result<(), RuleError> {
        let Granted { file, allow, deny } = self.granted.clone();
        let rules = skill::rules(
            &file,
            RuleList {
                allow,
                deny,
                ask: Vec::new(),
            },
            rights.workspace(),
        );
        rules?.into_iter().for_each(|rules| rights.grant(rules));
        Ok(())
    }

    /// Notes in a directory. Whoever may edit nothing by its type may edit those alone.
    pub(crate) fn keep_notes(&mut self, directory: PathBuf) {
        let only = !(self.has("Write") || self.has("Edit"));
        self.notes = Some(AgentMemory { directory, only });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    // proves AD-04 (part: disallowedTools)
    #[test]
    fn what_is_disallowed_is_taken_from_what_is_listed() {
        type Case<'a> = (Option<&'a [&'a str]>, &'a [&'a str], [bool; 3]);
        let table: [Case<'_>; 5] = [
            (None, &[], [true, true, true]),
            (None, &["Bash"], [true, false, true]),
            (Some(&["Read", "Bash"]), &[], [true, true, false]),
            (Some(&["Read", "Bash"]), &["Bash"], [true, false, false]),
            (Some(&[]), &[], [false, false, false]),
        ];
        for (tools, disallowed, expected) in table {
            let terms = Terms {
                tools: tools.map(names),
                disallowed: names(disallowed),
                ..Terms::default()
            };
            assert_eq!(
                ["Read", "Bash", "Grep"].map(|tool| terms.has(tool)),
                expected,
                "{terms:?}"
            );
        }
    }

    #[test]
    fn who_keeps_notes_can_write_them_and_perhaps_nothing_else() {
        let with = |tools: Option<&[&str]>, disallowed: &[&str]| {
            let mut terms = Terms {
                tools: tools.map(names),
                disallowed: names(disallowed),
                ..Terms::default()
            };
            terms.keep_notes("/notes".into());
            (
                ["Read", "Write", "Grep"].map(|tool| terms.has(tool)),
                terms.notes.unwrap().only,
            )
        };
        assert_eq!(with(None, &[]), ([true, true, true], false));
        assert_eq!(with(Some(&["Grep"]), &[]), ([true, true, true], true));
        assert_eq!(with(Some(&["Edit"]), &[]), ([true, true, false], false));
        assert_eq!(
            with(Some(&["Grep"]), &["Write"]),
            ([true, false, true], true)
        );
    }

    #[test]
    fn a_teammate_can_be_heard_whatever_its_type_lists() {
        let team: posse_protocol::Name = "crew".parse().unwrap();
        let teammate = Some(TeammateTerms {
            team,
            plan: false,
            then: None,
            budget: None,
        });
        let terms = Terms {
            tools: Some(names(&["Read"])),
            teammate,
            ..Terms::default()
        };
        let all = |terms: &Terms| {
            ["Read", "SendMessage", "TaskUpdate", "Bash"].map(|tool| terms.has(tool))
        };
        assert_eq!(all(&terms), [true, true, true, false]);
        let less = Terms {
            disallowed: names(&["TaskUpdate"]),
            ..terms.clone()
        };
        assert_eq!(all(&less), [true, true, false, false]);
        assert_eq!(
            all(&Terms {
                teammate: None,
                ..terms
            }),
            [true, false, false, false]
        );
    }

    #[test]
    fn terms_are_kept() {
        let worktree = Worktree {
            path: "/t/a".into(),
            origin: "/w".into(),
            branch: "posse/a".into(),
            base: "3f2a".into(),
            carried: None,
        };
        let terms = Terms {
            tools: Some(names(&["Read"])),
            mode: Some(PermissionMode::Plan),
            effort: Some(Effort::XHigh),
            turns: Some(3),
            schema: Some(Arc::new(serde_json::json!({"type": "object"}))),
            worktree: Some(worktree),
            copies: vec!["/w".into()],
            granted: Granted {
                file: "/s".into(),
                allow: names(&["Read"]),
                deny: names(&["Bash"]),
            },
            ..Terms::default()
        };
        let origin = |terms: String| Origin {
            parent: uuid::Uuid::nil().into(),
            call: posse_port::store::CallKey { seq: 0, ordinal: 0 },
            call_id: String::new(),
            agent_type: String::new(),
            name: None,
            description: String::new(),
            terms,
        };
        assert_eq!(Terms::kept(&origin(terms.to_keep().unwrap())), Some(terms));
        assert_eq!(Terms::kept(&origin(String::new())), None);
        assert!(!Terms::lost().has("Read"));
    }
}
