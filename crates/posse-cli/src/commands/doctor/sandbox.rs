//! `posse doctor --sandbox`: tries the sandbox that commands run in.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use posse_port::confinement::Confinement;
use posse_port::confinement::Tier;
use posse_sandbox::{Job, KernelSupport, Plan, Surroundings};
use serde_json::json;

use crate::assemble::{directories, sandbox};
use crate::config::environment::{self, working_directory};
use crate::config::settings::sandbox::SandboxUse;
use crate::config::settings::{FlagSettings, Settings};
use crate::error::FAILED;
use crate::output::{json_line, print, tame};

/// How often a command is run to see what the sandbox costs.
const RUNS: usize = 5;

/// Prints what the sandbox is made of, what it hides, and what it costs. Exits with 1 if commands
/// run with less than tier A.
pub(super) fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    let cwd = working_directory()?;
    let settings = Settings::at(&cwd, FlagSettings::default())?.sandbox;
    let probe = sandbox::probe();
    let tier = probe.tier();
    let home = environment::home();
    let hidden: Vec<PathBuf> = sandbox::secrets(home.as_deref())
        .into_iter()
        .chain(environment::posse_home())
        .chain(settings.hide.iter().cloned())
        .filter(|path| path.exists())
        .collect();
    let took = match tier {
        Tier::C => None,
        _ => Some(measured(&cwd, probe.support)?),
    };
    let is_on = settings.enabled != SandboxUse::Off;
    if as_json {
        let support = probe.support;
        let object = json!({
            "enabled": is_on, "tier": tier.to_string(), "namespaces": support.namespaces,
            "landlock": support.landlock, "seccomp": support.seccomp, "missing": probe.missing,
            "hidden": hidden, "command_ms": took.map(|took| took.as_secs_f64() * 1000.0),
        });
        print(json_line(&object).as_bytes())?;
    } else {
        let mut text = match is_on {
            true => String::new(),
            false => "the sandbox is off in your settings; this is what it would be\n".into(),
        };
        text += &format!("tier      {tier}: {}\n", tame(&sandbox::in_words(&probe)));
        if let Some(took) = took {
            let milliseconds = took.as_secs_f64() * 1000.0;
            text += &format!("cost      {milliseconds:.1} ms for a command that does nothing\n");
        }
        text += &format!("hidden    {} paths with secrets:\n", hidden.len());
        for path in &hidden {
            text += &format!("          {}\n", tame(&path.display().to_string()));
        }
        text += "network   none, unless you allow it when a command asks\n";
        if !tier.has_mounts() {
            text += &format!("          → {}\n", sandbox::advice());
        }
        print(text.as_bytes())?;
    }
    Ok(match is_on && tier == Tier::A {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// Returns how long a command takes that does nothing.
fn measured(cwd: &Path, support: KernelSupport) -> anyhow::Result<Duration> {
    let temporary = directories::spill()?.join("doctor");
    std::fs::create_dir_all(&temporary)?;
    let bounds = Confinement {
        show: vec![cwd.to_owned()],
        ..Confinement::default()
    };
    let surroundings = Surroundings::look(&bounds, support, &temporary, &[]);
    let plan = Plan::new(&bounds, &surroundings)?;
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let job = Job {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), "true".into()],
            directory: "/".into(),
            environment: Vec::new(),
        };
        let since = Instant::now();
        let ended = sandbox::launcher().command(&plan, job)?.output()?;
        best = best.min(since.elapsed());
        anyhow::ensure!(
            ended.status.success(),
            "a command in the sandbox failed: {}",
            String::from_utf8_lossy(&ended.stderr).trim()
        );
    }
    let _ = std::fs::remove_dir_all(temporary);
    Ok(best)
}
