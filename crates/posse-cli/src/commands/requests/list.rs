//! `posse requests list`.

use std::process::ExitCode;

use posse_port::store::Store;
use posse_tui::question::about;
use serde_json::{Value, json};

use super::meant::{self, Request};
use crate::output::table::{Column, needed, spare, table};
use crate::output::time::{age, moment, now_ms};
use crate::output::{json_line, one_line, print, say_to_person, tame, width};
use crate::present::question;

const COLUMNS: [Column; 6] = [
    needed("REQUEST"),
    needed("KIND"),
    needed("FROM"),
    spare("SESSION", 2),
    spare("AGE", 1).right(),
    needed("WHAT"),
];

/// List what waits for an answer, oldest first.
#[derive(clap::Args)]
pub(super) struct ListOpen {
    /// Print one JSON object per request
    #[arg(long)]
    json: bool,
}

impl ListOpen {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let open = meant::open(store).await?;
        if self.json {
            for request in &open {
                print(json_line(&object(request)).as_bytes())?;
            }
        } else if open.is_empty() {
            say_to_person("nothing waits for an answer");
        } else {
            let rows: Vec<_> = open.iter().map(row).collect();
            print(table(&COLUMNS, &rows, width()).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(request: &Request) -> Vec<String> {
    let what = match request {
        Request::Question(record) => {
            let asked = &record.question;
            format!("{} {}", asked.tool, about(asked))
        }
        Request::Plan(_, plan) => plan.text.clone(),
    };
    let id = request.id();
    vec![
        // The ids of plans begin with their time, which several may share.
        match request {
            Request::Question(record) => question::short(&record.question),
            Request::Plan(..) => id.get(..18).unwrap_or(&id).to_owned(),
        },
        request.kind().to_owned(),
        request.from(),
        request.realm().to_string().chars().take(13).collect(),
        age(now_ms().saturating_sub(request.asked_ms())),
        one_line(&tame(&what)),
    ]
}

/// Returns a request for programs.
pub(super) fn object(request: &Request) -> Value {
    let mut object = json!({
        "request_id": request.id(), "kind": request.kind(), "realm": request.realm(), "from": request.from(),
        "asked_at": moment(request.asked_ms()),
    });
    let more = match request {
        Request::Question(record) => {
            let asked = &record.question;
            json!({
                "agent": record.agent, "state": record.state.as_str(), "tool": asked.tool, "tool_use_id": asked.call,
                "input": crate::headless::render::shape::value(&asked.input), "why": asked.why,
                "until": asked.until_ms.map(moment), "answered_at": record.answered_ms.map(moment),
                "answer": record.answer, "shown": asked.shown, "suggestions": asked.suggestions,
            })
        }
        Request::Plan(_, plan) => json!({"to": plan.to, "text": plan.text, "state": "open"}),
    };
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
