//! That nothing outlives posse, however it ends, and that its guardian does not, either.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary::{Project, stderr, stdout};

/// How long posse's end may be ago when all is gone.
const SOON: Duration = Duration::from_secs(2);

/// Three that ignore being asked to end: the shell, one in a session of its own whose parent is gone, and
/// the same with an emptied environment. And a posse that starts a posse that starts them.
const STUBBORN: &str = r#"
[[rule]]
when.user = "nest"
reply = [{ tool = "Bash", input = { command = '"$POSSE" -p --allowedTools Bash begin' } }]
[[rule]]
reply = [{ tool = "Bash", input = { command = '''
trap '' TERM HUP
(setsid sh -c 'echo x >ready; sleep 1000; sleep 1000' &)
(env -i setsid sh -c 'echo $$ >hidden; echo x >ready; sleep 1000; sleep 1000' &)
echo x >ready
sleep 1000; sleep 1000
''' } }]
"#;

const ARGUMENTS: [&str; 3] = ["-p", "--permission-mode", "bypassPermissions"];

/// A project whose posse is found again, with all that it starts, by a word in the environment.
struct Scene {
    project: Project,
    word: String,
    up: File,
}

impl Scene {
    fn new(name: &str) -> Self {
        let project = Project::new(&format!("guardian-{name}"), STUBBORN);
        let ready = project.file("ready");
        assert!(
            Command::new("mkfifo")
                .arg(&ready)
                .status()
                .unwrap()
                .success()
        );
        // Open for writing, too, so that it does not end between two that write.
        let up = File::options().read(true).write(true).open(ready).unwrap();
        Self {
            project,
            word: format!("GUARDED={name}-{}", std::process::id()),
            up,
        }
    }

    fn mark(&self, command: &mut Command) {
        let (name, value) = self.word.split_once('=').unwrap();
        command.env(name, value);
    }

    /// posse with its three, all of them up.
    fn start(&mut self, prompt: &str) -> Child {
        let mut command = self.project.posse(&ARGUMENTS);
        self.mark(&mut command);
        command
            .arg(prompt)
            .env("POSSE", env!("CARGO_BIN_EXE_posse"));
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.all_up();
        child
    }

    fn all_up(&mut self) {
        self.up.read_exact(&mut [0; 6]).unwrap();
    }

    /// All that can be found by the word.
    fn living(&self) -> Vec<u32> {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let marked = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == self.word.as_bytes())
        };
        pids.filter(marked).collect()
    }

    fn guardian(&self) -> Option<Watchdog> {
        self.living().into_iter().find_map(|pid| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            let mut words = line
                .split_terminator('\0')
                .skip_while(|word| !word.ends_with("posse"));
            let is_one = words.nth(1) == Some("guard");
            is_one.then(|| Watchdog {
                pid,
                cgroup: words.nth(1).map(PathBuf::from).filter(|it| it.exists()),
            })
        })
    }

    /// The one that no word finds.
    fn hidden(&self) -> u32 {
        fs::read_to_string(self.project.file("hidden"))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    /// Waits until nothing is left, and says how long that took since `begun`.
    fn gone(&self, begun: Instant, guardian: &Watchdog) -> Duration {
        let hidden = self.hidden();
        let hidden_lives = || stat(hidden).is_some_and(|fields| fields[0] != "Z");
        let cgroup_is_there = || {
            guardian
                .cgroup
                .as_ref()
                .is_some_and(|cgroup| cgroup.exists())
        };
        while !self.living().is_empty() || hidden_lives() || cgroup_is_there() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{:?} live",
                self.living()
            );
            std::thread::yield_now();
        }
        begun.elapsed()
    }
}

struct Watchdog {
    pid: u32,
    cgroup: Option<PathBuf>,
}

fn signal(name: &str, pid: u32) {
    // Who is gone needs none.
    Command::new("kill")
        .args([name, &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

/// What the kernel says of a process, from its state on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(
        stat.rsplit_once(") ")?
            .1
            .split(' ')
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn what_a_killed_posse_leaves_is_gone_soon_and_so_is_its_guardian() {
    let mut scene = Scene::new("killed");
    let mut posse = scene.start("begin");
    let guardian = scene.guardian().expect("there is a guardian");
    // What people and terminals say to it does not matter.
    for name in ["-INT", "-HUP", "-TERM", "-QUIT"] {
        signal(name, guardian.pid);
    }
    let begun = Instant::now();
    posse.kill().unwrap();
    let output = posse.wait_with_output().unwrap();
    let told = begun.elapsed();
    let took = scene.gone(begun, &guardian);
    println!(
        "readers knew after {told:?}, all was gone after {took:?}, cgroup: {:?}",
        guardian.cgroup
    );
    assert!(took < SOON, "{took:?}");
    assert!(told < SOON, "{told:?}: {}", stderr(&output));
}

#[test]
fn a_posse_within_a_posse_that_is_killed_leaves_nothing_either() {
    let mut scene = Scene::new("nested");
    let mut posse = scene.start("nest");
    let guardian = scene.guardian().expect("there is a guardian");
    let begun = Instant::now();
    posse.kill().unwrap();
    posse.wait().unwrap();
    let took = scene.gone(begun, &guardian);
    assert!(took < SOON, "{took:?}");
}

#[test]
fn who_leaves_by_the_terminal_leaves_nothing_either() {
    let mut scene = Scene::new("terminal");
    let mut posse = scene.project.posse(&ARGUMENTS);
    posse.arg("begin");
    let line: Vec<String> = std::iter::once(posse.get_program())
        .chain(posse.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script");
    script
        .args(["-qec", &line.join(" "), "/dev/null"])
        .env_clear();
    for (name, value) in posse.get_envs() {
        script.env(name, value.unwrap());
    }
    script.current_dir(posse.get_current_dir().unwrap());
    scene.mark(&mut script);
    let mut script = script
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    scene.all_up();
    let guardian = scene.guardian().expect("there is a guardian");
    let fields = stat(guardian.pid).unwrap();
    assert_eq!(fields[4], "0", "it has no terminal");
    // One stops the run, and the next leaves.
    script
        .stdin
        .as_ref()
        .unwrap()
        .write_all(b"\x03\x03")
        .unwrap();
    let begun = Instant::now();
    script.wait().unwrap();
    let took = scene.gone(begun, &guardian);
    assert!(took < SOON, "{took:?}");
}

#[test]
fn a_posse_that_ends_takes_its_guardian_along_and_one_without_commands_has_none() {
    let script = "[[rule]]\nwhen.tool = 're:.'\nreply = [{ text = 'done' }]\n\
                  [[rule]]\nwhen.user = 'run'\nreply = [{ tool = 'Bash', input = { command = 'echo $POSSE_HOST >mark' } }]\n\
                  [[rule]]\nreply = [{ text = 'hello' }]\n";
    let scene = Scene {
        project: Project::new("guardian-end", script),
        word: "GUARDED=end".into(),
        up: File::open("/dev/null").unwrap(),
    };
    let log = scene.project.file("log");
    let posse = |prompt: &str| {
        let mut plain = scene.project.posse(&ARGUMENTS);
        plain.arg(prompt);
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-s", "500", "-e", "trace=execve", "-o"])
            .arg(&log);
        command
            .arg(plain.get_program())
            .args(plain.get_args())
            .env_clear();
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap());
        }
        scene.mark(&mut command);
        let output = command
            .current_dir(plain.get_current_dir().unwrap())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            stdout(&output),
            stderr(&output)
        );
        fs::read_to_string(&log).unwrap()
    };
    assert_eq!(
        posse("hello").lines().count(),
        1,
        "nothing but posse is started"
    );
    let started = posse("run");
    assert!(started.contains(r#""guard""#), "{started}");
    let mark = fs::read_to_string(scene.project.file("mark")).unwrap();
    assert!(
        started.contains(mark.trim()),
        "the guardian knows what it guards: {started}"
    );
    // strace ends when all have.
    assert_eq!(scene.living(), Vec::<u32>::new());
    let name = format!("/posse-{}", mark.trim());
    let cgroup = started.split('"').find(|word| word.ends_with(&name));
    assert!(
        cgroup.is_none_or(|cgroup| !PathBuf::from(cgroup).exists()),
        "{cgroup:?}"
    );
}

#[test]
fn people_are_not_told_of_it() {
    let project = Project::new("guardian-help", "");
    for arguments in [
        &["--help"][..],
        &["completions", "bash"],
        &["completions", "zsh"],
    ] {
        let output = project.run(arguments);
        assert!(
            output.status.success() && !stdout(&output).contains("guard"),
            "{arguments:?}"
        );
    }
    let output = project.run(&["guard"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("there is no command `guard`"),
        "{}",
        stderr(&output)
    );
}

/// Its first command kills the guardian, and the next one has another.
#[test]
fn a_guardian_that_is_killed_is_replaced() {
    let script = "[[rule]]\nwhen.tool = 'again'\nreply = [{ text = '{{tool}}' }]\n\
                  [[rule]]\nwhen.tool = 'unknown'\nreply = [{ tool = 'Bash', input = { command = 'echo again $PPID' } }]\n\
                  [[rule]]\nreply = [{ tool = 'Bash', input = { command = 'echo $PPID >first; kill -9 $PPID; sleep 1000' } }]\n";
    let project = Project::new("guardian-replaced", script);
    let output = project.run(&[&ARGUMENTS[..], &["go"]].concat());
    let first = fs::read_to_string(project.file("first")).unwrap();
    let told = stdout(&output);
    assert!(told.starts_with("again "), "{told}{}", stderr(&output));
    assert_ne!(told.trim_start_matches("again "), first);
}
