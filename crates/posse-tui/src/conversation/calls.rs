//! Tool calls: those that run now, and the titles of those whose results are printed.

use std::collections::HashMap;

use posse_protocol::{FileDiff, RawJson};

use crate::text::{one_line, without_escapes};

/// Number of characters that are kept of the last line that a command printed.
const LAST_LINE: usize = 200;

/// A call that runs.
pub(crate) struct RunningCall {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) since_ms: u64,
    /// Number of lines that it has printed.
    pub(crate) lines: u64,
    /// The last one of them, safe to show.
    pub(crate) last: String,
}

/// A call of the last reply.
#[derive(Clone)]
pub(crate) struct KnownCall {
    pub(crate) tool: String,
    pub(crate) input: Option<RawJson>,
    pub(crate) title: Option<String>,
    /// The change that the person was shown when they were asked about it.
    pub(crate) change: Option<FileDiff>,
}

/// The calls of an agent.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) running: Vec<RunningCall>,
    known: HashMap<String, KnownCall>,
}

impl Calls {
    /// A reply asks for a call.
    pub(crate) fn asked(&mut self, id: &str, tool: &str, input: Option<&RawJson>) {
        self.entry(id, tool).input = input.cloned();
    }

    /// A person is asked about a call, and sees the change that it would make.
    pub(crate) fn previewed(&mut self, id: &str, tool: &str, change: &FileDiff) {
        self.entry(id, tool).change = Some(change.clone());
    }

    /// A call begins, or another viewer is told that it runs.
    pub(crate) fn started(&mut self, id: &str, tool: &str, title: &str, now_ms: u64) {
        self.named(id, tool, title);
        if self.running.iter().any(|call| call.id == id) {
            return;
        }
        self.running.push(RunningCall {
            id: id.to_owned(),
            title: one_line(title),
            since_ms: now_ms,
            lines: 0,
            last: String::new(),
        });
    }

    /// A call has a title.
    pub(crate) fn named(&mut self, id: &str, tool: &str, title: &str) {
        self.entry(id, tool).title = Some(title.to_owned());
    }

    fn entry(&mut self, id: &str, tool: &str) -> &mut KnownCall {
        self.known.entry(id.to_owned()).or_insert(KnownCall {
            tool: tool.to_owned(),
            input: None,
            title: None,
            change: None,
        })
    }

    /// A call has printed something.
    pub(crate) fn printed(&mut self, id: &str, text: &str) {
        let Some(call) = self.running.iter_mut().find(|call| call.id == id) else {
            return;
        };
        call.lines += text.matches('\n').count() as u64;
        let lines = text.lines().rev();
        if let Some(last) = lines.map(str::trim).find(|line| !line.is_empty()) {
            let last = one_line(&without_escapes(last));
            call.last = last.chars().take(LAST_LINE).collect();
        }
    }

    pub(crate) fn done(&mut self, id: &str) {
        self.running.retain(|call| call.id != id);
    }

    /// Returns what is known about a call whose result has come, and forgets it.
    pub(crate) fn take(&mut self, id: &str) -> Option<KnownCall> {
        self.done(id);
        self.known.remove(id)
    }

    /// Forgets everything: the run is over.
    pub(crate) fn clear(&mut self) {
        self.running.clear();
        self.known.clear();
    }
}
