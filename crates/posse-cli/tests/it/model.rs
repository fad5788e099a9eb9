//! Another model in mid-session, as programs ask for it and as people see it.

use serde_json::{Value, json};

use crate::binary::Project;
use crate::run::Talk;
use crate::team::succeed;

const SCRIPT: &str = r#"
[[rule]]
reply = [{ thinking = "Thought {{turn}}." }, { text = "Said {{turn}}." }]
"#;

fn set_model(model: Value) -> Value {
    json!({"type": "control_request", "request_id": "m", "request": {"subtype": "set_model", "model": model}})
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

// proves CV-04 (part: resumed; costs; entry; stream-json)
#[test]
fn another_model_outlives_a_killed_process() {
    let project = Project::new("model-killed", SCRIPT);
    let mut talk = Talk::start(&project, &["--model", "claude-opus-5-5"]);
    talk.prompt("one");
    let session = talk.hear("result")["session_id"].clone();
    let session = session.as_str().unwrap();
    talk.tell(&set_model(json!("haiku")));
    let answer = talk.hear("control_response");
    assert_eq!(answer["response"]["subtype"], "success");
    let told = talk.hear("model");
    assert_eq!(told["model"], "claude-haiku-5-5");
    assert!(told["reread_tokens"].as_u64() > Some(0), "{told}");
    assert!(told["reread_cost_usd"].as_f64() > Some(0.0), "{told}");
    talk.kill();

    let flags = ["--resume", session, "--output-format", "json"];
    let end = parsed(&succeed(&project, &[&["-p", "two"][..], &flags].concat()));
    assert_eq!(end["result"], "Said 2.");
    let used: Vec<_> = end["modelUsage"].as_object().unwrap().keys().collect();
    assert_eq!(used, ["claude-haiku-5-5"]);
    let cost = parsed(&succeed(&project, &["cost", session, "--json"]));
    let models = cost["models"].as_array().unwrap();
    let mut paid: Vec<_> = models
        .iter()
        .filter_map(|it| it["model"].as_str())
        .collect();
    paid.sort_unstable();
    assert_eq!(paid, ["claude-haiku-5-5", "claude-opus-5-5"]);
    let listed = succeed(&project, &["sessions", "list", "--json"]);
    assert!(listed.contains(r#""model":"claude-haiku-5-5""#), "{listed}");
    let shown = succeed(&project, &["sessions", "show", session]);
    assert!(shown.contains("● Model: claude-haiku-5-5\n"), "{shown}");
    let cache = succeed(&project, &["cache", session, "--all", "--json"]);
    let cache = parsed(&cache);
    let requests = cache["agents"][0]["requests"].as_array().unwrap();
    let differs: Vec<_> = requests.iter().map(|it| &it["differs_at"]).collect();
    assert_eq!(differs, [&Value::Null, &json!("model")], "{cache}");
}

// proves CV-04 (part: stream-json; refused; default)
#[test]
fn a_program_is_told_why_a_model_is_refused() {
    let project = Project::new("model-refused", SCRIPT);
    let mut talk = Talk::start(
        &project,
        &["--model", "claude-opus-5-5", "--max-budget-usd", "5"],
    );
    talk.prompt("one");
    talk.hear("result");
    talk.tell(&set_model(json!(7)));
    let answer = talk.hear("control_response");
    assert_eq!(answer["response"]["error"], "`model` is not a text");
    talk.tell(&set_model(json!("homemade")));
    let unheard = talk.hear("unheard");
    let why = unheard["message"].as_str().unwrap();
    assert!(why.contains("the price of homemade is unknown"), "{why}");
    // The model of the start is there already.
    talk.tell(&set_model(Value::Null));
    let told = talk.hear("model");
    assert_eq!(
        (&told["model"], &told["reread_tokens"]),
        (&json!("claude-opus-5-5"), &json!(0))
    );
    talk.prompt("two");
    assert_eq!(talk.hear("result")["result"], "Said 2.");
    assert_eq!(talk.end(), Some(0));
}
