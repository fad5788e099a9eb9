//! Watching, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spending::{WireCost, WireSpent};
use crate::{Activity, Detail, QueuedPrompt, SpendingUpdate, WaitReason, WatchTarget};

/// What a client wants to watch.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientWatch {
    /// The id of the answer. Without one, it is not answered.
    pub id: Option<String>,
    /// Whom.
    pub target: WatchTarget,
    /// How closely; none to watch no longer.
    pub detail: Option<Detail>,
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Activity")]
pub(super) enum WireActivity {
    /// It has no run.
    Idle,
    /// It calls the model, or its tools run.
    Working,
    /// Its run waits; `why` says what for.
    Waiting,
    /// It does not live in this process any more.
    Gone,
}

/// Returns an activity as its two fields.
pub(super) fn fields(activity: Activity) -> (WireActivity, Option<WaitReason>) {
    match activity {
        Activity::Idle => (WireActivity::Idle, None),
        Activity::Working => (WireActivity::Working, None),
        Activity::Waiting(why) => (WireActivity::Waiting, Some(why)),
        Activity::Gone => (WireActivity::Gone, None),
    }
}

/// Returns the activity of two fields. Who waits for something that is not said works.
pub(super) fn activity(state: WireActivity, why: Option<WaitReason>) -> Activity {
    match (state, why) {
        (WireActivity::Idle, _) => Activity::Idle,
        (WireActivity::Waiting, Some(why)) => Activity::Waiting(why),
        (WireActivity::Working | WireActivity::Waiting, _) => Activity::Working,
        (WireActivity::Gone, _) => Activity::Gone,
    }
}

/// What an agent has used so far.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SpendingUpdate")]
pub(super) struct WireSpending {
    /// What the agent itself used, by model, since this process runs it.
    own: Vec<WireSpent>,
    /// What it and all agents below it used, by model.
    subtree: Vec<WireSpent>,
    /// Money that the tightest budget has left; absent if no budget limits money.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_usd: Option<WireCost>,
    /// Size of its last prompt with the reply, in tokens.
    context_tokens: u64,
    /// Size of the model's context window, in tokens; absent if not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
}

impl From<SpendingUpdate> for WireSpending {
    fn from(update: SpendingUpdate) -> Self {
        Self {
            own: update.own.into_iter().map(Into::into).collect(),
            subtree: update.subtree.into_iter().map(Into::into).collect(),
            left_usd: update.left.map(WireCost),
            context_tokens: update.context_tokens,
            context_window: update.context_window,
        }
    }
}

impl From<WireSpending> for SpendingUpdate {
    fn from(update: WireSpending) -> Self {
        Self {
            own: update.own.into_iter().map(Into::into).collect(),
            subtree: update.subtree.into_iter().map(Into::into).collect(),
            left: update.left_usd.map(|left| left.0),
            context_tokens: update.context_tokens,
            context_window: update.context_window,
        }
    }
}

/// A prompt or skill that waits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QueuedPrompt")]
pub(super) struct WireQueuedPrompt {
    /// Its number, by which it is changed.
    id: u64,
    /// Its text.
    text: String,
    /// The number of its images.
    images: u32,
    /// True if it is shown at the next tool boundary of the run. Otherwise, or if there is none, it
    /// begins a run of its own.
    joins: bool,
}

both_ways!(
    QueuedPrompt,
    WireQueuedPrompt {
        id,
        text,
        images,
        joins
    }
);
