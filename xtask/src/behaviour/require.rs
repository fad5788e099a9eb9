//! The list of what must be proven, and what of it may still be open.
//!
//! An entry is a group (`TU`), a statement (`AG-07`), or a statement with its open parts in
//! parentheses (`PE-05(web,ACP)`). Open parts can only become fewer: their words are fixed here, and
//! a part that a test proves may no longer be listed as open.

use super::{Proof, Statement};

/// What is not built yet. A part may be open only if it is one of these.
const OPEN_WORDS: &[&str] = &[
    "remote",
    "web",
    "ACP",
    "spans",
    "plugins",
    "assistant",
    "coordinator",
    "suggestion",
    "terminal",
    "hooks",
    "servers",
    // Servers ask people; there are none yet.
    "Elicitation",
    // Teams' files refuse `owns` as not built yet.
    "ownership",
];

#[derive(Debug, PartialEq)]
struct Entry<'a> {
    wanted: &'a str,
    open: Vec<&'a str>,
}

/// Returns what is required and not proven, and which open words are wrong.
pub(super) fn faults(required: &str, statements: &[(Statement, Proof)]) -> Vec<String> {
    let mut faults = Vec::new();
    let entries = match entries(required) {
        Ok(entries) => entries,
        Err(fault) => return vec![fault],
    };
    for Entry { wanted, open } in &entries {
        let group = format!("{wanted}-");
        let of_group: Vec<_> = statements
            .iter()
            .filter(|(statement, _)| statement.id.starts_with(&group))
            .collect();
        let named = statements
            .iter()
            .find(|(statement, _)| statement.id == *wanted);
        match named {
            Some((statement, proof)) => faults.extend(one(statement, proof, open)),
            None if of_group.is_empty() => {
                faults.push(format!("required: there is no statement {wanted}"));
            }
            None if !open.is_empty() => faults.push(format!(
                "required: {wanted} is a group; only a statement has open parts"
            )),
            None => {
                for (statement, proof) in of_group {
                    // A statement that has an entry of its own is judged there, with its open parts.
                    if !entries.iter().any(|entry| entry.wanted == statement.id) {
                        faults.extend(one(statement, proof, &[]));
                    }
                }
            }
        }
    }
    faults
}

/// Splits the list at its commas, except at those inside parentheses.
fn entries(required: &str) -> Result<Vec<Entry<'_>>, String> {
    let mut entries = Vec::new();
    let mut rest = required.trim();
    while !rest.is_empty() {
        let end = rest.find([',', '(']).unwrap_or(rest.len());
        let (wanted, mut after) = rest.split_at(end);
        let mut open = Vec::new();
        if let Some(inside) = after.strip_prefix('(') {
            let (words, behind) = inside
                .split_once(')')
                .ok_or_else(|| format!("required: {rest} has no closing parenthesis"))?;
            open = words.split(',').map(str::trim).collect();
            after = behind.trim_start();
        }
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return Err(format!("required: a comma is missing before {after}")),
        };
        entries.push(Entry {
            wanted: wanted.trim(),
            open,
        });
    }
    Ok(entries)
}

fn one(statement: &Statement, proof: &Proof, open: &[&str]) -> Vec<String> {
    let id = &statement.id;
    let mut faults = Vec::new();
    for word in open {
        if !OPEN_WORDS.contains(word) {
            faults.push(format!("required: {id} cannot have {word} open"));
        } else if !statement.parts.iter().any(|part| part == word) {
            faults.push(format!("required: {id} has no part {word}"));
        } else if proof.proves(word) {
            faults.push(format!("required: {word} of {id} is proven and not open"));
        }
    }
    if statement.parts.is_empty() && !proof.is_whole() {
        faults.push(format!("required and not proven: {id}"));
    }
    for part in proof.missing(statement) {
        if !open.contains(&part) {
            faults.push(format!("required and not proven: {id} (part: {part})"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(id: &str, parts: &[&str], whole: bool, proven: &[&str]) -> (Statement, Proof) {
        let mut proof = Proof::default();
        if whole {
            proof.cite("whole", &[]);
        }
        for part in proven {
            proof.cite("partial", &[(*part).to_owned()]);
        }
        let parts = parts.iter().map(ToString::to_string).collect();
        (
            Statement {
                id: id.into(),
                parts,
            },
            proof,
        )
    }

    fn statements() -> Vec<(Statement, Proof)> {
        vec![
            statement("TU-01", &[], true, &[]),
            statement("TU-02", &[], false, &[]),
            statement("PE-05", &["pane", "web", "ACP"], false, &["pane"]),
            statement("PE-06", &["pane", "web"], true, &[]),
            statement("PE-07", &["pane", "web"], false, &["pane", "web"]),
            statement("BG-21", &["hooks"], false, &[]),
        ]
    }

    #[test]
    fn a_group_requires_all_of_it() {
        assert_eq!(
            faults("TU", &statements()),
            ["required and not proven: TU-02"]
        );
        assert_eq!(faults("TU-01, PE-06,PE-07", &statements()), [""; 0]);
        assert_eq!(
            faults("XX", &statements()),
            ["required: there is no statement XX"]
        );
        assert_eq!(faults("", &statements()), [""; 0]);
    }

    #[test]
    fn a_part_without_a_test_must_be_named_as_open() {
        assert_eq!(
            faults("PE-05(web)", &statements()),
            ["required and not proven: PE-05 (part: ACP)"]
        );
        assert_eq!(
            faults("PE", &statements()),
            [
                "required and not proven: PE-05 (part: web)",
                "required and not proven: PE-05 (part: ACP)"
            ]
        );
        assert_eq!(faults("PE,TU-01,PE-05(web,ACP)", &statements()), [""; 0]);
        assert_eq!(faults("BG-21 (hooks), TU-01", &statements()), [""; 0]);
    }

    #[test]
    fn what_is_open_can_only_become_less() {
        let open = |required| faults(required, &statements());
        assert_eq!(
            open("PE-07(web)"),
            ["required: web of PE-07 is proven and not open"]
        );
        assert_eq!(
            open("PE-06(web)"),
            ["required: web of PE-06 is proven and not open"]
        );
        assert_eq!(open("TU-01(web)"), ["required: TU-01 has no part web"]);
        assert_eq!(
            open("PE-07(pane)"),
            ["required: PE-07 cannot have pane open"]
        );
        assert_eq!(
            open("PE(web)"),
            ["required: PE is a group; only a statement has open parts"]
        );
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused() {
        let entry = |wanted, open: &[&'static str]| Entry {
            wanted,
            open: open.to_vec(),
        };
        assert_eq!(
            entries("TU, PE-05(web, ACP),BG-21").unwrap(),
            [
                entry("TU", &[]),
                entry("PE-05", &["web", "ACP"]),
                entry("BG-21", &[])
            ]
        );
        assert_eq!(
            faults("PE-05(web,ACP", &statements()),
            ["required: PE-05(web,ACP has no closing parenthesis"]
        );
        assert_eq!(
            faults("PE-05(web)TU", &statements()),
            ["required: a comma is missing before TU"]
        );
    }
}
