//! Requests to the server, recorded for assertions.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use posse_protocol::Usage;
use serde::Serialize;
use tokio::sync::watch;

use crate::limits::Verdict;

/// Maximum number of recorded requests; older ones are dropped.
const MOST_REQUESTS: usize = 100_000;
/// Maximum size of their bodies.
const MOST_BYTES: usize = 256 << 20;

/// One request.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// Its number, from 0.
    pub number: u64,
    /// The connection it came over, counted from 0.
    pub connection: u64,
    /// When its last byte arrived, in microseconds of the server's monotonic clock.
    pub at_us: u64,
    /// When the answer ended, by the same clock: its last byte was handed to the connection.
    pub ended_us: Option<u64>,
    /// Method and path.
    pub method: String,
    /// The path.
    pub path: String,
    /// Headers with names in lower case, without credentials.
    pub headers: Vec<(String, String)>,
    /// The body, as it came.
    #[serde(serialize_with = "as_text")]
    pub body: Bytes,
    /// The status of the answer; 0 if there was none.
    pub status: u16,
    /// The rule that answered.
    pub rule: Option<String>,
    /// The account that asked, as summaries name it; none if the limits were not asked.
    pub account: Option<String>,
    /// How it stood to the limits; none if they were not asked.
    pub verdict: Option<Verdict>,
    /// What was billed.
    pub usage: Option<Usage>,
    /// How the answer ended.
    pub outcome: Outcome,
}

impl Recorded {
    /// Returns a header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not ended.
    Open,
    /// All of it was sent.
    Sent,
    /// The script broke the connection.
    Broken,
    /// The client left before its end.
    Abandoned,
}

fn as_text<S: serde::Serializer>(body: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}

/// The record.
#[derive(Debug)]
pub(crate) struct Record {
    kept: Mutex<Kept>,
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    requests: VecDeque<Recorded>,
    bytes: usize,
    next: u64,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl Record {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and returns its number.
    pub(crate) fn add(&self, mut request: Recorded) -> u64 {
        let mut kept = self.kept();
        request.number = kept.next;
        kept.next += 1;
        kept.bytes += request.body.len();
        kept.requests.push_back(request);
        while kept.requests.len() > MOST_REQUESTS || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.requests.pop_front() else {
                break;
            };
            kept.bytes -= oldest.body.len();
        }
        let (number, count) = (kept.next - 1, kept.next);
        // Unlocked first: those who wait for the count read the record as soon as they wake.
        drop(kept);
        self.count.send_replace(count);
        number
    }

    /// Changes a request, if it is still recorded.
    pub(crate) fn update(&self, number: u64, change: impl FnOnce(&mut Recorded)) {
        let mut kept = self.kept();
        // Numbers have no gaps, so that a request's place follows from the first one's number.
        let first = kept.requests.front().map_or(0, |oldest| oldest.number);
        let place = number.checked_sub(first).map(|place| place as usize);
        if let Some(request) = place.and_then(|place| kept.requests.get_mut(place)) {
            change(request);
        }
    }

    /// Returns requests from number `since` on.
    pub(crate) fn since(&self, since: u64) -> Vec<Recorded> {
        self.kept()
            .requests
            .iter()
            .filter(|request| request.number >= since)
            .cloned()
            .collect()
    }

    /// Waits until `count` requests have come.
    pub(crate) async fn wait_for(&self, count: u64) {
        // An error means that the record is gone, and with it everyone who waits.
        let _ = self.count.subscribe().wait_for(|seen| *seen >= count).await;
    }
}
