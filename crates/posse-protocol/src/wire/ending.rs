//! How runs end and what goes wrong, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::present;
use super::spending::{WireMisses, WireSpent};
use crate::{Denial, Fault, FaultClass, Limit, Outcome, RawJson, RunEnd, StopReason};

/// What went wrong.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fault")]
pub(super) struct WireFault {
    /// The class, for programs.
    class: FaultClass,
    /// The HTTP status, if the model API sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    /// The message, for people.
    message: String,
}

both_ways!(
    Fault,
    WireFault {
        class,
        status,
        message
    }
);

/// A tool call that was denied.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Denial")]
pub(super) struct WireDenial {
    /// The tool.
    tool: String,
    /// The call.
    call: String,
    /// Its input, as the model wrote it.
    input: RawJson,
    /// Why it was denied.
    why: String,
}

both_ways!(
    Denial,
    WireDenial {
        tool,
        call,
        input,
        why
    }
);

/// How a run ended, and what it took.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunEnd")]
pub(super) struct WireRunEnd {
    /// How it ended.
    outcome: WireOutcome,
    /// The text of the last reply.
    text: String,
    /// The answer as a value, if it has a schema.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    value: Option<RawJson>,
    /// Why the last reply stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
    /// The number of model calls.
    turns: u32,
    /// What the agent itself used, by model.
    spent: Vec<WireSpent>,
    /// What sub-agents of the session used since the last run ended, by model.
    below: Vec<WireSpent>,
    /// What the agent and its sub-agents missed in the cache.
    misses: WireMisses,
    /// The number of background runs that continue. The end of each begins another run.
    live: u64,
    /// How long the run took.
    duration_ms: u64,
    /// How much of that time the model took.
    api_ms: u64,
    /// The calls that were denied.
    denials: Vec<WireDenial>,
}

impl From<RunEnd> for WireRunEnd {
    fn from(end: RunEnd) -> Self {
        Self {
            outcome: end.outcome.into(),
            text: end.text,
            value: end.value,
            stop: end.stop,
            turns: end.turns,
            spent: end.spent.into_iter().map(Into::into).collect(),
            below: end.below.into_iter().map(Into::into).collect(),
            misses: end.misses.into(),
            live: end.live as u64,
            duration_ms: end.duration_ms,
            api_ms: end.api_ms,
            denials: end.denials.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<WireRunEnd> for RunEnd {
    fn from(end: WireRunEnd) -> Self {
        Self {
            outcome: end.outcome.into(),
            text: end.text,
            value: end.value,
            stop: end.stop,
            turns: end.turns,
            spent: end.spent.into_iter().map(Into::into).collect(),
            below: end.below.into_iter().map(Into::into).collect(),
            misses: end.misses.into(),
            live: usize::try_from(end.live).unwrap_or(usize::MAX),
            duration_ms: end.duration_ms,
            api_ms: end.api_ms,
            denials: end.denials.into_iter().map(Into::into).collect(),
        }
    }
}

tagged! {
    /// How a run ended.
    #[schemars(rename = "Outcome")]
    enum WireOutcome {
        /// The model ended its turn by itself.
        Completed {}
        /// A limit stopped it. What there is is in the transcript.
        Partial {
            /// The limit.
            limit: Limit,
        }
        /// The model declined.
        Refused {}
        /// Somebody stopped it.
        Interrupted {}
        /// A temporary fault stopped it. It can be continued.
        Paused {
            /// The fault.
            fault: WireFault,
        }
        /// A fault ended it.
        Failed {
            /// The fault.
            fault: WireFault,
        }
    }
}

impl From<Outcome> for WireOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed {},
            Outcome::Partial(limit) => Self::Partial { limit },
            Outcome::Refused => Self::Refused {},
            Outcome::Interrupted => Self::Interrupted {},
            Outcome::Paused(fault) => Self::Paused {
                fault: fault.into(),
            },
            Outcome::Failed(fault) => Self::Failed {
                fault: fault.into(),
            },
        }
    }
}

impl From<WireOutcome> for Outcome {
    fn from(outcome: WireOutcome) -> Self {
        match outcome {
            WireOutcome::Completed {} => Self::Completed,
            WireOutcome::Partial { limit } => Self::Partial(limit),
            WireOutcome::Refused {} => Self::Refused,
            WireOutcome::Interrupted {} => Self::Interrupted,
            WireOutcome::Paused { fault } => Self::Paused(fault.into()),
            WireOutcome::Failed { fault } => Self::Failed(fault.into()),
        }
    }
}
