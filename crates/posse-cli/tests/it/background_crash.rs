//! posse killed at random moments of a run with background agents that write to each other, and then going
//! on: what was sent and what has ended is shown once, nothing that had ended is done again, and all end.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use posse_port::store::{
    AgentFilter, AgentRecord, AgentState, MailFilter, Page, Store as _, Transcript,
};
use posse_protocol::{AgentId, EntryKind, MailKind, RealmId};
use posse_scripted::Server;
use posse_store::Sqlite;
use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::crash::serve;
use crate::run::{LINES, lines};

const AGENTS: usize = 8;

/// Eight agents. Each leaves a line in a file, writes to the next one and to the main agent, leaves another
/// line, writes to the one before it, and is done. Who is written to after its end reads that and ends again.
fn script() -> String {
    let mut script = String::new();
    let mut rule = |when: &str, reply: &str| {
        script.push_str(&format!(
            "[[rule]]\nwhen = {{ {when} }}\nreply = [{reply}]\n"
        ));
    };
    let bash = |line: String| {
        format!("{{ tool = 'Bash', input = {{ command = 'echo {line} >>done.log' }} }}")
    };
    let send = |to: &str, text: String| {
        format!("{{ tool = 'SendMessage', input = {{ to = '{to}', message = '{text}' }} }}")
    };
    for me in 0..AGENTS {
        let agent = format!("agent = 're:^/main/a{me}-'");
        let (next, before) = ((me + 1) % AGENTS, (me + AGENTS - 1) % AGENTS);
        rule(&format!("{agent}, turn = 1"), &bash(format!("first-{me}")));
        let forth = send(&format!("a{next}"), format!("letter-forth-{me}."));
        let report = send("main", format!("letter-main-{me}."));
        rule(&format!("{agent}, turn = 2"), &format!("{forth}, {report}"));
        rule(&format!("{agent}, turn = 3"), &bash(format!("second-{me}")));
        let back = send(&format!("a{before}"), format!("letter-back-{me}."));
        rule(&format!("{agent}, turn = 4"), &back);
        rule(&agent, &format!("{{ text = 'a{me} is done' }}"));
    }
    let start = |me: usize| {
        format!(
            "{{ tool = 'Agent', input = {{ description = 'work {me}', prompt = 'Work.', name = 'a{me}', run_in_background = true }} }}"
        )
    };
    let starts: Vec<String> = (0..AGENTS).map(start).collect();
    rule("agent = 're:^/main$', turn = 1", &starts.join(", "));
    rule("agent = 're:^/main$'", "{ text = 'I see.' }");
    script
}

/// What the store has of a session.
struct Found {
    agents: Vec<(AgentRecord, Transcript)>,
    /// Mail by its recipient.
    mail: HashMap<AgentId, Vec<posse_protocol::Mail>>,
}

fn look(home: &Path, session: &str) -> Found {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(&home.join("posse.db")).unwrap();
        let realm: RealmId = session.parse().unwrap();
        let filter = AgentFilter {
            realm: Some(realm),
            ..AgentFilter::default()
        };
        let (mut agents, mut mail) = (Vec::new(), HashMap::new());
        for session in store.agents(filter, Page::first(1000)).await.unwrap() {
            let agent = session.agent;
            agents.push((session, store.read(agent).await.unwrap()));
            mail.insert(
                agent,
                store
                    .mail(realm, agent, MailFilter::default(), Page::first(10_000))
                    .await
                    .unwrap(),
            );
        }
        Found { agents, mail }
    })
}

impl Found {
    fn text(transcript: &Transcript) -> String {
        let bytes = transcript
            .entries
            .iter()
            .map(|stored| &stored.entry.encoded.bytes);
        bytes
            .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            .collect()
    }

    /// What is true of every session that has come to its end, however often posse was killed.
    fn check(&self, what: &str) {
        let main = self
            .agents
            .iter()
            .find(|(session, _)| session.origin.is_none())
            .unwrap();
        // A call that had not begun when posse was killed is told so, and not run again.
        let told = Self::text(&main.1);
        let not_begun =
            told.matches("Not started: ").count() + told.matches("Not run, or ").count();
        assert_eq!(
            self.agents.len() + not_begun,
            AGENTS + 1,
            "{what}: each was started once: {told}"
        );
        for (session, transcript) in &self.agents {
            let who = format!("{what}: {}", session.path);
            let is_main = session.origin.is_none();
            let expected = if is_main {
                AgentState::Idle
            } else {
                AgentState::Completed
            };
            assert_eq!(session.state, expected, "{who}");
            assert!(transcript.open_calls.is_empty(), "{who}");
            let mail = &self.mail[&session.agent];
            for mail in mail {
                assert!(mail.shown_in.is_some(), "{who}: {mail:?} was never shown");
            }
            self.check_entries(session, transcript, &who);
        }
        self.check_letters(what);
    }

    /// Whatever an agent is told is answered once, and after its first prompt it is told of mail only.
    fn check_entries(&self, session: &AgentRecord, transcript: &Transcript, who: &str) {
        let kinds: Vec<EntryKind> = transcript
            .entries
            .iter()
            .map(|stored| stored.entry.kind)
            .collect();
        for (seq, kind) in kinds.iter().enumerate() {
            let before = seq.checked_sub(1).map(|before| kinds[before]);
            let fits = match kind {
                EntryKind::Reply => before.is_some_and(|before| before != EntryKind::Reply),
                EntryKind::Results => before == Some(EntryKind::Reply),
                EntryKind::Prompt | EntryKind::Compaction | EntryKind::Model => true,
            };
            assert!(fits, "{who}: {kinds:?}");
            if seq > 0 && *kind == EntryKind::Prompt {
                let shows = |mail: &posse_protocol::Mail| mail.shown_in == Some(seq as u64);
                assert!(
                    self.mail[&session.agent].iter().any(shows),
                    "{who}: entry {seq} shows no mail"
                );
            }
        }
        assert_eq!(kinds.last(), Some(&EntryKind::Reply), "{who}: {kinds:?}");
    }

    /// Every letter that was sent is in one inbox, and in its owner's transcript, once; so is every end.
    fn check_letters(&self, what: &str) {
        let mut ends: BTreeMap<AgentId, usize> = BTreeMap::new();
        for (session, transcript) in &self.agents {
            let text = Self::text(transcript);
            let mail = &self.mail[&session.agent];
            for mail in mail {
                let shown = match mail.kind {
                    MailKind::Notification => {
                        let end: Value = serde_json::from_str(&mail.body).unwrap();
                        let task = end["task"].as_str().unwrap();
                        assert_eq!(end["status"], "completed", "{what}: {end}");
                        *ends.entry(task.parse().unwrap()).or_default() += 1;
                        continue;
                    }
                    _ => text.matches(&format!("\\n{}\\n</mail>", mail.body)).count(),
                };
                assert_eq!(
                    shown, 1,
                    "{what}: {} in {}: {text}",
                    mail.body, session.path
                );
            }
            let told = mail
                .iter()
                .filter(|mail| mail.kind == MailKind::Notification)
                .count();
            assert_eq!(
                text.matches("<task-notification>").count(),
                told,
                "{what}: {}",
                session.path
            );
            let letters = mail
                .iter()
                .filter(|mail| mail.kind == MailKind::Text)
                .count();
            assert_eq!(
                text.matches("</mail>").count(),
                letters,
                "{what}: {}",
                session.path
            );
        }
        let all: Vec<&str> = self
            .mail
            .values()
            .flatten()
            .filter(|mail| mail.kind == MailKind::Text)
            .map(|mail| mail.body.as_str())
            .collect();
        let mut letters = all.clone();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(
            letters.len(),
            all.len(),
            "{what}: something was sent twice: {all:?}"
        );
        let sent = self
            .agents
            .iter()
            .map(|(_, transcript)| Self::text(transcript).matches("Sent to ").count());
        assert_eq!(
            sent.sum::<usize>(),
            all.len(),
            "{what}: whoever has sent something knows it"
        );
        for (session, _) in self
            .agents
            .iter()
            .filter(|(session, _)| session.origin.is_some())
        {
            assert!(
                ends.contains_key(&session.agent),
                "{what}: nobody heard of the end of {}",
                session.path
            );
        }
    }
}

struct Scene {
    project: Project,
    server: Arc<Server>,
}

impl Scene {
    fn new(name: &str) -> Self {
        Self {
            project: Project::new(&format!("background-{name}"), ""),
            server: serve(&script()),
        }
    }

    fn start(&self, more: &[&str]) -> Child {
        let arguments = [
            &LINES[..],
            &["--permission-mode", "bypassPermissions"],
            more,
        ]
        .concat();
        let mut command = self.project.posse(&arguments);
        command.env("ANTHROPIC_BASE_URL", self.server.url());
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn look(&self, session: &str) -> Found {
        look(&self.project.file("../home"), session)
    }

    /// Goes on until nothing is left to do; how often that was needed. posse waits for what the main agent has
    /// started: who was woken by somebody who has ended may be left for the next time.
    fn go_on(&self, session: &str, what: &str) -> u64 {
        for times in 0..5 {
            let output = self
                .start(&["--resume", session])
                .wait_with_output()
                .unwrap();
            if stderr(&output).contains("has nothing left to do") {
                return times;
            }
            assert!(
                output.status.success(),
                "{what}: {}\n{}",
                stderr(&output),
                stdout(&output)
            );
        }
        panic!("{what}: it goes on for ever");
    }

    /// Lines that were left, none of them twice.
    fn check_log(&self, what: &str) -> usize {
        let log = std::fs::read_to_string(self.project.file("done.log")).unwrap_or_default();
        let mut left: Vec<&str> = log.lines().collect();
        left.sort_unstable();
        let all = left.len();
        left.dedup();
        assert_eq!(left.len(), all, "{what}: something ran twice: {log}");
        all
    }
}

/// The session that lines are about.
fn session(told: &[Value]) -> String {
    told[0]["session_id"].as_str().unwrap().to_owned()
}

/// A number below `below`, from a seed.
pub(crate) fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below.max(1)
}

/// Waits until so many requests have come, and a little more; whether posse lived that long.
pub(crate) fn reached(server: &Server, posse: &mut Child, requests: usize, more: Duration) -> bool {
    while server.requests().len() < requests {
        if posse.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
    // Nobody says anything: this is a moment of time.
    let (_never, moment) = mpsc::channel::<()>();
    let _ = moment.recv_timeout(more);
    posse.try_wait().unwrap().is_none()
}

/// Kills posse once, goes on, and checks what came of it. Whether it had not ended before, and how often it
/// had to go on.
fn killed_once(name: &str, requests: usize, more: Duration) -> (bool, u64) {
    let what = format!("killed {more:?} after request {requests}");
    let scene = Scene::new(name);
    let mut posse = scene.start(&["begin"]);
    // Read all the time: posse waits for a reader that does not read.
    let mut out = posse.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let hit = reached(&scene.server, &mut posse, requests, more);
    // It may have ended just now.
    let _ = posse.kill();
    posse.wait().unwrap();
    let text = reader.join().unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let told: Vec<Value> = whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let session = session(&told);
    let before = scene.look(&session);
    let resumed = scene.go_on(&session, &what);
    let after = scene.look(&session);
    after.check(&what);
    scene.check_log(&what);
    for (was, transcript) in &before.agents {
        let now = &after
            .agents
            .iter()
            .find(|(session, _)| session.agent == was.agent)
            .unwrap()
            .1;
        let (had, has) = (transcript.entries.len(), now.entries.len());
        let ended = was.state == AgentState::Completed && has > had;
        let woken = after.mail[&was.agent]
            .iter()
            .any(|mail| mail.shown_in == Some(had as u64));
        assert!(
            !ended || woken,
            "{what}: {} had ended and went on by itself",
            was.path
        );
    }
    (hit, resumed)
}

fn killed(name: &str, times: u64) {
    let scene = Scene::new(&format!("{name}-whole"));
    let begun = Instant::now();
    let output = scene.start(&["begin"]).wait_with_output().unwrap();
    let took = begun.elapsed();
    assert!(output.status.success(), "{}", stderr(&output));
    let session = session(&lines(&output));
    scene.go_on(&session, "undisturbed");
    let found = scene.look(&session);
    found.check("undisturbed");
    assert_eq!(scene.check_log("undisturbed"), 2 * AGENTS);
    let letters = found
        .mail
        .values()
        .flatten()
        .filter(|mail| mail.kind == MailKind::Text)
        .count();
    assert_eq!(letters, 3 * AGENTS, "undisturbed: every letter is sent");
    let requests = scene.server.requests().len() as u64;
    let mut seed = RandomState::new().hash_one(0) | 1;
    let _ = writeln!(
        std::io::stderr(),
        "undisturbed: {requests} requests in {took:?}; seed {seed}"
    );
    let (mut hits, mut again) = (0, 0);
    let mut number = 0;
    // Moments after its end hit nothing, and others are drawn for them.
    while hits < times {
        let after = 1 + (number % times * requests + draw(&mut seed, requests)) / times;
        let gap = took.as_micros() as u64 / requests;
        let more = Duration::from_micros(draw(&mut seed, 2 * gap));
        let (hit, resumed) = killed_once(&format!("{name}-{}", number % 4), after as usize, more);
        (hits, again) = (hits + u64::from(hit), again + u64::from(resumed > 1));
        number += 1;
        assert!(
            number < 2 * times + 10,
            "the run is over before it can be killed"
        );
    }
    let _ = writeln!(
        std::io::stderr(),
        "killed at {hits} of {number} moments, and whole again each time; {again} went on more than once"
    );
}

// proves BG-05 (part: once; across a crash)
// proves SM-05 (part: once after kill -9)
#[test]
fn killed_at_some_moments_everything_is_told_once() {
    killed("some", 8);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn killed_at_many_moments_everything_is_told_once() {
    killed("many", 200);
}
