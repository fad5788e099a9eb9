//! The overview is complete and fits a screen.

use clap::CommandFactory;
use posse_tui::text::without_escapes;

use super::*;

fn shown(width: usize) -> Vec<String> {
    let text = text(&crate::Args::command(), Some(width))
        .ansi()
        .to_string();
    without_escapes(&text).lines().map(str::to_owned).collect()
}

#[test]
fn it_fits_a_screen() {
    let wide = shown(100);
    assert!(
        wide.len() < 40,
        "{} lines:\n{}",
        wide.len(),
        wide.join("\n")
    );
    for width in [60, 100, 200] {
        for line in shown(width) {
            assert!(columns(&line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn every_command_is_in_it_once() {
    let command = crate::Args::command();
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let mut known: Vec<&str> = shown.map(Command::get_name).collect();
    let mut told: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| names.iter())
        .chain(MORE)
        .chain(&["help"])
        .copied()
        .collect();
    known.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, known);
}

#[test]
fn its_flags_exist() {
    let mut command = crate::Args::command();
    command.build();
    let known: Vec<String> = command
        .get_arguments()
        .filter_map(|it| it.get_long())
        .map(|long| format!("--{long}"))
        .collect();
    for (flag, _) in FLAGS {
        let long = flag.split(' ').find(|word| word.starts_with("--")).unwrap();
        assert!(known.iter().any(|it| it == long), "{flag}");
    }
}
