//! A rule that says which calls something is about, without permitting or forbidding them.

use posse_port::tool::{Intent, Subject, Workspace};

use super::rule::{About, Rule, RuleError, Source};
use super::shell::Line;

/// A rule that calls are compared with.
#[derive(Clone, Debug)]
pub struct CallPattern(Rule);

impl PartialEq for CallPattern {
    /// Compares them as they are written, and where.
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for CallPattern {}

impl CallPattern {
    /// Parses a rule of a source.
    pub fn new(rule: &str, source: &Source) -> Result<Self, RuleError> {
        Rule::read(rule, source, false).map(Self)
    }

    /// Returns true if a call of this tool is meant, or could be: every command of a line counts,
    /// and a line that cannot be taken apart counts as all.
    pub fn matches(&self, tool: &str, intent: &Intent, workspace: &Workspace) -> bool {
        let rule = &self.0;
        match (&rule.about, &intent.subject) {
            _ if rule.names_tool(tool) => true,
            (About::Command(_), Subject::Runs { .. }) => {
                let line = Line::of(&intent.subject, workspace);
                line.is_some_and(|line| {
                    line.touched_by(&rule.about)
                        || line.perhaps_touched_by(&rule.about)
                        || line.is_opaque()
                })
            }
            // A command that names the same files is a call of another tool.
            (_, Subject::Runs { .. }) => false,
            _ => rule.touches(tool, &intent.subject, workspace),
        }
    }
}

#[cfg(test)]
mod tests {
    use posse_port::confinement::Tier;
    use posse_port::tool::CommandDisk;

    use super::*;

    fn workspace() -> Workspace {
        Workspace {
            cwd: "/w".into(),
            roots: vec!["/w".into()],
            spill: "/spill".into(),
            home: Some("/home/me".into()),
            mirror: None,
            notes: None,
        }
    }

    fn intent(subject: Subject) -> Intent {
        Intent {
            read_only: false,
            beside_others: false,
            subject,
            waits: false,
            title: String::new(),
        }
    }

    fn runs(command: &str) -> Subject {
        Subject::Runs {
            command: command.into(),
            disk: CommandDisk::default(),
            tier: Tier::C,
            is_held: false,
            outside: false,
        }
    }

    fn edits(path: &str) -> Subject {
        Subject::Edits(vec![path.into()])
    }

    #[test]
    fn a_pattern_is_about_calls_of_its_tool() {
        let source = Source {
            name: "settings.json".into(),
            root: "/w".into(),
            cwd: "/w".into(),
            home: Some("/home/me".into()),
        };
        let check = |rule: &str, tool: &str, subject: Subject, expected: bool| {
            let pattern = CallPattern::new(rule, &source).unwrap();
            let found = pattern.matches(tool, &intent(subject), &workspace());
            assert_eq!(found, expected, "{rule} {tool}");
        };
        for (command, expected) in [
            ("git push origin", true),
            ("cd sub && FOO=bar git push", true),
            ("echo $(git push)", true),
            ("git status", false),
            ("echo git push", false),
            // What cannot be taken apart could be anything.
            ("echo 'git", true),
        ] {
            check("Bash(git push *)", "Bash", runs(command), expected);
        }
        check("Bash", "Bash", runs("true"), true);
        check("Edit(*.ts)", "Edit", edits("/w/src/a.ts"), true);
        check("Edit(*.ts)", "Write", edits("/w/src/a.ts"), true);
        check("Edit(*.ts)", "Edit", edits("/w/src/a.rs"), false);
        check("Edit(*.ts)", "Bash", runs("echo x > a.ts"), false);
        check(
            "Read(~/notes/**)",
            "Read",
            Subject::Reads(vec!["/home/me/notes/a".into()]),
            true,
        );
        check("mcp__db__*", "mcp__db__drop", Subject::Nothing, true);
        check("mcp__db__*", "mcp__web__get", Subject::Nothing, false);
        check(
            "WebFetch(domain:a.org)",
            "WebFetch",
            Subject::Fetches {
                host: "a.org".into(),
            },
            true,
        );
        assert!(CallPattern::new("Edit(", &source).is_err());
    }
}
