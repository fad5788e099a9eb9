//! Calls of a server, and agents that share it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_runtime::definition::server::{
    DeclaredServer, DeclaredTransport, ServerAdmission, ServerOrigin, ServerPolicy, ServerSet,
    ServerSource,
};
use posse_tools::{McpServers, SystemProcesses};
use serde_json::{Value, json};

use crate::Failed;
use crate::run::{Beside, Ground, median_ms, together};

/// What is called.
const TOOL: &str = "mcp__s__echo";

/// Returns a ground whose agents call the tool of a server, which logs what it does.
fn ground(server: &str, calls: u32, directory: &Path) -> Result<Ground, Failed> {
    let log = directory.join("log").display().to_string();
    let declared = DeclaredServer {
        name: "s".into(),
        transport: DeclaredTransport::Program {
            command: server.into(),
            args: vec!["--log".into(), log],
            env: Vec::new(),
        },
        call_limit: None,
        always_load: false,
        is_shared: true,
        origin: ServerOrigin {
            source: ServerSource::User,
            file: "bench".into(),
            line: None,
            of_repository: false,
        },
        admission: ServerAdmission::Admitted,
    };
    let declared = ServerSet::new(
        vec![declared],
        ServerPolicy::default(),
        BTreeMap::new(),
        directory,
    );
    let beside = Beside {
        tool: TOOL.into(),
        declared,
        servers: Arc::new(McpServers::new(Arc::new(SystemProcesses::default()))),
        ..Beside::nothing()
    };
    Ground::with(directory, calls, beside)
}

/// What a call costs beside what the server itself takes.
pub(crate) async fn served(
    server: &str,
    (calls, rounds): (u32, u32),
    directory: &Path,
) -> Result<Value, Failed> {
    let served = ground(server, calls, &directory.join("served"))?;
    let plain = Ground::with(&directory.join("plain"), calls, Beside::nothing())?;
    served.run().await?;
    plain.run().await?;
    let mut bare = Bare::start(server, &directory.join("log"))?;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        times[0].push(served.run().await? / calls);
        times[1].push(plain.run().await? / calls);
        times[2].push(bare.calls(calls)? / calls);
    }
    served.runtime.shut_down().await;
    let [served, plain, bare] = times.map(median_ms);
    Ok(json!({"served_ms": served, "plain_ms": plain, "bare_ms": bare}))
}

/// The server without posse.
struct Bare {
    child: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Bare {
    #[expect(clippy::disallowed_methods, reason = "it waits for what it starts")]
    fn start(server: &str, log: &Path) -> Result<Self, Failed> {
        let mut child = Program::new(server)
            .args(["--log".as_ref(), log.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("stdout is piped")?);
        let mut bare = Self { child, output };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        bare.ask("initialize", &params)?;
        Ok(bare)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<(), Failed> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let input = self.child.stdin.as_mut().ok_or("stdin is piped")?;
        input.write_all(format!("{message}\n").as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        match line.contains("\"result\"") {
            true => Ok(()),
            false => Err(line.into()),
        }
    }

    fn calls(&mut self, calls: u32) -> Result<Duration, Failed> {
        let begun = Instant::now();
        for _ in 0..calls {
            self.ask("tools/call", &json!({"name": "echo", "arguments": {}}))?;
        }
        Ok(begun.elapsed())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Many agents and one server.
pub(crate) async fn shared(server: &str, agents: u32, directory: &Path) -> Result<Value, Failed> {
    let ground = ground(server, 1, directory)?;
    together(&ground, agents).await?;
    ground.runtime.shut_down().await;
    let log = std::fs::read_to_string(directory.join("log"))?;
    let count = |event: &str| log.matches(&format!("\"event\":\"{event}\"")).count();
    Ok(json!({"processes": count("start"), "calls": count("call")}))
}

/// Agents that wait for their next prompt.
pub(crate) async fn memory(server: &str, agents: u32, directory: &Path) -> Result<Value, Failed> {
    let ground = match server {
        "none" => Ground::with(directory, 0, Beside::nothing())?,
        server => ground(server, 0, directory)?,
    };
    let mut waiting = Vec::new();
    for _ in 0..agents {
        let mut agent = ground.start();
        crate::run::turn(&mut agent).await?;
        waiting.push(agent);
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kb: f64 = kb.ok_or("there is no VmRSS")?.parse()?;
    drop(waiting);
    ground.runtime.shut_down().await;
    Ok(json!({ "kb": kb }))
}
