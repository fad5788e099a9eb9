//! MCP servers that people declare: in files, by commands and by flags; and which of a repository's
//! count.

mod asked;
mod channels;
mod hook_tools;
mod killed;
mod real;
mod served;
mod serving;
mod sign_in;
mod words;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::definitions::write;
use crate::trust::untrusted;

const PAGE: &str = include_str!("../../../../docs/mcp.md");
const HELLO: &str = "[[rule]]\nreply = [{ text = 'hello' }]\n";

/// The user's file that other programs write, too.
const OF_USER: &str = "{\n  \"zebra\": 1e3,\n  \"projects\": {\n    \"/elsewhere\": {\n      \
                       \"history\": [1, 2]\n    }\n  },\n  \"apple\": true\n}\n";

/// A repository, and a home of the user's.
fn project(name: &str, script: &str) -> Project {
    let project = crate::definitions::project(name, script);
    fs::create_dir_all(project.file("../home")).unwrap();
    project
}

fn user_file(project: &Project) -> PathBuf {
    project.file("../home/.claude.json")
}

fn read(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

/// posse where nobody has trusted anything.
fn run(project: &Project, arguments: &[&str]) -> Output {
    untrusted(project, arguments).output().unwrap()
}

fn done(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stderr(&output)
}

fn refused(project: &Project, arguments: &[&str]) -> String {
    let output = run(project, arguments);
    assert!(
        !output.status.success(),
        "{arguments:?}: {}",
        stdout(&output)
    );
    stderr(&output)
}

fn objects(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", stderr(output));
    let lines = stdout(output);
    let objects = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    objects.collect()
}

/// Returns the name, the source, the state and what runs of each server.
fn listed(project: &Project) -> Vec<[String; 4]> {
    let all = objects(&run(project, &["mcp", "list", "--json"]));
    let word = |server: &Value, key: &str| server[key].as_str().unwrap().to_owned();
    let all = all.iter();
    all.map(|server| ["name", "source", "state", "what"].map(|key| word(server, key)))
        .collect()
}

fn row(words: [&str; 4]) -> [String; 4] {
    words.map(str::to_owned)
}

// proves MC-01 (part: commands)
#[test]
fn servers_are_added_and_removed_and_the_rest_of_the_file_stays() {
    let project = project("mcp-commands", HELLO);
    let file = user_file(&project);
    fs::write(&file, OF_USER).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    done(
        &project,
        &[
            "mcp", "add", "files", "-e", "A=b=c", "--", "npx", "-y", "x", "--all",
        ],
    );
    let remote = [
        "mcp",
        "add",
        "--transport",
        "http",
        "tickets",
        "https://x.org/mcp",
        "--header",
        "Authorization: Bearer abc",
        "-s",
        "user",
    ];
    done(&project, &remote);
    let entry = r#"{"command": "db", "timeout": 2000, "alwaysLoad": true, "shared": false}"#;
    done(
        &project,
        &["mcp", "add-json", "db", entry, "--scope", "project"],
    );
    let text = read(&file);
    assert!(
        text.starts_with("{\n  \"zebra\": 1e3,\n  \"projects\": {\n    \"/elsewhere\""),
        "{text}"
    );
    let root = project.file("").canonicalize().unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let local = &all["projects"][root.to_str().unwrap()]["mcpServers"]["files"];
    let expected = json!({
        "type": "stdio", "command": "npx", "args": ["-y", "x", "--all"], "env": {"A": "b=c"},
    });
    assert_eq!(*local, expected);
    let headers = json!({"Authorization": "Bearer abc"});
    assert_eq!(all["mcpServers"]["tickets"]["headers"], headers);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        listed(&project),
        [
            row(["db", "project", "waits", "db"]),
            row(["files", "local", "active", "npx -y x --all"]),
            row(["tickets", "user", "active", "https://x.org/mcp"]),
        ]
    );
    // A secret is not shown.
    let shown = run(&project, &["mcp", "get", "tickets", "--json"]);
    assert!(!stdout(&shown).contains("abc"), "{}", stdout(&shown));
    let shown = stdout(&run(&project, &["mcp", "get", "files"]));
    for line in [
        "files (local)",
        "runs     npx -y x --all",
        "with     A=b=c",
        "--scope local",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let again = refused(&project, &["mcp", "add", "files", "--", "other"]);
    assert!(
        again.contains("there is a local MCP server files already"),
        "{again}"
    );
    done(&project, &["mcp", "add", "--force", "files", "--", "other"]);
    let twice = ["mcp", "add", "files", "--scope", "user", "--", "mine"];
    done(&project, &twice);
    let several = refused(&project, &["mcp", "remove", "files"]);
    assert!(several.contains("local or user"), "{several}");
    done(&project, &["mcp", "remove", "files", "--scope", "local"]);
    done(&project, &["mcp", "remove", "files"]);
    done(&project, &["mcp", "remove", "tickets"]);
    done(&project, &["mcp", "remove", "db"]);
    assert_eq!(listed(&project), [[""; 4]; 0]);
    let all: Value = serde_json::from_str(&read(&file)).unwrap();
    assert_eq!(all["projects"]["/elsewhere"]["history"], json!([1, 2]));
    assert_eq!(all["apple"], true);
}

#[test]
fn what_cannot_be_declared_is_told() {
    let project = project("mcp-wrong", HELLO);
    let check = |arguments: &[&str], words: &str| {
        let told = refused(&project, &[&["mcp"], arguments].concat());
        assert!(told.contains(words), "{arguments:?}: {told}");
    };
    check(&["add", "a b", "--", "x"], "cannot be the name of a server");
    check(
        &["add", "a", "https://x.org"],
        "an address needs --transport",
    );
    check(
        &["add", "-t", "sse", "a", "https://x.org"],
        "`sse` is not supported",
    );
    check(&["add", "-t", "http", "a", "x.org"], "begins with http://");
    check(
        &["add", "-t", "http", "a", "http://x", "-e", "A=b"],
        "--env is for programs",
    );
    check(&["add", "a", "-e", "A", "--", "x"], "NAME=VALUE");
    check(&["add-json", "a", "{"], "the entry is not JSON");
    check(
        &["add-json", "a", r#"{"url": "https://x"}"#],
        "`url` needs a `type`",
    );
    check(&["get", "filse"], "there is no MCP server filse here");
    assert!(!user_file(&project).exists());
    done(&project, &["mcp", "add", "files", "--", "x"]);
    check(&["get", "filse"], "did you mean files?");
    check(&["remove", "filse"], "did you mean files?");
    // What is not as it should be stays as it is.
    fs::write(user_file(&project), "{\"mcpServers\": [").unwrap();
    check(&["add", "b", "-s", "user", "--", "x"], "is not JSON");
    assert_eq!(read(&user_file(&project)), "{\"mcpServers\": [");
}

// proves MC-01 (part: files; flags; broken)
#[test]
fn servers_of_all_files_count_and_what_is_broken_is_told() {
    let project = project("mcp-files", HELLO);
    let root = project.file("").canonicalize().unwrap();
    let of_user = json!({
        "mcpServers": {"a": {"command": "of-user"}, "b": {"command": "of-user"}, "c": {"command": "of-user"}},
        "projects": {root.to_str().unwrap(): {"mcpServers": {"a": {"command": "of-local"}}}},
    });
    fs::write(user_file(&project), of_user.to_string()).unwrap();
    let of_project = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"of-project\"},\n    \"b\": \
                      {\"command\": \"of-project\"},\n    \"late\": {\"url\": \"https://x\"},\n    \
                      \"odd\": {\"command\": \"x\", \"agrs\": [\"${POSSE_TEST_UNSET}\"]}\n  }\n}\n";
    write(&project, ".mcp.json", of_project);
    let trusted = |arguments: &[&str]| project.run(arguments);
    let counts = |output: &Output| {
        let all = objects(output);
        let active = all.iter().filter(|it| it["state"] == "active");
        let words = active.map(|it| format!("{}={}", it["name"], it["what"]).replace('"', ""));
        words.collect::<Vec<_>>().join(" ")
    };
    let list = trusted(&["mcp", "list", "--json"]);
    assert_eq!(counts(&list), "a=of-local b=of-project c=of-user odd=x");
    let told = stderr(&list);
    for line in [
        ".mcp.json:5: the MCP server late: `url` needs a `type`",
        ".mcp.json:6: the MCP server odd: `agrs` is not known and ignored (did you mean `args`?)",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let names = |flags: &[&str]| {
        let lines = ["-p", "hi", "--output-format", "stream-json"];
        let output = trusted(&[&lines[..], flags].concat());
        let servers = objects(&output)[0]["mcp_servers"].clone();
        let servers = servers.as_array().unwrap().clone();
        let names = servers
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>().join(" "), stderr(&output))
    };
    assert_eq!(names(&[]).0, "a b c odd");
    write(
        &project,
        "more.json",
        r#"{"mcpServers": {"f": {"command": "of-file"}}}"#,
    );
    let inline =
        r#"{"mcpServers": {"g": {"command": "of-flag", "args": ["${POSSE_TEST_UNSET}"]}}}"#;
    let both = ["--mcp-config", "more.json", "--mcp-config", inline];
    let (found, told) = names(&both);
    assert_eq!(found, "a b c f g odd");
    assert!(
        told.contains("the MCP server g: not set, and without a default: ${POSSE_TEST_UNSET}"),
        "{told}"
    );
    let strict = [&both[..], &["--strict-mcp-config"]].concat();
    assert_eq!(names(&strict).0, "f g");
    let (found, told) = names(&["--mcp-config", "none.json"]);
    assert_eq!(found, "a b c odd");
    assert!(
        told.contains("none.json: --mcp-config: there is no such file"),
        "{told}"
    );
    write(&project, ".mcp.json", "{\n\"mcpServers\": {,");
    let (found, told) = names(&[]);
    assert_eq!(found, "a b c");
    assert!(told.contains(".mcp.json:2: "), "{told}");
    assert_eq!(names(&["--setting-sources", "user"]).0, "a b c");
}

// proves HK-12 (part: servers; content)
// proves MC-01 (part: approval)
#[test]
fn a_server_of_a_repository_waits_until_its_content_is_accepted() {
    let project = project("mcp-approval", HELLO);
    let declare = |db: &str| {
        let all = json!({"mcpServers": {"db": {"command": db}, "web": {"command": "web"}}});
        write(&project, ".mcp.json", &all.to_string());
    };
    let states = || {
        let states = listed(&project)
            .into_iter()
            .map(|[name, _, state, _]| name + "=" + &state);
        states.collect::<Vec<_>>().join(" ")
    };
    let said = |flags: &[&str]| done(&project, &[&["-p", "hi"], flags].concat());
    declare("one");
    assert_eq!(states(), "db=waits web=waits");
    let told = said(&[]);
    assert!(told.contains("not trusted: 2 MCP servers of"), "{told}");
    // No setting of the repository changes that, nor a name that the user knows.
    let all = r#"{"enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["db", "web"]}"#;
    write(&project, ".claude/settings.json", all);
    write(&project, ".claude/settings.local.json", all);
    fs::create_dir_all(project.file("../home/.claude")).unwrap();
    let user = project.file("../home/.claude/settings.json");
    fs::write(&user, r#"{"enabledMcpjsonServers": ["db"]}"#).unwrap();
    assert_eq!(states(), "db=waits web=waits");
    let shown = run(&project, &["trust", "--yes"]);
    let shown = stdout(&shown);
    assert!(
        shown.contains("MCP server db (one): .mcp.json#db"),
        "{shown}"
    );
    assert_eq!(states(), "db=active web=active");
    assert!(!said(&[]).contains("not started"), "{}", said(&[]));
    // The one that changes waits again, the other one does not.
    declare("two");
    assert_eq!(states(), "db=waits web=active");
    let told = said(&[]);
    let line = ".mcp.json: the MCP server db is not started: you have not accepted it as it is now \
                (`posse trust`); enabledMcpjsonServers names it";
    assert!(
        told.contains(line) && !told.contains("web is not started"),
        "{told}"
    );
    assert!(!said(&["--trust"]).contains("not started"));
    declare("one");
    assert_eq!(states(), "db=active web=active");
    // The user may accept all servers of the workspaces that they trust.
    declare("three");
    fs::write(&user, r#"{"enableAllProjectMcpServers": true}"#).unwrap();
    assert_eq!(states(), "db=active web=active");
    done(&project, &["trust", "remove"]);
    assert_eq!(states(), "db=waits web=waits");
    // A repository can switch its servers off.
    write(
        &project,
        ".claude/settings.json",
        r#"{"disabledMcpjsonServers": ["web"]}"#,
    );
    assert_eq!(states(), "db=waits web=refused");
}

#[test]
fn a_server_that_a_person_adds_to_a_trusted_repository_is_accepted() {
    let project = project("mcp-accepted", HELLO);
    done(&project, &["trust", "--yes"]);
    done(
        &project,
        &["mcp", "add", "db", "-s", "project", "--", "db", "--ro"],
    );
    assert_eq!(
        listed(&project),
        [row(["db", "project", "active", "db --ro"])]
    );
    let text = read(&project.file(".mcp.json")).replace("--ro", "--rw");
    write(&project, ".mcp.json", &text);
    assert_eq!(listed(&project)[0][2], "waits");
}

// proves MC-01 (part: definitions)
#[test]
fn an_agent_type_has_servers_of_its_own() {
    let project = project("mcp-agents", HELLO);
    let text = "---\nname: tester\ndescription: d\nmcpServers:\n  - shared\n  - own:\n      command: \
                npx\n  - late: {url: \"https://x\"}\nrequiredMcpServers: [own]\n---\nTest.\n";
    write(&project, ".posse/agents/tester.md", text);
    let output = project.run(&["agents", "show", "tester", "--json"]);
    let shown = &objects(&output)[0];
    let own = json!({"own": {"type": "stdio", "command": "npx", "args": [], "env": {}}});
    assert_eq!(shown["mcp_servers"], json!(["shared", own]));
    assert_eq!(shown["required_mcp_servers"], json!(["own"]));
    let checked = project.run(&["agents", "check"]);
    let told = format!("{}{}", stdout(&checked), stderr(&checked));
    assert!(
        told.contains("`mcpServers`: `late`: `url` needs a `type`"),
        "{told}"
    );
}

/// Runs the commands of the page with this mark.
fn run_page(project: &Project, mark: &str) -> Output {
    let posse = project.posse(&[]);
    let mut bash = Command::new("bash");
    bash.args(["-euc", &crate::readme::script(PAGE, mark)]);
    bash.current_dir(project.file("")).env_clear();
    bash.envs(
        posse
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let binaries = Path::new(env!("CARGO_BIN_EXE_posse")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binaries.display());
    let output = bash.env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let project = project("mcp-page", HELLO);
    let output = run_page(&project, "servers");
    let said = stdout(&output);
    for expected in ["files", "tickets", "db-server", "hello\n"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let left: Vec<String> = listed(&project)
        .into_iter()
        .map(|[name, ..]| name)
        .collect();
    assert_eq!(left, ["db", "tickets"]);
}

#[test]
fn posse_serves_the_lines_of_the_page() {
    let project = project("mcp-page-serving", HELLO);
    let answers = objects(&run_page(&project, "serving"));
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "posse");
    let told = page_tools();
    for tool in answers[1]["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(told.contains(&format!("`{name}`")), "{name}: {told}");
    }
    let sessions = &answers[2]["result"]["structuredContent"];
    assert_eq!(sessions, &json!({"sessions": []}));
}

/// What the page says of posse's own tools.
fn page_tools() -> String {
    let rows = PAGE.split_once("| tool | what it does |").unwrap().1;
    rows.split_once("\n\n").unwrap().0.to_owned()
}
