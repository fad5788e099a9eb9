//! A response's body: bytes, pauses and faults, one after another.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;

use crate::admitted::AdmittedRequest;
use crate::pace::Pace;
use crate::record::{Outcome, Record};

/// What a body does next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BodyStep {
    Send(Bytes),
    Wait(Duration),
    /// The connection ends here.
    Break,
    /// The connection is reset here.
    Reset,
    /// Nothing more ever comes.
    Hang,
}

/// A body that plays steps.
pub(crate) struct PlayedBody {
    steps: VecDeque<BodyStep>,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pace: Arc<dyn Pace>,
    /// Tells the connection to reset instead of closing.
    reset: Arc<AtomicBool>,
    entry: Option<(Arc<Record>, u64)>,
    admitted: Option<AdmittedRequest>,
    /// What was sent had a chance to leave before the connection breaks.
    flushed: bool,
}

impl PlayedBody {
    pub(crate) fn new(steps: Vec<BodyStep>, pace: Arc<dyn Pace>, reset: Arc<AtomicBool>) -> Self {
        Self {
            steps: steps.into(),
            waiting: None,
            pace,
            reset,
            entry: None,
            admitted: None,
            flushed: false,
        }
    }

    /// Records how and when the body ends.
    pub(crate) fn recorded(mut self, record: Arc<Record>, number: u64) -> Self {
        self.entry = Some((record, number));
        self
    }

    /// Keeps a request in flight until the body ends.
    pub(crate) fn keep(&mut self, admitted: AdmittedRequest) {
        self.admitted = Some(admitted);
    }

    fn note(&mut self, outcome: Outcome) {
        // Settled first: who sees in the record that it has ended may ask again.
        self.admitted = None;
        if let Some((record, number)) = self.entry.take() {
            let now = self.pace.now().as_micros() as u64;
            record.update(number, |request| {
                (request.outcome, request.ended_us) = (outcome, Some(now));
            });
        }
    }
}

impl Drop for PlayedBody {
    fn drop(&mut self) {
        // hyper does not poll a body again that says it has ended, so that `Sent` is noted here.
        let outcome = if self.steps.is_empty() {
            Outcome::Sent
        } else {
            Outcome::Abandoned
        };
        self.note(outcome);
    }
}

impl http_body::Body for PlayedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(wait) = &mut self.waiting {
                std::task::ready!(wait.as_mut().poll(context));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                None => {
                    self.note(Outcome::Sent);
                    return Poll::Ready(None);
                }
                Some(BodyStep::Send(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(BodyStep::Wait(duration)) => self.waiting = Some(self.pace.sleep(duration)),
                Some(step @ (BodyStep::Break | BodyStep::Reset)) if !self.flushed => {
                    // hyper sends what it holds only when the body has nothing more for now.
                    self.flushed = true;
                    self.steps.push_front(step);
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(step @ (BodyStep::Break | BodyStep::Reset)) => {
                    self.reset.store(step == BodyStep::Reset, Ordering::Relaxed);
                    self.note(Outcome::Broken);
                    return Poll::Ready(Some(Err(io::Error::other("the script says so"))));
                }
                Some(BodyStep::Hang) => {
                    // Put back, so that being dropped here counts as abandoned.
                    self.steps.push_front(BodyStep::Hang);
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_none()
    }
}
