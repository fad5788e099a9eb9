//! What a person sees of runs in the background, and does about them.

use posse_protocol::{RunChange, RunUpdate, RunUsage};

use super::screens::run;
use super::*;

// proves BG-19 (part: terminal)
#[test]
fn progress_is_in_the_list_of_agents() {
    let mut talk = Talk::new(100, 24);
    talk.event(run(9, "scout", "look at the tests"));
    let progress = |uses, tokens, summary: &str| {
        let EventKind::Run(started) = run(9, "scout", "look at the tests") else {
            panic!()
        };
        EventKind::Run(Box::new(RunUpdate {
            run: started.run,
            what: RunChange::Progress {
                usage: RunUsage {
                    total_tokens: tokens,
                    tool_uses: uses,
                    duration_ms: 1000,
                },
                last_tool: Some("Read".into()),
                summary: summary.into(),
            },
        }))
    };
    let mut listed = |event| {
        talk.event(event);
        talk.printed();
        talk.says("/agents");
        let live = talk.live();
        (talk.printed().join("\n"), live)
    };
    let (list, live) = listed(progress(1, 310, "Read a.rs"));
    assert_eq!(
        list,
        "  1 ● scout · works · Read a.rs · 1 tool use (last Read), 310 tokens"
    );
    assert!(live.contains("1 scout ● Read a.rs"), "{live}");
    let (list, live) = listed(progress(2, 650, "Read b.rs"));
    assert_eq!(
        list,
        "  1 ● scout · works · Read b.rs · 2 tool uses (last Read), 650 tokens"
    );
    assert!(live.contains("1 scout ● Read b.rs"), "{live}");
}

#[test]
fn all_that_is_in_the_background_is_stopped_after_it_was_named() {
    let stop = Effect::Send(posse_protocol::Command::StopRuns);
    let mut talk = Talk::new(80, 24);
    assert_eq!(talk.press("Alt-x Alt-x"), []);
    assert!(talk.live().contains("nothing is in the background"));
    talk.event(run(9, "scout", "look at the tests"));
    talk.event(run(10, "", "cargo watch"));
    let EventKind::Run(mut waited) = run(11, "reader", "read") else {
        panic!()
    };
    let facts = waited.run.clone();
    waited.what = RunChange::Started {
        prompt: String::new(),
        background: false,
    };
    talk.event(EventKind::Run(waited));
    assert_eq!(talk.press("Alt-x"), []);
    let live = talk.live();
    assert!(live.contains("Alt-X again stops scout, shell"), "{live}");
    assert!(!live.contains("shell, reader"), "it is waited for: {live}");
    assert_eq!(talk.press("Alt-x"), std::slice::from_ref(&stop));
    let printed = talk.printed().join("\n");
    assert!(printed.contains("stopping scout, shell and"), "{printed}");
    // Since it was moved, it is in the background, too.
    talk.event(EventKind::Run(Box::new(RunUpdate {
        run: facts,
        what: RunChange::Detached,
    })));
    let effects = talk.says("/stop all");
    assert_eq!(effects.last(), Some(&stop));
    let printed = talk.printed().join("\n");
    assert!(printed.contains("scout, shell, reader"), "{printed}");
}

#[test]
fn sub_agents_are_moved_to_the_background_by_a_key() {
    let mut talk = Talk::new(80, 24);
    assert_eq!(talk.press("Ctrl-b"), [], "nobody is waited for");
    talk.works();
    let detach = Effect::Send(posse_protocol::Command::Detach);
    assert_eq!(talk.press("Ctrl-b"), [detach]);
    talk.types("ab");
    assert_eq!(talk.press("Ctrl-b"), []);
    talk.types("x");
    assert_eq!(talk.state.draft(), "axb", "in a draft it moves the cursor");
}
