//! The individual checks.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use posse_port::confinement::Tier;
use posse_port::in_a_line;
use posse_runtime::definition::server::ServerAdmission;
use rustix::fs::{Access, access};

use super::{Finding, Grade};
use crate::assemble::hooks;
use crate::assemble::provider::{self, Provider, ProviderSettings};
use crate::assemble::sandbox;
use crate::assemble::store;
use crate::assemble::unsupported::{guard_missing, not_used};
use crate::config::environment::{self, working_directory};
use crate::config::hook_programs::ProgramSearch;
use crate::config::look::Look;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::sandbox::SandboxUse;
use crate::config::settings::servers::ServerSettings;
use crate::config::settings::{FlagSettings, Settings};
use crate::config::store::{StoreArgs, StoreLocation};
use crate::config::store_choice;
use crate::config::trust::Trust;
use crate::config::unsupported::Unsupported;
use crate::definitions::servers::{LoadedServers, ServerFlags, ServerSources};
use crate::definitions::skills::SkillSources;
use crate::definitions::{AgentSources, InlineAgents, shown};
use crate::error;

/// Returns the result of a check that passed.
fn good(what: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        what,
        grade: Grade::Good,
        found: found.into(),
        advice: None,
    }
}

/// Returns the result of a check that did not pass, with advice.
fn not(
    what: &'static str,
    grade: Grade,
    found: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding {
        what,
        grade,
        found: found.into(),
        advice: Some(advice.into()),
    }
}

/// Is there a key?
pub(super) fn key(settled: &ProviderSettings) -> Finding {
    match &settled.key {
        Some(key) => good("key", format!("from {}", key.source)),
        None if settled.is_local() => good("key", "none, and none needed on this machine"),
        None => {
            let name = settled.key_name();
            let advice =
                format!("export {name}=…, or use `posse scripted-model`, which needs no key");
            not("key", Grade::Bad, format!("{name} is not set"), advice)
        }
    }
}

/// Does the endpoint answer, and does it take the key?
pub(super) async fn endpoint(settled: &ProviderSettings) -> Finding {
    const WHAT: &str = "endpoint";
    let url = &settled.base_url;
    let path = match settled.provider {
        Provider::Anthropic => "/v1/models",
        Provider::Openai => "/models",
    };
    let client = match provider::http_client(url) {
        Ok(client) => client,
        Err(error) => {
            return not(
                WHAT,
                Grade::Bad,
                error.to_string(),
                "this is a bug in posse; please report it",
            );
        }
    };
    let mut request = client
        .get(format!("{}{path}", url.trim_end_matches('/')))
        .header("anthropic-version", "2026-10-21")
        .timeout(Duration::from_secs(10));
    // Even without a key it is worth knowing if the server answers.
    if let Ok(Ok((name, value))) = settled.endpoint().map(|endpoint| endpoint.auth.header()) {
        request = request.header(name, value);
    }
    match request.send().await {
        Ok(response) if response.headers().contains_key("x-posse-scripted") => {
            scripted(WHAT, settled)
        }
        Ok(response) => match response.status().as_u16() {
            401 | 403 if settled.key.is_some() => not(
                WHAT,
                Grade::Bad,
                format!("{url} refuses the key"),
                "check the key; it may have been revoked",
            ),
            200 | 401 | 403 => good(WHAT, format!("{url} answers")),
            404 => {
                let found = format!("{url} answers, but has no {path}");
                let advice = "an OpenAI base URL ends in /v1, an Anthropic one does not; some \
                              servers list no models but work anyway";
                not(WHAT, Grade::Lacking, found, advice)
            }
            200..500 => good(WHAT, format!("{url} answers")),
            status => {
                let found = format!("{url} answers with {status}");
                not(
                    WHAT,
                    Grade::Lacking,
                    found,
                    "the provider is failing; try again later",
                )
            }
        },
        Err(error) => {
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), deepest);
            let advice = if settled.is_local() {
                "start a server there; `posse scripted-model` is one"
            } else {
                "check the network, a proxy (HTTPS_PROXY), or the base URL"
            };
            not(
                WHAT,
                Grade::Bad,
                format!("{url} cannot be reached: {why}"),
                advice,
            )
        }
    }
}

/// Returns the finding about a scripted model. A user with a key wants to reach a provider.
fn scripted(what: &'static str, settled: &ProviderSettings) -> Finding {
    let found = format!(
        "{} answers; it is a scripted model, not a provider",
        settled.base_url
    );
    match settled.key {
        None => good(what, found),
        Some(_) => not(
            what,
            Grade::Lacking,
            found,
            "to reach the provider, unset the base URL (ANTHROPIC_BASE_URL, OPENAI_BASE_URL or \
             --base-url)",
        ),
    }
}

/// Returns the root cause, which is the most specific one.
fn deepest(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}

/// Is the workspace trusted?
pub(super) fn trust(trust: &Trust) -> Finding {
    const WHAT: &str = "trust";
    let root = trust.root().display();
    match (trust.problem(), trust.is_trusted()) {
        (Some(problem), _) => not(
            WHAT,
            Grade::Bad,
            problem,
            "remove the file, and trust your workspaces again",
        ),
        (None, true) => good(WHAT, format!("{root} is trusted")),
        (None, false) => not(
            WHAT,
            Grade::Lacking,
            format!("{root} is not trusted: what its files define does not count"),
            "`posse trust` shows what there is, and asks",
        ),
    }
}

/// Is git installed, and new enough? It is not run before the workspace is trusted.
pub(super) fn git(trust: &Trust) -> Finding {
    if !trust.is_trusted() {
        return match program("git", trust.root()) {
            Some(path) => good("git", format!("{} (not run here)", path.display())),
            None => not("git", Grade::Bad, "not found", "install git 2.33 or later"),
        };
    }
    // The first version that creates and locks a worktree with a reason in one call.
    let advice = "install git 2.33 or later; posse isolates agents in its worktrees";
    match version_of("git", &["--version"], trust) {
        None => not("git", Grade::Bad, "not found", advice),
        Some(found) => {
            let numbers = found.trim_start_matches("git version ").split('.');
            let numbers: Vec<u32> = numbers
                .map_while(|part| part.parse().ok())
                .take(2)
                .collect();
            if numbers >= vec![2, 33] {
                good("git", found)
            } else {
                not("git", Grade::Bad, found, advice)
            }
        }
    }
}

/// Is tmux installed, and new enough?
pub(super) fn tmux(trust: &Trust) -> Finding {
    // The first version that reads commands from standard input, which is how secrets are passed.
    let advice = "install tmux 3.2 or later to see teammates in panes; everything else works";
    match version_of("tmux", &["-V"], trust) {
        None => not("tmux", Grade::Lacking, "not found", advice),
        Some(found) if has_panes(&found) => good("tmux", found),
        Some(found) => not("tmux", Grade::Lacking, found, advice),
    }
}

/// Returns true if this tmux has what posse needs. Development versions (`next-3.7`, `master`)
/// are assumed to.
fn has_panes(version: &str) -> bool {
    let number = version.trim_start_matches("tmux ").split('.');
    let parts: Vec<u32> = number
        .map_while(|part| {
            part.trim_end_matches(|c: char| c.is_ascii_lowercase())
                .parse()
                .ok()
        })
        .collect();
    parts.is_empty() || parts >= vec![3, 2]
}

/// Does posse confine commands?
pub(super) fn sandbox(here: &Path) -> Finding {
    const WHAT: &str = "sandbox";
    let settings = Settings::at(here, FlagSettings::default());
    let enabled = settings.map(|settings| settings.sandbox.enabled);
    // Wrong settings are told by another check.
    if enabled.unwrap_or_default() == SandboxUse::Off {
        return not(
            WHAT,
            Grade::Lacking,
            "off: rules decide what runs without asking, and what runs can do what you can do",
            "remove `sandbox.enabled` from your settings, or POSSE_SANDBOX from the environment",
        );
    }
    let probe = sandbox::probe();
    let found = format!("tier {}: {}", probe.tier(), sandbox::in_words(&probe));
    match probe.tier() {
        Tier::A => good(WHAT, found),
        Tier::AMinus => not(WHAT, Grade::Lacking, found, "use a kernel with Landlock"),
        Tier::B | Tier::C => not(WHAT, Grade::Lacking, found, sandbox::advice()),
    }
}

/// Can posse keep its store?
pub(super) fn home() -> Finding {
    const WHAT: &str = "store";
    let directory = match store_choice::meant_store(&StoreArgs::default()).map(|meant| meant.place)
    {
        Ok(StoreLocation::File(path)) => path
            .parent()
            .map(|parent| Path::new(".").join(parent))
            .unwrap_or_default(),
        Ok(place @ StoreLocation::Server(_)) => return server(WHAT, &place),
        Err(error) => {
            return not(
                WHAT,
                Grade::Bad,
                in_a_line(error.as_ref()),
                advice_for(&error),
            );
        }
    };
    let write = || {
        std::fs::create_dir_all(&directory)?;
        let probe = directory.join(format!(".doctor-{}", std::process::id()));
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&probe)?;
        let written = file.write_all(b"posse").and_then(|()| file.sync_all());
        std::fs::remove_file(&probe)?;
        written
    };
    match write() {
        Ok(()) => good(WHAT, format!("{} can be written", directory.display())),
        Err(error) => {
            let advice = "make it writable, or set POSSE_HOME to another directory";
            not(
                WHAT,
                Grade::Bad,
                format!("{} cannot be written: {error}", directory.display()),
                advice,
            )
        }
    }
}

/// Does the server answer, and can posse use what it has there?
fn server(what: &'static str, place: &StoreLocation) -> Finding {
    match store::OpenStore::at(place, None) {
        Ok(_) => good(what, format!("{} answers", place.shown())),
        Err(error) => not(
            what,
            Grade::Bad,
            in_a_line(error.as_ref()),
            advice_for(&error),
        ),
    }
}

/// Can an agent work here?
pub(super) fn place() -> Finding {
    const WHAT: &str = "place";
    let here = match working_directory() {
        Ok(here) => here,
        Err(error) => return not(WHAT, Grade::Bad, error.to_string(), advice_for(&error)),
    };
    match access(&here, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => good(WHAT, format!("{} can be read and written", here.display())),
        Err(error) => {
            let found = format!("{} cannot be read and written: {error}", here.display());
            let advice = "an agent cannot edit here; give yourself permission to read and write";
            not(WHAT, Grade::Lacking, found, advice)
        }
    }
}

/// Are the settings good that `posse -p` would take here? What it would warn of is said as well.
pub(super) fn settings() -> Vec<Finding> {
    const WHAT: &str = "settings";
    // Without a working directory the user's own settings are still worth checking.
    let here = working_directory().unwrap_or_else(|_| PathBuf::from("/"));
    match Settings::at(&here, FlagSettings::default()).map_err(anyhow::Error::from) {
        Err(error) => vec![not(
            WHAT,
            Grade::Bad,
            in_a_line(error.as_ref()),
            advice_for(&error),
        )],
        Ok(mut settings) => {
            let agents = AgentSources::at(&here, InlineAgents::default()).load();
            let skills = SkillSources::at(&here).load();
            let declared = hooks::declared(&settings.hooks, &agents, &skills);
            let search = ProgramSearch::new(&SearchPaths::at(&here));
            settings.unsupported.guards = hooks::missing_guards(&declared, &search);
            let missing = hooks::missing_programs(&declared, &search).into_iter();
            let advice = "install the program, or correct the hook; `posse help hooks`";
            let missing = missing.map(|one| not("hooks", Grade::Lacking, one, advice));
            let used = settings.files.iter().filter(|file| !file.used.is_empty());
            let used = used.map(|file| {
                let path = shown(&file.path, &here);
                good(WHAT, format!("{path}: {}", file.used.join(", ")))
            });
            let advice = "posse works without the ignored settings; `posse help permissions` says what \
                          is allowed where";
            let warnings = settings.warnings.iter();
            let ignored = warnings.map(|one| not(WHAT, Grade::Lacking, one.as_str(), advice));
            let mode = good(WHAT, format!("mode {}", settings.mode));
            let mut findings: Vec<Finding> = used.chain([mode]).chain(ignored).collect();
            findings.extend(missing);
            findings.extend(servers(&settings.servers, &here));
            findings.extend(unsupported(&settings.unsupported, &here));
            findings.extend(look());
            findings
        }
    }
}

/// Which MCP servers would be started here, and which would not?
fn servers(settings: &ServerSettings, here: &Path) -> Vec<Finding> {
    const WHAT: &str = "servers";
    let sources = ServerSources {
        places: &SearchPaths::at(here),
        settings,
        flags: &ServerFlags::default(),
        environment: environment::texts(),
    };
    let LoadedServers { set, remarks } = sources.load();
    let names: Vec<&str> = set.active().map(|server| server.name.as_str()).collect();
    let mut findings = Vec::new();
    if !names.is_empty() {
        let found = format!("{}; `posse mcp check` connects with them", names.join(", "));
        findings.push(good(WHAT, found));
    }
    for server in set.all() {
        let (why, advice) = match &server.admission {
            ServerAdmission::Admitted => continue,
            ServerAdmission::Waits { why } => (why, "`posse trust` shows what it runs, and asks"),
            ServerAdmission::Refused { why } => (why, "`posse help mcp` says who decides that"),
        };
        let found = format!("{} is not started: {why}", server.name);
        findings.push(not(WHAT, Grade::Lacking, found, advice));
    }
    let advice = "`posse help mcp` says what an entry can have";
    let remarks = remarks.iter().map(|remark| remark.in_a_line(here));
    findings.extend(remarks.map(|remark| not(WHAT, Grade::Lacking, remark, advice)));
    findings
}

/// Returns what is wrong with the person's theme and keys.
fn look() -> Vec<Finding> {
    let warnings = Look::load(None).map_or_else(|_| Vec::new(), |look| look.warnings);
    let advice = "the rest holds; `posse help terminal` has the names";
    let findings = warnings.into_iter();
    findings
        .map(|warning| not("settings", Grade::Lacking, warning, advice))
        .collect()
}

/// Returns what posse does not support of what is here.
fn unsupported(unsupported: &Unsupported, here: &Path) -> Vec<Finding> {
    let guards = unsupported.guards.iter().map(|guard| {
        let advice = "--require-hooks makes this an error; a deny rule in the settings holds in \
                      every run";
        not("hooks", Grade::Lacking, guard_missing(guard, here), advice)
    });
    let files = unsupported.files.iter().map(|file| {
        let advice = "`posse help coming-from` says what posse reads";
        not("files", Grade::Lacking, not_used(file, here), advice)
    });
    guards.chain(files).collect()
}

/// Returns the advice for an error.
fn advice_for(error: &anyhow::Error) -> String {
    error::hint(error).unwrap_or_else(|| "fix it".into())
}

/// Returns the file of a program of the system. One in the workspace is not meant, nor one in a
/// directory that depends on the current one.
fn program(name: &str, workspace: &Path) -> Option<PathBuf> {
    let path = environment::variable("PATH")?;
    let directories = std::env::split_paths(&path);
    let mut files = directories
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name));
    files.find(|file| {
        let real = file.canonicalize();
        real.is_ok_and(|real| !real.starts_with(workspace) && real.is_file())
            && access(file, Access::EXEC_OK).is_ok()
    })
}

/// Returns the first line that a program of the system prints, if it exists and succeeds. It is run
/// outside the workspace, whose files could change what it does.
#[expect(
    clippy::disallowed_methods,
    reason = "these commands only say what they are"
)]
fn version_of(name: &str, arguments: &[&str], trust: &Trust) -> Option<String> {
    let mut command = Command::new(program(name, trust.root())?);
    command.current_dir("/").env("PATH", "/usr/bin:/bin");
    let output = command.args(arguments).output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.lines().next()?.trim().to_owned();
    output.status.success().then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tmux_that_is_too_old_is_told_from_one_that_is_not() {
        for version in [
            "tmux 3.2",
            "tmux 3.3a",
            "tmux 3.10",
            "tmux 4.0",
            "tmux next-3.7",
            "tmux master",
        ] {
            assert!(has_panes(version), "{version}");
        }
        for version in ["tmux 1.8", "tmux 2.9a", "tmux 3.1c"] {
            assert!(!has_panes(version), "{version}");
        }
    }
}
