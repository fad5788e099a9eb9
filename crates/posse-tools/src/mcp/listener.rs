//! What a server asks and tells without being asked.

#![expect(
    deprecated,
    reason = "servers of the older era ask for roots and send logs"
)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use posse_port::servers::ServerCall;
use posse_port::tool::LiveOutput;
use posse_protocol::ElicitationReply;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomNotification, ElicitRequestParams, ElicitResult,
    ElicitationCapability, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleClient};
use tokio::sync::{Notify, watch};

use super::elicitation::{elicitation, elicited};
use super::open_calls::{OpenCall, OpenCalls};
use super::pushes::{self, PushTakers};
use super::tail::LogTail;

/// How much of a message of a server's log is kept.
const LOGGED: usize = 500;

/// Listens to a server.
#[derive(Clone)]
pub(super) struct Listener(Arc<Listening>);

struct Listening {
    name: String,
    directory: PathBuf,
    changes: watch::Sender<ListChanges>,
    progress: Mutex<HashMap<ProgressToken, Arc<Progress>>>,
    calls: OpenCalls,
    takers: Arc<PushTakers>,
    log: Arc<LogTail>,
}

/// How often what the server has was said to have changed.
#[derive(Default)]
struct ListChanges {
    told: u64,
    /// How many of them what is known has.
    listed: u64,
}

/// The progress of a call.
pub(super) struct Progress {
    output: LiveOutput,
    /// How far it is. Notifications may come out of order.
    reached: Mutex<f64>,
    /// Told when it goes on.
    pub(super) moved: Notify,
}

/// Follows the progress of a call until it is dropped.
pub(super) struct ProgressGuard {
    listener: Listener,
    token: ProgressToken,
    pub(super) progress: Arc<Progress>,
}

impl Listener {
    /// Returns a listener to the server `name`. `directory` is where it is told that work is done.
    pub(super) fn new(
        name: &str,
        directory: PathBuf,
        (log, takers): (Arc<LogTail>, Arc<PushTakers>),
    ) -> Self {
        Self(Arc::new(Listening {
            name: name.to_owned(),
            directory,
            calls: OpenCalls::default(),
            takers,
            changes: watch::Sender::default(),
            progress: Mutex::default(),
            log,
        }))
    }

    /// Waits until what the server has was changed since it was listed.
    pub(super) async fn changed(&self) {
        let mut changes = self.0.changes.subscribe();
        // The sender is part of this.
        let _ = changes.wait_for(|it| it.told > it.listed).await;
    }

    /// Says that what the server has was changed.
    pub(super) fn tell_changed(&self) {
        self.0.changes.send_modify(|changes| changes.told += 1);
    }

    /// Returns how often it was said to have changed.
    pub(super) fn changes(&self) -> u64 {
        self.0.changes.borrow().told
    }

    /// Says that it was listed after so many changes.
    pub(super) fn tell_listed(&self, changes: u64) {
        self.0.changes.send_modify(|it| it.listed = changes);
    }

    /// Waits until all changes so far were listed.
    pub(super) async fn up_to_date(&self) {
        let so_far = self.changes();
        let mut changes = self.0.changes.subscribe();
        let _ = changes.wait_for(|it| it.listed >= so_far).await;
    }

    /// Returns the log of the server.
    pub(super) fn log(&self) -> Arc<LogTail> {
        Arc::clone(&self.0.log)
    }

    /// Follows the progress of a call.
    pub(super) fn follow(&self, token: ProgressToken, output: LiveOutput) -> ProgressGuard {
        let progress = Arc::new(Progress {
            output,
            reached: Mutex::new(f64::NEG_INFINITY),
            moved: Notify::new(),
        });
        let mut all = self
            .0
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.insert(token.clone(), Arc::clone(&progress));
        ProgressGuard {
            listener: self.clone(),
            token,
            progress,
        }
    }

    /// Takes note of a call until the guard is dropped: what the server asks meanwhile may be about it.
    pub(super) fn open_call(&self, call: &ServerCall) -> OpenCall {
        self.0.calls.open(call)
    }

    /// Returns what the server is told about posse.
    pub(super) fn introduction() -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        let asks = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        capabilities.elicitation = Some(asks);
        let posse = Implementation::new("posse", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, posse)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// Returns the directory in which work is done.
    pub(super) fn roots(&self) -> ListRootsResult {
        let url = reqwest::Url::from_directory_path(&self.0.directory);
        let root = url.map(|url| Root::new(url.as_str().trim_end_matches('/')));
        ListRootsResult::new(root.into_iter().collect())
    }
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        let all = &self.listener.0.progress;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.token);
    }
}

impl Progress {
    fn reach(&self, told: &ProgressNotificationParam) {
        {
            let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            if told.progress <= *reached {
                return;
            }
            *reached = told.progress;
        }
        self.moved.notify_one();
        if self.output.is_watched() {
            self.output.show(line(told), 0);
        }
    }
}

/// Returns a line about the progress of a call.
fn line(told: &ProgressNotificationParam) -> String {
    let far = match told.total {
        Some(total) => format!("{}/{total}", told.progress),
        None => told.progress.to_string(),
    };
    match &told.message {
        Some(message) => format!("{far} {message}\n"),
        None => format!("{far}\n"),
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        Self::introduction()
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let reply = match elicitation(&self.0.name, asked) {
            Some(asked) => {
                let reply = self.0.calls.ask(asked);
                // The server may give up before the person answers.
                context
                    .ct
                    .run_until_cancelled(reply)
                    .await
                    .unwrap_or(ElicitationReply::Cancel)
            }
            None => ElicitationReply::Decline,
        };
        Ok(elicited(reply))
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let progress = {
            let all = self
                .0
                .progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.get(&told.progress_token).map(Arc::clone)
        };
        if let Some(progress) = progress {
            progress.reach(&told);
        }
    }

    async fn on_logging_message(
        &self,
        told: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = told.data.to_string();
        self.0.log.note(crate::answer::clip(&text, LOGGED));
    }

    async fn on_custom_notification(
        &self,
        told: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        if told.method == pushes::METHOD
            && let Some(push) = told.params.as_ref().and_then(pushes::read)
        {
            self.0.takers.tell(&push);
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tell_changed();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tell_changed();
    }
}
