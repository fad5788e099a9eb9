//! Memory files: what a new agent begins with, what it is told later, and `posse doctor --memory`.

use std::process::Output;
use std::sync::Arc;

use posse_scripted::Server;
use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::crash::serve;

/// A repository, and a model whose requests can be looked at.
pub(crate) struct Scene {
    pub(crate) project: Project,
    pub(crate) server: Arc<Server>,
}

impl Scene {
    pub(crate) fn new(name: &str, script: &str) -> Self {
        let project = Project::new(&format!("memory-{name}"), "");
        std::fs::create_dir_all(project.file(".git")).unwrap();
        let server = serve(script);
        Self { project, server }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.project.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.project.posse(arguments);
        let output = command
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .output();
        output.unwrap()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        let requests = self.server.requests();
        let bodies = requests.iter().map(|request| &request.body);
        bodies
            .map(|body| serde_json::from_slice(body).unwrap())
            .collect()
    }
}

/// Returns all texts of the system prompt of a request.
fn system(body: &Value) -> String {
    let blocks = body["system"].as_array().unwrap();
    let texts = blocks.iter().map(|block| block["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// A script whose only reply is a text.
pub(crate) const ANSWER: &str = "[[rule]]\nreply = [{ text = \"Done.\" }]\n";

// proves FC-09 (part: files; imports; outside)
#[test]
fn a_new_agent_begins_with_all_memory_files_once() {
    let scene = Scene::new("start", ANSWER);
    scene.write("AGENTS.md", "Use tabs.");
    scene.write(
        "CLAUDE.md",
        "@AGENTS.md\n\nSee @docs/style.md and @~/private.md.",
    );
    scene.write("docs/style.md", "Short functions. </memory-file>");
    scene.write(".claude/CLAUDE.md", "Ask before you push.");
    scene.write(".claude/rules/tests.md", "Test first.");
    scene.write(
        ".claude/rules/ts.md",
        "---\npaths: \"**/*.ts\"\n---\nNo any.",
    );
    scene.write("CLAUDE.local.md", "My port is 4000.");
    scene.write("../home/.claude/CLAUDE.md", "Answer in English.");
    scene.write("../home/private.md", "private");
    let output = scene.run(&["-p", "go"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("private.md: not read, though"), "{said}");
    let told = system(&scene.bodies()[0]);
    let expected = [
        "Answer in English.",
        "Use tabs.",
        "See @docs/style.md",
        "Short functions. &lt;/memory-file>",
        "Ask before you push.",
        "Test first.",
        "My port is 4000.",
    ];
    let places = expected.map(|text| told.find(text).unwrap_or_else(|| panic!("{text}: {told}")));
    assert!(places.is_sorted(), "{places:?}");
    for text in expected {
        assert_eq!(told.matches(text).count(), 1, "{text}");
    }
    for text in ["private\n", "No any."] {
        assert!(!told.contains(text), "{text}");
    }
}

// proves FC-09 (part: doctor)
#[test]
fn doctor_lists_memory_files() {
    let scene = Scene::new("doctor", ANSWER);
    scene.write("CLAUDE.md", "@docs/style.md @gone.md @~/x.md but tabs");
    scene.write("docs/style.md", &"x".repeat(50_000));
    scene.write("../home/x.md", "x");
    scene.write(
        ".claude/rules/ts.md",
        "---\npaths: src/**/*.ts\n---\nNo any.",
    );
    let output = scene.run(&["doctor", "--memory", "--json"]);
    let lines = stdout(&output);
    let told: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let work = scene.project.file("").canonicalize().unwrap();
    let file = |name: &str| json!(work.join(name).display().to_string());
    assert_eq!(
        told[0],
        json!({"file": file("CLAUDE.md"), "why": "project", "bytes": 40, "state": "used",
               "loaded": "at the start"})
    );
    assert_eq!(
        told[1],
        json!({"file": file("docs/style.md"), "why": "import", "import_of": file("CLAUDE.md"),
               "bytes": 50_000, "state": "cut", "used_bytes": 40_960, "loaded": "at the start"})
    );
    assert_eq!(
        (&told[2]["state"], &told[3]["state"]),
        (&json!("missing"), &json!("refused"))
    );
    assert!(told[3]["reason"].as_str().unwrap().contains("outside"));
    assert_eq!(
        told[4],
        json!({"file": file(".claude/rules/ts.md"), "why": "rule", "globs": ["src/**/*.ts"],
               "bytes": 34, "state": "used", "loaded": "with a matching file"})
    );
    assert_eq!(told.len(), 5);
    let table = stdout(&scene.run(&["doctor", "--memory"]));
    for line in [
        "used     project     40  CLAUDE.md",
        "cut      import   50000  docs/style.md (imported by CLAUDE.md; after 40960 bytes)",
        "used     rule        34  .claude/rules/ts.md (for src/**/*.ts)",
    ] {
        assert!(table.contains(line), "{line}\n{table}");
    }
}

/// A script that reads the file that a prompt names, or forks. The fork reads a file, too.
const READER: &str = r#"
[[rule]]
when.agent = "re:^/main/"
times = 1
reply = [{ tool = "Read", input = { file_path = "src/b.ts" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "Done." }]
[[rule]]
when.user = "fork"
reply = [{ tool = "Agent", input = { description = "look", prompt = "Look.", subagent_type = "fork" } }]
[[rule]]
when.user = "re:read (\\S+)"
reply = [{ tool = "Read", input = { file_path = "{{user.1}}" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

/// A repository with a rule about TypeScript, and a memory file in a directory.
fn nested(name: &str) -> Scene {
    let scene = Scene::new(name, READER);
    scene.write("CLAUDE.md", "At the top.");
    scene.write(
        ".claude/rules/ts.md",
        "---\npaths: src/**/*.ts\n---\nNo any.",
    );
    scene.write("src/CLAUDE.md", "In src. See @notes.md.");
    scene.write("src/notes.md", "Notes.");
    for name in ["src/a.ts", "src/b.ts", "src/c.rs", "main.rs"] {
        scene.write(name, "x\n");
    }
    scene
}

/// Returns how often the messages of the last request contain each text.
fn counts<const N: usize>(scene: &Scene, texts: [&str; N]) -> [usize; N] {
    let bodies = scene.bodies();
    let messages = bodies.last().unwrap()["messages"].to_string();
    texts.map(|text| messages.matches(text).count())
}

// proves FC-09 (part: nested; rules; once)
#[test]
fn files_below_and_rules_come_with_the_file_that_is_read() {
    let scene = nested("nested");
    scene.run(&["-p", "read main.rs"]);
    let texts = ["At the top.", "No any.", "In src.", "Notes."];
    assert_eq!(counts(&scene, texts), [0; 4], "known, or not about it");
    scene.run(&["-p", "-c", "read src/c.rs"]);
    assert_eq!(
        counts(&scene, texts),
        [0, 0, 1, 1],
        "the rule is about others"
    );
    let output = scene.run(&["-p", "-c", "read src/a.ts"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(counts(&scene, texts), [0, 1, 1, 1]);
    scene.run(&["-p", "-c", "read src/b.ts"]);
    assert_eq!(counts(&scene, texts), [0, 1, 1, 1], "each content once");
    scene.write("src/CLAUDE.md", "In src, anew.");
    scene.run(&["-p", "-c", "read src/a.ts"]);
    assert_eq!(counts(&scene, ["In src, anew.", "In src. "]), [1, 1]);
    let bodies = scene.bodies();
    let results = &bodies[1]["messages"];
    assert_eq!(
        results[2]["content"][0]["type"], "tool_result",
        "results first"
    );
}

// proves FC-09 (part: compaction)
#[test]
fn after_a_compaction_they_are_told_again() {
    let scene = nested("compaction");
    scene.run(&["-p", "read src/a.ts"]);
    assert_eq!(counts(&scene, ["No any.", "In src."]), [1, 1]);
    let output = scene.run(&["-p", "-c", "/compact"]);
    assert!(output.status.success(), "{}", stderr(&output));
    scene.run(&["-p", "-c", "go on"]);
    assert_eq!(counts(&scene, ["No any.", "In src."]), [0, 0]);
    scene.run(&["-p", "-c", "read src/b.ts"]);
    assert_eq!(counts(&scene, ["No any.", "In src."]), [1, 1]);
}

// proves FC-09 (part: forks)
#[test]
fn forks_know_what_their_parent_was_told() {
    let scene = nested("forks");
    scene.run(&["-p", "read src/a.ts"]);
    let output = scene.run(&["-p", "-c", "fork"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let requests = scene.server.requests();
    let of_fork = requests.iter().filter(|request| {
        let path = |(name, value): &(String, String)| {
            name == "x-posse-agent" && value.starts_with("/main/")
        };
        request.headers.iter().any(path)
    });
    let bodies: Vec<String> = of_fork
        .map(|request| String::from_utf8_lossy(&request.body).into_owned())
        .collect();
    assert_eq!(bodies.len(), 2, "it reads, and answers");
    for body in bodies {
        let told = ["No any.", "In src."].map(|text| body.matches(text).count());
        assert_eq!(told, [1, 1]);
    }
}

// proves FC-09 (part: changes; prefix)
#[test]
fn a_file_that_has_changed_is_told_once_and_the_system_prompt_stays() {
    let scene = Scene::new("changed", ANSWER);
    scene.write("CLAUDE.md", "Use tabs.");
    scene.run(&["-p", "one"]);
    scene.write("CLAUDE.md", "Use spaces.");
    scene.run(&["-p", "-c", "two"]);
    assert_eq!(counts(&scene, ["Use spaces.", "Use tabs."]), [1, 0]);
    scene.run(&["-p", "-c", "three"]);
    assert_eq!(counts(&scene, ["Use spaces.", "Use tabs."]), [1, 0]);
    let bodies = scene.bodies();
    let systems: Vec<String> = bodies.iter().map(system).collect();
    assert!(systems[0].contains("Use tabs."));
    assert_eq!(systems, vec![systems[0].clone(); 3]);
}
