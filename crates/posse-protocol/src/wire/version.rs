//! The version of the protocol.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version that this posse speaks.
pub const VERSION: Version = Version { major: 2, minor: 6 };

/// A version of the protocol, `major.minor`. A minor version only adds what can be ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Versions with different numbers cannot read each other.
    pub major: u32,
    /// The number of additions since.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let parts = text.split_once('.');
        let numbers = parts.and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
        let (major, minor) = numbers.ok_or_else(|| BadVersion(text.to_owned()))?;
        Ok(Self { major, minor })
    }
}

/// Reads a number in its one spelling: no sign, no zeros before it.
fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// A text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadVersion(pub String);

impl fmt::Display for BadVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(80).collect();
        write!(
            f,
            "`{}` is not a version such as {VERSION}",
            shown.escape_debug()
        )
    }
}

impl std::error::Error for BadVersion {}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let major = VERSION.major;
        json_schema!({
            "description": "The version of the protocol that the sender speaks, `major.minor`. A minor version only \
                            adds what can be ignored.",
            "type": "string",
            "pattern": format!("^{major}\\.(0|[1-9][0-9]*)$"),
        })
    }
}
