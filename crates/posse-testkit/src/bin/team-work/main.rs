//! A process that has a part of a team, to be killed by tests. It lives until then.
//!
//! - `lead URL DIR`: the main agent of a new session, which is told to start; says `session ID`, and `quiet` whenever
//!   nobody has anything left to do;
//! - `lead URL DIR SESSION`: the same of a session that another process has left;
//! - `host URL DIR SESSION MOST`: so many members of its teams that nobody has; says `hosts N` when it has the first.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use posse_protocol::{Command, EventKind, PermissionMode};
use posse_runtime::{Hosting, Members};
use posse_testkit::house::{House, Session};

type Failed = Box<dyn Error + Send + Sync>;

/// So many agents of a process work at once.
const RUNNING: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["lead", url, directory] => {
            let house = House::new(url, Path::new(directory), RUNNING)?;
            let session = house.session_in(PermissionMode::BypassPermissions);
            say(&format!("session {}", session.id()))?;
            session.say("start").await?;
            lead(session).await
        }
        ["lead", url, directory, id] => {
            let house = House::new(url, Path::new(directory), RUNNING)?;
            let session = house.resumed(id).await?;
            say(&format!("session {id}"))?;
            if session.0.unfinished {
                session.0.handle.send(Command::Continue).await?;
            }
            lead(session).await
        }
        ["host", url, directory, session, most] => {
            let house = House::new(url, Path::new(directory), RUNNING)?;
            let members = Members::Free { most: Some(most.parse()?) };
            let hosting = Hosting { session: session.parse()?, members };
            let mut hosted = house.runtime.host(hosting, house.setup.clone()).await?;
            say(&format!("hosts {}", hosted.agents.len()))?;
            while hosted.events.recv().await.is_some() {}
            Err("nothing is left to host".into())
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

async fn lead(mut session: Session) -> Result<(), Failed> {
    loop {
        if let EventKind::Ended(end) = session.event().await?.kind
            && end.live == 0
        {
            say("quiet")?;
        }
    }
}

/// Says a line at once: whoever started this process waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
