//! Questions to a person, and their answers.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Display, PermissionMode, QuestionId, RawJson, RuleScope, Suggestion};

/// A question to a person about a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its id.
    pub id: QuestionId,
    /// What kind of answer it wants.
    pub kind: QuestionKind,
    /// The call.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// Its input, as the model wrote it.
    pub input: RawJson,
    /// Why it is asked.
    pub why: String,
    /// Who asks, if it is not the main agent: its name, or its path.
    pub from: Option<String>,
    /// When it stops waiting and counts as denied, in milliseconds of Unix time; `None` if it waits
    /// as long as it takes.
    pub until_ms: Option<i64>,
    /// Rules that an answer may accept, so that such calls are not asked about again: each is
    /// enough, from narrow to wide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Suggestion>,
    /// The change that the call would make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Display>,
    /// What the sandbox has refused to the command, which has ended: if it is allowed, the command
    /// runs again with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<SandboxRefusal>,
}

/// What a sandbox has refused to a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SandboxRefusal {
    /// Files and directories that it can write if it runs again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<PathBuf>,
    /// Files and directories that it can read if it runs again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<PathBuf>,
    /// Whether it can reach the network if it runs again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

impl<'de> Deserialize<'de> for SandboxRefusal {
    /// Only an object is one: since every field can be left out, an empty list would be one, too.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Fields {
            write: Vec<PathBuf>,
            read: Vec<PathBuf>,
            network: bool,
        }
        let object = serde_json::Map::deserialize(from)?;
        let fields = Fields::deserialize(serde_json::Value::Object(object));
        let Fields {
            write,
            read,
            network,
        } = fields.map_err(serde::de::Error::custom)?;
        Ok(Self {
            write,
            read,
            network,
        })
    }
}

/// What a question wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Whether the call may run.
    Permission,
    /// Whether a plan is approved.
    Plan,
    /// Which of several options a person chooses.
    Choice,
    /// What a server asks while it works on the call.
    Form,
}

impl QuestionKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Permission, Self::Plan, Self::Choice, Self::Form];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Plan => "plan",
            Self::Choice => "choice",
            Self::Form => "form",
        }
    }
}

/// The answer to a question about a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It may run.
    Allow {
        /// Run with this input instead; deny rules are asked again.
        input: Option<RawJson>,
        /// Rules of the question that hold from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<AcceptedRules>,
    },
    /// The plan is approved. Only for a question of kind [`QuestionKind::Plan`], which
    /// [`Answer::Allow`] approves as well.
    Approve {
        /// The plan that is approved instead; `None` for the one that was handed in.
        plan: Option<String>,
        /// The mode to continue in; `None` for the one before plan mode.
        mode: Option<PermissionMode>,
    },
    /// It may not.
    Deny {
        /// What the model is told.
        message: String,
        /// Whether the whole run stops.
        interrupt: bool,
    },
}

impl Answer {
    /// Returns the answer that allows this call, as it is.
    pub fn allow() -> Self {
        Self::Allow {
            input: None,
            always: None,
        }
    }
}

/// Rules that a person accepts, so that such calls are not asked about again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AcceptedRules {
    /// The rules, as one of the question's suggestions has them.
    pub rules: Vec<String>,
    /// Where they hold.
    pub scope: RuleScope,
}

/// An answer, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// The answer.
    pub answer: Answer,
    /// Who gave it.
    pub by: Answerer,
}

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answerer {
    /// A person.
    Person,
    /// Nobody: its time was over, or nobody was there any longer.
    Nobody,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_is_a_refusal() {
        let read = |text: &str| serde_json::from_str::<SandboxRefusal>(text);
        assert_eq!(read("{}").unwrap(), SandboxRefusal::default());
        let full = r#"{"write":["/a"],"read":["/b"],"network":true,"later":1}"#;
        let full = read(full).unwrap();
        assert!(full.network && full.write == [PathBuf::from("/a")] && full.read.len() == 1);
        for wrong in ["[]", r#"[["/a"],[],true]"#, "null", r#"{"network":1}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
