//! What PostgreSQL's functions work out by themselves is what the protocol says.

use posse_protocol::{Name, team};
use posse_store::Postgres;
use posse_testkit::postgres::Database;

/// What an expression gives for each of some numbers, in lines.
fn each(database: &Database, expression: &str, numbers: &str) -> Vec<String> {
    let sql = format!(
        "SELECT {expression} FROM unnest('{{{numbers}}}'::int[]) WITH ORDINALITY x(n, at) ORDER BY at"
    );
    database
        .sql(&sql)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn colours_and_numbered_names_are_the_protocols() {
    let database = Database::new().unwrap();
    drop(Postgres::open(database.url()).unwrap());
    let numbers: Vec<usize> = (0..2000).collect();
    let list = numbers
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let colors: Vec<String> = numbers.into_iter().map(team::color).collect();
    assert_eq!(each(&database, "posse.color(n)", &list), colors);

    for length in [1, 53, 54, 60, 61, 62, 63, 64] {
        let wished: Name = "n".repeat(length).parse().unwrap();
        let names =
            [2, 9, 10, 99_999, 1_000_000_000].map(|number| wished.numbered(number).to_string());
        let found = each(
            &database,
            &format!("posse.numbered('{wished}', n)"),
            "2,9,10,99999,1000000000",
        );
        assert_eq!(found, names);
    }
}
