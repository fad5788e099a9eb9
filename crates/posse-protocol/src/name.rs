//! Names that people and models give: of teams, their members and their notes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A name: 1 to 64 of `a`–`z`, `0`–`9` and `-`, not beginning with `-`. No two look alike, none is a
/// path, and none needs quoting anywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The name of a team's lead in it. Nobody else can be called so.
    pub const LEAD: &'static str = "team-lead";

    /// Names that no member can choose: they mean somebody already.
    pub const RESERVED: [&'static str; 3] = [Self::LEAD, "user", "task-list"];

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it means somebody already.
    pub fn is_reserved(&self) -> bool {
        Self::RESERVED.contains(&self.0.as_str())
    }

    /// The lead's name.
    pub fn lead() -> Self {
        Self(Self::LEAD.to_owned())
    }

    /// The name of the note that keeps the approved plan of a session.
    pub fn plan() -> Self {
        Self("plan".to_owned())
    }

    /// What a lead is called when another leads.
    pub fn main() -> Self {
        Self("main".to_owned())
    }

    /// The name with a number behind it, shortened if that is too long.
    pub fn numbered(&self, number: u32) -> Self {
        let number = format!("-{number}");
        let room = 64_usize.saturating_sub(number.len());
        Self(self.0.chars().take(room).collect::<String>() + &number)
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
        let good =
            (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with('-');
        if good {
            Ok(Self(text))
        } else {
            Err(BadName(text))
        }
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A name of a team, a member or a role.",
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9-]{0,63}$",
        })
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName(pub String);

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self
            .0
            .chars()
            .take(80)
            .flat_map(char::escape_default)
            .collect();
        write!(
            f,
            "`{shown}` is not a valid name: use 1 to 64 of a-z, 0-9 and -, not beginning with -"
        )
    }
}

impl std::error::Error for BadName {}

#[cfg(test)]
mod tests {
    use super::*;

    // corpus C163
    #[test]
    fn no_name_is_a_path_or_looks_like_another() {
        let long = "a".repeat(64);
        for good in ["a", "7", "code-reviewer-2", long.as_str()] {
            assert_eq!(
                good.parse::<Name>().map(|name| name.to_string()),
                Ok(good.to_owned())
            );
        }
        let longer = "a".repeat(65);
        let bad = [
            "",
            "-a",
            "A",
            "../x",
            "a/b",
            ".",
            "a\0",
            "a b",
            "é",
            "\u{202e}a",
            "ａ",
            longer.as_str(),
        ];
        for bad in bad {
            assert_eq!(bad.parse::<Name>(), Err(BadName(bad.to_owned())));
        }
        assert!(serde_json::from_str::<Name>("\"../x\"").is_err());
    }
}
