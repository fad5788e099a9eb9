//! Random transcripts and keys: the screen is always a part of the transcript.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Returns all lines of a transcript, rendered at once.
fn all_lines(stored: &[Entry], folds: entry::Folds, width: u16) -> Vec<String> {
    let mut document = Document::new(stored.len() as u64, width);
    document.fold(folds);
    document.add(0, stored.len() as u64, stored.to_vec(), 0);
    let mut lines = Vec::new();
    for seq in 0..stored.len() as u64 {
        let drawn = document.lines(seq).unwrap_or_default();
        lines.extend(
            drawn
                .iter()
                .map(|line| line.to_string().trim_end().to_owned()),
        );
    }
    lines
}

fn words() -> impl Strategy<Value = String> {
    let parts = vec![
        "word ",
        "\n",
        "\n\n",
        "- item\n",
        "漢字かな",
        "\u{1b}[2J",
        "e\u{301}",
        "```\nlet a = 1;\n```\n",
        "a-very-long-word-that-is-longer-than-the-screen-is-wide-and-must-be-broken",
    ];
    prop::collection::vec(select(parts), 0..5).prop_map(|parts| parts.concat())
}

fn transcript() -> impl Strategy<Value = Vec<Entry>> {
    let kinds = vec![
        EntryKind::Prompt,
        EntryKind::Reply,
        EntryKind::Results,
        EntryKind::Model,
        EntryKind::Compaction,
    ];
    let entries = prop::collection::vec((select(kinds), words()), 0..450);
    entries.prop_map(|entries| {
        let entries = entries.into_iter().zip(0..);
        let entry = |((kind, text), seq)| entry(seq, kind, vec![ContentBlock::text(text)]);
        entries.map(entry).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_screen_is_a_part_of_the_transcript(
        stored in transcript(),
        // The smallest screen has 20 columns and 5 rows.
        (columns, rows) in (20..60u16, 5..30u16),
        keys in prop::collection::vec(
            select(vec!["Up", "Down", "PageUp", "PageDown", "Home", "End", "t", "c", "n", "N"]),
            1..40,
        ),
    ) {
        let mut reader = Reader::new(stored, columns, rows);
        reader.search("word");
        let mut rendered: Vec<(entry::Folds, Vec<String>)> = Vec::new();
        for key in keys {
            reader.press(key);
            let folds = reader.pager.document.folds();
            if !rendered.iter().any(|(known, _)| *known == folds) {
                rendered.push((folds, all_lines(&reader.stored, folds, columns)));
            }
            let known = rendered.iter().find(|(known, _)| *known == folds);
            let (_, all) = known.unwrap();
            let mut shown = reader.lines();
            if all.is_empty() {
                continue;
            }
            if all.len() < shown.len() {
                prop_assert!(shown[all.len()..].iter().all(String::is_empty));
                shown.truncate(all.len());
            }
            let is_part = all.windows(shown.len()).any(|part| part == shown);
            prop_assert!(is_part, "{shown:#?}");
            if key == "End" {
                prop_assert!(all.ends_with(&shown));
            }
            if key == "Home" {
                prop_assert!(all.starts_with(&shown));
            }
        }
    }
}
