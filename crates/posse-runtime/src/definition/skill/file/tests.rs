//! What files are read as. `../fixtures/NAME.md` is a file, `NAME.expected` what is read from it: the skill,
//! field by field, or `line: reason`. What begins with `command-` is a command.

use std::fmt::Write;
use std::fs;

use proptest::prelude::*;

use super::*;

/// What was read, a field on each line.
fn shown(read: &Read) -> String {
    let Read {
        skill,
        hooks,
        notes,
    } = read;
    let mut out = String::new();
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            writeln!(out, "{key}: {value}").unwrap();
        }
    };
    let list = |items: &[String]| (!items.is_empty()).then(|| items.join(" | "));
    line("description", Some(format!("{:?}", skill.description)));
    line(
        "when",
        skill.when_to_use.as_ref().map(|when| format!("{when:?}")),
    );
    line("hint", skill.argument_hint.clone());
    line("arguments", list(&skill.arguments));
    line(
        "for",
        (!skill.for_model || !skill.for_user).then(|| match (skill.for_model, skill.for_user) {
            (true, _) => "the model only".to_owned(),
            (_, true) => "people only".to_owned(),
            _ => "nobody".to_owned(),
        }),
    );
    line("allowed", list(&skill.allowed));
    line("disallowed", list(&skill.disallowed));
    line("hooks", hooks.as_ref().map(ToString::to_string));
    line("fork", skill.fork.as_ref().map(|fork| format!("{fork:?}")));
    line("body", Some(format!("{:?}", skill.body.text)));
    line(
        "commands",
        skill.body.has_commands().then(|| "some".to_owned()),
    );
    for note in notes {
        line(&format!("note {}", note.line), Some(note.reason.clone()));
    }
    out
}

fn read_fixture(path: &Path, text: &str) -> Result<Read, Problem> {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let kind = if name.starts_with("command-") {
        Kind::Command
    } else {
        Kind::Skill
    };
    read(text, name, path, kind)
}

// proves HK-05 (part: front matter)
#[test]
fn every_file_is_read_or_refused_with_line_and_reason() {
    let mut wrong = String::new();
    let files = fixtures();
    for (path, text) in &files {
        let got = match read_fixture(path, text) {
            Ok(read) => shown(&read),
            Err(Problem { line, reason }) => format!("{line}: {reason}\n"),
        };
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
        if got != expected {
            write!(
                wrong,
                "== {}\n-- got\n{got}-- expected\n{expected}",
                path.display()
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(files.len() >= 25, "only {} files", files.len());
}

/// Every file there is.
fn fixtures() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/definition/skill/fixtures");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    files
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn the_place_gives_the_name() {
    let text = "---\nname: other\ndescription: Does it.\n---\nDo it.\n";
    let got = read(text, "this", Path::new("/s/this/SKILL.md"), Kind::Skill).unwrap();
    assert_eq!(
        (got.skill.name.as_str(), got.skill.directory()),
        ("this", Path::new("/s/this"))
    );
    assert_eq!(
        got.notes,
        [Problem::new(
            2,
            "`other` is ignored: its place names it `this`"
        )]
    );
    let wrong = read(text, "a b", Path::new("/s/a b/SKILL.md"), Kind::Skill).unwrap_err();
    assert!(wrong.reason.contains("white space"), "{wrong:?}");
    assert!(
        read(text, "Other", Path::new("/x"), Kind::Skill)
            .unwrap()
            .notes
            .is_empty()
    );
}

proptest! {
    #[test]
    fn no_text_ends_the_reader(
        key in prop_oneof![prop::sample::select(field::KEYS.all).prop_map(str::to_owned), "[a-z-]{1,8}"],
        value in "[a-zA-Z0-9 :#,*&!|>'\"(){}\\[\\]<\\\\-]{0,24}",
        body in "(?s)[ \n!`$a-z0-9\\[\\]]{0,30}",
    ) {
        let text = format!("---\ndescription: x\n{key}: {value}\n---\n{body}");
        let lines = text.lines().count();
        match read(&text, "x", Path::new("/x.md"), Kind::Command) {
            Ok(read) => prop_assert!(read.notes.iter().all(|note| (1..=lines).contains(&note.line)), "{:?}", read.notes),
            Err(problem) => {
                prop_assert!((1..=lines).contains(&problem.line), "{problem:?}");
                prop_assert!(!problem.reason.contains('\n'), "{problem:?}");
            }
        }
    }
}
