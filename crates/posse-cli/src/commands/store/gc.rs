//! `posse store gc`.

use std::path::Path;
use std::process::ExitCode;

use posse_store::maintain;
use serde_json::json;

use super::size;
use crate::commands::team::count;
use crate::moment::now_ms;
use crate::output::{json_line, print, say_to_person};

/// Remove sessions and teams that nobody has used for long.
///
/// A session goes with all of its agents, forks and teams, and only if none of them was used since and no
/// live process holds one. Others can work meanwhile. The file does not shrink; what is free is used again.
#[derive(clap::Args)]
pub(super) struct Gc {
    /// Not used for so long: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", default_value = "30d", value_parser = milliseconds)]
    older_than: i64,
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Gc {
    pub(super) fn run(self, path: &Path) -> anyhow::Result<ExitCode> {
        let before = now_ms().saturating_sub(self.older_than);
        let gone = match self.dry_run {
            true => maintain::unused(path, before)?,
            false => maintain::collect(path, before, &mut |so_far| {
                if so_far.sessions.is_multiple_of(100) {
                    say_to_person(&format!("{} sessions removed", so_far.sessions));
                }
            })?,
        };
        let line = if self.json {
            json_line(&json!({
                "sessions": gone.sessions, "agents": gone.agents, "teams": gone.teams, "bytes": gone.bytes,
                "dry_run": self.dry_run,
            }))
        } else if gone == maintain::Collected::default() {
            "nothing to remove\n".to_owned()
        } else {
            let what = if self.dry_run { "would remove" } else { "removed" };
            format!(
                "{what} {} ({}), {}: {}\n",
                count(gone.sessions as usize, "session"),
                count(gone.agents as usize, "agent"),
                count(gone.teams as usize, "team"),
                size(gone.bytes),
            )
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An age: a number and its unit.
fn milliseconds(text: &str) -> Result<i64, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        i64::from(number).checked_mul(seconds * 1000)
    });
    parsed.ok_or_else(|| "an age is a number and a unit: 90m, 12h, 30d, 8w".into())
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn an_age_has_a_unit() {
        assert_eq!(milliseconds("30d"), Ok(2_592_000_000));
        assert_eq!(milliseconds("0s"), Ok(0));
        for wrong in ["30", "d", "-1d", "1.5h", "30 d", ""] {
            assert!(milliseconds(wrong).unwrap_err().contains("30d"), "{wrong}");
        }
    }
}
