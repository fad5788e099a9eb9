//! Two hosts in network namespaces of their own, whose links to the server can be cut.

use std::process::Command;
use std::time::Duration;

use posse_port::store::StoreError;
use posse_store::Postgres;
use posse_testkit::postgres::{Options, Server};

use super::hosts::{Fleet, Seat};

/// How a link is cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Both ends see that it is down.
    Down,
    /// What is sent goes nowhere, and nobody is told.
    Silent,
}

/// A switch with a socket for each of two hosts.
struct Network {
    name: String,
    address: String,
}

/// Runs a command of `ip`, which must succeed: without namespaces nothing is shown here.
#[expect(clippy::disallowed_methods, reason = "sets up a network")]
fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.expect("`ip` is needed: apt-get install iproute2");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "ip {words}: {said} (network namespaces are needed, and so is root)"
    );
}

impl Network {
    fn new() -> Self {
        let pid = std::process::id();
        let (name, net) = (format!("posse{pid}"), pid % 250);
        let network = Self {
            address: format!("10.213.{net}.1"),
            name,
        };
        network.forget_others();
        let bridge = &network.name;
        ip(&format!("link add {bridge} type bridge"));
        ip(&format!("address add {}/24 dev {bridge}", network.address));
        ip(&format!("link set {bridge} up"));
        for host in 0..2 {
            let (space, port) = (network.space(host), network.port(host));
            ip(&format!("netns add {space}"));
            ip(&format!(
                "link add {port} type veth peer name eth0 netns {space}"
            ));
            ip(&format!("link set {port} master {bridge}"));
            ip(&format!("link set {port} up"));
            ip(&format!(
                "-n {space} address add 10.213.{net}.{}/24 dev eth0",
                host + 2
            ));
            ip(&format!("-n {space} link set eth0 up"));
            ip(&format!("-n {space} link set lo up"));
        }
        network
    }

    fn space(&self, host: usize) -> String {
        format!("{}-{host}", self.name)
    }

    fn port(&self, host: usize) -> String {
        format!("{}p{host}", self.name)
    }

    /// Removes what a test has left that was killed.
    fn forget_others(&self) {
        let spaces = std::fs::read_dir("/run/netns").into_iter().flatten();
        for space in spaces.map(|space| space.unwrap().file_name().into_string().unwrap()) {
            let owner = space
                .strip_prefix("posse")
                .and_then(|rest| rest.split_once('-'));
            if let Some((pid, _)) = owner
                && !std::path::Path::new("/proc").join(pid).exists()
            {
                Self {
                    name: format!("posse{pid}"),
                    address: String::new(),
                };
            }
        }
    }

    fn cut(&self, host: usize, cut: Cut) {
        match cut {
            Cut::Down => ip(&format!("link set {} down", self.port(host))),
            Cut::Silent => ip(&format!("link set {} nomaster", self.port(host))),
        }
    }

    fn restore(&self, host: usize, cut: Cut) {
        match cut {
            Cut::Down => ip(&format!("link set {} up", self.port(host))),
            Cut::Silent => ip(&format!(
                "link set {} master {}",
                self.port(host),
                self.name
            )),
        }
    }
}

impl Drop for Network {
    #[expect(clippy::disallowed_methods, reason = "removes a network")]
    fn drop(&mut self) {
        let remove = |words: &str| drop(Command::new("ip").args(words.split(' ')).output());
        for host in 0..2 {
            remove(&format!("netns delete {}", self.space(host)));
        }
        remove(&format!("link delete {}", self.name));
    }
}

/// A host is cut off for longer than its lease, and comes back.
async fn a_link_is_cut(how: Cut, cuts: u64) -> String {
    let network = Network::new();
    let listens = Options::default().set(
        "listen_addresses",
        &format!("127.0.0.1,{}", network.address),
    );
    let server = Server::start(listens).unwrap();
    let url = format!(
        "postgres://postgres@{}:{}/postgres",
        network.address,
        server.port()
    );
    let unencrypted = Postgres::open(&url)
        .err()
        .expect("to another machine nothing goes unencrypted");
    assert!(
        matches!(unencrypted, StoreError::Engine { .. }),
        "{unencrypted:?}"
    );
    let seat = |host| Seat {
        url: format!("{url}?sslmode=disable"),
        namespace: Some(network.space(host)),
    };
    let mut fleet = Fleet::start(
        &server.url(),
        Duration::from_secs(1),
        vec![seat(0), seat(1)],
    );
    for cut in 0..cuts {
        let cut_off = (cut % 2) as usize;
        fleet.progress(50).await;
        let told = fleet.told(cut_off);
        network.cut(cut_off, how);
        let hosts = format!(
            "SELECT id FROM posse.host WHERE pid = {}",
            fleet.pid(cut_off)
        );
        let host = fleet.sql(&format!("{hosts} AND lost_at IS NULL"));
        let mark = fleet.sql("SELECT coalesce(max(n), 0) FROM audit.hold");
        let held = format!("SELECT count(*) FROM posse.pulse WHERE host = '{host}'");
        fleet
            .until("its agents are taken over", |fleet| fleet.sql(&held) == "0")
            .await;
        let steps = fleet.steps();
        fleet
            .until("the other goes on", |fleet| fleet.steps() > steps + 20)
            .await;
        network.restore(cut_off, how);
        fleet
            .until("it is told", |fleet| fleet.told(cut_off) > told)
            .await;
        let anew = format!(
            "SELECT count(*) > 0 FROM posse.pulse WHERE host IN ({hosts} AND id > '{host}')"
        );
        fleet
            .until("it goes on as another host", |fleet| {
                fleet.sql(&anew) == "t"
            })
            .await;
        let lost = format!("SELECT agent FROM audit.hold WHERE n > {mark} AND old_host = '{host}'");
        let twice = fleet.sql(&format!("{lost} GROUP BY agent HAVING count(*) > 1"));
        assert_eq!(twice, "", "each is taken over once");
        assert_ne!(fleet.sql(&lost), "");
    }
    fleet.progress(50).await;
    let verdict = fleet.end();
    assert!(verdict.refused > 0, "nobody came late: {verdict}");
    format!("{cuts} links cut, {how:?}: {verdict}")
}

#[tokio::test]
async fn who_was_cut_off_writes_nothing_when_the_link_is_back() {
    eprintln!("{}", a_link_is_cut(Cut::Down, 1).await);
}

#[tokio::test]
async fn who_was_cut_off_silently_writes_nothing_when_the_link_is_back() {
    eprintln!("{}", a_link_is_cut(Cut::Silent, 1).await);
}

#[tokio::test]
#[ignore = "the long form: `cargo xtask faults postgres`"]
async fn a_fleet_whose_links_are_cut_many_times() {
    for how in [Cut::Down, Cut::Silent] {
        eprintln!("{}", a_link_is_cut(how, 10).await);
    }
}
