//! The verdict on a tool call. It is a pure function, so that every combination can be tested.

use std::path::{Path, PathBuf};

use posse_protocol::{PermissionMode, QuestionKind};

use super::Policy;
use super::host::rule_for;
use super::mirror::RulePaths;
use super::path::{protected, watched};
use super::rule::{About, Rule};
use super::shell::{CommandRules, Line};
use posse_port::tool::{Intent, Subject, Workspace};

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person is asked for approval; the text says why.
    Ask(String),
    /// It does not run; the text says why.
    Deny(String),
}

/// Why a command that asks to run outside is asked about.
const OUTSIDE: &str = "it would run outside the sandbox, where nothing holds it";

/// Decides on a call of `tool`: deny rules first, then ask rules, then allow rules, then the
/// mode.
pub fn decide(
    policy: &Policy,
    mode: PermissionMode,
    workspace: &Workspace,
    tool: &str,
    intent: &Intent,
) -> Verdict {
    judge(policy, mode, workspace, (tool, intent), false)
}

/// Decides on a call of a tool. If the user's own hook `agreed`, that counts as much as an allow
/// rule: a person is asked only if a rule says so.
pub(super) fn judge(
    policy: &Policy,
    mode: PermissionMode,
    workspace: &Workspace,
    (tool, intent): (&str, &Intent),
    agreed: bool,
) -> Verdict {
    if policy.leaves_out(tool) {
        return Verdict::Deny(format!("{tool} is not one of the tools of this session"));
    }
    let line = Line::of(&intent.subject, workspace);
    let is_outside = line
        .as_ref()
        .is_some_and(|line| line.outside_allowed(policy));
    let place = match intent.subject {
        _ if is_outside => CommandPlace::RuledOutside,
        Subject::Runs { outside: true, .. } => CommandPlace::WantsOutside,
        Subject::Runs { is_held: true, .. } => CommandPlace::Held,
        _ => CommandPlace::Plain,
    };
    let is_held = place == CommandPlace::Held;
    let call = Call {
        policy,
        mode,
        workspace,
        tool,
        intent,
        line,
        place,
    };
    if let Some(rule) = call.ruled(&policy.deny) {
        return Verdict::Deny(format!("the rule {rule} denies this"));
    }
    if let Subject::Asks(kind) = intent.subject {
        // To be asked is not a permission, so that no other rule decides about it; nor does a mode
        // about a choice.
        return match (mode, kind) {
            (PermissionMode::DontAsk, QuestionKind::Permission | QuestionKind::Plan) => {
                Verdict::Deny("mode dontAsk: no one is asked".into())
            }
            _ => Verdict::Ask(question(kind).into()),
        };
    }
    // Before the bypass: an agent that may edit only its notes is held to that in any mode.
    if let Some(why) = call.beyond_notes() {
        return Verdict::Deny(why);
    }
    // In a sandbox files that may not be read are not there.
    let doubted = call
        .perhaps_ruled(&policy.deny)
        .filter(|rule| !is_held || matches!(rule.about, About::Command(_)));
    if mode == PermissionMode::BypassPermissions && place == CommandPlace::WantsOutside {
        return Verdict::Deny(format!(
            "{OUTSIDE} (mode bypassPermissions: no one is asked)"
        ));
    }
    if mode == PermissionMode::BypassPermissions {
        // In this mode nobody is asked, so that doubt about a deny rule counts as a denial.
        return doubted.map_or(Verdict::Allow, |rule| {
            Verdict::Deny(format!(
                "the rule {rule} may apply to what the wildcards match; name the files"
            ))
        });
    }
    // After the bypass: a person who chose that mode may edit protected files.
    if let Some(why) = call.untouchable() {
        return Verdict::Deny(why);
    }
    let changes_nothing = is_held || place == CommandPlace::Plain && call.only_reads();
    if mode == PermissionMode::Plan && !changes_nothing {
        return Verdict::Deny(format!(
            "plan mode is on: only calls that change nothing run, and {tool} may change something; \
             submit the plan, or leave plan mode with another --permission-mode"
        ));
    }
    let why = match (
        call.ruled(&policy.ask),
        doubted.or_else(|| call.perhaps_ruled(&policy.ask)),
    ) {
        (Some(rule), _) => format!("the rule {rule} requires a person's approval"),
        (None, Some(rule)) => {
            format!("the rule {rule} may apply to what the wildcards match")
        }
        (None, None) if agreed => return Verdict::Allow,
        (None, None) => match call.allowed() {
            Ok(()) => return Verdict::Allow,
            Err(why) => why,
        },
    };
    match mode {
        PermissionMode::DontAsk => Verdict::Deny(format!("{why} (mode dontAsk: no one is asked)")),
        _ => Verdict::Ask(why),
    }
}

/// Returns why a person is asked whatever the rules allow.
fn question(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Permission => "only a person can allow this",
        QuestionKind::Plan => "the plan needs a person's approval",
        QuestionKind::Choice | QuestionKind::Form => "the agent has a question",
    }
}

/// A call, and everything it is judged by.
struct Call<'a> {
    policy: &'a Policy,
    mode: PermissionMode,
    workspace: &'a Workspace,
    tool: &'a str,
    intent: &'a Intent,
    line: Option<Line<'a>>,
    place: CommandPlace,
}

/// Where a command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandPlace {
    /// A sandbox holds it to what the mode allows.
    Held,
    /// Outside, as a rule allows.
    RuledOutside,
    /// Outside, which no rule allows.
    WantsOutside,
    /// Where nothing holds it surely; or it is no command.
    Plain,
}

impl Call<'_> {
    /// Returns the first of these deny or ask rules that applies to this call.
    fn ruled<'r>(&self, rules: &'r [Rule]) -> Option<&'r Rule> {
        let touches = |rule: &&Rule| {
            rule.touches(self.tool, &self.intent.subject, self.workspace)
                || self
                    .line
                    .as_ref()
                    .is_some_and(|line| line.touched_by(&rule.about))
        };
        rules.iter().find(touches)
    }

    /// Returns the first of these rules that could apply to what a command's wildcards match.
    fn perhaps_ruled<'r>(&self, rules: &'r [Rule]) -> Option<&'r Rule> {
        let line = self.line.as_ref()?;
        rules
            .iter()
            .find(|rule| line.perhaps_touched_by(&rule.about))
    }

    /// Returns the reason if an agent that may edit only its notes is about to edit something
    /// else.
    fn beyond_notes(&self) -> Option<String> {
        let notes = self.workspace.notes.as_ref().filter(|notes| notes.only)?;
        let Subject::Edits(paths) = &self.intent.subject else {
            return None;
        };
        let beyond = !paths.iter().all(|path| self.workspace.notes_hold(path));
        beyond.then(|| {
            let notes = notes.directory.display();
            format!("an agent of this type may edit only its notes, in {notes}")
        })
    }

    /// Returns true if the call changes nothing.
    fn only_reads(&self) -> bool {
        match &self.line {
            Some(line) => line.only_reads(self.policy),
            None => self.intent.read_only,
        }
    }

    /// Returns the reason if no rule can allow the call.
    fn untouchable(&self) -> Option<String> {
        // A person would not see them in a question, so they could not know what they approve.
        let strange = |text: &str| text.chars().any(char::is_control);
        match &self.intent.subject {
            Subject::Edits(paths) | Subject::Reads(paths)
                if paths.iter().any(|path| strange(&path.to_string_lossy())) =>
            {
                Some("the path contains control characters".into())
            }
            Subject::Fetches { host } if strange(host) => {
                Some("the host name contains control characters".into())
            }
            Subject::Fetches { host } | Subject::Connects { host, .. } => self.lookalike(host),
            Subject::Edits(paths) => paths
                .iter()
                .find_map(|path| forbidden_edit(path, self.workspace)),
            Subject::Runs { .. } => self.line.as_ref().and_then(Line::untouchable),
            _ => None,
        }
    }

    /// Returns the reason if a host only begins like one for which there is a rule: nobody means
    /// `docs.rs.example.com`.
    fn lookalike(&self, host: &str) -> Option<String> {
        let is_fetch = matches!(self.intent.subject, Subject::Fetches { .. });
        let hosts = self
            .policy
            .allow
            .iter()
            .filter_map(|rule| match &rule.about {
                About::Host(domain) if is_fetch => domain.name(),
                About::Connect(pattern) if !is_fetch => pattern.name(),
                _ => None,
            });
        let begins_so = |name: &&str| {
            let rest = host.strip_prefix(*name);
            rest.is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
        };
        let name = hosts.into_iter().find(begins_so)?;
        (!self.allows_host()).then(|| {
            format!(
                "{host} begins like {name}, for which there is a rule, but belongs to somebody else"
            )
        })
    }

    /// Returns true if a rule allows the host that the call is about.
    fn allows_host(&self) -> bool {
        self.allows(|about| match (&self.intent.subject, about) {
            (Subject::Fetches { host }, About::Host(domain)) => domain.matches(host),
            (Subject::Connects { host, port }, About::Connect(pattern)) => {
                pattern.allows(host, *port)
            }
            _ => false,
        })
    }

    /// Returns `Ok` if a rule or the mode allows the call; else the reason, and the rule that
    /// would.
    fn allowed(&self) -> Result<(), String> {
        if let Some(path) = self.original() {
            return Err(format!(
                "{} is outside the workspace, in the checkout that this worktree was made from; \
                 work in the worktree",
                path.display()
            ));
        }
        // A rule for all commands does not cover every command line.
        let runs = matches!(self.intent.subject, Subject::Runs { .. });
        let names = |rule: &Rule| rule.names_tool(self.tool);
        if !runs && self.policy.allow.iter().any(names) {
            return Ok(());
        }
        let free = match &self.intent.subject {
            Subject::Runs { .. } => {
                return match (&self.line, self.place) {
                    (None, _) | (_, CommandPlace::RuledOutside) => Ok(()),
                    (_, CommandPlace::WantsOutside) => Err(OUTSIDE.into()),
                    (Some(line), CommandPlace::Held) if line.can_be_held() => Ok(()),
                    (Some(line), _) => line.allowed(self.policy, CommandRules::Inside),
                };
            }
            // Servers declare themselves whether their tools only read; that is not trusted.
            Subject::Nothing => self.intent.read_only && !self.tool.starts_with("mcp__"),
            Subject::Reads(paths) => paths.iter().all(|path| {
                let inside = self.workspace.holds(path) || path.starts_with(&self.workspace.spill);
                let rule = |about: &About| match about {
                    About::Read(pattern) => pattern.allows(path, self.workspace),
                    _ => false,
                };
                (inside && self.intent.read_only) || self.allows(rule)
            }),
            Subject::Edits(paths) => paths.iter().all(|path| {
                let accepted = self.mode == PermissionMode::AcceptEdits
                    && self.workspace.holds(path)
                    && watched(path, self.workspace).is_none();
                let rule = |about: &About| match about {
                    About::Edit(pattern) => pattern.allows(path, self.workspace),
                    _ => false,
                };
                accepted || self.workspace.notes_hold(path) || self.allows(rule)
            }),
            Subject::Fetches { .. } | Subject::Connects { .. } => self.allows_host(),
            // What it does is judged when it does it; it has no more rights than the agent that
            // starts it.
            Subject::Starts { .. } | Subject::Follows { .. } => true,
            Subject::Asks(_) => false,
        };
        if free {
            Ok(())
        } else {
            Err(unallowed(&self.wanted()))
        }
    }

    /// Returns a file in the checkout that the worktree was made from. Rules about that checkout
    /// are meant for those who work there.
    fn original(&self) -> Option<&Path> {
        let (Subject::Reads(paths) | Subject::Edits(paths)) = &self.intent.subject else {
            return None;
        };
        paths
            .iter()
            .map(PathBuf::as_path)
            .find(|path| self.workspace.is_original(path))
    }

    /// Returns true if an allow rule matches.
    fn allows(&self, fits: impl Fn(&About) -> bool) -> bool {
        self.policy.allow.iter().any(|rule| fits(&rule.about))
    }

    /// Returns the rule that would allow the call.
    fn wanted(&self) -> String {
        let last = |paths: &[PathBuf]| {
            // The named path comes first and what it leads to last; both must be allowed.
            let last = paths
                .last()
                .map(|path| self.workspace.lasting(path).display().to_string());
            last.unwrap_or_default()
        };
        match &self.intent.subject {
            Subject::Nothing | Subject::Runs { .. } | Subject::Asks(_) => self.tool.to_owned(),
            Subject::Reads(paths) => format!("Read(/{})", last(paths)),
            Subject::Edits(paths) => format!("Edit(/{})", last(paths)),
            Subject::Fetches { host } => format!("WebFetch(domain:{host})"),
            Subject::Connects { host, port } => rule_for(host, *port),
            Subject::Starts { agent } => format!("Agent({agent})"),
            Subject::Follows { skill } => format!("Skill({skill})"),
        }
    }
}

/// Returns the reason if a rule cannot allow edits of this path.
pub(super) fn forbidden_edit(path: &Path, workspace: &Workspace) -> Option<String> {
    protected(path, workspace).map(|name| is_protected(path, name))
}

/// Returns the message about a protected path.
pub(super) fn is_protected(path: &Path, name: &str) -> String {
    format!(
        "{} is protected: files in {name} can run later or widen permissions; edit it yourself, or \
         use --permission-mode bypassPermissions",
        path.display()
    )
}

/// Returns the message about what would allow a call.
pub(super) fn unallowed(rule: &str) -> String {
    let quoted = rule.replace('\'', r"'\''");
    format!("no rule allows {rule}; allow it with --allowedTools '{quoted}'")
}

#[cfg(test)]
mod tests;
