//! A request in flight, as the limits count it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::{Admission, RateLimiter};
use crate::pace::Pace;

/// An admitted request. It is settled when this is dropped: the answer has ended, or the client
/// has left.
pub(crate) struct AdmittedRequest {
    limiter: Arc<Mutex<RateLimiter>>,
    pace: Arc<dyn Pace>,
    admission: Option<Admission>,
    output_tokens: u64,
}

impl AdmittedRequest {
    pub(crate) fn new(
        limiter: Arc<Mutex<RateLimiter>>,
        pace: Arc<dyn Pace>,
        admission: Admission,
    ) -> Self {
        Self {
            limiter,
            pace,
            admission: Some(admission),
            output_tokens: 0,
        }
    }

    /// Says how much the answer that begins now counts.
    pub(crate) fn answered(&mut self, output_tokens: u64) {
        self.output_tokens = output_tokens;
    }
}

impl Drop for AdmittedRequest {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
            limiter.settle(self.pace.now(), admission, self.output_tokens);
        }
    }
}
