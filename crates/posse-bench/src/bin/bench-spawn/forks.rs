//! Forks: their cache reads, their repeated payments, and the cost of a thousand of them.

mod life;
mod many;
mod plain;
mod share;

use std::path::Path;

use serde_json::Value;

use crate::Failed;
use crate::record::Request;
use posse_testkit::test_runtime::AgentRecord;

/// Minimum size of one prompt to the parent, in kilobytes.
const PART_KB: u64 = 8;

pub(crate) async fn run(words: &[&str]) -> Result<Value, Failed> {
    match words[..] {
        ["share", url, directory, count, kilobytes] => {
            share::run(
                url,
                Path::new(directory),
                count.parse()?,
                kilobytes.parse()?,
            )
            .await
        }
        ["life", url, directory, kilobytes] => {
            life::run(url, Path::new(directory), kilobytes.parse()?).await
        }
        ["worker", url, directory] => life::work(url, Path::new(directory), None).await,
        ["worker", url, directory, session] => {
            life::work(url, Path::new(directory), Some(session)).await
        }
        ["plain", url, directory] => plain::run(url, Path::new(directory)).await,
        ["many", url, sink, directory, count, kilobytes] => {
            many::run(
                url,
                sink,
                Path::new(directory),
                count.parse()?,
                kilobytes.parse()?,
            )
            .await
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

/// Makes a history of the given size, different from that of any other session.
async fn grow(session: &mut AgentRecord, kilobytes: u64) -> Result<(), Failed> {
    let (id, mut left) = (session.id(), kilobytes);
    while left > 0 {
        let some = left.min(PART_KB.max(kilobytes / 16));
        let words =
            "What is known so far, said in a few words more. ".repeat(some as usize * 1024 / 48);
        session
            .say(&format!("part {left} of {id}: {words}"))
            .await?;
        session.end().await?;
        left -= some;
    }
    Ok(())
}

/// Returns a request without cache marks, which move and are not part of a prompt.
fn bare(request: &Request) -> String {
    let mut body = request.body.clone();
    for ttl in ["", r#","ttl":"1h""#] {
        body = body.replace(
            &format!(r#","cache_control":{{"type":"ephemeral"{ttl}}}"#),
            "",
        );
    }
    body
}

/// Returns the length of the common prefix, in bytes.
fn common(bodies: &[String]) -> usize {
    let Some((first, others)) = bodies.split_first() else {
        return 0;
    };
    let with = |other: &String| {
        first
            .bytes()
            .zip(other.bytes())
            .take_while(|(one, two)| one == two)
            .count()
    };
    others.iter().map(with).min().unwrap_or(first.len())
}
