//! Fields of a skill: their values and their meaning.

use serde_json::Value;

use crate::definition::agent_type::FORK;
use crate::definition::front::Keys;
use crate::definition::front::error::FieldError;
use crate::definition::front::value::{
    effort, joined, mapping, names, one_of, quoted, text, truth, unexpected, unknown,
};
use crate::definition::skill::Fork;
use crate::definition::skill::file::TOLD;
use posse_permission::{Policy, RuleList, Source};
use posse_port::model::Effort;

/// Every key of front matter.
const FIELDS: &[&str] = &[
    "name",
    "description",
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "allowed-tools",
    "disallowed-tools",
    "model",
    "effort",
    "context",
    "agent",
    "background",
    "license",
    "compatibility",
    "metadata",
    "hooks",
    "paths",
    "shell",
];

/// The keys by the kind of their values.
pub(super) const KEYS: Keys = Keys {
    all: FIELDS,
    texts: &[
        "name",
        "description",
        "when_to_use",
        "argument-hint",
        "model",
        "agent",
        "license",
        "compatibility",
    ],
    prose: &["description", "when_to_use"],
    lists: &["arguments", "allowed-tools", "disallowed-tools"],
};

/// Keys of other programs, or obvious guesses, with the key that is used here.
const OTHERWISE: [(&str, &str); 3] = [
    ("tools", "allowed-tools"),
    ("fork", "context"),
    ("subagenttype", "agent"),
];

/// Maximum number of rules in a list.
const MOST: usize = 200;

/// Values of the front matter.
pub(super) struct Fields {
    name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) when_to_use: Option<String>,
    pub(super) argument_hint: Option<String>,
    pub(super) arguments: Vec<String>,
    pub(super) for_model: bool,
    pub(super) for_user: bool,
    pub(super) allowed: Vec<String>,
    pub(super) disallowed: Vec<String>,
    pub(super) hooks: Option<Value>,
    model: Option<String>,
    effort: Option<Effort>,
    forks: bool,
    agent: Option<String>,
    background: Option<bool>,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            when_to_use: None,
            argument_hint: None,
            arguments: Vec::new(),
            for_model: true,
            for_user: true,
            allowed: Vec::new(),
            disallowed: Vec::new(),
            hooks: None,
            model: None,
            effort: None,
            forks: false,
            agent: None,
            background: None,
        }
    }
}

impl Fields {
    /// Applies one field. Warnings are added to `notes`.
    pub(super) fn take(
        &mut self,
        key: &str,
        value: Value,
        notes: &mut Vec<String>,
    ) -> Result<(), FieldError> {
        if value.is_null() && FIELDS.contains(&key) {
            notes.push(format!("`{key}` has no value and is ignored"));
            return Ok(());
        }
        match key {
            "name" => self.name = Some(text(key, value)?),
            "description" => self.description = Some(text(key, value)?),
            "when_to_use" => self.when_to_use = Some(text(key, value)?),
            "argument-hint" => self.argument_hint = Some(hint(key, value)?),
            "arguments" => self.arguments = arguments(key, value)?,
            "disable-model-invocation" => self.for_model = !truth(key, &value)?,
            "user-invocable" => self.for_user = truth(key, &value)?,
            "allowed-tools" => self.allowed = allowed(key, &value, notes)?,
            "disallowed-tools" => self.disallowed = disallowed(key, &value)?,
            "model" => self.model = Some(text(key, value)?).filter(|model| model != "inherit"),
            "effort" => self.effort = effort(&value, notes)?,
            "context" => self.forks = one_of(key, &value, &[("fork", true)])?,
            "agent" => self.agent = Some(agent(key, value)?),
            "background" => self.background = Some(truth(key, &value)?),
            "license" | "compatibility" => drop(text(key, value)?),
            "metadata" => drop(mapping(key, value)?),
            "hooks" => self.hooks = Some(value),
            "paths" | "shell" => notes.push(format!("`{key}` is read, but has no effect yet")),
            other => notes.push(unknown(other, FIELDS, &OTHERWISE)),
        }
        let told = |text: &Option<String>| text.as_ref().map_or(0, |text| text.chars().count());
        if matches!(key, "description" | "when_to_use")
            && told(&self.description) + told(&self.when_to_use) > TOLD
        {
            notes.push(format!(
                "models see only {TOLD} characters of the description, and this is longer"
            ));
        }
        Ok(())
    }

    /// Returns the warning about a name that differs from that of the place.
    pub(super) fn misplaced(&self, key: &str, place: &str) -> Option<String> {
        let name = self
            .name
            .as_deref()
            .filter(|name| key == "name" && !name.eq_ignore_ascii_case(place))?;
        Some(format!(
            "`{}` is ignored: its place names it `{place}`",
            quoted(name)
        ))
    }

    /// Returns the sub-agent that follows it, and warnings about fields that apply only to one.
    pub(super) fn fork(&mut self) -> (Option<Fork>, Vec<String>) {
        let (agent, model, background) = (self.agent.take(), self.model.take(), self.background);
        if self.forks {
            let background = background.unwrap_or_default();
            return (
                Some(Fork {
                    agent,
                    model,
                    effort: self.effort,
                    background,
                }),
                Vec::new(),
            );
        }
        let said = [
            ("agent", agent.is_some()),
            ("model", model.is_some()),
            ("effort", self.effort.is_some()),
            ("background", background.is_some()),
        ];
        let alone = said.into_iter().filter(|(_, said)| *said);
        (
            None,
            alone
                .map(|(key, _)| format!("`{key}` has an effect only with `context: fork`"))
                .collect(),
        )
    }
}

/// Parses the type of the sub-agent.
fn agent(key: &str, value: Value) -> Result<String, FieldError> {
    let agent = text(key, value)?;
    if agent.eq_ignore_ascii_case(FORK) {
        // The instructions of a skill come without history, so a fork makes no sense.
        return Err(FieldError::ForkAsAgent(key.to_owned()));
    }
    Ok(agent)
}

/// Parses the hint about arguments. Brackets make it a list in YAML.
fn hint(key: &str, value: Value) -> Result<String, FieldError> {
    match value {
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Ok(format!("[{}]", items.join(", ")))
        }
        other => text(key, other),
    }
}

/// Parses names of arguments, separated by spaces or commas, or in a list.
fn arguments(key: &str, value: Value) -> Result<Vec<String>, FieldError> {
    let value = match value {
        Value::String(names) => {
            Value::String(names.split_whitespace().collect::<Vec<_>>().join(","))
        }
        other => other,
    };
    let names = names(key, value)?;
    let odd = |name: &&String| {
        name.as_str() == "ARGUMENTS"
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    if let Some(odd) = names.iter().find(odd) {
        return Err(FieldError::NotAnArgument(quoted(odd)));
    }
    Ok(names)
}

/// Parses rules that allow something. An invalid one allows nothing, so it is only a warning.
fn allowed(key: &str, value: &Value, notes: &mut Vec<String>) -> Result<Vec<String>, FieldError> {
    let mut rules = rules(key, value)?;
    rules.retain(|rule| {
        let wrong = wrong(RuleList {
            allow: vec![rule.clone()],
            ..RuleList::default()
        });
        notes.extend(
            wrong
                .as_ref()
                .map(|why| format!("`{}` is ignored: {why}", quoted(rule))),
        );
        wrong.is_none()
    });
    Ok(rules)
}

/// Parses rules that forbid something. An invalid one would forbid less than was meant, so it is an
/// error.
fn disallowed(key: &str, value: &Value) -> Result<Vec<String>, FieldError> {
    let rules = rules(key, value)?;
    for rule in &rules {
        if let Some(why) = wrong(RuleList {
            deny: vec![rule.clone()],
            ..RuleList::default()
        }) {
            return Err(FieldError::NotARule {
                key: key.to_owned(),
                rule: quoted(rule),
                why,
            });
        }
    }
    Ok(rules)
}

/// Returns what is wrong with a rule, whatever its paths are relative to.
fn wrong(rules: RuleList) -> Option<String> {
    let anywhere = || "/".into();
    let source = Source {
        name: String::new(),
        root: anywhere(),
        cwd: anywhere(),
        home: Some(anywhere()),
    };
    Policy::default()
        .add(&source, &rules)
        .err()
        .map(|error| error.why.to_string())
}

/// Splits rules in a list, or in a text with spaces or commas; those in parentheses belong to a
/// rule.
fn rules(key: &str, value: &Value) -> Result<Vec<String>, FieldError> {
    if !value.is_string() && !value.is_array() {
        return Err(unexpected(
            key,
            "a list of rules, or rules with spaces",
            value,
        ));
    }
    let text = joined(key, value)?;
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    let rules: Vec<String> = parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    if rules.len() > MOST {
        return Err(FieldError::TooMany {
            key: key.to_owned(),
            most: MOST,
            what: "rules",
        });
    }
    Ok(rules)
}
