//! Manual pages: the help of each command in the language of man.

use std::collections::BTreeMap;

use clap::{Arg, Command};

use super::examples::{self, Example};

/// A page of section 1.
pub(crate) struct ManPage {
    /// Its name without the section, such as `posse-team-run`.
    pub(crate) name: String,
    /// Its source.
    pub(crate) text: String,
}

/// Returns the pages of all commands that are not hidden, the program's first.
pub(crate) fn pages(mut posse: Command) -> Vec<ManPage> {
    // Only a built command knows its full name in the usage.
    posse.build();
    let mut pages = Vec::new();
    add(&posse, "", &examples::all(), &mut pages);
    pages
}

/// Examples by command.
type Examples = BTreeMap<&'static str, Vec<Example>>;

fn add(command: &Command, words: &str, examples: &Examples, pages: &mut Vec<ManPage>) {
    let own = examples.get(examples::key(words));
    pages.push(ManPage {
        name: name_of(words),
        text: page(command, words, own.map_or(&[], Vec::as_slice)),
    });
    for below in visible(command) {
        let words = format!("{words} {}", below.get_name());
        add(below, words.trim_start(), examples, pages);
    }
}

/// Returns the name of a command's page.
fn name_of(words: &str) -> String {
    format!("posse {words}").trim_end().replace(' ', "-")
}

/// Returns the subcommands with a page. clap's own `help` of a group has none.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let is_own = |it: &&Command| it.get_name() != "help" || command.get_name() == "posse";
    command
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .filter(is_own)
}

fn page(command: &Command, words: &str, examples: &[Example]) -> String {
    let name = name_of(words);
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH {} 1 \"\" \"posse {version}\" \"posse manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        escaped(&name.to_uppercase()),
        escaped(&name),
        escaped(&about)
    );
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let lines: Vec<String> = usage.lines().map(|line| escaped(line.trim())).collect();
    page.push_str(&format!("{}\n.SH DESCRIPTION\n", lines.join("\n.br\n")));
    let long = command.get_long_about().map(ToString::to_string);
    let paragraphs = long.unwrap_or(about);
    let paragraphs: Vec<String> = paragraphs.split("\n\n").map(escaped).collect();
    page.push_str(&format!("{}\n", paragraphs.join("\n.PP\n")));
    arguments(command, &mut page);
    let below: Vec<&Command> = visible(command).collect();
    if !below.is_empty() {
        page.push_str(".SH COMMANDS\n");
        for below in &below {
            let about = below.get_about().map(ToString::to_string);
            let title = format!("{name}-{}(1)", below.get_name());
            item(&mut page, &title, &about.unwrap_or_default());
        }
    }
    add_examples(&mut page, examples);
    also(&mut page, words);
    page
}

/// Adds arguments and options, by heading.
fn arguments(command: &Command, page: &mut String) {
    let shown = command.get_arguments().filter(|it| !it.is_hide_set());
    let mut by_heading: Vec<(String, Vec<&Arg>)> = Vec::new();
    for argument in shown {
        let heading = match argument.get_help_heading() {
            Some(heading) => heading.to_uppercase(),
            None if argument.is_positional() => "ARGUMENTS".to_owned(),
            None => "OPTIONS".to_owned(),
        };
        match by_heading.iter_mut().find(|(it, _)| *it == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => by_heading.push((heading, vec![argument])),
        }
    }
    for (heading, arguments) in by_heading {
        page.push_str(&format!(".SH {}\n", escaped(&heading)));
        for argument in arguments {
            let help = argument.get_long_help().or_else(|| argument.get_help());
            let mut help = help.map(ToString::to_string).unwrap_or_default();
            let values = argument.get_possible_values();
            let names: Vec<&str> = values
                .iter()
                .filter(|value| !value.is_hide_set())
                .map(|value| value.get_name())
                .collect();
            if !names.is_empty() && argument.get_action().takes_values() {
                help.push_str(&format!(" [possible values: {}]", names.join(", ")));
            }
            item(page, &argument.to_string(), &help);
        }
    }
}

fn item(page: &mut String, title: &str, text: &str) {
    let text: Vec<String> = text.split("\n\n").map(escaped).collect();
    page.push_str(&format!(
        ".TP\n\\fB{}\\fR\n{}\n",
        escaped(title),
        text.join("\n.sp\n")
    ));
}

fn add_examples(page: &mut String, examples: &[Example]) {
    page.push_str(".SH EXAMPLES\n");
    for Example { about, line } in examples {
        page.push_str(&format!(
            ".PP\n{}:\n.RS 4\n.nf\n{}\n.fi\n.RE\n",
            escaped(about),
            escaped(line)
        ));
    }
}

/// Adds the page above this one, and the manual.
fn also(page: &mut String, words: &str) {
    page.push_str(".SH SEE ALSO\n");
    if !words.is_empty() {
        let above = words.rsplit_once(' ').map_or("", |(above, _)| above);
        page.push_str(&format!("\\fB{}\\fR(1),\n", escaped(&name_of(above))));
    }
    page.push_str(&format!("\\fB{}\\fR\n", escaped("posse help")));
}

/// Returns text that man shows as it is.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            escaped.push('\n');
        }
        // A line that begins so would be a request.
        if line.starts_with(['.', '\'']) {
            escaped.push_str("\\&");
        }
        for c in line.chars() {
            match c {
                '\\' => escaped.push_str("\\e"),
                '-' => escaped.push_str("\\-"),
                '\'' => escaped.push_str("\\(aq"),
                '`' => escaped.push_str("\\(ga"),
                '^' => escaped.push_str("\\(ha"),
                '~' => escaped.push_str("\\(ti"),
                c if c.is_ascii() => escaped.push(c),
                c => escaped.push_str(&format!("\\[u{:04X}]", u32::from(c))),
            }
        }
    }
    escaped
}
