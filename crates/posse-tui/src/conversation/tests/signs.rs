//! Every state is told by a sign and a word.

use std::collections::BTreeSet;

use posse_protocol::WaitReason;

use super::screens::run;
use super::*;
use crate::conversation::Sign;

const SIGNS: [Sign; 6] = [
    Sign::Working,
    Sign::Asks,
    Sign::Waits,
    Sign::Idle,
    Sign::Failed,
    Sign::Done,
];

const ACTIVITIES: [Activity; 8] = [
    Activity::Idle,
    Activity::Working,
    Activity::Waiting(WaitReason::Place),
    Activity::Waiting(WaitReason::Budget),
    Activity::Waiting(WaitReason::Rate),
    Activity::Waiting(WaitReason::Children),
    Activity::Waiting(WaitReason::Person),
    Activity::Gone,
];

// proves UI-13 (part: signs)
#[test]
fn each_state_has_a_sign_and_a_word() {
    let marks: BTreeSet<&str> = SIGNS.iter().map(|sign| sign.mark()).collect();
    let words: BTreeSet<&str> = SIGNS.iter().map(|sign| sign.word()).collect();
    assert_eq!((marks.len(), words.len()), (SIGNS.len(), SIGNS.len()));
    let mut told = BTreeSet::new();
    for activity in ACTIVITIES {
        let sign = Sign::of(activity);
        // The agent that is shown, at the foot, and one of the others.
        let mut talk = Talk::new(80, 24);
        talk.event(EventKind::State(activity));
        talk.event(run(9, "scout", ""));
        talk.event_of(agent(9), EventKind::State(activity));
        let live = talk.live();
        let (others, foot) = live.rsplit_once("\n›").unwrap();
        let foot = foot.lines().last().unwrap();
        let words = foot.split(" · ").next().unwrap();
        let words: String = words.chars().filter(|c| !c.is_ascii_digit()).collect();
        assert!(words.starts_with(sign.mark()), "{activity:?}: {foot}");
        assert!(words.contains(char::is_alphabetic), "{activity:?}: {foot}");
        assert!(
            told.insert(words),
            "{activity:?} looks like another: {foot}"
        );
        let shown = format!("scout {} {}", sign.mark(), sign.word());
        assert!(others.contains(&shown), "{activity:?}: {others}");
    }
    // What has failed is told when it ends.
    let mut talk = Talk::new(80, 24);
    talk.printed();
    talk.event(EventKind::Warning("the disk is full".into()));
    assert_eq!(talk.printed(), ["✗ the disk is full"]);
}

#[test]
fn a_slow_hook_is_named_while_it_runs() {
    let mut talk = Talk::new(100, 24);
    talk.event(EventKind::State(Activity::Working));
    let mut hook = posse_protocol::HookUpdate {
        id: uuid::Uuid::from_u128(1),
        event: "PreToolUse".into(),
        about: "Bash".into(),
        title: "looking at the command".into(),
        call: None,
        end: None,
    };
    talk.event(EventKind::Hook(Box::new(hook.clone())));
    assert!(!talk.live().contains("hook:"), "{}", talk.live());
    talk.now_ms += 600;
    assert!(
        talk.live().contains("hook: looking at the command"),
        "{}",
        talk.live()
    );
    hook.end = Some(posse_protocol::HookEnd {
        output: String::new(),
        errors: String::new(),
        code: Some(0),
        failure: None,
    });
    talk.event(EventKind::Hook(Box::new(hook)));
    assert!(!talk.live().contains("hook:"), "{}", talk.live());
}
