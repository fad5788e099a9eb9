//! Measures the screens of `posse` in a pty of 120 × 40: how soon they are there, what they cost,
//! and how soon keys and tokens are on them.
//!
//! - `start ROUNDS DIR`: time from exec to the prompt, in one home;
//! - `idle SECONDS DIR`: memory, and what is spent and written while nothing happens;
//! - `keys COUNT DIR`: time from a key to its character on the screen;
//! - `typing COUNT DIR`: the same while 200 tokens arrive each second;
//! - `tokens GAP_MS COUNT DIR`: time from a token's sending to its text on the screen, and what a
//!   token costs;
//! - `long LINES GAP_US DIR`: what a long reply costs, and how soon keys are shown after it;
//! - `strip AGENTS SECONDS ROUNDS DIR`: what it costs to show agents that all hear replies;
//! - `attach ROUNDS DIR`: time from exec of `posse attach` to what was said;
//! - `board AGENTS ROUNDS DIR`: time from exec of `posse board` to its first frame;
//! - `refresh AGENTS ROUNDS DIR`: what the board costs when ten agents have changed;
//! - `pager LINES ROUNDS DIR`: time from a key to the end of a transcript, and to a text in it.
//!
//! DIR is an empty directory. `posse` is the program beside this one. The harness answers nothing
//! that a program could ask a terminal. Each measurement prints one JSON object.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "it starts what it measures, and gives it time"
)]

mod attach;
mod board;
mod idle;
mod keys;
mod lags;
mod long_reply;
mod model;
mod pager;
mod plain;
mod process;
mod screen;
mod session;
mod start;
mod stored;
mod strip;
mod tokens;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let found = match words[..] {
        ["start", rounds, place] => start::run(Path::new(place), rounds.parse()?)?,
        ["idle", seconds, place] => {
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            idle::run(Path::new(place), time)?
        }
        ["keys", count, place] => keys::run(Path::new(place), count.parse()?)?,
        ["typing", count, place] => keys::run_streaming(Path::new(place), count.parse()?)?,
        ["tokens", gap_ms, count, place] => {
            let gap = Duration::from_millis(gap_ms.parse()?);
            tokens::run(Path::new(place), gap, count.parse()?)?
        }
        ["long", lines, gap_us, place] => {
            let gap = Duration::from_micros(gap_us.parse()?);
            long_reply::run(Path::new(place), lines.parse()?, gap)?
        }
        ["strip", agents, seconds, rounds, place] => {
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            strip::run(Path::new(place), agents.parse()?, time, rounds.parse()?)?
        }
        ["attach", rounds, place] => attach::run(Path::new(place), rounds.parse()?)?,
        ["board", agents, rounds, place] => {
            board::run(Path::new(place), agents.parse()?, rounds.parse()?)?
        }
        ["refresh", agents, rounds, place] => {
            board::refresh(Path::new(place), agents.parse()?, rounds.parse()?)?
        }
        ["pager", lines, rounds, place] => {
            pager::run(Path::new(place), lines.parse()?, rounds.parse()?)?
        }
        _ => return Err("see the head of this program for its arguments".into()),
    };
    println!("{found}");
    Ok(())
}
