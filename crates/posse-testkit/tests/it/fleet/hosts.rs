//! The processes of a fleet: started, killed, stopped, and looked at.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use posse_port::clock::{Clock as _, SystemClock};
use posse_testkit::fleet::draw;
use posse_testkit::postgres::sql;
use tempfile::TempDir;

use super::history::{self, Verdict};

/// Agents of each host.
const PLACES: u64 = 4;
/// What is waited for comes within this.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where a host's process runs, and how it gets to the server.
#[derive(Clone)]
pub(super) struct Seat {
    pub(super) url: String,
    /// The network namespace.
    pub(super) namespace: Option<String>,
}

pub(super) struct Fleet {
    /// Where a test looks.
    url: String,
    lease: Duration,
    seats: Vec<Seat>,
    hosts: Vec<Child>,
    directory: TempDir,
    started: u64,
    seed: u64,
}

impl Fleet {
    /// Sets up a database and starts a host in each seat.
    pub(super) fn start(url: &str, lease: Duration, seats: Vec<Seat>) -> Self {
        let (directory, count) = (tempfile::tempdir().unwrap(), seats.len());
        let mut fleet = Self {
            url: url.to_owned(),
            lease,
            seats,
            hosts: Vec::new(),
            directory,
            started: 0,
            seed: 0x9e37_79b9_7f4a_7c15,
        };
        let prepare = ["prepare", url, &count.to_string(), &PLACES.to_string()];
        assert!(
            fleet
                .program(None)
                .args(prepare)
                .status()
                .unwrap()
                .success()
        );
        history::audit(url);
        fleet.hosts = (0..count).map(|number| fleet.launch(number)).collect();
        fleet
    }

    /// Eight of them on this machine.
    pub(super) fn here(url: &str) -> Self {
        let seat = Seat {
            url: url.to_owned(),
            namespace: None,
        };
        Self::start(url, Duration::from_secs(1), vec![seat; 8])
    }

    #[expect(clippy::disallowed_methods, reason = "stands for other machines")]
    fn program(&self, namespace: Option<&str>) -> Command {
        let own = env!("CARGO_BIN_EXE_fleet-work");
        match namespace {
            None => Command::new(own),
            Some(namespace) => {
                let mut command = Command::new("ip");
                // It becomes the program: there is no process between.
                command.args(["netns", "exec", namespace, own]);
                command
            }
        }
    }

    fn launch(&mut self, number: usize) -> Child {
        self.started += 1;
        let Seat { url, namespace } = self.seats[number].clone();
        let seed = draw(&mut self.seed, u64::MAX);
        let file = self.histories().join(format!("{number}-{}", self.started));
        let complaint = File::create(
            self.directory
                .path()
                .join(format!("said-{number}-{}", self.started)),
        )
        .unwrap();
        std::fs::create_dir_all(self.histories()).unwrap();
        let mut command = self.program(namespace.as_deref());
        command
            .arg("work")
            .arg(url)
            .arg(file)
            .arg(number.to_string())
            .arg(self.seats.len().to_string());
        command
            .arg(PLACES.to_string())
            .arg(self.lease.as_millis().to_string())
            .arg(seed.to_string());
        command
            .stdin(Stdio::piped())
            .stderr(complaint)
            .spawn()
            .unwrap()
    }

    pub(super) fn histories(&self) -> PathBuf {
        self.directory.path().join("histories")
    }

    pub(super) fn sql(&self, statement: &str) -> String {
        sql(&self.url, statement).unwrap()
    }

    pub(super) fn len(&self) -> u64 {
        self.hosts.len() as u64
    }

    pub(super) fn pid(&self, number: usize) -> u32 {
        self.hosts[number].id()
    }

    /// Kills one of the hosts at once, and starts another in its place.
    pub(super) fn replace_one(&mut self) {
        let number = draw(&mut self.seed, self.hosts.len() as u64) as usize;
        self.is_alive(number);
        self.hosts[number].kill().unwrap();
        self.hosts[number].wait().unwrap();
        self.hosts[number] = self.launch(number);
    }

    pub(super) fn signal(&self, number: usize, signal: Signal) {
        kill(Pid::from_raw(self.pid(number) as i32), signal).unwrap();
    }

    fn is_alive(&mut self, number: usize) {
        if let Some(status) = self.hosts[number].try_wait().unwrap() {
            panic!(
                "host {number} has ended by itself: {status}: {}",
                self.said()
            );
        }
    }

    /// What hosts have complained of.
    fn said(&self) -> String {
        let files = std::fs::read_dir(self.directory.path())
            .unwrap()
            .map(|file| file.unwrap().path());
        let read = |path: PathBuf| {
            if path.is_file() {
                std::fs::read_to_string(path).unwrap()
            } else {
                String::new()
            }
        };
        files.map(read).collect()
    }

    /// Steps that are committed.
    pub(super) fn steps(&self) -> u64 {
        self.sql("SELECT count(*) FROM audit.step").parse().unwrap()
    }

    /// Waits until so many more steps are committed.
    pub(super) async fn progress(&mut self, steps: u64) {
        let wanted = self.steps() + steps;
        self.until("it goes on", |fleet| fleet.steps() >= wanted)
            .await;
        (0..self.hosts.len()).for_each(|number| self.is_alive(number));
    }

    /// How often the hosts of a place were told that they are taken for dead.
    pub(super) fn told(&self, number: usize) -> usize {
        let name = format!("{number}-");
        let files = std::fs::read_dir(self.histories())
            .unwrap()
            .map(|file| file.unwrap());
        let files = files.filter(|file| file.file_name().to_string_lossy().starts_with(&name));
        let told = |path: PathBuf| {
            std::fs::read_to_string(path)
                .unwrap()
                .lines()
                .filter(|line| *line == "\"Fenced\"")
                .count()
        };
        files.map(|file| told(file.path())).sum()
    }

    /// Waits until something is so: of what goes on in other processes nobody tells a test.
    pub(super) async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let (begun, clock) = (Instant::now(), SystemClock::default());
        while !is(self) {
            assert!(begun.elapsed() < PATIENCE, "{what}: {}", self.said());
            clock.sleep(Duration::from_millis(100)).await;
        }
    }

    /// Has all of them end in order, and holds what they wrote down against the database.
    pub(super) fn end(mut self) -> Verdict {
        self.rest();
        history::check(&self.url, &self.histories())
    }

    /// Has all of them end in order.
    pub(super) fn rest(&mut self) {
        for host in &mut self.hosts {
            drop(host.stdin.take());
        }
        for (number, host) in self.hosts.iter_mut().enumerate() {
            let status = host.wait().unwrap();
            assert!(status.success(), "host {number}: {status}");
        }
        // What one held that was killed, or taken for dead in another realm, waits for who wants it.
        let pids = self
            .hosts
            .iter()
            .map(|host| host.id().to_string())
            .collect::<Vec<_>>()
            .join(",");
        let held = format!(
            "SELECT count(*) FROM posse.pulse p JOIN posse.host h ON h.id = p.host
             WHERE h.lost_at IS NULL AND h.pid IN ({pids})"
        );
        assert_eq!(self.sql(&held), "0", "who ends in order holds nothing");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            drop(host.kill());
            drop(host.wait());
        }
    }
}
