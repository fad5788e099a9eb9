//! The sandbox of this process's commands, from settings and what is on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_permission::Rights;
use posse_port::process::ProcessBoundary;
use posse_port::tool::Workspace;
use posse_runtime::live::boundary;
use posse_sandbox::{Backend as _, KernelSupport, Launcher, Linux, Probe};
use posse_tools::{Sandbox, SandboxConfig, Upstream};

use crate::config::environment;
use crate::config::settings::Settings;
use crate::config::settings::sandbox::{SandboxSettings, SandboxUse, of_environment};

/// Returns what holds a program that the repository declares, where no agent starts it.
pub(crate) fn of_repository(
    settings: &Settings,
    workspace: &Arc<Workspace>,
    what: &'static str,
) -> ProcessBoundary {
    let policy = Arc::new(settings.policy.clone());
    let rights = Rights::root(settings.mode, policy, Arc::clone(workspace));
    boundary::of_repository(&rights, what)
}

/// Files in a home that hold secrets.
const SECRETS: [&str; 48] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".config/hub",
    ".config/git/credentials",
    ".config/anthropic",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/github-copilot",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".pgpass",
    ".my.cnf",
];
/// Files of the system that hold secrets.
const OF_SYSTEM: [&str; 4] = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh"];
/// Where homes of people are.
const HOMES: &str = "/home";
/// The home of the administrator.
const ROOT: &str = "/root";

/// Returns the sandbox that settings ask for; none if commands are not to be confined. `store` is
/// the file that conversations are kept in.
pub(crate) fn sandbox(
    settings: &SandboxSettings,
    variables: &[(OsString, OsString)],
    store: Option<&Path>,
) -> Option<Sandbox> {
    if settings.enabled == SandboxUse::Off {
        return None;
    }
    let home = environment::home().map(resolved);
    let posse_home = environment::posse_home().map(resolved);
    let store = store.into_iter().flat_map(files_of_store);
    let hide = posse_home.into_iter().chain(store);
    let hide = hide.chain(settings.hide.iter().cloned()).collect();
    Some(Sandbox::new(SandboxConfig {
        launcher: program(),
        environment: environment_of(home.as_deref(), variables),
        hide,
        secrets: secrets(home.as_deref()),
        show: certificates(),
        caches: home.as_deref().map(caches).unwrap_or_default(),
        upstream: upstream().map(Arc::new),
        write: settings.write.clone(),
        limits: settings.limits,
        required: settings.enabled == SandboxUse::Required,
        asks: settings.asks,
        never_outside: settings.never_outside,
    }))
}

/// Returns the sandbox of what posse's own git runs; none if the environment says that nothing is
/// confined.
pub(crate) fn of_git() -> anyhow::Result<Option<Sandbox>> {
    let settings = SandboxSettings {
        enabled: of_environment()?.unwrap_or_default(),
        ..SandboxSettings::default()
    };
    Ok(sandbox(&settings, &[], None))
}

/// Directories in a home that package managers keep what they have downloaded in. Each begins with
/// the directory that shows whether it is used.
const CACHES: [(&str, &str); 6] = [
    ("", ".cache"),
    (".npm", ""),
    (".cargo", "registry"),
    (".cargo", "git"),
    ("go", "pkg"),
    (".local/share/pnpm", ""),
];

/// Where npm keeps its cache, if not in its own directory of the home.
const NPM_CACHE: &str = "npm_config_cache";

/// Returns the environment of commands.
fn environment_of(
    home: Option<&Path>,
    variables: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let mut all = environment::all();
    all.retain(|(known, _)| !variables.iter().any(|(name, _)| name == known));
    all.extend(variables.iter().cloned());
    let is_named = all.iter().any(|(name, _)| name == NPM_CACHE);
    if let Some(home) = home.filter(|home| !is_named && !home.join(".npm").exists()) {
        // It could not make one in the home.
        all.push((NPM_CACHE.into(), home.join(".cache/npm").into()));
    }
    all
}

/// Returns the caches of a home that are in use.
fn caches(home: &Path) -> Vec<PathBuf> {
    let caches = CACHES.iter().filter(|(used, _)| home.join(used).is_dir());
    let caches = caches.map(|(used, cache)| home.join(used).join(cache));
    caches.collect()
}

/// Variables that name files with certificates.
const CERTIFICATES: [&str; 8] = [
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// Returns the files of certificates that the environment names: commands need them to trust a
/// proxy or a registry of the user's.
fn certificates() -> Vec<PathBuf> {
    let named = CERTIFICATES
        .iter()
        .filter_map(|it| environment::variable(it));
    let found = named.map(PathBuf::from).filter(|path| path.is_absolute());
    found.map(resolved).collect()
}

/// Returns the proxy of the user's through which hosts are reached; none if there is none that
/// speaks plain HTTP.
fn upstream() -> Option<Upstream> {
    let either = |name: &str| {
        environment::variable(name).or_else(|| environment::variable(&name.to_uppercase()))
    };
    let except = either("no_proxy").unwrap_or_default();
    let named = ["https_proxy", "all_proxy", "http_proxy"];
    let mut named = named.into_iter().filter_map(either);
    named.find_map(|url| Upstream::new(&url, &except))
}

/// Returns what the kernel gives for a sandbox: a launcher tries it.
pub(crate) fn probe() -> Probe {
    Linux::new(launcher()).probe()
}

/// Returns the launcher that this program is.
pub(crate) fn launcher() -> Launcher {
    Launcher::at(program())
}

/// Returns what a sandbox is made of, and what is missing.
pub(crate) fn in_words(probe: &Probe) -> String {
    let KernelSupport {
        namespaces,
        landlock,
        seccomp,
    } = probe.support;
    let parts = [
        namespaces.then(|| "namespaces".to_owned()),
        (landlock > 0).then(|| format!("Landlock {landlock}")),
        seccomp.then(|| "seccomp".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let has = match parts.is_empty() {
        true => "nothing confines commands, and every one is asked about".to_owned(),
        false => parts.join(", "),
    };
    match probe.missing.is_empty() {
        true => has,
        false => format!("{has}; missing: {}", probe.missing.join("; ")),
    }
}

/// Returns what to do for a better sandbox.
pub(crate) fn advice() -> &'static str {
    let restricted = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
    let is_restricted = std::fs::read_to_string(restricted).is_ok_and(|it| it.trim() == "1");
    match is_restricted {
        true => {
            "AppArmor keeps user namespaces from programs without a profile: give posse one with \
             `userns,` in /etc/apparmor.d, or set kernel.apparmor_restrict_unprivileged_userns=0"
        }
        false => {
            "allow user namespaces (user.max_user_namespaces, and in a container its seccomp \
             profile); until then commands that may write are asked about"
        }
    }
}

/// Returns the program that is running. If it cannot be found, the probe says so.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "posse".into())
}

/// Returns the secrets of this machine.
pub(crate) fn secrets(home: Option<&Path>) -> Vec<PathBuf> {
    let secrets = home
        .into_iter()
        .flat_map(|home| SECRETS.map(|it| home.join(it)));
    let people = std::fs::read_dir(HOMES).into_iter().flatten().flatten();
    let others = people
        .map(|person| person.path())
        .chain([PathBuf::from(ROOT)])
        .filter(|other| !home.is_some_and(|home| home.starts_with(other)));
    secrets
        .chain(others)
        .chain(OF_SYSTEM.map(PathBuf::from))
        .collect()
}

/// Returns the files that a store has beside its own.
fn files_of_store(store: &Path) -> Vec<PathBuf> {
    let store = resolved(store.to_owned());
    let beside = |ending: &str| {
        let mut name = store.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    vec![store.clone(), beside("-wal"), beside("-shm")]
}

fn resolved(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
