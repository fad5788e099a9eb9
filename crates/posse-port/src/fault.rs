//! Converts model and store errors into the faults that front ends know.

use std::time::Duration;

use posse_protocol::{Fault, FaultClass};

use crate::model::{ApiErrorKind, ModelError};
use crate::store::StoreError;

/// Stands before the wait that a provider asks for, at the end of a message.
const RETRY_AFTER: &str = "; retry after ";

/// Returns the wait that the provider asked for, in words, if a fault has one.
pub fn retry_after(fault: &Fault) -> Option<&str> {
    let (_, wait) = fault.message.rsplit_once(RETRY_AFTER)?;
    Some(wait)
}

/// Returns a wait in its largest units, rounded up.
fn in_words(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let minutes = seconds.div_ceil(60);
    match (seconds, minutes / 60, minutes % 60) {
        (..=120, ..) => format!("{seconds} s"),
        (_, 0, minutes) => format!("{minutes} min"),
        (_, hours, 0) => format!("{hours} h"),
        (_, hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

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
            message.push_str(&format!("{RETRY_AFTER}{}", in_words(wait)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ApiError;

    #[test]
    fn a_fault_says_when_the_provider_wants_to_be_asked_again() {
        let asked = |seconds: f64| {
            let error = ModelError::Api(Box::new(ApiError {
                kind: ApiErrorKind::RateLimited,
                status: 429,
                message: "too many".into(),
                request_id: None,
                retry_after: Some(Duration::from_secs_f64(seconds)),
                should_retry: None,
            }));
            retry_after(&Fault::from(&error)).map(str::to_owned)
        };
        for (seconds, words) in [
            (0.2, "1 s"),
            (120.0, "120 s"),
            (121.0, "3 min"),
            (3600.0, "1 h"),
            (5400.0, "1 h 30 min"),
        ] {
            assert_eq!(asked(seconds).as_deref(), Some(words));
        }
        let gone = Fault::from(&ModelError::Cancelled);
        assert_eq!(retry_after(&gone), None);
    }
}
