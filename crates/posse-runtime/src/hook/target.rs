//! What is run for a hook, with the places of the session that it runs in.

use std::ffi::OsString;
use std::path::Path;

use posse_port::hooks::HookTarget;
use posse_protocol::AgentId;

use crate::hook::{Hook, HookAction, HookProgram};

/// What stands for the directory that the session was started in.
const PROJECT: &str = "CLAUDE_PROJECT_DIR";

/// Why a hook has nothing that could be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotRunnable(&'static str);

/// Returns what is run for a hook in a session that was started in `project`. `call` is the tool
/// call that it is about.
pub fn target(hook: &Hook, project: &Path, call: Option<&str>) -> Result<HookTarget, NotRunnable> {
    let directory = project.to_string_lossy();
    let placed = |text: &str| text.replace(&format!("${{{PROJECT}}}"), &directory);
    match &hook.action {
        HookAction::Program {
            program,
            persistent,
        } => {
            let words = match program {
                // The shell has a variable of this name, whatever is in the path.
                HookProgram::Line { shell, line } => {
                    vec![(*shell).to_owned(), "-c".to_owned(), line.clone()]
                }
                HookProgram::Words(words) => words.iter().map(|word| placed(word)).collect(),
            };
            Ok(match persistent {
                true => HookTarget::Persistent { words },
                false => HookTarget::Program { words },
            })
        }
        HookAction::Http {
            url,
            headers,
            variables,
        } => Ok(HookTarget::Http {
            url: url.clone(),
            headers: headers.clone(),
            variables: variables.clone(),
        }),
        HookAction::Callback { id } => Ok(HookTarget::Callback {
            id: id.clone(),
            call: call.map(str::to_owned),
        }),
        HookAction::Tool(_) => Err(NotRunnable(
            "it calls a tool of a server, which only a session can",
        )),
        HookAction::Prompt { .. } | HookAction::Agent { .. } => Err(NotRunnable(
            "it asks a model, which only an agent's run can",
        )),
        HookAction::Unsupported { why, .. } => Err(NotRunnable(why)),
    }
}

/// Returns the variables of a program, as scripts of the ecosystem know them.
pub fn variables(session: AgentId, project: &Path, attended: bool) -> Vec<(OsString, OsString)> {
    let texts = [
        ("CLAUDECODE", "1".to_owned()),
        ("CLAUDE_CODE_SESSION_ID", session.to_string()),
        ("CLAUDE_PID", std::process::id().to_string()),
        ("CLAUDE_CODE_ENTRYPOINT", "posse".to_owned()),
        (
            "CLAUDE_CODE_SESSION_ATTENDED",
            u8::from(attended).to_string(),
        ),
    ];
    let texts = texts.map(|(name, value)| (name.into(), value.into()));
    let project = (PROJECT.into(), project.into());
    texts.into_iter().chain([project]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::HookEvent;
    use crate::hook::tests::hook;

    #[test]
    fn a_program_gets_the_project_and_a_shell_looks_for_it_itself() {
        let mut hook = hook(HookEvent::Stop);
        let mut words_of = |program| {
            hook.action = HookAction::Program {
                program,
                persistent: true,
            };
            match target(&hook, Path::new("/a b"), None) {
                Ok(HookTarget::Persistent { words }) => words,
                other => panic!("{other:?}"),
            }
        };
        let words = HookProgram::Words(vec!["${CLAUDE_PROJECT_DIR}/x".into(), "$HOME".into()]);
        assert_eq!(words_of(words), ["/a b/x", "$HOME"]);
        let line = "\"${CLAUDE_PROJECT_DIR}\"/x";
        let in_shell = HookProgram::Line {
            shell: "bash",
            line: line.into(),
        };
        assert_eq!(words_of(in_shell), ["bash", "-c", line]);
        let set = variables(AgentId::from(uuid::Uuid::nil()), Path::new("/a b"), true);
        assert!(set.contains(&(PROJECT.into(), "/a b".into())));
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        let mut hook = hook(HookEvent::Stop);
        hook.action = HookAction::Unsupported {
            kind: "mcp_tool".into(),
            why: "there are no servers",
        };
        let error = target(&hook, Path::new("/"), None).unwrap_err();
        assert_eq!(error.to_string(), "there are no servers");
    }
}
