//! Completers for the arguments of all commands.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::Candidate;
use super::kind::{ValueKind, kind};
use super::request::CompletionRequest;
use super::sources::ValueSources;

/// Returns the command with completers for its arguments and those of its subcommands.
pub(super) fn with_values(
    command: Command,
    request: &CompletionRequest,
    cwd: Option<&Path>,
) -> Command {
    let sources = Arc::new(ValueSources::new(request, cwd, &command));
    walked(command, "", &sources)
}

fn walked(command: Command, path: &str, sources: &Arc<ValueSources>) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|it| it.get_name().to_owned())
        .collect();
    let command = command.mut_args(|argument| with_value(argument, path, sources));
    names.into_iter().fold(command, |command, name| {
        let below = format!("{path} {name}");
        command.mut_subcommand(&name, |it| walked(it, below.trim_start(), sources))
    })
}

fn with_value(argument: Arg, path: &str, sources: &Arc<ValueSources>) -> Arg {
    match kind(path, argument.get_id().as_str()) {
        None | Some(ValueKind::Free) => argument,
        Some(ValueKind::File) => argument.value_hint(ValueHint::AnyPath),
        Some(ValueKind::Directory) => argument.value_hint(ValueHint::DirPath),
        Some(kind) => {
            let sources = Arc::clone(sources);
            let complete = move |typed: &OsStr| {
                let typed = typed.to_string_lossy();
                let found = sources.find(kind, &typed);
                let fits = |it: &Candidate| it.value.starts_with(&*typed);
                found.into_iter().filter(fits).map(told).collect()
            };
            argument.add(ArgValueCompleter::new(complete))
        }
    }
}

fn told(candidate: Candidate) -> CompletionCandidate {
    let about = (!candidate.about.is_empty()).then(|| candidate.about.into());
    CompletionCandidate::new(candidate.value).help(about)
}
