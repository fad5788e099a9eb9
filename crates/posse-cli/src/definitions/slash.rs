//! Prompts that begin with a slash: skills and commands, by their names.

use std::path::Path;
use std::sync::Arc;

use posse_permission::Policy;
use posse_protocol::{Command, ContentBlock};
use posse_runtime::definition::skill::arguments::Called;
use posse_runtime::definition::skill::{Skill, Skills, TemplatePart, Values, meant, named};
use serde_json::{Value, json};

use super::attachments::Attachments;
use crate::output::{say, tame};

/// posse's own command.
const COMPACT: &str = "compact";
/// What names of prompts of MCP servers begin with.
const OF_SERVERS: &str = "mcp__";

/// The commands that can be called.
#[derive(Clone, Default)]
pub(crate) struct SlashCommands {
    skills: Arc<Skills>,
    policy: Arc<Policy>,
    /// Attaches the files that prompts and commands name; none if they stay text.
    attachments: Option<Attachments>,
}

/// A prompt that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadPrompt {
    pub(crate) command: Command,
    /// Why files that it names are not attached.
    pub(crate) warnings: Vec<String>,
}

impl ReadPrompt {
    /// Reports the warnings, and returns the command.
    pub(crate) fn reported(self) -> Command {
        for warning in &self.warnings {
            say(&format!("warning: {}", tame(warning)));
        }
        self.command
    }
}

/// Why words that look like a command are not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SlashError {
    #[error("only models can load the skill /{0}")]
    ModelOnly(String),
    #[error("there is no command /{name}{}", suggestion(.meant.as_deref()))]
    Unknown { name: String, meant: Option<String> },
}

fn suggestion(meant: Option<&str>) -> String {
    meant
        .map(|meant| format!("; did you mean /{meant}?"))
        .unwrap_or_default()
}

impl SlashCommands {
    pub(crate) fn new(skills: Arc<Skills>, policy: Arc<Policy>) -> Self {
        Self {
            skills,
            policy,
            attachments: None,
        }
    }

    /// Attaches files that prompts and commands name.
    pub(crate) fn attaching(self, attachments: Attachments) -> Self {
        Self {
            attachments: Some(attachments),
            ..self
        }
    }

    /// Parses a prompt, and adds the files that it names.
    pub(crate) fn read(&self, words: Vec<ContentBlock>) -> Result<ReadPrompt, SlashError> {
        let mut command = self.parse(words)?;
        let warnings = self.attach(&mut command);
        Ok(ReadPrompt { command, warnings })
    }

    /// Adds the files that a command names. Returns why some are not added.
    fn attach(&self, command: &mut Command) -> Vec<String> {
        let (words, body) = match command {
            Command::Prompt(words) => (words, None),
            Command::Skill {
                name,
                arguments,
                words,
            } => {
                let body = self.body(name, arguments);
                (words, Some(body))
            }
            _ => return Vec::new(),
        };
        // What comes after the first block was piped in, and is not what the person typed.
        let (Some(ContentBlock::Text { text }), Some(attachments)) =
            (words.first(), &self.attachments)
        else {
            return Vec::new();
        };
        let said = match body {
            Some(body) => format!("{text}\n\n{body}"),
            None => text.clone(),
        };
        let (blocks, refused) = attachments.of(&said);
        words.extend(blocks);
        refused
    }

    /// Returns the text of a skill with its arguments, without its commands.
    fn body(&self, name: &str, arguments: &str) -> String {
        let skills = self.skills.now();
        let Some(skill) = named(&skills, name) else {
            return String::new();
        };
        let values = Values {
            arguments,
            session: "",
            directory: skill.directory(),
            project: Path::new("."),
            effort: None,
        };
        let text = |part| match part {
            TemplatePart::Text(text) => text,
            TemplatePart::Command(_) => String::new(),
        };
        // One that is too long is refused when it is called.
        let parts = skill.body.expand(&values).unwrap_or_default();
        parts.into_iter().map(text).collect()
    }

    /// Parses a prompt. One that looks like a command but is none is an error: a model would only
    /// guess.
    fn parse(&self, words: Vec<ContentBlock>) -> Result<Command, SlashError> {
        let Some(ContentBlock::Text { text }) = words.first() else {
            return Ok(Command::Prompt(words));
        };
        let Some(Called { name, arguments }) = Called::read(text) else {
            return Ok(Command::Prompt(words));
        };
        if name.eq_ignore_ascii_case(COMPACT) {
            let keep = (!arguments.is_empty()).then(|| arguments.to_owned());
            return Ok(Command::Compact { keep });
        }
        let skills = self.skills.now();
        match named(&skills, name) {
            Some(skill) if skill.for_user => {
                let (name, arguments) = (skill.name.clone(), arguments.to_owned());
                Ok(Command::Skill {
                    name,
                    arguments,
                    words,
                })
            }
            Some(skill) => Err(SlashError::ModelOnly(skill.name.clone())),
            // A prompt of a server, which the agent looks for: it may not be connected yet.
            None if name.starts_with(OF_SERVERS) => Ok(Command::Skill {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                words,
            }),
            // "/etc/hosts is wrong" is about a file, which a model understands.
            None if is_path(name) => Ok(Command::Prompt(words)),
            None => Err(self.unknown(name)),
        }
    }

    /// Returns the commands for programs.
    pub(crate) fn list(&self) -> Value {
        let compact = json!({
            "name": COMPACT, "description": "Replace the history with a summary",
            "argumentHint": "[what to keep above all]",
        });
        let callable = self.callable();
        let callable = callable.iter().map(|skill| {
            let hint = skill.argument_hint.as_deref().unwrap_or_default();
            json!({"name": skill.name, "description": skill.description, "argumentHint": hint})
        });
        callable.chain([compact]).collect()
    }

    /// Returns the names of all commands that a person can call.
    pub(crate) fn names(&self) -> Vec<String> {
        let callable = self.callable();
        callable
            .iter()
            .map(|skill| skill.name.clone())
            .chain([COMPACT.to_owned()])
            .collect()
    }

    /// Returns the skills that a person can call and no rule denies.
    fn callable(&self) -> Vec<Arc<Skill>> {
        let may = |skill: &&Arc<Skill>| skill.for_user && !self.policy.forbids_skill(&skill.name);
        self.skills.now().iter().filter(may).cloned().collect()
    }

    /// Returns the error for an unknown command, with a suggestion.
    fn unknown(&self, name: &str) -> SlashError {
        let callable = self.names();
        let callable: Vec<&str> = callable.iter().map(String::as_str).collect();
        SlashError::Unknown {
            name: name.to_owned(),
            meant: meant(name, &callable).map(str::to_owned),
        }
    }
}

/// Returns true if a word after a slash exists on the disk, or contains a capital.
fn is_path(name: &str) -> bool {
    name.contains(|c: char| c.is_ascii_uppercase()) || Path::new("/").join(name).exists()
}

#[cfg(test)]
mod tests {
    use posse_permission::{RuleList, Source};

    use super::*;

    fn slash() -> SlashCommands {
        let skill = |name: &str, for_user| Skill {
            name: name.into(),
            for_user,
            ..Skill::default()
        };
        let skills = vec![
            skill("review", true),
            skill("git:tidy", true),
            skill("style", false),
            skill("secret", true),
        ];
        let rules = RuleList {
            deny: vec!["Skill(secret)".into()],
            ..RuleList::default()
        };
        let source = Source {
            name: String::new(),
            root: "/".into(),
            cwd: "/".into(),
            home: None,
        };
        let mut policy = Policy::default();
        policy.add(&source, &rules).unwrap();
        SlashCommands::new(Arc::new(skills.into()), Arc::new(policy))
    }

    fn read(text: &str) -> Result<Command, String> {
        let read = slash().read(vec![ContentBlock::text(text)]);
        read.map(|read| read.command)
            .map_err(|error| error.to_string())
    }

    // proves FC-13 (part: names)
    #[test]
    fn what_begins_with_a_slash() {
        let called = |name: &str, arguments: &str, text: &str| {
            let words = vec![ContentBlock::text(text)];
            Ok(Command::Skill {
                name: name.into(),
                arguments: arguments.into(),
                words,
            })
        };
        assert_eq!(
            read("/review main.rs"),
            called("review", "main.rs", "/review main.rs")
        );
        assert_eq!(read("/REVIEW"), called("review", "", "/REVIEW"));
        assert_eq!(
            read("/git:tidy\na b"),
            called("git:tidy", "a b", "/git:tidy\na b")
        );
        assert_eq!(read("/compact"), Ok(Command::Compact { keep: None }));
        assert_eq!(
            read("/compact the tests"),
            Ok(Command::Compact {
                keep: Some("the tests".into())
            })
        );
        for plain in [
            "review it",
            "/tmp is full",
            "/etc/passwd",
            "/Users",
            "/",
            " /review",
            "a\n/review",
        ] {
            assert_eq!(
                read(plain),
                Ok(Command::Prompt(vec![ContentBlock::text(plain)])),
                "{plain}"
            );
        }
        for (wrong, why) in [
            (
                "/reviw main.rs",
                "there is no command /reviw; did you mean /review?",
            ),
            ("/dance", "there is no command /dance"),
            (
                "/tidy",
                "there is no command /tidy; did you mean /git:tidy?",
            ),
            (
                "/tdiy",
                "there is no command /tdiy; did you mean /git:tidy?",
            ),
            ("/secre", "there is no command /secre"),
            ("/style", "only models can load the skill /style"),
        ] {
            assert_eq!(read(wrong), Err(why.to_owned()));
        }
        let picture = || ContentBlock::Image {
            media_type: "image/png".into(),
            data: "eA==".into(),
        };
        let read = slash().read(vec![picture()]).unwrap();
        assert_eq!(read.command, Command::Prompt(vec![picture()]));
        let told = slash().list();
        assert_eq!(
            (&told[0]["name"], told.as_array().unwrap().len()),
            (&json!("review"), 3)
        );
        assert_eq!(slash().names(), ["review", "git:tidy", "compact"]);
    }
}
