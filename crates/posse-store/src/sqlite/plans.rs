//! That what is asked often is answered by an index, however much there is.

use posse_port::store::{
    AgentFilter, AgentKey, MailFilter, Page, QuestionFilter, QuestionKey, RequestKey,
    SessionFilter, SessionKey, TeamKey,
};
use posse_protocol::{Name, TaskId};
use rusqlite::Connection;
use uuid::Uuid;

use super::feed::{KEPT, LAST, OLD, ROWS, TRIM};
use super::free::{AHEAD, TASKS};
use super::list::{ANY, ASSIGNED, LOST, MARKED, OWN, paged};
use super::operation::{DOES, HIGHEST};
use super::place::DatabasePlace;
use super::read::{
    MEMBERSHIP, ONE, RUNS, SUBTREE, chosen, mails, newest, notes, open, questions, roots,
};
use super::schema;
use super::step::{HAD, NAMED};

/// Returns what SQLite would do for a query.
fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    let none = std::iter::repeat_n(rusqlite::types::Null, statement.parameter_count());
    let rows = statement
        .query_map(rusqlite::params_from_iter(none), |row| {
            row.get::<_, String>(3)
        })
        .unwrap();
    rows.collect::<Result<Vec<_>, _>>()
        .unwrap()
        .join("; ")
        .replace("COVERING ", "")
}

#[test]
fn what_is_asked_often_is_answered_by_an_index() {
    let place = DatabasePlace::memory().unwrap();
    let connection = place.connect().unwrap();
    schema::bring_up_to_date(&place, &connection).unwrap();
    let (realm, name) = (Some(Uuid::nil().into()), Some("a".parse().unwrap()));
    let agents = |filter: AgentFilter| {
        format!(
            "SELECT model FROM agent {}",
            chosen(&filter, &Page::first(9))
        )
    };
    let held = agents(AgentFilter {
        held: true,
        ..AgentFilter::default()
    });
    let named = agents(AgentFilter {
        realm,
        name,
        ..AgentFilter::default()
    });
    let children = agents(AgentFilter {
        realm,
        parent: Some(Uuid::nil().into()),
        ..AgentFilter::default()
    });
    let row = format!("SELECT model FROM agent {ONE}");
    let with_prefix = agents(AgentFilter {
        id_prefix: Some("01".into()),
        ..AgentFilter::default()
    });
    let unfinished = agents(AgentFilter {
        realm,
        unfinished: true,
        ..AgentFilter::default()
    });
    for (sql, wanted) in [
        (
            AHEAD,
            "SEARCH task USING INDEX task_ahead (realm=? AND owner_agent=?)",
        ),
        (
            HIGHEST,
            "SEARCH used_name USING INDEX used_name_number (realm=? AND team=? AND <expr>=? AND <expr>>? AND <expr><?)",
        ),
        (
            HAD,
            "SEARCH used USING INDEX used_name_anywhere (realm=? AND name=?); \
             SEARCH member USING PRIMARY KEY (realm=? AND team=? AND name=?) LEFT-JOIN",
        ),
        (
            DOES,
            "SEARCH agent USING INDEX agent_host (host=? AND realm=?); \
             SEARCH task USING INDEX task_owner (realm=? AND owner_agent=? AND team=?)",
        ),
        (
            "SELECT agent FROM inbox WHERE host = ?1 AND waiting > 0",
            "SEARCH inbox USING INDEX inbox_news (host=?)",
        ),
        (
            "SELECT realm, team, changed FROM list WHERE changed > ?1 ORDER BY changed",
            "SEARCH list USING INDEX list_changed (changed>?)",
        ),
        (
            TASKS,
            "SEARCH task USING INDEX task_owner (realm=? AND owner_agent=?)",
        ),
        (
            &held,
            "SEARCH agent USING INDEX agent_host (host>?); USE TEMP B-TREE FOR ORDER BY",
        ),
        (
            NAMED,
            "SEARCH agent USING INDEX agent_name (realm=? AND name=?)",
        ),
        (
            &named,
            "SEARCH agent USING INDEX agent_name (realm=? AND name=?)",
        ),
        (
            &children,
            "SEARCH agent USING INDEX agent_parent (realm=? AND parent=?)",
        ),
        (
            &with_prefix,
            "SEARCH agent USING INDEX agent_id (id>? AND id<?); USE TEMP B-TREE FOR ORDER BY",
        ),
        (&row, "SEARCH agent USING INDEX agent_id (id=?)"),
        (
            SUBTREE,
            "CO-ROUTINE subtree; SETUP; SEARCH agent USING INDEX agent_id (id=?); \
             RECURSIVE STEP; SCAN subtree; SEARCH agent USING INDEX agent_parent (realm=? AND parent=?); \
             SCAN subtree; SEARCH total USING PRIMARY KEY (realm=? AND agent=?) LEFT-JOIN; \
             CORRELATED SCALAR SUBQUERY 3; SEARCH entry USING PRIMARY KEY (realm=? AND agent=? AND seq=?)",
        ),
        (
            &unfinished,
            "SEARCH agent USING PRIMARY KEY (realm=? AND id=?); LIST SUBQUERY 2; MERGE (UNION); \
             LEFT; SEARCH agent USING INDEX agent_open (realm=?); \
             RIGHT; SEARCH inbox USING INDEX inbox_waiting (realm=?); USE TEMP B-TREE FOR ORDER BY",
        ),
        (
            MEMBERSHIP,
            "SEARCH m USING INDEX member_agent (realm=? AND agent=?); \
             SEARCH t USING PRIMARY KEY (realm=? AND name=?); \
             SEARCH a USING PRIMARY KEY (realm=? AND id=?) LEFT-JOIN; \
             SEARCH i USING PRIMARY KEY (realm=? AND agent=?) LEFT-JOIN; USE TEMP B-TREE FOR LAST TERM OF ORDER BY",
        ),
        (ROWS, "SEARCH feed USING PRIMARY KEY (realm=? AND number>?)"),
        (LAST, "SEARCH feed USING PRIMARY KEY (realm=?)"),
        (KEPT, "SEARCH feed_head USING PRIMARY KEY (realm=?)"),
        (OLD, "SEARCH feed USING INDEX feed_age (at_ms<?)"),
        (TRIM, "SEARCH feed USING PRIMARY KEY (realm=? AND number<?)"),
        (
            RUNS,
            "SEARCH run USING INDEX run_open (realm=? AND agent=?); USE TEMP B-TREE FOR ORDER BY",
        ),
    ] {
        assert_eq!(plan(&connection, sql), wanted, "{sql}");
    }
}

/// A page of each list, forwards and backwards, follows an index from where it begins: without a
/// scan of what is before it, and without sorting what is after it.
// proves FD-05 (part: SQLite)
#[test]
fn a_page_is_a_range_of_an_index() {
    let place = DatabasePlace::memory().unwrap();
    let connection = place.connect().unwrap();
    schema::bring_up_to_date(&place, &connection).unwrap();
    let check = |sql: [String; 2], wanted: &str| {
        for (sql, wanted) in sql.iter().zip([wanted.to_owned(), turned(wanted)]) {
            assert_eq!(plan(&connection, sql), wanted, "{sql}");
        }
    };
    let sessions = |cwd: Option<&str>| {
        let filter = SessionFilter {
            cwd: cwd.map(Into::into),
            ..SessionFilter::default()
        };
        let row = SessionKey {
            used_ms: 0,
            agent: Uuid::nil().into(),
        };
        both(row).map(|page| format!("SELECT model FROM agent {}", roots(&filter, &page)))
    };
    check(
        sessions(None),
        "SEARCH agent USING INDEX root_used ((used_ms,id)<(?,?))",
    );
    check(
        sessions(Some("/")),
        "SEARCH agent USING INDEX root_cwd (cwd=? AND (used_ms,id)<(?,?))",
    );
    let agents = |realm: bool, parent: bool| {
        let filter = AgentFilter {
            realm: realm.then(|| Uuid::nil().into()),
            parent: parent.then(|| Uuid::nil().into()),
            ..AgentFilter::default()
        };
        let row = AgentKey {
            realm: Uuid::nil().into(),
            path: "/main".into(),
            agent: Uuid::nil().into(),
        };
        both(row).map(|page| format!("SELECT model FROM agent {}", chosen(&filter, &page)))
    };
    check(
        agents(false, false),
        "SEARCH agent USING INDEX agent_path ((realm,path,id)>(?,?,?))",
    );
    check(
        agents(true, false),
        "SEARCH agent USING INDEX agent_path (realm=? AND (path,id)>(?,?))",
    );
    check(
        agents(true, true),
        "SEARCH agent USING INDEX agent_parent (realm=? AND parent=? AND id>?)",
    );
    let tasks = |sql: &str| both(TaskId(1)).map(|page| paged(sql, &page));
    for (sql, wanted) in [
        (
            ANY,
            "SEARCH task USING INDEX task_ready (realm=? AND team=? AND id>?)",
        ),
        (
            MARKED,
            "SEARCH task USING INDEX task_role (realm=? AND team=? AND role=? AND id>?)",
        ),
        (
            OWN,
            "SEARCH task USING INDEX task_own (realm=? AND team=? AND owner_agent=? AND id>?)",
        ),
        (
            ASSIGNED,
            "SEARCH task USING INDEX task_assigned (realm=? AND team=? AND id>?)",
        ),
        (
            LOST,
            "SEARCH task USING INDEX task_lost (realm=? AND team=? AND lost_by=? AND id>?)",
        ),
    ] {
        check(tasks(sql), wanted);
    }
    let mail = |waiting| {
        both(1).map(|page| {
            format!(
                "SELECT body FROM mail {}",
                mails(MailFilter { waiting }, &page)
            )
        })
    };
    check(
        mail(true),
        "SEARCH mail USING INDEX mail_waiting (realm=? AND recipient=? AND number>?)",
    );
    check(
        mail(false),
        "SEARCH mail USING PRIMARY KEY (realm=? AND recipient=? AND number>?)",
    );
    let row: Name = "a".parse().unwrap();
    check(
        both(row.clone()).map(|page| notes(&page)),
        "SEARCH note USING PRIMARY KEY (realm=? AND team=? AND name>?)",
    );
    let teams = |realm: Option<Uuid>| {
        let row = TeamKey {
            created_ms: 0,
            realm: Uuid::nil().into(),
            name: row.clone(),
        };
        let realm = realm.map(Into::into);
        both(row).map(|page| format!("SELECT lead FROM team {}", newest(realm, &page)))
    };
    check(
        teams(None),
        "SEARCH team USING INDEX team_created ((created_ms,realm,name)<(?,?,?))",
    );
    // Those of a session are few.
    check(
        teams(Some(Uuid::nil())),
        "SEARCH team USING PRIMARY KEY (realm=?); USE TEMP B-TREE FOR ORDER BY",
    );
    let requests = |agent: Option<Uuid>| {
        let row = RequestKey {
            asked_ms: 0,
            id: Uuid::nil().into(),
        };
        let agent = agent.map(Into::into);
        both(row).map(|page| format!("SELECT text FROM request {}", open(agent, &page)))
    };
    for agent in [None, Some(Uuid::nil())] {
        check(
            requests(agent),
            "SEARCH request USING PRIMARY KEY (realm=?); USE TEMP B-TREE FOR ORDER BY",
        );
    }
}

/// The pages after and before a row.
fn both<K: Clone>(row: K) -> [Page<K>; 2] {
    [Page::after(row.clone(), 9), Page::before(row, 9)]
}

/// Returns a plan for the other direction.
fn turned(plan: &str) -> String {
    let turn = |letter| match letter {
        '<' => '>',
        '>' => '<',
        letter => letter,
    };
    plan.chars().map(turn).collect()
}

#[test]
fn questions_are_found_by_an_index() {
    let place = DatabasePlace::memory().unwrap();
    let connection = place.connect().unwrap();
    schema::bring_up_to_date(&place, &connection).unwrap();
    let realm = Some(Uuid::nil().into());
    let asked = QuestionKey {
        asked_ms: 0,
        id: Uuid::nil().into(),
    };
    let question = |realm, agent: bool, open| {
        let filter = QuestionFilter {
            realm,
            agent: agent.then(|| Uuid::nil().into()),
            open,
            ..QuestionFilter::default()
        };
        let page = Page::before(asked, 9);
        format!("SELECT answer FROM question {}", questions(&filter, &page))
    };
    let [open, open_in] = [None, realm].map(|realm| question(realm, false, true));
    let (asked_in, own) = (question(realm, false, false), question(realm, true, false));
    for (sql, wanted) in [
        (
            &*open,
            "SEARCH question USING INDEX question_open ((asked_ms,id)<(?,?))",
        ),
        (
            &*open_in,
            "SEARCH question USING INDEX question_open_in (realm=? AND (asked_ms,id)<(?,?))",
        ),
        (
            &*asked_in,
            "SEARCH question USING INDEX question_asked (realm=? AND (asked_ms,id)<(?,?))",
        ),
        (
            &*own,
            "SEARCH question USING INDEX question_agent (realm=? AND agent=? AND (asked_ms,id)<(?,?))",
        ),
    ] {
        assert_eq!(plan(&connection, sql), wanted, "{sql}");
    }
}

#[test]
fn what_is_asked_often_is_prepared_once() {
    let place = DatabasePlace::memory().unwrap();
    let connection = place.connect().unwrap();
    schema::bring_up_to_date(&place, &connection).unwrap();
    for sql in [LAST, ROWS, OLD, MEMBERSHIP] {
        let mut statement = connection.prepare(sql).unwrap();
        for value in 1..4 {
            let values = std::iter::repeat_n(value, statement.parameter_count());
            let found = statement.exists(rusqlite::params_from_iter(values));
            assert_eq!(found, Ok(false));
        }
        let again = statement.get_status(rusqlite::StatementStatus::RePrepare);
        assert_eq!(again, 0, "{sql}");
    }
}
