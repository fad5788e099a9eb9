//! Skills: instructions in files, loaded by a model or called by a person as `/name`. A command is a skill
//! that is one file.

pub mod arguments;
pub mod body;
pub mod file;
mod name;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::definition::skill::body::{SkillBody, TemplatePart, TooLong, Values};
pub use crate::definition::skill::name::check_name;

use crate::definition::agent_type::GENERAL_PURPOSE;
use crate::definition::catalogue::Catalogue;
use crate::definition::tool_name::AGENT;
use posse_permission::{Policy, RuleError, RuleList, Source};
use posse_port::model::Effort;
use posse_port::tool::{Toolbox, Workspace};

/// The skills that there are, as they are now.
pub type Skills = Catalogue<Skill>;

/// A skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// What it is called by. Found without regard to case.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// When to use it, if the description does not say.
    pub when_to_use: Option<String>,
    /// What is to be written after its name, for people.
    pub argument_hint: Option<String>,
    /// The names of its arguments, in their order.
    pub arguments: Vec<String>,
    /// Whether a model may load it by itself.
    pub for_model: bool,
    /// Whether a person may call it.
    pub for_user: bool,
    /// What need not be asked about while it is followed, as rules.
    pub allowed: Vec<String>,
    /// What may not be done while it is followed, as rules.
    pub disallowed: Vec<String>,
    /// Whether an agent of its own follows it, and which; else whoever has loaded it.
    pub fork: Option<Fork>,
    /// Its instructions.
    pub body: SkillBody,
    /// Its file.
    pub path: PathBuf,
}

/// The agent that follows a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fork {
    /// Its type; none for the usual one.
    pub agent: Option<String>,
    /// Its model; none for the type's.
    pub model: Option<String>,
    /// How hard it tries; none for as hard as the type.
    pub effort: Option<Effort>,
    /// Whether nobody waits for it.
    pub background: bool,
}

impl Fork {
    /// The type of the agent.
    pub fn agent_type(&self) -> &str {
        self.agent.as_deref().unwrap_or(GENERAL_PURPOSE)
    }
}

impl Skill {
    /// Where its other files are.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// What it allows and forbids while it is followed; none if that is nothing.
    pub(crate) fn rules(&self, workspace: &Workspace) -> Result<Option<Arc<Policy>>, RuleError> {
        let list = RuleList {
            allow: self.allowed.clone(),
            deny: self.disallowed.clone(),
            ask: Vec::new(),
        };
        rules(&self.path.display().to_string(), list, workspace)
    }
}

/// Rules of a file, as they hold in a workspace; none if there are none.
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

/// The skill of this name, however it is written.
pub fn named<'a>(skills: &'a [Arc<Skill>], name: &str) -> Option<&'a Arc<Skill>> {
    let name = name.to_lowercase();
    skills
        .iter()
        .find(|skill| skill.name.to_lowercase() == name)
}

/// Those of the skills that an agent with these tools can follow: who starts no agents, starts none by a skill.
pub(crate) fn followable(skills: &[Arc<Skill>], tools: &Toolbox) -> Vec<Arc<Skill>> {
    let starts = tools.get(AGENT).is_some();
    skills
        .iter()
        .filter(|skill| starts || skill.fork.is_none())
        .cloned()
        .collect()
}
