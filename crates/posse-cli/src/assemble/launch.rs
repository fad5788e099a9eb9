//! How another process is started for a member of the team: with the rules and the key of this
//! one.

use std::ffi::{OsStr, OsString};

use anyhow::Context as _;
use posse_tools::{Launch, Variable};

use super::run_config::RunConfig;
use crate::config::environment::variable;
use crate::config::search_paths::SettingSources;
use crate::config::store::StoreLocation;
use crate::config::store_choice;
use crate::error::Advised;

/// Variables that the other process needs: where files are, and which models sub-agents use.
const TOLD: [&str; 7] = [
    "HOME",
    "PATH",
    "POSSE_HOME",
    "POSSE_SUBAGENT_MODEL",
    "POSSE_SUBAGENT_MODEL_FORCE",
    "POSSE_SANDBOX",
    "POSSE_TRUST",
];
/// Variables that it needs, too, and that may contain passwords.
const HUSHED: [&str; 8] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "no_proxy",
];

/// Returns the command and the environment for a member's pane.
pub(crate) fn launch(config: &RunConfig) -> anyhow::Result<Launch> {
    if config.limits.budget.tokens.is_some() {
        anyhow::bail!(Advised {
            what: "a budget in tokens works only in one process, and teammates run in their own"
                .into(),
            advice: "use --max-budget-usd and give roles budgets; or use --team-backend in-process"
                .into(),
        });
    }
    // Not by name: the pane's PATH may find another version first.
    let posse = std::env::current_exe().context("cannot find the running program")?;
    let mut command = vec![posse.into_os_string(), "team".into(), "join".into()];
    command.extend(flags(config)?);
    let found = |name: &&str, secret| {
        let value = variable(name)?.into();
        Some(Variable {
            name: (*name).to_owned(),
            value,
            secret,
        })
    };
    let mut environment = config.provider.environment()?;
    environment.extend(TOLD.iter().filter_map(|name| found(name, false)));
    if let StoreLocation::Server(server) = store_choice::meant_store(&config.store)?.place {
        let value = server.whole().into();
        environment.push(Variable {
            name: "POSSE_STORE".into(),
            value,
            secret: true,
        });
    }
    environment.extend(HUSHED.iter().filter_map(|name| found(name, true)));
    Ok(Launch {
        command,
        environment,
        budgeted: config.limits.budget.cost.is_some(),
    })
}

/// Returns the flags that give a member the same configuration there as here.
fn flags(config: &RunConfig) -> anyhow::Result<Vec<OsString>> {
    let mut flags = FlagList::default();
    // A server's URL may contain a password, and other users can read command lines: it is passed
    // in the environment.
    if let StoreLocation::File(path) = store_choice::meant_store(&config.store)?.place {
        let mut url = OsString::from("sqlite:");
        // Absolute, because a pane may start in another directory.
        url.push(std::path::absolute(path)?);
        flags.add("--store", url);
    }
    flags.number("--max-tokens", Some(config.limits.max_tokens));
    config
        .mode
        .iter()
        .for_each(|mode| flags.add("--permission-mode", mode.as_str()));
    config
        .flags
        .foreign_mode
        .iter()
        .for_each(|word| flags.add("--permission-mode", word));
    config
        .allow
        .iter()
        .for_each(|rule| flags.add("--allowed-tools", rule));
    config
        .deny
        .iter()
        .for_each(|rule| flags.add("--disallowed-tools", rule));
    config
        .flags
        .tools
        .iter()
        .for_each(|names| flags.add("--tools", names.join(",")));
    config
        .flags
        .settings
        .iter()
        .for_each(|value| flags.add("--settings", value));
    let servers = &config.flags.servers;
    servers
        .configs
        .iter()
        .for_each(|value| flags.add("--mcp-config", value));
    if servers.is_strict {
        flags.0.push("--strict-mcp-config".into());
    }
    if config.flags.sources != SettingSources::default() {
        flags.add("--setting-sources", config.flags.sources.words().join(","));
    }
    config
        .add_dir
        .iter()
        .for_each(|directory| flags.add("--add-dir", directory));
    config
        .given
        .text()
        .iter()
        .for_each(|text| flags.add("--agents", text));
    flags.number(
        "--max-time",
        config.limits.budget.time.map(|time| time.as_secs()),
    );
    flags.number("--max-agents", config.agents.running);
    flags.number("--max-depth", config.agents.depth);
    flags.number(
        "--auto-background",
        config.agents.auto_background.map(|time| time.as_secs()),
    );
    if config.flags.trusts {
        flags.0.push("--trust".into());
    }
    if config.agents.no_background {
        flags.0.push("--no-background".into());
    }
    Ok(flags.0)
}

/// Flags of a command line.
#[derive(Default)]
struct FlagList(Vec<OsString>);

impl FlagList {
    /// Adds a flag as one word, `--name=value`: a value may begin with a dash.
    fn add(&mut self, name: &str, value: impl AsRef<OsStr>) {
        let mut flag = OsString::from(name);
        flag.push("=");
        flag.push(value);
        self.0.push(flag);
    }

    /// Adds a flag if it has a value.
    fn number(&mut self, name: &str, value: Option<impl ToString>) {
        value
            .iter()
            .for_each(|value| self.add(name, value.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::assemble::run_config::SessionChoice;
    use crate::config::store::StoreArgs;
    use crate::definitions::InlineAgents;

    /// Returns what the flags of a wish ask for in the other process.
    fn carried(arguments: &[&str]) -> (RunConfig, RunConfig) {
        let args =
            crate::Args::try_parse_from([&["posse", "-p", "x"], arguments].concat()).unwrap();
        let given = args.run.options.given(&[]).unwrap();
        let store = StoreArgs {
            store: Some(StoreLocation::File("/tmp/x.db".into())),
        };
        let config = args.run.options.run_config(None, store.clone(), given);
        let line = flags(&config).unwrap();
        let words = [
            "posse",
            "team",
            "join",
            "--session=1",
            "--member=01978000-0000-7000-8000-000000000002",
        ]
        .map(OsString::from);
        let joining = crate::Args::try_parse_from(words.into_iter().chain(line)).unwrap();
        let Some(crate::PosseCommand::Team(team)) = joining.command else {
            panic!()
        };
        let terms = team.joins().unwrap();
        let given = terms.given(&[]).unwrap();
        (
            config,
            terms.run_config(Some(SessionChoice::Id("1".into())), store, given),
        )
    }

    #[test]
    fn the_rules_of_the_lead_hold_in_the_pane() {
        let given = r#"{"scout": {"description": "d", "prompt": "p"}}"#;
        let (here, there) = carried(&[
            "--permission-mode",
            "acceptEdits",
            "--allowed-tools",
            "Bash(a, b),Edit",
            "--allowed-tools",
            "Read(-x)",
            "--disallowed-tools",
            "WebFetch",
            "--tools",
            "Read,Task",
            "--settings",
            r#"{"model": "x"}"#,
            "--setting-sources",
            "user",
            "--mcp-config",
            r#"{"mcpServers": {}}"#,
            "--strict-mcp-config",
            "--add-dir",
            "/etc",
            "--max-tokens",
            "77",
            "--max-time",
            "9",
            "--max-agents",
            "3",
            "--max-depth",
            "0",
            "--auto-background",
            "5",
            "--agents",
            given,
        ]);
        assert_eq!(
            (there.mode, &there.allow, &there.deny),
            (here.mode, &here.allow, &here.deny)
        );
        assert_eq!(
            (
                &there.flags.tools,
                &there.flags.settings,
                there.flags.sources
            ),
            (&here.flags.tools, &here.flags.settings, here.flags.sources)
        );
        assert_eq!(there.flags.servers, here.flags.servers);
        assert!(there.flags.servers.is_strict && there.flags.servers.configs.len() == 1);
        assert_eq!(there.add_dir, here.add_dir);
        assert_eq!(
            (there.limits.max_tokens, there.limits.budget.time),
            (77, here.limits.budget.time)
        );
        assert_eq!(format!("{:?}", there.agents), format!("{:?}", here.agents));
        assert_eq!(there.given.text(), Some(given));
        assert!(carried(&["--no-background"]).1.agents.no_background);
        assert!(!there.flags.trusts && carried(&["--trust"]).1.flags.trusts);
        let foreign = carried(&["--permission-mode", "auto"]).1;
        assert_eq!(
            (foreign.mode, foreign.flags.foreign_mode),
            (None, Some("auto"))
        );
    }

    // proves FC-10 (part: settings)
    #[test]
    fn a_settings_file_is_the_same_in_every_directory() {
        let (here, there) = carried(&["--settings", "x.json"]);
        let path = std::env::current_dir().unwrap().join("x.json");
        for config in [here, there] {
            assert_eq!(config.flags.settings.as_deref(), path.to_str());
        }
    }

    #[test]
    fn a_password_of_a_server_is_on_no_command_line() {
        let args = crate::Args::try_parse_from([
            "posse",
            "-p",
            "x",
            "--store",
            "postgres://me:s3cret@h/db",
        ]);
        let args = args.unwrap();
        let store = StoreArgs {
            store: args.run.store.clone(),
        };
        let config = args
            .run
            .options
            .run_config(None, store, InlineAgents::default());
        let launch = launch(&config).unwrap();
        assert!(
            !format!("{:?}", launch.command).contains("s3cret"),
            "{:?}",
            launch.command
        );
        let told = launch
            .environment
            .iter()
            .find(|told| told.name == "POSSE_STORE")
            .unwrap();
        assert!(
            told.secret && told.value == "postgres://me:s3cret@h/db",
            "{told:?}"
        );
    }

    #[test]
    fn a_budget_in_tokens_is_for_one_process() {
        let args =
            crate::Args::try_parse_from(["posse", "-p", "x", "--max-budget-tokens", "5"]).unwrap();
        let config =
            args.run
                .options
                .run_config(None, StoreArgs::default(), InlineAgents::default());
        assert!(launch(&config).unwrap_err().to_string().contains("tokens"));
    }
}
