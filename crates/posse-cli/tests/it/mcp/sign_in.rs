//! Signing in to servers: by a browser and without one, who refreshes, and what is kept.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use super::served::told;
use super::{objects, project};
use crate::binary::{Project, stderr, stdout};

/// Calls `add` with what it knows from the beginning.
const ADDS: &str = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "mcp__calc__add", input = { a = 2, b = 3 } }]
[[rule]]
reply = [{ text = "the end" }]
"#;

/// What opens addresses: as a browser, it goes where it is sent to.
const BROWSER: &str = "curl -sL -o browser.txt";

/// A project whose person has declared a server that wants them to sign in.
struct Scene {
    project: Project,
    server: Child,
    url: String,
}

impl Scene {
    fn new(name: &str, options: &[&str]) -> Self {
        let project = project(name, ADDS);
        let posse = Path::new(env!("CARGO_BIN_EXE_posse"));
        let mut server = Command::new(posse.with_file_name("mcp-server"))
            .args(["--http", "0", "--sign-in", "--always-load"])
            .args(["--log", project.file("../server.log").to_str().unwrap()])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(server.stdout.as_mut().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        let words = [
            "mcp",
            "add",
            "calc",
            &url,
            "--transport",
            "http",
            "--scope",
            "user",
        ];
        assert!(project.run(&words).status.success());
        Self {
            project,
            server,
            url,
        }
    }

    /// What the server has logged of a kind.
    fn logged(&self, event: &str) -> usize {
        let text = fs::read_to_string(self.project.file("../server.log")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.filter(|line: &Value| line["event"] == event).count()
    }

    fn sign_in(&self) -> Output {
        let mut login = self.project.posse(&["mcp", "login", "calc"]);
        let output = login.env("BROWSER", BROWSER).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    }

    /// The state of the server, as `posse mcp check` says.
    fn checked(&self) -> (String, String) {
        let output = self.project.run(&["mcp", "check", "--json"]);
        let object: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
        let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        (word("state"), word("why"))
    }

    fn directory(&self) -> PathBuf {
        self.project.file("../home/mcp-credentials")
    }

    /// The file that is kept.
    fn kept(&self) -> PathBuf {
        let files = fs::read_dir(self.directory()).unwrap();
        let mut files = files.map(|it| it.unwrap().path());
        let found = files.find(|it| it.extension().is_some_and(|it| it == "json"));
        found.unwrap()
    }

    fn credentials(&self) -> Value {
        serde_json::from_slice(&fs::read(self.kept()).unwrap()).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What the model was told of the call.
fn answered(told: &[Value]) -> String {
    let told: Vec<String> = told.iter().map(Value::to_string).collect();
    let answer = told.iter().find(|line| line.contains("tool_result"));
    answer.cloned().unwrap_or_default()
}

// proves MC-12 (part: S256; 0600)
#[test]
fn a_person_signs_in_once_by_a_browser_and_every_run_has_it() {
    let scene = Scene::new("mcp-sign-in", &[]);
    let told_before = told(&scene.project, &["go"]);
    for line in [&told_before[0], told_before.last().unwrap()] {
        let server = &line["mcp_servers"][0];
        assert_eq!(server["status"], "needs-auth", "{line}");
        let why = server["error"].as_str().unwrap();
        assert!(why.contains("`posse mcp login calc`"), "{why}");
    }
    let (state, why) = scene.checked();
    assert_eq!(state, "needs-auth");
    assert!(why.contains("`posse mcp login calc`"), "{why}");

    let output = scene.sign_in();
    let said = stderr(&output);
    assert!(
        said.contains("signed in to calc at http://127.0.0.1"),
        "{said}"
    );
    let shown = stdout(&output);
    let address = shown.lines().next().unwrap();
    for part in ["code_challenge_method=S256", "resource=", "scope=tools"] {
        assert!(address.contains(part), "{address}");
    }
    let page = fs::read_to_string(scene.project.file("browser.txt")).unwrap();
    assert!(page.contains("You have signed in"), "{page}");
    assert_eq!(Scene::mode(&scene.kept()), 0o600);
    assert_eq!(Scene::mode(&scene.directory()), 0o700);
    assert_eq!(scene.credentials()["url"], json!(scene.url));

    let told_after = told(&scene.project, &["go"]);
    assert_eq!(
        told_after.last().unwrap()["mcp_servers"][0]["status"],
        "connected"
    );
    assert!(answered(&told_after).contains('5'), "{told_after:?}");
    // Tokens are nowhere but in the file.
    let everything = format!("{told_before:?}{told_after:?}{said}{shown}{page}");
    assert!(!everything.contains("secret-access"), "{everything}");

    let output = scene.project.run(&["mcp", "logout", "calc"]);
    assert!(stderr(&output).contains("signed out of calc"));
    assert_eq!(scene.checked().0, "needs-auth");
}

/// A sign-in without a browser: posse, and the address that a browser elsewhere is sent to.
fn elsewhere(scene: &Scene) -> (Child, String) {
    let mut login = scene
        .project
        .posse(&["mcp", "login", "calc", "--no-browser"]);
    let mut login = login
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let mut output = BufReader::new(login.stdout.as_mut().unwrap());
    output.read_line(&mut address).unwrap();
    let browser = Command::new("curl")
        .args([
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{redirect_url}",
            address.trim(),
        ])
        .output()
        .unwrap();
    (login, stdout(&browser))
}

fn paste(mut login: Child, text: &str) -> Output {
    let mut input = login.stdin.take().unwrap();
    writeln!(input, "{text}").unwrap();
    drop(input);
    login.wait_with_output().unwrap()
}

// proves MC-12 (part: without a browser)
#[test]
fn without_a_browser_the_person_pastes_where_one_was_sent_to() {
    let scene = Scene::new("mcp-sign-in-paste", &[]);
    let (login, back) = elsewhere(&scene);
    let state = back.split("state=").nth(1).unwrap();
    let state = state.split('&').next().unwrap();
    let other = back.replace(state, "another");
    let output = paste(login, &other);
    assert!(!output.status.success());
    let said = stderr(&output);
    assert!(said.contains("its state is another one"), "{said}");
    let (login, back) = elsewhere(&scene);
    let other = back.replace("iss=http", "iss=https");
    let said = stderr(&paste(login, &other));
    assert!(said.contains("it comes from somebody else"), "{said}");
    assert!(!scene.directory().exists());

    for whole in [true, false] {
        let (login, back) = elsewhere(&scene);
        let code = back.split("code=").nth(1).unwrap();
        let code = code.split('&').next().unwrap();
        let output = paste(login, if whole { &back } else { code });
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(scene.checked().0, "connected");
    }
}

// proves MC-12 (part: one refresh)
#[test]
fn ten_processes_that_need_a_new_token_make_one_refresh() {
    let scene = Scene::new(
        "mcp-sign-in-ten",
        &["--first-lasts", "0", "--slow-refresh", "300"],
    );
    scene.sign_in();
    let call = ["mcp", "call", "calc", "add", r#"{"a": 2, "b": 3}"#];
    let start = |_| {
        let mut call = scene.project.posse(&call);
        call.stdout(Stdio::piped()).spawn().unwrap()
    };
    let calls: Vec<Child> = (0..10).map(start).collect();
    for call in calls {
        let output = call.wait_with_output().unwrap();
        assert_eq!(stdout(&output).trim(), "5");
    }
    assert_eq!(scene.logged("refresh"), 1);
    assert_eq!(scene.logged("call"), 10);
    assert_eq!(Scene::mode(&scene.kept()), 0o600);
}

// proves MC-12 (part: refused)
#[test]
fn a_refresh_that_is_refused_destroys_nothing() {
    let scene = Scene::new(
        "mcp-sign-in-refused",
        &["--first-lasts", "0", "--refuse-refresh"],
    );
    scene.sign_in();
    let before = fs::read(scene.kept()).unwrap();
    // The token is good as long as the server takes it.
    assert_eq!(scene.checked().0, "connected");
    assert_eq!(scene.logged("refresh"), 1);
    assert_eq!(fs::read(scene.kept()).unwrap(), before);

    // Neither token is known to a server that was started anew.
    let mut credentials = scene.credentials();
    credentials["access_token"] = json!("forgotten");
    let before = credentials.to_string();
    fs::write(scene.kept(), &before).unwrap();
    let (state, why) = scene.checked();
    assert_eq!(state, "needs-auth");
    assert!(why.contains("`posse mcp login calc`"), "{why}");
    assert_eq!(fs::read_to_string(scene.kept()).unwrap(), before);
    scene.sign_in();
    assert_eq!(scene.checked().0, "connected");
}

// proves MC-12 (part: refused)
#[test]
fn a_kill_in_the_middle_of_a_refresh_leaves_what_was_there() {
    let scene = Scene::new(
        "mcp-sign-in-killed",
        &["--first-lasts", "0", "--slow-refresh", "1000"],
    );
    scene.sign_in();
    let before = fs::read(scene.kept()).unwrap();
    let mut check = scene.project.posse(&["mcp", "check"]);
    let mut check = check.stdout(Stdio::null()).spawn().unwrap();
    while scene.logged("refresh") == 0 {
        std::thread::yield_now();
    }
    check.kill().unwrap();
    check.wait().unwrap();
    assert_eq!(fs::read(scene.kept()).unwrap(), before);
    // The lock has ended with its holder, and nothing is left beside the file.
    let _ = scene.checked();
    let names = fs::read_dir(scene.directory()).unwrap();
    assert_eq!(names.count(), 2);
    assert_eq!(Scene::mode(&scene.kept()), 0o600);
}

#[test]
fn what_cannot_be_signed_in_to_says_so() {
    let scene = Scene::new("mcp-sign-in-odd", &[]);
    let entry = |entry: Value| {
        let entry = entry.to_string();
        let words = ["mcp", "add-json", "odd", &entry, "--scope", "local"];
        assert!(scene.project.run(&words).status.success());
        let output = scene.project.run(&["mcp", "login", "odd", "--no-browser"]);
        assert!(!output.status.success());
        let said = stderr(&output);
        let words = ["mcp", "remove", "odd"];
        assert!(scene.project.run(&words).status.success());
        said
    };
    let said = entry(json!({"command": "true"}));
    assert!(
        said.contains("is a program, which nobody signs in to"),
        "{said}"
    );
    let headers = json!({"Authorization": "Bearer x"});
    let said = entry(json!({"type": "http", "url": scene.url, "headers": headers}));
    assert!(said.contains("has a header Authorization"), "{said}");
    let said = entry(json!({"type": "http", "url": "http://a.invalid/mcp"}));
    assert!(said.contains("neither https nor on this machine"), "{said}");
    // The scripted model is a server that does not want anybody to sign in.
    let said = entry(json!({"type": "http", "url": scene.project.url()}));
    assert!(said.contains("does not ask anybody to sign in"), "{said}");
    let listed = objects(&scene.project.run(&["mcp", "list", "--json"]));
    assert_eq!(listed.len(), 1);
}
