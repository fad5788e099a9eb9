//! The cases that were recorded from Claude Code, run by posse and compared.
//!
//! Each difference is listed in deviations.toml with its reason. What is listed there and does not occur
//! fails the test, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::handlers::CaseHook;
use super::scene::{Scene, Setting};
use super::seen::{Difference, Seen};

const CASES: &str = include_str!("cases.json");
const RECORDED: &str = include_str!("recorded.jsonl");
const DEVIATIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/hooks/deviations.toml"
);
/// The events of Claude Code 2.1.325: those that `"event": "*"` means.
const EVENTS: &str = "SessionStart Setup UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PermissionDenied \
    PostToolUse PostToolUseFailure PostToolBatch Notification MessageDisplay SubagentStart SubagentStop Stop StopFailure \
    TeammateIdle TaskCreated TaskCompleted PreCompact PostCompact PreModelSwitch PostModelSwitch Elicitation \
    ElicitationResult ConfigChange InstructionsLoaded CwdChanged FileChanged DirectoryAdded WorktreeCreate WorktreeRemove \
    SessionEnd";
/// Many cases wait for a hook that sleeps.
const AT_ONCE: usize = 8;

#[derive(Deserialize)]
struct Table {
    scenes: BTreeMap<String, Setting>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    scene: String,
    #[serde(flatten)]
    hook: CaseHook,
    #[serde(default)]
    more: Vec<CaseHook>,
    #[serde(default)]
    flags: Vec<String>,
    resume: Option<Vec<String>>,
    #[serde(default)]
    settings: Map<String, Value>,
    prompt: Option<String>,
    prompts: Option<Vec<String>>,
}

impl Case {
    /// Runs the case as the recorder does.
    fn run(&self, number: usize, scenes: &BTreeMap<String, Setting>) -> Seen {
        let mut setting = scenes[&self.scene].clone();
        setting.prompt = self.prompt.clone().or(setting.prompt);
        setting.prompts = self.prompts.clone().or(setting.prompts);
        let mut settings = setting.settings.clone();
        settings.extend(self.settings.clone());
        let scene = Scene::new(&format!("table/{number}"), setting);
        let mut hooks: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        let mut servers = Vec::new();
        for (number, hook) in [&self.hook].into_iter().chain(&self.more).enumerate() {
            let Some(event) = hook.event.as_deref() else {
                continue;
            };
            let (handler, server) = hook.make(&scene.base, number);
            servers.extend(server);
            let mut group = json!({"hooks": [handler]});
            if let Some(matcher) = &hook.matcher {
                group["matcher"] = json!(matcher);
            }
            let events = if event == "*" { EVENTS } else { event };
            for event in events.split_whitespace() {
                hooks.entry(event).or_default().push(group.clone());
            }
        }
        settings.insert("hooks".into(), json!(hooks));
        scene.write_settings(&settings.into());
        let mut codes = vec![scene.run(&self.flags).code];
        if let Some(resume) = &self.resume {
            codes.push(scene.run(resume).code);
        }
        Seen::posse(&scene.base, &scene.bodies(), &codes)
    }
}

/// What posse does otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviations {
    not_run: Vec<NotRun>,
    deviation: Vec<Deviation>,
    not_built: Vec<Deviation>,
}

/// A case that is not played.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NotRun {
    case: String,
    #[expect(dead_code, reason = "it is for the reader")]
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    /// Names of cases; `*` stands for anything.
    cases: Vec<String>,
    /// Aspects; `*` stands for anything.
    differs: Vec<String>,
    /// What posse does, of aspects that are not to differ in any other way.
    #[serde(default)]
    posse: BTreeMap<String, Value>,
    /// It depends on which of two things comes first.
    #[serde(default)]
    sometimes: bool,
    why: String,
}

impl Deviation {
    fn covers(&self, difference: &Difference) -> bool {
        self.differs
            .iter()
            .any(|pattern| is_like(pattern, &difference.aspect))
            && self
                .posse
                .get(&difference.aspect)
                .is_none_or(|posse| *posse == difference.posse)
    }
}

/// Returns true if `*` in the pattern can stand for something that makes it the text.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let tail = text.strip_prefix(front);
    pattern == text
        || tail.is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.get(at..).is_some_and(|text| is_like(rest, text)))
        })
}

/// All differences by the case's name.
type Differences = Vec<(String, Vec<Difference>)>;

fn play(not_run: &[NotRun]) -> Differences {
    let table: Table = serde_json::from_str(CASES).unwrap();
    let lines = RECORDED
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let recorded: BTreeMap<String, Value> = lines
        .map(|line| (line["name"].as_str().unwrap().to_owned(), line))
        .collect();
    let only = std::env::var("POSSE_HOOK_CASES").unwrap_or_else(|_| "*".into());
    let cases: Vec<(usize, &Case)> = table
        .cases
        .iter()
        .enumerate()
        .filter(|(_, case)| {
            is_like(&only, &case.name) && !not_run.iter().any(|it| it.case == case.name)
        })
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let posse = case.run(*number, &table.scenes);
                    let claude = Seen::recorded(&recorded[&case.name]);
                    let differences = claude.differences(&posse);
                    found
                        .lock()
                        .unwrap()
                        .push((*number, case.name.clone(), differences));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|(number, ..)| *number);
    found
        .into_iter()
        .map(|(_, name, differences)| (name, differences))
        .collect()
}

/// Returns what is not listed, and what is listed and does not occur.
fn judge(listed: &[Deviation], played: &Differences) -> String {
    let mut wrong = String::new();
    for (name, differences) in played {
        for difference in differences {
            let names = |it: &Deviation| it.cases.iter().any(|pattern| is_like(pattern, name));
            if !listed.iter().any(|it| names(it) && it.covers(difference)) {
                let Difference {
                    aspect,
                    claude,
                    posse,
                } = difference;
                writeln!(
                    wrong,
                    "{name}: {aspect}\n  claude: {claude}\n  posse:  {posse}"
                )
                .unwrap();
            }
        }
    }
    for deviation in listed.iter().filter(|it| !it.sometimes) {
        for pattern in &deviation.cases {
            let matched = played
                .iter()
                .filter(|(name, _)| is_like(pattern, name))
                .flat_map(|(_, all)| all);
            for aspect in &deviation.differs {
                let occurs = |it: &Difference| is_like(aspect, &it.aspect) && deviation.covers(it);
                if !matched.clone().any(occurs) {
                    writeln!(
                        wrong,
                        "listed, but does not occur: {pattern}: {aspect} ({})",
                        deviation.why
                    )
                    .unwrap();
                }
            }
        }
    }
    wrong
}

// proves HK-01 (part: session; prompts; tools; permissions; batch; stop; sub-agents; compaction; exit codes)
// proves HK-03 (part: main agent; sub-agents)
// proves HK-04
// proves HK-07 (part: strictest; order of inputs; deny rules; told)
// proves HK-10 (part: held back)
#[test]
fn hooks_do_in_posse_what_they_do_in_claude_code() {
    let listed = std::fs::read_to_string(DEVIATIONS).unwrap();
    let listed: Deviations = toml::from_str(&listed).unwrap();
    let played = play(&listed.not_run);
    let listed: Vec<Deviation> = listed
        .deviation
        .into_iter()
        .chain(listed.not_built)
        .collect();
    let wrong = judge(&listed, &played);
    assert!(wrong.is_empty(), "{wrong}");
}
