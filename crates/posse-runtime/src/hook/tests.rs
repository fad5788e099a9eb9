//! Hooks for tests.

use crate::hook::{
    Condition, Hook, HookAction, HookEvent, HookLayer, HookOrigin, HookProgram, HookState, Matcher,
    OnFailure, RunsBeside,
};

/// Returns a hook of the user's for everything at this event.
pub(crate) fn hook(event: HookEvent) -> Hook {
    Hook {
        event,
        matcher: Matcher::All,
        condition: Condition::None,
        action: HookAction::Program {
            program: HookProgram::Line {
                shell: "sh",
                line: "true".into(),
            },
            persistent: false,
        },
        timeout: None,
        on_failure: OnFailure::Continue,
        status_message: None,
        once: false,
        beside: RunsBeside::No,
        origin: HookOrigin {
            layer: HookLayer::User,
            file: "settings.json".into(),
            line: None,
            of_repository: false,
        },
        state: HookState::Active,
    }
}
