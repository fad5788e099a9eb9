//! The servers that tests of PostgreSQL stand on: they do what they say, and nothing of them is left.

#![expect(clippy::disallowed_methods, reason = "it is about processes")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use posse_testkit::postgres::{Database, Options, Server, sql};

#[test]
fn each_test_has_a_database_of_its_own() {
    let (one, other) = (Database::empty().unwrap(), Database::empty().unwrap());
    one.sql("CREATE TABLE mine (x int)").unwrap();
    one.sql("INSERT INTO mine VALUES (1), (2)").unwrap();
    assert_eq!(
        one.sql("SELECT x, 'b' FROM mine ORDER BY x").unwrap(),
        "1|b\n2|b"
    );
    assert!(
        other
            .sql("SELECT x FROM mine")
            .unwrap_err()
            .to_string()
            .contains("does not exist")
    );
    let url = one.url().to_owned();
    drop(one);
    assert!(sql(&url, "SELECT 1").is_err(), "it went with its owner");
}

#[test]
fn a_server_that_is_killed_comes_back_with_all_it_acknowledged() {
    let mut server = Server::start(Options::default().set("wal_sync_method", "fdatasync")).unwrap();
    assert_eq!(server.sql("SHOW fsync").unwrap(), "on");
    let url = server.database("one").unwrap();
    sql(&url, "CREATE TABLE kept AS SELECT 7 AS x").unwrap();
    server.kill9().unwrap();
    assert!(sql(&url, "SELECT 1").is_err());
    server.restart().unwrap();
    assert_eq!(sql(&url, "SELECT x FROM kept").unwrap(), "7");
    let first = server.postmaster();
    server.restart().unwrap();
    assert_ne!(server.postmaster(), first);
    assert_eq!(sql(&url, "SELECT x FROM kept").unwrap(), "7");
}

#[test]
fn a_standby_has_what_its_server_acknowledged() {
    let mut server = Server::start(Options::default()).unwrap();
    let standby = server.standby().unwrap();
    server.sql("CREATE TABLE kept AS SELECT 7 AS x").unwrap();
    assert!(
        standby
            .sql("CREATE TABLE refused (x int)")
            .unwrap_err()
            .to_string()
            .contains("read-only")
    );
    server.kill9().unwrap();
    standby.promote().unwrap();
    assert_eq!(
        standby
            .sql("INSERT INTO kept VALUES (8) RETURNING x")
            .unwrap(),
        "8"
    );
    assert_eq!(
        standby.sql("SELECT x FROM kept ORDER BY x").unwrap(),
        "7\n8"
    );
}

#[test]
fn a_server_with_tls_talks_over_nothing_else() {
    let server = Server::start(Options {
        tls: true,
        ..Options::default()
    })
    .unwrap();
    let authority = server.authority();
    let verified = format!("{}&sslrootcert={}", server.url(), authority.display());
    let verified = verified.replace("sslmode=require", "sslmode=verify-full");
    assert_eq!(
        sql(
            &verified,
            "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        )
        .unwrap(),
        "t"
    );
    let plain = server.url().replace("sslmode=require", "sslmode=disable");
    assert!(sql(&plain, "SELECT 1").is_err());
}

/// A keeper with a server of its own.
fn keeper(files: &Path) -> (Child, PathBuf) {
    let keeper = Command::new(env!("CARGO_BIN_EXE_postgres-keeper"))
        .arg("share")
        .arg(files)
        .stdout(Stdio::piped())
        .spawn();
    let mut keeper = keeper.unwrap();
    let mut said = String::new();
    BufReader::new(keeper.stdout.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert_eq!(said, "ready\n");
    let address = fs::read_to_string(files.join("address")).unwrap();
    let data = sql(
        &format!("postgres://postgres@{address}/postgres"),
        "SHOW data_directory",
    )
    .unwrap();
    (keeper, PathBuf::from(data))
}

#[test]
fn nothing_is_left_of_the_server_of_a_keeper_that_is_killed() {
    let files = tempfile::tempdir().unwrap();
    let (mut killed, data) = keeper(files.path());
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Its guard does the rest.
    while data.parent().unwrap().exists() {
        std::thread::yield_now();
    }
    let (mut told, next) = keeper(files.path());
    assert_ne!(next, data);
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(told.id().cast_signed()),
        nix::sys::signal::SIGTERM,
    )
    .unwrap();
    assert!(told.wait().unwrap().success());
    assert!(!next.parent().unwrap().exists());
}

#[test]
fn a_keeper_ends_when_nobody_uses_its_server() {
    let files = tempfile::tempdir().unwrap();
    let users = fs::File::create(files.path().join("users")).unwrap();
    users.lock_shared().unwrap();
    let (mut keeper, data) = keeper(files.path());
    assert_eq!(keeper.try_wait().unwrap(), None);
    drop(users);
    assert!(keeper.wait().unwrap().success());
    assert!(!data.exists());
}

#[test]
fn a_database_is_lent_to_other_programs() {
    let mut keeper = Command::new(env!("CARGO_BIN_EXE_postgres-keeper"))
        .arg("database")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(keeper.stdout.take().unwrap());
    let mut url = String::new();
    output.read_line(&mut url).unwrap();
    assert_eq!(sql(url.trim(), "SELECT 1").unwrap(), "1");
    drop(keeper.stdin.take());
    assert!(keeper.wait().unwrap().success());
    assert_eq!(output.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(sql(url.trim(), "SELECT 1").is_err());
}
