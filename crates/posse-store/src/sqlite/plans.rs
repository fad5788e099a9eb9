//! That what is asked often is answered by an index, however much there is.

use rusqlite::Connection;

use super::free::TASKS;
use super::operation::{DOES, NEXT};
use super::place::Place;
use super::read::{HELD, WAITING};
use super::schema;

/// What SQLite would do for a query.
fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let none = std::iter::repeat_n(rusqlite::types::Null, statement.parameter_count());
    let rows = statement.query_map(rusqlite::params_from_iter(none), |row| row.get::<_, String>(3)).unwrap();
    rows.collect::<Result<Vec<_>, _>>().unwrap().join("; ").replace("COVERING ", "")
}

#[test]
fn what_is_asked_often_is_answered_by_an_index() {
    let place = Place::memory().unwrap();
    let connection = place.connect().unwrap();
    schema::bring_up_to_date(&place, &connection).unwrap();
    let waiting = format!("SELECT body FROM mail {WAITING}");
    let held = format!("SELECT id FROM agent {HELD} WHERE host IS NOT NULL");
    for (sql, wanted) in [
        (NEXT, "SEARCH task USING INDEX task_ready (realm=? AND team=?)"),
        (
            DOES,
            "SEARCH agent USING INDEX agent_host (host=? AND realm=?); \
             SEARCH task USING INDEX task_owner (realm=? AND owner_agent=? AND team=?)",
        ),
        (&waiting, "SEARCH mail USING INDEX mail_waiting (realm=? AND recipient=? AND number>?)"),
        (
            "SELECT agent FROM inbox WHERE host = ?1 AND waiting > 0",
            "SEARCH inbox USING INDEX inbox_news (host=?)",
        ),
        (
            "SELECT realm, team, changed FROM list WHERE changed > ?1 ORDER BY changed",
            "SEARCH list USING INDEX list_changed (changed>?)",
        ),
        (TASKS, "SEARCH task USING INDEX task_owner (realm=? AND owner_agent=?)"),
        (&held, "SEARCH agent USING INDEX agent_host (host>?)"),
    ] {
        assert_eq!(plan(&connection, sql), wanted, "{sql}");
    }
}
