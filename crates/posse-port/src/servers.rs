//! Servers of tools, by the Model Context Protocol. Agents whose entries come to the same share one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_protocol::{AgentId, Elicitation, ElicitationReply, RawJson, ToolContent, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::clock::Clock;
use crate::process::ProcessBoundary;
use crate::tool::LiveOutput;

/// Connects with servers.
pub trait Servers: Send + Sync {
    /// Returns the server of an entry. It begins to connect, unless it has. Whoever asks for the same
    /// entry at the same place has the same server; it ends when nobody has it any more.
    fn connect(&self, entry: &Arc<ServerEntry>, place: &ServerPlace) -> Arc<dyn Server>;

    /// Ends all servers.
    fn end(&self) -> BoxFuture<'static, ()>;
}

/// What is declared of a server, with all variables replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerEntry {
    /// Its name, as it was declared. Servers that differ in nothing else are the same.
    pub name: String,
    /// How it is reached.
    pub transport: ServerTransport,
    /// How long a call may take; none for the default.
    pub call_limit: Option<Duration>,
    /// What it must not be shared beyond.
    pub sharing: ServerSharing,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerTransport {
    /// A program that is started, and talks by its input and output.
    Program {
        /// The program and its arguments.
        words: Vec<String>,
        /// Variables that it has beside those of posse's own environment, without posse's secrets.
        variables: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
        /// What is declared about signing in.
        sign_in: SignInEntry,
    },
}

/// What is declared about signing in to a server by OAuth. All of it can be found out otherwise, unless
/// the server wants a client that it knows.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct SignInEntry {
    /// The client that posse is; or the address of a document that describes it.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<String>,
    /// The port of this machine that the browser comes back to; none for any.
    pub callback_port: Option<u16>,
    /// What is to be permitted; none for what the server asks for.
    pub scopes: Option<Vec<String>>,
    /// Where the authorization server describes itself.
    pub metadata_url: Option<String>,
}

impl fmt::Debug for SignInEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SignInEntry")
            .field("client_id", &self.client_id)
            .field("callback_port", &self.callback_port)
            .field("scopes", &self.scopes)
            .field("metadata_url", &self.metadata_url)
            .finish_non_exhaustive()
    }
}

/// Who may share a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerSharing {
    /// All agents of the process.
    Process,
    /// The agents of a session: the entry names a secret of it.
    Session,
    /// Nobody: each agent has one of its own.
    Agent,
}

/// Where a server works, and for whom.
#[derive(Clone)]
pub struct ServerPlace {
    /// The main agent of the session.
    pub session: AgentId,
    /// The agent.
    pub agent: AgentId,
    /// The directory that a program is started in.
    pub directory: PathBuf,
    /// What holds a program.
    pub boundary: ProcessBoundary,
    /// Measures time.
    pub clock: Arc<dyn Clock>,
}

/// A server. It is connected again by itself when its connection is lost.
pub trait Server: Send + Sync {
    /// Returns what is known of it now.
    fn state(&self) -> ServerState;

    /// Waits until it has connected, or failed to, and its tools are known that it has by now.
    fn settled(&self) -> BoxFuture<'_, ()>;

    /// Calls a tool, once: a call that may have reached the server is never made again.
    fn call(&self, call: ServerCall) -> BoxFuture<'static, Result<ServerAnswer, ServerFailure>>;

    /// Returns its resources; none if it has none.
    fn list_resources(&self) -> BoxFuture<'static, Result<Vec<ServedResource>, ServerFailure>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Hands on what the server says unasked, as long as the taker is there.
    fn push_to(&self, taker: &Arc<dyn PushTaker>) {
        let _ = taker;
    }

    /// Reads a resource.
    fn read_resource(
        &self,
        uri: String,
    ) -> BoxFuture<'static, Result<Vec<ToolContent>, ServerFailure>> {
        let none = ServerFailure::NotCalled(format!("it has no resource {uri}"));
        Box::pin(std::future::ready(Err(none)))
    }

    /// Returns what a prompt says with these arguments.
    fn get_prompt(
        &self,
        name: String,
        arguments: Vec<(String, String)>,
    ) -> BoxFuture<'static, Result<Vec<PromptMessage>, ServerFailure>> {
        drop(arguments);
        let none = ServerFailure::NotCalled(format!("it has no prompt {name}"));
        Box::pin(std::future::ready(Err(none)))
    }
}

impl fmt::Debug for dyn Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Server").field(&self.state()).finish()
    }
}

/// What is known of a server.
#[derive(Clone, Debug)]
pub enum ServerState {
    /// It is being connected.
    Pending,
    /// It is there, or will be connected again for the next call.
    Connected(Arc<ServerFacts>),
    /// It is not there. Its tools are those that it had last, if it ever was.
    Failed {
        /// Why.
        why: String,
        /// True if a person has to sign in first.
        needs_sign_in: bool,
        /// What it was.
        last: Option<Arc<ServerFacts>>,
    },
}

impl ServerState {
    /// Returns what is known of the tools.
    pub fn facts(&self) -> Option<&Arc<ServerFacts>> {
        match self {
            Self::Pending => None,
            Self::Connected(facts) => Some(facts),
            Self::Failed { last, .. } => last.as_ref(),
        }
    }

    /// Returns the state in the word that other programs know.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected(_) => "connected",
            Self::Failed {
                needs_sign_in: true,
                ..
            } => "needs-auth",
            Self::Failed { .. } => "failed",
        }
    }
}

/// What a server says of itself. Replaced as a whole when its tools or prompts change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFacts {
    /// Its name and version in its own words.
    pub title: String,
    /// The version of the protocol that is spoken.
    pub protocol: String,
    /// What it tells models about itself.
    pub instructions: Option<String>,
    /// Its tools, in its order.
    pub tools: Vec<ServedTool>,
    /// Its prompts, in its order.
    pub prompts: Vec<ServedPrompt>,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedTool {
    /// Its name there.
    pub name: String,
    /// Description and schema. The name in it is the same: the prefix is not the server's business.
    pub spec: ToolSpec,
    /// True if it is to be known from the beginning.
    pub always_loaded: bool,
    /// How long its results may be, in characters, if it says so.
    pub longest: Option<usize>,
    /// True if it says that it only reads. Shown to people, and believed by nobody.
    pub says_read_only: bool,
}

/// A resource of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResource {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
}

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedPrompt {
    /// Its name there.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is given, in its order.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// True if the prompt needs it.
    pub is_required: bool,
}

/// A message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// True if a person is to have said it, false if a model is.
    pub is_user: bool,
    /// What it says.
    pub content: ToolContent,
}

/// A call of a tool.
#[derive(Clone)]
pub struct ServerCall {
    /// The tool's name at the server.
    pub tool: String,
    /// Its input, an object.
    pub input: RawJson,
    /// The main agent of the caller's session.
    pub session: AgentId,
    /// Who calls, from the main agent down: places are given in turn to each branch.
    pub path: String,
    /// Where its progress is shown.
    pub output: LiveOutput,
    /// The file that takes an answer that is too long, which must not exist; without one it is lost.
    pub overflow: Option<PathBuf>,
    /// Asks whoever has wanted the call, if the server asks something.
    pub asker: Arc<dyn ServerAsker>,
    /// Tells it to end.
    pub cancel: CancellationToken,
}

/// Asks what a server wants to know while it works on a call.
pub trait ServerAsker: Send + Sync {
    /// Asks, and waits for the answer. Dropped, nobody is asked any more.
    fn ask(&self, asked: Elicitation) -> BoxFuture<'static, ElicitationReply>;
}

/// Asks nobody: whatever a server asks is declined.
#[derive(Clone, Copy, Debug)]
pub struct NoAsker;

impl ServerAsker for NoAsker {
    fn ask(&self, _asked: Elicitation) -> BoxFuture<'static, ElicitationReply> {
        Box::pin(std::future::ready(ElicitationReply::Decline))
    }
}

/// A message that a server has sent unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPush {
    /// What it says.
    pub content: String,
    /// Facts about it, by name.
    pub facts: Vec<(String, String)>,
}

/// Takes messages that servers send unasked.
pub trait PushTaker: Send + Sync {
    /// Takes one. Must not wait.
    fn take(&self, push: ServerPush);
}

/// What a tool has answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerAnswer {
    /// What the model reads.
    pub content: Vec<ToolContent>,
    /// The same as an object, if there is one.
    pub structured: Option<Value>,
    /// True if the tool says that it has failed.
    pub is_error: bool,
    /// True if the server was started anew since the last call of the same path: what it kept in
    /// memory is gone.
    pub restarted: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerFailure {
    /// The call was not made.
    #[error("not called: {0}")]
    NotCalled(String),
    /// The server has refused it.
    #[error("{message} ({code})")]
    Refused {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// The connection was lost before the answer came.
    #[error(
        "the server has gone before it answered ({0}); whether it has done anything is unknown"
    )]
    Lost(String),
    /// It took too long. The server was told.
    #[error("no answer after {} s; whether the server has done anything is unknown", .0.as_secs())]
    TimedOut(Duration),
    /// It was told to end.
    #[error("it was stopped; whether the server has done anything is unknown")]
    Stopped,
}

/// Connects with no servers.
#[derive(Clone, Copy, Debug)]
pub struct NoServers;

impl Servers for NoServers {
    fn connect(&self, _entry: &Arc<ServerEntry>, _place: &ServerPlace) -> Arc<dyn Server> {
        Arc::new(NoServer)
    }

    fn end(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What is never there.
#[derive(Clone, Copy, Debug)]
struct NoServer;

const NONE_HERE: &str = "servers are not started here";

impl Server for NoServer {
    fn state(&self) -> ServerState {
        ServerState::Failed {
            why: NONE_HERE.into(),
            needs_sign_in: false,
            last: None,
        }
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call(&self, _call: ServerCall) -> BoxFuture<'static, Result<ServerAnswer, ServerFailure>> {
        let failed = Err(ServerFailure::NotCalled(NONE_HERE.into()));
        Box::pin(std::future::ready(failed))
    }
}
