//! Runs the hooks of an event side by side, and merges what they say in the order in which they are
//! declared.

use std::fs::{DirBuilder, File};
use std::future::poll_fn;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use posse_permission::Rights;
use posse_port::clock::Clock;
use posse_port::hooks::{HookCall, HookFailure, HookReturn, HookRunner, HookTarget};
use posse_port::process::ProcessBoundary;
use posse_port::store::Charge;
use posse_port::tool::{VARIABLES, Workspace};
use posse_port::{BoxFuture, Ports};
use posse_protocol::{AgentId, EventKind, HookEnd, HookUpdate, PermissionMode};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::events::EventSink;
use crate::agent::hook_judge::{HookJudge, Judged};
use crate::agent::hook_server::HookServers;
use crate::agent::step::HookRequest;
use crate::hook::answer::{Answer, interpret};
use crate::hook::{
    Hook, HookAction, HookBook, HookEvent, HookFacts, HookTool, Merged, RunsBeside, SubAgentFacts,
    merge, payload, target, variables,
};

use crate::live::boundary;
use crate::live::session::Session;
use crate::live::setup::Approver;
use crate::supervise::Supervisor;

/// Maximum number of characters of a hook's text in an event.
const SHOWN: usize = 10_000;

/// Everything that the hooks of an agent are told and run with, as of one moment.
#[derive(Clone)]
pub(crate) struct HookHost {
    pub(crate) runner: Arc<dyn HookRunner>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sink: EventSink,
    pub(crate) session: AgentId,
    /// The agent's type; none for a main agent.
    pub(crate) sub_agent: Option<String>,
    /// Facts of posse's own.
    pub(crate) posse: Map<String, Value>,
    pub(crate) transcript: PathBuf,
    /// Where the agent works.
    pub(crate) directory: PathBuf,
    /// Where the session was started.
    pub(crate) project: PathBuf,
    pub(crate) mode: PermissionMode,
    /// The prompt that is worked on.
    pub(crate) prompt: Option<Uuid>,
    /// True if a person is there.
    pub(crate) attended: bool,
    /// What holds the hooks of a repository.
    pub(crate) sandbox: ProcessBoundary,
    /// The hooks of settings.
    pub(crate) book: Arc<HookBook>,
    /// The session's, which has the directories for variables of later commands.
    pub(crate) workspace: Arc<Workspace>,
    /// The effort of the agent's model.
    pub(crate) effort: Option<&'static str>,
    /// The servers whose tools hooks call; none if there are none.
    pub(crate) servers: Option<HookServers>,
    /// What asks models; none for events whose hooks ask none.
    pub(crate) judge: Option<Box<HookJudge>>,
}

/// What the hooks of an event have come to.
pub(crate) struct HooksSaid {
    /// What those say that were waited for.
    pub(crate) merged: Merged,
    /// Those that are not waited for.
    pub(crate) beside: Vec<HookRun>,
    /// What the models have cost that they asked.
    pub(crate) charges: Vec<Charge>,
}

/// A hook that is to be run.
pub(crate) struct HookRun {
    pub(crate) hook: Arc<Hook>,
    /// Its place among the hooks of the event.
    number: usize,
    /// What happened.
    input: Bytes,
    call: Option<String>,
}

impl HookHost {
    /// Returns what runs hooks of an agent with these rights: of the session's main agent, unless
    /// the rest is set, too. `posse` is the object with posse's own facts.
    pub(crate) fn new(ports: &Ports, session: &Session, rights: &Rights, posse: Value) -> Self {
        let workspace = rights.workspace();
        Self {
            runner: Arc::clone(&ports.hooks),
            clock: Arc::clone(&ports.clock),
            sink: EventSink {
                agent: session.root,
                audience: session.events.audience(session.root),
                events: session.events.clone(),
                stop: CancellationToken::new(),
                below: false,
                waits: Arc::default(),
            },
            session: session.root,
            sub_agent: None,
            posse: match posse {
                Value::Object(posse) => posse,
                _ => Map::new(),
            },
            transcript: session.transcript(session.root),
            directory: workspace.cwd.clone(),
            project: session.setup.workspace.cwd.clone(),
            mode: rights.mode(),
            prompt: session.prompt(),
            attended: session.approver() != Approver::Nobody,
            sandbox: boundary::of_repository(rights, "a hook of the repository"),
            book: Arc::clone(&session.setup.spawning.hooks),
            workspace: Arc::clone(session.rights.workspace()),
            effort: None,
            servers: HookServers::of(session, rights),
            judge: None,
        }
    }

    /// Runs the hooks of a request that are waited for.
    pub(crate) async fn run(&self, request: HookRequest, cancel: CancellationToken) -> HooksSaid {
        let HookRequest {
            event,
            hooks,
            about,
            call,
            own,
            ..
        } = request;
        let input = self.input(event, own);
        let hook_run = |(number, hook)| HookRun {
            hook,
            number,
            input: input.clone(),
            call: call.clone(),
        };
        let (beside, waited): (Vec<_>, Vec<_>) = hooks
            .into_iter()
            .enumerate()
            .map(hook_run)
            .partition(|run| run.hook.beside != RunsBeside::No);
        let running = waited.iter().map(|run| {
            let ask = self.ask(run, &about, &cancel);
            Box::pin(ask) as BoxFuture<'_, (Answer, Vec<Charge>)>
        });
        let asked = join_all(running.collect()).await;
        let (answers, charges): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let waited = waited.into_iter().map(|run| run.hook);
        let merged = merge::merge(waited.zip(answers));
        for remark in &merged.remarks {
            self.sink.emit(EventKind::Warning(remark.clone())).await;
        }
        HooksSaid {
            merged,
            beside,
            charges: charges.into_iter().flatten().collect(),
        }
    }

    /// Starts hooks that nobody waits for. Front ends alone are told what they say.
    pub(crate) fn let_go(&self, supervisor: &Supervisor, beside: Vec<HookRun>) {
        for one in beside {
            let (host, cancel) = (self.clone(), supervisor.branch());
            supervisor.start_errand(async move {
                host.run_beside(one, cancel).await;
            });
        }
    }

    /// Runs a hook that nobody waits for.
    pub(crate) async fn run_beside(&self, beside: HookRun, cancel: CancellationToken) -> Answer {
        let (answer, _) = self.ask(&beside, "", &cancel).await;
        answer
    }

    /// Returns what hooks of an event read.
    fn input(&self, event: HookEvent, own: Map<String, Value>) -> Bytes {
        let sub_agent = self.sub_agent.as_ref();
        let facts = HookFacts {
            session: self.session,
            transcript: &self.transcript,
            directory: &self.directory,
            prompt: self.prompt,
            mode: self.mode,
            effort: self.effort,
            sub_agent: sub_agent.map(|kind| SubAgentFacts {
                id: self.sink.agent,
                kind,
            }),
            posse: self.posse.clone(),
        };
        payload(event, &facts, own)
    }

    /// Runs one hook, and tells front ends. Returns what models have cost, too.
    async fn ask(
        &self,
        run: &HookRun,
        about: &str,
        cancel: &CancellationToken,
    ) -> (Answer, Vec<Charge>) {
        let HookRun { hook, .. } = run;
        let id = Uuid::now_v7();
        let told = |end| {
            EventKind::Hook(Box::new(HookUpdate {
                id,
                event: hook.event.as_str().to_owned(),
                about: about.to_owned(),
                title: hook.status_message.clone().unwrap_or_else(|| hook.title()),
                call: run.call.clone(),
                end,
            }))
        };
        self.sink.emit(told(None)).await;
        let judge = self.judge.as_ref().filter(|_| HookJudge::is_for(hook));
        let Judged { returned, charges } = match judge {
            Some(judge) => {
                let input = String::from_utf8_lossy(&run.input);
                judge.ask(hook, &input, cancel).await
            }
            None => Judged {
                returned: self.run_target(run, id, cancel).await,
                charges: Vec::new(),
            },
        };
        let answer = interpret(hook, &returned);
        let end = HookEnd {
            output: cut(&returned.output),
            errors: cut(&returned.errors),
            code: returned.code,
            failure: answer.failure.clone(),
        };
        self.sink.emit(told(Some(end))).await;
        if let Some(why) = &answer.failure {
            let what = format!("the {} hook {} failed: {why}", hook.event, hook.origin);
            self.sink.emit(EventKind::Warning(what)).await;
        }
        if let Some(message) = &answer.message {
            self.sink.emit(EventKind::Warning(message.clone())).await;
        }
        (answer, charges)
    }

    /// Runs what a hook is, unless it asks a model.
    async fn run_target(&self, run: &HookRun, id: Uuid, cancel: &CancellationToken) -> HookReturn {
        if let HookAction::Tool(tool) = &run.hook.action {
            return self.call_tool(run, tool, cancel).await;
        }
        let target = match target(&run.hook, &self.project, run.call.as_deref()) {
            Ok(target) => target,
            Err(why) => return not_run(why.to_string()),
        };
        match self.call(run, target, id, cancel) {
            Ok(call) => self.runner.run(call).await,
            Err(error) => not_run(format!(
                "the file for its variables cannot be made: {error}"
            )),
        }
    }

    /// Calls the tool of a server that a hook is.
    async fn call_tool(
        &self,
        run: &HookRun,
        tool: &HookTool,
        cancel: &CancellationToken,
    ) -> HookReturn {
        let Some(servers) = &self.servers else {
            return not_run(format!("there is no MCP server {} here", tool.server));
        };
        let limit = run.hook.limit();
        // Dropped, the server is told that nobody waits.
        tokio::select! {
            biased;
            returned = servers.call(tool, &run.input, cancel.child_token()) => returned,
            () = self.clock.sleep(limit) => HookReturn {
                failure: Some(HookFailure::TimedOut(limit)),
                ..HookReturn::default()
            },
        }
    }

    /// Returns a call of a hook.
    fn call(
        &self,
        run: &HookRun,
        target: HookTarget,
        id: Uuid,
        cancel: &CancellationToken,
    ) -> io::Result<HookCall> {
        let hook = &run.hook;
        let mut boundary = match hook.origin.of_repository {
            true => self.sandbox.clone(),
            false => ProcessBoundary::None,
        };
        let mut variables = variables(self.session, &self.project, self.attended);
        if let Some(effort) = self.effort.filter(|_| hook.event.tells_effort()) {
            variables.push(("CLAUDE_EFFORT".into(), effort.into()));
        }
        if hook.event.sets_variables() && matches!(target, HookTarget::Program { .. }) {
            let file = self.new_variables(run)?;
            if let ProcessBoundary::Sandbox(bounds) = &mut boundary {
                let directory = file.parent().unwrap_or(&file).to_owned();
                Arc::make_mut(&mut bounds.confinement).write.push(directory);
            }
            variables.push(("CLAUDE_ENV_FILE".into(), file.into()));
        }
        Ok(HookCall {
            target,
            input: run.input.clone(),
            directory: self.directory.clone(),
            marker: format!("{}.hook.{id}", self.sink.agent),
            variables,
            limit: hook.limit(),
            boundary,
            clock: Arc::clone(&self.clock),
            beside: hook.beside != RunsBeside::No,
            cancel: cancel.clone(),
        })
    }

    /// Makes an empty file for the variables of a hook, in place of what it set before. Of two
    /// files the one whose name is later counts.
    fn new_variables(&self, run: &HookRun) -> io::Result<PathBuf> {
        let (event, set) = (run.hook.event, self.book.now());
        // Among all hooks of the event: another file or source has other hooks that match.
        let mut of_event = set.all().filter(|hook| hook.event == event);
        let number = of_event.position(|hook| *hook == run.hook);
        let number = number.unwrap_or(run.number);
        let rank = match event {
            HookEvent::Setup => 0,
            HookEvent::SessionStart => 1,
            _ => 2,
        };
        let directory = match run.hook.origin.of_repository {
            true => self.workspace.repository_variables(),
            false => self.workspace.variables(),
        };
        // A directory of its own, which is all that the sandbox opens to it.
        let directory = directory.join(format!("{rank}-{event}-{number:03}"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;
        let file = directory.join(VARIABLES);
        File::create(&file)?;
        Ok(file)
    }
}

/// Returns what a hook has said that could not be run.
fn not_run(why: String) -> HookReturn {
    HookReturn {
        failure: Some(HookFailure::NotRun(why)),
        ..HookReturn::default()
    }
}

/// Waits for all of them, and returns the results in order.
async fn join_all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut slots: Vec<_> = futures.into_iter().map(Slot::Runs).collect();
    poll_fn(|context| {
        let mut open = false;
        for slot in &mut slots {
            if let Slot::Runs(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(result) => *slot = Slot::Done(result),
                    Poll::Pending => open = true,
                }
            }
        }
        if open { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let done = slots.into_iter().filter_map(|slot| match slot {
        Slot::Done(result) => Some(result),
        Slot::Runs(_) => None,
    });
    done.collect()
}

/// One of several futures.
enum Slot<'a, T> {
    Runs(BoxFuture<'a, T>),
    Done(T),
}

/// Returns the beginning of a text.
fn cut(text: &str) -> String {
    posse_port::text::cut(text, SHOWN, None).into_owned()
}
