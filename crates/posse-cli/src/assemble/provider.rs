//! Which model to call, where, and with which key.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use posse_model::price::PriceList;
use posse_model::{
    AccountLimits, Anthropic, ApiVersion, Auth, Connection, Endpoint, Governor, OpenAi,
    RetryPolicy, SetupError,
};
use posse_port::clock::SystemClock;
use posse_port::model::Model;
use posse_protocol::PermissionMode;
use posse_tools::Variable;

use crate::config::environment::{posse_home, variable};
use crate::config::key_file;
use crate::config::settings::account::AccountSettings;
use crate::error::Advised;

pub(crate) use posse_model::http_client;

/// How a model is chosen, the same for every command that calls one.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ProviderArgs {
    /// API to use [env: POSSE_PROVIDER] [default: anthropic]
    #[arg(long, value_enum)]
    provider: Option<Provider>,
    /// Model to use [env: POSSE_MODEL] [default: claude-opus-5-5; none for openai]
    #[arg(long, value_parser = name)]
    model: Option<String>,
    /// Base URL of the API [env: ANTHROPIC_BASE_URL or OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Version of the Anthropic API; older gateways need 2023-06-01 [env: POSSE_ANTHROPIC_VERSION]
    #[arg(long, value_name = "DATE", value_parser = ["2023-06-01", "2026-10-21"])]
    anthropic_version: Option<String>,
}

/// A short name for `opus` in plan mode and `sonnet` otherwise.
const OPUS_PLAN: &str = "opusplan";

/// Returns the name of a new session's model, which depends on the mode it starts in for
/// `opusplan`: a session keeps its model.
pub(crate) fn starting_in(mode: PermissionMode, name: String) -> String {
    match (name.as_str(), mode) {
        (OPUS_PLAN, PermissionMode::Plan) => "opus".to_owned(),
        (OPUS_PLAN, _) => "sonnet".to_owned(),
        _ => name,
    }
}

/// Parses the name of a model.
fn name(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        Err("the model name is empty")
    } else {
        Ok(text.to_owned())
    }
}

/// Returns the retry policy for commands where a person waits for one answer.
pub(crate) fn impatient() -> RetryPolicy {
    RetryPolicy {
        // A quick failure is better than a minute of waiting.
        retries: 2,
        // No longer than three attempts take.
        longest_outage: Duration::from_secs(2),
        ..RetryPolicy::default()
    }
}

/// An API that posse speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Provider {
    /// The Anthropic Messages API.
    Anthropic,
    /// Chat Completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter.
    Openai,
}

/// A model that is ready to be called.
pub(crate) struct ChosenModel {
    pub(crate) model: Box<dyn Model>,
    pub(crate) name: String,
    /// The variable that the key comes from; `None` if there is no key.
    pub(crate) key_source: Option<&'static str>,
    /// Number of times a failed call is retried.
    pub(crate) retries: u32,
}

/// Where the model's name comes from if no flag names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelFallback {
    /// The settings, which already include flag and environment; else the default.
    Settings(Option<String>),
    /// A session, which keeps its model; a flag that names another one is an error.
    AgentRecord(String),
}

/// The resolved settings without a connection, which `doctor` checks.
pub(crate) struct ProviderSettings {
    pub(crate) provider: Provider,
    pub(crate) name: Option<String>,
    pub(crate) base_url: String,
    pub(crate) key: Option<ApiKey>,
    version: ApiVersion,
}

/// A key, and the variable it was found in.
pub(crate) struct ApiKey {
    pub(crate) source: &'static str,
    value: String,
    /// Sent as a bearer token instead of an `x-api-key` header.
    bearer: bool,
}

impl ProviderArgs {
    /// Returns the flags that say the same.
    pub(crate) fn flags(&self) -> Vec<String> {
        use clap::ValueEnum as _;
        let provider = self.provider.and_then(|provider| {
            let value = provider.to_possible_value()?;
            Some(value.get_name().to_owned())
        });
        let flags = [
            ("--provider", provider),
            ("--model", self.model.clone()),
            ("--base-url", self.base_url.clone()),
            ("--anthropic-version", self.anthropic_version.clone()),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    /// Calls another server from now on.
    pub(crate) fn call(&mut self, base_url: String) {
        self.base_url = Some(base_url);
    }

    /// Resolves flags, environment and defaults.
    pub(crate) fn settle(&self) -> anyhow::Result<ProviderSettings> {
        let provider = match (self.provider, variable("POSSE_PROVIDER").as_deref()) {
            (Some(provider), _) => provider,
            (None, None | Some("anthropic")) => Provider::Anthropic,
            (None, Some("openai")) => Provider::Openai,
            (None, Some(other)) => {
                anyhow::bail!(Advised {
                    what: format!("POSSE_PROVIDER is `{other}`, which is not a provider"),
                    advice: "set it to anthropic or openai".into(),
                })
            }
        };
        let (url_name, url_default, keys, model): (_, _, &[(&'static str, bool)], _) =
            match provider {
                Provider::Anthropic => (
                    "ANTHROPIC_BASE_URL",
                    "https://api.anthropic.com",
                    &[("ANTHROPIC_API_KEY", false), ("ANTHROPIC_AUTH_TOKEN", true)],
                    Some("claude-opus-5-5"),
                ),
                Provider::Openai => (
                    "OPENAI_BASE_URL",
                    "https://api.openai.com/v1",
                    &[("OPENAI_API_KEY", true)],
                    None,
                ),
            };
        let base_url = self.base_url.clone().or_else(|| variable(url_name));
        // A key that posse keeps was given for the provider itself and goes nowhere else.
        let is_provider = base_url.is_none();
        let kept = |source: &str| key_file::read(source).filter(|_| is_provider);
        let version = self
            .anthropic_version
            .clone()
            .or_else(|| variable("POSSE_ANTHROPIC_VERSION"));
        Ok(ProviderSettings {
            provider,
            name: self.named().or_else(|| model.map(str::to_owned)),
            base_url: base_url.unwrap_or_else(|| url_default.to_owned()),
            key: keys.iter().find_map(|&(source, bearer)| {
                variable(source)
                    .or_else(|| kept(source))
                    .map(|value| ApiKey {
                        source,
                        value,
                        bearer,
                    })
            }),
            version: match version.as_deref() {
                None | Some("2026-10-21") => ApiVersion::V2026,
                Some("2023-06-01") => ApiVersion::V2023,
                Some(other) => anyhow::bail!(Advised {
                    what: format!("POSSE_ANTHROPIC_VERSION is `{other}`, which is not a version"),
                    advice: "set it to 2026-10-21 or 2023-06-01".into(),
                }),
            },
        })
    }

    /// Returns the variables that make another posse process call the same API.
    pub(crate) fn environment(&self) -> anyhow::Result<Vec<Variable>> {
        let settings = self.settle()?;
        let (provider, url) = match settings.provider {
            Provider::Anthropic => ("anthropic", "ANTHROPIC_BASE_URL"),
            Provider::Openai => ("openai", "OPENAI_BASE_URL"),
        };
        let version = match settings.version {
            ApiVersion::V2026 => "2026-10-21",
            ApiVersion::V2023 => "2023-06-01",
        };
        let told = |name: &str, value: &str| Variable {
            name: name.into(),
            value: value.into(),
            secret: false,
        };
        let mut variables = vec![
            told("POSSE_PROVIDER", provider),
            told("POSSE_ANTHROPIC_VERSION", version),
        ];
        // A URL with a user name and a password is a secret.
        variables.push(Variable {
            secret: settings.base_url.contains('@'),
            ..told(url, &settings.base_url)
        });
        variables.extend(settings.key.map(|key| Variable {
            secret: true,
            ..told(key.source, &key.value)
        }));
        Ok(variables)
    }

    /// Returns the models of the provider that have a price.
    pub(crate) fn known_models(&self) -> anyhow::Result<Vec<String>> {
        Ok(models_of(self.settle()?.provider, &prices()?))
    }

    /// Returns the model that the flag names.
    pub(crate) fn flagged(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the model that flag or environment name.
    pub(crate) fn named(&self) -> Option<String> {
        self.model.clone().or_else(|| variable("POSSE_MODEL"))
    }

    /// Returns the chosen model, ready to be called.
    pub(crate) fn choose(&self, policy: RetryPolicy) -> anyhow::Result<ChosenModel> {
        let usual = AccountSettings::default();
        self.choose_or(policy, &usual, ModelFallback::Settings(None))
    }

    /// Returns the chosen model, or the one that `fallback` names. Its account is used within
    /// `limits`.
    pub(crate) fn choose_or(
        &self,
        policy: RetryPolicy,
        limits: &AccountSettings,
        fallback: ModelFallback,
    ) -> anyhow::Result<ChosenModel> {
        let settings = self.settle()?;
        let endpoint = settings.endpoint()?;
        let clock = Arc::new(SystemClock::default());
        let retries = policy.retries;
        // A process chooses its model once, so this is its only governor.
        let governor = Governor::with_limits(clock, policy, account_limits(limits));
        let connection = Connection::new(&endpoint, governor)?;
        let model: Box<dyn Model> = match settings.provider {
            Provider::Anthropic => Box::new(Anthropic::new(connection, settings.version)),
            Provider::Openai => Box::new(OpenAi::new(connection)),
        };
        // `opus`, `sonnet` and the like stand for the provider's newest model of that family.
        let full = |name: String| model.model_of(&name.to_lowercase()).unwrap_or(name);
        let is_meant = |asked: &str, name: &str| {
            let meant = match asked == OPUS_PLAN {
                true => vec!["opus", "sonnet"],
                false => vec![asked],
            };
            meant.into_iter().any(|it| full(it.to_owned()) == name)
        };
        let name = match (&self.model, fallback) {
            (None, ModelFallback::AgentRecord(name)) => Some(name),
            (Some(asked), ModelFallback::AgentRecord(name)) if !is_meant(asked, &name) => {
                anyhow::bail!(Advised {
                    what: format!("the session uses {name}, not {asked}"),
                    advice: "a session keeps its model: omit --model, or start a new session"
                        .into(),
                })
            }
            (_, ModelFallback::Settings(Some(name))) => Some(name),
            _ => settings.name.clone(),
        };
        let name = name.ok_or_else(|| Advised {
            what: "no model is chosen".into(),
            advice: "name one with --model or POSSE_MODEL".into(),
        })?;
        let name = full(name);
        Ok(ChosenModel {
            model,
            name,
            key_source: settings.key.map(|key| key.source),
            retries,
        })
    }
}

fn account_limits(settings: &AccountSettings) -> AccountLimits {
    AccountLimits {
        requests: settings.requests_per_minute,
        input_tokens: settings.input_tokens_per_minute,
        output_tokens: settings.output_tokens_per_minute,
        tokens: settings.tokens_per_minute,
        concurrent: settings.concurrent_requests,
    }
}

/// Returns the retry policy for runs, which may wait for a long time.
pub(crate) fn patient(settings: &AccountSettings) -> RetryPolicy {
    let usual = RetryPolicy::default();
    RetryPolicy {
        longest_outage: settings.longest_outage.unwrap_or(usual.longest_outage),
        ..usual
    }
}

impl ProviderSettings {
    /// Returns true if the server is on this machine, which needs no real key.
    pub(crate) fn is_local(&self) -> bool {
        posse_model::is_local(&self.base_url)
    }

    /// Returns the endpoint. Fails if a key is needed and missing.
    pub(crate) fn endpoint(&self) -> anyhow::Result<Endpoint> {
        // Before the key: for an invalid URL a missing key would be the wrong complaint.
        if !self.base_url.starts_with("http") {
            return Err(SetupError::BadUrl {
                url: self.base_url.clone(),
            }
            .into());
        }
        let auth = match &self.key {
            Some(ApiKey {
                value,
                bearer: true,
                ..
            }) => Auth::Bearer(value.clone().into()),
            Some(ApiKey {
                value,
                bearer: false,
                ..
            }) => Auth::ApiKey(value.clone().into()),
            // Local servers need no real key, but the scripted model wants one, and any will do.
            None if self.is_local() => Auth::Bearer("local".to_owned().into()),
            None => {
                let name = self.key_name();
                anyhow::bail!(Advised {
                    what: format!("no API key: {name} is not set"),
                    advice: format!(
                        "export {name}=…, or try posse without a key: run `posse scripted-model` in another \
                         terminal and add --base-url http://127.0.0.1:4141"
                    ),
                })
            }
        };
        Ok(Endpoint {
            base_url: self.base_url.clone(),
            auth,
        })
    }

    /// Returns the variable that usually holds the key.
    pub(crate) fn key_name(&self) -> &'static str {
        match self.provider {
            Provider::Anthropic => "ANTHROPIC_API_KEY",
            Provider::Openai => "OPENAI_API_KEY",
        }
    }
}

/// Returns the models of a provider in a price list, each once.
fn models_of(provider: Provider, prices: &PriceList) -> Vec<String> {
    let mut models: Vec<String> = Vec::new();
    for id in prices.ids() {
        let is_anthropic = id.starts_with("claude-");
        if is_anthropic == (provider == Provider::Anthropic) && !models.iter().any(|it| it == id) {
            models.push(id.to_owned());
        }
    }
    models
}

/// Returns the built-in prices, overridden by `prices.toml` in posse's home.
pub(crate) fn prices() -> anyhow::Result<PriceList> {
    let built_in = PriceList::built_in()?;
    let Some(path) = posse_home().map(|home| home.join("prices.toml")) else {
        return Ok(built_in);
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => built_in
            .overridden_by(&text)
            .with_context(|| format!("cannot use {}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(built_in),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_of_a_provider_are_those_with_a_price() {
        let own = "[[model]]\nid = \"gpt-6\"\ninput = 1.0\noutput = 2.0\ncache_read = 0.1\n";
        let again = own.replace("gpt-6", "claude-opus-5-5");
        let prices = PriceList::built_in().unwrap();
        let prices = prices.overridden_by(&format!("{own}{again}")).unwrap();
        assert_eq!(models_of(Provider::Openai, &prices), ["gpt-6"]);
        let models = models_of(Provider::Anthropic, &prices);
        assert_eq!(models.first().map(String::as_str), Some("claude-opus-5-5"));
        assert_eq!(
            models.iter().filter(|id| *id == "claude-opus-5-5").count(),
            1
        );
        assert!(models.contains(&"claude-sonnet-5".to_owned()), "{models:?}");
    }
}
