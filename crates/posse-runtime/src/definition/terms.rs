//! Terms of a sub-agent: fixed when it is started, and valid for its life, whatever happens to the
//! files and flags that its type came from.

use std::path::PathBuf;
use std::sync::Arc;

use posse_protocol::PermissionMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::agent_type::Definition;
use crate::definition::skill;
use crate::definition::teammate::TeammateTerms;
use crate::definition::tool_name::{ASK, OF_SERVERS, SERVER_TOOLS, means};
use posse_permission::{Rights, RuleError, RuleList};
use posse_port::model::Effort;
use posse_port::store::Origin;
use posse_port::tool::AgentMemory;
use posse_port::worktree::Worktree;

/// Maximum number of model calls in a fork's run.
const FORK_TURNS: u32 = 200;

/// Tools that an agent with notes always has.
pub(crate) const NOTING: [&str; 3] = ["Read", "Write", "Edit"];

/// Tools that a teammate always has: without them it could neither answer nor end.
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

/// Terms of a sub-agent; stored with its record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Terms {
    /// The only tools it has; none for all of its parent's.
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that it never has, whatever `tools` says.
    pub(crate) disallowed: Vec<String>,
    /// Its mode, if not its parent's.
    pub(crate) mode: Option<PermissionMode>,
    /// Reasoning effort.
    pub(crate) effort: Option<Effort>,
    /// Maximum number of model calls in a run.
    pub(crate) turns: Option<u32>,
    /// True if nobody can write to it after its answer.
    pub(crate) one_shot: bool,
    /// JSON Schema of its answer.
    pub(crate) schema: Option<Arc<Value>>,
    /// Worktree of its own.
    pub(crate) worktree: Option<Worktree>,
    /// Originals of the checkout that it works in, if that is a worktree: its own or its parent's.
    pub(crate) copies: Vec<PathBuf>,
    /// Notes that it keeps.
    pub(crate) notes: Option<AgentMemory>,
    /// Rules of the skill that it follows.
    pub(crate) granted: Granted,
    /// Set if it is a fork: of which kind of agent.
    pub(crate) fork: Option<ForkOf>,
    /// Set if it is a teammate. A fork of one has these terms for its tools, and is not a teammate.
    #[serde(rename = "mate")]
    pub(crate) teammate: Option<TeammateTerms>,
}

/// Rules of a skill's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Granted {
    /// The skill's file.
    pub(crate) file: String,
    /// Rules that allow actions.
    pub(crate) allow: Vec<String>,
    /// Rules that forbid actions.
    pub(crate) deny: Vec<String>,
}

/// Kind of agent whose tools a fork has: all of them, so that its preamble stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForkOf {
    /// A main agent's.
    Main,
    /// A sub-agent's, with the same terms.
    Sub,
}

impl Terms {
    /// Returns the terms of a type.
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

    /// Returns the terms of a fork of an agent with these terms; none for a main agent. It has what
    /// its parent has, and is forbidden what its parent is.
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

    /// Returns terms that allow nothing, for an agent whose terms are unknown.
    pub(crate) fn lost() -> Self {
        Self {
            tools: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Parses stored terms; none if there are none.
    pub(crate) fn kept(origin: &Origin) -> Option<Self> {
        serde_json::from_str(&origin.terms).ok()
    }

    /// Returns the branch of its own worktree, if it has one.
    pub(crate) fn branch(&self) -> Option<String> {
        self.worktree
            .as_ref()
            .map(|worktree| worktree.branch.clone())
    }

    /// Encodes the terms for the store; fails if a path is not text.
    pub(crate) fn to_keep(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Returns true if it has a tool that its parent has.
    pub(crate) fn has(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| means(name, tool));
        let listed = self.tools.as_deref().is_none_or(named);
        let notes = self.notes.is_some() && NOTING.contains(&tool);
        let team = self.teammate.is_some() && TEAMWORK.contains(&tool);
        // Whatever an agent is for, it may ask, unless it shall have no tools at all.
        let asks = tool == ASK && self.tools.as_deref() != Some(&[]);
        // What servers have is reached by these.
        let of_servers = |names: &[String]| names.iter().any(|it| it.starts_with(OF_SERVERS));
        let serves = SERVER_TOOLS.contains(&tool) && self.tools.as_deref().is_some_and(of_servers);
        (listed || notes || team || asks || serves) && !named(&self.disallowed)
    }

    /// Returns true if it hands in plans to a person: it is in plan mode, and its type names the tool.
    pub(crate) fn hands_in_plans(&self) -> bool {
        let named = |names: &Vec<String>| names.iter().any(|name| name == "ExitPlanMode");
        self.mode == Some(PermissionMode::Plan) && self.tools.as_ref().is_some_and(named)
    }

    /// Adds the rules of a skill, and removes tools that it forbids.
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

    /// Applies the rules of a skill to its rights.
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

    /// Adds notes in a directory. An agent that may edit nothing by its type may edit only those.
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
            by_hook: false,
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
