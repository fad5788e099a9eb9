//! Where tests let tools work: a directory of their own, and time that moves when told.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use posse_permission::Policy;
use posse_port::BoxFuture;
use posse_port::clock::{Clock, SystemClock};
use posse_port::confinement::Where;
use posse_port::store::CallKey;
use posse_port::tool::{
    Intent, KnownFiles, LiveOutput, NoHosts, Tool, ToolContext, ToolError, ToolOutput, Workspace,
};
use posse_protocol::{RawJson, ToolContent};
use posse_tools::{Reach, SystemProcesses, ToolsConfig};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// A workspace `w` with neighbours, gone when dropped.
pub(crate) struct World {
    base: PathBuf,
    pub(crate) context: ToolContext,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::beneath(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// In memory, where `fsync` costs nothing.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        Self::beneath(if memory.is_dir() {
            memory
        } else {
            Path::new(env!("CARGO_TARGET_TMPDIR"))
        })
    }

    fn beneath(directory: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let unique = format!(
            "posse-tools-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let base = directory.canonicalize().unwrap().join(&unique);
        for directory in ["w", "w-evil", "out", "spill", "home"] {
            fs::create_dir_all(base.join(directory)).unwrap();
        }
        let workspace = Workspace {
            cwd: base.join("w"),
            roots: vec![base.join("w")],
            spill: base.join("spill"),
            home: Some(base.join("home")),
            mirror: None,
            notes: None,
        };
        let context = ToolContext {
            key: CallKey { seq: 1, ordinal: 0 },
            call: "toolu_1".into(),
            marker: unique,
            subject: posse_port::tool::Subject::Nothing,
            workspace: Arc::new(workspace),
            seen: KnownFiles::default(),
            files: Arc::new(Policy::default()),
            hosts: Arc::new(NoHosts),
            place: Where::Outside,
            clock: Arc::new(SystemClock::default()),
            first: None,
            output: LiveOutput::default(),
            wants_answer: false,
            cancel: CancellationToken::new(),
        };
        Self { base, context }
    }

    /// A path beside the workspace, or in it: `w/…`.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub(crate) fn intent(&self, tool: &str, input: &Value) -> Result<Intent, ToolError> {
        self::tool(tool, Reach::Public).intent(&RawJson::from(input), &self.context.workspace)
    }

    /// What a person sees before they allow the call.
    pub(crate) fn preview(&self, tool: &str, input: &Value) -> Option<String> {
        let tool = self::tool(tool, Reach::Public);
        let preview = tool.preview(&RawJson::from(input), &self.context.workspace);
        preview.map(|preview| preview.to_string())
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let subject = self.intent(tool, &input)?.subject;
        let context = ToolContext {
            subject,
            ..self.context.clone()
        };
        self::tool(tool, Reach::Public)
            .run(RawJson::from(&input), context)
            .await
    }

    /// The text of a success.
    pub(crate) async fn ok(&self, tool: &str, input: Value) -> String {
        text(self.call(tool, input).await.unwrap())
    }

    /// The text of a failure that the model is told.
    pub(crate) async fn told(&self, tool: &str, input: Value) -> String {
        told(self.call(tool, input).await)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.base).unwrap();
    }
}

pub(crate) fn tool(name: &str, reach: Reach) -> Arc<dyn Tool> {
    let means = ToolsConfig {
        reach,
        background: true,
        processes: SystemProcesses::default(),
        gate: None,
    };
    posse_tools::all(means).get(name).unwrap()
}

pub(crate) fn text(output: ToolOutput) -> String {
    match &output.content[..] {
        [ToolContent::Text { text }] => text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

pub(crate) fn told<T: std::fmt::Debug>(result: Result<T, ToolError>) -> String {
    match result {
        Err(ToolError::Tell(told)) => told,
        other => panic!("expected to be told, got {other:?}"),
    }
}

/// A clock whose sleepers wake when a test says so.
#[derive(Clone, Default)]
pub(crate) struct HandClock(Arc<Sleepers>);

#[derive(Default)]
struct Sleepers {
    asleep: Mutex<Vec<(Duration, oneshot::Sender<()>)>>,
    changed: watch::Sender<()>,
}

impl HandClock {
    /// Waits until somebody sleeps for exactly `asked`, and wakes them.
    pub(crate) async fn wake(&self, asked: Duration) {
        let mut changed = self.0.changed.subscribe();
        while !self.woke(asked) {
            changed.changed().await.unwrap();
        }
    }

    /// How many are asleep.
    pub(crate) fn sleepers(&self) -> usize {
        self.0
            .asleep
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, wake)| !wake.is_closed())
            .count()
    }

    fn woke(&self, asked: Duration) -> bool {
        let mut asleep = self.0.asleep.lock().unwrap();
        let found = asleep
            .iter()
            .position(|(time, wake)| *time == asked && !wake.is_closed());
        found.is_some_and(|found| asleep.remove(found).1.send(()).is_ok())
    }
}

impl Clock for HandClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        self.0.asleep.lock().unwrap().push((duration, wake));
        self.0.changed.send_replace(());
        Box::pin(async { woken.await.unwrap() })
    }
}
