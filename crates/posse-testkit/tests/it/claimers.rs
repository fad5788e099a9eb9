//! Many teammates in several processes that take tasks from one list and write to each other, while a process is
//! killed every second and another takes its place.

mod found;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{MailFilter, NewTask, Op, Order, Page, Store, TaskFilter};
use posse_protocol::{AgentId, ListId, MailKind, MemberState, RealmId, TaskId, TaskStatus};
use posse_testkit::place::{Ground, Place};
use posse_testkit::scripted;

use self::found::Found;

/// How much there is to do, and how it is disturbed.
#[derive(Clone, Copy)]
struct Plan {
    members: usize,
    tasks: u64,
    seed: u64,
}

/// Besides that of the lead.
const HOSTS: usize = 3;
/// So often a process is killed.
const KILL: Duration = Duration::from_secs(1);
/// No task takes as long as this, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whoever takes a task writes to whom it names, and to the lead, and completes it. Whoever does not know whether it has
/// completed it tries again; if somebody else has it, it is left to them.
fn script(members: usize) -> String {
    let call = |number| {
        format!(
            "{{ tool = 'Agent', input = {{ description = 'd', prompt = 'Be there.', name = 'm{number}' }} }}"
        )
    };
    let calls = (0..members).map(call).collect::<Vec<_>>().join(", ");
    let complete =
        "{ tool = 'TaskUpdate', input = { taskId = '{{state.task}}', status = 'completed' } }";
    format!(
        r#"
[pace]
delay_ms = 30
[[rule]]
when = {{ agent = "re:^/main$", turn = 1 }}
reply = [{{ tool = "TeamCreate", input = {{ team_name = "crew", description = "d" }} }}]
[[rule]]
when = {{ agent = "re:^/main$", turn = 2 }}
reply = [{calls}]
[[rule]]
when = {{ agent = "re:^/main$", tool = "re:." }}
reply = [{{ text = "good" }}]
[[rule]]
when = {{ agent = "re:^/main$", user = "team-idle" }}
times = 30
reply = [{{ tool = "SendMessage", input = {{ to = "m1", message = "word of /main {{{{turn}}}}." }} }}]
[[rule]]
when = {{ agent = "re:^/main$" }}
reply = [{{ text = "noted" }}]
[[rule]]
when.tool = "Updated, to version"
set.phase = ""
reply = [{{ text = "done" }}]
[[rule]]
when = {{ tool = "Refused", state = {{ phase = "completing" }} }}
set.phase = ""
reply = [{{ text = "It is somebody else's." }}]
[[rule]]
when = {{ tool = "re:.", state = {{ phase = "completing" }} }}
reply = [{complete}]
[[rule]]
when = {{ tool = "re:.", state = {{ phase = "sent" }} }}
set.phase = "completing"
reply = [{complete}]
[[rule]]
when.tool = "re:."
reply = [{{ text = "well" }}]
[[rule]]
when.user = "re:still in progress:\\n- (\\d+):"
set = {{ phase = "completing", task = "{{{{user.1}}}}" }}
reply = [{{ tool = 'TaskUpdate', input = {{ taskId = '{{{{user.1}}}}', status = 'completed' }} }}]
[[rule]]
when.user = "re:(?s)Task (\\d+) is yours now.*Write to (m\\d+)\\."
set = {{ phase = "sent", task = "{{{{user.1}}}}" }}
reply = [
  {{ tool = "SendMessage", input = {{ to = "{{{{user.2}}}}", message = "word of {{{{agent}}}} {{{{turn}}}}." }} }},
  {{ tool = "SendMessage", input = {{ to = "team-lead", message = "report of {{{{agent}}}} {{{{turn}}}}." }} }},
]
[[rule]]
reply = [{{ text = "ok" }}]
"#
    )
}

/// A number below `below`, from a seed.
fn draw(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below.max(1)
}

/// What the processes have in common: a model, a store, and a directory for the rest.
struct Site {
    url: String,
    store: Place,
    directory: PathBuf,
}

/// A process with a part of the team.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    #[expect(clippy::disallowed_methods, reason = "stands for another posse")]
    fn start(role: &str, at: &Site, more: &[&str]) -> Self {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_team-work"));
        command
            .arg(role)
            .arg(&at.url)
            .arg(&at.store)
            .arg(&at.directory)
            .args(more);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for a line that begins so, and gives the rest.
    fn hears(&mut self, wanted: &str) -> String {
        while let Some(Ok(line)) = self.lines.next() {
            if let Some(rest) = line.strip_prefix(wanted) {
                return rest.trim().to_owned();
            }
        }
        panic!("it has ended: {}", self.complaint());
    }

    fn complaint(&mut self) -> String {
        let mut said = String::new();
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
        said
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until nobody has an agent any more: on a server, what was killed has it until the lease is over.
async fn until_free(store: &Place, agent: AgentId) {
    let (store, clock) = (store.open().unwrap(), SystemClock::default());
    while store.read(agent).await.unwrap().record.holder.is_some() {
        clock.sleep(KILL / 100).await;
    }
}

/// The processes of a team, the lead's first.
struct Crew {
    site: Site,
    session: String,
    most: String,
    processes: Vec<Process>,
}

impl Crew {
    /// Raises the team in the lead's process, and has the others take its members.
    fn raise(site: Site, members: usize) -> Self {
        let mut first = Process::start("lead", &site, &[]);
        let session = first.hears("session");
        first.hears("quiet");
        first.kill();
        tokio::runtime::Handle::current()
            .block_on(until_free(&site.store, session.parse().unwrap()));
        let most = members.div_ceil(HOSTS).to_string();
        let mut crew = Self {
            site,
            session,
            most,
            processes: Vec::new(),
        };
        let mut hosts: Vec<Process> = (0..HOSTS).map(|_| crew.start(1)).collect();
        let hosted = hosts
            .iter_mut()
            .map(|host| host.hears("hosts").parse::<usize>().unwrap());
        assert_eq!(hosted.sum::<usize>(), members, "all have a host");
        crew.processes.push(crew.start(0));
        crew.processes.append(&mut hosts);
        crew
    }

    fn start(&self, number: usize) -> Process {
        match number {
            0 => Process::start("lead", &self.site, &[&self.session]),
            _ => Process::start("host", &self.site, &[&self.session, &self.most]),
        }
    }

    /// Kills one, and starts another in its place.
    fn replace(&mut self, number: usize) {
        if let Some(status) = self.processes[number].child.try_wait().unwrap() {
            panic!(
                "process {number} has ended by itself: {status}: {}",
                self.processes[number].complaint()
            );
        }
        self.processes[number].kill();
        self.processes[number] = self.start(number);
    }

    fn realm(&self) -> RealmId {
        self.session.parse().unwrap()
    }

    fn list(&self) -> ListId {
        ListId {
            realm: self.realm(),
            team: Some("crew".parse().unwrap()),
        }
    }

    /// Makes the tasks: each waits for up to three of the hundred before it.
    async fn give(&self, store: &dyn Store, plan: Plan, seed: &mut u64) {
        let ops = (1..=plan.tasks).map(|number| {
            let first = number.saturating_sub(100).max(1);
            let blocked_by: BTreeSet<u64> = (0..draw(seed, 4))
                .map(|_| first + draw(seed, number - first))
                .filter(|it| *it < number)
                .collect();
            let to = draw(seed, plan.members as u64);
            let task = NewTask {
                subject: format!("part {number}"),
                description: format!("Write to m{to}."),
                blocked_by: blocked_by.into_iter().map(TaskId).collect(),
                ..NewTask::default()
            };
            Op::CreateTask {
                team: self.list().team,
                task: Box::new(task),
            }
        });
        let order = Order {
            realm: self.realm(),
            ops: ops.collect(),
            at_ms: 1,
        };
        for made in store.operate(order).await.unwrap() {
            made.unwrap();
        }
    }

    async fn done(&self, store: &dyn Store) -> usize {
        let filter = TaskFilter {
            status: Some(TaskStatus::Completed),
            ..TaskFilter::default()
        };
        store
            .tasks(self.list(), filter, Page::all())
            .await
            .unwrap()
            .len()
    }

    /// Whether nobody does anything, and nobody has mail that waits.
    async fn is_quiet(&self, store: &dyn Store) -> bool {
        let teams = store
            .teams(Some(self.realm()), Page::first(10))
            .await
            .unwrap();
        let idle = teams[0]
            .members
            .iter()
            .all(|member| member.state == MemberState::Idle && member.waiting == 0);
        let filter = MailFilter { waiting: true };
        idle && store
            .mail(
                self.realm(),
                self.session.parse().unwrap(),
                filter,
                Page::first(1),
            )
            .await
            .unwrap()
            .is_empty()
    }

    /// What there is, for whoever looks for why it does not end.
    async fn state(&self, store: &dyn Store) -> String {
        let tasks = store
            .tasks(self.list(), TaskFilter::default(), Page::all())
            .await
            .unwrap();
        let open = tasks
            .iter()
            .filter(|task| task.status != TaskStatus::Completed && task.waits_for.is_empty());
        let open: Vec<_> = open
            .take(20)
            .map(|task| (task.id, task.status, &task.owner, &task.lost_by))
            .collect();
        let teams = store
            .teams(Some(self.realm()), Page::first(10))
            .await
            .unwrap();
        let members = teams[0].members.iter();
        let members: Vec<_> = members
            .map(|it| (it.name.as_str(), it.state, it.waiting, it.held))
            .collect();
        format!("{open:?} {members:?}")
    }
}

/// Runs it, and says what there was to see.
async fn run(plan: Plan) -> String {
    let server = scripted::play(&script(plan.members)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut seed = plan.seed | 1;
    let begun = Instant::now();
    // Lines are waited for, and the server must answer meanwhile.
    let ground = Ground::new(&directory.path().join("home")).unwrap();
    let site = Site {
        url: server.url(),
        store: ground.place().clone(),
        directory: directory.path().to_owned(),
    };
    let raising = tokio::task::spawn_blocking(move || Crew::raise(site, plan.members));
    let mut crew = raising.await.unwrap();
    let store = ground.place().open().unwrap();
    crew.give(&*store, plan, &mut seed).await;
    let (clock, mut kills) = (SystemClock::default(), [0; HOSTS + 1]);
    let (mut done, mut moved) = (0, Instant::now());
    while done < plan.tasks as usize {
        clock.sleep(KILL).await;
        let now = crew.done(&*store).await;
        if now > done {
            (done, moved) = (now, Instant::now());
        }
        let one = draw(&mut seed, HOSTS as u64 + 1) as usize;
        crew.replace(one);
        kills[one] += 1;
        assert!(
            moved.elapsed() < PATIENCE,
            "seed {}: {}",
            plan.seed,
            crew.state(&*store).await
        );
    }
    let (took, ended) = (begun.elapsed(), Instant::now());
    while !crew.is_quiet(&*store).await {
        clock.sleep(KILL / 10).await;
        assert!(
            ended.elapsed() < PATIENCE,
            "seed {}: {}",
            plan.seed,
            crew.state(&*store).await
        );
    }
    crew.processes.clear();
    let found = Found::look(&*store, crew.realm(), &crew.list()).await;
    found.check(plan.tasks, &format!("seed {}", plan.seed));
    let letters = found
        .mails()
        .filter(|mail| mail.kind == MailKind::Text)
        .count();
    format!(
        "seed {}: {} tasks and {letters} letters in {took:?}, killed {kills:?}, {} requests",
        plan.seed,
        plan.tasks,
        server.requests().last().map_or(0, |last| last.number + 1)
    )
}

// proves TK-08 (part: at once on one machine)
// proves TE-10 (part: several processes; taken over)
// proves SM-05 (part: once after kill -9)
#[tokio::test]
async fn killed_claimers_do_each_task_once() {
    let told = run(Plan {
        members: 12,
        tasks: 120,
        seed: 7,
    })
    .await;
    eprintln!("{told}");
}

#[tokio::test]
#[ignore = "the long form: `cargo xtask faults team`"]
async fn many_killed_claimers_do_each_task_once() {
    for seed in 1..=crate::asked("POSSE_SEEDS", 20) {
        let told = run(Plan {
            members: 50,
            tasks: 1000,
            seed: seed * 0x9e37_79b9,
        })
        .await;
        eprintln!("{told}");
    }
}
