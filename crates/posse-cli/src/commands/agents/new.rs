//! `posse agents new`.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use posse_runtime::definition::agent_type::file;
use serde_json::json;

use crate::definitions::{AgentSources, shown};
use crate::error::Advised;
use crate::output::{json_line, print};

/// The initial definition, with placeholders.
const TEMPLATE: &str = include_str!("new.md");
/// Description if none is given.
const DESCRIPTION: &str = "Say here when to use it, and what to tell it.";

/// Write an initial agent definition.
#[derive(clap::Args)]
pub(super) struct NewAgent {
    /// Name of the type
    #[arg(value_parser = name)]
    name: String,
    /// When to use it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Write it for all your projects, not only this one
    #[arg(long)]
    user: bool,
    /// Tools it may use, such as `Read,Grep` [default: all]
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl NewAgent {
    pub(super) fn run(self, sources: &AgentSources) -> anyhow::Result<ExitCode> {
        let text = text(
            &self.name,
            self.description.as_deref().unwrap_or(DESCRIPTION),
            &self.tools,
        );
        // Checked before it is written: an invalid file would be in the way of the next try.
        if let Err(problem) = file::read(&text) {
            anyhow::bail!(Advised {
                what: format!("this definition would not load: {}", problem.reason),
                advice: "omit --description and --tools, and write them into the file".into(),
            });
        }
        let path = sources
            .place_for(&self.name, self.user)
            .ok_or_else(|| Advised {
                what: "there is no home directory".into(),
                advice: "set POSSE_HOME to a directory you own".into(),
            })?;
        let before = sources
            .load()
            .find(&self.name)
            .map(|known| known.origin(sources.cwd()));
        write(&path, &text, sources.cwd())?;
        sources.accept(&path, &text)?;
        let after = sources.load();
        let counts = after
            .find(&self.name)
            .is_some_and(|known| known.path.as_deref() == Some(&path));
        if self.json {
            let told = json!({"name": self.name, "path": path.to_string_lossy(), "counts": counts});
            print(json_line(&told).as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut out = format!("{}\n", shown(&path, sources.cwd()));
        match before {
            Some(before) if counts => {
                out.push_str(&format!("\nIt now takes precedence over {before}.\n"))
            }
            Some(before) => {
                out.push_str(&format!("\nIt is not used: {before} takes precedence.\n"))
            }
            None => {}
        }
        if !counts && !sources.is_trusted() {
            out.push_str("\nIt is not used until you trust this workspace: posse trust\n");
        }
        out.push_str(&next(&self.name));
        print(out.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Parses the name of a type.
fn name(name: &str) -> anyhow::Result<String> {
    file::check_name(name).map_err(anyhow::Error::msg)?;
    Ok(name.to_owned())
}

/// Returns the file's text. Values from people are quoted as JSON, which is valid YAML.
fn text(name: &str, description: &str, tools: &[String]) -> String {
    let tools = match tools {
        [] => "# tools: Read, Grep, Glob\n".to_owned(),
        tools => format!(
            "tools: {}\n",
            json!(tools.iter().map(|tool| tool.trim()).collect::<Vec<_>>())
        ),
    };
    let fill = |name: &str| {
        TEMPLATE
            .replacen("NAME", name, 1)
            .replace("are NAME", &format!("are {}", name.trim_matches('"')))
            .replace("TOOLS\n", &tools)
            .replace("DESCRIPTION", &json!(description).to_string())
    };
    let plain = fill(name);
    // Some names are not strings in YAML, such as 12 or true, and must be quoted.
    match file::read(&plain) {
        Ok(Some(read)) if read.definition.name == name => plain,
        _ => fill(&json!(name).to_string()),
    }
}

/// Writes a new file. Never overwrites one.
fn write(path: &Path, text: &str, cwd: &Path) -> anyhow::Result<()> {
    let directory: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", shown(&directory, cwd)))?;
    let made = std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(path);
    match made.and_then(|mut file| file.write_all(text.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => anyhow::bail!(Advised {
            what: format!("{} already exists", shown(path, cwd)),
            advice: "choose another name, or edit the file".into(),
        }),
        written => written.with_context(|| format!("cannot write {}", shown(path, cwd))),
    }
}

/// Returns the next steps for a person.
fn next(name: &str) -> String {
    format!(
        r#"
Write into it what the agent is for, then:

  posse agents check                             # what is wrong with it
  posse agents show {name}                       # what posse makes of it
  posse -p "have {name} look at the last commit"

To try it without a model, and without a cost, save this as try.toml:

  [[rule]]
  when.agent = "re:^/main/."
  reply = [{{ text = "I am {name}, and this is my answer." }}]
  [[rule]]
  when.tool = "re:."
  reply = [{{ text = "It said: {{{{tool}}}}" }}]
  [[rule]]
  reply = [{{ tool = "Agent", input = {{ description = "try it", prompt = "Begin.", subagent_type = "{name}" }} }}]

and run `posse scripted-model try.toml` beside
`ANTHROPIC_BASE_URL=http://127.0.0.1:4141 posse -p --allowedTools Agent go`.
"#
    )
}
