//! Number of a task as a model writes it: as a number or as a string.

use posse_protocol::TaskId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Number of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskNumber(pub(super) TaskId);

impl<'de> Deserialize<'de> for TaskNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().trim_start_matches('#').parse().ok(),
            _ => None,
        };
        let number =
            number.ok_or_else(|| D::Error::custom(format!("{value} is not a task number")))?;
        Ok(Self(TaskId(number)))
    }
}

impl JsonSchema for TaskNumber {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TaskNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// Returns the IDs of task numbers.
pub(super) fn ids(numbers: &[TaskNumber]) -> Vec<TaskId> {
    numbers.iter().map(|number| number.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_however_they_are_written() {
        for (given, expected) in [
            ("3", Some(3)),
            ("\"3\"", Some(3)),
            ("\" #12\"", Some(12)),
            ("-1", None),
            ("1.5", None),
            ("\"x\"", None),
            ("null", None),
        ] {
            let read: Option<TaskNumber> = serde_json::from_str(given).ok();
            assert_eq!(
                read,
                expected.map(|number| TaskNumber(TaskId(number))),
                "{given}"
            );
        }
    }
}
