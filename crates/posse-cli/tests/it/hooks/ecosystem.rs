//! Scripts as repositories have them, in bash, Python and JavaScript, run unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::scene::{Scene, Setting, blocks};

/// A script with its settings, and what it has done in Claude Code.
#[derive(Deserialize)]
struct EcosystemScript {
    script: String,
    #[serde(default)]
    server: bool,
    settings: Value,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    flags: Vec<String>,
    prompt: Option<String>,
    model: Vec<String>,
    effect: Effect,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Effect {
    /// The content of files; none if there is no such file.
    files: BTreeMap<String, Option<String>>,
    /// What the model has read.
    told: Vec<String>,
    /// What it has not read.
    untold: Vec<String>,
    requests: usize,
    result: String,
}

impl EcosystemScript {
    /// Runs the script in a project that has it, and returns what it did.
    fn play(&self) -> Effect {
        let setting = Setting {
            model: self.model.clone(),
            flags: self.flags.clone(),
            files: self.files.clone(),
            prompt: self.prompt.clone(),
            settings: Map::new(),
            ..Setting::default()
        };
        let scene = Scene::new(&format!("ecosystem/{}", self.script), setting);
        let hooks = scene.work().join(".claude/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hooks/scripts");
        let copy = hooks.join(&self.script);
        fs::copy(from.join(&self.script), &copy).unwrap();
        fs::set_permissions(copy, fs::Permissions::from_mode(0o755)).unwrap();
        let settings = scene.work().join(".claude/settings.json");
        fs::write(settings, self.settings.to_string()).unwrap();
        scene.write_settings(&json!({}));
        let shown = scene.run(&[]);
        let bodies = scene.bodies();
        let read: Vec<String> = bodies.iter().flat_map(texts).collect();
        let holds = |words: &&String| read.iter().any(|text| text.contains(*words));
        let content = |name: &String| fs::read_to_string(scene.work().join(name)).ok();
        let names = self.effect.files.keys();
        let result = shown.ends.last().map(|end| end["result"].clone());
        Effect {
            files: names.map(|name| (name.clone(), content(name))).collect(),
            told: self.effect.told.iter().filter(holds).cloned().collect(),
            untold: self
                .effect
                .untold
                .iter()
                .filter(|words| !holds(words))
                .cloned()
                .collect(),
            requests: bodies.len(),
            result: result
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or(&shown.stderr)
                .to_owned(),
        }
    }
}

/// The texts that a request tells the model.
fn texts(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| blocks(&message["content"]));
    let parts = blocks.flat_map(|block| match block["type"] == "tool_result" {
        true => super::scene::blocks(&block["content"]),
        false => vec![block],
    });
    parts
        .filter_map(|part| part["text"].as_str().map(str::to_owned))
        .collect()
}

// proves HK-01 (part: exit codes)
#[test]
fn scripts_of_repositories_have_the_effect_that_they_have_in_claude_code() {
    let scripts: Vec<EcosystemScript> = serde_json::from_str(include_str!("scripts.json")).unwrap();
    assert_eq!(scripts.len(), 10);
    // Its notification is that a server asks a person, which posse declines without a person.
    for script in scripts.iter().filter(|script| !script.server) {
        assert_eq!(script.play(), script.effect, "{}", script.script);
    }
}

/// The one that is about notifications, where a person is asked.
#[test]
fn a_script_is_notified_of_a_question() {
    let scripts: Vec<EcosystemScript> = serde_json::from_str(include_str!("scripts.json")).unwrap();
    let notify = scripts.into_iter().find(|script| script.server).unwrap();
    let file = ".claude/notifications.txt".to_owned();
    let asks = "[[rule]]\nwhen.turn = 1\nreply = [{ tool = \"Bash\", input = { command = \"touch a\" } }]\n";
    let says = "[[rule]]\nreply = [{ text = \"all done\" }]\n";
    let script = EcosystemScript {
        server: false,
        flags: vec!["--on-question=wait=1s".into()],
        model: vec![asks.into(), says.into()],
        effect: Effect {
            files: BTreeMap::from([(file.clone(), None)]),
            ..Effect::default()
        },
        ..notify
    };
    let seen = script.play();
    let told = seen.files[&file].clone().unwrap();
    assert!(told.starts_with("permission_prompt: "), "{told}");
    assert_eq!((seen.requests, seen.result.as_str()), (2, "all done"));
}
