//! `posse scripted-model --conformance URL`: sends the same requests to this server or to a real
//! one.

use std::process::ExitCode;

use anyhow::Context;
use posse_scripted::conformance::{Answers, Case, cases};
use serde_json::{Value, json};

use crate::assemble::provider;
use crate::config::environment::variable;
use crate::error::FAILED;
use crate::output::{print, say, tame};

/// The outcome of a case.
enum CaseOutcome {
    Passed,
    Failed(String),
    /// An earlier reply had no thinking to send back.
    Skipped,
}

/// Sends every case to `url` and reports the outcomes. Fails if any answer is not of the expected
/// class.
pub(crate) async fn run(url: &str, model: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    let http = provider::http_client(url)?;
    let key = variable("ANTHROPIC_API_KEY").unwrap_or_else(|| "local".to_owned());
    let (mut answers, mut counts) = (Answers::new(), [0_u32; 3]);
    for case in cases()? {
        let verdict = match case.body(model, &answers) {
            None => CaseOutcome::Skipped,
            Some(body) => {
                let (status, answer) = send(&http, url, &key, &case, body).await?;
                let verdict = case.judge(status, &answer);
                answers.insert(case.name.clone(), answer);
                verdict.map_or_else(
                    |why| CaseOutcome::Failed(tame(&why.to_string())),
                    |()| CaseOutcome::Passed,
                )
            }
        };
        let (place, word, detail) = match &verdict {
            CaseOutcome::Passed => (0, "pass", ""),
            CaseOutcome::Failed(why) => (1, "FAIL", why.as_str()),
            CaseOutcome::Skipped => (2, "skip", "the earlier reply had no thinking"),
        };
        counts[place] += 1;
        let line = if as_json {
            json!({"name": case.name, "verdict": word.to_lowercase(), "detail": detail}).to_string()
        } else {
            format!(
                "{word}  {:<24} {}",
                case.name,
                if detail.is_empty() {
                    &case.about
                } else {
                    detail
                }
            )
        };
        print(format!("{line}\n").as_bytes())?;
    }
    let [passed, failed, skipped] = counts;
    say(&format!(
        "{passed} passed, {failed} failed, {skipped} skipped"
    ));
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

/// Sends one case and returns status and answer.
async fn send(
    http: &reqwest::Client,
    url: &str,
    key: &str,
    case: &Case,
    body: Vec<u8>,
) -> anyhow::Result<(u16, Value)> {
    let usual = [
        ("content-type", "application/json"),
        ("anthropic-version", "2026-10-21"),
        ("x-api-key", key),
    ];
    let mut request = http
        .post(format!("{}{}", url.trim_end_matches('/'), case.path))
        .body(body);
    for (name, value) in usual
        .into_iter()
        .filter(|(name, _)| !case.headers.contains_key(*name))
    {
        request = request.header(name, value);
    }
    for (name, value) in &case.headers {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    let response = request
        .send()
        .await
        .with_context(|| format!("cannot reach {url}"))?;
    let status = response.status().as_u16();
    let text = response
        .text()
        .await
        .with_context(|| format!("{url} broke off"))?;
    Ok((status, serde_json::from_str(&text).unwrap_or_default()))
}
