//! posse as the client of a scenario: the suite starts this with the address of its server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// How often posse may be asked to sign in.
const MOST_SIGN_INS: usize = 3;
/// What goes where a browser would go.
const BROWSER: &str = "curl -sL -o /dev/null";
/// Fills in a form of the server as somebody would who finds nothing to change in it.
const FORM: &str = r#"jq -c '{hookSpecificOutput: {hookEventName: "Elicitation", action: "accept",
  content: (.requested_schema.properties | map_values(.default))}}'"#;
/// The document about the client that the suite's own server knows.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Talks with the server at `url` as the scenario of the environment wants it.
pub(crate) fn run(root: &Path, url: &str) -> Result<ExitCode> {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".into());
    let context: Value = serde_json::from_str(&context)?;
    let place = std::env::temp_dir().join(format!("posse-conformance-{}", std::process::id()));
    fs::create_dir_all(place.join("work"))?;
    let played = Scene::begin(root, &place, &script(&scenario, &context))
        .and_then(|scene| scene.play(&entry(&scenario, &context, url)));
    fs::remove_dir_all(&place)?;
    Ok(match played? {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns what the model does: it calls the tools that the scenario wants, one after the other.
fn script(scenario: &str, context: &Value) -> String {
    let named = |names: &[&str]| names.iter().map(|it| json!({ "name": it })).collect();
    let calls: Vec<Value> = match (context["toolCalls"].as_array(), scenario) {
        (Some(calls), _) => calls.clone(),
        (_, "tools_call") => vec![json!({"name": "add_numbers", "arguments": {"a": 2, "b": 3}})],
        (_, "elicitation-sep1034-client-defaults") => named(&["test_client_elicitation_defaults"]),
        (_, "sse-retry") => named(&["test_reconnection"]),
        (_, "sep-2322-client-request-state") => named(&[
            "test_mrtr_echo_state",
            "test_mrtr_no_state",
            "test_mrtr_unrelated",
            "test_mrtr_no_result_type",
        ]),
        (_, "http-standard-headers") => named(&["test_headers"]),
        (_, "http-invalid-tool-headers") => {
            vec![json!({"name": "valid_tool", "arguments": {"region": "us"}})]
        }
        (_, scenario) if scenario.starts_with("auth/") => named(&["test-tool"]),
        _ => Vec::new(),
    };
    let rules = calls.iter().enumerate().map(|(turn, call)| {
        let (turn, name) = (turn + 1, call["name"].as_str().unwrap_or_default());
        let input = match &call["arguments"] {
            Value::Null => json!({}),
            input => input.clone(),
        };
        format!(
            "[[rule]]\nwhen.turn = {turn}\n\
             reply = [{{ tool = 'mcp__t__{name}', json = '''{input}''' }}]\n"
        )
    });
    let rules: String = rules.collect();
    format!("{rules}[[rule]]\nreply = [{{ text = 'done' }}]\n")
}

/// Returns the entry of the server. What a person has to know of a client is in it.
fn entry(scenario: &str, context: &Value, url: &str) -> String {
    let mut entry = json!({"type": "http", "url": url, "alwaysLoad": true});
    if scenario == "auth/basic-cimd" {
        entry["oauth"] = json!({ "clientId": DOCUMENT });
    }
    if let Some(id) = context["client_id"].as_str() {
        entry["oauth"] = json!({"clientId": id, "clientSecret": context["client_secret"]});
    }
    entry.to_string()
}

/// posse in a home of its own, with a scripted model.
struct Scene {
    posse: PathBuf,
    place: PathBuf,
    model: Child,
    url: String,
}

impl Scene {
    fn begin(root: &Path, place: &Path, script: &str) -> Result<Self> {
        let posse = root.join("target/ci/posse");
        let file = place.join("script.toml");
        fs::write(&file, script)?;
        let mut model = Command::new(&posse)
            .args(["scripted-model", "--port", "0", "--json"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let output = model.stdout.take().context("the model has no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let begun: Value = serde_json::from_str(&line)?;
        let url = begun["url"].as_str().context("the model has no address")?;
        Ok(Self {
            url: url.to_owned(),
            place: place.to_owned(),
            posse,
            model,
        })
    }

    /// Runs a prompt, and signs in whenever posse says that this is needed.
    fn play(&self, entry: &str) -> Result<bool> {
        self.run(&["mcp", "add-json", "t", entry, "--scope", "user"])?;
        let hooks = json!([{ "hooks": [{ "type": "command", "command": FORM }] }]);
        let settings = json!({ "hooks": { "Elicitation": hooks } }).to_string();
        let prompt = [
            "-p",
            "--settings",
            &settings,
            "--permission-mode",
            "bypassPermissions",
            "--output-format",
            "stream-json",
            "--verbose",
            "go",
        ];
        for _ in 0..MOST_SIGN_INS {
            let (is_done, said) = self.run(&prompt)?;
            if !said.contains("posse mcp login") {
                return Ok(is_done);
            }
            if !self.run(&["mcp", "login", "t"])?.0 {
                return Ok(false);
            }
        }
        Ok(self.run(&prompt)?.0)
    }

    /// Runs posse. Returns whether it succeeded, and what it printed.
    fn run(&self, words: &[&str]) -> Result<(bool, String)> {
        let output = Command::new(&self.posse)
            .args(words)
            .current_dir(self.place.join("work"))
            .env("HOME", &self.place)
            .env("POSSE_HOME", self.place.join("posse"))
            .env("POSSE_SANDBOX", "off")
            .env("ANTHROPIC_BASE_URL", &self.url)
            .env("ANTHROPIC_API_KEY", "scripted")
            .env("BROWSER", BROWSER)
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.success(), said))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
    }
}
