//! What it costs to show the other agents of a session while all of them hear replies.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failed;
use crate::model::Model;
use crate::process::Process;
use crate::session::{Session, posse};
use crate::tokens::prose;

/// Time between two tokens of an agent: 50 a second.
const GAP: Duration = Duration::from_millis(20);
/// Time until all agents hear something, at most.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time after which only replies cost something.
const SETTLED: Duration = Duration::from_secs(1);

/// How the strip names the second agent.
const SECOND: &str = "2 Look at part 1";

/// Measures the share of a core that a conversation takes whose `agents` sub-agents hear replies,
/// and the same without a screen: `posse -p` into a pipe. By turns, and the middle of the
/// differences is what the screen takes.
pub(crate) fn run(
    place: &Path,
    agents: usize,
    time: Duration,
    rounds: usize,
) -> Result<Value, Failed> {
    let (mut shown, mut piped, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let place = place.join(round.to_string());
        let screen = on_screen(&place.join("screen"), agents, time)?;
        let pipe = in_pipe(&place.join("pipe"), agents, time)?;
        shown.push(screen);
        piped.push(pipe);
        differences.push(screen - pipe);
    }
    Ok(json!({
        "screen_percent": median(shown),
        "pipe_percent": median(piped),
        "difference_percent": median(differences),
    }))
}

/// Returns the share with a screen.
fn on_screen(place: &Path, agents: usize, time: Duration) -> Result<f64, Failed> {
    let model = speaking(agents, time)?;
    let mut session = Session::settled(place, &model)?;
    session.say("go")?;
    session.screen.wait_for(SECOND, 0)?;
    share(session.process, &model, time)
}

/// Returns the share without one.
fn in_pipe(place: &Path, agents: usize, time: Duration) -> Result<f64, Failed> {
    let model = speaking(agents, time)?;
    let mut command = posse(place, &model.url)?;
    command.args(["-p", "go"]);
    let ends = || Stdio::piped();
    let run = Running(
        command
            .stdin(Stdio::null())
            .stdout(ends())
            .stderr(ends())
            .spawn()?,
    );
    share(Process(run.0.id()), &model, time)
}

/// A process that ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a model whose first reply starts agents. Each of them hears more than is measured.
fn speaking(agents: usize, time: Duration) -> Result<Model, Failed> {
    let model = Model::start()?;
    let agent = |number: usize| {
        let description = format!("Look at part {number}");
        let input = json!({"description": description, "prompt": "Look."});
        ("Agent", input)
    };
    model.will_call((0..agents).map(agent).collect());
    let tokens = (time + SETTLED + PATIENCE).as_millis() / GAP.as_millis();
    let tokens = prose(usize::try_from(tokens)?);
    for _ in 0..agents {
        model.will_say(tokens.clone(), GAP);
    }
    Ok(model)
}

/// Returns the share of a core in per cent that a process takes when all agents hear replies.
fn share(process: Process, model: &Model, time: Duration) -> Result<f64, Failed> {
    let begun = Instant::now();
    while model.waiting() > 0 {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{} agents have asked for nothing", model.waiting()).into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(SETTLED);
    let (before, begun) = (process.cpu()?, Instant::now());
    thread::sleep(time);
    let cpu = process.cpu()? - before;
    Ok(cpu.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
