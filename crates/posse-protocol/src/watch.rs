//! How closely somebody watches an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::EventKind;

/// How much of an agent a viewer sees.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// What it does and waits for, without what it says.
    News,
    /// Everything: also its entries, and its replies while they arrive.
    All,
}

impl Detail {
    /// Returns true if an event belongs to this detail.
    pub fn includes(self, kind: &EventKind) -> bool {
        let is_content = matches!(kind, EventKind::Entry(_) | EventKind::Delta(_));
        self == Self::All || !is_content
    }
}
