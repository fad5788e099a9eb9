//! Teammates in panes of a real tmux: they do their job and vanish, whoever of them is killed.

use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_protocol::Cost;
use posse_scripted::Server;
use serde_json::Value;

use crate::binary::{Project, stderr};
use crate::cost::{bill, pico};
use crate::crash::serve;
use crate::requests::waits;
use crate::team::{lines, succeed};
use crate::tmux::Tmux;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(40);
/// What nobody may see.
const KEY: &str = "s3cret-key-of-the-test";
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// A lead that starts teammates, who each wait for a file, leave a line in another, and are done.
fn script(names: &[&str]) -> String {
    let start = |name: &&str| {
        format!(
            "{{ tool = 'Agent', input = {{ description = 'd', prompt = 'Work as {name}.', name = '{name}', team_name = 'parser' }} }}"
        )
    };
    let starts: Vec<String> = names.iter().map(start).collect();
    let waits = "until [ -e go ]; do sleep 0.02; done; echo $POSSE_CALL >>done.log";
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main$", turn = 1 }}
reply = [{{ tool = "TeamCreate", input = {{ team_name = "parser", description = "d" }} }}]
[[rule]]
when = {{ agent = "re:^/main$", turn = 2 }}
reply = [{}]
[[rule]]
when.agent = "re:^/main$"
reply = [{{ text = "I see." }}]
[[rule]]
when.user = "and now"
reply = [{{ text = "I heard you." }}]
[[rule]]
when.tool = "re:."
reply = [{{ text = "It is done." }}]
[[rule]]
when.user = "once more, please"
reply = [{{ tool = "Bash", input = {{ command = '{waits}' }} }}]
[[rule]]
reply = [{{ text = "I begin. " }}, {{ tool = "Bash", input = {{ command = '{waits}' }} }}]
"#,
        starts.join(", ")
    )
}

/// A user's tmux with something in it, and posse in another pane.
pub(crate) struct Scene {
    project: Project,
    pub(crate) server: Arc<Server>,
    tmux: Tmux,
}

impl Scene {
    /// The user's pane is %0, the lead's is %1.
    fn start(name: &str, names: &[&str], mode: &[&str]) -> Self {
        Self::with(
            name,
            names,
            &[&["--team-backend", "tmux"], mode].concat(),
            |_| "{}".into(),
        )
    }

    /// The same with these flags, and settings that may name the socket of tmux.
    pub(crate) fn with(
        name: &str,
        names: &[&str],
        flags: &[&str],
        settings: impl Fn(&str) -> String,
    ) -> Self {
        let project = Project::new(&format!("panes-{name}"), "");
        let (server, socket) = (serve(&script(names)), project.file("../tmux"));
        fs::create_dir_all(project.file("../home")).unwrap();
        let settings = settings(&socket.display().to_string());
        fs::write(project.file("../home/settings.json"), settings).unwrap();
        let own = ["sh", "-c", "echo my own words; exec cat"];
        let scene = Self {
            project,
            server,
            tmux: Tmux::start(socket, (200, 50), &[], &own),
        };
        scene.until("the user has a pane", |scene| {
            scene.screen("%0").contains("my own words")
        });
        let posse = [
            &[env!("CARGO_BIN_EXE_posse"), "-p", "--verbose"],
            flags,
            &["begin"],
        ];
        let line = format!("{}; echo code $?; exec cat", posse.concat().join(" "));
        let work = scene.project.file("").display().to_string();
        let variables = scene.environment();
        let mut split = vec!["split-window", "-d", "-h", "-t", "%0", "-c", &work];
        variables
            .iter()
            .for_each(|variable| split.extend(["-e", variable.as_str()]));
        scene.tmux(&[&split[..], &["--", "sh", "-c", &line]].concat());
        scene
    }

    fn environment(&self) -> [String; 6] {
        let home = self
            .project
            .file("../home")
            .canonicalize()
            .unwrap()
            .display()
            .to_string();
        [
            format!("POSSE_HOME={home}"),
            format!("HOME={home}"),
            "POSSE_SANDBOX=off".to_owned(),
            format!("POSSE_TRUST={}", self.project.file("").display()),
            format!("ANTHROPIC_BASE_URL={}", self.server.url()),
            format!("ANTHROPIC_API_KEY={KEY}"),
        ]
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        self.tmux.run(arguments)
    }

    pub(crate) fn screen(&self, pane: &str) -> String {
        self.tmux.screen(pane)
    }

    /// What tmux says of each pane.
    fn panes(&self, format: &str) -> Vec<String> {
        self.tmux(&["list-panes", "-a", "-F", format])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The pane of a teammate.
    fn pane_of(&self, name: &str) -> Option<String> {
        let panes = self.panes("#{pane_title} #{pane_id}");
        panes
            .iter()
            .find_map(|line| line.strip_prefix(&format!("{name}@parser ")))
            .map(str::to_owned)
    }

    fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            if begun.elapsed() > LONG {
                let screens = self.panes("#{pane_id}");
                let screens = screens
                    .iter()
                    .map(|pane| format!("{pane}:\n{}", self.screen(pane).trim()));
                let screens: Vec<String> = screens.collect();
                panic!(
                    "{what}: {:?}\n{}",
                    self.panes("#{pane_id} #{pane_title}"),
                    screens.join("\n")
                );
            }
            std::thread::yield_now();
        }
    }

    /// All of them wait in panes for the file.
    fn all_work(&self, names: &[&str]) {
        self.until("all work in panes", |scene| {
            let works = |name: &&str| {
                scene
                    .pane_of(name)
                    .is_some_and(|pane| scene.screen(&pane).contains("until ["))
            };
            names.iter().all(works)
        });
    }

    fn go(&self) {
        fs::write(self.project.file("go"), "").unwrap();
    }

    /// Processes that have this scene's home: posse, and what it has started.
    fn processes(&self) -> Vec<u32> {
        let [home, ..] = self.environment();
        let has = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let is_pane = line.starts_with(b"sh\0-c\0") || line == b"cat\0";
            !is_pane
                && environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == home.as_bytes())
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(has)
            .collect()
    }

    fn members(&self) -> Vec<Value> {
        let shown = self.project.run(&["team", "show", "--json"]);
        let team: Value =
            serde_json::from_slice(&shown.stdout).unwrap_or_else(|_| panic!("{}", stderr(&shown)));
        team["members"].as_array().unwrap().clone()
    }

    fn pid_of(&self, name: &str) -> u64 {
        let members = self.members();
        members
            .iter()
            .find(|member| member["name"] == name)
            .unwrap()["pid"]
            .as_u64()
            .unwrap()
    }

    /// The lead has ended, nobody else is there, and the user's pane is as it was.
    pub(crate) fn all_is_over(&self) {
        self.until("the lead has ended", |scene| {
            scene.screen("%1").contains("code ")
        });
        self.until("the panes are gone", |scene| {
            scene.panes("#{pane_id}") == ["%0", "%1"]
        });
        self.until("no process is left", |scene| scene.processes().is_empty());
        assert_eq!(self.screen("%0").trim(), "my own words");
    }

    /// How many lines were left, none of them twice.
    pub(crate) fn done(&self) -> usize {
        let log = fs::read_to_string(self.project.file("done.log")).unwrap_or_default();
        let all: HashSet<&str> = log.lines().collect();
        assert_eq!(all.len(), log.lines().count(), "something ran twice: {log}");
        all.len()
    }

    /// Goes on without any tmux, until all is done.
    fn resume(&self) -> String {
        let session = self.members()[0]["agent_id"].as_str().unwrap().to_owned();
        let arguments = [
            "-p",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
            "--resume",
            &session,
            "go on",
        ];
        let output = self
            .project
            .posse(&arguments)
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    }
}

fn kill(pid: &str) {
    let _ = Command::new("kill")
        .args(["-9", pid])
        .stderr(Stdio::null())
        .status();
}

pub(crate) const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

// proves TE-09 (part: tmux; the same binary; none left)
// proves TE-10 (part: several processes)
// proves FC-04 (part: panes)
#[test]
fn teammates_in_panes_do_their_job_and_vanish() {
    let scene = Scene::start("job", &NAMES, &FREE);
    scene.all_work(&NAMES);
    for name in NAMES {
        let screen = scene.screen(&scene.pane_of(name).unwrap());
        let title = format!("{name}@parser  general-purpose · claude-opus-5-5");
        assert!(screen.starts_with(&title), "{screen}");
        for line in [
            &format!("» team-lead: Work as {name}."),
            "I begin.",
            "→ $ until [ -e go ]",
        ] {
            assert!(screen.contains(line), "{line}: {screen}");
        }
        let line = fs::read(format!("/proc/{}/cmdline", scene.pid_of(name))).unwrap();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        assert!(
            line.contains(" team join ") && !line.contains(KEY),
            "{line}"
        );
        let environment = fs::read(format!("/proc/{}/environ", scene.pid_of(name))).unwrap();
        let environment = String::from_utf8_lossy(&environment);
        assert!(
            environment.contains(&format!("ANTHROPIC_API_KEY={KEY}\0")),
            "{environment}"
        );
    }
    let hosts: HashSet<u64> = NAMES.map(|name| scene.pid_of(name)).into_iter().collect();
    assert!(
        hosts.len() == 4 && !hosts.contains(&scene.pid_of("team-lead")),
        "{hosts:?}"
    );
    let windows = scene.panes("#{window_id} #{pane_active}");
    assert!(
        windows
            .iter()
            .all(|line| line.starts_with("@0 ") || line.starts_with("@1 ")),
        "{windows:?}"
    );
    assert_eq!(
        scene.panes("#{pane_id} #{pane_active}")[0],
        "%0 1",
        "the user goes on where they are"
    );
    scene.go();
    scene.all_is_over();
    let screen = scene.screen("%1");
    assert!(
        screen.contains("code 0") && screen.contains("four@parser joined"),
        "{screen}"
    );
    assert_eq!(scene.done(), 4);
    let lead = scene.members()[0]["agent_id"].as_str().unwrap().to_owned();
    let bill = bill(&scene.project, &lead);
    let cost = Cost::from_pico_usd(pico(&bill["total_cost_usd"]));
    assert!(
        screen.contains(&format!(" · {cost}\n")),
        "the cost of {cost} includes what members did in other processes: {screen}"
    );
}

// proves TE-10 (part: one at a time; taken over)
// proves FC-06 (part: a lost member)
#[test]
fn who_loses_its_pane_goes_on_with_the_lead() {
    let scene = Scene::start("mate", &NAMES, &FREE);
    scene.all_work(&NAMES);
    let member = |name: &str| {
        let members = scene.members();
        members
            .iter()
            .find(|member| member["name"] == name)
            .unwrap()["agent_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (session, two) = (member("team-lead"), member("two"));
    let second = scene
        .project
        .run(&["team", "join", "--session", &session, "--member", &two]);
    let holder = format!("pid {}", scene.pid_of("two"));
    assert!(
        !second.status.success() && stderr(&second).contains(&holder),
        "{}",
        stderr(&second)
    );
    kill(&scene.pid_of("two").to_string());
    scene.until("the lead has it", |scene| {
        scene
            .screen("%1")
            .contains("two@parser continues in this process")
            && scene.pane_of("two").is_none()
    });
    assert_eq!(scene.pid_of("two"), scene.pid_of("team-lead"));
    scene.go();
    scene.all_is_over();
    assert!(scene.screen("%1").contains("code 0"));
    assert_eq!(scene.done(), 3, "what was cut off is not run again");
}

// proves TE-09 (part: none left)
#[test]
fn panes_whose_lead_is_killed_finish_and_go() {
    let scene = Scene::start("lead", &NAMES[..2], &FREE);
    scene.all_work(&NAMES[..2]);
    kill(&scene.pid_of("team-lead").to_string());
    scene.until("the lead is gone", |scene| {
        scene.screen("%1").contains("code 137")
    });
    scene.go();
    scene.until("they finish", |scene| scene.done() == 2);
    let pane = scene.pane_of("one").unwrap();
    scene.until("it is idle", |scene| {
        scene.screen(&pane).contains("one@parser is idle")
    });
    scene.all_is_over();
    scene.resume();
    assert_eq!(scene.done(), 2, "nothing that was finished is done again");
    assert_eq!(scene.processes(), Vec::<u32>::new());
}

#[test]
fn ctrl_c_leaves_members_to_their_panes() {
    let scene = Scene::start("signal", &NAMES[..2], &FREE);
    scene.all_work(&NAMES[..2]);
    let (lead, begun) = (scene.pid_of("team-lead").to_string(), Instant::now());
    Command::new("kill").args(["-INT", &lead]).status().unwrap();
    scene.until("the lead has left", |scene| {
        scene.screen("%1").contains("code 130")
    });
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        scene.pane_of("one").is_some() && scene.pane_of("two").is_some(),
        "they work on"
    );
    scene.go();
    scene.until("they finish", |scene| scene.done() == 2);
    scene.all_is_over();
    scene.resume();
    assert_eq!(scene.done(), 2, "nothing that was finished is done again");
}

// proves TE-09 (part: none left)
#[test]
fn a_tmux_that_is_killed_takes_nothing_with_it_but_itself() {
    let scene = Scene::start("tmux", &NAMES[..2], &FREE);
    scene.all_work(&NAMES[..2]);
    scene.tmux.kill();
    let begun = Instant::now();
    while !scene.processes().is_empty() {
        assert!(begun.elapsed() < LONG, "{:?} live", scene.processes());
        std::thread::yield_now();
    }
    scene.go();
    scene.resume();
    assert_eq!(scene.done(), 0, "what was cut off is not run again");
    let members = scene.members();
    assert_eq!(members.len(), 1, "they have ended: {members:?}");
    assert_eq!(scene.processes(), Vec::<u32>::new());
}

// proves TE-19 (part: idle; not ended)
// proves PE-05 (part: a pane)
#[test]
fn a_person_in_a_pane_answers_speaks_and_leaves() {
    let scene = Scene::start("person", &NAMES[..2], &[]);
    let asks = |scene: &Scene, name| {
        scene
            .pane_of(name)
            .is_some_and(|pane| scene.screen(&pane).contains("y allow once"))
    };
    scene.until("both ask", |scene| asks(scene, "one") && asks(scene, "two"));
    let (pane, other) = (scene.pane_of("one").unwrap(), scene.pane_of("two").unwrap());
    let types = |pane: &str, words: &str| scene.tmux(&["send-keys", "-t", pane, words, "Enter"]);
    let interrupts = || scene.tmux(&["send-keys", "-t", &pane, "C-c"]);
    let shows = |words: &str| scene.until(words, |scene| scene.screen(&pane).contains(words));
    types(&pane, "y");
    types(&other, "n");
    shows("→ $ until [");
    scene.until("the other was denied", |scene| {
        scene.screen(&other).contains("two@parser is idle")
    });
    assert_eq!(scene.done(), 0);
    // Somebody works on, so that the lead waits.
    types(&other, "once more, please");
    scene.until("it asks again", |scene| {
        scene.screen(&other).matches("y allow once").count() == 2
    });
    interrupts();
    shows("interrupting; press Ctrl-C again");
    shows("one@parser is idle");
    types(&pane, "and now?");
    shows("I heard you.");
    scene.until("it is idle again", |scene| {
        scene.screen(&pane).matches("one@parser is idle").count() == 2
    });
    interrupts();
    shows("press Ctrl-C again to leave;");
    interrupts();
    scene.until("the lead has it", |scene| {
        scene
            .screen("%1")
            .contains("one@parser continues in this process")
    });
    scene.until("its pane is gone", |scene| scene.pane_of("one").is_none());
    types(&other, "y");
    scene.go();
    scene.all_is_over();
    assert_eq!(scene.done(), 1);
}

// proves QU-03 (part: panes)
// proves QU-02 (part: from anywhere)
#[test]
fn questions_of_panes_are_answered_from_another_terminal() {
    let scene = Scene::start("requests", &NAMES[..2], &[]);
    let open = || lines(&scene.project, &["requests", "list", "--json"]);
    scene.until("both ask", |_| open().len() == 2);
    for asked in open() {
        let seconds = waits(&asked).as_secs_f64();
        assert!((599.0..=600.0).contains(&seconds), "{asked}");
        let id = asked["request_id"].as_str().unwrap();
        succeed(&scene.project, &["requests", "answer", id, "allow"]);
    }
    scene.all_work(&NAMES[..2]);
    scene.until("the panes ask no longer", |scene| {
        let told = |name: &str| {
            let pane = scene.pane_of(name).unwrap();
            scene.screen(&pane).contains("→ $ until [")
        };
        told("one") && told("two")
    });
    scene.go();
    scene.all_is_over();
    assert_eq!(scene.done(), 2);
}

// proves TE-07 (part: the pane; the user)
#[test]
fn who_is_forced_to_end_loses_its_pane() {
    let scene = Scene::start("forced", &NAMES[..2], &FREE);
    scene.all_work(&NAMES[..2]);
    let told = scene.project.run(&["team", "stop", "one", "--force"]);
    assert!(told.status.success(), "{}", stderr(&told));
    scene.until("its pane is gone", |scene| scene.pane_of("one").is_none());
    let members = scene.members();
    let names: Vec<&Value> = members.iter().map(|member| &member["name"]).collect();
    assert_eq!(names, ["team-lead", "two"]);
    assert!(scene.pane_of("two").is_some(), "the other works on");
    scene.go();
    scene.all_is_over();
    assert_eq!(scene.done(), 1);
}

// proves TE-09 (part: in-process; tmux; a command; detection; none left)
#[test]
fn every_backend_does_the_job_and_leaves_nothing() {
    let own = |socket: &str| {
        let command = format!(
            r#"["tmux", "-S", "{socket}", "new-window", "-d", "-n", "{{title}}", "--", "{{argv...}}"]"#
        );
        format!(r#"{{"teams": {{"tmux": "window", "backend": "tmux", "paneCommand": {command}}}}}"#)
    };
    let none = |_: &str| "{}".to_owned();
    type Case<'a> = (
        &'a str,
        &'a [&'a str],
        &'a dyn Fn(&str) -> String,
        &'a str,
        &'a [&'a str],
    );
    let cases: [Case<'_>; 5] = [
        ("default", &[], &none, "in-process", &["@0", "@0"]),
        // Nobody sits in front of it.
        ("headless", &[], &own, "in-process", &["@0", "@0"]),
        (
            "split",
            &["--team-backend", "tmux"],
            &none,
            "tmux",
            &["@0", "@0", "@0"],
        ),
        (
            "window",
            &["--team-backend", "tmux"],
            &own,
            "tmux",
            &["@0", "@0", "@1"],
        ),
        (
            "command",
            &["--team-backend", "command"],
            &own,
            "command",
            &["@0", "@0", "@1"],
        ),
    ];
    for (name, flags, settings, backend, windows) in cases {
        let scene = Scene::with(name, &NAMES[..1], &[flags, &FREE].concat(), settings);
        let begun = |scene: &Scene| scene.server.requests().len() >= 4;
        scene.until("the mate works", |scene| {
            begun(scene) && scene.panes("#{window_id}").len() == windows.len()
        });
        assert_eq!(scene.panes("#{window_id}"), windows, "{name}");
        let mate = scene
            .members()
            .into_iter()
            .find(|member| member["name"] == "one")
            .unwrap();
        assert_eq!(mate["backend"], backend, "{name}");
        let is_here = mate["pid"] == scene.pid_of("team-lead");
        assert_eq!(is_here, backend == "in-process", "{name}: {mate}");
        scene.go();
        scene.all_is_over();
        assert!(
            scene.screen("%1").contains("code 0"),
            "{name}: {}",
            scene.screen("%1")
        );
        assert_eq!(scene.done(), 1, "{name}");
    }
}

#[test]
fn panes_that_cannot_be_are_said_to_be_so() {
    let project = Project::new("panes-none", "");
    let output = project.run(&["-p", "--team-backend", "tmux", "x"]);
    let said = stderr(&output);
    assert!(
        said.contains("not started inside tmux") && said.contains("--team-backend in-process"),
        "{said}"
    );
    let output = project.run(&["-p", "--team-backend", "command", "x"]);
    assert!(
        stderr(&output).contains("teams.paneCommand"),
        "{}",
        stderr(&output)
    );
    fs::create_dir_all(project.file("../home")).unwrap();
    fs::write(
        project.file("../home/settings.json"),
        r#"{"teams": {"backend": "tmux"}}"#,
    )
    .unwrap();
    let output = project.run(&["-p", "x"]);
    assert!(
        output.status.success(),
        "nobody looks on: {}",
        stderr(&output)
    );
}
