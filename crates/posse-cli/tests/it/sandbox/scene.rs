//! A workspace, a home with secrets, services and another process: what an attack is tried against.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use posse_port::confinement::{Confinement, Limits};
use posse_sandbox::{Job, Plan, Surroundings, Survey, Watch};
use regex::Regex;
use serde_json::Value;

use super::payloads::{Attacker, Boundary, Payload};
use super::{launcher, probed};

/// The user without rights.
const NOBODY: u32 = 65534;
/// How long an attack may take.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long it may take by an agent.
const PATIENCE_WITH_AGENT: Duration = Duration::from_secs(30);
const PROGRAMS: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes the workspace. `docs` leads outside, `hard` is another name of a secret.
const SETUP: &str = r#"
git init -q . ; git config user.email a@b; git config user.name n
mkdir -p src .claude .posse .husky nested; echo fn > src/main.rs; echo '{"a":1}' > .claude/settings.json
echo '#!/bin/sh' > .husky/pre-commit; chmod +x .husky/pre-commit; git config core.hooksPath .husky
git init -q nested; git add src .claude; git -c core.hooksPath=/dev/null commit -qm i
echo TOPSECRET > .env; ln -s .env link-to-env; ln .env hard; ln -s $OUT docs
git worktree add -q $WT 2>/dev/null
case "$USES" in *tmux*) tmux -S $OUT/tmux.sock new-session -d "sleep 60";; esac
true"#;

/// Runs posse in a pane of a tmux with a socket of its own, teammates in panes beside it. The shell of
/// nobody runs nothing.
const IN_PANES: &str = r#"
posse=$0; export SOCKET=$1 SHELL=/bin/sh; shift
line="$posse $* --team-backend tmux"
tmux -S $SOCKET -f /dev/null new-session -d -x 200 -y 50 "$line; tmux -S $SOCKET wait-for -S over"
exec tmux -S $SOCKET wait-for over"#;

/// Names that tools of people read and run things from.
const WATCHED: &[&str] = &[
    ".git",
    ".gitmodules",
    ".posse",
    ".claude",
    ".agent",
    ".codex",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".envrc",
    ".npmrc",
    ".yarnrc.yml",
    ".ripgreprc",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    ".mise.toml",
    ".gdbinit",
    ".lldbinit",
    ".exrc",
];

/// Programs that attacks use, as scripts. Each call of the first must be refused; the second makes
/// a ring, the third a socket by the calls of 32-bit programs.
const TOOLS: [(&str, &str); 3] = [
    (
        "calls",
        r#"import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
calls = {"ptrace": (101, 0), "bpf": (321, 0), "perf_event_open": (298, 0), "userfaultfd": (323, -1),
    "keyctl": (250, 0), "pivot_root": (155, 0), "open_by_handle_at": (304, -1), "kexec_load": (246, 0, 0, 0, -1),
    "init_module": (175, 0), "process_vm_readv": (310, -1), "mount_setattr": (442, -1), "pidfd_getfd": (438, -1)}
for name, (number, *arguments) in calls.items():
    ctypes.set_errno(0)
    values = [ctypes.c_long(argument) for argument in arguments + [0] * (5 - len(arguments))]
    if libc.syscall(ctypes.c_long(number), *values) >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
        print("OPEN", name)
"#,
    ),
    (
        "iouring",
        r#"import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(0 if libc.syscall(ctypes.c_long(425), 4, ctypes.create_string_buffer(120)) >= 0 else 1)
"#,
    ),
    (
        "int80",
        r#"import ctypes, mmap, sys
code = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
sys.exit(0 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() >= 0 else 1)
"#,
    ),
];

/// Who attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Root,
    Nobody,
}

impl User {
    /// Returns the user that the tests can be: without root's rights only themselves.
    pub(super) fn possible(self) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        (is_root || self == Self::Nobody).then_some(self)
    }

    /// Has a command run as this user.
    fn run_as(self, command: &mut Command) -> &mut Command {
        if self == Self::Nobody && rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn own(self, path: &Path) {
        if self == Self::Nobody && rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

/// What came of an attack.
pub(super) struct Outcome {
    pub(super) effect: bool,
    pub(super) told: String,
}

pub(super) struct Scene<'a> {
    payload: &'a Payload,
    user: User,
    boundary: Boundary,
    base: PathBuf,
    environment: Vec<(String, String)>,
    victim: Child,
    listen: u16,
    cgroup: Option<PathBuf>,
    /// The model of the agent that attacks.
    server: Option<Arc<posse_scripted::Server>>,
}

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl<'a> Scene<'a> {
    pub(super) fn new(payload: &'a Payload, user: User, boundary: Boundary) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let tag = format!("{}-{number}", std::process::id());
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sx-{tag}"));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).unwrap();
        user.own(&base);
        let at = |name: &str| base.join(name).display().to_string();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = port.local_addr().unwrap().port();
        drop(port);
        let mut environment: Vec<(String, String)> = vec![
            ("PATH".into(), PROGRAMS.into()),
            ("HOME".into(), at("home")),
            ("W".into(), at("ws")),
            ("MAIN".into(), at("ws")),
            ("WT".into(), at("wt")),
            ("OUT".into(), at("out")),
            ("TOOLS".into(), at("tools")),
            ("LOG".into(), at("log")),
            ("TAG".into(), tag),
            ("LISTEN".into(), listen.to_string()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
            ("USES".into(), payload.command.clone()),
        ];
        environment.extend(listeners(&base));
        let mut scene = Self {
            payload,
            user,
            boundary,
            victim: victim(payload, user),
            base,
            environment,
            listen,
            cgroup: None,
            server: None,
        };
        let victim = scene.victim.id().to_string();
        scene.environment.push(("VICTIM".into(), victim));
        scene.make();
        scene
    }

    fn make(&mut self) {
        let directories = "mkdir -p ws out/dir home/.ssh home/.aws home/.config/gh home/.docker \
             home/.posse/hosts tools tmp";
        self.shell(directories, &self.base);
        for (name, text) in [
            ("home/.ssh/id_rsa", "TOPSECRET\n"),
            ("home/.aws/credentials", "TOPSECRET\n"),
            ("home/.netrc", "TOPSECRET\n"),
            ("home/.config/gh/hosts.yml", "TOPSECRET\n"),
            ("home/.docker/config.json", "TOPSECRET\n"),
            ("home/.posse/store.db", "TOPSECRET\n"),
            ("home/.bashrc", "# rc\n"),
            ("out/keep", "keep\n"),
            ("log", ""),
        ] {
            fs::write(self.base.join(name), text).unwrap();
            self.user.own(&self.base.join(name));
        }
        for (name, script) in TOOLS {
            let path = self.base.join("tools").join(name);
            fs::write(&path, format!("#!/usr/bin/python3\n{script}")).unwrap();
            self.user.own(&path);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        self.listen_at_path();
        let made = self.shell(SETUP, &self.base.join("ws"));
        assert!(self.base.join("wt/.git").exists(), "{made:?}");
    }

    fn listen_at_path(&self) {
        let path = self.base.join("out/sock");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let log = self.base.join("log");
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                record(connection, &log);
            }
        });
    }

    /// Runs a shell command outside, as the user.
    fn shell(&self, script: &str, directory: &Path) -> std::process::Output {
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(directory)
            .env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.user.run_as(&mut command).output().unwrap()
    }

    fn in_worktree(&self) -> bool {
        self.payload.command.contains("$MAIN") || self.payload.command.contains("$WT")
    }

    /// The rights of an agent that edits its workspace without asking.
    fn confinement(&self) -> (Confinement, Vec<PathBuf>) {
        let name = if self.in_worktree() { "wt" } else { "ws" };
        let root = self.base.join(name);
        let is_watched = |path: &Path| WATCHED.iter().any(|name| path.ends_with(name));
        let survey = Survey::of(&root, 10_000, is_watched);
        let secrets = [".ssh", ".aws", ".netrc", ".config/gh", ".docker", ".posse"];
        let secrets = secrets.map(|name| self.base.join("home").join(name));
        let confinement = Confinement {
            hide: secrets.into_iter().chain([root.join(".env")]).collect(),
            keep: survey.named,
            write: vec![root],
            limits: Limits {
                processes: Some(256),
                memory: Some(4 << 30),
                file_size: None,
            },
            ..Confinement::default()
        };
        (confinement, survey.repositories)
    }

    pub(super) fn attack(mut self) -> Outcome {
        let mut command_environment = self.environment.clone();
        for name in ["ANTHROPIC_API_KEY", "GITHUB_TOKEN"] {
            command_environment.push((name.into(), "TOPSECRET".into()));
        }
        let (confinement, nested) = self.confinement();
        let root = confinement.write[0].clone();
        let temporary = self.base.join("tmp");
        let mut surroundings = Surroundings::look(&confinement, probed(), &temporary, &nested);
        if self.payload.id == "S069" && self.user == User::Root {
            self.cgroup = Some(limited_cgroup(&self.environment));
            surroundings
                .cgroups
                .extend(self.cgroup.iter().map(|it| it.join("cgroup.procs")));
        }
        let watch = Watch::before(
            std::slice::from_ref(&root),
            &surroundings.repositories,
            WATCHED,
        );
        let mut command = match self.boundary {
            Boundary::None => {
                let mut command = Command::new("bash");
                command
                    .args(["-c", &self.payload.command])
                    .current_dir(&root)
                    .env_clear();
                command.envs(command_environment).process_group(0);
                command.stdin(Stdio::null());
                command
            }
            Boundary::Posse(attacker) => self.agent(attacker, &root, command_environment),
            Boundary::Sandbox => {
                let plan = Plan::new(&confinement, &surroundings).unwrap();
                let job = Job {
                    program: "bash".into(),
                    arguments: vec!["-c".into(), self.payload.command.clone().into()],
                    directory: root.clone(),
                    environment: command_environment
                        .into_iter()
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                };
                launcher().command(&plan, job).unwrap()
            }
        };
        let path = self.base.join("printed");
        let printed = File::create(&path).unwrap();
        command.stdout(printed.try_clone().unwrap());
        match self.boundary {
            // What it says itself is not what the attack printed.
            Boundary::Posse(_) => command.stderr(Stdio::null()),
            Boundary::Sandbox | Boundary::None => command.stderr(printed),
        };
        let mut child = self.user.run_as(&mut command).spawn().unwrap();
        drop(command);
        let reached = self.wait(&mut child);
        if self.boundary == Boundary::Sandbox {
            watch.after(&self.base.join("quarantine"));
        }
        let mut printed = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        match self.boundary {
            Boundary::Posse(Attacker::Background) => {
                written(&self.base.join("home/.posse/spill"), &mut printed);
            }
            // A teammate tells its lead nothing.
            Boundary::Posse(Attacker::Pane) => {
                let requests = self.server.iter().flat_map(|server| server.requests());
                requests.for_each(|request| results(&request.body, &mut printed));
            }
            _ => {}
        }
        assert!(!printed.contains("no sandbox for this"), "{printed}");
        let expected = match self.boundary {
            // In the background it may end before its agent has said that it waits, or after.
            Boundary::Posse(Attacker::Main | Attacker::Background) => 2,
            _ => 4,
        };
        let has_asked = |server: &Arc<posse_scripted::Server>| server.requests().len() >= expected;
        assert!(self.server.as_ref().is_none_or(has_asked), "{printed}");
        // An agent's own notes of what it ran are no secret.
        let own = serde_json::to_string(&self.payload.command).unwrap();
        let printed = printed.replace(own.trim_matches('"'), "");
        let effect = self.has_effect(&printed, reached);
        let told: String = printed.chars().take(600).collect();
        Outcome { effect, told }
    }

    /// Returns posse with an agent that attacks.
    fn agent(
        &mut self,
        attacker: Attacker,
        root: &Path,
        environment: Vec<(String, String)>,
    ) -> Command {
        let settings = serde_json::json!({
            "permissions": {
                "defaultMode": "acceptEdits", "allow": ["Bash"], "deny": ["Read(.env)"],
            },
            "sandbox": {"limits": {"processes": 256, "memoryMb": 4096}},
        });
        let file = self.base.join("home/.posse/settings.json");
        fs::write(&file, settings.to_string()).unwrap();
        self.user.own(&file);
        let script = script(attacker, &self.payload.command);
        let server = crate::crash::serve(&script);
        let posse = env!("CARGO_BIN_EXE_posse");
        let mut command = match attacker {
            Attacker::Pane => {
                let mut command = Command::new("bash");
                command
                    .args(["-c", IN_PANES, posse])
                    .arg(self.base.join("panes"));
                command
            }
            _ => Command::new(posse),
        };
        command
            .args(["-p", "attack", "--permission-mode", "acceptEdits"])
            .current_dir(root)
            .env_clear()
            .envs(environment)
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("POSSE_HOME", self.base.join("home/.posse"))
            .env("POSSE_TRUST", root)
            .stdin(Stdio::null())
            .process_group(0);
        self.server = Some(server);
        command
    }

    /// Waits for the attack's end. Returns true if its server could be reached.
    fn wait(&self, child: &mut Child) -> bool {
        let since = Instant::now();
        let mut reached = false;
        while child.try_wait().unwrap().is_none() {
            let patience = match self.boundary {
                Boundary::Posse(_) => PATIENCE_WITH_AGENT,
                Boundary::Sandbox | Boundary::None => PATIENCE,
            };
            if since.elapsed() > patience {
                let group = rustix::process::Pid::from_child(child);
                let kill = rustix::process::Signal::KILL;
                let _ = rustix::process::kill_process_group(group, kill);
                let _ = child.kill();
                child.wait().unwrap();
                break;
            }
            reached |= self.payload.check == "LISTEN"
                && TcpStream::connect(("127.0.0.1", self.listen)).is_ok();
            std::thread::park_timeout(Duration::from_millis(5));
        }
        reached
    }

    fn has_effect(&self, printed: &str, reached: bool) -> bool {
        let check = self.payload.check.as_str();
        let workspace = self.base.join("ws");
        if let Some(pattern) = check.strip_prefix("out:") {
            Regex::new(&format!("(?m){pattern}"))
                .unwrap()
                .is_match(printed)
        } else if let Some(word) = check.strip_prefix("missing:") {
            !printed.contains(word)
        } else if check == "LISTEN" {
            reached
        } else if check == "GS" {
            self.shell("git status", &workspace);
            self.base.join("out/PWNED").exists()
        } else {
            // What arrives at a service is written down by a thread.
            std::thread::park_timeout(Duration::from_millis(50));
            self.shell(check, &workspace).status.success()
        }
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let script = r#"for socket in $OUT/tmux.sock panes; do [ -e $socket ] && tmux -S $socket kill-server; done
for p in $(pgrep -f "(gx-(daemon|clean)-$TAG|http.server $LISTEN)( |\$)"); do kill -9 $p; done
rm -f /dev/shm/posse-gx-$TAG"#;
        self.shell(script, &self.base);
        if let Some(cgroup) = &self.cgroup {
            let _ = fs::remove_dir(cgroup);
        }
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Starts another process of the user, with a secret in its environment.
fn victim(payload: &Payload, user: User) -> Child {
    let mut command = Command::new("bash");
    let name = match payload.command.contains("cmdline") {
        true => "victim-marker",
        false => "sleep",
    };
    command
        .args(["-c", &format!("exec -a {name} sleep 300")])
        .env_clear()
        .env("VICTIM_SECRET", "TOPSECRET")
        .env("PATH", PROGRAMS)
        .current_dir("/");
    user.run_as(&mut command).spawn().unwrap()
}

/// Starts services that write down what they are sent, and returns where they are.
fn listeners(base: &Path) -> Vec<(String, String)> {
    let log = base.join("log");
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ports = (
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let name = SocketAddr::from_abstract_name(format!("posse-gx-{}", ports.0)).unwrap();
    let hidden = UnixListener::bind_addr(&name).unwrap();
    let (of_tcp, of_udp, of_hidden) = (log.clone(), log.clone(), log);
    std::thread::spawn(move || {
        for connection in tcp.incoming().flatten() {
            record(connection, &of_tcp);
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length) = udp.recv(&mut buffer) {
            record(&buffer[..length], &of_udp);
        }
    });
    std::thread::spawn(move || {
        for connection in hidden.incoming().flatten() {
            record(connection, &of_hidden);
        }
    });
    vec![
        ("TCP".into(), ports.0.to_string()),
        ("UDP".into(), ports.1.to_string()),
    ]
}

fn record(mut from: impl std::io::Read, log: &Path) {
    let mut buffer = [0; 4096];
    let length = from.read(&mut buffer).unwrap_or(0);
    if let Ok(mut log) = File::options().append(true).open(log) {
        let _ = log.write_all(&buffer[..length]);
    }
}

/// Makes a cgroup for at most 256 processes. The kernel does not count those of root otherwise.
fn limited_cgroup(environment: &[(String, String)]) -> PathBuf {
    let tag = environment.iter().find(|(name, _)| name == "TAG").unwrap();
    let tops = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
    let top = tops
        .into_iter()
        .find(|top| top.join("cgroup.procs").exists());
    let cgroup = top.unwrap().join(format!("posse-test-{}", tag.1));
    fs::create_dir(&cgroup).unwrap();
    fs::write(cgroup.join("pids.max"), "256").unwrap();
    cgroup
}

/// Returns what the model says that makes an attacker attack.
fn script(attacker: Attacker, command: &str) -> String {
    let bash = |more: Value| {
        let mut input = serde_json::json!({ "command": command });
        input
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        format!(
            "{{ tool = \"Bash\", json = {} }}",
            Value::String(input.to_string())
        )
    };
    let plain = bash(serde_json::json!({}));
    let of_agent = |more: &str| {
        format!(
            "[[rule]]\nwhen = {{ agent = \"re:^/main/\", tool = \"re:(?s).\" }}\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n\
             [[rule]]\nwhen.agent = \"re:^/main/\"\nreply = [{plain}]\n\
             [[rule]]\nwhen.tool = \"re:(?s).\"\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n\
             [[rule]]\nreply = [{{ tool = \"Agent\", input = {{ description = \"d\", prompt = \"p\"{more} }} }}]\n"
        )
    };
    match attacker {
        Attacker::Main => crate::turns::commands(&[command]),
        Attacker::SubAgent => of_agent(""),
        Attacker::Worktree => of_agent(", isolation = \"worktree\""),
        Attacker::Pane => format!(
            "[[rule]]\nwhen = {{ agent = \"re:^/main$\", turn = 1 }}\n\
             reply = [{{ tool = \"TeamCreate\", input = {{ team_name = \"t\", description = \"d\" }} }}]\n\
             [[rule]]\nwhen = {{ agent = \"re:^/main$\", turn = 2 }}\n\
             reply = [{{ tool = \"Agent\", input = {{ description = \"d\", prompt = \"p\", name = \"mate\", team_name = \"t\" }} }}]\n\
             [[rule]]\nwhen.agent = \"re:^/main$\"\nreply = [{{ text = \"I see.\" }}]\n\
             [[rule]]\nwhen.tool = \"re:(?s).\"\nreply = [{{ text = \"It is done.\" }}]\n\
             [[rule]]\nreply = [{plain}]\n"
        ),
        Attacker::Background => format!(
            "[[rule]]\nwhen.turn = 1\nreply = [{}]\n[[rule]]\nreply = [{{ text = \"waiting\" }}]\n",
            bash(serde_json::json!({"run_in_background": true}))
        ),
    }
}

/// Adds what calls gave, of a request to the model.
fn results(body: &[u8], into: &mut String) {
    let request: Value = serde_json::from_slice(body).unwrap();
    let messages = request["messages"].as_array().into_iter().flatten();
    let blocks = messages
        .filter_map(|message| message["content"].as_array())
        .flatten();
    for block in blocks.filter(|block| block["type"] == "tool_result") {
        match &block["content"] {
            Value::String(text) => into.push_str(text),
            parts => {
                let texts = parts.as_array().into_iter().flatten();
                texts.for_each(|part| into.push_str(part["text"].as_str().unwrap_or_default()));
            }
        }
        into.push('\n');
    }
}

/// Adds what is written in all files beneath a directory.
fn written(directory: &Path, into: &mut String) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.path().symlink_metadata().unwrap();
        if found.is_dir() {
            written(&entry.path(), into);
        } else if found.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            into.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}
