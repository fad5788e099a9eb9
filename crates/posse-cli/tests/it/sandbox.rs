//! Commands in the kernel sandbox, by the launcher that `posse confine` is: 80 attacks as root and as
//! an ordinary user, how commands end, and what is left when whoever started them is killed.

mod payloads;
mod scene;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posse_port::confinement::{Confinement, NetworkAccess, Tier};
use posse_sandbox::{
    Backend as _, Job, JobEnds, KernelSupport, Launcher, Linux, Plan, Surroundings,
};
use rustix::event::{PollFd, PollFlags, poll};

/// How long a killed process's commands may live.
const SOON: Duration = Duration::from_secs(1);

fn launcher() -> Launcher {
    Launcher::at(env!("CARGO_BIN_EXE_posse"))
}

/// Returns what the kernel gives, tried once.
fn probed() -> KernelSupport {
    static PROBED: OnceLock<KernelSupport> = OnceLock::new();
    *PROBED.get_or_init(|| Linux::new(launcher()).probe().support)
}

fn job(script: &str, directory: &Path) -> Job {
    Job {
        program: "bash".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: directory.to_owned(),
        environment: vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
    }
}

/// A directory with a workspace and a temporary directory in it.
struct Place {
    base: PathBuf,
    root: PathBuf,
    temporary: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sandbox-{name}"));
        Self::in_directory(&base)
    }

    fn in_directory(base: &Path) -> Self {
        let _ = std::fs::remove_dir_all(base);
        let place = Self::at(base.to_owned());
        for directory in [&place.root, &place.temporary] {
            std::fs::create_dir_all(directory).unwrap();
        }
        place
    }

    /// Returns the place that another test tells this one.
    fn told() -> Option<Self> {
        std::env::var_os("SANDBOX_PLACE").map(|base| Self::at(base.into()))
    }

    fn at(base: PathBuf) -> Self {
        let (root, temporary) = (base.join("w"), base.join("tmp"));
        Self {
            base,
            root,
            temporary,
        }
    }

    fn plan(&self, confinement: &Confinement, support: KernelSupport) -> Plan {
        let surroundings = Surroundings::look(confinement, support, &self.temporary, &[]);
        Plan::new(confinement, &surroundings).unwrap()
    }

    fn writable(&self) -> Confinement {
        Confinement {
            write: vec![self.root.clone()],
            ..Confinement::default()
        }
    }

    fn run(&self, plan: &Plan, script: &str) -> Output {
        let mut command = launcher().command(plan, job(script, &self.root)).unwrap();
        command.output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_ends_as_it_would_outside() {
    let place = Place::new("ends");
    let support = probed();
    for tier in [
        support,
        KernelSupport {
            namespaces: false,
            ..support
        },
    ] {
        let plan = place.plan(&place.writable(), tier);
        for (script, code, signal) in [
            ("true", Some(0), None),
            ("exit 3", Some(3), None),
            ("exit 255", Some(255), None),
            ("kill -9 $$", None, Some(9)),
            ("kill -15 $$", None, Some(15)),
            ("kill -ABRT $$", None, Some(6)),
        ] {
            let ended = place.run(&plan, script);
            let status = (ended.status.code(), ended.status.signal());
            assert_eq!(status, (code, signal), "{script}: {}", text(&ended.stderr));
        }
        // A group of its own: what it sends to its group stays inside.
        let ended = place.run(&plan, "trap '' TERM; kill -TERM 0; echo alive; pwd >&2");
        assert_eq!(text(&ended.stdout), "alive\n");
        assert_eq!(text(&ended.stderr), format!("{}\n", place.root.display()));
    }
}

#[test]
fn a_command_that_is_asked_to_end_can_clean_up() {
    let place = Place::new("asked");
    let support = probed();
    let plan = place.plan(&place.writable(), support);
    let script = "trap 'echo bye; exit 3' TERM; echo $$ >up; while :; do sleep 0.02; done";
    let mut command = launcher().command(&plan, job(script, &place.root)).unwrap();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    while std::fs::read(place.root.join("up"))
        .unwrap_or_default()
        .is_empty()
    {
        assert!(since.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
    let terminate = |pid: u32| {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    };
    // The launcher waits for those inside, who are asked as well.
    terminate(child.id());
    let mut inside = vec![child.id()];
    let mut at = 0;
    while let Some(pid) = inside.get(at) {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        inside.extend(
            children
                .split_whitespace()
                .map(|pid| pid.parse::<u32>().unwrap()),
        );
        at += 1;
    }
    assert!(child.try_wait().unwrap().is_none(), "{inside:?}");
    terminate(inside[2]);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(
        (ended.status.code(), text(&ended.stdout)),
        (Some(3), "bye\n".into())
    );
}

#[test]
fn what_a_command_leaves_behind_gets_a_moment_and_is_told() {
    let place = Place::new("left");
    let plan = place.plan(&place.writable(), probed());
    let ended = place.run(&plan, "echo all | tee >(sleep 0.05; cat >log) >/dev/null");
    assert_eq!(
        (text(&ended.stderr), ended.status.code()),
        (String::new(), Some(0))
    );
    assert_eq!(std::fs::read(place.root.join("log")).unwrap(), b"all\n");
    let ended = place.run(&plan, "sleep 600 & setsid -f sleep 600; exit 4");
    assert_eq!(ended.status.code(), Some(4));
    let told = "(2 processes were still running when the shell ended; now ended, too)\n";
    assert_eq!(text(&ended.stderr), told);
}

#[test]
fn a_job_reads_what_it_is_given_and_closing_its_input_is_noticed() {
    let place = Place::new("input");
    let support = probed();
    for support in [
        support,
        KernelSupport {
            namespaces: false,
            ..support
        },
    ] {
        let plan = place.plan(&place.writable(), support);
        let run = |script: &str| {
            let (theirs, ours) = std::io::pipe().unwrap();
            let ends = JobEnds {
                input: Some(theirs.as_fd()),
                proxy: None,
            };
            let mut command = launcher()
                .command_with(&plan, job(script, &place.root), ends)
                .unwrap();
            let child = command.stdout(Stdio::piped()).spawn().unwrap();
            drop((command, theirs));
            (child, ours)
        };
        let (child, mut input) = run("read -r one; echo \"got $one\"; cat");
        input.write_all(b"a line\nand more").unwrap();
        drop(input);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(text(&ended.stdout), "got a line\nand more");
        // Nobody but the job holds the other end, so that writing fails once it has closed it.
        let (mut child, mut input) = run("exec 0<&-; echo closed; sleep 1000");
        let mut told = [0; 7];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut told)
            .unwrap();
        // What has started the job closes its own copy a moment after.
        let mut closed = [PollFd::new(&input, PollFlags::empty())];
        assert_eq!(poll(&mut closed, None).unwrap(), 1);
        let failed = input.write_all(b"x").unwrap_err();
        assert_eq!(failed.kind(), std::io::ErrorKind::BrokenPipe);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_command_that_cannot_be_run_says_why() {
    let place = Place::new("why");
    let plan = place.plan(&place.writable(), probed());
    let mut missing = job("true", &place.root);
    missing.program = "no-such-program".into();
    let nowhere = job("true", Path::new("/nowhere"));
    for job in [missing, nowhere] {
        let ended = launcher().command(&plan, job).unwrap().output().unwrap();
        assert_eq!(ended.status.code(), Some(125));
        assert!(text(&ended.stderr).contains("No such file"), "{ended:?}");
    }
    // A word that people do not know.
    let typed = Command::new(env!("CARGO_BIN_EXE_posse"))
        .arg("confine")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(typed.status.code(), Some(2), "{}", text(&typed.stderr));
}

/// A test that is started inside a sandbox, where system calls for namespaces are filtered.
// proves PE-13 (part: probed; never less)
#[test]
fn without_namespaces_a_plan_that_needs_them_runs_nothing() {
    let place = Place::new("nested");
    let support = probed();
    assert_eq!(support.tier(), Tier::A);
    let plan = place.plan(&place.writable(), support);
    let mut job = job("true", &place.root);
    job.program = std::env::current_exe().unwrap().into();
    let arguments = [
        "--ignored",
        "--exact",
        "sandbox::probes_inside",
        "--nocapture",
    ];
    job.arguments = arguments.map(OsString::from).to_vec();
    let base = place.base.clone().into_os_string();
    job.environment.push(("SANDBOX_PLACE".into(), base));
    let ended = launcher().command(&plan, job).unwrap().output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let found = std::fs::read_to_string(place.root.join("found")).unwrap();
    assert_eq!(found, "B 125");
    assert!(!place.root.join("ran").exists());
}

#[test]
#[ignore = "started by another test, in a sandbox"]
fn probes_inside() {
    let Some(place) = Place::told() else { return };
    let inner = probed();
    let full = KernelSupport {
        namespaces: true,
        ..inner
    };
    let surroundings = Surroundings {
        support: full,
        temporary: "/tmp".into(),
        ..Surroundings::default()
    };
    let plan = Plan::new(&Confinement::default(), &surroundings).unwrap();
    let ended = place.run(&plan, "touch ran");
    let code = ended.status.code().unwrap();
    let found = format!("{} {code}", inner.tier());
    std::fs::write(place.root.join("found"), found).unwrap();
}

#[test]
fn sockets_that_come_and_go_keep_no_command_from_starting() {
    let place = Place::new("sockets");
    let support = probed();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let path = |at: u32| place.base.join(format!("socket-{at}"));
                let listeners = (0..64).map(|at| UnixListener::bind(path(at)).unwrap());
                let listeners: Vec<_> = listeners.collect();
                (0..64).for_each(|at| std::fs::remove_file(path(at)).unwrap());
                drop(listeners);
            }
        });
        let failed = (0..100).filter_map(|_| {
            let plan = place.plan(&place.writable(), support);
            let ended = place.run(&plan, "true");
            (!ended.status.success()).then(|| text(&ended.stderr))
        });
        let failed: Vec<String> = failed.collect();
        over.store(true, Ordering::Relaxed);
        assert_eq!(failed, [""; 0]);
    });
}

#[test]
fn a_workspace_in_the_temporary_directory_is_there() {
    let name = format!("/tmp/posse-sandbox-{}", std::process::id());
    let place = Place::in_directory(Path::new(&name));
    std::fs::write(place.root.join("file"), "text").unwrap();
    std::fs::write(place.base.join("other"), "text").unwrap();
    let shown = Confinement {
        show: vec![place.root.clone()],
        ..Confinement::default()
    };
    for (confinement, written) in [(shown, false), (place.writable(), true)] {
        let plan = place.plan(&confinement, probed());
        let script = "cat file; touch new; touch /tmp/own; ls ..";
        let ended = place.run(&plan, script);
        assert_eq!(text(&ended.stdout), "textw\n", "{ended:?}");
        assert_eq!(place.root.join("new").exists(), written, "{ended:?}");
        assert!(place.temporary.join("own").exists());
    }
    std::fs::remove_dir_all(&name).unwrap();
}

// proves PE-13 (part: never less)
#[test]
fn parts_that_are_taken_away_are_never_pretended() {
    let place = Place::new("parts");
    let full = probed();
    let hidden = place.base.join("secret");
    std::fs::write(&hidden, "TOPSECRET").unwrap();
    let hiding = Confinement {
        hide: vec![hidden.clone()],
        ..place.writable()
    };
    for landlock in [0, 1, 3, 6] {
        for namespaces in [true, false] {
            let support = KernelSupport {
                namespaces,
                landlock,
                ..full
            };
            let surroundings = Surroundings::look(&hiding, support, &place.temporary, &[]);
            let plan = Plan::new(&hiding, &surroundings);
            assert_eq!(plan.is_ok(), namespaces, "{support:?}");
            let confinement = match namespaces {
                true => &hiding,
                false => &place.writable(),
            };
            let surroundings = Surroundings::look(confinement, support, &place.temporary, &[]);
            let Ok(plan) = Plan::new(confinement, &surroundings) else {
                assert_eq!(support.tier(), Tier::C);
                continue;
            };
            let script = format!(
                "cat {hidden}; echo x >{outside}; echo x >inside; grep -E 'CapEff|Seccomp:' /proc/self/status",
                hidden = hidden.display(),
                outside = place.base.join("outside").display(),
            );
            let ended = place.run(&plan, &script);
            let printed = text(&ended.stdout);
            assert_eq!(printed.contains("TOPSECRET"), !namespaces, "{support:?}");
            assert!(
                printed.contains("CapEff:\t0000000000000000\nSeccomp:\t2"),
                "{ended:?}"
            );
            assert!(!place.base.join("outside").exists(), "{support:?}");
            assert!(place.root.join("inside").exists(), "{support:?} {ended:?}");
            std::fs::remove_file(place.root.join("inside")).unwrap();
        }
    }
}

#[test]
fn without_namespaces_there_is_no_network_and_no_signal_to_others() {
    let place = Place::new("fence");
    let support = KernelSupport {
        namespaces: false,
        ..probed()
    };
    let plan = place.plan(&place.writable(), support);
    let mut victim = Command::new("sleep").arg("60").spawn().unwrap();
    let script = format!(
        "kill -9 {}; (exec 3<>/dev/tcp/127.0.0.1/1) ; echo $TMPDIR; echo x >$TMPDIR/t",
        victim.id()
    );
    let ended = place.run(&plan, &script);
    assert!(victim.try_wait().unwrap().is_none());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let errors = text(&ended.stderr);
    assert!(errors.contains("kill: "), "{errors}");
    assert!(
        errors.contains("socket: Operation not permitted"),
        "{errors}"
    );
    assert!(place.temporary.join("t").exists());
    let open = Confinement {
        network: NetworkAccess::All,
        ..place.writable()
    };
    let surroundings = Surroundings::look(&open, support, &place.temporary, &[]);
    assert!(Plan::new(&open, &surroundings).is_err());
}

#[test]
fn everything_but_what_is_kept_can_be_written_if_so_wanted() {
    let place = Place::new("bypass");
    std::fs::create_dir_all(place.root.join(".git/hooks")).unwrap();
    let all = Confinement {
        write: vec!["/".into()],
        keep: vec![place.root.join(".git/hooks")],
        network: NetworkAccess::All,
        ..Confinement::default()
    };
    let plan = place.plan(&all, probed());
    let script = format!(
        "echo x >{base}/outside; echo x >.git/hooks/new; mv .git g; mv ../w ../v; echo x >/proc/sys/kernel/hostname; ls",
        base = place.base.display()
    );
    let ended = place.run(&plan, &script);
    assert!(place.base.join("outside").exists(), "{ended:?}");
    assert!(place.root.join(".git/hooks").exists());
    assert!(!place.root.join(".git/hooks/new").exists());
    let refused = text(&ended.stderr);
    assert_eq!(refused.lines().count(), 4, "{refused}");
}

#[test]
fn killed_with_whoever_started_it() {
    let place = Place::new("killed");
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "sandbox::starts_commands_and_waits"])
        .env("SANDBOX_PLACE", &place.base)
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let tag = format!("sandbox-killed-{}", parent.id());
    let ready = |count| {
        let names = std::fs::read_dir(&place.root).unwrap().count();
        names == count
    };
    let since = Instant::now();
    while !ready(16) {
        assert!(since.elapsed() < Duration::from_secs(30) && parent.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    // Each is a launcher, the first process inside, a shell and two sleeps in the background.
    assert_eq!(running(&tag), 32);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let since = Instant::now();
    while running(&tag) > 0 {
        assert!(since.elapsed() < SOON, "{} are left", running(&tag));
        std::thread::yield_now();
    }
    assert_eq!(mounts(), before);
}

/// Returns how many processes have the word as an argument of their own.
fn running(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let words = |line: Vec<u8>| {
        line.split(|byte| *byte == 0)
            .any(|it| it == word.as_bytes())
    };
    lines.filter(|line| words(line.clone())).count()
}

#[test]
#[ignore = "started by another test, which kills it"]
fn starts_commands_and_waits() {
    let Some(place) = Place::told() else { return };
    let plan = place.plan(&place.writable(), probed());
    let tag = format!("sandbox-killed-{}", std::process::id());
    let mut children = Vec::new();
    for number in 0..16 {
        let script = format!(
            "trap '' TERM HUP; (exec -a {tag} sleep 600) & env -i setsid -f bash -c 'exec -a {tag} sleep 600'; sleep 0.1; touch {number}; wait; sleep 600"
        );
        let mut command = launcher()
            .command(&plan, job(&script, &place.root))
            .unwrap();
        children.push(command.spawn().unwrap());
    }
    for mut child in children {
        child.wait().unwrap();
    }
}
