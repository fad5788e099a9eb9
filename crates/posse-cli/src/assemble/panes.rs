//! Where teammates run: in this process, in terminals of their own, or in workers. Decided from
//! settings, flags and the tmux session that posse was started in.

use std::sync::Arc;

use posse_runtime::definition::spawning::TeamBackend;
use posse_tools::{CommandPanes, Inside, Launch, TmuxPanes};

use crate::config::environment::variable;
use crate::config::settings::teams::{Backend, ForcedBy, TeamSettings};
use crate::error::Advised;

/// What decides if a run may open panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaneContext {
    /// A person sits in front. Without one, panes are opened only if a flag or an administrator
    /// asks.
    pub(crate) attended: bool,
    /// The run leads a team; other runs never open a pane.
    pub(crate) leads: bool,
    /// The run has a budget in tokens, which only a single process can enforce.
    pub(crate) counts_tokens: bool,
}

/// Returns where teammates run.
pub(crate) fn choose(
    teams: &TeamSettings,
    context: PaneContext,
    launch: impl FnOnce() -> anyhow::Result<Launch>,
) -> anyhow::Result<TeamBackend> {
    let inside = || Inside::read(&variable("TMUX")?, &variable("TMUX_PANE")?);
    Ok(match decide(teams, context, inside())? {
        PaneChoice::InProcess => TeamBackend::Here,
        PaneChoice::Tmux(inside) => {
            TeamBackend::Panes(Arc::new(TmuxPanes::new(inside, teams.place, launch()?)))
        }
        PaneChoice::Command(template) => {
            TeamBackend::Panes(Arc::new(CommandPanes::new(template, launch()?)))
        }
        PaneChoice::Workers => TeamBackend::Workers,
    })
}

/// The decision, before anything is opened.
#[derive(Debug, PartialEq, Eq)]
enum PaneChoice {
    InProcess,
    Tmux(Inside),
    Command(posse_tools::Template),
    Workers,
}

/// Decides where teammates run. Pure, so that every combination can be tested.
fn decide(
    teams: &TeamSettings,
    context: PaneContext,
    inside: Option<Inside>,
) -> Result<PaneChoice, Advised> {
    let PaneContext {
        attended,
        leads,
        counts_tokens,
    } = context;
    if teams.backend == Backend::Worker && !counts_tokens {
        // Workers need no person to watch them.
        return Ok(PaneChoice::Workers);
    }
    if teams.forced.is_none() && (!attended || counts_tokens) {
        return Ok(PaneChoice::InProcess);
    }
    // An administrator's wish for panes must not fail runs that never open one.
    let in_vain = matches!(teams.forced, Some(ForcedBy::File(_))) && !leads;
    match (teams.backend, inside, &teams.pane_command) {
        (Backend::InProcess, _, _) => Ok(PaneChoice::InProcess),
        (Backend::Worker, _, _) => Err(Advised {
            what: "a budget in tokens works only in one process, and teammates run in workers"
                .into(),
            advice: format!(
                "use --max-budget-usd and give roles budgets; {}",
                otherwise(teams)
            ),
        }),
        (Backend::Tmux, Some(inside), _) => Ok(PaneChoice::Tmux(inside)),
        // With tmux in their settings, people still work outside tmux at times.
        (Backend::Tmux, None, _) if teams.forced.is_none() || in_vain => Ok(PaneChoice::InProcess),
        (Backend::Tmux, None, _) => Err(Advised {
            what: "teammates run in tmux panes, but posse was not started inside tmux".into(),
            advice: format!("start tmux and posse in it, {}", otherwise(teams)),
        }),
        (Backend::Command, _, Some(template)) => Ok(PaneChoice::Command(template.clone())),
        (Backend::Command, _, None) if in_vain => Ok(PaneChoice::InProcess),
        (Backend::Command, _, None) => Err(Advised {
            what: "teammates run in panes opened by teams.paneCommand, but it is not set".into(),
            advice: format!(
                "set it in settings.json of posse's home (`posse help teams`), {}",
                otherwise(teams)
            ),
        }),
    }
}

/// Returns the advice how to change the backend.
fn otherwise(teams: &TeamSettings) -> String {
    match &teams.forced {
        Some(ForcedBy::File(path)) => {
            format!("or have teams.backend changed in {}", path.display())
        }
        Some(ForcedBy::Flag) | None => "or use --team-backend in-process".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posse_tools::{Place, Template};

    use super::*;

    fn teams(backend: Backend, forced: Option<ForcedBy>) -> TeamSettings {
        TeamSettings {
            backend,
            forced,
            pane_command: None,
            place: Place::Split,
            deadline: Duration::from_secs(60),
            message_notice: 20,
            message_limit: 40,
        }
    }

    const SEEN: PaneContext = PaneContext {
        attended: true,
        leads: true,
        counts_tokens: false,
    };
    const ALONE: PaneContext = PaneContext {
        attended: false,
        leads: false,
        counts_tokens: false,
    };

    // proves TE-09 (part: detection)
    #[test]
    fn panes_are_for_people_who_ask_for_them() {
        let inside = || Inside::read("/tmp/tmux-0/default,1,0", "%0");
        let tmux = || PaneChoice::Tmux(inside().unwrap());
        let check = |backend,
                     forced: Option<ForcedBy>,
                     context,
                     inside: Option<Inside>,
                     expected: Option<PaneChoice>| {
            let decided = decide(&teams(backend, forced.clone()), context, inside);
            assert_eq!(
                decided.as_ref().ok(),
                expected.as_ref(),
                "{backend:?} {forced:?} {context:?}: {decided:?}"
            );
        };
        let (flag, file) = (
            || Some(ForcedBy::Flag),
            || Some(ForcedBy::File("/etc/x.json".into())),
        );
        check(
            Backend::InProcess,
            None,
            SEEN,
            inside(),
            Some(PaneChoice::InProcess),
        );
        check(Backend::Tmux, None, SEEN, inside(), Some(tmux()));
        check(Backend::Tmux, None, SEEN, None, Some(PaneChoice::InProcess));
        check(
            Backend::Tmux,
            None,
            ALONE,
            inside(),
            Some(PaneChoice::InProcess),
        );
        check(Backend::Tmux, flag(), ALONE, inside(), Some(tmux()));
        check(Backend::Tmux, flag(), SEEN, None, None);
        check(Backend::Tmux, flag(), ALONE, None, None);
        check(
            Backend::Command,
            None,
            ALONE,
            None,
            Some(PaneChoice::InProcess),
        );
        check(Backend::Command, flag(), ALONE, None, None);
        // Who opens no pane is not kept from working by what the administrator says of panes.
        check(
            Backend::Tmux,
            file(),
            ALONE,
            None,
            Some(PaneChoice::InProcess),
        );
        check(Backend::Tmux, file(), ALONE, inside(), Some(tmux()));
        check(
            Backend::Command,
            file(),
            ALONE,
            None,
            Some(PaneChoice::InProcess),
        );
        check(
            Backend::Tmux,
            file(),
            PaneContext {
                attended: false,
                ..SEEN
            },
            None,
            None,
        );
        // A budget in tokens counts in one process.
        let counted = PaneContext {
            counts_tokens: true,
            ..SEEN
        };
        check(
            Backend::Tmux,
            None,
            counted,
            inside(),
            Some(PaneChoice::InProcess),
        );
        // Workers are for whoever wants them, also where nobody looks on.
        check(
            Backend::Worker,
            None,
            ALONE,
            None,
            Some(PaneChoice::Workers),
        );
        check(
            Backend::Worker,
            flag(),
            SEEN,
            inside(),
            Some(PaneChoice::Workers),
        );
        check(
            Backend::Worker,
            None,
            counted,
            None,
            Some(PaneChoice::InProcess),
        );
        check(Backend::Worker, flag(), counted, None, None);
        let refused = decide(&teams(Backend::Tmux, flag()), SEEN, None).unwrap_err();
        assert!(
            refused.what.contains("not started inside tmux")
                && refused.advice.contains("in-process")
        );
        let refused = decide(&teams(Backend::Tmux, file()), SEEN, None).unwrap_err();
        assert!(
            refused.advice.contains("changed in /etc/x.json"),
            "{}",
            refused.advice
        );
        let template = Template::new(vec!["term".into(), "{argv...}".into()]).unwrap();
        let own = TeamSettings {
            pane_command: Some(template.clone()),
            ..teams(Backend::Command, None)
        };
        assert_eq!(
            decide(&own, SEEN, None).ok(),
            Some(PaneChoice::Command(template))
        );
    }
}
