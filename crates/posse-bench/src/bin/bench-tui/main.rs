//! Measures the conversation of `posse` in a pty of 120 × 40: how soon it is there, what it costs,
//! and how soon keys and tokens are on the screen.
//!
//! - `start ROUNDS DIR`: time from exec to the prompt, in one home;
//! - `idle SECONDS DIR`: memory, and what is spent and written while nothing happens;
//! - `keys COUNT DIR`: time from a key to its character on the screen;
//! - `typing COUNT DIR`: the same while 200 tokens arrive each second;
//! - `tokens GAP_MS COUNT DIR`: time from a token's sending to its text on the screen, and what a
//!   token costs;
//! - `long LINES GAP_US DIR`: what a long reply costs, and how soon keys are shown after it.
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

mod idle;
mod keys;
mod lags;
mod long_reply;
mod model;
mod plain;
mod process;
mod screen;
mod session;
mod start;
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
        _ => return Err("see the head of this program for its arguments".into()),
    };
    println!("{found}");
    Ok(())
}
