//! Teams: starting many, having them idle, and how soon one hears of another.
//!
//! Times are taken from what the scripted model notes: from the end of the reply that calls a tool to the request of
//! the agent that hears of it. What stands between the reply and the commit of what it asks for is counted too.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::program::Bench;
use super::spawn::number;
use super::{Bar, Effort, Figure, Found};

/// The lead makes a team, starts its members in one reply, and writes what it is asked to write. A member that reads
/// this writes back when the lead is idle again; one that takes a task completes it when the others are idle.
const SCRIPT: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [MANY]
[[rule]]
when = { agent = "re:^/main$", tool = "re:." }
reply = [{ text = "good" }]
[[rule]]
when = { agent = "re:^/main$", user = "re:write (\\d+)\\. to (m\\d)" }
reply = [{ tool = "SendMessage", input = { to = "{{user.2}}", message = "word {{user.1}}." } }]
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "TeamCreate", input = { team_name = "crew", description = "It is measured." } }]
[[rule]]
when = { agent = "re:^/main$" }
reply = [{ text = "noted" }]
[[rule]]
when.tool = "Updated"
delay_ms = 20
reply = [{ text = "done" }]
[[rule]]
when.tool = "re:."
reply = [{ text = "heard {{state.word}}." }]
[[rule]]
when.user = "re:word (\\d+)\\."
set.word = "{{user.1}}"
delay_ms = 30
reply = [{ tool = "SendMessage", input = { to = "team-lead", message = "answer {{user.1}}." } }]
[[rule]]
when.user = "re:Task (\\d+) is yours now"
delay_ms = 60
reply = [{ tool = "TaskUpdate", input = { taskId = "{{user.1}}", status = "completed" } }]
[[rule]]
reply = [{ text = "ready" }]
"#;

/// How many are started in one reply.
const SIZES: [u32; 3] = [16, 32, 100];
/// How many words, or tasks, there are in a round: what an agent says again in each request must not grow too long.
const ROUND: u32 = 25;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let bench = Bench::new(binaries, "bench-spawn")?;
    let mut notes = Vec::new();
    let (mut all, mut each) = (true, f64::NAN);
    for size in SIZES {
        let found = bench.asking(
            binaries,
            &script(size),
            &["teams", "many", "URL", "DIR", &size.to_string()],
        )?;
        notes.push(format!("{size} in one reply: {found}"));
        all &= found["ok"] == true;
        each = number(&found, "ms_each")?;
    }
    let seconds = if quick { "10" } else { "60" };
    let idle = bench.asking(
        binaries,
        &script(100),
        &["teams", "idle", "URL", "DIR", "100", seconds],
    )?;
    notes.push(format!("100 that are idle: {idle}"));

    let before = bench.run(&["sync", "DIR"])?;
    let rounds = if quick { 4 } else { 42 };
    let measure = |what: &str, mates, rounds: u32| -> Result<Value> {
        let (rounds, count) = (rounds.to_string(), ROUND.to_string());
        bench.asking(
            binaries,
            &script(mates),
            &["teams", what, "URL", "DIR", &rounds, &count],
        )
    };
    let words = measure("words", 4, rounds)?;
    notes.push(format!("words in a process: {words}"));
    let claims = measure("claims", 2, rounds)?;
    notes.push(format!(
        "a task completed to the next begun by another: {claims}"
    ));
    let across = measure("across", 4, rounds)?;
    notes.push(format!("words between two processes: {across}"));
    let after = bench.run(&["sync", "DIR"])?;
    notes.push(format!(
        "a page made durable, before and after: {before}, {after}"
    ));

    let soon = |key, found: &Value, part, most| -> Result<Figure> {
        Ok(Figure::printed(key, number(found, part)?, Bar::Most(most)))
    };
    let (down, up) = (&words["lead_to_mate"], &words["mate_to_lead"]);
    let slower = |part| -> Result<f64> {
        Ok(number(&across["lead_to_mate"], part)?.max(number(&across["mate_to_lead"], part)?))
    };
    let figures = vec![
        Figure::printed("spawn_ms_each", each, Bar::Most(20.0)),
        Figure::printed(
            "idle_100_cpu_ms_per_min",
            number(&idle, "cpu_ms_per_min")?,
            Bar::Most(50.0),
        ),
        Figure::printed("idle_kb_each", number(&idle, "kb_each")?, Bar::Most(10.0)),
        soon("lead_to_mate_p50_ms", down, "p50_ms", 3.0)?,
        soon("lead_to_mate_p99_ms", down, "p99_ms", 15.0)?,
        soon("mate_to_lead_p50_ms", up, "p50_ms", 3.0)?,
        soon("mate_to_lead_p99_ms", up, "p99_ms", 15.0)?,
        soon("done_to_claim_p50_ms", &claims, "p50_ms", 3.0)?,
        soon("done_to_claim_p99_ms", &claims, "p99_ms", 15.0)?,
        Figure::printed("across_p99_ms", slower("p99_ms")?, Bar::Most(25.0)),
    ];
    Ok(Found {
        figures,
        truths: vec![("spawn_100_ok", all)],
        notes,
    })
}

/// The script with this number of members.
fn script(mates: u32) -> String {
    let call = |number| {
        format!(
            r#"{{ tool = "Agent", input = {{ description = "A member", prompt = "Be there.", name = "m{number}" }} }}"#
        )
    };
    SCRIPT.replace("MANY", &(0..mates).map(call).collect::<Vec<_>>().join(", "))
}
