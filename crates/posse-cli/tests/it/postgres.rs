//! A store on a server: the same commands, and what is said when it cannot be used.

use std::process::Output;
use std::time::{Duration, Instant};

use posse_testkit::postgres::Database;
use serde_json::Value;

use crate::binary::{Project, stderr, stdout};

fn at(project: &Project, url: &str, arguments: &[&str]) -> Output {
    project
        .posse(arguments)
        .env("POSSE_STORE", url)
        .output()
        .unwrap()
}

fn succeed(project: &Project, url: &str, arguments: &[&str]) -> String {
    let output = at(project, url, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output)
}

#[test]
fn sessions_are_kept_on_a_server_and_looked_after() {
    let database = Database::empty().unwrap();
    let project = Project::new("postgres-kept", "");
    let (url, flag) = (database.url(), format!("--store={}", database.url()));
    succeed(&project, "nonsense", &["-p", "hello", &flag]);
    let listed = succeed(&project, url, &["sessions", "list", "--json"]);
    let session: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = session["session_id"].as_str().unwrap();
    succeed(&project, url, &["-p", "and more", "--resume", id]);
    assert!(succeed(&project, url, &["sessions", "show", id]).contains("and more"));
    assert!(succeed(&project, url, &["store", "check"]).contains("is intact: 1 agent"));
    assert!(succeed(&project, url, &["store", "migrate"]).contains("is up to date"));
    assert!(succeed(&project, url, &["doctor"]).contains("answers"));
    // A copy, made anew in another database, is the same.
    succeed(&project, url, &["store", "backup", "copy.dump"]);
    let other = Database::empty().unwrap();
    let restore = ["--no-owner", "-d", other.url(), "copy.dump"];
    let restored = std::process::Command::new("pg_restore")
        .args(restore)
        .current_dir(project.file(""))
        .output();
    assert!(
        restored.as_ref().unwrap().status.success(),
        "{}",
        stderr(&restored.unwrap())
    );
    assert_eq!(
        succeed(&project, other.url(), &["sessions", "show", id, "--json"]),
        succeed(&project, url, &["sessions", "show", id, "--json"])
    );
    assert!(succeed(&project, other.url(), &["store", "check"]).contains("is intact"));
    succeed(&project, url, &["store", "gc", "--older-than", "0s"]);
    assert_eq!(succeed(&project, url, &["sessions", "list", "--json"]), "");
}

#[test]
fn what_is_wrong_with_a_server_is_said_soon_and_without_the_password() {
    let database = Database::new().unwrap();
    database
        .sql("DROP ROLE IF EXISTS nobody_of_posse; CREATE ROLE nobody_of_posse LOGIN")
        .unwrap();
    let empty = Database::empty().unwrap();
    let project = Project::new("postgres-wrong", "");
    let server = database
        .url()
        .split_once('@')
        .unwrap()
        .1
        .split_once('/')
        .unwrap()
        .0
        .to_owned();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let as_nobody = empty
        .url()
        .replacen("postgres@", "nobody_of_posse:s3cret@", 1);
    let wrong = [
        (
            format!("postgres://me:s3cret@127.0.0.1:{free}/db"),
            "refused",
            "pg_isready",
        ),
        (
            "postgres://me:s3cret@no.such.host.invalid/db".to_owned(),
            "lookup",
            "the host name",
        ),
        (
            format!("postgres://postgres:s3cret@{server}/no_such_db"),
            "does not exist",
            "createdb",
        ),
        (
            format!("postgres://postgres:s3cret@{server}/postgres?sslmode=require"),
            "TLS",
            "sslrootcert",
        ),
        (
            format!("postgres://no_such_role:s3cret@{server}/postgres"),
            "no_such_role",
            "PGPASSWORD",
        ),
        (as_nobody, "permission denied", "GRANT CREATE"),
    ];
    for (url, what, advice) in wrong {
        let begun = Instant::now();
        let output = at(&project, &url, &["team", "list", "--all", "--json"]);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{url}: {said}");
        assert!(
            said.contains(what) && said.contains(advice),
            "{url}: {said}"
        );
        assert!(!said.contains("s3cret"), "{url}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(12), "{url}");
    }
    database.sql("DROP ROLE nobody_of_posse").unwrap();
}
