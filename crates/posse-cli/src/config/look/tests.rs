//! What a person's files make of the look.

use super::*;
use crate::config::settings::tests::Disk;
use crate::config::settings::{FlagSettings, Settings};
use posse_tui::theme::{ColorRole, color_of};

fn load(disk: &Disk) -> Look {
    Look::read(&disk.places, Some(ColorDepth::True)).unwrap()
}

fn theme(name: &str) -> Theme {
    Theme::named(name).unwrap()
}

#[test]
fn the_user_and_the_administrator_choose_the_theme() {
    let disk = Disk::new();
    assert_eq!(load(&disk).theme, Theme::ansi());
    disk.write("repo/.posse/settings.json", r#"{"ui": {"theme": "light"}}"#);
    disk.write(
        "repo/.posse/settings.local.json",
        r#"{"ui": {"theme": "light"}}"#,
    );
    assert_eq!(load(&disk).theme, Theme::ansi());
    disk.write("posse/settings.json", r#"{"ui": {"theme": "dark"}}"#);
    assert_eq!(load(&disk).theme, theme("dark"));
    disk.write("managed.json", r#"{"ui": {"theme": "mono"}}"#);
    assert_eq!(load(&disk).theme, Theme::mono());
    let flags = FlagSettings {
        settings: Some(r#"{"ui": {"theme": "light"}}"#.into()),
        ..FlagSettings::default()
    };
    let settings = Settings::load(&disk.places, flags).unwrap();
    let told: Vec<&str> = settings
        .unsupported
        .files
        .iter()
        .map(|file| file.what.as_str())
        .collect();
    assert_eq!(told, ["ui (settings.json in posse's home sets it)"]);
    let ignored = |line: &String| line.contains("key of ui theme in");
    assert_eq!(
        settings.details.iter().filter(|line| ignored(line)).count(),
        2,
        "{:?}",
        settings.details
    );
}

#[test]
fn unknown_keys_and_wrong_values_of_ui_are_told() {
    let disk = Disk::new();
    disk.write("posse/settings.json", r#"{"ui": {"thme": "dark"}}"#);
    let settings = Settings::load(&disk.places, FlagSettings::default()).unwrap();
    let told = settings.warnings.concat();
    assert!(
        told.contains("unknown: `thme` (did you mean `theme`?) in the ui of"),
        "{told}"
    );
    disk.write("posse/settings.json", r#"{"ui": {"theme": 3}}"#);
    assert!(Look::read(&disk.places, None).is_err());
}

#[test]
fn an_unknown_theme_is_told_with_the_closest_one() {
    let disk = Disk::new();
    disk.write("posse/themes/sea.toml", "");
    for (name, hint) in [
        ("drak", "did you mean `dark`?"),
        ("see", "did you mean `sea`?"),
        ("zenburn", "there are ansi, dark, light, mono, sea"),
        ("../themes/sea", "there are ansi, dark, light, mono, sea"),
    ] {
        let settings = format!(r#"{{"ui": {{"theme": "{name}"}}}}"#);
        disk.write("posse/settings.json", &settings);
        let look = load(&disk);
        assert_eq!(look.theme, Theme::ansi());
        let expected = format!("there is no theme `{name}` ({hint}); it is `ansi`");
        assert_eq!(look.warnings, [expected]);
    }
}

#[test]
fn a_file_is_a_theme_and_its_mistakes_have_lines() {
    let disk = Disk::new();
    disk.write("posse/settings.json", r#"{"ui": {"theme": "sea"}}"#);
    disk.write(
        "posse/themes/sea.toml",
        "accent = \"#0088ff\"\n\ngod = \"red\"\nbad = \"bright-red\"\nquiet = \"grey\"\ncode = 3\n",
    );
    let look = load(&disk);
    let mut expected = Theme::ansi();
    expected.set(ColorRole::Accent, color_of("#0088ff").unwrap());
    expected.set(ColorRole::Bad, color_of("bright-red").unwrap());
    assert_eq!(look.theme, expected);
    let file = disk.path("posse/themes/sea.toml");
    let file = file.display();
    let mut told = look.warnings;
    told.sort();
    assert_eq!(
        told,
        [
            format!("{file}:3: unknown role `god` (did you mean `good`?)"),
            format!(
                "{file}:5: `grey` is not a colour for `quiet`; write #rrggbb, default, or one of \
                 the terminal's own, such as red or bright-red"
            ),
            format!("{file}:6: a colour is text, as \"#ff8800\" or \"red\""),
        ]
    );
    disk.write("posse/themes/sea.toml", "accent = \"#0088ff\"\nbad =\n");
    let look = load(&disk);
    let mut expected = Theme::ansi();
    expected.set(ColorRole::Accent, color_of("#0088ff").unwrap());
    assert_eq!(look.theme, expected);
    assert!(look.warnings[0].starts_with(&format!("{file}:2: ")));
}

#[test]
fn colours_may_be_in_the_settings_themselves() {
    let disk = Disk::new();
    let settings = r##"{"ui": {"theme": {"accent": "#0088ff", "bda": "red"}}}"##;
    disk.write("posse/settings.json", settings);
    let look = load(&disk);
    let mut expected = Theme::ansi();
    expected.set(ColorRole::Accent, color_of("#0088ff").unwrap());
    assert_eq!(look.theme, expected);
    let told = "ui.theme of the settings: unknown role `bda` (did you mean `bad`?)";
    assert_eq!(look.warnings, [told]);
}

#[test]
fn a_terminal_gets_the_colours_it_has() {
    let disk = Disk::new();
    disk.write("posse/settings.json", r#"{"ui": {"theme": "dark"}}"#);
    for depth in [ColorDepth::Sixteen, ColorDepth::Indexed, ColorDepth::True] {
        let look = Look::read(&disk.places, Some(depth)).unwrap();
        assert_eq!(look.theme, theme("dark").at_depth(depth));
    }
    let look = Look::read(&disk.places, None).unwrap();
    assert_eq!(look.theme, Theme::mono());
}

#[test]
fn the_user_and_the_administrator_switch_the_mouse_off() {
    let disk = Disk::new();
    disk.write("repo/.posse/settings.json", r#"{"ui": {"mouse": false}}"#);
    assert!(load(&disk).mouse);
    disk.write("posse/settings.json", r#"{"ui": {"mouse": false}}"#);
    assert!(!load(&disk).mouse);
    disk.write("managed.json", r#"{"ui": {"mouse": true}}"#);
    assert!(load(&disk).mouse);
}

#[test]
fn keys_that_must_not_be_taken_are_not() {
    let disk = Disk::new();
    let file = disk.path("posse/keys.toml");
    for (line, why) in [
        (
            "yes = \"y\"",
            "y is ignored for `yes`: an answer needs Ctrl or Alt, and not Enter",
        ),
        (
            "no = \"f5\"",
            "F5 is ignored for `no`: an answer needs Ctrl or Alt, and not Enter",
        ),
        (
            "always = \"alt-enter\"",
            "Alt-Enter is ignored for `always`: an answer needs Ctrl or Alt, and not Enter",
        ),
        (
            "yes = \"ctrl-m\"",
            "`ctrl-m` is ignored for `yes`: a terminal sends the same for it as for Enter",
        ),
    ] {
        for part in ["conversation", "board"] {
            disk.write("posse/keys.toml", &format!("[{part}]\n{line}\n"));
            let told = format!("{}:2: {why}", file.display());
            assert_eq!(load(&disk).warnings, [told], "{part} {line}");
        }
    }
    for (chord, shown, why) in [
        (
            "x",
            "x",
            "it belongs to the prompt; use Ctrl, Alt or a function key",
        ),
        (
            "space",
            "Space",
            "it belongs to the prompt; use Ctrl, Alt or a function key",
        ),
        (
            "up",
            "Up",
            "it belongs to the prompt; use Ctrl, Alt or a function key",
        ),
        (
            "enter",
            "Enter",
            "nothing can take Enter, Esc or Ctrl-C away",
        ),
        ("esc", "Esc", "nothing can take Enter, Esc or Ctrl-C away"),
        (
            "ctrl-c",
            "Ctrl-C",
            "nothing can take Enter, Esc or Ctrl-C away",
        ),
    ] {
        let text = format!("[conversation]\n\nboard = \"{chord}\"\n");
        disk.write("posse/keys.toml", &text);
        let told = format!(
            "{}:3: {shown} is ignored for `board`: {why}",
            file.display()
        );
        assert_eq!(load(&disk).warnings, [told]);
    }
}

#[test]
fn mistakes_in_the_keys_have_lines_and_the_rest_holds() {
    let disk = Disk::new();
    assert_eq!(load(&disk).warnings, [""; 0]);
    disk.write(
        "posse/keys.toml",
        r#"
tasks = "t"
[conversation]
bord = "ctrl-k"
transcript = ["f2", "ctlr-t"]
board = "f2"
editor = 3
later = "f22"
history = []
image = ""
[bord]
[board]
stop = "X"
peek = "X"
"#,
    );
    let look = load(&disk);
    let file = disk.path("posse/keys.toml");
    let mut told: Vec<&str> = look
        .warnings
        .iter()
        .map(|line| line.strip_prefix(&format!("{}:", file.display())).unwrap())
        .collect();
    told.sort_by_key(|line| line.split(':').next().unwrap().parse::<usize>().unwrap());
    assert_eq!(
        told,
        [
            "2: `tasks` belongs in [conversation] or [board]",
            "4: unknown action `bord` (did you mean `board`?)",
            "5: `ctlr-t` is ignored for `transcript`: `ctlr` is not ctrl, alt or shift (did you mean `ctrl`?)",
            "6: F2 is ignored for `board`: `transcript` has it",
            "7: a chord is text, as \"ctrl-x\", or a list of texts",
            "8: `f22` is ignored for `later`: `f22` is not a key (did you mean `f2`?)",
            "11: unknown table `bord` (did you mean `board`?)",
            "14: X is ignored for `peek`: `stop` has it",
        ]
    );
    disk.write("posse/keys.toml", "[board]\nstop = \"X\"\npeek = \n");
    let look = load(&disk);
    assert_eq!(look.warnings.len(), 1, "{:?}", look.warnings);
    assert!(
        look.warnings[0].contains("keys.toml:3: "),
        "{:?}",
        look.warnings
    );
}
