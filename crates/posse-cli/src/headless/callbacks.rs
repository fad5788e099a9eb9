//! Hooks that are functions of the program that drives posse: asked by a line, answered by a line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::hooks::{HookCall, HookFailure, HookReturn, HookRunner, HookTarget};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::input::PeerError;

/// Number of lines that may wait to be written; more hooks wait.
const LINES: usize = 64;

/// The answer of a program.
type ProgramAnswer = Result<Value, PeerError>;

/// Asks a program about its hooks.
#[derive(Clone)]
pub(crate) struct HookCallbacks {
    lines: mpsc::Sender<Value>,
    open: OpenCallbacks,
}

/// Questions about hooks that are not answered.
#[derive(Clone, Default)]
pub(crate) struct OpenCallbacks(Arc<Mutex<Asked>>);

/// What the program was asked.
#[derive(Default)]
struct Asked {
    open: HashMap<String, oneshot::Sender<ProgramAnswer>>,
    /// True once nobody is there to answer.
    gone: bool,
}

impl OpenCallbacks {
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands on an answer. Returns it if nothing with this id was asked.
    pub(crate) fn answer(&self, id: &str, answer: ProgramAnswer) -> Result<(), ProgramAnswer> {
        match self.lock().open.remove(id) {
            // Who asked may have stopped waiting.
            Some(asked) => {
                let _ = asked.send(answer);
                Ok(())
            }
            None => Err(answer),
        }
    }

    /// Drops all questions: nobody is there to answer.
    pub(crate) fn give_up(&self) {
        let mut asked = self.lock();
        asked.gone = true;
        asked.open.clear();
    }
}

impl HookCallbacks {
    /// Returns what asks, what answers, and the lines that are to be written.
    pub(crate) fn new() -> (Self, OpenCallbacks, mpsc::Receiver<Value>) {
        let (lines, written) = mpsc::channel(LINES);
        let open = OpenCallbacks::default();
        let asks = Self {
            lines,
            open: open.clone(),
        };
        (asks, open, written)
    }

    async fn ask(self, call: HookCall) -> HookReturn {
        let HookTarget::Callback { id, call: tool_use } = &call.target else {
            return failed(HookFailure::NotRun("it is no callback".into()));
        };
        let request_id = Uuid::now_v7().to_string();
        let (answers, answer) = oneshot::channel();
        {
            let mut asked = self.open.lock();
            if asked.gone {
                return failed(HookFailure::NotRun("the program has gone".into()));
            }
            asked.open.insert(request_id.clone(), answers);
        }
        let input: Value = serde_json::from_slice(&call.input).unwrap_or_default();
        let line = json!({
            "type": "control_request", "request_id": request_id,
            "request": {"subtype": "hook_callback", "callback_id": id, "input": input, "tool_use_id": tool_use},
        });
        let asked = async {
            if self.lines.send(line).await.is_err() {
                return failed(HookFailure::NotRun("the program has gone".into()));
            }
            match answer.await {
                Ok(Ok(answer)) => HookReturn {
                    output: said(&answer),
                    code: Some(0),
                    ..HookReturn::default()
                },
                Ok(Err(error)) => failed(HookFailure::Refused(error.to_string())),
                Err(_) => failed(HookFailure::NotRun("the program has gone".into())),
            }
        };
        let begun = call.clock.now();
        let returned = tokio::select! {
            returned = asked => returned,
            () = call.clock.sleep(call.limit) => failed(HookFailure::TimedOut(call.limit)),
            () = call.cancel.cancelled() => failed(HookFailure::Stopped),
        };
        if self.open.lock().open.remove(&request_id).is_some() {
            let cancel = json!({"type": "control_cancel_request", "request_id": request_id});
            // One that is full has a program that does not read: it misses nothing by this.
            let _ = self.lines.try_send(cancel);
        }
        let took: Duration = call.clock.now().saturating_sub(begun);
        HookReturn { took, ..returned }
    }
}

/// Returns what a program's answer says; a promise to go on alone says nothing.
fn said(answer: &Value) -> String {
    match answer["async"].as_bool() {
        Some(true) => String::new(),
        _ if answer.is_null() => String::new(),
        _ => answer.to_string(),
    }
}

fn failed(failure: HookFailure) -> HookReturn {
    HookReturn {
        failure: Some(failure),
        ..HookReturn::default()
    }
}

impl HookRunner for HookCallbacks {
    fn run(&self, call: HookCall) -> BoxFuture<'static, HookReturn> {
        Box::pin(self.clone().ask(call))
    }
}
