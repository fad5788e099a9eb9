//! Where teammates run: in this process, or in a terminal of their own. Decided from settings, flags and the
//! tmux that posse was started in.

use std::sync::Arc;

use posse_runtime::port::panes::Panes;
use posse_tools::{CommandPanes, Inside, Launch, TmuxPanes};

use crate::environment::variable;
use crate::hint::Advised;
use crate::settings::teams::{Backend, Teams};

/// What opens terminals for teammates; none if they run in this process. `attended` says whether a person sits
/// in front: nobody else needs a pane that was not asked for by name.
pub(crate) fn choose(
    teams: &Teams,
    attended: bool,
    launch: impl FnOnce() -> anyhow::Result<Launch>,
) -> anyhow::Result<Option<Arc<dyn Panes>>> {
    let inside = || Inside::read(&variable("TMUX")?, &variable("TMUX_PANE")?);
    Ok(match decide(teams, attended, inside())? {
        Choice::InProcess => None,
        Choice::Tmux(inside) => Some(Arc::new(TmuxPanes::new(inside, teams.place, launch()?))),
        Choice::Command(template) => Some(Arc::new(CommandPanes::new(template, launch()?))),
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    InProcess,
    Tmux(Inside),
    Command(posse_tools::Template),
}

fn decide(teams: &Teams, attended: bool, inside: Option<Inside>) -> Result<Choice, Advised> {
    if !teams.forced && !attended {
        return Ok(Choice::InProcess);
    }
    match (teams.backend, inside, &teams.pane_command) {
        (Backend::InProcess, _, _) => Ok(Choice::InProcess),
        (Backend::Tmux, Some(inside), _) => Ok(Choice::Tmux(inside)),
        // Who has it in the settings works outside tmux at times.
        (Backend::Tmux, None, _) if !teams.forced => Ok(Choice::InProcess),
        (Backend::Tmux, None, _) => Err(Advised {
            what: "teammates are to run in panes of tmux, and posse was not started inside tmux".into(),
            advice: "start tmux and posse in it, or say --team-backend in-process".into(),
        }),
        (Backend::Command, _, Some(template)) => Ok(Choice::Command(template.clone())),
        (Backend::Command, _, None) => Err(Advised {
            what: "teammates are to run in what teams.paneCommand opens, and no such command is set".into(),
            advice:
                "set it in settings.json of posse's home (docs/teams.md), or say --team-backend in-process"
                    .into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posse_tools::{Place, Template};

    use super::*;

    fn teams(backend: Backend, forced: bool) -> Teams {
        Teams { backend, forced, pane_command: None, place: Place::Split, deadline: Duration::from_secs(60) }
    }

    // proves TE-09 (open: what is in the panes)
    #[test]
    fn panes_are_for_people_who_ask_for_them() {
        let inside = || Inside::read("/tmp/tmux-0/default,1,0", "%0");
        let tmux = || Choice::Tmux(inside().unwrap());
        let check = |backend, forced, attended, inside: Option<Inside>, expected: Option<Choice>| {
            let decided = decide(&teams(backend, forced), attended, inside);
            assert_eq!(
                decided.as_ref().ok(),
                expected.as_ref(),
                "{backend:?} {forced} {attended}: {decided:?}"
            );
        };
        check(Backend::InProcess, false, true, inside(), Some(Choice::InProcess));
        check(Backend::Tmux, false, true, inside(), Some(tmux()));
        check(Backend::Tmux, false, true, None, Some(Choice::InProcess));
        check(Backend::Tmux, false, false, inside(), Some(Choice::InProcess));
        check(Backend::Tmux, true, false, inside(), Some(tmux()));
        check(Backend::Tmux, true, true, None, None);
        check(Backend::Command, false, false, None, Some(Choice::InProcess));
        check(Backend::Command, true, false, None, None);
        let refused = decide(&teams(Backend::Tmux, true), true, None).unwrap_err();
        assert!(refused.what.contains("not started inside tmux") && refused.advice.contains("in-process"));
        let template = Template::new(vec!["term".into(), "{argv...}".into()]).unwrap();
        let own = Teams { pane_command: Some(template.clone()), ..teams(Backend::Command, false) };
        assert_eq!(decide(&own, true, None).ok(), Some(Choice::Command(template)));
    }
}
