//! Permission rules, and which calls they apply to.

mod grammar;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::host::HostPattern;
use super::path::{PathPattern, protected, watched};
use super::pattern::{CommandPattern, Domain, Glob};
use crate::mirror::RulePaths as _;
use crate::rule_problem::RuleProblem;
use posse_port::confinement::FileAccess;
use posse_port::tool::{FileGuard, RuledPaths, Subject, Workspace};

/// All rules of a session.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub(super) deny: Vec<Rule>,
    pub(super) ask: Vec<Rule>,
    pub(super) allow: Vec<Rule>,
    /// The only tools that may be used; `None` for all.
    tools: Option<Vec<String>>,
    /// True if no command may run outside the sandbox, whatever rules allow.
    pub(super) is_kept_inside: bool,
}

/// Where rules come from, which decides what their paths mean. Directories are absolute and
/// resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of a file or a flag, for people.
    pub name: String,
    /// What `/` at the beginning of a pattern refers to: the settings file's root.
    pub root: PathBuf,
    /// What `./` or nothing at the beginning of a pattern refers to: where the agent works.
    pub cwd: PathBuf,
    /// What `~/` at the beginning of a pattern refers to.
    pub home: Option<PathBuf>,
}

/// Rules as they are written in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleList {
    /// Never allowed.
    pub deny: Vec<String>,
    /// Allowed if a person approves.
    pub ask: Vec<String>,
    /// Allowed.
    pub allow: Vec<String>,
}

/// An invalid rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is not a permission rule: {why} ({place})")]
pub struct RuleError {
    /// The text.
    pub rule: String,
    /// What is wrong.
    pub why: RuleProblem,
    /// The source it is in.
    pub place: String,
}

/// A rule, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedRule<'a> {
    /// `deny`, `ask` or `allow`.
    pub list: &'static str,
    /// The rule as it was written.
    pub rule: &'a str,
    /// The name of the file or flag that it is in.
    pub source: &'a str,
}

/// One rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// As it was written.
    text: String,
    /// The source it is in.
    place: Arc<str>,
    pub(super) about: About,
}

/// What a rule applies to.
#[derive(Clone, Debug)]
pub(super) enum About {
    /// Tools, with any input.
    Tools(Glob),
    /// All tools that read files.
    Reading,
    /// All tools that edit files.
    Editing,
    /// Reading these.
    Read(PathPattern),
    /// Editing these.
    Edit(PathPattern),
    /// Commands.
    Command(CommandPattern),
    /// Commands, outside the sandbox.
    Outside(CommandPattern),
    /// Hosts that are fetched from.
    Host(Domain),
    /// Hosts that commands connect to.
    Connect(HostPattern),
    /// Agents of this type.
    Agent(Glob),
    /// Skills of this name.
    Skill(Glob),
    /// A tool that posse does not have.
    Elsewhere,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({})", self.text, self.place)
    }
}

impl Rule {
    /// Returns true if the rule applies to all calls of a tool.
    pub(super) fn names_tool(&self, tool: &str) -> bool {
        match &self.about {
            About::Tools(name) => name.matches(tool),
            About::Reading => matches!(tool, "Read" | "Grep" | "Glob"),
            About::Editing => matches!(tool, "Edit" | "Write"),
            About::Command(pattern) => tool == "Bash" && pattern.is_everything(),
            About::Host(domain) => tool == "WebFetch" && *domain == Domain::Any,
            About::Agent(name) => tool == "Agent" && name.is_everything(),
            About::Skill(name) => tool == "Skill" && name.is_everything(),
            About::Read(_)
            | About::Edit(_)
            | About::Outside(_)
            | About::Connect(_)
            | About::Elsewhere => false,
        }
    }

    /// Parses a rule. `allows` is true for the allow list, where less may be left open.
    pub(super) fn read(text: &str, source: &Source, allows: bool) -> Result<Self, RuleError> {
        let about = grammar::read(text, source, allows).map_err(|why| RuleError {
            rule: text.to_owned(),
            why,
            place: source.name.clone(),
        })?;
        Ok(Self {
            text: text.trim().to_owned(),
            place: source.name.as_str().into(),
            about,
        })
    }

    /// Returns true if, as a deny or ask rule, it applies to a call of this tool that runs no
    /// command.
    pub(super) fn touches(&self, tool: &str, subject: &Subject, workspace: &Workspace) -> bool {
        self.names_tool(tool)
            || match (subject, &self.about) {
                (Subject::Reads(paths), About::Read(pattern)) => {
                    paths.iter().any(|path| pattern.touches(path, workspace))
                }
                // What may not be read may not be edited, either.
                (Subject::Edits(paths), About::Read(pattern) | About::Edit(pattern)) => {
                    paths.iter().any(|path| pattern.touches(path, workspace))
                }
                (Subject::Fetches { host }, About::Host(domain)) => domain.matches(host),
                (Subject::Connects { host, port }, About::Connect(pattern)) => {
                    pattern.touches(host, *port)
                }
                (Subject::Starts { agent }, About::Agent(name)) => {
                    name.matches(&agent.to_lowercase())
                }
                (Subject::Follows { skill }, About::Skill(name)) => {
                    name.matches(&skill.to_lowercase())
                }
                _ => false,
            }
    }
}

impl Policy {
    /// Adds the rules of a source. If one of them is invalid, none is added.
    pub fn add(&mut self, source: &Source, rules: &RuleList) -> Result<(), RuleError> {
        let read = |texts: &[String], allows: bool| -> Result<Vec<Rule>, RuleError> {
            let one = |text: &String| Rule::read(text, source, allows);
            texts.iter().map(one).collect()
        };
        // All are parsed before any is added, so that an invalid rule adds nothing.
        let (deny, ask) = (read(&rules.deny, false)?, read(&rules.ask, false)?);
        let allow = read(&rules.allow, true)?;
        self.deny.extend(deny);
        self.ask.extend(ask);
        self.allow.extend(allow);
        Ok(())
    }

    /// Returns all rules in the order in which they count: what denies first.
    pub fn rules(&self) -> Vec<ListedRule<'_>> {
        let lists = [
            ("deny", &self.deny),
            ("ask", &self.ask),
            ("allow", &self.allow),
        ];
        let rules = lists.iter().flat_map(|(list, rules)| {
            rules.iter().map(|rule| ListedRule {
                list,
                rule: &rule.text,
                source: &rule.place,
            })
        });
        rules.collect()
    }

    /// Returns the only tools that may be used; none if all may be.
    pub fn only_tools(&self) -> Option<&[String]> {
        self.tools.as_deref()
    }

    /// Forbids all tools but these.
    pub fn limit_to_tools(&mut self, tools: Vec<String>) {
        self.tools = Some(tools);
    }

    /// Forbids that commands run outside the sandbox, whatever rules allow.
    pub fn keep_inside(&mut self) {
        self.is_kept_inside = true;
    }

    /// Returns true if rules deny hosts, or ask about some.
    pub(super) fn rules_hosts(&self) -> bool {
        let is_about_hosts = |rule: &Rule| matches!(rule.about, About::Connect(_));
        self.deny.iter().chain(&self.ask).any(is_about_hosts)
    }

    /// Returns true if rules deny every edit, or ask about every one and no person has agreed.
    pub(super) fn forbids_edits(&self, unasked: bool) -> bool {
        let names = |rule: &Rule| rule.names_tool("Edit") || rule.names_tool("Write");
        self.deny.iter().any(names) || unasked && self.ask.iter().any(names)
    }

    /// Returns true if the tool is not one of those that may be used.
    pub(super) fn leaves_out(&self, tool: &str) -> bool {
        let among = |tools: &Vec<String>| tools.iter().any(|known| known == tool);
        self.tools.as_ref().is_some_and(|tools| !among(tools))
    }

    /// Returns the rules without those that allow something.
    pub fn strict(&self) -> Self {
        Self {
            allow: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the files and directories that rules allow to edit: commands may write there, too.
    pub(super) fn editable_paths(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let patterns = self.allow.iter().filter_map(|rule| match &rule.about {
            About::Edit(pattern) => pattern.place().ok(),
            _ => None,
        });
        let paths = patterns.flat_map(|path| workspace.copies(path));
        paths
            .filter(|path| protected(path, workspace).is_none())
            .collect()
    }

    /// Returns true if a tool is always denied, so that the model is not told of it.
    pub fn forbids_tool(&self, tool: &str) -> bool {
        self.leaves_out(tool) || self.deny.iter().any(|rule| rule.names_tool(tool))
    }

    /// Returns true if agents of this type are denied, so that the model is not told of it.
    pub fn forbids_agent(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let denies =
            |rule: &Rule| matches!(&rule.about, About::Agent(pattern) if pattern.matches(&name));
        self.forbids_tool("Agent") || self.deny.iter().any(denies)
    }

    /// Returns true if skills of this name are denied, so that the model is not told of them.
    pub fn forbids_skill(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let denies =
            |rule: &Rule| matches!(&rule.about, About::Skill(pattern) if pattern.matches(&name));
        self.forbids_tool("Skill") || self.deny.iter().any(denies)
    }

    /// Returns true if both have the same rules from the same sources.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let same = |one: &[Rule], other: &[Rule]| {
            let alike =
                |(one, other): (&Rule, &Rule)| one.text == other.text && one.place == other.place;
            one.len() == other.len() && one.iter().zip(other).all(alike)
        };
        same(&self.deny, &other.deny)
            && same(&self.ask, &other.ask)
            && same(&self.allow, &other.allow)
    }

    /// Returns these rules followed by those of others.
    pub(super) fn with<'a>(&self, others: impl IntoIterator<Item = &'a Arc<Self>>) -> Self {
        let mut all = self.clone();
        for other in others {
            all.deny.extend(other.deny.iter().cloned());
            all.ask.extend(other.ask.iter().cloned());
            all.allow.extend(other.allow.iter().cloned());
        }
        all
    }
}

/// Returns the programs whose every call these rules are about.
fn whole_programs(rules: &[Rule]) -> Vec<String> {
    let programs = rules.iter().filter_map(|rule| match &rule.about {
        About::Command(pattern) => pattern.whole_program(),
        _ => None,
    });
    programs.map(str::to_owned).collect()
}

impl FileGuard for Policy {
    fn denies_reading(&self, path: &Path, workspace: &Workspace) -> bool {
        self.deny.iter().any(|rule| match &rule.about {
            About::Reading => true,
            About::Read(pattern) => pattern.touches(path, workspace),
            _ => false,
        })
    }

    fn asks_reading(&self, path: &Path, workspace: &Workspace) -> bool {
        self.ask.iter().any(|rule| match &rule.about {
            About::Read(pattern) => pattern.touches(path, workspace),
            _ => false,
        })
    }

    fn denies_editing(&self, path: &Path, workspace: &Workspace) -> bool {
        self.deny.iter().any(|rule| match &rule.about {
            About::Editing => true,
            About::Read(pattern) | About::Edit(pattern) => pattern.touches(path, workspace),
            _ => false,
        })
    }

    fn access(&self, path: &Path, workspace: &Workspace, unasked: bool) -> FileAccess {
        let asking = self.ask.iter().filter(|_| unasked);
        let mut access = FileAccess::Write;
        for rule in self.deny.iter().chain(asking) {
            let left = match &rule.about {
                About::Read(pattern) if pattern.touches(path, workspace) => FileAccess::Hidden,
                About::Edit(pattern) if pattern.touches(path, workspace) => FileAccess::Read,
                _ => continue,
            };
            access = access.min(left);
        }
        let is_kept = || {
            protected(path, workspace).is_some() || unasked && watched(path, workspace).is_some()
        };
        match access {
            FileAccess::Write if is_kept() => FileAccess::Read,
            access => access,
        }
    }

    fn ruled_paths(&self, workspace: &Workspace) -> RuledPaths {
        let mut found = RuledPaths::default();
        for rule in self.deny.iter().chain(&self.ask) {
            let (About::Read(pattern) | About::Edit(pattern)) = &rule.about else {
                continue;
            };
            found.rules.push(format!("{} {}", rule.text, rule.place));
            match pattern.place() {
                Ok(path) => found.named.extend(workspace.copies(path)),
                Err(directory) => found.beneath.extend(workspace.copies(directory)),
            }
        }
        found.denied_programs = whole_programs(&self.deny);
        found.asked_programs = whole_programs(&self.ask);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source {
            name: "a test".into(),
            root: "/w".into(),
            cwd: "/w/sub".into(),
            home: Some("/h".into()),
        }
    }

    fn policy(deny: &[&str]) -> Policy {
        let mut policy = Policy::default();
        let deny = deny.iter().map(|rule| (*rule).to_owned()).collect();
        policy
            .add(
                &source(),
                &RuleList {
                    deny,
                    ..RuleList::default()
                },
            )
            .unwrap();
        policy
    }

    #[test]
    fn agents_are_ruled_without_case() {
        for (rule, agent, expected) in [
            ("Agent(explore)", "Explore", true),
            ("Task(EXPL*)", "explore", true),
            ("Agent(Überprüfer)", "überprüfer", true),
            ("Agent(Explore)", "Explorer", false),
        ] {
            assert_eq!(
                policy(&[rule]).forbids_agent(agent),
                expected,
                "{rule} of {agent}"
            );
        }
    }

    #[test]
    fn skills_are_ruled_without_case() {
        for (rule, skill, expected) in [
            ("Skill(Review)", "review", true),
            ("Skill(git:*)", "git:tidy", true),
            ("Skill(review)", "reviews", false),
            ("Skill", "anything", true),
            ("Agent(review)", "review", false),
        ] {
            assert_eq!(
                policy(&[rule]).forbids_skill(skill),
                expected,
                "{rule} of {skill}"
            );
        }
        assert!(
            policy(&["Skill(*)"]).forbids_tool("Skill")
                && !policy(&["Skill(x)"]).forbids_tool("Skill")
        );
    }

    #[test]
    fn where_paths_begin() {
        let table = [
            ("Read(//etc/passwd)", "/etc/passwd", true),
            ("Read(~/.ssh/**)", "/h/.ssh/id_rsa", true),
            ("Read(/secrets/**)", "/w/secrets/key", true),
            ("Read(/secrets/**)", "/w/sub/secrets/key", false),
            ("Read(./secrets/**)", "/w/sub/secrets/key", true),
            ("Read(./secrets/**)", "/w/secrets/key", false),
            ("Read(.env)", "/w/sub/deep/.env", true),
            ("Read(.env)", "/w/.env", false),
            ("Read(secrets/key)", "/w/sub/secrets/key", true),
            ("Read", "/anything", true),
            ("Edit(/a)", "/w/a", false),
        ];
        let workspace = Workspace {
            cwd: "/w/sub".into(),
            roots: vec!["/w".into()],
            spill: "/spill".into(),
            home: Some("/h".into()),
            mirror: None,
            notes: None,
        };
        for (rule, path, expected) in table {
            assert_eq!(
                policy(&[rule]).denies_reading(Path::new(path), &workspace),
                expected,
                "{rule} and {path}"
            );
        }
    }

    #[test]
    fn tools_that_the_model_is_not_told_of() {
        let table = [
            ("Bash", "Bash", true),
            ("Bash(*)", "Bash", true),
            ("Bash(curl *)", "Bash", false),
            ("Read", "Grep", true),
            ("Grep", "Read", false),
            ("Edit", "Write", true),
            ("Write", "Edit", false),
            ("*", "Anything", true),
            ("mcp__*", "mcp__srv__get", true),
            ("mcp__srv", "mcp__srv__get", true),
            ("mcp__srv", "mcp__srvx__get", false),
            ("mcp__srv__*", "mcp__srv__get", true),
            ("mcp__srv__get_*", "mcp__srv__get_a", true),
            ("mcp__srv__get_*", "mcp__srv__set_a", false),
            ("Agent(scout)", "Agent", false),
        ];
        for (rule, tool, expected) in table {
            assert_eq!(
                policy(&[rule]).forbids_tool(tool),
                expected,
                "{rule} and {tool}"
            );
        }
    }

    #[test]
    fn what_is_no_rule_says_where_it_stands() {
        let wrong = RuleList {
            deny: vec!["Bash".into()],
            allow: vec!["Bsh(ls)".into()],
            ..RuleList::default()
        };
        let mut policy = Policy::default();
        let error = policy.add(&source(), &wrong).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("`Bsh(ls)` is not a permission rule: ") && text.ends_with("(a test)"),
            "{text}"
        );
        assert!(policy.deny.is_empty(), "nothing of a wrong list is added");
    }
}
