//! What users set about the account of their provider.

use serde_json::json;

use crate::binary::{Project, stderr, stdout};

/// Four sub-agents at once, each of which takes a while; and an account with one request at once.
const FOUR: &str = r#"
[[limits]]
concurrency = 1
[[rule]]
when.agent = "re:^/main/."
delay_ms = 100
reply = [{ text = "seen" }]
[[rule]]
when.tool = "seen"
reply = [{ text = "All have looked." }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "a", prompt = "look" } },
         { tool = "Agent", input = { description = "b", prompt = "look" } },
         { tool = "Agent", input = { description = "c", prompt = "look" } },
         { tool = "Agent", input = { description = "d", prompt = "look" } }]
"#;

// proves GV-01 (part: configured; concurrency)
#[test]
fn requests_at_once_are_limited_for_all_agents() {
    let project = Project::new("account", FOUR);
    let home = project.file("../home");
    std::fs::create_dir_all(&home).unwrap();
    let settings = json!({"account": {"concurrentRequests": 1}});
    std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    let output = project.run(&["-p", "look around"]);
    assert_eq!(stdout(&output), "All have looked.\n", "{}", stderr(&output));
    let requests = project.requests();
    assert_eq!(requests.len(), 6);
    for request in requests {
        assert_eq!(request["verdict"], "within", "{request}");
    }
}
