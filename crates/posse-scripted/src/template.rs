//! `{{…}}` in what a script says.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a template can speak of.
#[derive(Debug, Default)]
pub(crate) struct TemplateValues {
    pub(crate) user: String,
    pub(crate) tool: String,
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) turn: u32,
    pub(crate) user_groups: Vec<String>,
    pub(crate) tool_groups: Vec<String>,
    pub(crate) state: BTreeMap<String, String>,
}

/// Why a text is not a template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A hole has no end.
    #[error("`{{{{` without `}}}}`")]
    Unclosed,
    /// There is nothing of this name.
    #[error("a template cannot use `{name}`")]
    Unknown {
        /// What stands in the hole.
        name: String,
    },
}

/// A text with holes.
#[derive(Debug)]
pub(crate) struct TextTemplate(Vec<TemplatePart>);

#[derive(Debug)]
enum TemplatePart {
    Text(String),
    Hole(Hole),
}

#[derive(Debug)]
enum Hole {
    User,
    Tool,
    Agent,
    Model,
    Turn,
    UserGroup(usize),
    ToolGroup(usize),
    State(String),
}

impl TextTemplate {
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or(TemplateError::Unclosed)?;
            parts.push(TemplatePart::Text(before.to_owned()));
            parts.push(TemplatePart::Hole(Hole::parse(name.trim())?));
            rest = after;
        }
        parts.push(TemplatePart::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    pub(crate) fn render(&self, values: &TemplateValues) -> String {
        let group = |groups: &[String], n: usize| groups.get(n).cloned().unwrap_or_default();
        let mut out = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Hole(Hole::User) => out.push_str(&values.user),
                TemplatePart::Hole(Hole::Tool) => out.push_str(&values.tool),
                TemplatePart::Hole(Hole::Agent) => out.push_str(&values.agent),
                TemplatePart::Hole(Hole::Model) => out.push_str(&values.model),
                TemplatePart::Hole(Hole::Turn) => out.push_str(&values.turn.to_string()),
                TemplatePart::Hole(Hole::UserGroup(n)) => {
                    out.push_str(&group(&values.user_groups, *n))
                }
                TemplatePart::Hole(Hole::ToolGroup(n)) => {
                    out.push_str(&group(&values.tool_groups, *n))
                }
                TemplatePart::Hole(Hole::State(key)) => {
                    out.push_str(values.state.get(key).map_or("", String::as_str));
                }
            }
        }
        out
    }

    /// Checks that every text inside `value` is a template.
    pub(crate) fn check_value(value: &toml::Value) -> Result<(), TemplateError> {
        match value {
            toml::Value::String(text) => Self::parse(text).map(drop),
            toml::Value::Array(items) => items.iter().try_for_each(Self::check_value),
            toml::Value::Table(table) => table.values().try_for_each(Self::check_value),
            _ => Ok(()),
        }
    }

    /// Returns `value` as JSON, with every text inside it rendered.
    pub(crate) fn render_value(value: &toml::Value, values: &TemplateValues) -> Value {
        match value {
            toml::Value::String(text) => Self::parse(text).map_or_else(
                |_| Value::from(text.as_str()),
                |it| it.render(values).into(),
            ),
            toml::Value::Integer(number) => Value::from(*number),
            toml::Value::Float(number) => Value::from(*number),
            toml::Value::Boolean(truth) => Value::from(*truth),
            toml::Value::Datetime(time) => Value::from(time.to_string()),
            toml::Value::Array(items) => items
                .iter()
                .map(|item| Self::render_value(item, values))
                .collect(),
            toml::Value::Table(table) => table
                .iter()
                .map(|(key, item)| (key.clone(), Self::render_value(item, values)))
                .collect(),
        }
    }
}

impl Hole {
    fn parse(name: &str) -> Result<Self, TemplateError> {
        let unknown = || TemplateError::Unknown {
            name: name.to_owned(),
        };
        Ok(match name.split_once('.') {
            None => match name {
                "user" => Self::User,
                "tool" => Self::Tool,
                "agent" => Self::Agent,
                "model" => Self::Model,
                "turn" => Self::Turn,
                _ => return Err(unknown()),
            },
            Some(("user", group)) => Self::UserGroup(group.parse().map_err(|_| unknown())?),
            Some(("tool", group)) => Self::ToolGroup(group.parse().map_err(|_| unknown())?),
            Some(("state", key)) => Self::State(key.to_owned()),
            Some(_) => return Err(unknown()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled() {
        let values = TemplateValues {
            user: "fix a.rs".into(),
            user_groups: vec!["fix a.rs".into(), "a.rs".into()],
            turn: 2,
            state: [("phase".to_owned(), "two".to_owned())].into(),
            ..TemplateValues::default()
        };
        let check = |text: &str| TextTemplate::parse(text).unwrap().render(&values);
        assert_eq!(
            check("{{user}} / {{user.1}} / {{ turn }} / {{state.phase}}!"),
            "fix a.rs / a.rs / 2 / two!"
        );
        assert_eq!(check("{{user.7}}{{state.none}}"), "");
        assert!(TextTemplate::parse("{{user").is_err());
    }
}
