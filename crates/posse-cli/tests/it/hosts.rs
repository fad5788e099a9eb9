//! Hosts that commands in the sandbox reach: through posse's proxy, each by a rule or a person's yes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::binary::{Project, stderr, stdout};
use crate::held::{Asking, runs, told};

/// How to speak to the proxy where programs would not: it is not asked for this machine.
const PROXIED: &str = "-s -m 20 --noproxy '' -x http://127.0.0.1:3128";

/// A server on this machine that notes what it is sent, and answers each connection once.
struct Seen {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Seen {
    /// Answers with this, whatever is asked.
    fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&heads);
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || serve(stream.unwrap(), &noted, answer));
            }
        });
        Self { port, heads }
    }

    fn web() -> Self {
        Self::answering("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")
    }

    /// Returns the first lines of what it was sent.
    fn asked(&self) -> Vec<String> {
        let heads = self.heads.lock().unwrap();
        let first = |head: &String| head.lines().next().unwrap_or_default().to_owned();
        heads.iter().map(first).collect()
    }

    fn text(&self) -> String {
        self.heads.lock().unwrap().join("\n")
    }
}

fn serve(mut stream: TcpStream, noted: &Mutex<Vec<String>>, answer: &str) {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    let short = Some(Duration::from_millis(100));
    while let Ok(length @ 1..) = stream.read(&mut piece) {
        head.extend(&piece[..length]);
        if head.windows(4).any(|it| it == b"\r\n\r\n") {
            // What came behind it counts, too.
            stream.set_read_timeout(short).unwrap();
        }
    }
    noted
        .lock()
        .unwrap()
        .push(String::from_utf8_lossy(&head).into_owned());
    // The client may have gone.
    let _ = stream.write_all(answer.as_bytes());
}

// proves PE-09 (part: hosts)
#[test]
fn a_host_is_reached_if_a_rule_allows_it_and_by_every_way_of_asking_for_it() {
    let server = Seen::web();
    let port = server.port;
    let ways = [
        format!("curl {PROXIED} http://127.0.0.1:{port}/plain"),
        format!("curl {PROXIED} -p http://127.0.0.1:{port}/tunnel"),
        format!(
            "curl -s -m 20 --noproxy '' --socks5-hostname 127.0.0.1:3128 http://127.0.0.1:{port}/socks"
        ),
        format!("curl {PROXIED} -d body http://127.0.0.1:{port}/post"),
    ];
    let project = runs("hosts-rule", &ways.join("; "));
    let refused = told(&project, &["--permission-mode", "acceptEdits"]);
    assert!(!refused.contains("hello"), "{refused}");
    let words = format!("(the sandbox did not let it connect to 127.0.0.1:{port}: ");
    assert_eq!(refused.matches(&words).count(), 1, "{refused}");
    assert!(refused.contains(&format!("Connect(127.0.0.1:{port})")));
    assert_eq!(server.asked(), [""; 0]);
    let rule = format!("Connect(127.0.0.1:{port})");
    let reached = told(&project, &["--allowedTools", &rule]);
    assert_eq!(reached, "hello\n".repeat(4));
    let settings = format!(r#"{{"sandbox": {{"hosts": ["127.0.0.1:{port}"]}}}}"#);
    let reached = told(&project, &["--settings", &settings]);
    assert_eq!(reached, "hello\n".repeat(4));
    let asked = server.asked();
    assert_eq!(asked[0], "GET /plain HTTP/1.1");
    assert_eq!(asked[1], "GET /tunnel HTTP/1.1");
    assert_eq!(asked[2], "GET /socks HTTP/1.1");
    assert_eq!(asked[3], "POST /post HTTP/1.1");
    assert!(server.text().contains("\r\n\r\nbody"), "{}", server.text());
    // A repository cannot add hosts.
    std::fs::create_dir_all(project.file(".claude")).unwrap();
    std::fs::write(project.file(".claude/settings.json"), settings).unwrap();
    let refused = told(&project, &["--trust"]);
    assert!(!refused.contains("hello"), "{refused}");
}

// proves PE-09 (part: hosts)
#[test]
fn a_rule_that_denies_a_host_holds_in_every_mode() {
    let server = Seen::web();
    let port = server.port;
    let project = runs(
        "hosts-denied",
        &format!(
            "curl {PROXIED} http://127.0.0.1:{port}/; curl -s -m 5 --noproxy '*' http://127.0.0.1:{port}/; echo end"
        ),
    );
    let rule = format!("Connect(127.0.0.1:{port})");
    let denied = told(
        &project,
        &[
            "--permission-mode",
            "bypassPermissions",
            "--disallowedTools",
            "Connect(127.0.0.1)",
            "--allowedTools",
            &rule,
        ],
    );
    assert!(
        denied.contains("end") && !denied.contains("hello"),
        "{denied}"
    );
    assert_eq!(server.asked(), [""; 0]);
    let free = told(&project, &["--permission-mode", "bypassPermissions"]);
    assert!(free.contains("hello"), "{free}");
}

// proves PE-12 (part: hosts)
#[test]
fn a_host_is_asked_about_while_its_connection_waits_and_nothing_runs_twice() {
    let server = Seen::web();
    let port = server.port;
    let command = format!(
        "echo x >>/tmp/tries; curl {PROXIED} http://127.0.0.1:{port}/; curl {PROXIED} http://127.0.0.1:{port}/; wc -l </tmp/tries"
    );
    let project = runs("hosts-asked", &command);
    let mut asking = Asking::new(&project, &["--permission-mode", "acceptEdits"]);
    let question = asking.question();
    assert_eq!(server.asked(), [""; 0], "it waits");
    assert_eq!(question["tool"], "Connect", "{question}");
    assert_eq!(question["input"]["host"], "127.0.0.1", "{question}");
    assert_eq!(question["input"]["port"], port, "{question}");
    let why = question["why"].as_str().unwrap();
    let words = format!("a command wants to connect to 127.0.0.1:{port}");
    assert_eq!(why, words);
    let told = asking.answer(&question, &["allow"]);
    assert_eq!(told, "hello\nhello\n1\n", "asked once, run once");
    assert_eq!(server.asked().len(), 2);
}

// proves PE-12 (part: hosts)
#[test]
fn a_host_is_asked_about_once_though_the_command_runs_again() {
    let server = Seen::web();
    let port = server.port;
    let command = format!("curl {PROXIED} http://127.0.0.1:{port}/ && echo x >made");
    let project = runs("hosts-again", &command);
    let mut asking = Asking::new(&project, &[]);
    let connects = asking.question();
    assert_eq!(connects["tool"], "Connect", "{connects}");
    asking.say(&connects, &["allow"]);
    let writes = asking.question();
    assert_eq!(writes["tool"], "Bash", "{writes}");
    let told = asking.answer(&writes, &["allow"]);
    assert_eq!(told, "hello\n");
    assert!(project.file("made").exists());
    assert_eq!(server.asked().len(), 2, "it ran twice");
}

// proves PE-12 (part: hosts)
#[test]
fn a_host_that_a_person_does_not_allow_is_not_reached_and_told() {
    let server = Seen::web();
    let port = server.port;
    let project = runs(
        "hosts-no",
        &format!("curl {PROXIED} -w '%{{http_code}}\\n' http://127.0.0.1:{port}/"),
    );
    let mut asking = Asking::new(&project, &[]);
    let question = asking.question();
    let told = asking.answer(&question, &["deny", "-m", "not that one"]);
    assert!(told.contains("\n403\n"), "{told}");
    let words = format!("(the sandbox did not let it connect to 127.0.0.1:{port}: not that one)");
    assert!(told.contains(&words), "{told}");
    assert_eq!(server.asked(), [""; 0]);
}

// proves PE-12 (part: hosts)
#[test]
fn a_host_that_is_always_allowed_is_not_asked_about_again() {
    let server = Seen::web();
    let port = server.port;
    let command = format!("curl {PROXIED} http://127.0.0.1:{port}/");
    let call = format!("reply = [{{ tool = \"Bash\", input = {{ command = '''{command}''' }} }}]");
    let script = format!(
        "[[rule]]\nwhen.turn = 1\n{call}\n[[rule]]\nwhen.turn = 2\n{call}\n\
         [[rule]]\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n"
    );
    let project = Project::new("held-hosts-session", &script);
    let mut asking = Asking::new(&project, &[]);
    let question = asking.question();
    let id = question["request_id"].as_str().unwrap();
    let shown = stdout(&project.run(&["requests", "show", id]));
    let rule = format!("Connect(127.0.0.1:{port})");
    assert!(shown.contains(&rule), "{shown}");
    let told = asking.answer(&question, &["--always=session"]);
    assert_eq!(told, "hello\n");
    assert_eq!(server.asked().len(), 2);
}

/// Runs a command whose proxy uses another one, with `allowed.test` allowed, and returns what that
/// one was asked for, and what the model was told.
fn through(name: &str, command: &str) -> (Vec<String>, String, String) {
    let upstream = Seen::answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nup\n");
    let project = runs(name, command);
    let url = format!("http://me:pass@127.0.0.1:{}", upstream.port);
    let output = project
        .posse(&[
            "-p",
            "go",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash,Connect(allowed.test)",
        ])
        .env("POSSE_SANDBOX", "required")
        .env("https_proxy", url)
        .env("no_proxy", "127.0.0.1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    (upstream.asked(), upstream.text(), stdout(&output))
}

// proves PE-09 (part: hosts)
#[test]
fn a_proxy_of_the_users_is_used_and_not_seen_inside() {
    let command = "curl -s -m 5 http://allowed.test/a; curl -s -m 5 https://allowed.test/; env";
    let (asked, text, told) = through("hosts-upstream", command);
    let expected = [
        "GET http://allowed.test/a HTTP/1.1",
        "CONNECT allowed.test:443 HTTP/1.1",
    ];
    assert_eq!(asked, expected);
    let authorization = "Proxy-Authorization: Basic bWU6cGFzcw==";
    assert_eq!(text.matches(authorization).count(), 2, "{text}");
    assert!(told.starts_with("up\n"), "{told}");
    assert!(
        told.contains("https_proxy=http://127.0.0.1:3128\n"),
        "{told}"
    );
    assert!(!told.contains("pass@"), "{told}");
}

/// S086 … S089, S091 and S092 of the corpus of payloads, and ways to hide one request in another.
// proves PE-09 (part: hosts)
#[test]
fn a_host_that_was_not_allowed_is_not_reached_under_the_name_of_another() {
    let raw = |bytes: &str| {
        format!(
            "(printf '{bytes}'; sleep 0.2) | timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; cat <&3 | head -c 400'"
        )
    };
    let table: [(&str, String, &[&str]); 12] = [
        ("S086", "curl -s -m 3 https://denied.test/".into(), &[]),
        (
            "S087",
            "curl -s -m 3 https://allowed.test.evil.test/".into(),
            &[],
        ),
        (
            "S088",
            raw(r"\005\001\000\005\001\000\003\026evil.test\000.allowed.test\001\273"),
            &[],
        ),
        (
            "S089",
            "curl -s -m 3 http://169.254.169.254/ --proxy http://127.0.0.1:3128".into(),
            &[],
        ),
        (
            "S091",
            "curl -s -m 3 -H 'Host: denied.test' http://allowed.test/".into(),
            &[],
        ),
        (
            "S092",
            "curl -s -m 3 --proxytunnel -p http://allowed.test:22".into(),
            &[],
        ),
        (
            "a second request",
            raw(
                r"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n",
            ),
            &["GET http://allowed.test/ HTTP/1.1"],
        ),
        (
            "two lengths",
            raw(
                r"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nbody",
            ),
            &[],
        ),
        (
            "a length that is not known",
            raw(
                r"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            ),
            &[],
        ),
        (
            "two hosts",
            raw(
                r"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nHost: denied.test\r\n\r\n",
            ),
            &[],
        ),
        (
            "a line that ends too early",
            raw(r"GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\nX: y\r\n\r\n"),
            &[],
        ),
        (
            "a name with a user in it",
            raw(r"GET http://allowed.test@denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n"),
            &[],
        ),
    ];
    let (control, ..) = through("hosts-control", "curl -s -m 5 http://allowed.test/");
    assert_eq!(control, ["GET http://allowed.test/ HTTP/1.1"]);
    for (id, command, expected) in table {
        let (asked, text, told) = through("hosts-payload", &command);
        assert_eq!(asked, expected, "{id}: {told}");
        assert!(!text.contains("denied.test"), "{id}: {text}");
        assert!(!told.is_empty(), "{id}");
    }
}

/// S090: what a name leads to is looked at, too. And a name that is looked up inside leads nowhere:
/// S051.
// proves PE-09 (part: hosts)
#[test]
fn an_allowed_name_does_not_lead_to_this_machine_and_none_is_looked_up_inside() {
    let server = Seen::web();
    let port = server.port;
    let command = format!("curl {PROXIED} -w '%{{http_code}}\\n' http://localhost:{port}/");
    let project = runs("hosts-rebind", &command);
    let name = format!("Connect(localhost:{port})");
    let refused = told(&project, &["--allowedTools", &name]);
    assert!(refused.contains("\n403\n"), "{refused}");
    assert!(refused.contains("it leads to "), "{refused}");
    assert_eq!(server.asked(), [""; 0]);
    let both = format!("{name},Connect(127.0.0.1:{port}),Connect([::1]:{port})");
    let reached = told(&project, &["--allowedTools", &both]);
    assert_eq!(reached, "hello\n200\n");
    let lookup = "getent hosts pypi.org; python3 -c 'import socket; socket.getaddrinfo(\"pypi.org\", 1)' 2>&1 | tail -1; echo end";
    let project = runs("hosts-dns", lookup);
    let told = told(&project, &["--allowedTools", "Bash,Connect(*)"]);
    assert!(told.contains("gaierror") && told.contains("end"), "{told}");
    assert!(!told.contains("pypi.org\n"), "{told}");
}
