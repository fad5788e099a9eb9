//! What the account of a provider may be used for: the key `account`. It is read only from posse's
//! own files, and only from the user's and the administrator's, whose account it is.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use serde::Deserialize;

use super::{FlagSettings, Layer, Settings};
use crate::config::search_paths::{SearchPaths, SettingSources};
use crate::error::SettingsError;

/// The effective settings. What is not set is as the provider tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountSettings {
    /// Limits of each of its models.
    pub(crate) requests_per_minute: Option<u64>,
    pub(crate) input_tokens_per_minute: Option<u64>,
    pub(crate) output_tokens_per_minute: Option<u64>,
    pub(crate) tokens_per_minute: Option<u64>,
    pub(crate) concurrent_requests: Option<usize>,
    /// How long calls wait for a provider that fails.
    pub(crate) longest_outage: Option<Duration>,
}

impl AccountSettings {
    /// Returns what the administrator, the user and `--settings` set. No file of a repository is
    /// read.
    pub(crate) fn of_owner(
        places: SearchPaths,
        sources: SettingSources,
        settings: Option<String>,
    ) -> Result<Self, SettingsError> {
        let sources = SettingSources {
            project: false,
            local: false,
            ..sources
        };
        let flags = FlagSettings {
            settings,
            ..FlagSettings::default()
        };
        let settings = Settings::load(&places.limited_to(sources), flags)?;
        Ok(settings.account)
    }
}

/// The keys of `account`.
pub(super) const KEYS: [&str; 6] = [
    "requestsPerMinute",
    "inputTokensPerMinute",
    "outputTokensPerMinute",
    "tokensPerMinute",
    "concurrentRequests",
    "outageMinutes",
];

/// The content of the key `account` in a file.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AccountFile {
    requests_per_minute: Option<NonZeroU64>,
    input_tokens_per_minute: Option<NonZeroU64>,
    output_tokens_per_minute: Option<NonZeroU64>,
    tokens_per_minute: Option<NonZeroU64>,
    concurrent_requests: Option<NonZeroU32>,
    outage_minutes: Option<NonZeroU32>,
}

impl AccountFile {
    /// Returns the keys that a repository's file sets: all of them are for the user to decide.
    pub(super) fn beyond(&self) -> Vec<String> {
        let asked = [
            self.requests_per_minute.is_some(),
            self.input_tokens_per_minute.is_some(),
            self.output_tokens_per_minute.is_some(),
            self.tokens_per_minute.is_some(),
            self.concurrent_requests.is_some(),
            self.outage_minutes.is_some(),
        ];
        KEYS.iter()
            .zip(asked)
            .filter(|(_, asked)| *asked)
            .map(|(key, _)| (*key).to_owned())
            .collect()
    }
}

/// Merges the layers: the administrator, then the user.
pub(super) fn settle(layers: &[Layer]) -> AccountSettings {
    let number = |key: fn(&AccountFile) -> Option<NonZeroU64>| {
        super::own(layers, |file| key(&file.account)).map(NonZeroU64::get)
    };
    let small = |key: fn(&AccountFile) -> Option<NonZeroU32>| {
        super::own(layers, |file| key(&file.account)).map(NonZeroU32::get)
    };
    AccountSettings {
        requests_per_minute: number(|file| file.requests_per_minute),
        input_tokens_per_minute: number(|file| file.input_tokens_per_minute),
        output_tokens_per_minute: number(|file| file.output_tokens_per_minute),
        tokens_per_minute: number(|file| file.tokens_per_minute),
        concurrent_requests: small(|file| file.concurrent_requests).map(|most| most as usize),
        longest_outage: small(|file| file.outage_minutes)
            .map(|minutes| Duration::from_secs(u64::from(minutes) * 60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::FlagSettings;
    use crate::config::settings::tests::Disk;

    // proves GV-01 (part: configured)
    #[test]
    fn the_account_is_limited_by_its_owner() {
        let disk = Disk::new();
        disk.write(
            "posse/settings.json",
            r#"{"account": {"requestsPerMinute": 50, "concurrentRequests": 4, "outageMinutes": 60, "requestPerMinute": 2}}"#,
        );
        disk.write(
            "repo/.posse/settings.json",
            r#"{"account": {"requestsPerMinute": 1000, "tokensPerMinute": 10}}"#,
        );
        let settings = disk.load(FlagSettings::default()).unwrap();
        let expected = AccountSettings {
            requests_per_minute: Some(50),
            concurrent_requests: Some(4),
            longest_outage: Some(Duration::from_secs(3600)),
            ..AccountSettings::default()
        };
        assert_eq!(settings.account, expected);
        let told = settings.details.concat() + &settings.warnings.concat();
        for words in [
            "`requestPerMinute` (did you mean `requestsPerMinute`?)",
            "requestsPerMinute",
            "tokensPerMinute",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        disk.write(
            "posse/settings.json",
            r#"{"account": {"tokensPerMinute": 0}}"#,
        );
        assert!(disk.load(FlagSettings::default()).is_err());
    }
}
