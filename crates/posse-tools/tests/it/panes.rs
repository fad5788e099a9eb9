//! Terminals for teammates: a real tmux with a server of its own, and commands of the user's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use posse_port::panes::{NewPane, Panes as _};
use posse_tools::{CommandPanes, Inside, Launch, Place, Template, TmuxPanes, Variable};

/// An empty directory with a short path: a socket has no room for a long one.
fn place() -> PathBuf {
    let id = uuid::Uuid::now_v7().simple().to_string();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("panes-{}", &id[20..]));
    std::fs::create_dir_all(&place).unwrap();
    place
}

fn pane() -> NewPane {
    NewPane {
        session: uuid::Uuid::from_u128(1).into(),
        member: uuid::Uuid::from_u128(2).into(),
        title: "dev@parser".into(),
        color: "orange".into(),
        cwd: "/".into(),
        budget: None,
    }
}

fn launch(command: &[&str]) -> Launch {
    let variable = |name: &str, value: &str, secret| Variable {
        name: name.into(),
        value: value.into(),
        secret,
    };
    Launch {
        command: command.iter().map(OsString::from).collect(),
        environment: vec![
            variable("POSSE_HOME", "/h x", false),
            variable("KEY", "s3cret", true),
        ],
        budgeted: false,
    }
}

fn template(words: &[&str]) -> Template {
    Template::new(words.iter().map(|word| (*word).to_owned()).collect()).unwrap()
}

/// A tmux server; it ends with the test.
struct Server {
    place: PathBuf,
}

impl Server {
    /// With one pane of so many columns and lines, in which a user reads something.
    fn start(columns: u32, lines: u32) -> Self {
        let server = Self { place: place() };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let new = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "user",
            "-x",
            &columns,
            "-y",
            &lines,
        ];
        server.tmux(
            &[
                &new[..],
                &["sh", "-c", "echo the users own words; exec cat"],
            ]
            .concat(),
        );
        server.until("the pane is up", || {
            server
                .tmux(&["capture-pane", "-p", "-t", "%0"])
                .contains("own words")
        });
        server
    }

    #[expect(clippy::disallowed_methods, reason = "a test looks at its own tmux")]
    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let output = command
            .arg("-S")
            .arg(self.place.join("socket"))
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn panes(&self, launch: Launch, place: Place) -> TmuxPanes {
        let inside = Inside::read(
            &format!("{},1,0", self.place.join("socket").display()),
            "%0",
        );
        TmuxPanes::new(inside.unwrap(), place, launch)
    }

    fn list(&self, format: &str) -> Vec<String> {
        self.tmux(&["list-panes", "-a", "-F", format])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{what}: {:?}",
                self.list("#{pane_id} #{pane_title}")
            );
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// Whoever is opened reads its terminal until somebody ends it.
fn waits() -> Launch {
    launch(&["sh", "-c", "exec cat", "sh"])
}

fn mate(name: &str, cwd: &Path) -> NewPane {
    NewPane {
        title: format!("{name}@parser"),
        cwd: cwd.to_owned(),
        ..pane()
    }
}

// proves TE-09 (part: tmux)
#[tokio::test]
async fn panes_stand_beside_the_users_own_which_stays_as_it_was() {
    let server = Server::start(200, 50);
    // Who wants to see the ends of programs wants it of their own.
    server.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    let options = || {
        let shown = [
            ["show-options", "-w", "-t", "%0"],
            ["show-options", "-p", "-t", "%0"],
        ];
        (
            shown.map(|show| server.tmux(&show)),
            server.tmux(&["show-options", "-g"]),
        )
    };
    let (screen, before) = (server.tmux(&["capture-pane", "-p", "-t", "%0"]), options());
    let panes = server.panes(waits(), Place::Split);
    for name in ["one", "two", "three", "four"] {
        panes.open(mate(name, &server.place)).await.unwrap();
    }
    let mut titles =
        server.list("#{window_id} #{pane_title} #{pane_width}x#{pane_height} #{pane_active}");
    titles.remove(0);
    titles.sort();
    assert_eq!(
        titles,
        [
            "@0 four@parser 99x11 0",
            "@0 one@parser 99x12 0",
            "@0 three@parser 99x12 0",
            "@0 two@parser 99x12 0"
        ],
        "a column beside the user's pane, which stays the active one"
    );
    assert_eq!(options(), before, "what the user has set stays");
    assert_eq!(
        server.tmux(&["capture-pane", "-p", "-t", "%0"]).trim(),
        screen.trim(),
        "nothing is typed there"
    );
    assert!(
        server
            .tmux(&["show-options", "-p", "-t", "%1"])
            .contains("fg=colour208")
    );
    for pid in server
        .list("#{pane_id} #{pane_pid}")
        .iter()
        .filter_map(|line| line.strip_prefix("%"))
    {
        if let Some((_, pid)) = pid.split_once(' ').filter(|(id, _)| *id != "0") {
            let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    }
    server.until("all are gone", || server.list("#{pane_id}") == ["%0"]);
    assert_eq!(server.list("#{pane_width}x#{pane_height}"), ["200x50"]);
}

#[tokio::test]
async fn a_window_of_its_own_is_filled_evenly_and_goes_with_the_last() {
    let server = Server::start(120, 40);
    let panes = server.panes(waits(), Place::Window);
    for name in ["one", "two", "three", "four"] {
        panes.open(mate(name, &server.place)).await.unwrap();
    }
    let shown = server
        .list("#{window_id} #{window_name} #{pane_width} #{pane_title} #{pane-border-status}");
    assert_eq!(
        shown
            .iter()
            .filter(|line| line.starts_with("@1 parser ") && line.ends_with("top"))
            .count(),
        4,
        "{shown:?}"
    );
    assert_eq!(
        shown.iter().filter(|line| line.starts_with("@0 ")).count(),
        1,
        "{shown:?}"
    );
    assert!(
        shown
            .iter()
            .skip(1)
            .all(|line| line.contains(" 60 ") || line.contains(" 59 ")),
        "{shown:?}"
    );
    server.tmux(&["kill-window", "-t", "@1"]);
    panes.open(mate("five", &server.place)).await.unwrap();
    assert_eq!(
        server.list("#{window_id}"),
        ["@0", "@2"],
        "a window that is gone is made again"
    );
}

#[tokio::test]
async fn where_there_is_no_room_there_is_a_window_and_dead_panes_are_closed() {
    let server = Server::start(60, 10);
    let panes = server.panes(waits(), Place::Split);
    panes.open(mate("one", &server.place)).await.unwrap();
    assert_eq!(server.list("#{window_id}"), ["@0", "@1"]);
    // Somebody has made tmux keep it.
    server.tmux(&["set-option", "-p", "-t", "%1", "remain-on-exit", "on"]);
    server.tmux(&["respawn-pane", "-k", "-t", "%1", "true"]);
    server.until("it is dead", || server.list("#{pane_dead}") == ["0", "1"]);
    panes.open(mate("two", &server.place)).await.unwrap();
    assert_eq!(
        server.list("#{pane_title} #{pane_dead}")[1..],
        ["two@parser 0"]
    );
}

#[tokio::test]
async fn odd_words_arrive_as_they_are_and_secrets_stand_in_no_command_line() {
    let server = Server::start(200, 50);
    let odd = "it's #(touch run) #{pane_id} $HOME \"x\";\n  y %H";
    let cwd = server.place.join("a#(touch run) it's %H");
    std::fs::create_dir(&cwd).unwrap();
    let writes =
        "printf '%s|%s|%s' \"$1\" \"$KEY\" \"$PWD\" >../said; mv ../said ../done; exec cat";
    let command = ["sh", "-c", writes, "sh", odd].map(OsString::from).to_vec();
    let secret = Variable {
        name: "KEY".into(),
        value: format!("s3cret {odd}").into(),
        secret: true,
    };
    let launch = Launch {
        command,
        environment: vec![secret],
        budgeted: false,
    };
    let strange = NewPane {
        title: "#(touch run)x@#{pane_id}".into(),
        ..mate("x", &cwd)
    };
    server
        .panes(launch, Place::Split)
        .open(strange)
        .await
        .unwrap();
    server.until("it has said so", || server.place.join("done").exists());
    let said = std::fs::read_to_string(server.place.join("done")).unwrap();
    assert_eq!(said, format!("{odd}|s3cret {odd}|{}", cwd.display()));
    assert!(!cwd.join("run").exists() && !server.place.join("run").exists());
    let pid = server.list("#{pane_pid}").pop().unwrap();
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains("s3cret"));
    assert_eq!(server.list("#{pane_title}")[1], "#(touch run)x@#{pane_id}");
}

#[tokio::test]
async fn what_went_wrong_says_what_to_do() {
    let server = Server::start(200, 50);
    let ends = launch(&["true"]);
    let at_once = server.panes(ends, Place::Split);
    // Whether it is noticed is a matter of who is faster.
    let _ = at_once.open(mate("short", &server.place)).await;
    server.until("it is gone", || server.list("#{pane_id}") == ["%0"]);
    let panes = server.panes(waits(), Place::Split);
    server.tmux(&["kill-server"]);
    let said = panes.open(mate("late", &server.place)).await.unwrap_err();
    assert!(
        said.contains("no pane for late@parser") && said.contains("--team-backend in-process"),
        "{said}"
    );
}

#[tokio::test]
async fn a_pane_that_fills_the_window_goes_on_to() {
    let server = Server::start(200, 50);
    server.tmux(&["split-window", "-d", "cat"]);
    server.tmux(&["resize-pane", "-Z", "-t", "%0"]);
    server
        .panes(waits(), Place::Split)
        .open(mate("one", &server.place))
        .await
        .unwrap();
    assert_eq!(server.list("#{pane_id}").len(), 3);
    assert_eq!(
        server.list("#{window_zoomed_flag} #{pane_active}")[0],
        "1 1"
    );
}

// proves TE-09 (part: a command)
#[tokio::test]
async fn the_command_of_the_user_runs_in_its_own_words_and_sees_no_secret() {
    let place = place();
    let pane = NewPane {
        cwd: place.clone(),
        ..pane()
    };
    let writes = [
        "sh",
        "-c",
        "printf '%s\\n' \"$@\" >said",
        "sh",
        "{title}",
        "{argv...}",
    ];
    CommandPanes::new(template(&writes), launch(&["posse", "team", "join"]))
        .open(pane.clone())
        .await
        .unwrap();
    let said = std::fs::read_to_string(place.join("said")).unwrap();
    let (session, member) = (pane.session, pane.member);
    assert_eq!(
        said,
        format!(
            "dev@parser\nenv\nPOSSE_HOME=/h x\nposse\nteam\njoin\n--session\n{session}\n--member\n{member}\n"
        )
    );
    let fails = ["sh", "-c", "echo no display >&2; exit 3", "{command}"];
    let failed = CommandPanes::new(template(&fails), launch(&["posse", "team", "join"]))
        .open(pane.clone())
        .await;
    let failed = failed.unwrap_err();
    assert!(
        failed.contains("no display") && failed.contains("teams.paneCommand"),
        "{failed}"
    );
    let missing = CommandPanes::new(
        template(&["no-such-terminal", "{command}"]),
        launch(&["posse", "team", "join"]),
    );
    assert!(
        missing
            .open(pane)
            .await
            .unwrap_err()
            .contains("not in the PATH")
    );
    std::fs::remove_dir_all(place).unwrap();
}
