//! `posse -p`: what goes to stdout, what comes by stdin, and how it ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};

/// Writes a file, then is done.
const WRITES: &str = "[[rule]]\nwhen.tool = 're:.'\nreply = [{ text = 'done' }]\n[[rule]]\nreply = [{ text = \
                      'I write.' }, { tool = 'Write', input = { file_path = 'new.txt', content = 'hello' } }]\n";
/// Takes a few seconds to answer.
const SLOW: &str = "[[rule]]\nreply = [{ text = 'one two three four five six seven eight nine ten' }]\n\
                    tokens_per_s = 2\n";

pub(crate) const LINES: [&str; 3] = ["-p", "--output-format", "stream-json"];

pub(crate) fn lines(output: &Output) -> Vec<Value> {
    stdout(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn result(output: &Output) -> Value {
    lines(output)
        .pop()
        .unwrap_or_else(|| panic!("{}", stderr(output)))
}

#[test]
fn a_pipe_gets_the_result_and_nothing_else() {
    let project = Project::new("run-plain", "");
    let output = project.run(&["-p", "what?"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "You said: what?\n"),
        "{}",
        stderr(&output)
    );
    assert_eq!(stderr(&output), "", "quiet in a pipe");
    let output = project.run(&["-p", "--verbose", "what?"]);
    assert!(
        stderr(&output).contains("posse -p --resume"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_is_piped_follows_the_prompt() {
    let project = Project::new("run-pipe", "");
    let mut child = project
        .posse(&["-p", "explain"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"line 1").unwrap();
    assert_eq!(
        stdout(&child.wait_with_output().unwrap()),
        "You said: explain\n\nline 1\n"
    );
}

/// Runs posse with this on standard input.
fn piped(project: &Project, arguments: &[&str], input: Vec<u8>) -> Output {
    let mut child = project
        .posse(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

#[test]
fn what_is_piped_is_text_unless_binary_is_meant() {
    let project = Project::new("run-latin", "");
    let output = piped(&project, &["-p"], b"caf\xe9".to_vec());
    let said = stderr(&output);
    assert_eq!(
        (stdout(&output).as_str(), output.status.code()),
        ("", Some(1))
    );
    assert!(
        said.contains("byte 4 is 0xe9, which is not UTF-8; nothing was sent")
            && said.contains("hint: name the file in the prompt"),
        "{said}"
    );
    assert_eq!(project.requests(), [] as [Value; 0]);
    let output = piped(&project, &["-p", "--binary"], b"caf\xe9".to_vec());
    assert_eq!(stdout(&output), "You said: caf\u{fffd}\n");
    assert!(stderr(&output).contains("were replaced"));
}

#[test]
fn what_the_model_cannot_hold_is_not_sent() {
    let project = Project::new("run-long", "");
    let output = piped(&project, &["-p", "sum up"], vec![b'x'; 20 << 20]);
    let said = stderr(&output);
    assert_eq!(
        (stdout(&output).as_str(), output.status.code()),
        ("", Some(1))
    );
    for part in [
        "the prompt has 21.0 MB",
        "holds ",
        "hint: name the file in the prompt",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(project.requests(), [] as [Value; 0]);
    assert_eq!(stdout(&project.run(&["sessions", "list"])), "");
}

#[test]
fn nobody_waits_long_for_an_address_of_this_machine_where_nothing_listens() {
    let project = Project::new("run-nobody", "");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let output = project.run(&["-p", "hi", "--base-url", &url]);
    let said = stderr(&output);
    assert_eq!(said.matches("attempt ").count(), 2, "{said}");
    assert!(said.contains("is something listening there?"), "{said}");
}

#[test]
fn a_session_to_resume_is_named_or_listed() {
    let project = Project::new("run-resume-list", "");
    let output = project.run(&["-p", "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("this directory has no session yet"));
    project.run(&["-p", "mend the lexer"]);
    for (arguments, command) in [
        (&["-p", "--resume"][..], "posse -p --resume "),
        (&["-r"], "posse --resume "),
    ] {
        let output = project.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let listed = said.lines().find(|line| line.starts_with(command));
        assert!(
            listed.is_some_and(|line| line.ends_with("mend the lexer")),
            "{said}"
        );
    }
}

#[test]
fn a_directory_that_is_gone_is_said() {
    let project = Project::new("run-gone", "");
    std::fs::create_dir(project.file("gone")).unwrap();
    for command in [
        "posse -p x",
        "posse -p -c x",
        "posse sessions list",
        "posse sessions show",
        "posse doctor",
    ] {
        let line = format!("mkdir -p gone && cd gone && rmdir ../gone && {command}");
        let (binary, mut shell) = (project.posse(&[]), Command::new("bash"));
        let path = std::path::Path::new(binary.get_program())
            .parent()
            .unwrap()
            .display()
            .to_string();
        shell.envs(
            binary
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell
            .current_dir(binary.get_current_dir().unwrap())
            .env("PATH", format!("{path}:/usr/bin:/bin"));
        let output = shell
            .args(["-c", &line])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = stdout(&output) + &stderr(&output);
        assert!(
            said.contains("the working directory no longer exists"),
            "{command}: {said}"
        );
        assert!(said.contains("cd to an existing one"), "{command}: {said}");
        assert_eq!(output.status.code(), Some(1), "{command}");
    }
}

#[test]
fn json_is_one_object_with_usage_and_cost() {
    let project = Project::new("run-json", "");
    let output = project.run(&["-p", "what?", "--output-format", "json"]);
    let told = result(&output);
    assert_eq!(
        (&told["subtype"], &told["result"]),
        (&json!("success"), &json!("You said: what?")),
        "{told}"
    );
    assert_eq!(
        (&told["num_turns"], &told["stop_reason"]),
        (&json!(1), &json!("end_turn"))
    );
    assert!(
        told["total_cost_usd"].as_f64().unwrap() > 0.0
            && told["usage"]["output_tokens"].as_u64().unwrap() > 0
    );
    let early = project.run(&["-p", "x", "--output-format", "json", "--resume", "abc"]);
    assert_eq!(
        (&result(&early)["is_error"], early.status.code()),
        (&json!(true), Some(1))
    );
}

// proves TU-01 (part: the model asks for no tool)
#[test]
fn lines_tell_all_that_happens_in_order() {
    let project = Project::new("run-lines", WRITES);
    let output = project.run(
        &[
            &LINES[..],
            &["--permission-mode", "acceptEdits", "write it"],
        ]
        .concat(),
    );
    let told = lines(&output);
    let kinds: Vec<&str> = told
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "system",
            "user",
            "assistant",
            "assistant",
            "user",
            "assistant",
            "result"
        ],
        "{}",
        stderr(&output)
    );
    assert!(
        told.iter()
            .all(|line| line["session_id"] == told[0]["session_id"] && line["uuid"].is_string())
    );
    assert!(
        told[0]["tools"]
            .as_array()
            .unwrap()
            .contains(&json!("Write"))
    );
    assert_eq!(
        told[2]["message"]["id"], told[3]["message"]["id"],
        "one reply, a line per block"
    );
    let call = &told[3]["message"]["content"][0];
    assert_eq!(told[4]["message"]["content"][0]["tool_use_id"], call["id"]);
    assert_eq!(
        (&told[6]["result"], &told[6]["num_turns"]),
        (&json!("done"), &json!(2))
    );
    assert_eq!(
        std::fs::read_to_string(project.file("new.txt")).unwrap(),
        "hello"
    );
}

#[test]
fn more_lines_at_once_than_are_written_at_once_hold_up_nothing() {
    let calls = "{ tool = 'Read', input = { file_path = 'a' } }, ".repeat(500);
    let script = format!(
        "[[rule]]\nwhen.turn = 1\nreply = [{calls}]\n[[rule]]\nreply = [{{ text = 'done' }}]\n"
    );
    let project = Project::new("run-many-lines", &script);
    let output = project.run(&[&LINES[..], &["read"]].concat());
    assert_eq!(result(&output)["result"], "done", "{}", stderr(&output));
    assert!(lines(&output).len() > 500);
}

#[test]
fn a_reply_shows_while_it_arrives_if_that_is_wanted() {
    let project = Project::new("run-partial", "");
    let told =
        lines(&project.run(&[&LINES[..], &["--include-partial-messages", "what?"]].concat()));
    let events: Vec<&Value> = told
        .iter()
        .filter(|line| line["type"] == "stream_event")
        .collect();
    let text: String = events
        .iter()
        .filter_map(|line| line["event"]["delta"]["text"].as_str())
        .collect();
    assert_eq!(text, "You said: what?");
    assert_eq!(events.last().unwrap()["event"]["type"], "message_stop");
}

/// Calls the same command four times, then again, and gives up.
const REPEATS: &str = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "Bash", input = { command = "./test.sh" } }, { tool = "Bash", input = { command = "./test.sh" } }, { tool = "Bash", input = { command = "./test.sh" } }]
[[rule]]
when.turn = 2
reply = [{ tool = "Bash", input = { command = "./test.sh" } }]
[[rule]]
reply = [{ text = "done" }]
"#;

#[test]
fn equal_denials_are_counted() {
    let project = Project::new("run-denied-often", REPEATS);
    let said = stderr(&project.run(&["-p", "test it"]));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(
        lines[0].starts_with("✗ Bash(./test.sh) denied: approval is required"),
        "{said}"
    );
    assert_eq!(lines[1], "✗ Bash(./test.sh) denied ×4");
}

#[test]
fn what_nobody_can_be_asked_about_is_denied() {
    let project = Project::new("run-denied", WRITES);
    let output = project.run(&["-p", "write it", "--output-format", "json"]);
    let told = result(&output);
    assert_eq!(
        (&told["subtype"], output.status.code()),
        (&json!("success"), Some(0)),
        "{told}"
    );
    assert_eq!(told["permission_denials"][0]["tool_name"], "Write");
    assert!(!project.file("new.txt").exists());
    assert_eq!(stderr(&output), "", "the object says it");
    let output = project.run(&["-p", "write it"]);
    assert_eq!(stdout(&output), "done\n");
    let said = stderr(&output);
    assert!(
        said.starts_with("✗ Write(new.txt) denied: approval is required")
            && said.lines().count() == 1,
        "{said}"
    );
    let allowed = project.run(&["-p", "write it", "--allowedTools", "Edit"]);
    assert_eq!(stdout(&allowed), "done\n", "{}", stderr(&allowed));
    assert!(project.file("new.txt").exists());
}

#[test]
fn limits_and_faults_are_no_success() {
    let project = Project::new("run-limit", WRITES);
    let output = project.run(&[
        "-p",
        "write it",
        "--max-turns",
        "1",
        "--output-format",
        "json",
    ]);
    assert_eq!(
        (&result(&output)["subtype"], output.status.code()),
        (&json!("error_max_turns"), Some(3))
    );
    assert!(
        stderr(&output).contains("--max-turns"),
        "{}",
        stderr(&output)
    );
    let refused = "[[rule]]\nreply = [{ text = 'x' }]\nfault = { kind = 'status', status = 401 }\n";
    let project = Project::new("run-refused", refused);
    let output = project.run(&["-p", "x", "--output-format", "json"]);
    let told = result(&output);
    assert_eq!(
        (&told["subtype"], output.status.code()),
        (&json!("error_during_execution"), Some(1)),
        "{told}"
    );
    assert!(
        stderr(&output).contains("hint: the API key was refused"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn attempts_that_fail_are_told_in_a_pipe_too() {
    let once = "[[rule]]\ntimes = 1\nreply = [{ text = 'x' }]\nfault = { kind = 'status', status = 529, \
                retry_after_ms = 1 }\n[[rule]]\nreply = [{ text = 'well' }]\n";
    for format in ["text", "json"] {
        let project = Project::new(&format!("run-retry-{format}"), once);
        let output = project.run(&["-p", "x", "--output-format", format]);
        let said = stderr(&output);
        assert!(
            said.starts_with("attempt 1 failed: ") && said.contains("; next in "),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(stdout(&output).contains("well"));
    }
}

/// posse with lines going both ways.
pub(crate) struct Talk {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Talk {
    pub(crate) fn start(project: &Project, arguments: &[&str]) -> Self {
        let arguments = [&LINES[..], &["--input-format", "stream-json"], arguments].concat();
        let mut child = project
            .posse(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (
            child.stdin.take(),
            BufReader::new(child.stdout.take().unwrap()),
        );
        Self { child, to, from }
    }

    pub(crate) fn tell(&mut self, line: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.tell(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// Reads up to the line of this type or subtype.
    pub(crate) fn hear(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.from.read_line(&mut line).unwrap(),
                0,
                "it ended before a {kind} came"
            );
            let told: Value = serde_json::from_str(&line).unwrap();
            if told["type"] == kind || told["subtype"] == kind {
                return told;
            }
        }
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Says that there is nothing more, and gives the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.to.take());
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_program_is_asked_and_its_answer_counts() {
    let project = Project::new("run-asked", WRITES);
    for (answer, exists) in [
        (json!({"behavior": "deny", "message": "not now"}), false),
        (
            json!({"behavior": "allow", "updatedInput": {"file_path": "new.txt", "content": "better"}}),
            true,
        ),
    ] {
        let mut talk = Talk::start(&project, &[]);
        talk.tell(
            &json!({"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}),
        );
        assert_eq!(
            talk.hear("control_response")["response"]["subtype"],
            "success"
        );
        talk.prompt("write it");
        let asked = talk.hear("control_request");
        assert_eq!(
            (&asked["request"]["subtype"], &asked["request"]["tool_name"]),
            (&json!("can_use_tool"), &json!("Write"))
        );
        let response =
            json!({"subtype": "success", "request_id": asked["request_id"], "response": answer});
        talk.tell(&json!({"type": "control_response", "response": response}));
        assert_eq!(talk.hear("result")["result"], "done");
        assert_eq!(talk.end(), Some(0));
        assert_eq!(project.file("new.txt").exists(), exists);
    }
    assert_eq!(
        std::fs::read_to_string(project.file("new.txt")).unwrap(),
        "better"
    );
}

#[test]
fn prompts_follow_each_other_and_rubbish_does_not_end_it() {
    let project = Project::new("run-talk", "");
    let mut talk = Talk::start(&project, &[]);
    talk.prompt("one");
    talk.prompt("two");
    writeln!(talk.to.as_mut().unwrap(), "rubbish").unwrap();
    let results = [talk.hear("result"), talk.hear("result")].map(|line| line["result"].clone());
    assert_eq!(results, ["You said: one", "You said: two"]);
    assert_eq!(talk.end(), Some(1), "something was not understood");
}

// proves TU-05 (part: stop)
#[test]
fn an_interrupt_stops_the_run_and_the_next_prompt_is_heard() {
    let script = format!("[[rule]]\nwhen.user = 'hurry'\nreply = [{{ text = 'quick' }}]\n{SLOW}");
    let project = Project::new("run-interrupt", &script);
    let mut talk = Talk::start(&project, &["--include-partial-messages"]);
    talk.prompt("slowly");
    talk.hear("stream_event");
    talk.tell(
        &json!({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}}),
    );
    let at = Instant::now();
    let told = talk.hear("result");
    assert_eq!(
        (&told["terminal_reason"], &told["is_error"]),
        (&json!("interrupted"), &json!(true))
    );
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
    talk.prompt("hurry");
    assert_eq!(talk.hear("result")["result"], "quick");
    assert_eq!(talk.end(), Some(0));
}

// proves TU-05 (part: SIGINT)
#[test]
fn ctrl_c_ends_it_with_a_result() {
    let project = Project::new("run-signal", SLOW);
    let arguments = [&LINES[..], &["--include-partial-messages", "slowly"]].concat();
    let mut child = project
        .posse(&arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("stream_event") {
        line.clear();
        assert_ne!(from.read_line(&mut line).unwrap(), 0);
    }
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let last = from.lines().map_while(Result::ok).last().unwrap();
    let told: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&told["type"], &told["terminal_reason"]),
        (&json!("result"), &json!("interrupted")),
        "{told}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Processes that a call of this session has started.
pub(crate) fn processes_of(session: &str) -> usize {
    let mark = format!("POSSE_CALL={session}");
    let has_mark = |path: std::path::PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(mark.as_bytes()))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .filter(|entry| has_mark(entry.as_ref().unwrap().path()))
        .count()
}

// proves TU-05 (part: process groups)
#[test]
fn a_closed_terminal_leaves_nothing_running() {
    let script = "[[rule]]\nreply = [{ tool = 'Bash', input = { command = 'sleep 1000' } }]\n";
    let project = Project::new("run-hangup", script);
    for signals in [&["-TERM"][..], &["-HUP"], &["-HUP", "-HUP"]] {
        let arguments = [&LINES[..], &["--allowedTools", "Bash", "sleep"]].concat();
        let mut child = project
            .posse(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let init: Value = serde_json::from_str(&line).unwrap();
        let session = init["session_id"].as_str().unwrap();
        let begun = Instant::now();
        while processes_of(session) == 0 {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "the command does not begin"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        for signal in signals {
            Command::new("kill")
                .args([signal, child.id().to_string().as_str()])
                .status()
                .unwrap();
        }
        let last = from.lines().map_while(Result::ok).last().unwrap();
        assert!(last.contains("\"interrupted\""), "{signals:?}: {last}");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signals:?}");
        assert_eq!(processes_of(session), 0, "{signals:?}");
    }
}

#[test]
fn a_reader_that_leaves_ends_it_without_a_word() {
    let project = Project::new("run-unread", "");
    let mut child = project
        .posse(&["-p", "x"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "")
    );
}

/// A reader that does not read must not make posse deaf.
#[test]
fn a_blocked_reader_does_not_block_signals() {
    let script = format!(
        "[[rule]]\nreply = [{{ text = '{}' }}]\n",
        "word ".repeat(100_000)
    );
    let project = Project::new("run-blocked", &script);
    let mut child = project
        .posse(&["-p", "talk"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let writes_in_vain = |task: std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("wchan"))
            .is_ok_and(|wait| wait.contains("pipe_write"))
    };
    let tasks = format!("/proc/{}/task", child.id());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !std::fs::read_dir(&tasks)
        .unwrap()
        .any(|task| task.is_ok_and(writes_in_vain))
    {
        assert!(
            Instant::now() < deadline,
            "it never had to wait for its reader"
        );
    }
    let start = Instant::now();
    for _ in 0..2 {
        let kill = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(kill.success());
        // The second one counts once the first has been taken.
        std::thread::yield_now();
    }
    let mut again = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if again.elapsed() > Duration::from_millis(500) {
            // Two signals at once may count as one.
            again = Instant::now();
            let _ = Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status();
        }
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "it does not leave"
        );
    };
    assert_eq!(status.code(), Some(130));
}

#[test]
fn an_output_that_cannot_be_written_is_told() {
    let project = Project::new("run-full", "");
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = project
        .posse(&["-p", "what?"])
        .stdout(full)
        .output()
        .unwrap();
    let said = stderr(&output);
    assert!(
        said.contains("cannot write to standard output") && said.contains("hint: free some space"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// One model for every way to end.
const ENDS: &str = "[[rule]]\nwhen.user = 'refuse'\nreply = [{ text = 'x' }]\nfault = { kind = 'status', status = 401 }\n\
                    [[rule]]\nwhen.user = 'go'\nreply = [{ text = 'done' }]\n\
                    [[rule]]\nreply = [{ tool = 'Read', input = { file_path = 'nowhere' } }]\n";

// proves FC-07 (part: done; failed; usage; partial; paused)
#[test]
fn exit_codes_are_one_table() {
    let project = Project::new("run-codes", ENDS);
    for (arguments, code, says) in [
        (&["-p", "go"][..], 0, ""),
        (&["-p", "refuse"], 1, "the API key was refused"),
        (&["-p", "go", "--no-such-flag"], 2, "--no-such-flag"),
        (&["-p", "repeat", "--max-turns", "1"], 3, "limit of turns"),
        (&["-p", "repeat"], 3, "Read was called 5 times in a row"),
    ] {
        let output = project.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    // A paused session continues when it is told what to do instead.
    let output = project.run(&["-p", "--continue", "go"]);
    assert_eq!(stdout(&output), "done\n", "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn short_names_stand_for_models() {
    let project = Project::new("run-alias", "");
    let model = |name: &str| {
        let output = project.run(&[&LINES[..], &["--model", name, "hi"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        lines(&output)[0]["model"].as_str().unwrap().to_owned()
    };
    for family in ["opus", "sonnet", "Haiku"] {
        let name = model(family);
        assert!(name.starts_with("claude-"), "{name}");
        assert!(name.contains(&family.to_lowercase()), "{name}");
        // The same name is the session's model when it continues.
        let again = project.run(&["-p", "--continue", "--model", family, "more"]);
        assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    }
    assert_eq!(model("claude-opus-5"), "claude-opus-5");
}

#[test]
fn lines_in_mean_lines_out_without_being_told_to_print() {
    let project = Project::new("run-implied", "");
    let mut child = project
        .posse(&[
            "--output-format",
            "stream-json",
            "--verbose",
            "--input-format",
            "stream-json",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let words = json!({"type": "user", "message": {"role": "user", "content": "what?"}});
    writeln!(child.stdin.take().unwrap(), "{words}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(result(&output)["result"], "You said: what?");
}

#[test]
fn the_same_system_prompt_is_not_a_change() {
    let project = Project::new("run-same-prompt", "");
    let told = "Say \"yes\" only.\nThen stop.";
    for flag in ["--append-system-prompt", "--system-prompt"] {
        let first = project.run(&["-p", flag, told, "what?"]);
        assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
        for (text, code) in [(told, 0), ("", 0), ("Say no.", 1)] {
            let again = project.run(&["-p", "--continue", flag, text, "more"]);
            assert_eq!(
                again.status.code(),
                Some(code),
                "{text}: {}",
                stderr(&again)
            );
        }
    }
}
