//! What the sandbox costs: `bench-sandbox POSSE ROUNDS DIR` runs commands by the Bash tool, in the
//! sandbox and outside by turns, and judges a long command line.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_permission::{Policy, decide};
use posse_port::BoxFuture;
use posse_port::clock::SystemClock;
use posse_port::confinement::{Confinement, NetworkAccess, Where};
use posse_port::store::CallKey;
use posse_port::tool::{
    HostGate, HostRefused, KnownFiles, LiveOutput, Tool, ToolContext, Workspace,
};
use posse_protocol::{PermissionMode, RawJson, ToolContent};
use posse_tools::{Reach, Sandbox, SandboxConfig, SystemProcesses, ToolsConfig, Watchdog};
use serde_json::json;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// How many commands run at once.
const AT_ONCE: usize = 64;
/// How many secrets are hidden, and files kept.
const SECRETS: usize = 20;
/// Size of the command line that is judged, in bytes.
const LONG: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "it ends with what it starts")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [posse, rounds, directory] = &arguments[..] else {
        return Err("usage: bench-sandbox POSSE ROUNDS DIR".into());
    };
    let rounds: usize = rounds.parse()?;
    let ground = Ground::new(Path::new(posse), &Path::new(directory).canonicalize()?)?;
    // The watchdog is started and the kernel probed.
    for place in [ground.within(), Where::Outside] {
        ground.run("true", place).await?;
    }
    let (mut within, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        within.push(ground.run("true", ground.within()).await?);
        plain.push(ground.run("true", Where::Outside).await?);
    }
    let mut at_once = Duration::MAX;
    for _ in 0..rounds.div_ceil(20) {
        let since = Instant::now();
        let runs = (0..AT_ONCE).map(|_| {
            let ground = ground.clone();
            tokio::spawn(async move { ground.run("true", ground.within()).await })
        });
        for run in runs.collect::<Vec<_>>() {
            run.await??;
        }
        at_once = at_once.min(since.elapsed());
    }
    let port = serve()?;
    let (mut proxied, mut direct) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let through = ground.connect(3128, port, ground.within()).await?;
        proxied = proxied.min(through);
        direct = direct.min(ground.connect(port, port, Where::Outside).await?);
    }
    let found = json!({
        "within_ms": median_ms(within), "plain_ms": median_ms(plain),
        "at_once_s": at_once.as_secs_f64(), "verdict_ms": ground.verdict_ms(rounds)?,
        "proxied_ms": proxied, "direct_ms": direct,
    });
    #[expect(clippy::print_stdout, reason = "this is what it is for")]
    {
        println!("{found}");
    }
    Ok(())
}

/// Makes connections one after another and prints how long each took, in milliseconds.
const CONNECT: &str = r#"
import socket, sys, time
to, port, count = int(sys.argv[1]), sys.argv[2], 500
request = f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
since = time.perf_counter()
for _ in range(count):
    with socket.create_connection(("127.0.0.1", to)) as connection:
        connection.sendall(request)
        while connection.recv(4096):
            pass
print((time.perf_counter() - since) * 1000 / count)
"#;

/// Serves connections on this machine, from a thread of its own. Returns the port.
fn serve() -> Result<u16, Failed> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    Ok(port)
}

/// Lets commands connect to everything.
struct AllHosts;

impl HostGate for AllHosts {
    fn admit<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, Result<(), HostRefused>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn allows(&self, _: &str, _: u16) -> bool {
        true
    }
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    middle.as_secs_f64() * 1e3
}

/// A checkout with secrets beside it, and the tool.
#[derive(Clone)]
struct Ground {
    tool: Arc<dyn Tool>,
    workspace: Arc<Workspace>,
}

impl Ground {
    fn new(posse: &Path, directory: &Path) -> Result<Self, Failed> {
        let root = directory.join("w");
        for name in [
            ".git/hooks",
            ".git/info",
            ".git/objects",
            ".git/refs",
            "src",
        ] {
            fs::create_dir_all(root.join(name))?;
        }
        for name in [".git/config", ".git/HEAD", ".envrc", ".mcp.json"] {
            fs::write(root.join(name), "")?;
        }
        let secret = |number: usize| directory.join(format!("secret-{number}"));
        let secrets: Vec<PathBuf> = (0..SECRETS).map(secret).collect();
        for path in &secrets {
            fs::write(path, "")?;
        }
        let sandbox = Sandbox::new(SandboxConfig {
            launcher: posse.to_owned(),
            environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            secrets,
            required: true,
            ..SandboxConfig::default()
        });
        let tools = posse_tools::all(ToolsConfig {
            reach: Reach::Public,
            background: true,
            processes: SystemProcesses::new(Some(Watchdog::new(posse)), Some(sandbox), Vec::new()),
            gate: None,
        });
        let tool = tools.get("Bash").ok_or("no Bash")?;
        let workspace = Workspace {
            cwd: root.clone(),
            roots: vec![root],
            spill: directory.join("spill"),
            home: None,
            mirror: None,
            notes: None,
        };
        Ok(Self {
            tool,
            workspace: Arc::new(workspace),
        })
    }

    fn within(&self) -> Where {
        let bounds = Confinement {
            write: self.workspace.roots.clone(),
            network: NetworkAccess::Hosts,
            ..Confinement::default()
        };
        Where::Within {
            bounds: Arc::new(bounds),
            unasked: true,
            opened: Vec::new(),
        }
    }

    /// Returns how long a connection takes, in milliseconds.
    async fn connect(&self, to: u16, port: u16, place: Where) -> Result<f64, Failed> {
        let command = format!("python3 -c '{CONNECT}' {to} {port}");
        let (_, printed) = self.run_printing(&command, place).await?;
        Ok(printed.trim().parse()?)
    }

    /// Runs a command and returns how long it took.
    async fn run(&self, command: &str, place: Where) -> Result<Duration, Failed> {
        let (took, _) = self.run_printing(command, place).await?;
        Ok(took)
    }

    /// Runs a command and returns how long it took and what it printed.
    async fn run_printing(
        &self,
        command: &str,
        place: Where,
    ) -> Result<(Duration, String), Failed> {
        let input = RawJson::from(&json!({ "command": command }));
        let intent = self.tool.intent(&input, &self.workspace);
        let intent = intent.map_err(|error| error.to_string())?;
        let context = ToolContext {
            key: CallKey { seq: 1, ordinal: 0 },
            call: String::new(),
            marker: uuid::Uuid::now_v7().to_string(),
            subject: intent.subject,
            workspace: Arc::clone(&self.workspace),
            seen: KnownFiles::default(),
            files: Arc::new(Policy::default()),
            hosts: Arc::new(AllHosts),
            place,
            clock: Arc::new(SystemClock::default()),
            first: None,
            output: LiveOutput::default(),
            wants_answer: false,
            cancel: CancellationToken::new(),
        };
        let since = Instant::now();
        let ran = self.tool.run(input, context).await;
        let took = since.elapsed();
        let output = ran.map_err(|error| error.to_string())?;
        let texts = output.content.into_iter().filter_map(|it| match it {
            ToolContent::Text { text } => Some(text),
            _ => None,
        });
        Ok((took, texts.collect()))
    }

    /// Returns how long it takes to judge a long command line.
    fn verdict_ms(&self, rounds: usize) -> Result<f64, Failed> {
        let mut command = String::new();
        while command.len() < LONG {
            command += "cat src/a.rs | grep -n 'fn main' > out.txt && make -j4 target; ";
        }
        command.truncate(LONG);
        let input = RawJson::from(&json!({ "command": command }));
        let intent = self.tool.intent(&input, &self.workspace);
        let intent = intent.map_err(|error| error.to_string())?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            let since = Instant::now();
            let mode = PermissionMode::AcceptEdits;
            decide(&Policy::default(), mode, &self.workspace, "Bash", &intent);
            times.push(since.elapsed());
        }
        Ok(median_ms(times))
    }
}
