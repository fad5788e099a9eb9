//! Hooks that run or have run, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{HookEnd, HookUpdate};

/// A hook that runs, or has run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hook")]
pub(super) struct WireHook {
    /// This run of it.
    id: Uuid,
    /// The event that it is for.
    event: String,
    /// What of the event: the tool for one.
    about: String,
    /// What it is, in a line for people.
    title: String,
    /// The tool call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// How it has ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<WireHookEnd>,
}

/// How a hook has ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HookEnd")]
struct WireHookEnd {
    /// What it printed, or the beginning of it.
    output: String,
    /// Its errors, or the beginning of them.
    errors: String,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
    /// Why it has not answered as it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl From<HookUpdate> for WireHook {
    fn from(hook: HookUpdate) -> Self {
        let HookUpdate {
            id,
            event,
            about,
            title,
            call,
            end,
        } = hook;
        Self {
            id,
            event,
            about,
            title,
            call,
            end: end.map(|end| WireHookEnd {
                output: end.output,
                errors: end.errors,
                code: end.code,
                failure: end.failure,
            }),
        }
    }
}

impl From<WireHook> for HookUpdate {
    fn from(hook: WireHook) -> Self {
        let WireHook {
            id,
            event,
            about,
            title,
            call,
            end,
        } = hook;
        Self {
            id,
            event,
            about,
            title,
            call,
            end: end.map(|end| HookEnd {
                output: end.output,
                errors: end.errors,
                code: end.code,
                failure: end.failure,
            }),
        }
    }
}
