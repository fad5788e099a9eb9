//! A fleet of hosts on one PostgreSQL server that do things at random, while hosts, connections and servers are killed.
//! What each began and what it was told is then held against the database.

mod history;
mod hosts;
mod late;
mod lease;
mod network;
mod pages;
mod seen;
mod tenants;
mod tls;
mod wire;

use nix::sys::signal::Signal;
use posse_testkit::postgres::{Options, Server};

use self::hosts::Fleet;

/// Steps between two faults.
const STEPS: u64 = 60;

/// Hosts are killed, and others take their places.
async fn hosts_are_killed(kills: u64) -> String {
    let server = Server::start(Options::default()).unwrap();
    let mut fleet = Fleet::here(&server.url());
    for _ in 0..kills {
        fleet.progress(STEPS / 2).await;
        fleet.replace_one();
    }
    fleet.progress(STEPS).await;
    let verdict = fleet.end();
    assert_eq!(verdict.before, 0, "no answer was lost: {verdict}");
    format!("{kills} hosts killed: {verdict}")
}

/// Connections are cut by the server, whatever they are doing.
async fn connections_are_cut(cuts: u64) -> String {
    let server = Server::start(Options::default()).unwrap();
    let mut fleet = Fleet::here(&server.url());
    let (mut cut, mut busy) = (0, 0);
    while cut < cuts {
        fleet.progress(STEPS / 4).await;
        let sql = "SELECT count(*), count(*) FILTER (WHERE state = 'active' AND query LIKE 'SELECT write%')
                   FROM (SELECT state, query, pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE application_name = 'posse' ORDER BY state, random() LIMIT 5) cut";
        let told = fleet.sql(sql);
        let (all, writing) = told.split_once('|').unwrap();
        cut += all.parse::<u64>().unwrap();
        busy += writing.parse::<u64>().unwrap();
    }
    assert!(busy > 0, "none was cut while it wrote");
    fleet.progress(STEPS).await;
    format!(
        "{cut} connections cut, {busy} of them while they wrote: {}",
        fleet.end()
    )
}

/// The whole server is killed, and started again.
async fn the_server_is_killed(kills: u64) -> String {
    let mut server = Server::start(Options::default()).unwrap();
    let mut fleet = Fleet::here(&server.url());
    for _ in 0..kills {
        fleet.progress(STEPS).await;
        server.kill9().unwrap();
        server.restart().unwrap();
    }
    fleet.progress(STEPS).await;
    format!("the server killed {kills} times: {}", fleet.end())
}

/// The server is killed for good, and the one that followed it takes its place.
async fn a_standby_is_promoted() -> String {
    let mut first = Server::start(Options::default()).unwrap();
    let second = first.standby().unwrap();
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        first.port(),
        second.port()
    );
    let mut fleet = Fleet::here(&url);
    fleet.progress(STEPS * 5).await;
    first.kill9().unwrap();
    // What follows a dead server waits for no other.
    second.promote().unwrap();
    fleet.progress(STEPS * 5).await;
    format!("a standby promoted: {}", fleet.end())
}

/// Hosts are stopped until others have taken them for dead, and go on then.
async fn hosts_are_stopped(stops: u64) -> String {
    let server = Server::start(Options::default()).unwrap();
    let mut fleet = Fleet::here(&server.url());
    for stop in 0..stops {
        fleet.progress(STEPS).await;
        let number = (stop % fleet.len()) as usize;
        let told = fleet.told(number);
        fleet.signal(number, Signal::SIGSTOP);
        let lost = format!(
            "SELECT count(*) FROM posse.host WHERE pid = {} AND lost_at IS NULL AND id IN (SELECT host FROM posse.pulse)",
            fleet.pid(number)
        );
        fleet
            .until("it is taken for dead", |fleet| fleet.sql(&lost) == "0")
            .await;
        fleet.signal(number, Signal::SIGCONT);
        fleet
            .until("it is told", |fleet| fleet.told(number) > told)
            .await;
    }
    fleet.progress(STEPS).await;
    let verdict = fleet.end();
    assert!(verdict.fenced >= stops, "{verdict}");
    assert_eq!(verdict.before, 0, "no answer was lost: {verdict}");
    format!("{stops} hosts stopped past their lease: {verdict}")
}

#[tokio::test]
async fn a_fleet_loses_nothing_when_hosts_are_killed() {
    eprintln!("{}", hosts_are_killed(6).await);
}

#[tokio::test]
async fn a_fleet_loses_nothing_when_connections_are_cut() {
    eprintln!("{}", connections_are_cut(40).await);
}

#[tokio::test]
async fn a_fleet_loses_nothing_when_the_server_is_killed() {
    eprintln!("{}", the_server_is_killed(3).await);
}

#[tokio::test]
async fn a_fleet_loses_nothing_when_a_standby_is_promoted() {
    eprintln!("{}", a_standby_is_promoted().await);
}

#[tokio::test]
async fn a_host_that_was_stopped_writes_nothing_when_it_goes_on() {
    eprintln!("{}", hosts_are_stopped(2).await);
}

#[tokio::test]
#[ignore = "the long form: `cargo xtask faults postgres`"]
async fn a_fleet_under_many_faults() {
    eprintln!("{}", hosts_are_killed(200).await);
    eprintln!("{}", connections_are_cut(500).await);
    eprintln!("{}", hosts_are_stopped(20).await);
    for _ in 0..5 {
        eprintln!("{}", a_standby_is_promoted().await);
    }
}

#[tokio::test]
#[ignore = "the long form: `cargo xtask faults postgres`"]
async fn a_fleet_whose_server_is_killed_many_times() {
    eprintln!(
        "{}",
        the_server_is_killed(crate::asked("POSSE_KILLS", 50)).await
    );
}
