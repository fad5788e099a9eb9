//! The official servers `everything` and `filesystem`, which `.ci/setup` installs, used by agents of
//! all kinds.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::project;
use super::served::{assert_nothing_missed, told};
use crate::binary::Project;
use crate::definitions::write;
use crate::sdk::{installed, program};

/// Each agent says which one it is. `everything` answers with what it was sent, `filesystem` with what
/// is in a file.
const SCRIPT: &str = r#"
[[rule]]
when = { user = "once more", tool = "Echo: resumed" }
reply = [{ text = "resumed and done" }]
[[rule]]
when = { user = "once more" }
reply = [{ tool = "mcp__everything__echo", input = { message = "resumed" } }]
[[rule]]
when = { agent = "re:^/main/.", tool = "re:Echo: from /main/." }
reply = [{ text = "done" }]
[[rule]]
when = { agent = "re:^/main/.", user = "Fork." }
reply = [{ tool = "mcp__everything__echo", input = { message = "from {{agent}}" } }]
[[rule]]
when = { agent = "re:^/main/.", tool = "re:mcp__everything__echo" }
reply = [{ tool = "mcp__everything__echo", input = { message = "from {{agent}}" } }]
[[rule]]
when = { agent = "re:^/main/." }
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__everything__echo" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__everything__echo,mcp__files__read_text_file" } }]
[[rule]]
when.turn = 2
reply = [
  { tool = "mcp__everything__echo", input = { message = "from {{agent}}" } },
  { tool = "mcp__files__read_text_file", input = { path = "FILE" } },
]
[[rule]]
when.turn = 3
reply = [
  { tool = "Agent", input = { description = "a fork", prompt = "Fork.", subagent_type = "fork" } },
  { tool = "Agent", input = { description = "a sub", prompt = "Sub.", subagent_type = "general-purpose" } },
]
[[rule]]
when.turn = 4
reply = [{ tool = "TeamCreate", input = { team_name = "crew", description = "d" } }]
[[rule]]
when.turn = 5
reply = [{ tool = "Agent", input = { description = "a mate", prompt = "Mate.", name = "cook", team_name = "crew" } }]
[[rule]]
reply = [{ text = "the end" }]
"#;

fn server(name: &str) -> String {
    let path = format!("npm/node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    installed(&path).to_str().unwrap().to_owned()
}

/// A project with a file that `filesystem` may read.
fn scene(name: &str) -> (Project, PathBuf) {
    let file = Project::place(name).join("work/heron.txt");
    let script = SCRIPT.replace("FILE", file.to_str().unwrap());
    let project = project(name, &script);
    write(&project, "heron.txt", "the word is heron\n");
    (project, file)
}

/// Servers of which a word of the command line is this.
fn running(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines
        .filter(|line| {
            line.contains("@modelcontextprotocol") && line.split('\0').any(|it| it == word)
        })
        .collect()
}

/// The results of tools that a model was sent by now.
fn results(project: &Project) -> Vec<String> {
    let requests = project.requests();
    assert!(requests.iter().all(|it| it["status"] == 200));
    let messages = requests
        .iter()
        .flat_map(|it| it["body"]["messages"].as_array().unwrap());
    let blocks = messages.filter_map(|it| it["content"].as_array()).flatten();
    let results = blocks.filter(|it| it["type"] == "tool_result");
    let mut texts: Vec<String> = results.map(|it| it["content"].to_string()).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// Runs a session with agents of all kinds, resumes it, and looks at what their models were sent.
fn agents_of_all_kinds_use(project: &Project, everything: &Value) {
    let here = project.file("");
    let here = here.to_str().unwrap().trim_end_matches('/');
    let files = json!({ "command": "node", "args": [server("filesystem"), here] });
    let flag = json!({ "mcpServers": { "everything": everything, "files": files } }).to_string();
    let lines = told(project, &["--mcp-config", &flag, "go"]);
    let id = lines[0]["session_id"].as_str().unwrap();
    for server in lines[0]["mcp_servers"].as_array().unwrap() {
        assert_eq!(server["status"], "connected", "{server}");
    }
    let found = results(project);
    assert!(
        found.iter().any(|it| it.contains("the word is heron")),
        "{found:?}"
    );
    let echoes = found.iter().filter(|it| it.contains("Echo: from /main"));
    let echoes: Vec<&String> = echoes.collect();
    // Of the main agent, its fork, its sub-agent and its teammate.
    assert_eq!(echoes.len(), 4, "{found:?}");
    assert_eq!(running(here), Vec::<String>::new());
    let again = ["--resume", id, "--mcp-config", &flag, "once more"];
    let last = told(project, &again).pop().unwrap();
    assert_eq!(last["result"], "resumed and done");
    assert!(
        results(project)
            .iter()
            .any(|it| it.contains("Echo: resumed"))
    );
    assert_nothing_missed(project);
    assert_eq!(running(here), Vec::<String>::new());
}

// proves MC-02 (part: programs)
// proves MC-08 (part: the end)
#[test]
fn the_official_servers_are_used_as_programs() {
    let (project, file) = scene("mcp-real-programs");
    let here = file.parent().unwrap();
    // It does not read its second argument, which tells it from those of other tests.
    let everything = json!({ "command": "node", "args": [server("everything"), "stdio", here] });
    agents_of_all_kinds_use(&project, &everything);
}

/// A server by HTTP, which ends with the test.
struct Address {
    child: Child,
    url: String,
}

impl Address {
    fn start() -> Self {
        let mut command = Command::new("node");
        command
            .args(["--require", &program("loopback.cjs")])
            .args([&server("everything"), "streamableHttp"])
            .env("PORT", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = lines.map_while(Result::ok);
        let port = said.find_map(|line| Some(line.strip_prefix("loopback port ")?.to_owned()));
        let url = format!("http://127.0.0.1:{}/mcp", port.unwrap());
        // It must not wait for somebody who reads.
        std::thread::spawn(move || said.for_each(drop));
        Self { child, url }
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// proves MC-02 (part: addresses)
#[test]
fn the_official_servers_are_used_by_http() {
    let (project, _) = scene("mcp-real-http");
    let server = Address::start();
    agents_of_all_kinds_use(&project, &json!({ "type": "http", "url": server.url }));
}
