//! Calls that fail in the same way again and again.

use super::*;

/// A reply with one call for each character: `x` and `y` fail, each in its own way, `r` reads.
/// Capital letters have another input.
fn calls(tool: &str, calls: &str) -> Input {
    let lower = calls.to_lowercase();
    let mut input = reply(&lower.replace('y', "x"), StopReason::ToolUse);
    let Input::Reply { reply, intents, .. } = &mut input else {
        panic!("a reply")
    };
    for (block, what) in reply.content[1..].iter_mut().zip(calls.chars()) {
        let ContentBlock::ToolUse { name, input, .. } = block else {
            panic!("a call")
        };
        *name = tool.to_owned();
        let (reads, capital) = (what == 'r', what.is_uppercase());
        *input = RawJson::from(&serde_json::json!({ "reads": reads, "capital": capital }));
    }
    for (intent, what) in intents.iter_mut().zip(lower.chars()) {
        if what == 'y' {
            *intent = Err(ToolError::Tell("otherwise".into()));
        }
    }
    input
}

/// What follows from replies, one letter each: `-` nothing, `n` a notice, `P` paused, `L` a limit.
fn follows(life: Life, tool: &str, replies: &[&str]) -> String {
    let mut machine = alive(life, PermissionMode::Default, Approver::Nobody, FREE);
    machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    let mut followed = String::new();
    for text in replies {
        let seq = machine.next_seq;
        let mut decision = machine.step(calls(tool, text));
        for (ordinal, what) in (0..).zip(text.chars()) {
            if what == 'r' {
                decision = machine.step(done(seq, ordinal, "ok"));
            }
        }
        let results = &decision.commit.entries.last().unwrap().message.content;
        let is_notice = |block: &&ContentBlock| matches!(block, ContentBlock::Text { text } if text.contains("in a row with the same input"));
        let notices = results.iter().filter(is_notice).count();
        let ended = decision.after.iter().find_map(|effect| match effect {
            Effect::End(ended) => Some(&ended.outcome),
            _ => None,
        });
        followed.push(match (notices, ended) {
            (0, None) => '-',
            (1, None) => 'n',
            (0, Some(Outcome::Paused(fault))) if fault.class == FaultClass::Repetition => 'P',
            (0, Some(Outcome::Partial(Limit::Repetition))) => 'L',
            other => panic!("{other:?}"),
        });
    }
    followed
}

const ROOT: Life = Life::Root {
    joins: true,
    then: PermissionMode::Default,
};

// proves FC-03 (part: notice; main agent; sub-agent; teammate)
#[test]
fn the_third_is_told_and_the_fifth_ends_the_run() {
    for (life, end) in [
        (ROOT, 'P'),
        (Life::Sub, 'L'),
        (Life::Teammate { then: None }, 'L'),
    ] {
        let followed = follows(life, "Bash", &["x", "x", "x", "x", "x"]);
        assert_eq!(followed, format!("--n-{end}"), "{life:?}");
    }
    // Of those in one reply the model has seen no result yet.
    assert_eq!(follows(ROOT, "Bash", &["xxxxxx", "xx", "xxx"]), "--n");
}

// proves FC-03 (part: a row)
#[test]
fn a_success_a_new_input_and_another_error_end_a_row_and_other_calls_do_not() {
    for (replies, expected) in [
        (["xr", "rx", "xX", "xr", "rrx"], "--n-P"),
        (["x", "x", "X", "x", "x"], "-----"),
        (["x", "x", "y", "x", "x"], "-----"),
        (["x", "x", "r", "x", "x"], "-----"),
        (["x", "x", "xr", "X", "x"], "--n--"),
    ] {
        assert_eq!(follows(ROOT, "Bash", &replies), expected, "{replies:?}");
    }
    for tool in ["Wait", "TaskOutput"] {
        assert_eq!(follows(ROOT, tool, &["x"; 6]), "------");
    }
    assert_eq!(follows(ROOT, "Read", &["r"; 6]), "------");
}

#[test]
fn new_words_begin_a_new_row() {
    let mut machine = alive(ROOT, PermissionMode::Default, Approver::Nobody, FREE);
    machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    for _ in 0..4 {
        machine.step(calls("Bash", "x"));
    }
    // They came before the results, and are shown with them.
    machine.step(Input::Prompt(vec![ContentBlock::text("try this")]));
    let decision = machine.step(calls("Bash", "x"));
    assert!(told(&decision).ends_with("call"), "{}", told(&decision));
    for _ in 0..4 {
        machine.step(calls("Bash", "x"));
    }
    let decision = machine.step(calls("Bash", "x"));
    assert!(
        told(&decision).contains("end Paused"),
        "{}",
        told(&decision)
    );
}
