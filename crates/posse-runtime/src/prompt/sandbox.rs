//! Texts about what the sandbox refuses.

use std::path::PathBuf;

use posse_protocol::{PermissionMode, SandboxRefusal};

/// Returns why a person is asked about a command that has run.
pub(crate) fn question(refusal: &SandboxRefusal) -> String {
    format!(
        "the sandbox refused it {}; run it again with that?",
        what(refusal)
    )
}

/// Returns what the model is told if nobody is asked.
pub(crate) fn refused(refusal: &SandboxRefusal, mode: PermissionMode) -> String {
    let why = match mode {
        PermissionMode::Plan => "plan mode is on: commands change nothing",
        _ => "nobody is there to allow it; a rule for the command or for editing the path would",
    };
    format!("(the sandbox refused it {}: {why})", what(refusal))
}

/// Returns what was refused.
fn what(refusal: &SandboxRefusal) -> String {
    let listed = |verb: &str, paths: &[PathBuf]| {
        let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
        (!paths.is_empty()).then(|| format!("to {verb} {}", paths.join(", ")))
    };
    let network = refusal.network.then(|| "the network".to_owned());
    let parts = [
        listed("write", &refusal.write),
        listed("read", &refusal.read),
        network,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" and ")
}
