//! Answers of the server, the same over every transport.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::log::Log;
use crate::options::Options;
use crate::outbox::{Outbox, Questions};
use crate::sign_in::SignIns;
use crate::{lists, tools};

/// The version with `initialize`.
const OLD: &str = "2025-11-25";
/// The version with `server/discover`.
const NEW: &str = "2026-07-28";
/// Where requests of the new era name their version.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where notifications name the subscription that they are for.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Where results name the server.
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The error of a method that is not known.
pub(crate) const NO_METHOD: i64 = -32601;
/// The error of parameters that are wrong.
pub(crate) const WRONG_PARAMS: i64 = -32602;
/// The error of a version that is not known.
const NO_VERSION: i64 = -32022;

/// An error that the client is told.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// The server's state.
pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) log: Log,
    pub(crate) questions: Questions,
    pub(crate) sign_ins: SignIns,
    /// What `counter` has counted to.
    pub(crate) counter: AtomicUsize,
    /// Number of tools that were added by calls.
    pub(crate) added: AtomicUsize,
    /// Where changes of lists are told, with the subscription if there is one.
    streams: Mutex<Vec<(Option<Value>, Outbox)>>,
}

/// A request that is being answered.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
    /// Where the answer goes, and what comes before it.
    pub(crate) outbox: Outbox,
}

impl Request {
    /// Returns true if it is of the new era.
    pub(crate) fn is_new(&self) -> bool {
        self.params["_meta"][VERSION] == NEW
    }
}

impl Server {
    /// Returns a server that was not asked yet.
    pub(crate) fn new(options: Options, log: Log) -> Arc<Self> {
        Arc::new(Self {
            options,
            log,
            questions: Questions::default(),
            sign_ins: SignIns::default(),
            counter: AtomicUsize::new(0),
            added: AtomicUsize::new(0),
            streams: Mutex::default(),
        })
    }

    /// Tells a stream about changes from now on.
    pub(crate) fn subscribe(&self, subscription: Option<Value>, outbox: Outbox) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|(_, known)| !known.is_closed());
        streams.push((subscription, outbox));
    }

    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request) {
        let found = self.result(&request).await;
        let is_unknown = |refusal: &Refusal| refusal.code == NO_METHOD;
        if self.options.has("--swallow") && found.as_ref().is_err_and(is_unknown) {
            return std::future::pending().await;
        }
        let mut answer = json!({ "jsonrpc": "2.0", "id": request.id });
        match found {
            Err(refusal) if self.options.has("--agree") && is_unknown(&refusal) => {
                answer["result"] = json!({});
            }
            Ok(mut result) => {
                if request.is_new() {
                    if result.get("resultType").is_none() {
                        result["resultType"] = json!("complete");
                    }
                    result["_meta"][SERVER] = self.info();
                }
                answer["result"] = result;
            }
            Err(refusal) => {
                let mut error = json!({ "code": refusal.code, "message": refusal.message });
                if refusal.code == NO_VERSION {
                    error["data"] = json!({ "supported": [NEW] });
                }
                answer["error"] = error;
            }
        }
        request.outbox.send(&answer).await;
    }

    async fn result(&self, request: &Request) -> Result<Value, Refusal> {
        let (old, new) = (self.options.has("--old"), self.options.has("--new"));
        match request.method.as_str() {
            "initialize" if !new => {
                self.subscribe(None, request.outbox.clone());
                Ok(self.initialized(&request.params))
            }
            "initialize" => Err(refusal(NO_VERSION, "there is no initialize any more")),
            "server/discover" if !old => Ok(self.discovered()),
            "subscriptions/listen" if !old => self.listen(request).await,
            "ping" => Ok(json!({})),
            "tools/call" => tools::call(self, request).await,
            "logging/setLevel" => Ok(json!({})),
            method => lists::result(self, method, request),
        }
    }

    /// Takes a notification.
    pub(crate) async fn notified(self: Arc<Self>, method: &str, outbox: Outbox) {
        if method != "notifications/initialized" || !self.options.has("--roots") {
            return;
        }
        let asked = self.questions.ask(&outbox, "roots/list", json!({})).await;
        // That it cannot be written is seen by the test that reads it.
        let _ = self.log.write("roots", json!({ "answer": asked }));
    }

    fn info(&self) -> Value {
        let title = self.options.title.as_deref();
        json!({ "name": title.unwrap_or("faulty"), "version": "1.0" })
    }

    fn capabilities(&self) -> Value {
        let mut all = json!({ "tools": { "listChanged": true } });
        if !self.options.has("--only-tools") {
            all["prompts"] = json!({ "listChanged": true });
            all["resources"] = json!({ "listChanged": true });
        }
        all
    }

    fn initialized(&self, params: &Value) -> Value {
        let wanted = params["protocolVersion"].as_str();
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", OLD];
        let version = wanted.filter(|it| known.contains(it)).unwrap_or(OLD);
        json!({
            "protocolVersion": version, "capabilities": self.capabilities(), "serverInfo": self.info(),
            "instructions": "A server with faults.",
        })
    }

    fn discovered(&self) -> Value {
        json!({
            "supportedVersions": [NEW], "capabilities": self.capabilities(), "ttlMs": 0,
            "cacheScope": "private", "instructions": "A server with faults.",
        })
    }

    /// Tells a client of the new era about changes, until it cancels the request.
    async fn listen(&self, request: &Request) -> Result<Value, Refusal> {
        let (id, outbox) = (request.id.clone(), request.outbox.clone());
        let meta = BTreeMap::from([(SUBSCRIPTION, id.clone())]);
        let wanted = &request.params["notifications"];
        let method = "notifications/subscriptions/acknowledged";
        let acknowledged = json!({ "_meta": meta, "notifications": wanted });
        outbox.notify(method, acknowledged).await;
        if wanted["toolsListChanged"] == true {
            self.subscribe(Some(id), outbox);
        }
        std::future::pending().await
    }

    /// Adds a tool and says so.
    pub(crate) async fn change_list(&self) {
        self.added.fetch_add(1, Ordering::SeqCst);
        let streams = {
            let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.clone()
        };
        for (subscription, outbox) in streams {
            let params = match subscription {
                Some(id) => json!({ "_meta": { SUBSCRIPTION: id } }),
                None => json!({}),
            };
            outbox
                .notify("notifications/tools/list_changed", params)
                .await;
        }
    }
}

/// Returns an error.
pub(crate) fn refusal(code: i64, message: &str) -> Refusal {
    Refusal {
        code,
        message: message.to_owned(),
    }
}
