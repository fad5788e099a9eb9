//! Skills: instructions in files that a model loads or a person calls as `/name`. A command is a
//! skill that is one file.

pub mod arguments;
pub mod body;
pub mod file;
mod name;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::definition::skill::body::{SkillBody, TemplatePart, TooLong, Values};
pub use crate::definition::skill::name::{check_name, meant};

use crate::definition::agent_type::GENERAL_PURPOSE;
use crate::definition::catalogue::Catalogue;
use crate::definition::tool_name::AGENT;
use crate::hook::Hook;
use posse_permission::{Policy, RuleError, RuleList, Source};
use posse_port::model::Effort;
use posse_port::tool::{Toolbox, Workspace};

/// The current skills.
pub type Skills = Catalogue<Skill>;

/// A skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name; case is ignored.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// When to use it, if the description does not say.
    pub when_to_use: Option<String>,
    /// Hint about its arguments, for people.
    pub argument_hint: Option<String>,
    /// Names of its arguments, in order.
    pub arguments: Vec<String>,
    /// True if a model may load it.
    pub for_model: bool,
    /// True if a person may call it.
    pub for_user: bool,
    /// Rules that allow actions without asking while it is followed.
    pub allowed: Vec<String>,
    /// Rules that forbid actions while it is followed.
    pub disallowed: Vec<String>,
    /// Hooks that run while it is followed.
    pub hooks: Vec<Arc<Hook>>,
    /// The sub-agent that follows it; none if the agent that loads it does.
    pub fork: Option<Fork>,
    /// Its instructions.
    pub body: SkillBody,
    /// Its file.
    pub path: PathBuf,
}

/// The agent that follows a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fork {
    /// Its type; none for the default.
    pub agent: Option<String>,
    /// Its model; none for the type's.
    pub model: Option<String>,
    /// Reasoning effort; none for the type's.
    pub effort: Option<Effort>,
    /// True if it runs in the background.
    pub background: bool,
}

impl Fork {
    /// Returns the type of the agent.
    pub fn agent_type(&self) -> &str {
        self.agent.as_deref().unwrap_or(GENERAL_PURPOSE)
    }
}

impl Skill {
    /// Returns the directory of its files.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Returns the rules that apply while it is followed; none if there are none.
    pub(crate) fn rules(&self, workspace: &Workspace) -> Result<Option<Arc<Policy>>, RuleError> {
        let list = RuleList {
            allow: self.allowed.clone(),
            deny: self.disallowed.clone(),
            ask: Vec::new(),
        };
        rules(&self.path.display().to_string(), list, workspace)
    }
}

/// Compiles rules of a file for a workspace; none if there are none.
pub(crate) fn rules(
    file: &str,
    list: RuleList,
    workspace: &Workspace,
) -> Result<Option<Arc<Policy>>, RuleError> {
    if list == RuleList::default() {
        return Ok(None);
    }
    let (cwd, home) = (workspace.cwd.clone(), workspace.home.clone());
    let source = Source {
        name: file.to_owned(),
        root: cwd.clone(),
        cwd,
        home,
    };
    let mut policy = Policy::default();
    policy.add(&source, &list)?;
    Ok(Some(Arc::new(policy)))
}

/// Returns the skill with this name, ignoring case.
pub fn named<'a>(skills: &'a [Arc<Skill>], name: &str) -> Option<&'a Arc<Skill>> {
    let name = name.to_lowercase();
    skills
        .iter()
        .find(|skill| skill.name.to_lowercase() == name)
}

/// Returns the skills that an agent with these tools can follow: without the Agent tool, none that
/// needs a sub-agent.
pub(crate) fn followable(skills: &[Arc<Skill>], tools: &Toolbox) -> Vec<Arc<Skill>> {
    let starts = tools.get(AGENT).is_some();
    skills
        .iter()
        .filter(|skill| starts || skill.fork.is_none())
        .cloned()
        .collect()
}
