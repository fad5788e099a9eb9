//! Converts model and store errors into the faults that front ends know.

use posse_protocol::{Fault, FaultClass};

use crate::model::{ApiErrorKind, ModelError};
use crate::store::StoreError;

impl From<&ModelError> for Fault {
    fn from(error: &ModelError) -> Self {
        let (class, status) = match error {
            ModelError::Connect { .. } => (FaultClass::Unreachable, None),
            ModelError::Api(api) => (class(api.kind), Some(api.status)),
            ModelError::Cancelled
            | ModelError::Cut { .. }
            | ModelError::Stalled { .. }
            | ModelError::Garbled { .. } => (FaultClass::Connection, None),
        };
        let mut message = in_a_line(error);
        if let Some(wait) = error.retry_after() {
            // Rounded up, because a retry that comes too early is refused again.
            message.push_str(&format!("; retry after {} s", wait.as_secs_f64().ceil()));
        }
        Self {
            class,
            status,
            message,
        }
    }
}

impl From<&StoreError> for Fault {
    fn from(error: &StoreError) -> Self {
        let class = match error {
            StoreError::Fenced { .. } => FaultClass::Fenced,
            _ => FaultClass::Store,
        };
        Self {
            class,
            status: None,
            message: in_a_line(error),
        }
    }
}

fn class(kind: ApiErrorKind) -> FaultClass {
    match kind {
        ApiErrorKind::Authentication => FaultClass::Authentication,
        ApiErrorKind::Billing | ApiErrorKind::SpendLimit => FaultClass::Billing,
        ApiErrorKind::Permission => FaultClass::Permission,
        ApiErrorKind::NotFound => FaultClass::NotFound,
        ApiErrorKind::InvalidRequest | ApiErrorKind::Conflict => FaultClass::InvalidRequest,
        ApiErrorKind::TooLarge | ApiErrorKind::ContextFull => FaultClass::TooLarge,
        ApiErrorKind::RateLimited | ApiErrorKind::Overloaded => FaultClass::Busy,
        ApiErrorKind::Server | ApiErrorKind::Timeout => FaultClass::Provider,
    }
}

/// Formats the error with its root cause; the errors between them add nothing.
pub fn in_a_line(error: &(dyn std::error::Error + 'static)) -> String {
    let (mut said, mut deepest) = (error.to_string(), error);
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let deepest = deepest.to_string();
    // Some errors already name their cause in their own text.
    if !said.contains(&deepest) {
        said = format!("{said}: {deepest}");
    }
    said
}
