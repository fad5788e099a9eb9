//! That the one who holds histories against databases would see what is wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use posse_testkit::postgres::{Options, Server, Sync, sql};

use super::history;
use super::hosts::{Fleet, Seat};

/// What is done to a database behind everybody's back, and what is said of it then.
const WRONG: &[(&str, &str)] = &[
    (
        "DELETE FROM posse.mail WHERE number = 1",
        "inboxes are dense",
    ),
    (
        "UPDATE posse.mail SET id = gen_random_uuid() WHERE number = 1",
        "half of it is there",
    ),
    ("DELETE FROM posse.task WHERE id = 1", "tasks are dense"),
    (
        "UPDATE posse.task SET subject = gen_random_uuid() WHERE id = 1",
        "half of it is there",
    ),
    (
        "DELETE FROM posse.entry WHERE seq = 0",
        "transcripts are dense",
    ),
    (
        "UPDATE posse.entry SET checksum = checksum + 1 WHERE seq = 0",
        "posse's own check",
    ),
    (
        "UPDATE posse.entry SET bytes = convert_to(regexp_replace(convert_from(bytes, 'UTF8'), '-7', '-8'), 'UTF8')",
        "entries say which step they are of",
    ),
    (
        "UPDATE posse.charge SET cache_read = cache_read + 1",
        "sums are right",
    ),
    (
        "INSERT INTO audit.step SELECT * FROM audit.step LIMIT 1",
        "no step is done twice",
    ),
    (
        "UPDATE audit.step SET epoch = epoch + 1",
        "of another epoch",
    ),
    (
        "UPDATE audit.step SET lost = true",
        "nobody writes who was taken for dead",
    ),
    ("UPDATE audit.hold SET n = 0", "has changed hands"),
    ("UPDATE audit.hold SET epoch = old_epoch", "has a new epoch"),
    (
        "UPDATE audit.task SET old_status = 1, old_owner = gen_random_uuid() WHERE status = 1",
        "one owner at a time",
    ),
    (
        "UPDATE audit.task SET version = version + 1000 WHERE status = 1",
        "is not Ok(Claimed",
    ),
    (
        "UPDATE audit.task SET old_status = 0 WHERE status = 2",
        "only its owner completes",
    ),
    (
        "INSERT INTO audit.task (realm, id, version, old_status, status, old_owner, owner)
         SELECT realm, id, version + 1, 1, 2, owner, owner FROM audit.task WHERE status = 2",
        "completed once",
    ),
];

#[tokio::test]
async fn what_is_wrong_with_a_fleet_is_seen() {
    let server = Server::start(Options {
        sync: Sync::Off,
        ..Options::default()
    })
    .unwrap();
    let url = server.database("fleet").unwrap();
    let seat = Seat {
        url: url.clone(),
        namespace: None,
    };
    let mut fleet = Fleet::start(&url, Duration::from_secs(1), vec![seat; 2]);
    fleet.progress(300).await;
    fleet.rest();
    history::check(&url, &fleet.histories());
    for (number, (wrong, said)) in WRONG.iter().enumerate() {
        let name = format!("wrong_{number}");
        server
            .sql(&format!("CREATE DATABASE {name} TEMPLATE fleet"))
            .unwrap();
        let url = server.url_of(&name);
        let changed = format!("WITH changed AS ({wrong} RETURNING 1) SELECT count(*) FROM changed");
        // What is done behind the back of all is not noted.
        let changed = sql(
            &url,
            &format!("SET session_replication_role = replica; {changed}"),
        );
        assert_ne!(changed.unwrap(), "0", "{wrong}");
        let checked = catch_unwind(AssertUnwindSafe(|| {
            drop(history::check(&url, &fleet.histories()))
        }));
        let seen = *checked.expect_err(wrong).downcast::<String>().unwrap();
        assert!(seen.contains(said), "{wrong}: {seen}");
    }
}
