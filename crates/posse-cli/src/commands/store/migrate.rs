//! `posse store migrate`.

use std::process::ExitCode;

use serde_json::json;

use super::shown;
use crate::assemble::maintenance;
use crate::config::store::StoreLocation;
use crate::error::Advised;
use crate::output::{json_line, print};

/// Bring an older store up to date.
///
/// Every command that opens a file updates it; this one reports the versions. On a server only this
/// command updates the store, because others may use it with an older posse, which continues to
/// work. `--contract` ends that. A newer store is never changed.
#[derive(clap::Args)]
pub(super) struct MigrateStore {
    /// On a server: also remove what only older versions of posse need. They cannot use it after that
    #[arg(long)]
    contract: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl MigrateStore {
    pub(super) fn run(self, place: &StoreLocation) -> anyhow::Result<ExitCode> {
        let done = match place {
            StoreLocation::File(_) if self.contract => anyhow::bail!(Advised {
                what: "a file has nothing to contract".into(),
                advice: "omit --contract: a file always belongs to the newest posse that has \
                         opened it"
                    .into(),
            }),
            StoreLocation::File(path) => maintenance::migrate_file(path)?,
            StoreLocation::Server(server) => {
                maintenance::migrate_server(&server.whole(), self.contract)?
            }
        };
        let (from, to, oldest) = (done.from, done.to, done.oldest);
        let line = match (self.json, from) {
            (true, _) => json_line(
                &json!({"store": place.shown(), "from": from, "to": to, "oldest": oldest}),
            ),
            (false, None) => format!("{} was set up: version {to}\n", shown(place)),
            (false, Some(from)) if from == to => {
                format!("{} is up to date: version {to}\n", shown(place))
            }
            (false, Some(from)) => format!(
                "{} was migrated from version {from} to {to}\n",
                shown(place)
            ),
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}
