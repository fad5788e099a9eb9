//! The calls that a client waits for.

use std::rc::Rc;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinError, JoinSet};

use super::answer::ToolAnswer;
use super::changes::{self, ChangeBounds};
use super::progress::{self, CallProgress};
use super::protocol::{self, ClientRequest, ProtocolEra, RequestFault, RequestId};
use super::rights::ServerRights;
use super::tools::{RunRequest, ToolRequest, ToolRequestError};
use super::{looks, run, tools};
use crate::assemble::store::look_into_store;

/// Maximum number of calls at once; of runs fewer work, and the others wait.
const MOST_CALLS: usize = 64;

/// The open calls.
pub(super) struct OpenCalls {
    context: Rc<CallContext>,
    tasks: JoinSet<ToolAnswer>,
    open: Vec<OpenCall>,
    told: mpsc::Sender<Value>,
    /// What is told about their progress.
    progress: mpsc::Receiver<Value>,
}

/// What calls share.
struct CallContext {
    rights: ServerRights,
    /// Runs that may work at once.
    slots: Semaphore,
}

/// A call.
struct OpenCall {
    task: Id,
    id: RequestId,
    era: ProtocolEra,
    stop: mpsc::Sender<()>,
    /// The client does not want its answer any more.
    is_cancelled: bool,
}

impl OpenCalls {
    /// Returns no calls. At most `most_runs` runs work at once.
    pub(super) fn new(rights: ServerRights, most_runs: usize) -> Self {
        let (told, progress) = mpsc::channel(progress::WAITING);
        Self {
            context: Rc::new(CallContext {
                rights,
                slots: Semaphore::new(most_runs),
            }),
            tasks: JoinSet::new(),
            open: Vec::new(),
            told,
            progress,
        }
    }

    /// Returns the tools that can be called.
    pub(super) fn tools(&self) -> Vec<Value> {
        tools::list(self.context.rights.is_person)
    }

    /// Begins a call. Its answer comes with [`next`](Self::next).
    pub(super) fn begin(
        &mut self,
        request: ClientRequest,
        era: ProtocolEra,
    ) -> Result<(), RequestFault> {
        if self.open.iter().any(|call| call.id == request.id) {
            return Err(RequestFault::NotARequest("a call with this id is open"));
        }
        if self.open.len() >= MOST_CALLS {
            return Err(RequestFault::Busy("too many calls wait; try again later"));
        }
        let params = Value::Object(request.params);
        let name = params["name"].as_str();
        let name = name.ok_or_else(|| RequestFault::WrongParams("`name` is missing".into()))?;
        let asked = tools::read(name, &params["arguments"], self.context.rights.is_person);
        if let Err(error @ ToolRequestError::Unknown(_)) = &asked {
            return Err(RequestFault::WrongParams(error.to_string()));
        }
        // Once to stop in order, and once to leave.
        let (stop, stops) = mpsc::channel(2);
        let progress = CallProgress::new(&params, self.told.clone());
        let context = Rc::clone(&self.context);
        let work = async move {
            let answer = match asked {
                Ok(ToolRequest::Run(asked)) => context.run(asked, progress, stops).await,
                Ok(asked) => context.answer(asked).await.map(ToolAnswer::object),
                // A model reads it, and can call again.
                Err(error) => Ok(ToolAnswer::error(error.to_string())),
            };
            answer.unwrap_or_else(ToolAnswer::from)
        };
        let task = self.tasks.spawn_local(work).id();
        self.open.push(OpenCall {
            task,
            id: request.id,
            era,
            stop,
            is_cancelled: false,
        });
        Ok(())
    }

    /// Stops a call, which is not answered any more.
    pub(super) fn cancel(&mut self, id: &RequestId) {
        if let Some(call) = self.open.iter_mut().find(|call| call.id == *id) {
            call.is_cancelled = true;
            // Who has been told twice needs no third time.
            let _ = call.stop.try_send(());
        }
    }

    /// Returns what is told next: the progress of a call, or its answer unless it was cancelled.
    /// Waits for ever if there is no call.
    pub(super) async fn next(&mut self) -> Option<Value> {
        tokio::select! {
            // Progress comes before the answer.
            biased;
            Some(told) = self.progress.recv() => Some(told),
            Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
            else => std::future::pending().await,
        }
    }

    /// Returns the answer to a call, unless it was cancelled.
    fn ended(&mut self, ended: Result<(Id, ToolAnswer), JoinError>) -> Option<Value> {
        let (task, answer) = match ended {
            Ok((task, answer)) => (task, Ok(answer)),
            Err(error) => (error.id(), Err(RequestFault::Failed)),
        };
        let at = self.open.iter().position(|call| call.task == task)?;
        let OpenCall {
            id,
            era,
            is_cancelled,
            ..
        } = self.open.swap_remove(at);
        (!is_cancelled).then(|| match answer {
            Ok(answer) => protocol::success(&id, answer.result(), era),
            Err(fault) => protocol::failure(&id, &fault),
        })
    }

    /// Returns true if a call has not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Stops all runs: in order the first time, at once the second time.
    pub(super) fn stop(&self) {
        for call in &self.open {
            // Who has been told twice needs no third time.
            let _ = call.stop.try_send(());
        }
    }
}

impl CallContext {
    async fn run(
        &self,
        asked: RunRequest,
        progress: CallProgress,
        mut stops: mpsc::Receiver<()>,
    ) -> anyhow::Result<ToolAnswer> {
        let slot = tokio::select! {
            biased;
            Some(()) = stops.recv() => None,
            slot = self.slots.acquire() => Some(slot?),
        };
        match slot {
            Some(_slot) => run::run(&self.rights, asked, progress, stops).await,
            None => Ok(ToolAnswer::error("cancelled before it began".into())),
        }
    }

    async fn answer(&self, asked: ToolRequest) -> anyhow::Result<Value> {
        // Opened for each call: a server may live for days, and its store may be made meanwhile.
        let store = look_into_store(&self.rights.store)?;
        let (store, cwd) = (&*store, self.rights.cwd.as_path());
        let bounds = ChangeBounds {
            cwd,
            mode: self.rights.mode,
        };
        match asked {
            ToolRequest::Run(_) => anyhow::bail!("a run has a slot of its own"),
            ToolRequest::Sessions(asked) => looks::all_sessions(store, cwd, &asked).await,
            ToolRequest::Session(asked) => looks::one_session(store, cwd, &asked).await,
            ToolRequest::Tasks(asked) => looks::all_tasks(store, cwd, &asked).await,
            ToolRequest::AddTask(asked) => changes::add_task(store, bounds, asked).await,
            ToolRequest::UpdateTask(asked) => changes::update_task(store, bounds, asked).await,
            ToolRequest::Mail(asked) => looks::all_mail(store, cwd, &asked).await,
            ToolRequest::SendMail(asked) => changes::send_mail(store, bounds, asked).await,
        }
    }
}
