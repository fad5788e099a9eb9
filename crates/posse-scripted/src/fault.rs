//! Plays a reply as its rule says: at its speed, with its fault.

use std::time::Duration;

use bytes::Bytes;

use crate::body::BodyStep;
use crate::script::Fault;

/// An event of a stream, and its number of tokens.
pub(crate) struct Timed {
    pub(crate) bytes: String,
    pub(crate) tokens: u64,
}

/// Returns the steps that play `events`.
pub(crate) fn play(
    mut events: Vec<Timed>,
    tokens_per_s: Option<f64>,
    fault: Option<&Fault>,
) -> Vec<BodyStep> {
    match fault {
        Some(Fault::Duplicate { event }) if *event < events.len() => {
            let twin = Timed {
                bytes: events[*event].bytes.clone(),
                tokens: 0,
            };
            events.insert(*event, twin);
        }
        Some(Fault::Error { event, class }) => {
            let named = events
                .first()
                .is_some_and(|first| first.bytes.starts_with("event:"));
            events.truncate(*event);
            events.push(Timed {
                bytes: error_event(class, named),
                tokens: 0,
            });
        }
        _ => {}
    }
    let mut steps = Vec::new();
    let Some(rate) = tokens_per_s else {
        let all: String = events.into_iter().map(|event| event.bytes).collect();
        return mishap(vec![BodyStep::Send(all.into())], fault);
    };
    for event in events {
        if event.tokens > 0 {
            steps.push(BodyStep::Wait(Duration::from_secs_f64(
                event.tokens as f64 / rate,
            )));
        }
        steps.push(BodyStep::Send(event.bytes.into()));
    }
    mishap(steps, fault)
}

/// Returns an error event. Anthropic names its events, Chat Completions does not.
fn error_event(class: &str, named: bool) -> String {
    let name = if named { "event: error\n" } else { "" };
    let data = serde_json::json!({"type": "error", "error": {"type": class, "message": "the script says so"}});
    format!("{name}data: {data}\n\n")
}

/// Plays a complete body, which has no events, so that faults of events do not apply.
pub(crate) fn play_whole(body: String, fault: Option<&Fault>) -> Vec<BodyStep> {
    mishap(vec![BodyStep::Send(body.into())], fault)
}

/// Applies a fault to bytes.
fn mishap(steps: Vec<BodyStep>, fault: Option<&Fault>) -> Vec<BodyStep> {
    match fault {
        Some(Fault::Cut { at }) => until(steps, *at, BodyStep::Break),
        Some(Fault::Reset { at }) => until(steps, *at, BodyStep::Reset),
        Some(Fault::Stall { at: Some(at) }) => until(steps, *at, BodyStep::Hang),
        Some(Fault::Garbage { at }) => {
            let mut steps = until(
                steps,
                *at,
                BodyStep::Send(Bytes::from_static(&[0xff, 0x00, 0xfe, b'\n'])),
            );
            // A blank line ends the event, so that the client sees the garbage now.
            steps.push(BodyStep::Send(Bytes::from_static(b"\n")));
            steps
        }
        Some(Fault::Drip { bytes_per_s }) => {
            let wait = Duration::from_secs_f64(1.0 / bytes_per_s);
            let drip = |step| match step {
                BodyStep::Send(bytes) => (0..bytes.len())
                    .flat_map(|at| [BodyStep::Wait(wait), BodyStep::Send(bytes.slice(at..=at))])
                    .collect(),
                other => vec![other],
            };
            steps.into_iter().flat_map(drip).collect()
        }
        _ => steps,
    }
}

/// Returns the steps up to `at` bytes, then `end`.
fn until(steps: Vec<BodyStep>, at: usize, end: BodyStep) -> Vec<BodyStep> {
    let (mut left, mut out) = (at, Vec::new());
    for step in steps {
        match step {
            BodyStep::Send(bytes) if bytes.len() >= left => {
                out.push(BodyStep::Send(bytes.slice(..left)));
                break;
            }
            BodyStep::Send(bytes) => {
                left -= bytes.len();
                out.push(BodyStep::Send(bytes));
            }
            other => out.push(other),
        }
    }
    out.push(end);
    out
}
